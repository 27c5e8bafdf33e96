"""Cube instructions on pointers in C++: steps and strides in the units of the calls, registers before them.

    pto.mte_l1_l0a %a, %l0a, %m, %k        load_cbuf_to_ca(l0a, a, 0, 0, (m + 15) / 16, (k + 15) / 16, ..);
    pto.mad %l0a, %l0b, %l0c, ..           mad(l0c, l0a, l0b, m, k, n, 0, false, false, true);

Parameters without an argument are in registers (write-backs of L0C) or bits of CTRL (saturation, TF32), which
are restored afterwards. An instruction with its own saturation clears bit 60.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.core import Operation, Value, constant_of
from ...ir.types import PtrType
from ...isa.dtypes import DTYPES
from ...isa.tables.cube import QUANT_NUMBERS, RELU_NUMBERS, UNIT_FLAG_NUMBERS
from .dma import bits_of_scalar, dtype_of, looped, pointer
from .function import CppFunction, handles
from .spelling import QUALIFIER
from .template import template

#: A constant, or C++ that computes it.
Number = int | str


def _on_cube(*names: str) -> Callable[[Callable[[CppFunction, Operation], None]], None]:
    """Register an emitter for instructions whose calls have this form only on an A5."""

    def register(emit: Callable[[CppFunction, Operation], None]) -> None:
        def checked(f: CppFunction, op: Operation) -> None:
            if f.unit.other_registers(op):
                f.unit.no_spelling(op)
            else:
                emit(f, op)

        handles(*names)(checked)

    return register


def _number(f: CppFunction, value: Value | None) -> Number:
    if value is None:
        return 0
    known = constant_of(value)
    return int(known) if known is not None else f.operand(value)


def _blocks(n: Number, size: int, each: int = 1) -> Number:
    """Return the number of blocks of `size` that hold n, times `each`."""
    if isinstance(n, int):
        return -(-n // size) * each
    up = n if size == 1 else f"({n} + {size - 1}) / {size}"
    return up if each == 1 else f"{up} * {each}"


def _flag(value: object) -> str:
    return "true" if value else "false"


def _only_if(f: CppFunction, op: Operation, holds: bool | str, what: str) -> bool:
    """Refuse a case that the call cannot express, now or at run time; `what` describes the case."""
    if isinstance(holds, bool):
        if not holds:
            f.unit.no_spelling(op, what)
        return holds
    if f.unit.checked:
        f.line(f'pto::detail::check_spelled({holds}, "{op.name.removeprefix("pto.")}", "{what}");')
    return True


# -- products -----------------------------------------------------------------------------------------------


@_on_cube(*(f"pto.{name}{rest}" for name in ("mad", "mad_mx") for rest in ("", "_acc", "_bias")))
def _mad(f: CppFunction, op: Operation) -> None:
    row = op.row
    assert row is not None
    chosen, left = template(row, f.unit.profile.isa).choose(op)
    if chosen is None:
        f.unit.no_spelling(op, left)
        return
    dst, lhs, rhs, *sizes = (op.group(n)[0] for n in ("dst", "lhs", "rhs", "m", "k", "n"))
    into = f.text(dst)
    if bias := op.get("bias") if "bias" in row.operand_index else None:
        word = f"((uint64_t) {f.unary(dst)} & 0xFFFFFFFF) | (uint64_t) {f.unary(bias)} << 32"
        into = f"({f.types(dst.type)}) ({word})"
    starts = "true, false" if bias else _starts(op)
    flags = f"{UNIT_FLAG_NUMBERS[op.attr('unit_flag')]}, {_flag(op.attr('disable_gemv'))}, {starts}"
    numbers = ", ".join(f.text(v) for v in sizes)
    call = "mad_mx" if "mx" in op.name else "mad"
    saved = _set_modes(f, op, dtype_of(lhs))
    f.line(f"{call}({into}, {f.text(lhs)}, {f.text(rhs)}, {numbers}, {flags});")
    if saved:
        f.line(f"set_ctrl({saved});")


def _starts(op: Operation) -> str:
    assert op.row is not None
    onto = op.row.operands[op.row.operand_index["dst"]].reads
    return "false, false" if onto else "false, true"


def _set_modes(f: CppFunction, op: Operation, dtype: str) -> str:
    """Set the bits of CTRL for a product; return the variable with the old bits, if any change."""
    bits: dict[int, bool] = {}
    tf32, sat = op.attr("tf32_mode") if "mx" not in op.name else None, op.attr("sat_mode")
    if tf32 or sat:
        bits |= {60: False, 48: sat != "sat"}
    if tf32:
        bits |= {46: True, 47: tf32 == "round_away"}
    elif sat and dtype == "f32" and f.unit.profile.isa == "cpu":
        bits |= {46: False}
    if dtype == "hif8":
        bits |= {45: True}
    if op.attr("n_dir"):
        bits |= {51: True}
    return _with_ctrl(f, bits)


def _with_ctrl(f: CppFunction, bits: dict[int, bool]) -> str:
    if not bits:
        return ""
    word = saved = _saved_ctrl(f)
    for bit, value in bits.items():
        word = f"sbitset{int(value)}({word}, {bit})"
    f.line(f"set_ctrl({word});")
    return saved


def _saved_ctrl(f: CppFunction) -> str:
    saved = f.token()
    f.line(f"uint64_t {saved} = get_ctrl();")
    return saved


# -- copies into L1 -----------------------------------------------------------------------------------------


@_on_cube("pto.mte_gm_l1")
def _gm_to_l1(f: CppFunction, op: Operation) -> None:
    names = ("count", "len_burst", "src_stride", "dst_stride")
    bursts, length, down, across = (f.text(op.group(n)[0]) for n in names)
    with looped(f, op, "src", "dst", "outtol1") as (source, target):
        rest = f"{bursts}, {length}, 0, 0, false, 0, {down}, {across}"
        f.line(f"copy_gm_to_cbuf_align_v2({target}, {source}, 0, {rest});")


@_on_cube("pto.mte_gm_l1_frac")
def _fractals(f: CppFunction, op: Operation) -> None:
    mode, src, dst = str(op.attr("mode")), op.group("src")[0], op.group("dst")[0]
    columns: Number = f.text(op.group("d_value")[0])
    if DTYPES[dtype_of(src)].bits == 4:
        if mode != "nd2nz":
            f.unit.no_spelling(op, "for elements of 4 bits by columns")
            return
        columns = _blocks(_number(f, op.group("d_value")[0]), 2)
    counts = ("group_count", "dst_loop2_stride", "dst_loop3_stride", "dst_loop4_stride")
    words = [f"(uint64_t) {f.unary(op.group(n)[0])}" for n in counts]
    word = " | ".join(f"{w} << {16 * k}" if k else w for k, w in enumerate(words))
    f.line(f"set_mte2_nz_para({word});")
    inner, cache, rows, small = (
        f.text(op.group(n)[0]) for n in ("src_inner_stride", "l2_cache_ctrl", "n_value", "smallc0_en")
    )
    outer = op.get("src_outer_stride")
    rest = f"{inner}, {cache}, {rows}, {columns}, {f.text(outer) if outer is not None else 0}, {small}"
    f.line(f"copy_gm_to_cbuf_multi_{mode}({pointer(f, dst)}, {pointer(f, src)}, 0, {rest});")


# -- copies out of L1 ---------------------------------------------------------------------------------------


@_on_cube("pto.mte_l1_ub")
def _l1_to_ub(f: CppFunction, op: Operation) -> None:
    """Emit counts of blocks and gaps, as the hardware reads them."""
    rest = ", ".join(f.text(op.group(n)[0]) for n in ("count", "len_burst", "src_stride", "dst_stride"))
    with looped(f, op, "src", "dst") as (source, target):
        f.line(f"copy_cbuf_to_ubuf({target}, {source}, false, {rest});")


@_on_cube("pto.mte_l1_bt")
def _bias(f: CppFunction, op: Operation) -> None:
    """Emit values in blocks of 32 bytes of the source."""
    src, dst = op.group("src")[0], op.group("dst")[0]
    each = 256 // DTYPES[dtype_of(src)].bits
    length, before, behind = (_number(f, op.group(n)[0]) for n in ("len_burst", "src_gap", "dst_gap"))
    bursts, gaps = _number(f, op.group("count")[0]), {"src_gap": before, "dst_gap": behind}
    for name, gap in gaps.items():
        fits = _whole_blocks(bursts, length, gap, each)
        if not _only_if(f, op, fits, f"where 'len_burst' and '{name}' are not multiples of {each}"):
            return
    blocks = _blocks(length, each)
    apart = ", ".join(_gap(length, gap, blocks, each) for gap in gaps.values())
    converts = int(dtype_of(src) == "f16" and dtype_of(dst) == "f32")
    head = f"(uint64_t) {f.unary(dst)}, {f.text(src)}, {converts}, {f.text(op.group('count')[0])}"
    f.line(f"copy_cbuf_to_bt({head}, {blocks}, {apart});")


def _whole_blocks(bursts: Number, length: Number, gap: Number, each: int) -> bool | str:
    """Return True if bursts are whole blocks apart; a single burst always is."""
    if isinstance(bursts, int) and bursts <= 1:
        return True
    if isinstance(length, int) and isinstance(gap, int):
        return (length + gap) % each == 0 or (f"{bursts} <= 1" if isinstance(bursts, str) else False)
    return f"{bursts} <= 1 || ({length} + {gap}) % {each} == 0"


def _gap(length: Number, gap: Number, blocks: Number, each: int) -> str:
    """Return the number of blocks between bursts that are `length` + `gap` values apart, rounded up like the
    blocks of a burst.
    """
    if isinstance(length, int) and isinstance(gap, int) and isinstance(blocks, int):
        return str(-(-(length + gap) // each) - blocks)
    return f"({length} + {gap} + {each - 1}) / {each} - {blocks}"


@_on_cube("pto.mte_l1_fb")
def _parameters(f: CppFunction, op: Operation) -> None:
    src, dst = (pointer(f, op.group(n)[0]) for n in ("src", "dst"))
    rest = ", ".join(f.text(op.group(n)[0]) for n in ("count", "len_burst", "src_gap", "dst_gap"))
    f.line(f"copy_cbuf_to_fbuf({dst}, {src}, {rest});")


# -- operands -----------------------------------------------------------------------------------------------


def _start(f: CppFunction, op: Operation, name: str, unit: int) -> Number | None:
    """Return the start of a window in units of the call; report and return None if it is not a multiple."""
    value = op.get(f"{name}_start")
    at = _number(f, value)
    whole = at % unit == 0 if isinstance(at, int) else f"{at} % {unit} == 0"
    if not _only_if(f, op, whole, f"where '{name}_start' is not a multiple of {unit}"):
        return None
    return at // unit if isinstance(at, int) else f"{at} / {unit}"


@_on_cube("pto.mte_l1_l0a", "pto.mte_l1_l0b")
def _operand(f: CppFunction, op: Operation) -> None:
    """Emit an operand: L1 has its lines as rows or, transposed, has k as rows."""
    src, dst = op.group("src")[0], op.group("dst")[0]
    line, transpose = "m" if op.name.endswith("l0a") else "n", bool(op.attr("transpose"))
    bits = DTYPES[dtype_of(src)].bits
    lanes = 256 // bits
    lines, depth = (_number(f, op.group(n)[0]) for n in (line, "k"))
    rows, cols = ("k", line) if transpose else (line, "k")
    starts = [_start(f, op, rows, 16), _start(f, op, cols, lanes)]
    if None in starts:
        return
    if transpose:  # a transpose moves whole squares of elements
        square = max(16, lanes)
        down, high = (_blocks(n, square, square // 16) for n in (depth, lines))
        sizes = [down, _blocks(lines, square, square // lanes), down, high]
    else:
        high = _blocks(lines, 16)
        sizes = [high, _blocks(depth, lanes), high, high]
    call = f"load_cbuf_to_c{op.name[-1]}{'_s4' if bits == 4 else ''}"
    numbers = ", ".join(str(n) for n in (*starts, *sizes))
    f.line(f"{call}({f.text(dst)}, {f.text(src)}, {numbers}, {_flag(transpose)});")


@_on_cube("pto.mte_l1_l0a_mx", "pto.mte_l1_l0b_mx")
def _scales(f: CppFunction, op: Operation) -> None:
    """Emit boxes of 16 lines and 64 elements of k."""
    src, dst = op.group("src")[0], op.group("dst")[0]
    line = "m" if "l0a" in op.name else "n"
    starts = [_start(f, op, line, 16), _start(f, op, "k", 64)]
    if None in starts:
        return
    boxes = _blocks(_number(f, op.group("k")[0]), 64)
    sizes = (_blocks(_number(f, op.group(line)[0]), 16), boxes, boxes, boxes)
    numbers = ", ".join(str(n) for n in (*starts, *sizes))
    assert isinstance(src.type, PtrType)
    source = f"({QUALIFIER[src.type.space]} void*) {f.unary(src)}"
    call = f"load_cbuf_to_c{op.name[-4]}_mx"
    f.line(f"{call}((uint64_t) {f.unary(dst)} >> 4, {source}, {numbers});")


# -- write-backs of L0C
# ----------------------------------------------------------------------------------------


@_on_cube("pto.mte_l0c_l1", "pto.mte_l0c_gm", "pto.mte_l0c_ub")
def _write_back(f: CppFunction, op: Operation) -> None:
    to = {"l1": "cbuf", "gm": "gm", "ub": "ub"}[op.name.rpartition("_")[2]]
    if not _set_parameters(f, op):
        return
    saved = _set_saturation(f, op)
    atomic = (op.attr("atomic_type"), op.attr("atomic_op")) if to == "gm" else (None, None)
    if not saved and atomic[0] is not None:
        saved = _saved_ctrl(f)
    for word in atomic:
        if word is not None:
            f.line(f"set_atomic_{word}();")
    src, dst = op.group("src")[0], op.group("dst")[0]
    n, m, across, down = (f.text(op.group(name)[0]) for name in ("n", "m", "dst_stride", "src_stride"))
    layout, split = op.attr("layout"), op.get("layout_arg")
    quant = QUANT_NUMBERS[str(op.attr("quant_mode"))] if op.attr("quant_mode") else 0
    narrow = "false"
    if layout == "nz2nz" and split is not None:
        narrow = f"{f.operand(split)} != 0"
    head = f"{f.text(dst)}, {f.text(src)}, {f.text(op.group('sid')[0]) if to == 'gm' else 0}, {n}, {m}"
    relu, unit = RELU_NUMBERS[op.attr("relu_mode") or "no_relu"], UNIT_FLAG_NUMBERS[op.attr("unit_flag")]
    how = f"{_target(f, op, to)}, {int(op.get('clip') is not None)}, {unit}, {quant}, {relu}"
    later = "0, 0, false, false, 0, false, false, false, false, false"
    rest = f"{how}, {narrow}, {_flag(layout == 'nz2nd')}, {later}, {_flag(layout == 'nz2dn')}"
    four = "_s4" if DTYPES[dtype_of(dst)].bits == 4 else ""
    f.line(f"copy_matrix_cc_to_{to}{four}({head}, {across}, {down}, {rest});")
    if saved:
        f.line(f"set_ctrl({saved});")


def _target(f: CppFunction, op: Operation, to: str) -> str:
    """Return the cache mode of the data; for UB, the vector core that gets it."""
    if to == "gm":
        return f.text(op.group("l2_cache_ctrl")[0])
    if to == "cbuf":
        return "0"
    which = op.get("sub_blockid")
    halves = {None: 0, "split_m": 1, "split_n": 2}[op.attr("dst_mode")]
    return f"{halves}, {f.text(which) if which is not None else 'false'}"


def _set_saturation(f: CppFunction, op: Operation) -> str:
    sat = op.attr("sat_mode")
    if sat is None:
        return ""
    return _with_ctrl(f, {60: False, 48: sat == "nosat", 50: bool(op.attr("preserve_nan"))})


def _set_parameters(f: CppFunction, op: Operation) -> bool:
    """Set the registers of a write-back; report and return False if they cannot hold its parameters."""
    quant, relu, clip = (op.get(name) for name in ("quant_payload", "relu_payload", "clip"))
    for value, name in ((quant, "quant_payload"), (relu, "relu_payload")):
        if value is not None and isinstance(value.type, PtrType) and dtype_of(value) != "f32":
            f.unit.no_spelling(op, f"with '{name}' of {dtype_of(value)}")
            return False
    dst = dtype_of(op.group("dst")[0])
    if clip is not None and dst != "f16" and DTYPES[dtype_of(clip)].is_float:
        f.unit.no_spelling(op, f"with 'clip' of {dtype_of(clip)}")
        return False
    _set_channels(f, quant, relu)
    if quant is not None and not isinstance(quant.type, PtrType) and op.attr("quant_mode"):
        sign = " | 1ull << 46" if dst == "i8" else ""
        f.line(f"set_quant_pre({bits_of_scalar(f, quant, widen=True)}{sign});")
    if relu is not None and not isinstance(relu.type, PtrType):
        f.line(f"set_relu_alpha({bits_of_scalar(f, relu, widen=True)});")
    if clip is not None:
        f.line(f"set_fix_clip_relu({_clip_bits(f, clip)});")
    _set_loops(f, op)
    return True


def _clip_bits(f: CppFunction, clip: Value) -> str:
    """Return a bound as 16 bits with a sign; larger bounds have no effect."""
    dtype, known = dtype_of(clip), constant_of(clip)
    if DTYPES[dtype].is_float:
        return bits_of_scalar(f, clip)
    if known is not None:
        return hex(min(int(known), 0x7FFF) & 0xFFFF)
    most = f"{f.operand(clip)} > 32767 ? 32767 : {f.operand(clip)}" if dtype == "u16" else f.text(clip)
    return f"(uint16_t) ({most})"


def _set_channels(f: CppFunction, quant: Value | None, relu: Value | None) -> None:
    """Set the addresses of column parameters in FB: in units of 128 and 64 bytes."""
    parts: list[str] = []
    if quant is not None and isinstance(quant.type, PtrType):
        parts.append(f"(uint64_t) {f.unary(quant)} >> 7 << 8")
    if relu is not None and isinstance(relu.type, PtrType):
        at = f"(uint64_t) {f.unary(relu)}"
        if f.unit.checked:  # an address of this machine
            at = f"(uint64_t) pto::detail::on_chip_offset({f.text(relu)}, pto::TileType::Scaling)"
        parts.append(f"({at} >> 6 & 0xFF)")
    if parts:
        f.line(f"set_fpc({' | '.join(parts)});")


def _set_loops(f: CppFunction, op: Operation) -> None:
    count = op.get("loop3_count")
    word = "1"
    if count is not None:
        source, target = (f.unary(op.group(f"loop3_{side}_stride")[0]) for side in ("src", "dst"))
        word = f"(uint64_t) {f.unary(count)} | (uint64_t) {source} << 16 | (uint64_t) {target} << 32"
    f.line(f"set_loop3_para({word});")
    if op.attr("layout") == "nz2dn":
        f.line(f"set_channel_para((uint64_t) {f.unary(op.group('layout_arg')[0])} << 48);")
