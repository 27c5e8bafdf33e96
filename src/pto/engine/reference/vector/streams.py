"""Unaligned streams: the state that an alignment register carries, and the special register AR.

A load state has the block in which the next access starts. A store state has the pending bytes of an
incomplete block: complete blocks go to memory at once, the rest with the flush. A stream without a flush
loses the pending bytes, as on hardware.
"""

from __future__ import annotations

import numpy as np

from ....isa.dtypes import DTYPES
from ...elements import Array, code_dtype
from ...memory import Pointer
from ...registers import WIDTH, Align, Register
from ..instr import Instr
from ..registry import executor
from .lanes import bits, put_raw, raw, width
from .memory import BLOCK, addresses, aligned, legal, post_update


def _become(state: Align, kind: str, position: Pointer, pending: int) -> None:
    """Set the fields of a new state, only in the first execution: sanitizers run an instruction again with
    other values for undefined data."""
    if not state.kind:
        state.kind, state.position, state.pending = kind, position, pending


def _bytes_at(pointer: Pointer, offset: int) -> Pointer:
    return pointer.at(offset, "u8")


def _to_element(i: Instr, at: Pointer) -> None:
    aligned(i, at, DTYPES[at.dtype].bits // 8)


# -- loads -------------------------------------------------------------------------------------------------


@executor("begin loads")
def vldas(i: Instr) -> None:
    source = i.args["source"]
    _to_element(i, source)
    block = _bytes_at(source, source.offset // BLOCK * BLOCK)
    put_raw(i, "state", i.raw(block, (1, BLOCK))[0])
    _become(i.args["state"], "load", block, BLOCK)


@executor("next load")
def vldus(i: Instr) -> Pointer | None:
    source, state = i.args["source"], i.args["state"]
    _to_element(i, source)
    r, out = i.args["r"], i.args["state_out"]
    start = source.offset
    block = start // BLOCK * BLOCK
    _primed(i, state, source, block)
    head = start - block
    if head:
        own = raw(i, "state") if state.pending else i.raw(_bytes_at(source, block), (1, BLOCK))[0]
        rest = i.raw(_bytes_at(source, block + BLOCK), (1, WIDTH))[0]
        found = np.concatenate((own[head:], rest[: WIDTH - BLOCK + head])).view(code_dtype(r.dtype))
        # whole elements in memory have a shadow; the bytes of the state have none
        loaded = found if i.exact else i.raw(source, (1, r.lanes))[0]
        tail = rest[WIDTH - BLOCK :].copy()
        put_raw(i, "r", loaded)
        put_raw(i, "state_out", tail)
    else:
        put_raw(i, "r", i.raw(source, (1, r.lanes))[0])
    _become(out, "load", _bytes_at(source, block + WIDTH), BLOCK if head else 0)
    if not post_update(i, 2):
        return None
    return source.moved(int(i.args["increment"]) if i.has("increment") else r.lanes)


def _primed(i: Instr, state: Align, source: Pointer, block: int) -> None:
    i.require(state.kind == "load", f"expects a state that vldas gave, got {_shown(state)}")
    position = state.position
    assert position is not None
    if position.buffer is not source.buffer or position.offset != block:
        i.require(
            False,
            f"expects a source in the block that the state was primed for, {position.offset}.."
            f"{position.offset + BLOCK}, got {source.offset}; prime a new state with vldas",
        )


def _shown(state: Align) -> str:
    return {"load": "that of a load stream", "store": "that of a store stream"}.get(
        state.kind, "an empty one"
    )


# -- stores ------------------------------------------------------------------------------------------------


@executor("empty stream")
def init_align(i: Instr) -> None:
    """Leave the register as it was made: nothing pending, no position."""


def append(i: Instr, state: str, out: str, at: Pointer, found: Array, codes: Array) -> None:
    """Append elements to a store stream at `at`: `found` to be moved, `codes` as bit patterns. Complete
    blocks are written, the rest goes to the register `out`."""
    before, after = i.args[state], i.args[out]
    i.require(before.kind != "load", f"expects the state of a store stream, got {_shown(before)}")
    pending = before.pending
    if pending:
        _continues(i, before, at, "the stream to go on")
    waiting, start, end = codes.view(np.uint8), at.offset - pending, at.offset + codes.nbytes
    if pending:
        waiting = np.concatenate((_held(i, state), waiting))
    whole = max(0, end // BLOCK * BLOCK - start)
    if whole and i.exact:
        i.store_raw(_bytes_at(at, start), waiting[None, :whole])
    elif whole:  # elements keep their shadow, the bytes of the state have none
        i.store_raw(_bytes_at(at, start), waiting[None, :pending])
        i.store_raw(at, found[None, : (whole - pending) // codes.itemsize])
    tail = waiting[whole:]
    if tail.size and i.port.plain:
        after.array = np.concatenate((tail, np.zeros(BLOCK - tail.size, np.uint8)))
    elif tail.size:
        i.store_raw(out, tail[None])
    _become(after, "store", _bytes_at(at, end), tail.size)


def _held(i: Instr, state: str) -> Array:
    """Return the pending bytes."""
    align = i.args[state]
    return align.array[: align.pending] if i.port.plain else i.raw(state, (1, align.pending))[0]


def flush(i: Instr, at: Pointer) -> None:
    """Write the pending bytes before `at`; the state is consumed."""
    state = i.args["state"]
    i.require(state.kind != "load", f"expects the state of a store stream, got {_shown(state)}")
    if state.pending:
        _continues(i, state, at, "a flush at the end of its stream,")
        i.store_raw(_bytes_at(at, at.offset - state.pending), _held(i, "state")[None])


def _continues(i: Instr, state: Align, at: Pointer, what: str) -> None:
    """Stop if a stream with pending bytes goes on, or ends, at another address than its last append."""
    position = state.position
    assert position is not None
    if position.buffer is not at.buffer or position.offset != at.offset:
        i.require(
            False,
            f"expects {what} at byte {position.offset}, where {state.pending} bytes are pending, "
            f"got {at.offset}",
        )


def _first(i: Instr, count: int) -> tuple[Array, Array]:
    """Return the first elements of `value`, to be moved and as bit patterns."""
    codes = np.ascontiguousarray(bits(i, "value")[:count])
    return (codes if i.exact else raw(i, "value")[:count]), codes


@executor("append count")
def vstus(i: Instr) -> Pointer | None:
    at = i.args["position"] if i.has("position") else i.args["base"]
    count, lanes = int(i.args["count"]), i.args["value"].lanes
    i.require(0 <= count <= lanes, f"expects count in 0..{lanes}, got {count}")
    _to_element(i, at)
    append(i, "state", "state_out", at, *_first(i, count))
    if not post_update(i, 1):
        return None
    return at if i.attr("mode") == "NO_POST_UPDATE" else at.moved(count)


@executor("append")
def vstu(i: Instr) -> int | Pointer:
    position, lanes = i.args["position"], i.args["value"].lanes
    is_pointer = isinstance(position, Pointer)
    at = position if is_pointer else i.args["base"].moved(int(position))
    post = i.attr("mode") == "POST_UPDATE"
    if i.has("mode_value"):
        mode = int(i.args["mode_value"])
        i.require(mode in (0, 1), f"expects mode 0 or 1, got {mode}")
        post = mode == 1
    _to_element(i, at)
    append(i, "state", "state_out", at, *_first(i, lanes))
    if not post:
        return position
    return position.moved(lanes) if is_pointer else int(position) + lanes


@executor("end of stream")
def vsta(i: Instr) -> Pointer | None:
    """End a stream; the form that returns an advanced pointer ends it at its pointer operand."""
    at, further = addresses(i, "dest", 0)
    flush(i, at)
    return further


# -- the AR register ---------------------------------------------------------------------------------------


def _special(i: Instr, name: str) -> Register:
    return i.core.special_register(name, "i64")


def _read(i: Instr, name: str) -> int:
    register = _special(i, name)
    return int(register.array[0] if i.port.plain else i.raw(register, (1, 1))[0, 0])


def _at_register(i: Instr, pointer: str) -> tuple[Pointer, int]:
    """Return a pointer advanced by AR bytes, and AR."""
    base, ar = i.args[pointer], _read(i, "AR")
    return base.at(base.offset + ar), ar


@executor("append squeezed")
def vstur(i: Instr) -> None:
    at, ar = _at_register(i, "base")
    squeezed = _read(i, "SQZN")
    i.require(squeezed <= WIDTH, f"expects SQZN to be at most {WIDTH}, got {squeezed}")
    size = width(i, "value")
    if at.offset % size or squeezed % size:  # squeezed as elements of another width
        codes = np.ascontiguousarray(bits(i, "value")).view(np.uint8)[:squeezed]
        append(i, "state", "state_out", _bytes_at(at, at.offset), codes, codes)
    else:
        append(i, "state", "state_out", at, *_first(i, squeezed // size))
    if i.attr("mode") == "POST_UPDATE":
        i.store_raw(_special(i, "AR"), np.array([[ar + squeezed]], np.int64))


@executor("end of stream by register")
def vstar(i: Instr) -> None:
    flush(i, _at_register(i, "dest")[0])


@executor("clear address register")
def sprclr(i: Instr) -> None:
    i.store_raw(_special(i, "AR"), np.zeros((1, 1), np.int64))


@executor("store address register")
def store_special(i: Instr) -> Pointer | None:
    """Store AR; the offset counts words in the immediate form, bytes in the other."""
    dest = i.args["dest"]
    scale = 4 if i.kind == "words" else 1
    further = dest.at(dest.offset + int(i.args["offset"]) * scale)
    returns = post_update(i, 0)
    at = dest if returns else further
    legal(i, at, 4)
    i.store_raw(at, np.array([[_read(i, "AR") & 0xFFFFFFFF]], np.uint32))
    return further if returns else None
