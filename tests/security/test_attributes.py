"""Attributes of every instruction with values of an attacker: C++ that is emitted without legality checks has none of it."""

from __future__ import annotations

import re

from tests.each import together

from pto.asm import parse_source, to_text
from pto.codegen.cpp import emit
from pto.diag import DiagnosticError, Source
from pto.driver import Options, lowered
from pto.ir.attrs import ArrayAttr, Attribute, DictAttr, OpaqueAttr, StrAttr, SymbolAttr
from pto.ir.core import Module
from pto.isa import rows
from pto.isa.row import Row
from pto.witness import witness

from ..each import each
from ..sampling import some

_PAYLOAD = '1); system("touch pwned"); //'
VALUES: dict[str, Attribute | None] = {
    "string": StrAttr(_PAYLOAD),
    "list": ArrayAttr((StrAttr(_PAYLOAD),)),
    "dictionary": DictAttr({"a": StrAttr(_PAYLOAD)}),
    "foreign": OpaqueAttr('#foo<1); system("touch pwned"); >'),
    "symbol": SymbolAttr(_PAYLOAD),
    "nothing": None,
}
_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')


@together("kind", VALUES)
def test_attributes_of_every_row(kind: str) -> None:
    def check(row: Row) -> None:
        isa = row.isas[-1] if row.dialect == "pto" else "a5"
        text = to_text(witness(row, isa), "generic")
        for attr in row.attrs:
            made = _changed(text, row, attr.name, VALUES[kind])
            if made is None:
                continue
            try:
                done = lowered(made, None, Options(check="structure")).sound()
                plain = _LITERAL.sub('""', emit(done.module, done.profile))
            except DiagnosticError:
                continue
            assert "system(" not in plain, attr.name

    given = [r for r in rows() if r.attrs]
    each(check, given if VALUES[kind] is None else some(given, 4, by=lambda r: r.family))


def _changed(text: str, row: Row, name: str, value: Attribute | None) -> Module | None:
    """A program with another attribute, as it is read from its text; None where no text has it."""
    module, _ = parse_source(Source("k.pto", text))
    assert module is not None
    op = [op for op in module.walk() if op.row is row][-1]
    if value is None:
        op.attrs.pop(name, None)
    else:
        op.set_attr(name, value)
    try:
        return parse_source(Source("k.pto", to_text(module, "generic")))[0]
    except (TypeError, ValueError):  # the printer accepts only values that a reader accepts
        return None
