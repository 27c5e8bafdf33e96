"""Normalisation of a program as in bytecode, made on the IR, to compare round trips with.

Bytecode holds sorted dictionaries, numbers in their type's own precision, and no attribute with its
default if the format always writes it. Without debug information it has no names either.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pto.bytecode.constants import constant_bits, constant_name, float_attr, int_attr
from pto.bytecode.texts import default, implied
from pto.ir import ArrayAttr, Attribute, DictAttr, FloatAttr, IntAttr, Module, Operation, Value


def normalise(module: Module) -> None:
    """In place: everything but the names that the program gives."""
    module.implicit = False
    for op in module.walk():
        for attr in implied(op.row) if op.row else ():
            if str(op.attrs.get(attr.name)) in (str(default(attr)), '"none"'):
                del op.attrs[attr.name]
        if op.attrs:
            op.attrs = {k: _attr(v) for k, v in sorted(op.attrs.items())}
        value = op.attrs.get("value")
        if op.name == "arith.constant" and value is not None:
            op.attrs["value"] = _number(value)
        for region in op.regions:
            targets = {s.block for block in region.blocks for inner in block.ops for s in inner.successors}
            for k, block in enumerate(region.blocks):
                block.label = f"^bb{k}" if block in targets else ""
    for op in module.walk():
        if op.name == "func.func":
            _name_constants(op)


def canonical(module: Module) -> None:
    """In place: as `normalise`, and names as a reader without debug information gives them."""
    for op in module.walk():
        for value in _defined(op):
            value.name = ""
    normalise(module)


def _defined(op: Operation) -> list[Value]:
    return [*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)]


def _name_constants(func: Operation) -> None:
    """Nameless constants are named after their values."""
    counts: dict[str, int] = {}
    for op in func.walk():
        if op.name == "arith.constant" and not op.result.name:
            base = constant_name(op.attrs["value"])
            if base and "!" not in base:
                n = counts[base] = counts.get(base, -1) + 1
                op.result.name = f"{base}_{n}" if n else base


def _attr(value: Attribute) -> Attribute:
    if isinstance(value, DictAttr):
        return DictAttr({k: _attr(v) for k, v in sorted(value.items.items())})
    if isinstance(value, ArrayAttr):
        return ArrayAttr(tuple(_attr(v) for v in value.items))
    return value


def _number(value: Attribute) -> Attribute:
    found = constant_bits(value)
    if found is None:
        return value
    _, number, bits = found
    if isinstance(value, FloatAttr):
        return float_attr(number.to_bytes((bits + 7) // 8, "little"), value.type)
    assert isinstance(value, IntAttr)
    signed = number - (1 << bits) if number >> (bits - 1) & 1 and number > 0 else number
    return int_attr(signed, value.type)


@pytest.fixture(name="normalise")
def _normalise_fixture() -> Callable[[Module], None]:
    return normalise


@pytest.fixture(name="canonical")
def _canonical_fixture() -> Callable[[Module], None]:
    return canonical
