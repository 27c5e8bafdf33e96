"""What every check shares: the module, the profile, and how a problem is reported with its place."""

from __future__ import annotations

import re
from typing import Any

from ..diag import Diagnostic, Span
from ..ir.core import Module, Operation, Value, constant_of
from ..ir.types import Type, ViewType
from ..isa.profiles import ARCH_NAMES, Profile
from ..isa.tile import LAYOUTS


class Context:
    def __init__(
        self, module: Module, profile: Profile, level: str | None = None, insert_sync: bool = False
    ) -> None:
        self.module = module
        self.profile = profile
        self.level = level
        self.insert_sync = insert_sync
        self.target_given = False
        self.diagnostics: list[Diagnostic] = []

    @property
    def arch(self) -> str:
        """The profile as the field writes it in messages."""
        return ARCH_NAMES[self.profile.isa]

    def report(
        self, op: Operation, code: str, message: str, *, at: str | Value | None = None, skip: int = 0,
        expected: str = "", got: str = "", help: str = "", severity: str = "error",
    ) -> Diagnostic:  # fmt: skip
        """Record a problem of `op`, pointing at one operand where `at` names it."""
        name = op.row.name if op.row else op.name
        span = self.span(op, at, skip)
        d = Diagnostic(code, f"{name}: {message}", span, severity, expected, got, help)
        self.diagnostics.append(d)
        return d

    def span(self, op: Operation, at: str | Value | None = None, skip: int = 0) -> Span:
        """The operation's first line, or an occurrence (after `skip` others) of an operand or word in it."""
        text = self.module.source.text
        start, end = op.start, op.end
        if isinstance(at, Value):
            at = f"%{at.name}" if at.name else None
        if at:
            pattern = re.compile(re.escape(at) + r"(?![\w$.\-])")
            last = _head_end(text, start, end) if op.regions else end
            found = list(pattern.finditer(text, start, last))
            if found:
                m = found[min(skip, len(found) - 1)]
                return Span(self.module.source, m.start(), m.end())
        return Span(self.module.source, start, _head_end(text, start, end))

    def note_definition(self, d: Diagnostic, value: Value, label: str = "defined here") -> None:
        owner = value.op
        if owner is not None and owner.end:
            d.notes.append((label, self.span(owner)))


def _head_end(text: str, start: int, end: int) -> int:
    newline = text.find("\n", start, end)
    return end if newline < 0 else newline


class Arg:
    """An operand as rules see it: the facts of its type, plus what is known of its value."""

    __slots__ = ("_profile", "_type", "_value")

    def __init__(self, type: Type, value: Value | None, profile: Profile) -> None:
        self._type = type
        self._value = value
        self._profile = profile

    def __getattr__(self, fact: str) -> Any:
        if fact == "const":
            return constant_of(self._value)
        if fact == "layout" and isinstance(self._type, ViewType):
            return view_layout(self._value)
        if fact in ("blayout", "layout") and getattr(self._type, "loc", "") == "left":
            return left_layout(self._type, self._profile, fact)
        return getattr(self._type, fact, None)


def left_layout(type: Type, profile: Profile, fact: str) -> str | None:
    """The block layout of a Left tile is the target's, whatever the type says."""
    if fact == "blayout":
        return profile.left_blayout
    return LAYOUTS.get((profile.left_blayout, getattr(type, "slayout", "")))


class Args(tuple[Arg, ...]):
    """The values of a variadic operand."""

    __slots__ = ()

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self)

    kind = "list"


def view_layout(value: Value | None) -> str | None:
    """Layout a view was declared with, upper case; None where it is left to inference."""
    while value is not None and value.op is not None:
        op = value.op
        found = op.attrs.get("layout")
        if found is not None:
            return str(found.value).upper()
        if op.name != "pto.partition_view":
            return None
        value = op.operands[0]
    return None
