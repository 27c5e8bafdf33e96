"""Rows that only PTOAS has: lowered tiles, event-id arrays and element access of a tile."""

from __future__ import annotations

from ..row import Attr, Family
from ..rules import R

internal = Family(
    "assembler-op", "ptoas", effect="alias", notes=("internal: produced by lowering, met in dumps",)
)
local = Family("assembler-op", "ptoas", effect="alloc")
array = local.but(effect="memory", pipe="S", scope="any")
_LOCAL_ARRAY = (
    R("indices.count == array.rank", msg="expects one index for each dimension of the array"),
    *(R(f"0 <= indices[{i}].const < array.dims[{i}]", when=f"indices.count == array.rank and array.rank > {i}",
        msg="expects an index inside the array") for i in range(4)),
)
_LOCAL_ARRAYS = {
    "array": "!pto.local_array<4x2xf32>", "indices": "index, index",
    "deep/array": "!pto.local_array<4x2x2x2xf32>", "deep/indices": "index, index, index, index",
}  # fmt: skip
element = Family(
    "assembler-op", "ptoas", pipe="S", cpu="all", a2a3="any", a5="all",
    notes=(
        "offset counts elements in storage order, not in the logical order of a boxed tile",
        "a scalar-unit access: order it with the pipe that fills or reads the tile",
    ),
)  # fmt: skip
_CONFIG = Attr("config", "any", doc="#pto.tile_buf_config of the tile")
_UB = "memref<16x64xf32, strided<[64, 1], offset: ?>, #pto.address_space<vec>>"

ROWS = (
    internal(
        "bind_tile", opcode=0x12A0, operands="source=memref|tile valid_row=index? valid_col=index?",
        results="result=memref|tile", attrs=_CONFIG, names="source",
        format="$source [, $valid_row, $valid_col] attr-dict : type($source) -> type($result)",
        rules=(
            R("result.dtype == source.dtype", when="not has(config)"),
            R("has(valid_row) == has(valid_col)", msg="expects valid_row and valid_col to be provided "
            "together"),
        ),
        doc="Give a lowered tile its configuration and valid region.",
        meaning="result = the storage of source seen as a tile of layout config, valid in (valid_row, "
        "valid_col).",
        notes=(
            "attribute pto.view_semantics remembers the treshape or bitcast it came from",
            "a verifier that meets its result as an operand skips the rules of the consumer in the field's "
            "tool",
        ),
        cpp="TASSIGN($result, reinterpret_cast<uint64_t>($source.data())) | TRESHAPE($result, $source)",
        types={"source": "memref<16x64xf32, #pto.address_space<vec>>", "result": _UB},
    ),
    internal(
        "pointer_cast", opcode=0x12A1, operands="addrs=i64* valid_row=index? valid_col=index?",
        results="result=memref|tile", attrs=_CONFIG, effect="alloc",
        format=(
            "( $addrs... ) [$valid_row, $valid_col] attr-dict : type($result)",
            "( $addrs... ) '[' $valid_row, $valid_col ']' attr-dict : type($result)",
        ),
        rules=(R("has(valid_row) == has(valid_col)", msg="expects valid_row and valid_col to be provided "
        "together"),),
        doc="Lowered tile at a planned address.",
        meaning="result = the tile at byte offset addrs[0] of its buffer; further addresses are the other "
        "buffers of a multi-buffered tile.",
        cpp="Tile<...> $result; TASSIGN($result, $addrs)",
        types={"addrs": "i64", "result": "memref<16x64xf32, #pto.address_space<vec>>"},
    ),
    local(
        "declare_tile", opcode=0x12A2, results="tile", format="attr-dict -> type($tile)",
        doc="Declare a tile that is bound to storage later.",
        meaning="tile = a descriptor without an address; tpop binds it to the slot it loads. Dynamic valid "
        "dimensions start as the shape until set_validshape.",
        cpp="Tile<...> $tile", types={"tile": "!pto.tile_buf<vec, 16x64xf32>"},
    ),
    local(
        "declare_tile_memref", opcode=0x12A3, results="result=memref", format="attr-dict -> type($result)",
        doc="Lowered form of declare_tile.", meaning="result = a local memref without an address yet",
        notes=("internal: produced by lowering, met in dumps",),
        no_cpp="a placeholder that the bound tile replaces",
        types={"result": "memref<16x64xf32, #pto.address_space<vec>>"},
    ),
    local(
        "declare_eventid_array", opcode=0x12A4, results="array=eventid_array", scope="any",
        format="attr-dict -> type($array)",
        doc="Declare an array of run-time event ids.",
        meaning="array = N event ids, undefined until set; !pto.eventid_array<N>",
        cpp="PTOAS_EventIdArray<N> $array", types={"array": "!pto.eventid_array<2>"},
    ),
    array(
        "eventid_array_get", opcode=0x12A5, touches=False, algorithm="event ids", operands="array=eventid_array "
        "index=index", results="result=index",
        format="$array '[' $index ']' attr-dict : type($array)", infer={"result": "index"},
        doc="Read one id of an event-id array.", meaning="result = array[index]",
        notes=("printed again at every use rather than stored",),
        cpp="$array[$index]", types={"array": "!pto.eventid_array<2>"},
    ),
    array(
        "eventid_array_set", opcode=0x12A6, touches=False, algorithm="event ids",
        operands="array=eventid_array:inout index=index value=index",
        format="$array '[' $index ']', $value attr-dict : type($array)", in_place="none",
        rules=(R("0 <= value.const <= 7", msg="expects event id in range [0, 7]"),),
        doc="Write one id of an event-id array.", meaning="array[index] = value",
        cpp="$array[$index] = $value", types={"array": "!pto.eventid_array<2>"},
    ),
    local(
        "declare_local_array", opcode=0x12A7, results="array=local_array", scope="any",
        format="attr-dict -> type($array)",
        doc="Declare an array of scalars on the stack of a core.",
        meaning="array = its elements, undefined until set; !pto.local_array<4x2xi32>. It takes no place in a "
        "buffer.",
        cpp="T $array[N]", types={"array": "!pto.local_array<4x2xf32>"},
    ),
    array(
        "local_array_get", opcode=0x12A8, touches=False, algorithm="local array",
        operands="array=local_array indices=index*", results="result=scalar|index",
        format="$array '[' $indices... ']' attr-dict : type($array) -> type($result)",
        rules=(*_LOCAL_ARRAY, R("result.dtype == array.dtype", msg="expects result to have the element type of the array")),
        doc="Read one element of an array on the stack.", meaning="result = array[indices]",
        cpp="$array[$indices]", types={"result": "f32", **_LOCAL_ARRAYS},
    ),
    array(
        "local_array_set", opcode=0x12A9, touches=False, algorithm="local array",
        operands="array=local_array:inout indices=index* value=scalar|index",
        format="$array '[' $indices... ']', $value attr-dict : type($array), type($value)", in_place="none",
        rules=(*_LOCAL_ARRAY, R("value.dtype == array.dtype", msg="expects value to have the element type of the array")),
        doc="Write one element of an array on the stack.", meaning="array[indices] = value",
        cpp="$array[$indices] = $value", types={"value": "f32", **_LOCAL_ARRAYS},
    ),
    element(
        "tsetval", opcode=0x105E, element_at="offset", algorithm="set element",
        operands="dst:inout offset=index val=scalar", in_place="none",
        format="ins($offset, $val : type($offset), type($val)) outs($dst : type($dst)) attr-dict",
        domain="element offset of dst",
        doc="Write one element of a tile from the scalar unit.",
        meaning="storage(dst)[offset] = convert(val, dst element type); the other elements stay. Integers "
        "are truncated to the width of the element, floats rounded to it.",
        notes=("PTOAS does not compare the types of val and dst; dst may be in any location",),
        cpp="$dst.SetValue($offset, $val)",
        types={"dst": "!pto.tile_buf<vec, 16x64x{T}>", "val": "{T}"},
    ),
    element(
        "tgetval", opcode=0x102B, element_at="offset", algorithm="get element",
        operands="src offset=index", results="dst=scalar", dtype_of="src",
        format="ins($src, $offset : type($src), type($offset)) outs : type($dst) attr-dict",
        domain="element offset of src",
        rules=(
            R("src.loc != MAT", on="a2a3 a5",
              msg="Ascend hardware does not support reading from Mat tile_buf to Scalar unit"),
            R("src.loc in (VEC, MAT)", on="a2a3 a5", msg="expects src memory space to be vec"),
            R("dst.dtype == src.dtype"),
        ),
        doc="Read one element of a tile into a scalar.",
        meaning="dst = storage(src)[offset]",
        cpp="$src.GetValue($offset)",
        types={"src": "!pto.tile_buf<vec, 16x64x{T}>", "dst": "{T}"},
    ),
)  # fmt: skip
