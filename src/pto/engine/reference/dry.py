"""Dry runs: everything is issued, flags and FIFOs work, but no pipe computes or moves anything.

What a timeline needs of a launch is which instructions there are and who waits for whom. That follows without
tiles unless a scalar is read out of one, or a signal of global memory is looked at.
"""

from __future__ import annotations

from ...diag import Diagnostic
from ...ir.core import Module, Operation
from ...ir.multi_tiles import told_as


def depends_on_data(module: Module) -> Diagnostic | None:
    """Why a program cannot run dry: the first instruction whose scalar result is what memory holds."""
    for op in module.walk():
        if _reads(op):
            return Diagnostic(
                "PTO-E2408",
                f"{told_as(op)}: a dry run computes no tiles, and this reads what memory holds",
                op.loc.head if op.loc is not None else None,
                help="run it with its data: leave out dry",
            )
    return None


def _reads(op: Operation) -> bool:
    row = op.row
    if row is None:
        return False
    if row.family == "signal":
        return True
    # instructions of vecscopes have registers as results, which a dry run never makes scalars of
    return bool(op.results) and row.effect == "memory" and row.set not in ("vector", "predicate")
