"""Translate help texts of later stages, which name instructions and PTO text types, to the Python
language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..diag import Diagnostic, DiagnosticError

#: Parts of the help texts of later stages, and their replacements in terms of the Python language.
PHRASES: tuple[tuple[str, str], ...] = (
    ("make the partition that small, with a dynamic valid region of the tile",
     "load no more: valid_shape=[.., pl.min(SIZE, EXTENT - offset)]; a store writes only valid elements"),
    ("give the tile a pad value (pad = zero, min or max), or read only its valid region",
     "pl.fillpad(x, pl.PadValue.zero), or min or max, fills the rest of the tile"),
    ("narrow the valid region of the destination, or widen that of %{name} where it is written",
     "valid_shape=[..] of pl.load sets it, and pl.fillpad(x, pl.PadValue.zero) fills the rest"),
    ("for example by pto.tload or pto.texpands", "for example by pl.load or pl.full(shape, dtype, value)"),
    ("a move does not convert: use a tile of that element type, then pto.tcvt",
     "convert with pl.cast(x, dtype): loads and stores do not convert"),
    ("convert one side with pto.tcvt", "convert one side: pl.cast(x, dtype)"),
    ("move the tile there first, e.g. with pto.tmov", "move the tile there first: pl.move(x, pl.Mem.Vec)"),
    ("make the valid regions agree (valid=RxC in the type, or set_validshape)",
     "make the valid regions agree: valid_shape=[..] of pl.load, or pl.set_validshape(x, rows, columns)"),
    ("or let all blocks meet in 'pto.syncall' between the two accesses",
     "or let all blocks meet in pl.system.syncall() between the two accesses"),
    ("use a smaller tile", "work on parts: for r in pl.range(0, x.shape[0], 16), with x[r : r + 16]"),
)  # fmt: skip

_LOADED = "the window leaves the array: pl.load(.., valid_shape=[pl.min(SIZE, EXTENT - offset), ..])"
_STORED = "load the tile with a valid_shape=[..]: a store writes only its valid region"
#: Code, part of the message, and the help text for messages with a general help text or none.
OUTSIDE = (("PTO-E2101", "tload", _LOADED), ("PTO-E2101", "tstore", _STORED))

_RECIPE = re.compile(r" \(FIX-\w+\)")
_VALUE = re.compile(r"%(\w+)")
_INSTRUCTION = re.compile(r"\bpto\.(t[a-z0-9_]+)\b")
#: Instructions whose operator is written by hand.
_OPERATORS = {"tload": "load", "tstore": "store", "tcvt": "cast", "tmov": "move", "texpands": "full"}


def in_language_terms(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics without duplicates; those with a Python location get help in Python terms."""
    kept: dict[object, Diagnostic] = {}
    for d in found:
        if d.span is not None and d.span.source.text and d.code[:7] != "PTO-E30":
            d.help = _general(d) or _VALUE.sub(r"'\1'", _INSTRUCTION.sub(_operator, _phrased(d.help)))
        kept.setdefault((d.code, d.message, d.span), d)
    return list(kept.values())


def once_per_place(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the first of the diagnostics that iterations and tasks report at one location."""
    kept: dict[object, Diagnostic] = {}
    for number, d in enumerate(found):
        kept.setdefault((d.code, d.severity, d.span) if d.span is not None else number, d)
    return list(kept.values())


@contextmanager
def help_in_language_terms() -> Iterator[None]:
    """Translate the help texts of errors that are raised inside the `with` statement."""
    try:
        yield
    except DiagnosticError as e:
        raise DiagnosticError(in_language_terms(e.diagnostics)) from None


def _general(d: Diagnostic) -> str:
    if d.help and not d.help.startswith("check offsets"):
        return ""
    said = d.message.lower()
    return next((help for code, word, help in OUTSIDE if d.code == code and word in said), "")


def _phrased(help: str) -> str:
    for phrase, instead in PHRASES:
        pattern = re.escape(phrase).replace(re.escape("{name}"), r"[\w?]+")
        help = re.sub(pattern, lambda _, text=instead: text, help)
    return _RECIPE.sub("", help)


def _operator(found: re.Match[str]) -> str:
    from ..isa.python import signatures

    names = (name for name, row in signatures().row_names.items() if row == found[1])
    name = _OPERATORS.get(found[1]) or next(names, "")
    return f"pl.{name}" if name else found[0]
