"""Legality, per target profile. Driven by the table; one module per kind of rule.

    verify(module, target="a3")  ->  list[Diagnostic]

A program is legal if none of the diagnostics is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..diag import Diagnostic, did_you_mean, has_errors
from ..ir.context import Context
from ..ir.core import Module, Operation
from ..ir.facts import concerns_fifos, module_profile
from ..ir.multi_tiles import single_tiles
from ..ir.packed_tiles import logical_tiles
from ..isa.profiles import ALIASES, Profile
from .pipes import check_pipes
from .rows import RowChecker
from .scopes import check_scopes
from .slots import check_slots
from .structure import check_structure
from .tiles import check_tiles

LEVELS = ("level1", "level2", "level3")


def verify(
    module: Module,
    target: str | Profile | None = None,
    *,
    level: str | None = None,
    insert_sync: bool = False,
    flags: str = "error",
    overlaps: str = "off",
    structure_only: bool = False,
    only: Collection[Operation] | None = None,
) -> list[Diagnostic]:
    """Return the diagnostics of a program. `flags` is the severity of unbalanced flags, and `overlaps` of
    tiles that overwrite each other; "off" skips the check. `structure_only` skips legality: the rules of
    instructions and of the target, beyond the kinds of operands and attributes. `only` has the operations
    that differ from a program without problems: the rules of rows are checked for these.
    """
    context = Context(module, module_profile(module, target), level, insert_sync)
    context.target_given = target is not None
    _target_attribute(context)
    check_structure(context)
    checker = RowChecker(context)
    if structure_only:
        for op in module.walk():
            checker.check_kinds(op)
        return context.diagnostics
    sound = check_slots(context) and not has_errors(context.diagnostics)
    if sound:
        context.module = module = logical_tiles(single_tiles(module))
    ordered = piped = False  # True if an operation orders pipes, or belongs to a FIFO
    for op in module.walk():
        if only is None or op in only:
            checker.check(op)
        if op.row is not None:
            ordered = ordered or bool(op.row.order)
            piped = piped or concerns_fifos(op)
    check_tiles(context)
    check_scopes(context)
    check_pipes(context)
    if piped:
        from .fifo import check_fifos

        check_fifos(context)
    if flags != "off" and sound and ordered:
        _check_flags(context, flags)
    if overlaps != "off" and sound:
        from .overlap import check_overlaps

        check_overlaps(context, overlaps)
    return context.diagnostics


def verify_flags(module: Module, profile: Profile, entries: Sequence[Operation]) -> list[Diagnostic]:
    """Return the diagnostics about flags and buffer tokens of these functions."""
    context = Context(module, profile)
    _check_flags(context, "error", entries)
    return context.diagnostics


def _check_flags(context: Context, severity: str, entries: Sequence[Operation] | None = None) -> None:
    from .flags import check_flags

    check_flags(context, severity, entries)


def _target_attribute(context: Context) -> None:
    found = context.module.attrs.get("pto.target_arch")
    if found is None or context.target_given or str(found.value).lower() in ALIASES:
        return
    context.report(
        context.module.op,
        "PTO-E0603",
        f"unknown target '{found.value}'",
        at="pto.target_arch",
        expected=", ".join(ALIASES),
        got=str(found.value),
        help=did_you_mean(str(found.value), ALIASES) or "name a profile, e.g. a3 or a5",
    )


__all__ = ["LEVELS", "verify", "verify_flags"]
