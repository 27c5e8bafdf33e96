"""`pto fix`: insert the changes that reports suggest, until none remains."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..diag import Diagnostic, DiagnosticError, has_errors, render, visible
from ..engine.sanitize import parse_names
from ..reading import read
from ..verifier.apply import applied
from .common import FAILED, OK, difference, say, show, tell, write_output
from .run import Prepared, parsed, parser

_EXAMPLES = """\
  pto fix k.pto -- f32:16x64 f32:16x64           rewrite in place
  pto fix --diff k.pto -- f32:16x64 f32:16x64    show what would change
  pto fix --interactive k.cpp -- @a.npy f32:8    ask before each change
"""
_MOST = 100  # steps
STUCK = "PTO-E2104"


def main(arguments: Sequence[str]) -> int:
    doc = "Run a kernel under sanitizers, and insert the flags and barriers that reports suggest."
    p = parser("pto fix", doc, _EXAMPLES)
    p.add_argument("--diff", action="store_true", help="print the differences without a change of the file")
    p.add_argument("--interactive", action="store_true", help="show each report, and ask before its change")
    options = parsed(p, arguments)
    options.sanitize = options.sanitize or parse_names("all")
    path = options.input
    if path == "-":
        p.error("cannot rewrite standard input: give the path of a file")
    source, problems = read(path)
    if source is None:
        show(problems, options.diagnostics)
        return FAILED
    try:
        wanted = _wanted if options.interactive else lambda d: True
        text, outcome, tried = fixed(source.text, lambda new: _outcome(options, path, new), wanted)
    except PermissionError as e:
        why = f"cannot write beside '{path}': {(e.strerror or str(e)).lower()}"
        show(
            [Diagnostic("PTO-E0002", why, help="copy the file to a folder that you can write")],
            options.diagnostics,
        )
        return FAILED
    problems, steps = outcome.found, sum(step.kept for step in tried)
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


class FixOutcome(NamedTuple):
    """The diagnostics of a program; `ran` if the program passes the verifier."""

    ran: bool
    found: list[Diagnostic]

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.found if d.severity == "error"]

    @property
    def reach(self) -> int:
        """Return the progress of the program: 0 if it does not run, 1 if a run is stuck, 2 if a run ends."""
        return 0 if not self.ran else 1 if any(d.code == STUCK for d in self.found) else 2

    def better(self, before: FixOutcome) -> bool:
        """Return True if the program makes more progress, or as much without new kinds of problems."""
        if self.reach != before.reach:
            return self.reach > before.reach
        return {d.code for d in self.errors} <= {d.code for d in before.errors}


class FixStep(NamedTuple):
    """One suggestion that was tried; `kept` if it helped."""

    found: Diagnostic
    kept: bool


def fixed(
    text: str, run: Callable[[str], FixOutcome], wanted: Callable[[Diagnostic], bool] = lambda d: True
) -> tuple[str, FixOutcome, list[FixStep]]:
    """Apply suggestions of reports until none can be applied. Return the text, its outcome, and the steps. A
    step is undone if it leads to a problem of another kind."""
    outcome = run(text)
    declined: set[str] = set()
    steps: list[FixStep] = []
    while len(steps) < _MOST:
        for d in outcome.errors:
            new = applied(text, d.help) if d.help not in declined else None
            if new is None:
                continue
            declined.add(d.help)
            if not wanted(d):
                continue
            after = run(new)
            steps.append(FixStep(d, after.better(outcome)))
            if steps[-1].kept:
                text, outcome = new, after
                declined.clear()  # lines have moved
                break
        else:
            break
    return text, outcome, steps


def _outcome(options: Namespace, path: str, text: str) -> FixOutcome:
    """Run a text from a temporary file beside the original, because the text may include other files."""
    folder, name = os.path.split(os.path.abspath(path))
    ran = True
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".pto-fix-", suffix=f"-{name}") as file:
        file.write(text.encode())
        file.flush()
        options.input = file.name
        try:
            found = Prepared(options).run().diagnostics
        except DiagnosticError as e:
            found, ran = e.diagnostics, False
        for d in found:
            for span in (d.span, *(span for _, span in d.notes)):
                if span is not None and span.source.name == file.name:
                    span.source.name = path
    return FixOutcome(ran, found)


def _wanted(d: Diagnostic) -> bool:
    say(f"{render([d])}\n")
    try:
        return input("insert this? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
