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
    text, problems, steps = _fixed(options, path, source.text)
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
    """The text after all steps, what is wrong with it still, and how many steps there were."""
    declined: set[str] = set()
    problems: list[Diagnostic] = []
    for steps in range(_MOST):
        problems = _problems(options, path, text)
        for d in problems:
            new = applied(text, d.help) if d.severity == "error" and d.help not in declined else None
            if new is None:
                continue
            if options.interactive and not _wanted(d):
                declined.add(d.help)
                continue
            text = new
            break
        else:
            return text, problems, steps
    return text, problems, _MOST


def _problems(options: Namespace, path: str, text: str) -> list[Diagnostic]:
    """What is wrong with a text, which lies beside the file meanwhile: it may include others."""
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
    return input("insert this? [y/N] ").strip().lower() in ("y", "yes")
