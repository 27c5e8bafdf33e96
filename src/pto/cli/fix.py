"""`pto fix`: insert what reports suggest, until nothing is left that can be inserted."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence

from ..diag import Diagnostic, DiagnosticError, has_errors, render, visible
from ..engine.sanitize import parse_names
from ..engine.sanitize.advice import applied
from ..reading import read
from .common import FAILED, OK, difference, say, show, tell, write_output
from .run import Prepared, parsed, parser

_EXAMPLES = """\
  pto fix k.pto -- f32:16x64 f32:16x64           rewrite in place
  pto fix --diff k.pto -- f32:16x64 f32:16x64    show what would change
  pto fix --interactive k.cpp -- @a.npy f32:8    ask before each step
"""
_MOST = 100  # steps


def main(arguments: Sequence[str]) -> int:
    doc = "Run a kernel under sanitizers, and insert the flags and barriers that reports suggest."
    p = parser("pto fix", doc, _EXAMPLES)
    p.add_argument("--diff", action="store_true", help="change nothing, print the differences")
    p.add_argument("--interactive", action="store_true", help="show each report, and ask before its step")
    options = parsed(p, arguments)
    options.sanitize = options.sanitize or parse_names("all")
    path = options.input
    if path == "-":
        p.error("it rewrites a file: give its path")
    source, problems = read(path)
    if source is None:
        show(problems, options.diagnostics)
        return FAILED
    try:
        text, problems, steps = _fixed(options, path, source.text)
    except PermissionError as e:
        why = f"cannot write beside '{path}': {(e.strerror or str(e)).lower()}"
        show([Diagnostic("PTO-E0002", why, help="copy it to a folder of yours")], options.diagnostics)
        return FAILED
    if options.diff:
        sys.stdout.writelines(difference(path, source.text, text))
    elif text != source.text:
        problems.extend(write_output(path, text.encode()))
    show(problems, options.diagnostics)
    if not options.quiet:
        count = f"{steps} step{'s'[: steps != 1]}"
        left = "errors are left" if has_errors(problems) else "nothing is left to fix"
        tell(f"{visible(path)}: {count}{' shown' * options.diff}, {left}")
    return FAILED if has_errors(problems) else OK


def _fixed(options: Namespace, path: str, text: str) -> tuple[str, list[Diagnostic], int]:
    """Return the text after all steps, its remaining problems, and the number of steps. A step is taken back
    if it leads to a problem of another kind."""
    declined: set[str] = set()
    problems, steps = _problems(options, path, text), 0
    while steps < _MOST:
        for d in problems:
            new = applied(text, d.help) if d.severity == "error" and d.help not in declined else None
            if new is None:
                continue
            declined.add(d.help)
            if options.interactive and not _wanted(d):
                continue
            after = _problems(options, path, new)
            if {p.code for p in after} <= {p.code for p in problems}:
                text, problems, steps = new, after, steps + 1
                declined.clear()  # lines have moved
                break
        else:
            break
    return text, problems, steps


def _problems(options: Namespace, path: str, text: str) -> list[Diagnostic]:
    """Run a text and return its problems. It lies beside the file for that time: it may include others."""
    folder, name = os.path.split(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".pto-fix-", suffix=f"-{name}") as file:
        file.write(text.encode())
        file.flush()
        options.input = file.name
        try:
            found = Prepared(options).run().diagnostics
        except DiagnosticError as e:
            found = e.diagnostics
        for d in found:
            for span in (d.span, *(span for _, span in d.notes)):
                if span is not None and span.source.name == file.name:
                    span.source.name = path
    return found


def _wanted(d: Diagnostic) -> bool:
    say(f"{render([d])}\n")
    try:
        return input("insert this? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
