"""A module and a profile for a stage, and reports of problems with their locations."""

from __future__ import annotations

import re

from ..diag import Diagnostic, Span
from ..isa.profiles import ARCH_NAMES, Profile
from .core import Module, Operation, Value
from .multi_tiles import name_in_messages
from .nesting import BlockStatement, nesting

#: A type of tiles in text, up to its parts; or an alias of such a type.
_TILE = re.compile(r"!pto\.(?:multi_)?tile(?:_buf)?<|!([A-Za-z_]\w*)(?![\w.<])")


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
        """Return the profile as the vendor stack writes it in messages."""
        return ARCH_NAMES[self.profile.isa]

    def nesting(self, op: Operation) -> list[BlockStatement]:
        """Return the statements around an operation up to its function, itself included, innermost first."""
        return nesting(self.module, op)

    def report(
        self, op: Operation, code: str, message: str, *, at: str | Value | Span | None = None,
        skip: int = 0, expected: str = "", got: str = "", help: str = "", severity: str = "error",
    ) -> Diagnostic:  # fmt: skip
        """Record a problem of `op`, at a span or at the operand or word in `at`."""
        span = at if isinstance(at, Span) else self.span(op, at, skip)
        d = Diagnostic(code, f"{name_in_messages(op)}: {message}", span, severity, expected, got, help)
        self.diagnostics.append(d)
        return d

    def span(self, op: Operation, at: str | Value | None = None, skip: int = 0) -> Span:
        """Return the first line of an operation, or an occurrence (after `skip` others) of a word in it."""
        span = self.module.span(op)
        if isinstance(at, Value):
            at = f"%{at.name}" if at.name else None
        found = (span.head if op.regions else span).find(at, skip) if at else None
        return found or span.head

    def type_span(self, op: Operation, value: Value) -> Span:
        """Return the location of the type of a tile in the operation that makes the tile or has it as a
        parameter; the location of the value if the type is not written there."""
        made = value.op is op
        whole, at = self.module.span(op), self.span(op, value)
        text, start = whole.source.text, whole.start if made else at.end
        if not text:
            return at
        written = [
            m
            for m in _TILE.finditer(text, start, whole.end)
            if not m[1] or re.search(rf"^\s*{m[0]}\s*=", text, re.MULTILINE)
        ]
        if not written:
            return at
        first, end = written[-1 if made else 0].span()
        depth = text[end - 1] == "<"
        while depth and end < whole.end:
            depth += {"<": 1, ">": -1}.get(text[end], 0)
            end += 1
        return Span(whole.source, first, end)

    def note_definition(self, d: Diagnostic, value: Value, label: str = "defined here") -> None:
        owner = value.op
        if owner is not None and owner.loc is not None:
            d.notes.append((label, self.span(owner)))
