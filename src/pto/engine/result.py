"""The result of a launch, for all engines."""

from __future__ import annotations

from typing import Any

from ..diag import Diagnostic, DiagnosticError, has_errors
from ..shown import Shown


class LaunchResult(Shown):
    """The diagnostics of a launch, sanitizer reports among them, and its pictures."""

    def __init__(self, engine: str = "") -> None:
        self.engine = engine  # name of the engine
        self.task = ""  # for a task of a graph, the name of its kernel
        self.diagnostics: list[Diagnostic] = []
        self.checked: frozenset[str] = frozenset()  # sanitizers of the run
        # kernels that the sanitizers did not fully observe, with the reason
        self.unchecked: dict[str, str] = {}
        self.shadow: Any = None
        self.memory_map: Any = None
        self.timeline: Any = None  # see `perf.timeline`

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)

    def __repr__(self) -> str:
        found = f"{len(self.diagnostics)} diagnostics" if self.diagnostics else "ok"
        checked = f", checked for {', '.join(sorted(self.checked))}" if self.checked else ""
        of = f"of {self.task}: " if self.task else ""
        return f"<LaunchResult {of}{found}{checked}>"


def sound(result: LaunchResult) -> LaunchResult:
    """Return a result without errors; else raise `DiagnosticError`."""
    if not result.ok:
        raise DiagnosticError([d for d in result.diagnostics if d.severity == "error"])
    return result
