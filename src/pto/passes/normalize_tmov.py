"""On A5, replace moves between column-major vector tiles by moves between row-major ones.

    pto.tmov ins(%a : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>) outs(%b : ...)
becomes
    %ar = pto.treshape %a : ... -> !pto.tile_buf<vec, 1x16xf32>
    %br = pto.treshape %b : ... -> !pto.tile_buf<vec, 1x16xf32>
    pto.tmov ins(%ar : !pto.tile_buf<vec, 1x16xf32>) outs(%br : !pto.tile_buf<vec, 1x16xf32>)

A column-major matrix has the same bytes as its row-major transpose, so the pass exchanges rows and columns,
also of the valid region. If the type has a dynamic valid region, that of the tile's allocation applies.
"""

from __future__ import annotations

from ..ir.core import Operation, Value
from ..ir.types import INDEX, TileBufType
from .edit import constant, make, operations, rewrite
from .pipeline import PassContext


def run(ctx: PassContext) -> None:
    if ctx.profile.isa != "a5":
        return

    resized: set[Value] = set()

    def visit(op: Operation) -> list[Operation] | None:
        if op.name != "pto.tmov":
            return None
        src, dst = op.get("src"), op.get("dst")
        if src is None or dst is None or not (_columns(src) and _columns(dst)):
            return None
        return _by_rows(ctx, op, (src, dst), resized)

    for func in ctx.module.functions:
        region = func.regions[0]
        resized.update(op.operands[0] for op in operations(region) if op.name == "pto.set_validshape")
        rewrite(region, visit)


_CANNOT = "cannot normalize A5 vec->vec col_major TMOV"


def _columns(tile: Value) -> bool:
    t = tile.type
    return isinstance(t, TileBufType) and t.loc == "vec" and t.layout == "DN"


def _dense(tile: Value) -> bool:
    """Return True if columns are contiguous, as in every tile except a window of fewer rows."""
    made = tile.op
    while made is not None and made.row is not None and made.row.window:
        source = made.operands[0]
        if getattr(source.type, "rows", None) != getattr(made.result.type, "rows", None):
            return False
        made = source.op
    return True


def _valid(tile: Value, resized: set[Value]) -> tuple[Value | int, Value | int] | None:
    """Return rows and columns of the valid region: numbers of the type, or operands of the allocation."""
    type, made = tile.type, tile.op
    assert isinstance(type, TileBufType)
    if type.valid is not None:
        return type.valid
    if made is None or tile in resized:
        return None
    if made.name in ("pto.treshape", "pto.bitcast"):
        source = made.operands[0]
        same = isinstance(source.type, TileBufType) and source.type.shape == type.shape
        return _valid(source, resized) if same else None
    if made.name != "pto.alloc_tile":
        return None
    rows = type.v_row if type.v_row is not None else made.get("valid_row")
    cols = type.v_col if type.v_col is not None else made.get("valid_col")
    return None if rows is None or cols is None else (rows, cols)


def _by_rows(
    ctx: PassContext, op: Operation, tiles: tuple[Value, Value], resized: set[Value]
) -> list[Operation] | None:
    made: list[Operation] = []
    new: dict[Value, Value] = {}
    for tile in dict.fromkeys(tiles):
        valid = _valid(tile, resized)
        if valid is None:
            ctx.report(
                op,
                "PTO-E0501",
                f"{_CANNOT}: requires static 2D tile_buf shape/valid_shape for treshape reinterpret",
                at=tile,
                expected="a static valid region, or a valid region that only the allocation sets",
                got=str(tile.type),
                help="use row-major tiles, or write the valid extents in the type",
            )
            return None
        if not _dense(tile):
            ctx.report(
                op,
                "PTO-E0501",
                f"{_CANNOT}: the columns of a window of a tile are not contiguous",
                at=tile,
                help="use row-major tiles, or a window of whole columns",
            )
            return None
        new[tile] = _turned(op, tile, valid, made)
    moved = Operation(op.name, op.row, [new.get(v, v) for v in op.operands], (), dict(op.attrs), op.segments,
                      op.loc)  # fmt: skip
    return [*made, moved]


def _turned(
    op: Operation, tile: Value, valid: tuple[Value | int, Value | int], made: list[Operation]
) -> Value:
    """Return the tile with rows and columns exchanged; add the needed operations to `made`."""
    t = tile.type
    assert isinstance(t, TileBufType)
    rows, cols = (None, None) if t.valid is None else t.valid
    turned = t.replace(rows=t.cols, cols=t.rows, v_row=cols, v_col=rows, blayout="row_major")
    reshaped = make("pto.treshape", op, (turned,), src=tile)
    reshaped.result.name = f"{tile.name}_rows" if tile.name else ""
    made.append(reshaped)
    if t.valid is None:
        extents: list[Value] = []
        for n in reversed(valid):
            if isinstance(n, int):
                made.append(constant(n, INDEX, op))
                n = made[-1].result
            extents.append(n)
        made.append(
            make("pto.set_validshape", op, source=reshaped.result, valid_row=extents[0], valid_col=extents[1])
        )
    return reshaped.result
