"""Result types that the text leaves out, by the name in `Row.infer`."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.attrs import ArrayAttr, DenseArrayAttr
from ..ir.core import constant_of
from ..ir.types import ERROR, MemRefType, TileBufType, Type, ViewType
from .statement import Statement


def _subset(st: Statement) -> Type:
    """Infer `pto.subset`: the sizes as shape; location, layout and clipped valid region of the parent."""
    source = st.values["source"][0][0].type
    sizes = _sizes(st)
    offsets = [constant_of(v) for v, _ in st.values.get("offsets", ())]
    if not isinstance(source, TileBufType) or sizes is None or len(offsets) != 2:
        return ERROR
    valid: list[int | None] = []
    for size, parent, offset in zip(sizes, (source.v_row, source.v_col), offsets, strict=True):
        if parent is None or not isinstance(offset, int):
            valid.append(None)
        else:
            valid.append(min(size, parent - offset % parent) if parent else 0)
    return _window_of(source, sizes, (valid[0], valid[1]))


def _subview(st: Statement) -> Type:
    """Infer `pto.subview` without a written type: the whole window is valid without a `valid [..]`."""
    source = st.values["source"][0][0].type
    sizes = _sizes(st)
    if not isinstance(source, TileBufType) or sizes is None:
        return ERROR
    valid: list[int | None] = []
    for name, size in zip(("valid_row", "valid_col"), sizes, strict=True):
        given = st.values.get(name)
        number = constant_of(given[0][0]) if given else size
        valid.append(number if isinstance(number, int) else None)
    return _window_of(source, sizes, (valid[0], valid[1]))


def _sizes(st: Statement) -> tuple[int, int] | None:
    sizes = st.attrs.get("sizes")
    if not isinstance(sizes, ArrayAttr | DenseArrayAttr) or len(sizes.value) != 2:
        return None
    return int(sizes.value[0]), int(sizes.value[1])


def _window_of(source: TileBufType, sizes: tuple[int, int], valid: tuple[int | None, int | None]) -> Type:
    return TileBufType(
        source.elem,
        source.loc,
        *sizes,
        *valid,
        source.blayout,
        source.slayout,
        source.fractal,
        source.pad,
        source.compact,
    )


def _partition_view(st: Statement) -> Type:
    """Infer `pto.partition_view` without a written type: constant sizes are static."""
    source = st.values["source"][0][0].type
    if not isinstance(source, ViewType | MemRefType):
        return ERROR
    numbers = [constant_of(v) for v, _ in st.values.get("sizes", ())]
    return ViewType(source.elem, tuple(n if isinstance(n, int) else None for n in numbers))


#: Result types that rows leave to inference, by the name in `Row.infer`.
INFERENCE: dict[str, Callable[[Statement], Type]] = {
    "subset": _subset,
    "subview": _subview,
    "partition_view": _partition_view,
}
