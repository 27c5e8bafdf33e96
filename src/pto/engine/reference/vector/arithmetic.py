"""Lane-wise rows with an expression, and 32-bit differences with borrow.

An expression that only chooses between operands moves their bits; all others compute with numbers. Masks are
truth values of lanes, as operands and as results. Lanes that are off in the gate of the row give 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....isa.meaning import Apply, Expression, assigned, names, uses
from ....isa.row import Row
from ...elements import Array
from ..instr import Instr
from ..meaning import Numbers, RowExpression
from ..registry import Execute, executor, expressed
from .lanes import active, bits, full, numbers, put, put_mask, put_raw, raw, width


@expressed("vector")
def build(row: Row) -> Execute:
    """Make the executor of a row with an expression over lanes. Bitwise operations use the bits of floats."""
    expressions = {target or row.results[0].name: e for target, e in assigned(row.expr).items()}
    forms = [(target, RowExpression(e)) for target, e in expressions.items()]
    (first, form), *others = forms
    truths = {r.name for r in row.results if "mask" in r.kinds}
    masks = {o.name for o in row.operands if "mask" in o.kinds}
    vectors = {o.name for o in (*row.results, *row.operands) if "vreg" in o.kinds}
    data = next(o.name for o in (*row.results, *row.operands) if "vreg" in o.kinds)
    wanted = dict.fromkeys(n for e in expressions.values() for n in names(e))
    fused = any(uses(e, "fma") for e in expressions.values())
    as_bits = not others and _is_bitwise(expressions[first], vectors)
    moved = form.moved if not others and set(form.moved) <= vectors else ()

    def operand(i: Instr, rules: Numbers, name: str, size: int) -> Any:  # a mask, or a scalar
        return active(i, name, size) if name in masks else rules.scalar(i.args[name])

    def execute(i: Instr) -> None:
        size = width(i, data)
        on = active(i, row.gate, size) if row.gate else None
        rules = Numbers(i, i.args[data].dtype)
        if as_bits or moved:
            read = bits if as_bits else raw
            found = {n: read(i, n) if n in vectors else active(i, n, size) for n in wanted}
            put_raw(i, first, form(i)(rules, found), on)
            return
        operands: dict[str, Any] = {}
        for name in wanted:
            operands[name] = numbers(i, name, fused) if name in vectors else operand(i, rules, name, size)
        if not others and first not in truths:
            put(i, first, form(i)(rules, operands), on)
            return
        for target, result in [(target, made(i)(rules, operands)) for target, made in forms]:
            if target in truths:
                put_mask(i, target, result if on is None else result & on, size)
            else:
                put(i, target, result, on)

    return execute


def _is_bitwise(expression: Expression, vectors: set[str]) -> bool:
    """Return whether an expression is a bitwise operation of two registers, which may also be floats."""
    return (
        isinstance(expression, Apply)
        and expression.operation in ("bit_and", "bit_or", "bit_xor")
        and set(names(expression)) <= vectors
    )


# -- other lanes -------------------------------------------------------------------------------------------


@expressed("vector", "part")
def build_part(row: Row) -> Execute:
    """Make the executor of a row that uses every other lane of narrower operands."""
    form = RowExpression(row.expr)
    source = next(iter(form.names))

    def execute(i: Instr) -> None:
        r = i.args["r"]
        on = active(i, row.gate, width(i, source))
        lanes = {name: numbers(i, name) for name in form.names}
        if r.lanes != on.size:
            odd = int(i.attr("part") == "ODD")
            on, lanes = on[odd::2], {name: found[odd::2] for name, found in lanes.items()}
        put(i, "r", form(i)(Numbers(i, r.dtype), lanes), on)

    return execute


@expressed("vector", "front")
def build_front(row: Row) -> Execute:
    """Make the executor of a row that stores narrower results in the front lanes of a register of zeros."""
    form = RowExpression(row.expr)
    source = next(iter(form.names))

    def execute(i: Instr) -> None:
        dtype, r = i.dtype(source), i.args["r"]
        on = active(i, row.gate, width(i, source))
        lanes = {name: numbers(i, name) for name in form.names}
        exact = i.round(form(i)(Numbers(i, dtype), lanes), dtype)
        codes = i.encoded(exact, r.dtype, "RINT", saturate=r.dtype[0] in "iu", nan="zero")
        found = np.zeros(r.lanes, codes.dtype)
        if full(on):
            found[: codes.size] = codes
        else:
            np.copyto(found[: codes.size], codes, where=on)
        put_raw(i, "r", found)

    return execute


# -- 32-bit differences with a flag per lane ---------------------------------------------------------------


@executor("difference with borrow")
def subtract_borrow(i: Instr) -> None:
    """Subtract; the flag of a lane means that it had no borrow (hw), or that it had one (doc)."""
    hw = i.core.semantics.vsubc_flag == "hw"
    left, right = _wide(i, "lhs"), _wide(i, "rhs")
    if i.has("borrow_in"):
        right = right + (active(i, "borrow_in", 4) != hw)
    on = active(i, "mask", 4)
    put_raw(i, "r", (left - right & 0xFFFFFFFF).astype(np.uint32), on)
    put_mask(i, "borrow", on & ((left >= right) == hw), 4)


def _wide(i: Instr, name: str) -> Array:
    return bits(i, name).astype(np.int64)
