"""A whole program for its functions: types, problems, order and prefixes of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...diag import Diagnostic
from ...ir.context import Context
from ...ir.core import Module, Operation, entry_mark
from ...isa.profiles import Profile
from .spelling import Types, Unspellable, identifier


def no_registers(profile: Profile, cube: bool = False) -> tuple[str, str]:
    """Return message and help for vector or cube code on pointers for a target without such calls."""
    what = "calls of the cube unit on pointers" if cube else "calls on vector registers"
    return (
        f"no C++ spelling on {profile.name}: only an A5 has {what}",
        "emit for an A5, or use tile instructions",
    )


class Unit:
    def __init__(
        self,
        module: Module,
        profile: Profile,
        planned: bool = False,
        line_directives: bool = False,
        addptr_trace: bool = False,
        index_type: str = "int32_t",
        checked: bool = False,
    ) -> None:
        self.module = module
        self.profile = profile
        self.planned = planned
        self.line_directives = line_directives
        self.addptr_trace = addptr_trace
        self.checked = checked
        self.types = Types(profile, index_type)
        self.wide = index_type == "int64_t"
        self._context = Context(module, profile)
        self.problems: list[Diagnostic] = self._context.diagnostics
        self._names = {f.attr("sym_name") for f in module.functions}
        self._defined = [f for f in module.functions if f.regions[0].blocks]
        self._distinct_names()

    def _distinct_names(self) -> None:
        """Report two names that are equal in C++, because they differ only in characters that C++ lacks."""
        taken: dict[str, str] = {}
        for func in self.module.functions:
            name = str(func.attr("sym_name"))
            spelled = identifier(name)
            if taken.setdefault(spelled, name) != name:
                self.report(
                    func,
                    "PTO-E1304",
                    f"cannot emit '@{name}': '@{taken[spelled]}' is also named '{spelled}' in C++",
                    help="rename one of them",
                )

    @property
    def a5(self) -> bool:
        return self.profile.isa == "a5"

    def report(self, op: Operation, code: str, message: str, **more: Any) -> None:
        self._context.report(op, code, message, **more)

    def no_spelling(self, op: Operation, what: str = "") -> None:
        """Report an operation without a C++ spelling; `what` is its condition, e.g. `with 'x'`."""
        row = op.row
        if row is None:
            self.report(op, "PTO-E1301", "no C++ spelling: unknown dialect")
        elif what:
            name = what.partition("'")[2].rstrip("'")
            more = f"give '{name}': the call has no form without it" if what.startswith("without") else ""
            self.report(op, "PTO-E1301", f"no C++ spelling {what}", at=name, help=more)
        elif self.other_registers(op):
            self.no_registers(op)
        else:
            self.report(op, "PTO-E1301", f"no C++ spelling: {row.no_cpp}")

    def no_registers(self, op: Operation) -> None:
        """Report code on vector registers, or of the cube unit, on a target without such calls."""
        message, help = no_registers(self.profile, op.row is not None and op.row.set == "cube")
        self.report(op, "PTO-E1301", message, help=help)

    def other_registers(self, op: Operation) -> bool:
        """Return True if an operation on vector registers or of the cube unit is for a target whose calls
        have other arguments. Our headers have the calls of an A5 on every target."""
        row = op.row
        own = row is not None and (row.set in ("vector", "predicate", "cube") or row.scope == "vec")
        return own and self.profile.isa == "a2a3" and not self.checked

    def guard(self, op: Operation, call: Callable[..., None], *args: Any) -> None:
        """Run a part of the emission; a type without a spelling is a diagnostic."""
        try:
            call(*args)
        except Unspellable as e:
            self.report(op, "PTO-E1302", f"cannot emit a value of type {e} in C++")

    def entry(self, func: Operation) -> bool:
        """Return True if a function is a kernel: marked, or the only function."""
        return entry_mark(func) is not None or (len(self._defined) == 1 and func is self._defined[0])

    def prefix(self, func: Operation) -> str:
        if not func.regions[0].blocks:
            return "extern "
        if self.entry(func):
            return "__global__ AICORE "
        return "static AICORE " if func.attr("sym_visibility") == "private" else "AICORE "

    def ordered(self) -> list[Operation]:
        """Return the functions, each after its callees, otherwise in source order."""
        functions = self.module.functions
        calls = {
            f: {str(op.attr("callee")) for op in f.walk() if op.name == "func.call"} & self._names
            for f in functions
        }
        done: set[Any] = set()
        out: list[Operation] = []
        left = functions
        while left:
            wave = [f for f in left if calls[f] <= done]
            if not wave:  # the verifier refuses recursion
                self.report(left[0], "PTO-E0216", "cannot emit recursive function calls in C++")
                return out
            out += wave
            done |= {f.attr("sym_name") for f in wave}
            left = [f for f in left if f not in wave]
        return out
