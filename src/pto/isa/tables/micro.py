"""Micro instructions around vector code: typed pointers, scalar memory access, vector intervals, queries.

The manuals list these in two instruction sets (micro and scalar); each is one row here. Pointer offsets
count elements, never bytes.
"""

from __future__ import annotations

from ..row import Family
from ..rules import R

pointer = Family("pointer", "micro", also="scalar", scope="any")
query = Family(
    "block-query", "micro", also="scalar", scope="any", effect="pure", repeatable=True, results="result=i64",
    format=("attr-dict", "attr-dict : type($result)"), infer={"result": "i64"},
    notes=("known only inside a kernel launch",),
)  # fmt: skip
interval = Family(
    "vecscope", "micro", also="scalar", effect="control", core="vector", regions="body", opens="vec",
    notes=(
        "intervals do not nest; scf inside is fine",
        "ops on vreg, mask or align stand in exactly one interval; such values do not cross its boundary",
        "DMA, flags and buffer tokens stay outside; scalar and pointer ops may stand inside",
    ),
)  # fmt: skip

_ELEMENTS = {"cpu": "any fp8 f8e8m0 hif8", "a2a3": "any", "a5": "any fp8 f8e8m0 hif8"}
_GM_MEMREF = R("ptr.space == GM", when="ptr.kind == 'memref'", msg="operand #0 must be Ptr or MemRef in GM")
#: Element types of ld_dev and st_dev.
_WHOLE = dict.fromkeys(("cpu", "a2a3", "a5"), "i8 i16 i32 i64")
_DEVICE = (
    R("ptr.space == GM", msg="expects ptr to be in GM"),
    R("value.dtype == ptr.dtype", msg="expects value type to match ptr element type"),
)
_UNORDERED = ("neither atomic nor ordered with other accesses", "same values as load_scalar and store_scalar")

ROWS = (
    pointer(
        "castptr", opcode=0x3140, algorithm="pointer", names="addr", repeatable=True,
        operands="addr=i64|ptr|memref", results="result=ptr", effect="pure",
        format=(
            "$addr attr-dict : type($addr) -> type($result)",
            "$addr attr-dict : type($addr) to type($result)",
        ),
        rules=R("result.space == addr.space", when="addr.kind in ('ptr', 'memref')"),
        doc="Typed pointer from a byte address, or from another pointer or memref.",
        meaning="result = the byte address addr, seen as elements of the result type; nothing is accessed. "
        "A ptr or memref operand gives its base address.",
        notes=("addresses of on-chip spaces are byte offsets into that buffer of this core",),
        cpp="reinterpret_cast<T*>($addr)", types={"result": "!pto.ptr<f32, ub>"},
    ),
    pointer(
        "addptr", opcode=0x1000, algorithm="pointer", names="ptr", window=True, repeatable=True,
        operands="ptr=ptr offset=index|i64", results="result=ptr", effect="pure",
        format="$ptr, $offset attr-dict : type($ptr) -> type($result)",
        rules=(
            R("result.type == ptr.type", msg="failed to verify that all of {ptr, result} have same type"),
        ),
        doc="Pointer advanced by a number of elements.",
        meaning="address(result) = address(ptr) + offset * sizeof(T); element type and space are kept.",
        notes=(
            "a pointer out of range is an error only when it is used",
            "the C++ path of PTOAS folds it into make_tensor_view, initialize_l2g2l_pipe(gm_addr) or "
            "load/store_scalar and refuses other uses; an i64 offset exists in the micro form only",
        ),
        cpp="$ptr + $offset", types={"ptr": "!pto.ptr<f32>", "result": "!pto.ptr<f32>", "offset": "index"},
    ),
    pointer(
        "load_scalar", opcode=0x3141, element_at="offset", algorithm="load scalar",
        operands="ptr=ptr|memref offset=index", results="value=scalar",
        format="$ptr '[' $offset ']' attr-dict : type($ptr) -> type($value)", pipe="S",
        dtype_of="ptr", **_ELEMENTS,
        rules=(
            _GM_MEMREF,
            R("value.dtype == ptr.dtype", msg="expects result type to match ptr element type"),
        ),
        doc="Load one element through a pointer.", meaning="value = ptr[offset], offset in elements.",
        notes=("a pointer may be in GM or UB; UB data written by the vector core needs a V to S flag first",),
        cpp="$ptr[$offset]", types={"ptr": "!pto.ptr<{T}>", "value": "{T}"},
    ),
    pointer(
        "store_scalar", opcode=0x3142, element_at="offset", algorithm="store scalar",
        operands="ptr=ptr|memref:out offset=index value=scalar",
        format="$value, $ptr '[' $offset ']' attr-dict : type($ptr), type($value)", pipe="S",
        dtype_of="ptr", in_place="none", **_ELEMENTS,
        rules=(
            _GM_MEMREF,
            R("value.dtype == ptr.dtype", msg="expects value type to match ptr element type"),
        ),
        doc="Store one element through a pointer.", meaning="ptr[offset] = value, offset in elements.",
        notes=("a pointer may be in GM or UB",),
        cpp="$ptr[$offset] = $value", types={"ptr": "!pto.ptr<{T}>", "value": "{T}"},
    ),
    pointer(
        "ld_dev", opcode=0x3147, element_at="offset", algorithm="load scalar",
        operands="ptr=ptr|memref offset=index", results="value=scalar",
        format="$ptr '[' $offset ']' attr-dict : type($ptr) -> type($value)", pipe="S",
        dtype_of="ptr", rules=_DEVICE, **_WHOLE,
        doc="Load one element of global memory past the data cache.",
        meaning="value = ptr[offset], offset in elements.", notes=_UNORDERED,
        cpp="ld_dev($ptr + $offset, 0)", types={"ptr": "!pto.ptr<{T}>", "value": "{T}"},
    ),
    pointer(
        "st_dev", opcode=0x3148, element_at="offset", algorithm="store scalar",
        operands="ptr=ptr|memref:out offset=index value=scalar",
        format="$value, $ptr '[' $offset ']' attr-dict : type($ptr), type($value)", pipe="S",
        dtype_of="ptr", in_place="none", rules=_DEVICE, **_WHOLE,
        doc="Store one element of global memory past the data cache.",
        meaning="ptr[offset] = value, offset in elements.", notes=_UNORDERED,
        cpp="st_dev($value, $ptr + $offset, 0)", types={"ptr": "!pto.ptr<{T}>", "value": "{T}"},
    ),
    interval(
        "vecscope", opcode=0x3143, format="$body attr-dict",
        doc="One vector interval: its body runs on the vector thread while the scalar unit goes on.",
        meaning="Run body in program order as one vector function; outer values are captured implicitly.",
        notes=(
            "an scf.for from 0 to 1 step 1 tagged llvm.loop.aivector_scope is the same interval, lowered",
            "inside, UB aliasing is not tracked: a load after a store of the same bytes needs mem_bar",
        ),
        cpp="__VEC_SCOPE__ { $body }",
    ),
    interval(
        "strict_vecscope", opcode=0x3144, operands="args=any*",
        format="($args...) $body attr-dict : (type($args...)) -> ()",
        doc="A vector interval whose body sees only its block arguments.",
        meaning="As vecscope, with args bound to the block arguments of body, one by one.",
        notes=("capturing any outer value, constants included, is an error",
               "block arguments have the types of args"),
        cpp="__VEC_SCOPE__ { $body }", types={"args": "!pto.ptr<f32, ub>"},
    ),
    Family("align", "micro", also="scalar", scope="vec", effect="pure", core="vector")(
        "init_align", opcode=0x3145, algorithm="empty stream", results="result=align",
        doc="Fresh state for an unaligned store stream.", meaning="result = EMPTY: no pending bytes.",
        notes=(
            "starts vstus, vstur, vstar, vstas and pstu chains only; loads start with vldas",
            "an align value is used exactly once",
            "two tables call it A5-only; it stays legal on a2a3 because pstu is listed there and starts here",
        ),
        cpp="vector_align $result", types={"result": "!pto.align"},
    ),
    query("get_block_idx", opcode=0x0000, algorithm="query", doc="Index of this block in the launch.",
          meaning="i64 in [0, get_block_num).", cpp="get_block_idx()"),
    query("get_block_num", opcode=0x0001, algorithm="query", doc="Number of launched blocks.",
          meaning="i64 >= 1; 1 by default.", cpp="get_block_num()"),
    query("get_subblock_idx", opcode=0x0002, algorithm="query", lanes=True, doc="Index of this vector core in its block.",
          meaning="i64 in [0, get_subblock_num); 0 on the cube side and in single-vector launches.",
          cpp="get_subblockid()"),
    query("get_subblock_num", opcode=0x0003, algorithm="query", lanes=True, doc="Number of vector cores of a block.",
          meaning="i64 >= 1; 1 by default.", cpp="get_subblockdim()"),
    Family("sort-status", "micro", also="scalar", scope="any", effect="pure", core="vector")(
        "get_vms4_sr", opcode=0x3146, algorithm="merge status",
        results="list0=i16 list1=i16 list2=i16 list3=i16", isas="cpu a5",
        doc="Records the last exhausted vmrgsort4 consumed from each of its four lists.",
        meaning="list_k = bits 16k..16k+15 of VMS4_SR, an unsigned count.",
        notes=("meaningful only after a vmrgsort4 with the exhausted option",),
        cpp="get_vms4_sr()",
    ),
)  # fmt: skip
