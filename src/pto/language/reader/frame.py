"""The state of a function that is being read: its names, its block, and its problems."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from ...diag import Diagnostic, Span, did_you_mean
from ...isa.profiles import Profile
from ..declare import Declared
from ..ir import IN, Function, Program
from ..ir.build import BufferUse, Build, RankBuffer
from ..problems import CALL, MERGE, NAME, SHAPE, TYPE, Problem, fail
from .source import PythonFile


class _Poison:
    """The placeholder for a value that could not be read; no further problem is reported for its uses."""

    def __repr__(self) -> str:
        return "<unread>"


POISON: Any = _Poison()


class Unbound:
    """A name that only some paths to this point have set."""

    def __init__(self, why: str, place: Span, help: str = "") -> None:
        self.why = why
        self.place = place
        self.help = help


class Quiet(Exception):
    """Raised for a use of a value that could not be read; that problem has been reported."""


#: Problems that may depend on the arguments of a call.
_OF_CALLS = (TYPE, SHAPE, CALL, MERGE)


class ProgramReader:
    """All functions of a program, read together."""

    def __init__(
        self, program: Program, target: Profile | None, world: int = 1, uses: Sequence[BufferUse] = ()
    ) -> None:
        """`uses` are those of the buffers, as `buffer_uses` found them before."""
        self.program = program
        self.target = target
        self.world = world  # number of ranks
        self.uses = uses
        self.buffers: list[RankBuffer] = []  # memory of ranks, in order
        self.diagnostics: list[Diagnostic] = []
        self.read: dict[object, Function] = {}  # functions that were read, by their specialisation
        self.call: Callable[..., Any]  # reads a call of a function; see calls.py
        self.submit: Callable[..., object]  # reads a call by pl.submit
        self.exact: dict[Declared, Function] | None = (
            None  # functions of a text in which all types are annotated
        )
        self.loops = 0  # number of loops whose jumps were rewritten
        self.active: list[Declared] = []  # functions that are being read; recursion is rejected
        #: Calls that led to the current function, as notes.
        self.callers: list[Callable[[], tuple[str, Span | None]]] = []

    def buffer_uses(self) -> list[BufferUse]:
        """Return the uses of the buffers, for a second reading; empty if a second reading would change
        nothing.
        """
        found = [BufferUse(tuple(sorted(b.members)) or b.group, b.asked) for b in self.buffers]
        return found if any(len(u.devices) < self.world or u.shape is not None for u in found) else []

    def report(self, problem: Problem) -> None:
        found = problem.diagnostic
        if found.code in _OF_CALLS:
            found.notes += [note() for note in reversed(self.callers)]
        known = ((d.code, d.message, d.span) for d in self.diagnostics)
        if (found.code, found.message, found.span) not in known:
            self.diagnostics.append(found)


class Frame:
    """A function, or the inlined body of one in another."""

    def __init__(
        self,
        unit: ProgramReader,
        file: PythonFile,
        outside: Callable[[str], object],
        build: Build,
        function: Function,
    ) -> None:
        self.unit = unit
        self.file = file
        self.outside = outside  # names of the surrounding Python; raises KeyError
        self.build = build
        self.function = function
        self.names: dict[str, Any] = {}
        self.live: set[str] = set()  # names that are read after the current statement
        self.returned: list[Any] | None = None
        self.task: dict[str, Any] | None = None  # options of the task that a region dispatches
        self.is_host = False  # assigns work to ranks: its loops are written out

    def span(self, node: ast.AST) -> Span:
        return self.file.span(node)

    def rebound(self, target: ast.Name, value: object) -> None:
        """Record where the name of an output is rebound."""
        params = {p.name: p.value for p in self.function.params if p.direction != IN}
        if target.id in params and value is not params[target.id]:
            self.function.attrs.setdefault("rebound", {}).setdefault(target.id, self.span(target))

    def lookup(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.names:
            found = self.names[name]
            if found is POISON:
                raise Quiet
            if isinstance(found, Unbound):
                fail(
                    NAME,
                    f"cannot read '{name}': it {found.why}",
                    self.span(node),
                    help=found.help or f"set '{name}' before its use",
                )
            return found
        try:
            return self.outside(name)
        except KeyError:
            pass
        if hasattr(builtins, name):
            return getattr(builtins, name)
        known = [n for n in self.names]
        fail(NAME, f"unknown name '{name}'", self.span(node), help=did_you_mean(name, known))
