"""Operators that select elements by index or by pattern: gather, scatter, sort, and rows of memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..dtypes import INT32, DataType
from ..enums import MaskPattern, MemorySpace
from ..ir import Dim, Dims, Number, ShapedType, TileType, Value, is_scalar, is_shaped
from ..ir import index as extents
from ..ir.build import Build
from ..problems import ARGUMENTS, SHAPE, TYPE
from .blocks import loop
from .core import FUNCTIONS, OPERATORS, Array, Extents, Tensor, Tile, operator
from .memory import in_core, shaped_value, tensor_value
from .rows import array_type, comparison, result_type

#: Patterns: the group size, and the column of each group that is kept.
_KEEPS = {
    "P0101": (2, 0),
    "P1010": (2, 1),
    "P0001": (4, 0),
    "P0010": (4, 1),
    "P0100": (4, 2),
    "P1000": (4, 3),
    "P1111": (1, 0),
}


def pattern(b: Build, given: object, at: str = "mask_pattern") -> MaskPattern:
    """Return a pattern of columns from the pattern or its number."""
    try:
        return MaskPattern(given)
    except ValueError:
        b.fail(ARGUMENTS, f"unknown pattern {given!r}", at, expected="pl.tile.MaskPattern.P0101 and its like")


def kept(mask: MaskPattern, cols: int) -> int:
    """Return the number of columns that a pattern keeps of the first `cols`."""
    of, first = _KEEPS[mask.name]
    return max(0, -(-(cols - first) // of))


def _last_axis(b: Build, dim: Value | int | None, rank: int) -> None:
    if dim not in (-1, rank - 1):
        b.fail(
            ARGUMENTS,
            f"unsupported dim {dim!r}: elements are picked along rows",
            "dim",
            expected="-1",
            got=dim,
        )


def _indices(b: Build, value: object, at: str) -> Value:
    indices = shaped_value(b, value, at)
    t = indices.type
    if not t.dtype.is_int or t.dtype.bits not in (16, 32):
        b.fail(TYPE, f"expected indices for '{at}'", at, expected="INT32 or INT16", got=t.dtype.name)
    return indices


# ---- gather ----


@operator
def gather(
    b: Build,
    x: Array,
    dim: int | None = None,
    index: Array | None = None,
    *,
    mask_pattern: MaskPattern | int | None = None,
    output_dtype: DataType | None = None,
    kvalue: Number | None = None,
    cmp_mode: int | str | None = None,
    out_cols: int | None = None,
    offset: int = 0,
    count_dtype: DataType | None = None,
) -> Array | tuple[Array, ...]:
    """Gather elements along `dim` (default: each row): at the indices of `index`, or in the columns of a
    pattern. With `kvalue`, return the indices and the count of the elements that satisfy `cmp_mode`."""
    t = shaped_value(b, x, "x").type
    ways = {"index": index, "mask_pattern": mask_pattern, "kvalue": kvalue}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        b.fail(ARGUMENTS, f"cannot gather by both '{given[0]}' and '{given[1]}'", given[1],
               expected="one of index=, mask_pattern= and kvalue=")  # fmt: skip
    if mask_pattern is not None:
        return gather_mask.function(b, x, mask_pattern, output_dtype=output_dtype)
    if kvalue is not None:
        if out_cols is None:
            b.fail(ARGUMENTS, "missing 'out_cols', the number of indices per row", "out_cols")
        return gather_compare.function(
            b,
            x,
            kvalue,
            None,
            cmp_mode=cmp_mode or 0,
            offset=offset,
            out_cols=out_cols,
            count_dtype=count_dtype,
        )
    if index is None:
        b.fail(ARGUMENTS, "missing selection of gather", expected="index=, mask_pattern= or kvalue=")
    if is_shaped(dim):  # tile.gather(src, indices, tmp)
        return tile_gather.function(b, x, dim, index)
    i = _indices(b, index, "index").type
    axis = _axis(b, -1 if dim is None else dim, t.rank)
    fewer = [extents.known_difference(m, n) for m, n in zip(i.shape, t.shape, strict=False)]
    fewer[axis : axis + 1] = [0]
    if i.rank != t.rank or any(d is None or d > 0 for d in fewer):
        b.fail(SHAPE, "rows of 'index' do not match those of 'x'", "index", got=i,
               expected=f"{_but_one(t.shape, axis)}, or fewer")  # fmt: skip
    if axis != t.rank - 1:
        return _gather_along(b, x, axis, index)
    if any(fewer):
        x = OPERATORS["slice"].function(b, x, [*i.shape[:-1], t.shape[-1]], [0] * t.rank)
    tile = any(isinstance(v, TileType) for v in (t, i))
    return b.op("gather", [array_type(t.dtype, i.shape, i.valid, tile)], x=x, dim=-1, index=index)


def _axis(b: Build, dim: int | None, rank: int) -> int:
    if not isinstance(dim, int) or not -rank <= dim < rank:
        b.fail(ARGUMENTS, f"unknown dimension {dim!r}", "dim", expected=f"{-rank} to {rank - 1}")
    return dim % rank


def _but_one(shape: Sequence[Dim], axis: int) -> str:
    dims = (str(extents.known(n) or "?") for n in shape)
    return "[" + ", ".join("any" if d == axis else n for d, n in enumerate(dims)) + "]"


def _gather_along(b: Build, x: Value, axis: int, index: Value) -> Value:
    """Compute `out[.., k, .., c] = x[.., index[.., k, .., c], .., c]`, for each plane of `axis` and the last
    dimension, by row-major element number."""
    o, i = FUNCTIONS, index.type
    shape, whole = b.static(list(i.shape), "index"), b.static(list(x.type.shape), "x")
    tile = any(isinstance(v.type, TileType) for v in (x, index))
    made = o["create_tile" if tile else "create_tensor"](b, shape, x.type.dtype)
    count, cols = shape[axis], shape[-1]
    line = 256 // x.type.dtype.bits
    wide = -(-cols // line) * line  # rows of a tile are whole blocks, and element numbers count the padding
    columns = o["arange"](b, 0, [1, cols], i.dtype) if cols > 1 else None
    others = [range(1 if d in (axis, len(shape) - 1) else n) for d, n in enumerate(shape)]
    for at in itertools.product(*others):
        page = [n if d in (axis, len(shape) - 1) else 1 for d, n in enumerate(shape)]
        source = [whole[axis] if d == axis else n for d, n in enumerate(page)]
        plane = o["reshape"](b, o["slice"](b, x, source, list(at)), [whole[axis], cols])
        if wide != cols:
            plane = o["fillpad_expand"](b, plane, [whole[axis], wide])
        rows = o["reshape"](b, o["slice"](b, index, page, list(at)), [count, cols])
        numbers = o["mul"](b, rows, wide)
        if columns is not None:
            numbers = o["add"](b, numbers, o["col_expand"](b, numbers, columns))
        found = b.op("tile.gather", [result_type(rows.type, x.type.dtype)], src=plane, indices=numbers)
        o["assemble"](b, made, o["reshape"](b, found, page), list(at))
    return made


@operator(name="gather", level="tile")
def tile_gather(b: Build, src: Array, indices: Array, tmp: Array | None = None) -> Tile:
    """Gather elements of a tile by row-major element number."""
    t, i = shaped_value(b, src, "src").type, _indices(b, indices, "indices").type
    return b.op("tile.gather", [result_type(i, t.dtype)], src=src, indices=indices)


@operator(level="tile")
def gather_mask(
    b: Build, src: Array, mask_pattern: MaskPattern | int, *, output_dtype: DataType | None = None
) -> Tile:
    """Gather the columns of a pattern, packed; `output_dtype` reinterprets their bits."""
    t: ShapedType = shaped_value(b, src, "src").type
    mask = pattern(b, mask_pattern)
    dtype = output_dtype or t.dtype
    if dtype.bits != t.dtype.bits:
        b.fail(
            TYPE,
            f"cannot read {t.dtype.name} as {dtype.name}",
            "output_dtype",
            expected=f"{t.dtype.bits} bits",
            got=dtype.bits,
        )
    cols = extents.known(t.shape[-1])
    if cols is None:
        b.fail(SHAPE, "expected a constant number of columns for a pattern", "src", got=t)
    of, first = _KEEPS[mask.name]
    v_col = b.scalar("floordiv", b.scalar("add", t.extent[-1], of - 1 - first), of)
    valid = None if t.valid is None else (*t.valid[:-1], v_col)
    made = array_type(dtype, (*t.shape[:-1], kept(mask, cols)), valid, isinstance(t, TileType))
    return b.op("tile.gather_mask", [made], src=src, mask_pattern=mask, output_dtype=dtype)


@operator(level="tile")
def gather_compare(
    b: Build,
    src: Array,
    kvalue: Number,
    tmp: Array | None = None,
    *,
    cmp_mode: int | str = 0,
    offset: int = 0,
    out_cols: int = 0,
    count_dtype: DataType | None = None,
) -> tuple[Value, ...]:
    """Return indices and counts of the elements of each row that equal (or, by `cmp_mode`, exceed)
    `kvalue`."""
    t = shaped_value(b, src, "src").type
    mode = comparison(b, cmp_mode, "cmp_mode")
    if mode not in (0, 4) and not b.exact:
        b.fail(ARGUMENTS, "unsupported comparison of gather", "cmp_mode", expected="eq or gt", got=cmp_mode)
    if not is_scalar(kvalue):
        b.fail(TYPE, "expected a number for 'kvalue'", "kvalue", got=getattr(kvalue, "type", repr(kvalue)))
    if isinstance(kvalue, Value) and kvalue.type.dtype.is_float and kvalue.type.dtype != t.dtype:
        b.fail(TYPE, f"expected {t.dtype.name} for 'kvalue', the element type", "kvalue",
               got=kvalue.type, help=f"pl.cast(kvalue, pl.{t.dtype.name})")  # fmt: skip
    if t.rank != 2:
        b.fail(SHAPE, "expected two dimensions", "src", got=t)
    tile = isinstance(t, TileType)
    dtype = count_dtype or INT32
    found = array_type(
        dtype, (t.shape[0], out_cols), None if t.valid is None else (t.valid[0], out_cols), tile
    )
    counts = array_type(dtype, (1, t.shape[0]), None if t.valid is None else (1, t.valid[0]), tile)
    args = {
        "src": src,
        "kvalue": kvalue,
        "cmp_mode": mode,
        "offset": offset,
        "out_cols": out_cols,
        "count_dtype": dtype,
    }
    return tuple(b.append("tile.gather_compare", [found, counts], args).results)


# ---- scatter ----


@operator
def scatter(
    b: Build,
    x: Array,
    dim: Array | int | None = None,
    index: Array | None = None,
    src: Array | None = None,
    *,
    mask_pattern: MaskPattern | int | None = None,
    dst: Array | None = None,
) -> Array:
    """Return `x` with the elements of `src` at the indices of each row; or `dst` with `x` in the columns of a
    pattern."""
    if mask_pattern is not None:
        return scatter_mask.function(b, dst, x, mask_pattern)
    if is_shaped(dim) and is_shaped(index) and src is None:  # tile.scatter(dst, src, indexes)
        return tile_scatter.function(b, x, dim, index)
    t = shaped_value(b, x, "x").type
    _last_axis(b, -1 if dim is None else dim, t.rank)
    i, s = _indices(b, index, "index").type, shaped_value(b, src, "src").type
    if not extents.same_dims(i.shape, s.shape) or s.dtype != t.dtype:
        b.fail(
            SHAPE,
            "expected an element of 'src' for each index",
            "src",
            expected=f"{t.dtype.name} {list(i.shape)}",
            got=s,
        )
    return b.op("scatter", [result_type(t)], x=x, dim=-1, index=index, src=src)


@operator(name="scatter", level="tile")
def tile_scatter(b: Build, dst: Array, src: Array, indexes: Array) -> Tile:
    """Return `dst` with the elements of `src` at the row-major element numbers in `indexes`."""
    t, s, i = (shaped_value(b, v, n).type for v, n in ((dst, "dst"), (src, "src"), (indexes, "indexes")))
    if not extents.same_dims(i.shape, s.shape) or s.dtype != t.dtype:
        b.fail(
            SHAPE,
            "expected an element of 'src' for each index",
            "src",
            expected=f"{t.dtype.name} {list(i.shape)}",
            got=s,
        )
    return b.op("tile.scatter", [result_type(t)], dst=dst, src=src, indexes=indexes)


@operator(level="tile")
def scatter_mask(b: Build, dst: Array, src: Array, mask_pattern: MaskPattern | int) -> Tile:
    """Return `dst` with the columns of `src` in the columns of a pattern."""
    t, s = shaped_value(b, dst, "dst").type, shaped_value(b, src, "src").type
    mask = pattern(b, mask_pattern)
    cols = extents.known(t.shape[-1])
    if cols is None or extents.known(s.shape[-1]) != kept(mask, cols) or s.dtype != t.dtype:
        b.fail(SHAPE, "expected a column of 'src' for each column of the pattern", "src",
               expected=f"{t.dtype.name}, {kept(mask, cols or 0)} columns", got=s)  # fmt: skip
    return b.op("tile.scatter_mask", [result_type(t)], dst=dst, src=src, mask_pattern=mask)


@operator
def scatter_update(b: Build, x: Array, *args: object, **kwargs: object) -> Array:
    """Return `x` with its row `index[k]` replaced by row k of `src`. Arguments are (x, dim, index, src), or
    (x, index, src, dim=).
    """
    given = dict(kwargs)
    rest = list(args)
    if rest and not is_shaped(rest[0]):
        given["dim"] = rest.pop(0)
    for name in ("index", "src"):
        if rest and name not in given:
            given[name] = rest.pop(0)
    rows, src = given.get("index"), given.get("src")
    if given.get("dim", -2) != -2 or rest:
        b.fail(
            ARGUMENTS,
            "unsupported dim: only rows can be replaced (dim=-2)",
            expected="scatter_update(x, -2, index, src)",
        )
    t, i, s = (shaped_value(b, v, n).type for v, n in ((x, "x"), (rows, "index"), (src, "src")))
    o = FUNCTIONS
    number = _known(b, i, "index")
    width = t.shape[-1]
    flat = o["reshape"](b, src, [number, width]) if s.rank != 2 else src
    whole = o["reshape"](b, x, [_known(b, t, "x") // width, width]) if t.rank != 2 else x
    places = o["reshape"](b, rows, [1, number]) if not (i.rank == 2 and i.shape[0] == 1) else rows

    def step(k: Dim) -> None:
        at = b.as_index(o["read"](b, places, [0, k]))
        o["assemble"](b, whole, o["slice"](b, flat, [1, width], [k, 0]), [at, 0])

    loop(b, number, step)
    return x


def _known(b: Build, t: ShapedType, at: str) -> int:
    total = 1
    for d in t.shape:
        n = extents.known(d)
        if n is None:
            b.fail(SHAPE, f"expected constant extents for '{at}'", at, got=t)
        total *= n
    return total


# ---- rows of memory ----


@operator(level="tile")
def mgather(
    b: Build, mem: Array, idx: Array, coalesce: object = "row", *, gather_oob: object = "undefined",
    target_memory: MemorySpace = MemorySpace.Vec, scratch: object = None, valid_shape: Extents | None = None,
) -> Tile:  # fmt: skip
    """Gather rows, or elements, of a tensor by index. For a gather into Mat, `idx` is a tensor, and
    single elements need a tensor `scratch` with room for all."""
    in_core(b)
    t, i = tensor_value(b, mem, "mem").type, _indices(b, idx, "idx").type
    how = _word(b, coalesce, ("row", "elem"), "coalesce")
    beyond = _word(b, gather_oob, ("undefined", "clamp", "wrap", "zero"), "gather_oob")
    shape = i.shape if how == "elem" else (_known(b, i, "idx"), t.shape[-1])
    valid: Dims | None = i.valid
    if valid is not None and how == "row":
        valid = (b.scalar("mul", *valid) if i.rank == 2 else valid[0], t.shape[-1])
    if target_memory is MemorySpace.Mat:
        tensor_value(b, idx, "idx")
        if how == "elem":
            tensor_value(b, scratch, "scratch")
    if valid_shape is not None:
        valid = tuple(b.as_index(d) for d in b.dims(valid_shape, "valid_shape", len(shape)))
    made = TileType(t.dtype, tuple(b.static(list(shape), "mem")), valid, target_memory.isa)
    return b.op(
        "tile.mgather",
        [made],
        mem=mem,
        idx=idx,
        coalesce=how,
        gather_oob=beyond,
        target_memory=target_memory,
        valid_shape=None if valid is None else list(valid),
        **({"scratch": scratch} if scratch is not None else {}),
    )


def _word(b: Build, given: object, words: tuple[str, ...], at: str) -> str:
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(words):
        return words[given]
    if not isinstance(given, str) or given not in words:
        b.fail(ARGUMENTS, f"unknown value {given!r} of '{at}'", at, expected=", ".join(words))
    return given


@operator
def mscatter(b: Build, src: Array, idx: Array, output_tensor: Array) -> Tensor:
    """Write elements of a tile to a tensor, at the element numbers in `idx`; return the tensor."""
    in_core(b)
    t, s = tensor_value(b, output_tensor, "output_tensor").type, shaped_value(b, src, "src").type
    i = _indices(b, idx, "idx").type
    if s.dtype != t.dtype or not extents.same_dims(i.shape, s.shape):
        b.fail(
            SHAPE,
            "expected an element of 'src' for each index",
            "src",
            expected=f"{t.dtype.name} {list(i.shape)}",
            got=s,
        )
    b.append("mscatter", [], {"src": src, "idx": idx, "output_tensor": output_tensor})
    return output_tensor


@operator
def create_l1(b: Build, shape: Extents, dtype: DataType, transpose: bool = False) -> Tile:
    """Create a tile in Mat without contents, to gather rows into."""
    return OPERATORS["create_tile"].function(b, shape, dtype, MemorySpace.Mat, transpose)


@operator
def gather_row(
    b: Build, dst: Array, src: Array, dst_offset: Extents, src_offset: Extents, shapes: Extents,
    transpose: bool = False, *, valid_shape: Extents | None = None,
) -> Tile:  # fmt: skip
    """Copy a window of a tensor into a tile at an offset; return the tile."""
    in_core(b)
    d, t = shaped_value(b, dst, "dst").type, tensor_value(b, src, "src").type
    at = [b.as_index(o) for o in b.dims(dst_offset, "dst_offset", d.rank)]
    start = [b.as_index(o) for o in b.dims(src_offset, "src_offset", t.rank)]
    sizes = b.static(shapes, "shapes")
    valid = (
        None
        if valid_shape is None
        else [b.as_index(o) for o in b.dims(valid_shape, "valid_shape", len(sizes))]
    )
    if len(sizes) != t.rank or d.dtype != t.dtype:
        b.fail(
            SHAPE,
            "shape does not match the tensor",
            "shapes",
            expected=f"{t.dtype.name}, {t.rank} extents",
            got=sizes,
        )
    b.append(
        "gather_row",
        [],
        {
            "dst": dst,
            "src": src,
            "dst_offset": at,
            "src_offset": start,
            "shapes": sizes,
            "transpose": transpose,
            "valid_shape": valid,
        },
    )
    return dst


@operator
def paged_gather(
    b: Build, src: Array, indices: Array, block_table: Array, block_size: int, size: int, max_indices: int, *,
    space: MemorySpace = MemorySpace.Mat, col_off: int = 0, is_trans: bool = False, is_b_matrix: bool = False,
) -> Array:  # fmt: skip
    """Gather rows of a paged tensor: row i is `src[block_table[indices[i] // block_size] * block_size +
    indices[i] % block_size]`, `size` columns of it from `col_off` on."""
    in_core(b)
    t = tensor_value(b, src, "src").type
    i = shaped_value(b, indices, "indices").type
    o = FUNCTIONS
    made = o["create_tile"](
        b, [size, max_indices] if is_trans else [max_indices, size], t.dtype, space, is_trans or None
    )
    rank = i.rank

    def step(k: Dim) -> None:
        n = b.as_index(o["read"](b, indices, [*[0] * (rank - 1), k]))
        page = b.as_index(
            o["read"](
                b, block_table, [*[0] * (block_table.type.rank - 1), b.scalar("floordiv", n, block_size)]
            )
        )
        row = b.scalar("add", b.scalar("mul", page, block_size), b.scalar("mod", n, block_size))
        at = [0, k] if is_trans else [k, 0]
        gather_row.function(
            b, made, src, at, [*[0] * (t.rank - 2), row, col_off], [*[1] * (t.rank - 1), size], is_trans
        )

    loop(b, max_indices, step)
    return made


# ---- sorting ----


@operator
def mrgsort(
    b: Build,
    src0: Array,
    src1: object = None,
    src2: object = None,
    src3: object = None,
    tmp: Array | None = None,
    exhausted: bool = False,
    *,
    block_len: int | None = None,
) -> Array:
    """Merge sorted lists of values and indices (made by `sort32`): runs of `block_len` in one row, four at a
    time; or two to four rows."""
    t = shaped_value(b, src0, "src0").type
    lists = [v for v in (src0, src1, src2, src3) if v is not None]
    if (block_len is None) != (len(lists) > 1):
        b.fail(
            ARGUMENTS,
            "expected either block_len= for the runs of one row, or several rows",
            "block_len",
            expected="block_len= or src1",
        )
    cols: Dim = 0
    for n, v in enumerate(lists):
        s: ShapedType = shaped_value(b, v, f"src{n}").type
        if s.dtype != t.dtype or extents.known(s.shape[0] if s.rank > 1 else 1) != 1:
            b.fail(
                SHAPE,
                "expected a list in a single row",
                f"src{n}",
                expected=f"{t.dtype.name}, one row",
                got=s,
            )
        cols = b.scalar("add", cols, s.extent[-1])
    if block_len is not None:
        return b.op("mrgsort", [result_type(t)], src0=src0, block_len=block_len)
    made = array_type(t.dtype, (*t.shape[:-1], cols), None, isinstance(t, TileType))
    given = {f"src{n}": v for n, v in enumerate(lists)}
    return b.op("mrgsort", [made], **given, exhausted=exhausted)
