"""Layout of every view of global memory, from its shape and strides: `layout` on `make_tensor_view`.

    %v = pto.make_tensor_view %p, shape = [%c64, %c16], strides = [%c1, %c64] : !pto.tensor_view<64x16xf32>
becomes
    %v = pto.make_tensor_view %p, shape = ..., strides = ... {layout = #pto.layout<dn>} : ...

The formula is `isa.view.strided`. If a view is the same bytes in ND and in DN, its tiles (loaded or stored)
decide. A load or store whose tile reads its window in another layout than the view gets its own `layout`. A
view with dynamic shape or strides has none, which means ND, unless its strides imply DN.
"""

from __future__ import annotations

from ..ir.attrs import EnumAttr
from ..ir.core import Operation, Value, constant_of
from ..ir.types import TileBufType, ViewType
from ..isa import view as views
from ..isa.record import Record
from ..isa.view import Extent, Strided
from .edit import operations
from .pipeline import PassContext


class LayoutAccess(Record):
    """A load or store: its tile and its window."""

    op: Operation
    tile: TileBufType
    window: ViewType


def run(ctx: PassContext) -> None:
    for func in ctx.module.functions:
        roots: dict[Value, Operation] = {}  # view -> its make_tensor_view
        accesses: dict[Operation, list[LayoutAccess]] = {}
        for op in operations(func.regions[0]):
            if op.name == "pto.make_tensor_view":
                roots[op.result] = op
                accesses[op] = []
            elif op.name == "pto.partition_view":
                root = roots.get(op.operands[0])
                if root is not None:
                    roots[op.result] = root
            elif op.name in _ACCESSES:
                tile, view = (op.get(name) for name in _ACCESSES[op.name])
                root = roots.get(view) if view is not None else None
                if root is not None and tile is not None and view is not None:
                    if isinstance(tile.type, TileBufType) and isinstance(view.type, ViewType):
                        accesses[root].append(LayoutAccess(op, tile.type, view.type))
        for op, users in accesses.items():
            _infer(ctx, op, users)


_ACCESSES = {"pto.tload": ("dst", "src"), "pto.tstore": ("src", "dst"), "pto.tstore_fp": ("src", "dst")}


def _infer(ctx: PassContext, op: Operation, users: list[LayoutAccess]) -> None:
    type = op.result.type
    assert isinstance(type, ViewType)
    shape = tuple(_extent(d, v) for d, v in zip(type.dims, op.group("shape"), strict=True))
    strides = tuple(_extent(None, v) for v in op.group("strides"))
    known = all(isinstance(n, int) for n in (*shape, *strides)) and 1 <= len(shape) <= 5
    # no cache for dynamic numbers: it would keep values of the program alive
    found = (views.strided if known else views.strided.__wrapped__)(shape, strides, type.bits or 8)
    given = op.attr("layout")
    if given is not None:
        if known:
            _compare(ctx, op, str(given).upper(), found)
        return
    if known:
        _write(op, users, shape, found)
    elif all(n == 1 for n in shape[:-2]) and _is_dn(found, strides, users):
        _set(op, "DN")


def _extent(declared: int | None, value: Value) -> Extent:
    """Return a number if it is known, else its value."""
    if declared is not None:
        return declared
    found = constant_of(value)
    return found if isinstance(found, int) else value


def _compare(ctx: PassContext, op: Operation, given: str, found: Strided) -> None:
    """Check the author's layout against the strides."""
    if given in ("ND", "DN", "NZ") and given != found.layout and given not in found.fits:
        wanted = found.layout.lower()
        ctx.report(
            op,
            "PTO-E0502",
            f"layout mismatch: user-specified layout={given.lower()} but inferred={wanted}",
            at="layout",
            expected=f"layout = #pto.layout<{wanted}>",
            got=f"layout = #pto.layout<{given.lower()}>",
            help="correct the strides, or leave the layout out",
        )


def _write(op: Operation, users: list[LayoutAccess], shape: tuple[Extent, ...], found: Strided) -> None:
    """Set a layout on the view, and on accesses with another one."""
    layout = found.layout
    seen = [_seen(access, found) for access in users]
    if all(_is_matrix(access) for access in users):
        wanted = _wanted(users)
        prefers = wanted in found.fits and wanted != layout != "NZ"
        if wanted is not None and prefers:
            line = found.either and shape[-1] == 1
            layout = wanted if line or not _loadable(layout, users) else layout
    elif None in seen:
        return  # dynamic windows: their shapes decide at run time
    else:
        said = set(seen)
        layout = str(seen[0]) if len(said) == 1 else layout
        for access, own in zip(users, seen, strict=True):
            if own != layout and "layout" not in access.op.attrs:
                _set(access.op, str(own))
    _set(op, layout)


def _is_matrix(access: LayoutAccess) -> bool:
    """Return True if a window has only two dimensions, so that ND and DN place its elements equally."""
    return all(d == 1 for d in access.window.dims[:-2])


def _seen(access: LayoutAccess, found: Strided) -> str | None:
    """Return the layout of an access; None if it depends on run-time values."""
    dims, tile = access.window.dims, access.tile
    if _is_matrix(access):
        return found.layout
    if None in dims or len(dims) > 5 or tile.valid is None:
        return found.layout if tile.layout == "ND" and found.layout != "NZ" else None
    five = [1] * (5 - len(dims)) + [d or 0 for d in dims]
    scales = str(access.window.dtype) == "f8e8m0" and tile.loc == "mat"
    return views.window_layout(found, five, access.window.bits or 8, tile.layout, tile.valid, scales)


def _wanted(users: list[LayoutAccess]) -> str | None:
    """Return the common layout of the vector tiles of a view, if there is one."""
    wanted = {access.tile.layout for access in users if access.tile.loc == "vec"}
    return next(iter(wanted)) if len(wanted) == 1 and wanted <= {"ND", "DN"} else None


def _loadable(layout: str, users: list[LayoutAccess]) -> bool:
    """Return True if vector tiles can be loaded from a layout. A single row or column can be loaded from both
    layouts.
    """
    return all(
        access.tile.loc != "vec"
        or access.tile.layout == layout
        or 1 in (access.tile.v_row, access.tile.v_col)
        for access in users
    )


def _is_dn(found: Strided, strides: tuple[Extent, ...], users: list[LayoutAccess]) -> bool:
    """Return True if a view of dynamic extents is DN: by its strides, or by its tiles if the strides fit both
    layouts.
    """
    if found.layout == "DN" and not found.either:
        return True
    open_strides = len(strides) > 1 and strides[-1] != 1 and not isinstance(strides[-2], int)
    return _wanted(users) == "DN" and (found.either or open_strides or strides[-2:-1] == (1,))


def _set(op: Operation, layout: str) -> None:
    op.set_attr("layout", EnumAttr("layout", layout.lower()))
