"""The diagnostic or exception for a run that ended early."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError, Span, render

if TYPE_CHECKING:
    from ..ir.core import Module

#: Codes of the engine, and ours for them.
_CODES = {
    1: "PTO-E2620", 2: "PTO-E2620", 3: "PTO-E2620", 4: "PTO-E2620", 11: "PTO-E2620", 202: "PTO-E2620",
    5: "PTO-E2621", 7: "PTO-E2621", 10: "PTO-E2621",
    200: "PTO-E2622", 201: "PTO-E2623", 203: "PTO-E2624", 205: "PTO-E2625",
}  # fmt: skip


class RunFailure(DiagnosticError):
    """A run that ended early; `number` is the code of the runtime."""

    def __init__(self, problem: Diagnostic, number: int) -> None:
        super().__init__([problem])
        self.number = number

    def stand_at(self, span: Span | None) -> None:
        """Set the source location of the call that ended the run, if it is missing."""
        for d in self.diagnostics:
            d.span = d.span or span
        self.args = (render(self.diagnostics),)

    def note_waits(self, others: Iterable[tuple[int, Span | None]]) -> None:
        """Add a note for each source location where other tasks of a deadlock wait."""
        (d,) = self.diagnostics
        known = {d.span, None}
        for task, span in others:
            if span not in known:
                known.add(span)
                d.notes.append((f"task {task} waits here", span))
        self.args = (render(self.diagnostics),)


_OWN = re.compile(r"(?:\[PTO\])?\[((?:PTO-E|[A-Z]{2}-)\d{4}|[A-Z]\d{3})\] ")


#: The beginning of the note with the source location of a submission.
SUBMITTED = "the task was submitted at"


def raise_failure(
    run: Any,
    sources: Mapping[int, str | Module] | None = None,
    python: bool = False,
    sites: Sequence[str] = (),
) -> None:
    """Raise the failure of a run, if it ended early. `sources` are the programs of kernels in PTO, by func_id
    (a path, or the module itself): the operation that a core was executing becomes a source location in one
    of them. `python`: help names rings as arguments of `run`, not as environment variables. `sites` are the
    source locations of submissions, if more than the line is known."""
    code, text, thrown, kernel, mark, task, site, others = run.failure()
    if not code:
        return
    number = int(task)
    place = sites[number] if 0 <= number < len(sites) else site

    def span(kernel: int, mark: int) -> Span | None:
        return _span((sources or {}).get(kernel, "") if mark >= 0 else "", mark)

    try:
        error = failed(code, text, thrown, span(kernel, mark), place, _arguments(text) if python else "")
        if isinstance(error, RunFailure):
            error.note_waits((task, span(kernel, mark)) for kernel, mark, task in others)
        raise error
    finally:
        del thrown  # breaks the reference cycle through its traceback


_SIZES = re.compile(r"(?:PTO2_RING_(\w+)=|a (tensormap pool) of )(\d+)")


def _arguments(report: str) -> str:
    """Return the sizes that the report of a deadlock recommends, as arguments of `run`."""
    sizes = [
        f"{(env or pool).lower().replace(' ', '_')}={size}" for env, pool, size in _SIZES.findall(report)
    ]
    return f"runtime.run(..., {', '.join(sizes)})" if sizes else ""


def _span(program: str | Module, offset: int) -> Span | None:
    """Return the location of an operation: its mark identifies it in a module, its offset in a file. In a
    file, the location is the rest of the line.
    """
    if not isinstance(program, str):
        from .program import operation_at

        found = operation_at(program, offset)
        return found.loc and found.loc.head if found is not None else None
    if not program.endswith(".pto"):
        return None
    from ..reading import read

    source, _ = read(program)
    if source is None or offset >= len(source.text):
        return None
    _, end = source.bounds(source.place(offset)[0])
    return Span(source, offset, max(end, offset + 1))


def failed(
    code: int,
    text: str,
    thrown: BaseException | None = None,
    span: Span | None = None,
    site: str = "",
    help: str = "",
) -> BaseException:
    """Return the exception of a failed run. The text of a kernel may begin with its own code."""
    if thrown is not None and (code == 201 or not isinstance(thrown, Exception)):
        return thrown  # an exception of a Python orchestration is the caller's own
    own = _OWN.search(text)
    text = text.replace(own[0], "", 1) if own else text
    text, _, fix = text.rstrip("\n").partition("; fix: ")
    problem = Diagnostic(own[1] if own else _CODES.get(code, "PTO-E2629"), text, span, help=help or fix)
    if thrown is not None and (place := _place(thrown)):
        problem.notes.append((f"raised at {place}", None))
    if site:
        problem.notes.append((f"{SUBMITTED} {site}", None))
    error = RunFailure(problem, code)
    error.__cause__ = thrown
    return error


def _place(error: BaseException) -> str:
    """Return file and line of the innermost user code that an exception passed through."""
    place, at = "", error.__traceback__
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if not file.startswith((ours, "<")) and f"{os.sep}site-packages{os.sep}" not in file:
            place = f"{file}:{at.tb_lineno}"
        at = at.tb_next
    return place
