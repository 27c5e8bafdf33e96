"""Synchronization and FIFOs: flags with run-time ids, signals between cores, pipe handles and their users."""

from __future__ import annotations

from ...ir.core import Operation, Value
from ...ir.facts import fifo_slots
from ...ir.printf import print_format
from ...ir.types import TokenType
from ...isa.enums import ENUMS, SYNC_OP_PIPE
from .function import CppFunction, handles
from .spelling import string
from .views import start_of

_SPLIT = ("TILE_NO_SPLIT", "TILE_UP_DOWN", "TILE_LEFT_RIGHT", "TILE_UP_DOWN_ODD", "TILE_LEFT_RIGHT_ODD")
_DIRECTION = {1: "DIR_C2V", 2: "DIR_V2C", 3: "DIR_BOTH"}


@handles("pto.barrier")
def _barrier(f: CppFunction, op: Operation) -> None:
    if "pto.auto_tail" in op.attrs:
        f.tail = op
        return
    pipe = str(op.attr("pipe"))
    if pipe == "PIPE_V" and f.unit.a5:  # A5 keeps the vector pipe in order and has no such barrier
        return
    f.line(f"pipe_barrier({pipe});")


@handles("pto.barrier_sync")
def _barrier_sync(f: CppFunction, op: Operation) -> None:
    pipe = SYNC_OP_PIPE[str(op.attr("op_type"))]
    if pipe != "PIPE_V" or not f.unit.a5:
        f.line(f"pipe_barrier({pipe});")


@handles("pto.fence.barrier_all")
def _fence(f: CppFunction, op: Operation) -> None:
    f.line("pipe_barrier(PIPE_ALL);")
    assert op.row is not None
    f.line(f"dsb({op.row.attr_index['scope'].words[str(op.attr('scope'))]});")


@handles("pto.cmo.cacheinvalid")
def _cacheinvalid(f: CppFunction, op: Operation) -> None:
    addr = op.get("addr")
    if addr is None:
        f.line("dcci((__gm__ void*) 0, ENTIRE_DATA_CACHE);")
    else:
        f.line(f"dcci((__gm__ void*) ({start_of(f, addr)}), SINGLE_CACHE_LINE);")


@handles("pto.record_event", "pto.wait_event")
def _event(f: CppFunction, op: Operation) -> None:
    source, target = (SYNC_OP_PIPE[str(op.attr(name))] for name in ("src_op", "dst_op"))
    call = "set_flag" if op.name == "pto.record_event" else "wait_flag"
    f.line(f"{call}({source}, {target}, {op.attr('event_id')});")


@handles("pto.set_flag_dyn", "pto.wait_flag_dyn")
def _flag_dyn(f: CppFunction, op: Operation) -> None:
    token = f.token()
    f.line(f"event_t {token} = (event_t) {f.unary(op.operands[0])};")
    call = op.name.removeprefix("pto.").removesuffix("_dyn")
    f.line(f"{call}({op.attr('src_pipe')}, {op.attr('dst_pipe')}, {token});")


@handles("pto.get_buf", "pto.rls_buf")
def _token(f: CppFunction, op: Operation) -> None:
    kind = op.attr("op_type")
    pipe = SYNC_OP_PIPE[str(kind)] if kind else str(op.attr("pipe"))
    given, mode = op.get("buf_id_dyn"), op.get("mode_dyn")
    number = f.text(given) if given is not None else str(op.attr("buf_id"))
    bit = f.text(mode) if mode is not None else str(op.attr("mode"))
    f.line(f"{op.name.removeprefix('pto.')}({pipe}, {number}, {bit});")


def _event_id(f: CppFunction, op: Operation) -> tuple[str, int | None]:
    """Return the id of a signal as text, and as a number if it is constant."""
    given = op.get("event_id_dyn")
    if given is not None:
        return f.text(given), None
    number = op.attr("event_id")
    if number is None:
        f.unit.no_spelling(op, "without 'event_id'")
        return "0", 0
    return str(number), number


@handles("pto.sync.set")
def _sync_set(f: CppFunction, op: Operation) -> None:
    pipe = str(op.attr("pipe"))
    text, number = _event_id(f, op)
    if not f.unit.a5:
        mode = op.attr("ffts_mode")
        _ffts(f, pipe, "FFTS_MODE_VAL" if mode in (None, 2) else str(mode), text, number)
        return
    f.line(f"set_intra_block({pipe}, {text});")
    if pipe == "PIPE_FIX":  # the second vector core has the ids from 16 on
        second = str(number + 16) if number is not None else f"{text} + 16"
        f.line(f"set_intra_block({pipe}, {second});")


def _ffts(f: CppFunction, pipe: str, mode: str, text: str, number: int | None) -> None:
    if number is not None:
        text = f.constant("int32_t", text)
    token = f.token()
    f.line(f"uint16_t {token} = getFFTSMsg({mode}, {text});")
    f.line(f"ffts_cross_core_sync({pipe}, {token});")


@handles("pto.set_cross_core")
def _set_cross_core(f: CppFunction, op: Operation) -> None:
    mode = op.attr("mode")
    _ffts(f, str(op.attr("pipe") or "PIPE_ALL"), "FFTS_MODE_VAL" if mode == 2 else str(mode),
          f.text(op.group("event_id")[0]), None)  # fmt: skip


@handles("pto.sync.wait")
def _sync_wait(f: CppFunction, op: Operation) -> None:
    text, _ = _event_id(f, op)
    f.line(f"wait_intra_block({op.attr('pipe')}, {text});" if f.unit.a5 else f"wait_flag_dev({text});")


@handles("pto.wait_flag_dev")
def _wait_flag_dev(f: CppFunction, op: Operation) -> None:
    f.line(f"wait_flag_dev({f.text(op.group('event_id')[0])});")


@handles("pto.set_intra_block", "pto.wait_intra_core")
def _intra(f: CppFunction, op: Operation) -> None:
    call = "set_intra_block" if op.name == "pto.set_intra_block" else "wait_intra_block"
    f.line(f"{call}({op.attr('pipe')}, {_event_id(f, op)[0]});")


@handles("pto.set_ffts")
def _set_ffts(f: CppFunction, op: Operation) -> None:
    token = f.token()
    f.line(f"uint64_t {token} = (uint64_t) {f.unary(op.operands[0])};")
    f.line(f"set_ffts_base_addr({token});")


@handles("pto.print")
def _print(f: CppFunction, op: Operation) -> None:
    f.line(f"cce::printf({string(print_format(op))}, {f.text(op.operands[0])});")


# -- FIFOs --------------------------------------------------------------------------------------------------


@handles("pto.initialize_l2l_pipe", "pto.initialize_l2g2l_pipe")
def _initialize(f: CppFunction, op: Operation) -> None:
    in_gm = op.name == "pto.initialize_l2g2l_pipe"
    mask = int(op.attr("dir_mask"))
    if mask not in _DIRECTION:
        f.unit.no_spelling(op, "with 'dir_mask'")
        return
    slots, local = slot_numbers(op)
    direction = _DIRECTION[mask] + ("_GM" if in_gm and f.unit.a5 and mask != 3 else "")
    nosplit = "true" if op.attr("nosplit") else "false"
    base, size = op.attr("flag_base") or 0, op.attr("slot_size")
    type = f"TPipe<{base}, Direction::{direction}, {size}, {slots}, {local}, {nosplit}>"
    result = op.results[0]
    f.pipes[result] = type
    gm = start_of(f, op.group("gm_addr")[0]) if in_gm else f.helper("__gm__ void *", "nullptr")
    first, second = (_buffer(f, op.group(name)) for name in ("local_addr", "peer_local_addr"))
    if mask == 2:
        first, second = second, first
    if result in f.crossing:
        f.unit.report(op, "PTO-E1302", "cannot emit the FIFO handle: another block uses it")
    token = f.token()
    f.name(result, token)
    f.line(f"auto {token} = {type}({gm}, {first}, {second});")


def slot_numbers(op: Operation) -> tuple[int, int]:
    """Return the slots of a FIFO, and the slots in the memory of a consumer."""
    slots = fifo_slots(op)
    return slots, (op.attr("local_slot_num") or slots) if op.name == "pto.initialize_l2g2l_pipe" else 2


def _buffer(f: CppFunction, given: list[Value]) -> str:
    return f.text(given[0]) if given else f.constant("int32_t", "0")


def _split(op: Operation) -> str:
    return f"TileSplitAxis::{_SPLIT[int(op.attr('split') or 0)]}"


@handles("pto.tpush", "pto.tpop", "pto.talloc")
def _transfer(f: CppFunction, op: Operation) -> None:
    name = op.name.removeprefix("pto.")
    entry = op.group("entry" if name == "talloc" else "tile")[0]
    pipe = op.group("pipe_handle")[0]
    if name == "tpush" and _fixpipe(op):
        _push_through_fixpipe(f, op)
        return
    types = f"{f.type_of(pipe)}, {f.type_of(entry)}, {_split(op)}"
    values = [pipe, entry, *(op.group("aiv_subblockid") if name != "talloc" else [])]
    f.line(f"{name.upper()}<{types}>({', '.join(f.text(v) for v in values)});")


_FIXPIPE = ("quant_mode", "reluPreMode", "layout_mode", "stPhase")


def _fixpipe(op: Operation) -> list[str]:
    """Return the non-default conversions of a push from the accumulator."""
    assert op.row is not None
    return [name for name in _FIXPIPE if op.attr(name) != op.row.attr_index[name].default]


def _push_through_fixpipe(f: CppFunction, op: Operation) -> None:
    """Emit the configuration in place of the split, so that the tile goes out whole."""
    if op.attr("split") or op.group("aiv_subblockid"):
        f.unit.no_spelling(op, f"of a split push with '{_fixpipe(op)[0]}'")
        return
    tile, pipe = op.group("tile")[0], op.group("pipe_handle")[0]
    relu, phase = (ENUMS[e].spelling(str(op.attr(n))) for e, n in
                   (("relu_pre_mode", "reluPreMode"), ("st_phase", "stPhase")))  # fmt: skip
    layout, quant = op.attr("layout_mode"), op.attr("quant_mode")
    config = f"FixpipeParams<LayoutMode_t::{layout}, QuantMode_t::{quant}, {relu}, {phase}>"
    f.line(f"TPUSH<{f.type_of(pipe)}, {f.type_of(tile)}, {config}>({f.text(pipe)}, {f.text(tile)});")


@handles("pto.tfree")
def _free(f: CppFunction, op: Operation) -> None:
    values = [op.group("pipe_handle")[0], *op.group("entry")]
    types = ", ".join(f.type_of(v) for v in values)
    f.line(f"TFREE<{types}, {_split(op)}>({', '.join(f.text(v) for v in values)});")


@handles("pto.reserve_buffer")
def _reserve(f: CppFunction, op: Operation) -> None:
    """Replace a reserved buffer with a constant base by that number."""
    base = op.attr("base")
    if base is None:
        f.unit.no_spelling(op)
        return
    f.name(op.results[0], f.constant("int32_t", str(base), op.loc))


@handles("pto.tsync")
def _tsync(f: CppFunction, op: Operation) -> None:
    """Emit a call with events; where operands are data instead of events, wait for every pipe."""
    given = op.attr("op")
    values = ", ".join(f.text(v) for v in op.operands)
    if given is not None:
        f.line(f"TSYNC<{ENUMS['op'].spelling(str(given))}>();")
    elif all(isinstance(v.type, TokenType) for v in op.operands):
        f.line(f"TSYNC({values});")
    else:
        f.line(f"pipe_barrier(PIPE_ALL); // TSYNC({values})")
