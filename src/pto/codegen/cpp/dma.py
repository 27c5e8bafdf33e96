"""Burst copies in C++: loops in registers, padding, pointers with the types of the calls.

    pto.mte_gm_ub .. loop(%n, %s, %d)       set_loop1_stride_outtoub((uint64_t) d << 40 | (uint64_t) s);
                                            set_loop_size_outtoub((uint64_t) 1 << 21 | (uint64_t) n);
                                            copy_gm_to_ubuf_align_v2(..);
                                            set_loop_size_outtoub(1 << 21 | 1);

Two loops are in registers, further loops are around the call. If a function sets these registers itself, they
keep their values, except that their counts are one during the call, and all loops are around the call. Values
that another function has set cannot be restored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...ir.core import Operation, Value, constant_of
from ...ir.types import PtrType, ScalarType
from ...isa import encoding
from ...isa.dtypes import DTYPES
from .function import CppFunction, handles
from .spelling import QUALIFIER

_ONCE = "1 << 21 | 1"


def dtype_of(value: Value) -> str:
    return str(value.type.dtype)  # type: ignore[attr-defined]


def pointer(f: CppFunction, value: Value) -> str:
    """Return a pointer for copies: 64-bit and 4-bit elements go as words and bytes."""
    other = {64: "uint32_t", 4: "uint8_t"}.get(DTYPES[dtype_of(value)].bits)
    if other is None:
        return f.text(value)
    assert isinstance(value.type, PtrType)
    return f"({QUALIFIER[value.type.space]} {other}*) {f.unary(value)}"


def bits_of_scalar(f: CppFunction, value: Value, widen: bool = False) -> str:
    """Return the bits of a scalar as a number; `widen`: those of a float as f32."""
    type = value.type
    assert isinstance(type, ScalarType)
    d = DTYPES["f32"] if widen else type.info
    assert d is not None
    known = constant_of(value)
    if known is not None:
        code = encoding.encode(d, known) if d.is_float else int(known) & ((1 << d.bits) - 1)
        return hex(code)
    if not d.is_float:
        return f"(uint{max(8, d.bits)}_t) {f.unary(value)}"
    text = f"(float) {f.unary(value)}" if widen and f.types(type) != "float" else f.text(value)
    return f"ptoas_bitcast<uint{max(8, d.bits)}_t>({text})"


# -- loops --------------------------------------------------------------------------------------------------


def _kept(f: CppFunction, way: str) -> bool:
    """Return True if a function sets the loop registers of copies itself."""
    return _sets(f.op, way)


def _sets(function: Operation, way: str) -> bool:
    return any(op.name.startswith("pto.set_loop") and op.name.endswith(way) for op in function.walk())


def _set_elsewhere(f: CppFunction, way: str) -> bool:
    """Return True if a caller or a callee may have set the registers."""
    others = [other for other in f.unit.module.functions if other is not f.op]
    return any(_sets(other, way) for other in others) and any(
        op.name == "func.call" for op in f.unit.module.walk()
    )


def _register(f: CppFunction, way: str) -> str:
    """Return the variable with the counts that the program set."""
    return f.helper("uint64_t", f"{_ONCE} /* {way} */")


@contextmanager
def looped(f: CppFunction, op: Operation, source: str, target: str, way: str = "") -> Iterator[list[str]]:
    """Yield source and target of a copy inside its loops: innermost first, with strides in bytes."""
    values = [op.group(name)[0] for name in (source, target)]
    loops = op.group("loop")
    clauses = [loops[at : at + 3] for at in range(0, len(loops), 3)]
    kept = bool(way) and _kept(f, way)
    if way and _set_elsewhere(f, way):
        f.unit.no_spelling(op, "where another function sets the loop registers of copies")
    inner = clauses[:2] if way and not kept and f.unit.profile.isa != "a2a3" else []
    if kept:
        f.line(f"set_loop_size_{way}({_ONCE});")
    elif inner:
        _set_loops(f, inner, way)
    yield _around(f, values, clauses[len(inner) :])
    for _ in clauses[len(inner) :]:
        f.close()
        f.line("}")
    if kept or inner:
        f.line(f"set_loop_size_{way}({_register(f, way) if kept else _ONCE});")


def _set_loops(f: CppFunction, clauses: list[list[Value]], way: str) -> None:
    for number, (_, source, target) in enumerate(clauses, 1):
        gm, other = (target, source) if way == "ubtoout" else (source, target)
        word = f"(uint64_t) {f.unary(other)} << 40 | (uint64_t) {f.unary(gm)}"
        f.line(f"set_loop{number}_stride_{way}({word});")
    counts = [f"(uint64_t) {f.unary(clause[0])}" for clause in clauses]
    outer = f"{counts[1]} << 21" if len(counts) > 1 else "1 << 21"
    f.line(f"set_loop_size_{way}({outer} | {counts[0]});")


def _around(f: CppFunction, values: list[Value], clauses: list[list[Value]]) -> list[str]:
    """Emit C++ loops, the last clause outermost; return the pointers inside them."""
    steps: list[list[str]] = [[], []]
    for clause in clauses[::-1]:
        count, *strides = (f.operand(v) for v in clause)
        index = f.token()
        f.line(f"for (uint64_t {index} = 0; {index} < (uint64_t) {count}; {index} += 1) {{")
        f.open()
        for terms, stride in zip(steps, strides, strict=True):
            terms.append(f"{index} * {stride}")
    out: list[str] = []
    for value, terms in zip(values, steps, strict=True):
        if not terms:
            out.append(pointer(f, value))
            continue
        bits = DTYPES[dtype_of(value)].bits
        type = f.types(value.type)
        space = type.partition(" ")[0]
        type = {64: f"{space} uint32_t*", 4: f"{space} uint8_t*"}.get(bits, type)
        out.append(f"({type}) (({space} uint8_t*) {f.unary(value)} + ({' + '.join(terms)}))")
    return out


# -- copies -------------------------------------------------------------------------------------------------


@handles("pto.mte_gm_ub")
def _gm_to_ub(f: CppFunction, op: Operation) -> None:
    names = ("n_burst", "len_burst", "l2_cache_ctl", "src_stride", "dst_stride")
    bursts, length, cache, down, across = (f.text(op.group(n)[0]) for n in names)
    pad, padding = op.get("pad_value"), "0, 0, false"
    if pad is not None:
        bits = DTYPES[dtype_of(op.group("ub_dst")[0])].bits
        left, right = op.get("left_padding"), op.get("right_padding")
        if bits == 64 or (bits == 4 and left is not None):
            f.unit.no_spelling(op, "with 'pad_value'")
            return
        value = bits_of_scalar(f, pad)
        f.line(f"set_mov_pad_val({value if bits > 4 else f'({value} & 0xF) * 0x11'});")
        counts = (f.text(v) if v is not None else "0" for v in (left, right))
        padding = f"{', '.join(counts)}, true"
    with looped(f, op, "gm_src", "ub_dst", "outtoub") as (source, target):
        rest = f"{bursts}, {length}, {padding}, {cache}, {down}, {across}"
        f.line(f"copy_gm_to_ubuf_align_v2({target}, {source}, 0, {rest});")


@handles("pto.mte_ub_gm")
def _ub_to_gm(f: CppFunction, op: Operation) -> None:
    names = ("n_burst", "len_burst", "dst_stride", "src_stride")
    bursts, length, across, down = (f.text(op.group(n)[0]) for n in names)
    with looped(f, op, "ub_src", "gm_dst", "ubtoout") as (source, target):
        rest = f"{bursts}, {length}, 0, {across}, {down}"
        f.line(f"copy_ubuf_to_gm_align_v2({target}, {source}, 0, {rest});")


# -- copies under registers ---------------------------------------------------------------------------------

_GROUPED = {"outtoub": "pto.mte_gm_ub", "ubtoout": "pto.mte_ub_gm", "outtol1": "pto.mte_gm_l1"}


@handles("pto.set_loop_size_outtoub", "pto.set_loop_size_ubtoout", "pto.set_loop_size_outtol1")
def _set_loop_size(f: CppFunction, op: Operation) -> None:
    """Keep the sizes in a variable if another copy of the function needs the register for a while."""
    way = op.name.rpartition("_")[2]
    if not any(other.name == _GROUPED[way] for other in f.op.walk()):
        f.regular(op)
        return
    counts = [f"(uint64_t) {f.unary(v)}" for v in op.operands]
    variable = _register(f, way)
    f.line(f"{variable} = {counts[0] if len(counts) == 1 else f'{counts[1]} << 21 | {counts[0]}'};")
    f.line(f"set_loop_size_{way}({variable});")


@handles("pto.copy_gm_to_ubuf")
def _copy_gm_to_ubuf(f: CppFunction, op: Operation) -> None:
    """Emit a copy with pad value 0; the counts before and after a burst have no defined effect."""
    for name in ("left_padding", "right_padding"):
        if constant_of(op.group(name)[0]) != 0:
            f.unit.no_spelling(op, f"with '{name}'")
            return
    if constant_of(op.group("data_select_bit")[0]) != 0:
        f.line("set_mov_pad_val(0);")
    f.regular(op)
