"""A module that a stage looks at for a profile, and how it reports a problem with its place."""

from __future__ import annotations

from ..diag import Diagnostic, Span
from ..isa.profiles import ARCH_NAMES, Profile
from .core import Module, Operation, Value
from .multi_tiles import told_as


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
        span = self.span(op, at, skip)
        d = Diagnostic(code, f"{told_as(op)}: {message}", span, severity, expected, got, help)
        self.diagnostics.append(d)
        return d

    def span(self, op: Operation, at: str | Value | None = None, skip: int = 0) -> Span:
        """The operation's first line, or an occurrence (after `skip` others) of an operand or word in it."""
        span = self.module.span(op)
        if isinstance(at, Value):
            at = f"%{at.name}" if at.name else None
        found = (span.head if op.regions else span).find(at, skip) if at else None
        return found or span.head

    def note_definition(self, d: Diagnostic, value: Value, label: str = "defined here") -> None:
        owner = value.op
        if owner is not None and owner.loc is not None:
            d.notes.append((label, self.span(owner)))
