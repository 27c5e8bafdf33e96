"""`memref` and `affine` as files use them: buffers, windows of them, and scalar access through them.

A memref has an address space (`#pto.address_space<..>`; none means global memory) and may be strided. Local
memrefs become tiles when views are lowered, global memrefs are windows of global memory. Sizes of
`reinterpret_cast` and `subview` mix literals and values: a value fills each `?` of the static list.
"""

from __future__ import annotations

from ..row import Attr, Family
from ..rules import R

_UB = "memref<16x64xf32, #pto.address_space<vec>>"
_GM = "memref<16x64xf32, #pto.address_space<gm>>"
_LINE = "memref<1024xf32, #pto.address_space<gm>>"
_STRIDED = "memref<8x32xf32, strided<[64, 1]>, #pto.address_space<gm>>"

_memref = Family("shared-memref", "scalar", scope="any")
_alloc = _memref.but(
    effect="alloc", operands="dynamicSizes=index* symbolOperands=index*", results="memref=memref",
    attrs=(Attr("alignment", "int", doc="alignment in bytes"),), types={"memref": _UB},
    format="( [$dynamicSizes...] ) ['[' $symbolOperands... ']'] attr-dict : type($memref)",
    meaning="new storage of the result type; contents undefined",
    notes=("`dynamicSizes` gives one size per `?` dimension of the result type.",
           "Only local address spaces are planned."),
)  # fmt: skip
_alias = _memref.but(effect="alias")


def _static(name: str) -> Attr:
    return Attr(f"static_{name}", "ints", required=True, doc=f"{name}; `?` where a value of {name} fills in")


_WINDOW = "source=memref offsets=index* sizes=index* strides=index*"
_STATIC = (_static("offsets"), _static("sizes"), _static("strides"))

ROWS = (
    _alloc(
        "memref.alloc", opcode=0x5000, no_cpp="becomes a tile at its planned address (TASSIGN)",
        doc="Reserve a local buffer; the memory planner gives it an address.",
    ),
    _alloc(
        "memref.alloca", opcode=0x5001, no_cpp="becomes a tile at its planned address (TASSIGN)",
        doc="Reserve a local buffer that lives until the function returns.",
    ),
    _memref(
        "memref.dealloc", opcode=0x5002, operands="memref=memref", effect="alloc", types={"memref": _UB},
        format="$memref attr-dict : type($memref)", meaning="the storage may be reused from here on",
        no_cpp="only ends the lifetime the memory planner sees", doc="Give a buffer back.",
    ),
    _alias(
        "memref.reinterpret_cast", opcode=0x5003, operands=_WINDOW, results="result=memref", attrs=_STATIC,
        format="custom", names="source", window=True, rules=R("result.dtype == source.dtype"),
        types={"source": _GM, "result": _STRIDED, "attr:static_offsets": "array<i64: 0>",
               "attr:static_sizes": "array<i64: 8, 32>", "attr:static_strides": "array<i64: 64, 1>"},
        meaning="result[i0, i1, ..] = element offset + i0 * stride0 + i1 * stride1 + .. from the base of "
                "source; offset, strides and sizes of source are dropped",
        cpp="$source + $offsets", doc="The memory of a buffer with another offset, sizes and strides.",
        notes=("Text: `memref.reinterpret_cast %m to offset: [O], sizes: [S, ..], strides: [T, ..] "
               "[attr-dict] : M to M`; each entry an integer or a value.", "One offset, in elements."),
    ),
    _alias(
        "memref.subview", opcode=0x5004, operands=_WINDOW, results="result=memref", attrs=_STATIC,
        format="custom", names="source", window=True, rules=R("result.dtype == source.dtype"),
        types={"source": _GM, "result": _STRIDED, "attr:static_offsets": "array<i64: 0, 0>",
               "attr:static_sizes": "array<i64: 8, 32>", "attr:static_strides": "array<i64: 1, 1>"},
        meaning="result[i0, ..] = source[offset0 + i0 * stride0, ..] for i below sizes; "
                "dimensions of size 1 may be dropped",
        cpp="$source + $offsets", doc="A rectangular window of a buffer.",
        notes=("Text: `memref.subview %m[O, ..] [S, ..] [T, ..] [attr-dict] : M to M`; each entry an integer "
               "or a value.", "Offset, size and stride per dimension of the source; must stay inside it."),
    ),
    _alias(
        "memref.cast", opcode=0x5005, operands="source=memref", results="dest=memref", names="source",
        format="$source attr-dict : type($source) to type($dest)",
        rules=(R("dest.dtype == source.dtype"), R("dest.space == source.space"),
               R("dest.rank == source.rank")),
        types={"source": _GM, "dest": _GM.replace("16x", "?x")},
        meaning="dest is source; sizes, strides and offset become more or less static", cpp="$source",
        doc="The same buffer with more or fewer sizes known statically.",
        notes="Sizes static on both sides must agree.",
    ),
    _memref(
        "memref.load", opcode=0x5006, algorithm="load element",
        operands="memref=memref indices=index*", results="result=scalar",
        infer={"result": "$memref.dtype"}, attrs=Attr("nontemporal", "bool", False, hint=True, doc="cache hint"),
        format="$memref '[' [$indices...] ']' attr-dict : type($memref)", pipe="S",
        types={"memref": _LINE, "indices": "index"}, meaning="memref[indices]", cpp="$memref[$indices]",
        doc="Read one element.",
        notes=("One index per dimension, inside the sizes.", "C++ spells the linear element offset."),
    ),
    _memref(
        "memref.store", opcode=0x5007, algorithm="store element",
        operands="value=scalar memref=memref:out indices=index*",
        attrs=Attr("nontemporal", "bool", False, hint=True, doc="cache hint"), in_place="any", pipe="S",
        format="$value, $memref '[' [$indices...] ']' attr-dict : type($memref)",
        rules=R("value.dtype == memref.dtype"),
        types={"value": "f32", "memref": _LINE, "indices": "index"}, meaning="memref[indices] = value",
        cpp="$memref[$indices] = $value", doc="Write one element.", domain="the addressed element",
        notes=("One index per dimension, inside the sizes.", "C++ spells the linear element offset."),
    ),
    _memref(
        "memref.dim", opcode=0x5008, algorithm="query",
        operands="source=memref index=index", results="result=index",
        effect="pure", infer={"result": "index"}, format="$source, $index attr-dict : type($source)",
        rules=(R("index.const >= 0"), R("index.const < source.rank")),
        types={"source": _GM, "index": "index"},
        meaning="size of dimension index", cpp="$T $result = $dims[$index]", doc="Size of one dimension.",
    ),
    Family("shared-memref", "scalar", scope="any", effect="pure", repeatable=True)(
        "affine.apply", opcode=0x5009, algorithm="affine map",
        operands="mapOperands=index*", results="result=index", format="custom",
        infer={"result": "index"}, attrs=Attr("map", "any", required=True, doc="affine map with one result"),
        types={"mapOperands": "index", "attr:map": "affine_map<()[s0] -> (s0 * 4)>"},
        meaning="map(mapOperands): sums and products with constants, floordiv, ceildiv and mod of the "
                "dimensions, then symbols",
        cpp="$map", doc="An index computed by an affine map.",
        notes=("Text: `affine.apply MAP(%d, ..)[%s, ..] [attr-dict]`, MAP inline or `#name`.",
               "Arithmetic is 64-bit and wraps; a divisor must be positive.",
               "The reference assembler lowers symbol * constant only."),
    ),
)  # fmt: skip
