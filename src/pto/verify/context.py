"""What every check shares: the module, the profile, and how a problem is reported with its place."""

from __future__ import annotations

import re
from typing import Any

from ..diag import Diagnostic, Span
from ..ir.core import Module, Operation, Value, constant_of
from ..ir.types import Type, ViewType
from ..isa.enums import SYNC_OP_PIPE
from ..isa.profiles import ARCH_NAMES, Profile
from ..isa.row import Row
from ..isa.rules import holds
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

    __slots__ = ("_profile", "_type", "_value", "_view_layout")

    def __init__(self, type: Type, value: Value | None, profile: Profile, view_layout: str = "") -> None:
        self._type = type
        self._value = value
        self._profile = profile
        self._view_layout = view_layout  # where the operation gives one of its own

    def __getattr__(self, fact: str) -> Any:
        if fact == "const":
            return constant_of(self._value)
        if fact == "layout" and isinstance(self._type, ViewType):
            return self._view_layout or view_layout(self._value)
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


def environment(op: Operation, row: Row, profile: Profile) -> dict[str, Any]:
    """What the rules of a row see of an operation."""
    env: dict[str, Any] = {"isa": profile.isa}
    for attr in row.attrs:
        env[attr.name] = op.attr(attr.name)
    own = str(op.attrs["layout"].value).upper() if "layout" in op.attrs else ""
    at = 0
    for i, declared in enumerate(row.operands):
        count = 1 if op.segments is None else op.segments[i]
        if declared.variadic:
            env[declared.name] = Args([Arg(v.type, v, profile) for v in op.operands[at : at + count]])
        else:
            env[declared.name] = Arg(op.operands[at].type, op.operands[at], profile, own) if count else None
        at += count
    for declared, result in zip(row.results, op.results, strict=False):
        env.setdefault(declared.name, Arg(result.type, result, profile))
    for declared in row.results[len(op.results) :]:
        env.setdefault(declared.name, None)
    return env


def pipe_of(op: Operation, profile: Profile) -> str:
    """The pipe an operation is queued on, without `PIPE_`; empty for one that occupies none."""
    row = op.row
    if row is None or not row.pipe:
        return ""
    found = row.pipe
    if not isinstance(found, str):
        env = environment(op, row, profile)
        found = next((pipe for when, pipe in found if not when or holds(when, env)), "")
    if found in row.attr_index:
        written = str(op.attr(found))
        found = SYNC_OP_PIPE.get(written, written)
    return found.removeprefix("PIPE_")


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
