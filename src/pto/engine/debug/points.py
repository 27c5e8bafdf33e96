"""Breakpoints and watchpoints: their text, their places, and their conditions.

    14            before every execution of line 14
    14:3          before the third
    k.pto:14      of that file
    @softmax      before the first operation of a function
    14 if %i == 3 only where that holds

A watchpoint is an expression without arithmetic: `%acc[0, 1]`, `%acc[0:2, 0:8]`, `%i`.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from ...diag import Source, did_you_mean
from ...ir.core import Module, Operation, Value
from ..reference import handles, sync
from ..reference.control import is_structured
from .expressions import Expression, ExpressionError, Index

_BREAK = re.compile(
    r"(?:(?P<file>(?!@).*[^\d:\s].*?):)?(?P<line>\d{1,9})(?::(?P<count>\d{1,9}))?\s*$|@(?P<function>[\w$.\-]+)(?::(?P<nth>\d{1,9}))?\s*$"
)
_HITS = re.compile(r"\s*(==|>=|<=|>|<|%|)\s*(\d{1,9})\s*$")
_NO_STEPS = ("func.func", "builtin.module")


class PointError(Exception):
    """An error in a breakpoint or a watchpoint, in words."""


def line_of(op: Operation) -> int:
    """Return the first line of an operation; 0 if it has none."""
    return op.source.place(op.start)[0] if op.source is not None else 0


def _rank(op: Operation) -> int:
    """Return 0 for constants and synchronization, 1 for scalars, descriptors and control, 2 for others."""
    row = op.row
    if op.name == "arith.constant" or (row is not None and sync.orders(row.name)):
        return 0
    if row is None or row.family in ("shared-arith", "shared-math") or row.name in handles.HANDLERS:
        return 1
    return 1 if is_structured(row.name) else 2


class BreakPlaces:
    """The files and lines of the operations of a program. A line without a file belongs to `main`.

    In C++ the lines with calls are unknown before a launch: any line of any file may have one (`open`).
    """

    def __init__(
        self,
        module: Module | None,
        functions: Iterable[Operation],
        main: Source,
        first_calls: Callable[[], dict[str, tuple[str, int]]] | None = None,
    ) -> None:
        self.open = module is None
        #: Prefix of names of values.
        self.sign = "" if module is None else "%"
        self._names = {v.name for v in _values(module)} if module is not None else None
        self._lines: dict[str, list[int]] = {}
        self._first: dict[str, tuple[str, int]] = {}
        #: For C++: finds the first call of every function.
        self._first_calls = first_calls
        #: By line: the highest `_rank` of its operations.
        self._ranks: dict[tuple[str, int], int] = {}
        found: dict[str, set[int]] = {}
        for op in module.walk() if module is not None else ():
            if op.source is None or op.name in _NO_STEPS or (op.name == "scf.yield" and not op.operands):
                continue
            at = op.source.name, line_of(op)
            found.setdefault(at[0], set()).add(at[1])
            self._ranks[at] = max(_rank(op), self._ranks.get(at, 0))
        self._lines = {name: sorted(lines) for name, lines in found.items()}
        for function in module.functions if module is not None else ():
            at = next((o for o in function.walk() if o is not function and o.source is not None), None)
            if at is not None and at.source is not None:
                self._first[str(function.attr("sym_name"))] = at.source.name, line_of(at)
        entry = next((f.source.name for f in functions if f.source is not None), main.name)
        known = self._lines or {entry: []}
        self.main = entry if entry in known else max(known, key=lambda name: len(known[name]))

    @property
    def files(self) -> list[str]:
        return list(self._lines)

    def counts(self, op: Operation, line: int) -> bool:
        """Return True if an operation counts as its line. Only the highest rank of a line counts: passes and
        compilers add flags, constants and descriptors to the written line."""
        assert op.source is not None
        return _rank(op) >= self._ranks.get((op.source.name, line), 0)

    def file(self, given: str) -> str:
        """Return the name of a file in places, from any spelling of it."""
        if not given or (self.open and same_file(self.main, given)):
            return self.main
        if self.open:
            return given
        for name in self._lines:
            if name == given:
                return name
        matches = [n for n in self._lines if same_file(n, given)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise PointError(f"'{given}' may be {' or '.join(matches)}")
        known = ", ".join(self._lines) or "none"
        hint = did_you_mean(given, map(os.path.basename, self._lines))
        raise PointError(f"no operation comes from '{given}'; {hint or f'files are {known}'}")

    def line(self, file: str, wanted: int) -> int:
        """Return the first line from `wanted` on that has an operation."""
        if self.open:
            return wanted
        lines = self._lines.get(file, [])
        at = bisect_left(lines, wanted)
        if at == len(lines):
            last = f"the last one is line {lines[-1]}" if lines else "it has none"
            raise PointError(f"no operation at line {wanted} of {os.path.basename(file)} or after it: {last}")
        return lines[at]

    def lines(self, file: str, first: int, last: int) -> list[int]:
        """Return the lines of a range that have operations."""
        if self.open:
            return list(range(first, min(last, first + 1000) + 1))
        found = self._lines.get(file, [])
        return found[bisect_left(found, first) : bisect_left(found, last + 1)]

    def check_name(self, name: str) -> None:
        """Raise if no value of the program has a name."""
        if self._names is not None and name not in self._names:
            hint = did_you_mean(name, sorted(self._names))
            raise PointError(f"no value %{name} in the program" + (f"; {hint}" if hint else ""))

    @property
    def functions(self) -> dict[str, tuple[str, int]]:
        """Return functions by name: the file and line of the first operation of each."""
        if not self._first and self._first_calls is not None:
            self._first = self._first_calls()
        return self._first

    def function(self, name: str) -> tuple[str, int]:
        found = self.functions.get(name)
        if found is None:
            known = ", ".join("@" + n for n in self.functions)
            hint = did_you_mean(name, self.functions) or (
                f"functions are {known}" if known else "none makes calls of the ISA"
            )
            raise PointError(f"no function '@{name}'; {hint}")
        return found


def _values(module: Module) -> Iterator[Value]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def same_file(name: str, given: str) -> bool:
    """Return True if a user may mean a file by a path, or by the end of a path."""
    a, b = os.path.normpath(name), os.path.normpath(given)
    return a == b or a.endswith(os.sep + b) or os.path.realpath(a) == os.path.realpath(b)


class Hits:
    """Selected executions: `3` is the third, `>= 3` all from then on, `% 4` every fourth."""

    def __init__(self, text: str) -> None:
        m = _HITS.match(text)
        if m is None or (m[1] == "%" and int(m[2]) == 0) or (not m[1] and int(m[2]) == 0):
            raise PointError(f"expected a number of executions (3, >= 3 or % 4), got '{text}'")
        self.sign, self.count = m[1] or "==", int(m[2])

    def __call__(self, hits: int) -> bool:
        n = self.count
        return {
            "==": hits == n, ">=": hits >= n, ">": hits > n, "<": hits < n, "<=": hits <= n,
            "%": self.sign == "%" and hits % n == 0,
        }[self.sign]  # fmt: skip

    def __str__(self) -> str:
        return str(self.count) if self.sign == "==" else f"{self.sign} {self.count}"


class Breakpoint:
    """A line to stop before. `since` is the moment of its creation; executions from then on count."""

    def __init__(
        self, file: str, line: int, condition: str = "", hits: str = "", temporary: bool = False
    ) -> None:
        self.number = 0
        self.file = file
        self.line = line
        self.condition: Expression | None = None
        if condition.strip():
            try:
                self.condition = Expression(condition)
            except ExpressionError as e:
                raise PointError(f"condition '{condition.strip()}': {e}") from None
        self.wanted = Hits(hits) if hits.strip() else None
        self.temporary = temporary
        self.enabled = True
        self.since = 0
        self.hits = 0
        self.asked = line  # the line from the user

    @classmethod
    def parsed(cls, text: str, places: BreakPlaces, file: str = "", temporary: bool = False) -> Breakpoint:
        """Parse a breakpoint of a user; the default of its file is `file`, then that of the program."""
        place, _, condition = text.strip().partition(" if ")
        if place.startswith("if "):
            place, condition = "", text.strip()[3:]
        m = _BREAK.match(place.strip())
        if m is None:
            raise PointError(
                f"cannot stop at '{text.strip()}': write LINE, LINE:N, FILE:LINE or @FUNCTION, "
                "then perhaps 'if' and a condition"
            )
        if m["function"]:
            at, line = places.function(m["function"])
            made = cls(at, line, condition, m["nth"] or "", temporary)
        else:
            at = places.file(m["file"] or file)
            asked = int(m["line"])
            line = places.line(at, asked)
            made = cls(at, line, condition, m["count"] or "", temporary)
            made.asked = asked
        if " if " in text and not condition.strip():
            raise PointError("missing condition after 'if'")
        return made

    def on(self, source: Source, line: int) -> bool:
        return self.line == line and (self.file == source.name or same_file(source.name, self.file))

    def __str__(self) -> str:
        which = f":{self.wanted}" if self.wanted and self.wanted.sign == "==" else ""
        also = f", executions {self.wanted}" if self.wanted and not which else ""
        condition = f" if {self.condition.text}" if self.condition else ""
        return f"{os.path.basename(self.file)}:{self.line}{which}{condition}{also}"


class Watchpoint:
    """A value, an element or a part to stop after a write to."""

    def __init__(self, text: str) -> None:
        try:
            found = Expression(text)
        except ExpressionError as e:
            raise PointError(f"watch '{text.strip()}': {e}") from None
        if found.index is None:
            raise PointError(f"watch '{text.strip()}': expected a name, as in %acc[0, 1] or %i")
        self.number = 0
        self.index: Index = found.index
        self.text = found.text
        #: The name as written, without indices.
        self.name = f"'{found.index.name}'" if found.text.startswith("'") else found.text.partition("[")[0]
        self.enabled = True
        self.hits = 0

    def __str__(self) -> str:
        return self.text


class Points:
    """The breakpoints and watchpoints of a session, in order of their numbers."""

    def __init__(self, places: BreakPlaces) -> None:
        self.places = places
        self.breaks: list[Breakpoint] = []
        self.watches: list[Watchpoint] = []
        self._last = 0
        #: True if findings of sanitizers stop the launch.
        self.findings = True

    def add(self, point: Breakpoint | Watchpoint, now: int = 0) -> Breakpoint | Watchpoint:
        point.number = self._last + 1
        if isinstance(point, Breakpoint):
            point.since = now
            self.breaks.append(point)
        else:
            self.places.check_name(point.index.name)
            self.watches.append(point)
        self._last += 1
        return point

    def find(self, number: int) -> Breakpoint | Watchpoint:
        for point in (*self.breaks, *self.watches):
            if point.number == number:
                return point
        raise PointError(f"no breakpoint or watchpoint {number}")

    def remove(self, point: Breakpoint | Watchpoint) -> None:
        if isinstance(point, Breakpoint):
            self.breaks.remove(point)
        else:
            self.watches.remove(point)

    def reset(self) -> None:
        """Reset counts for a new launch."""
        for point in (*self.breaks, *self.watches):
            point.hits = 0

    @property
    def visible(self) -> list[Breakpoint | Watchpoint]:
        both = [*(b for b in self.breaks if not b.temporary), *self.watches]
        return sorted(both, key=lambda p: p.number)
