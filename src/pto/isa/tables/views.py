"""Descriptors of memory: views of global tensors, tile buffers and windows of them, and their addresses.

These rows compute or alias descriptors, and do not move data. Element strides and offsets count elements.
"""

from __future__ import annotations

from ..row import Attr, Family
from ..rules import R, Rule

view = Family("view-and-tile-buf", "tile", effect="pure", scope="any")
tile = view.but(effect="alias", scope="tile")
query = view.but(
    repeatable=True, operands="tensor_view=tensor_view|view|memref dim_index=index", results="result=index",
    format=(
        "$tensor_view, $dim_index : type($tensor_view) -> type($result) attr-dict",
        "$tensor_view, $dim_index attr-dict : type($tensor_view) -> type($result)",
    ),
    rules=(R("0 <= dim_index.const"), R("dim_index.const < tensor_view.rank")),
    types={"tensor_view": "!pto.tensor_view<16x64xf32>"},
)  # fmt: skip


def _per_dim(expr: str, msg: str, **more: str) -> tuple[Rule, ...]:
    """One rule per dimension a view may have; `@` stands for the dimension."""
    return tuple(R(expr.replace("@", str(d)), msg=msg.replace("@", str(d)), **more) for d in range(5))


#: Inner box (rows, columns) of a boxed tile, by layout.
_BOXES = (
    ("source.fractal == 1024", "16", "16"),
    ("source.fractal == 32", "16", "2"),
    ("source.fractal == 512 and source.slayout == ROW", "16", "32 / source.bytes"),
    ("source.fractal == 512 and source.slayout == COL", "32 / source.bytes", "16"),
)


def _whole_boxes() -> tuple[Rule, ...]:
    """Window sizes and constant offsets of a boxed tile count whole inner boxes."""
    out: list[Rule] = []
    for when, rows, cols in _BOXES:
        guard = f"source.boxed and {when}"
        for d, box in enumerate((rows, cols)):
            out.append(R(f"sizes[{d}] % ({box}) == 0", when=guard,
                         msg="boxed layout subset sizes must be multiples of inner shape"))
            out.append(R(f"offsets[{d}].const % ({box}) == 0", when=guard,
                         msg="boxed layout subset offsets must be multiples of inner shape"))
    return tuple(out)  # fmt: skip


ROWS = (
    view(
        "make_tensor_view", opcode=0x0004, algorithm="view", names="ptr", window=True, repeatable=True,
        operands="ptr=ptr|memref shape=index* strides=index*",
        results="result=tensor_view",
        attrs=Attr("layout", "layout", doc="layout of the data; absent = inferred"),
        format=(
            "$ptr, shape = '[' $shape... ']', strides = '[' $strides... ']' attr-dict : type($result)",
            "$ptr, shape = '[' $shape... ']' strides = '[' $strides... ']' attr-dict : type($result)",
        ),
        rules=(
            R("ptr.dtype == result.dtype"),
            R("shape.count == strides.count and shape.count == result.rank",
              msg="shape/strides operand counts must match tensor_view rank"),
        ),
        doc="Describe a strided tensor in global memory.",
        meaning="result = (ptr, shape, strides in elements, layout); element (i0, i1, ...) lies at ptr + "
        "sum(i_d * strides[d]). Nothing is accessed.",
        notes=(
            "a given layout must agree with the one that static shape and strides imply: 'layout mismatch: "
            "user-specified layout=.. but inferred=..' from the layout pass",
            "C++ tensors are 5-D: lower ranks are padded with 1 on the left",
        ),
        no_cpp="contributes pointer, strides and layout to the GlobalTensor its partition_view prints",
        types={
            "ptr": "!pto.ptr<f32>", "shape": "index, index", "strides": "index, index",
            "result": "!pto.tensor_view<?x?xf32>",
        },
    ),
    view(
        "partition_view", opcode=0x0005, algorithm="view", names="source", window=True, repeatable=True,
        operands="source=tensor_view offsets=index* sizes=index*",
        results="result=view", infer={"result": "partition_view($source, $sizes)"},
        format=(
            "$source, offsets = '[' $offsets... ']', sizes = '[' $sizes... ']' attr-dict : type($source) -> "
            "type($result)",
            "$source, offsets = '[' $offsets... ']', sizes = '[' $sizes... ']' attr-dict : type($source)",
        ),
        rules=(
            R("result.dtype == source.dtype"),
            R("offsets.count == source.rank", msg="expects as many offsets as the source has dimensions"),
            R("sizes.count == source.rank", msg="expects as many sizes as the source has dimensions"),
            *_per_dim("offsets[@].const >= 0", "offset at dim @ must be non-negative"),
            *_per_dim("sizes[@].const > 0", "size at dim @ must be positive"),
            *_per_dim("sizes[@].const == result.dims[@]", "size/result mismatch at dim @",
                      when="result.rank == source.rank"),
            *_per_dim("sizes[@].const <= source.dims[@]", "size at dim @ exceeds static source dim"),
            *_per_dim("offsets[@].const + sizes[@].const <= source.dims[@]",
                      "offset+size at dim @ exceeds static source dim"),
        ),
        doc="Window of a tensor view.",
        meaning="result = source[offsets[d] : offsets[d] + sizes[d]] in every dimension, same strides and "
        "layout; constant sizes are static in the result type.",
        notes=(
            "a result of another rank than the source is not compared with the sizes",
            "without a result type: rank of the source, a dimension static where its size is a constant",
            "out of bounds at run time is a range error in the simulator, undefined on hardware",
        ),
        cpp="GlobalTensor<T, pto::Shape<5>, pto::Stride<5>, pto::Layout::L>($source + offsets, shape, "
        "stride)",
        types={
            "source": "!pto.tensor_view<16x64xf32>", "result": "!pto.partition_tensor_view<16x64xf32>",
            "offsets": "index, index", "sizes": "index, index",
            "5d/source": "!pto.tensor_view<2x2x2x16x64xf32>",
            "5d/result": "!pto.partition_tensor_view<2x2x2x16x64xf32>",
            "5d/offsets": "index, index, index, index, index", "5d/sizes": "index, index, index, index, index",
        },
    ),
    query(
        "get_tensor_view_dim", opcode=0x1220, algorithm="query",
        doc="Run-time extent of one dimension of a view.",
        meaning="result = extent of dimension dim_index of tensor_view",
        no_cpp="replaced by the shape value the view was made with",
    ),
    query(
        "get_tensor_view_stride", opcode=0x1221, algorithm="query",
        doc="Run-time element stride of one dimension of a view.",
        meaning="result = stride of dimension dim_index of tensor_view, in elements",
        no_cpp="replaced by the stride value the view was made with",
    ),
    view(
        "tensor_view_addr", opcode=0x1222, algorithm="query", names="src", repeatable=True,
        operands="src=tensor_view|view|memref", results="result=ptr|memref",
        format="$src attr-dict : type($src) -> type($result)",
        rules=(R("result.dtype == src.dtype"), R("result.space == GM")),
        doc="Address of the first element of a view.",
        meaning="result = base address of src, window offsets included, as a pointer or memref in GM",
        cpp="$src.data()",
        types={"src": "!pto.tensor_view<16x64xf32>", "result": "!pto.ptr<f32, gm>"},
    ),
    tile(
        "alloc_tile", opcode=0x1001, operands="addr=i64? valid_row=index? valid_col=index?", results="result",
        effect="alloc",
        format="[addr = $addr] [valid_row = $valid_row] [valid_col = $valid_col] attr-dict : type($result)",
        rules=(
            R("has(valid_row)", when="result.dyn_row", code="PTO-E0401",
              msg="valid_row operand is required because result type v_row is ?"),
            R("not has(valid_row)", when="not result.dyn_row", code="PTO-E0401",
              msg="valid_row operand must be absent because result type v_row is static"),
            R("has(valid_col)", when="result.dyn_col", code="PTO-E0401",
              msg="valid_col operand is required because result type v_col is ?"),
            R("not has(valid_col)", when="not result.dyn_col", code="PTO-E0401",
              msg="valid_col operand must be absent because result type v_col is static"),
            R("0 <= valid_row.const <= result.rows"),
            R("0 <= valid_col.const <= result.cols"),
        ),
        doc="Create a tile buffer.",
        meaning="result = a fresh tile with storage of its own. Its address is addr, or chosen by memory "
        "planning; valid_row and valid_col give the valid region where the type leaves it open (?).",
        notes=(
            "addr is required at level3 and refused below: \"requires 'addr' operand when "
            "--pto-level=level3\", \"unexpected 'addr' operand: only supported when --pto-level=level3\"",
            "bytecode v0 has no place for addr",
            "storage is zero in the simulator until written; on hardware its content is unspecified",
        ),
        cpp="Tile<...> $result; TASSIGN($result, $addr)",
        types={
            "result": "!pto.tile_buf<vec, 16x64xf32>",
            "dynamic/result": "!pto.tile_buf<vec, 16x64xf32, valid=?x?>",
            "dynamic/valid_row": "index", "dynamic/valid_col": "index",
        },
    ),
    tile(
        "alloc_multi_tile", opcode=0x12D0, operands="addr=i64? valid_row=index? valid_col=index?",
        results="result=multi_tile", effect="alloc",
        format="[addr = $addr] [valid_row = $valid_row] [valid_col = $valid_col] attr-dict : type($result)",
        doc="Create a tile buffer of several slots.",
        meaning="result = count tiles of one type, one behind the other, with storage of their own. Its address is "
        "addr, or chosen by memory planning; valid_row and valid_col give the valid region of every slot where the "
        "type leaves it open (?).",
        notes=(
            "stands for an alloc_tile that holds all slots; multi_tile_get is a window of it",
            "the count is 2 to 16; a compact mode is refused, for slots would have gaps between them",
            "the program selects the slot of each use: slots do not alternate by themselves",
        ),
        no_cpp="becomes the Tile that holds all slots",
        types={"result": "!pto.multi_tile_buf<vec, 16x64xf32, count=2>"},
    ),
    tile(
        "multi_tile_get", opcode=0x12D1, operands="source=multi_tile slot=index", results="result",
        effect="alias", names="source", window=True, in_place="",
        format="$source '[' $slot ']' attr-dict : type($source) -> type($result)",
        doc="One slot of a tile buffer of several.",
        meaning="result names tile number slot of source, 0 <= slot < count. Nothing is moved.",
        no_cpp="becomes TSUBVIEW of the Tile that holds all slots",
        types={"source": "!pto.multi_tile_buf<vec, 16x64xf32, count=2>", "result": "!pto.tile_buf<vec, 16x64xf32>"},
    ),
    tile(
        "set_validshape", opcode=0x1223, operands="source:inout valid_row=index "
        "valid_col=index", effect="config",
        format="$source, $valid_row, $valid_col attr-dict : type($source)",
        rules=(
            R("source.dyn_row and source.dyn_col",
              msg="expects source tile_buf to have dynamic validShape (?, ?)"),
            R("valid_row.const >= 0", msg="expects row operand to be non-negative"),
            R("valid_col.const >= 0", msg="expects col operand to be non-negative"),
            R("valid_row.const <= source.rows", msg="expects row operand <= shape dim"),
            R("valid_col.const <= source.cols", msg="expects col operand <= shape dim"),
        ),
        doc="Set the run-time valid region of a tile.",
        meaning="valid rows and columns of source = (valid_row, valid_col); data and shape stay.",
        notes=(
            "the source must be made in this function (alloc_tile, declare_tile, bind_tile, pointer_cast, "
            "also through bitcast and treshape): 'requires a locally bound tile source; function "
            "arguments/results are unsupported'",
            "a descriptor write of the scalar unit",
        ),
        cpp="$source.SetValidShape($valid_row, $valid_col)",
        types={"source": "!pto.tile_buf<vec, 16x64xf32, valid=?x?>"},
    ),
    tile(
        "subset", opcode=0x1072, operands="source offsets=index*", results="result", names="source", window=True,
        attrs=Attr("sizes", "ints", required=True, doc="rows and columns of the window"),
        format="$source '[' $offsets... ']' sizes $sizes attr-dict : type($source)",
        infer={"result": "subset($source, $offsets, $sizes)"},
        rules=(
            R("len(sizes) == 2 and offsets.count == 2", msg="subset expects 2D sizes and offsets"),
            R("sizes[0] > 0 and sizes[1] > 0", when="source.boxed", msg="boxed layout subset sizes must be "
            "positive"),
            R("offsets[0].const >= 0 and offsets[1].const >= 0", when="source.boxed",
              msg="boxed layout subset offsets must be non-negative"),
            *_whole_boxes(),
            R("sizes[1] == source.cols", when="source.boxed and source.blayout == ROW",
              msg="boxed row_major subset must keep the full column extent"),
            R("offsets[1].const == 0", when="source.boxed and source.blayout == ROW",
              msg="boxed row_major subset requires static column offset 0"),
            R("sizes[0] == source.rows", when="source.boxed and source.blayout == COL",
              msg="boxed col_major subset must keep the full row extent"),
            R("offsets[0].const == 0", when="source.boxed and source.blayout == COL",
              msg="boxed col_major subset requires static row offset 0"),
        ),
        doc="Window of a tile that shares its storage, type inferred.",
        meaning="result[i, j] is source[r + i, c + j] with (r, c) = offsets. Type: shape = sizes, element "
        "type, location and layout of source; a valid dimension is min(size, pv - off % pv) where the "
        "parent's valid extent pv and the offset are constants, else ? with that value at run time. The "
        "strides stay those of source.",
        notes=(
            "unboxed windows are not bounds-checked statically; a boxed window keeps whole inner boxes "
            "(1024: 16x16, 32: 16x2, 512: 16 rows x 32 bytes or its transpose)",
            "boxed: the offset along the kept dimension must be the constant 0",
        ),
        cpp="Tile<...> $result; TASSIGN($result, address of $source + r * row stride + c * column stride)",
        types={
            "source": "!pto.tile_buf<vec, 32x64xf32>", "result": "!pto.tile_buf<vec, 16x64xf32>",
            "offsets": "index, index", "attr:sizes": "[16, 64]",
            "nz/source": "!pto.tile_buf<mat, 32x64xf32, blayout=col_major, slayout=row_major>",
            "nz/attr:sizes": "[32, 32]",
            "nz/result": "!pto.tile_buf<mat, 32x32xf32, blayout=col_major, slayout=row_major>",
            "zn/source": "!pto.tile_buf<mat, 32x64xf32, slayout=col_major>",
            "zn/result": "!pto.tile_buf<mat, 16x64xf32, slayout=col_major>",
            "acc/source": "!pto.tile_buf<acc, 32x64xf32, blayout=col_major, slayout=row_major, fractal=1024>",
            "acc/attr:sizes": "[32, 32]",
            "acc/result": "!pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>",
            "acc_rows/source": "!pto.tile_buf<acc, 32x64xf32, slayout=row_major, fractal=1024>",
            "acc_rows/result": "!pto.tile_buf<acc, 16x64xf32, slayout=row_major, fractal=1024>",
            **{f"scale/{name}": f"!pto.tile_buf<mat, {shape}xi8, slayout=row_major, fractal=32>"
               for name, shape in (("source", "32x64"), ("result", "16x64"))},
            **{f"scale_cols/{name}":
               f"!pto.tile_buf<mat, {shape}xi8, blayout=col_major, slayout=row_major, fractal=32>"
               for name, shape in (("source", "32x64"), ("result", "32x32"))},
            "scale_cols/attr:sizes": "[32, 32]",
        },
    ),
    view(
        "tile_buf_addr", opcode=0x1224, algorithm="query", operands="tile", results="result=ptr|memref",
        scope="any", names="tile",
        format="$tile attr-dict : type($tile) -> type($result)",
        rules=(
            R("result.dtype == tile.dtype"),
            R("result.space == UB", when="result.kind == 'ptr' and tile.loc == VEC"),
        ),
        doc="Address of a tile's data, for vector code.",
        meaning="result = address of the first byte of the tile's storage, as a typed pointer or memref in "
        "the space of the tile",
        notes=("the only bridge from tiles to vector registers and cube micro-operations",),
        cpp="$tile.data()",
        types={"tile": "!pto.tile_buf<vec, 16x64xf32>", "result": "!pto.ptr<f32, ub>"},
    ),
)  # fmt: skip
