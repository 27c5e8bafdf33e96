"""Matrix products, and moves between the memories of the cube and the others, as instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.core import Value as PtoValue
from ...ir.types import TileBufType
from ...isa import row as find_row
from ..ir import Dim, Op, Value, index
from ..problems import UNSUPPORTED, fail
from .operators import OperatorEmitter
from .types import tile_type


def _rows(e: OperatorEmitter, op: Op) -> dict[str, PtoValue]:
    """Return the two operands of a product; the number of terms is the number of columns of the left
    operand."""
    lhs, rhs = op.args["lhs"], op.args["rhs"]
    right, terms = e.values[rhs], e.valid(lhs.type)[1]
    rows, cols = e.valid(rhs.type)
    if not index.same(rows, terms):
        t: Any = right.type
        right = e.seen(right, t.rows, t.cols, (terms, cols))
    return {"lhs": e.values[lhs], "rhs": right}


def matmul(e: OperatorEmitter, op: Op) -> None:
    name = "pto.tmatmul" if op.name == "matmul" else "pto.tgemv"
    e.build.op(name, (), None, **_rows(e, op), dst=e.result(op.result))


def matmul_bias(e: OperatorEmitter, op: Op) -> None:
    name = "pto.tmatmul.bias" if op.name == "matmul_bias" else "pto.tgemv.bias"
    operands = _rows(e, op)
    e.build.op(
        name, a=operands["lhs"], b=operands["rhs"], bias=e.values[op.args["bias"]], dst=e.result(op.result)
    )


def matmul_acc(e: OperatorEmitter, op: Op) -> None:
    """Accumulate in place, because hardware has no other form."""
    acc = e.values[op.args["acc"]]
    target = e.targets.pop(op.result, None)
    if target is not None and target is not acc:
        fail(
            UNSUPPORTED,
            "cannot accumulate in place: the accumulator is used again after this product",
            op.loc,
        )
    e.values[op.result] = acc
    name = "pto.tmatmul" if op.name == "matmul_acc" else "pto.tgemv"
    if op.args.get("init_cond"):
        e.build.op(name, (), None, **_rows(e, op), dst=acc)
    else:
        e.build.op(f"{name}.acc", (), None, acc_in=acc, **_rows(e, op), dst=acc)


def matmul_mx(e: OperatorEmitter, op: Op) -> None:
    a = op.args
    operands = {o: e.values[a[n]] for n, o in _OF_MX.items() if n in a}
    if op.name == "matmul_mx_acc":
        e.values[op.result] = operands["c_in"]
        e.targets.pop(op.result, None)
    dst = operands["c_in"] if op.name == "matmul_mx_acc" else e.result(op.result)
    e.build.op(f"pto.t{op.name.replace('_', '.')}", (), None, **operands, dst=dst)


_OF_MX = {
    "acc": "c_in",
    "lhs": "a",
    "lhs_scale": "a_scale",
    "rhs": "b",
    "rhs_scale": "b_scale",
    "bias": "bias",
}


def move(e: OperatorEmitter, op: Op) -> None:
    """Copy a tile to another memory. From Mat, copy a part with the shape of the destination."""
    source, target = e.values[op.args["tile"]], e.result(op.result)
    assert isinstance(source.type, TileBufType) and isinstance(target.type, TileBufType)
    whole = (source.type.rows, source.type.cols) == (target.type.rows, target.type.cols)
    if whole or target.type.loc not in ("left", "right"):
        e.build.op("pto.tmov", src=source, dst=target)
    else:
        _extract(e, source, 0, 0, target)


def extract(e: OperatorEmitter, op: Op) -> None:
    a = op.args
    _extract(e, e.values[a["x"]], a["index_row"], a["index_col"], e.result(op.result))


def _extract(e: OperatorEmitter, source: PtoValue, row: Dim, col: Dim, target: PtoValue) -> None:
    e.build.op("pto.textract", src=source, indexRow=e.index(row), indexCol=e.index(col), dst=target)


def transpose_view(e: OperatorEmitter, op: Op) -> None:
    """View a tile in Mat transposed, without a copy: rows of boxes are columns of transposed boxes."""
    source = e.values[op.args["x"]]
    made = tile_type(op.result.type, e.profile)
    operands: dict[str, Any] = {}
    value = e.build.op("pto.treshape", [made], src=source, **operands).result
    value.name = op.result.name
    e.values[op.result] = value


def assemble(e: OperatorEmitter, op: Op) -> None:
    """Write a part of a tile: by an insertion if these memories have one, else by a copy into a view."""
    source, target = op.args["source"], op.args["target"]
    row, col = e.flat(target, op.args["offset"])
    spaces = (source.type.space, target.type.space)
    if spaces == ("vec", "vec") and not _is_inserted(e, source):
        window = e.window_of(target, source.type, [row, col])
        t: Any = window.type
        part = e.seen_as(e.values[source], source.type, t.rows, t.cols, e.valid(source.type), False)
        e.build.op("pto.tmov", src=part, dst=window)
        return
    e.build.op(
        "pto.tinsert",
        src=e.values[source],
        indexRow=e._index(row),
        indexCol=e._index(col),
        dst=e.values[target],
    )


def _is_inserted(e: OperatorEmitter, source: Value) -> bool:
    """Return True if an insertion can write a part of a tile in Vec."""
    row = find_row("pto.tinsert")
    assert row is not None
    return e.profile.isa != "a2a3" and source.type.dtype.isa in row.dtypes[e.profile.isa]


EMITTERS: dict[str, Callable[[OperatorEmitter, Op], None]] = {
    "matmul": matmul, "gemv": matmul, "matmul_bias": matmul_bias, "gemv_bias": matmul_bias, "move": move,
    "matmul_acc": matmul_acc, "gemv_acc": matmul_acc, "tile.extract": extract, "assemble": assemble,
    "tile.transpose_view": transpose_view,
    "matmul_mx": matmul_mx, "matmul_mx_acc": matmul_mx, "matmul_mx_bias": matmul_mx,
}  # fmt: skip
