"""Accesses through pointers: copies by DMA, and loads and stores of vector registers.

Inside a vecscope, loads and stores are also events of two more pipes, which only barriers of memory order
(see `sanitize/vecscope.py`). Registers that depend on undefined data are not told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.reference.dma import COUNT_BITS, GM_BITS, UB_BITS
from ..engine.reference.vector.memory import BLOCK, load_mode, pair_mode, store_mode
from ..ir.core import Operation, Value
from ..ir.facts import in_global, pipe_of
from ..isa.tables.dma import BURST_BITS
from ..symbolic.terms import Int, both, either, eq, is_integer, mod
from .contents import Filled
from .context import WalkedCore
from .extents import span
from .findings import ACCESSES
from .order import AccessOrder
from .state import State, TermAccess
from .values import PointerTerm, TermPlace
from .writes import defined, written

Handler = Callable[[WalkedCore, AccessOrder, Operation, State], str]
HANDLERS: dict[str, Handler] = {}


def handler(*algorithms: str) -> Callable[[Handler], Handler]:
    """Register a handler, which returns why an instruction is not followed, or nothing."""

    def register(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(algorithms, function))
        return function

    return register


def follow(walk: WalkedCore, order: AccessOrder, op: Operation, s: State) -> bool:
    """Follow an instruction whose operands are pointers; return whether it has a handler."""
    assert op.row is not None
    found = HANDLERS.get(op.row.algorithm.partition(":")[0])
    if found is not None and (why := found(walk, order, op, s)):
        walk.skip(op, why, ACCESSES, s)
    return found is not None


def _filled(place: TermPlace, pointer: PointerTerm) -> Filled:
    size = (1, place.high - place.low)
    return Filled(("bytes", place.root), place, (0, place.low), size, pointer.storage, True)


# -- copies ------------------------------------------------------------------------------------------------


@handler("copy in", "copy out")
def _copy(walk: WalkedCore, order: AccessOrder, op: Operation, s: State) -> str:
    into = in_global(op.operands[0].type)
    source, target = (s.env[v] for v in op.operands[:2])
    length, *inner = (walk.value(op, s, n) for n in ("len_burst", "n_burst", "src_stride", "dst_stride"))
    outer = [s.env[v] for v in op.group("loop")]
    numbers = [length, *inner, *outer]
    if "pad_value" in op.row.operand_index and op.get("pad_value") is not None:  # type: ignore[union-attr]
        return "padding is not followed"
    if not isinstance(source, PointerTerm) or not isinstance(target, PointerTerm):
        return "its pointers are not followed"
    if not all(map(is_integer, numbers)):
        return "its numbers are not followed"
    claim, burst = walk.claim(op, s), BURST_BITS[walk.profile.isa]
    sides = (GM_BITS, UB_BITS) if into else (UB_BITS, GM_BITS)
    for n, x in enumerate(numbers):
        bits = burst if n < 2 else (COUNT_BITS, *sides)[(n - 1) % 3]
        claim(both(x >= 0, x < 1 << bits), f"a number does not fit {bits} bits")
    if into:
        claim(either(inner[0] <= 1, inner[2] >= length), "rows overlap")
    if walk.profile.behaviour.aligned_copies:
        on_chip = target if into else source
        claim(eq(mod(on_chip.offset, BLOCK), 0), f"the address is not a multiple of {BLOCK}")
    clauses = [tuple(outer[n : n + 3]) for n in range(0, len(outer), 3)]
    loops = [*clauses[::-1], tuple(inner)]  # outermost first
    some = (length > 0, *(count > 0 for count, _, _ in loops))
    places: list[TermPlace] = []
    for pointer, side in ((source, 1), (target, 2)):
        last: Int = sum(((loop[0] - 1) * loop[side] for loop in loops), 0)
        places.append(span(walk, op, s, pointer, 0, last + length, some))
    accesses = tuple(TermAccess(place, n == 1, 0) for n, place in enumerate(places))
    order.access(op, s, pipe_of(op, walk.profile), accesses)
    if into:
        dense = all(loop[0] == 1 for loop in loops[:-1]) and (inner[0] == 1 or inner[2] == length)
        new = _filled(places[1], target) if dense else None
        written(walk, s, places[1], target.storage, new, True)
    else:
        defined(walk, op, s, op.operands[0].name, _filled(places[0], source))
    return ""


# -- vector registers --------------------------------------------------------------------------------------


@handler("load lanes", "load two registers", "store lanes")
def _lanes(walk: WalkedCore, order: AccessOrder, op: Operation, s: State) -> str:
    assert op.row is not None
    kind, writes = op.row.algorithm, op.row.algorithm == "store lanes"
    name = "dest" if writes else "source"
    at, offset = walk.value(op, s, name), walk.value(op, s, "offset")
    registers = {"load lanes": 1, "load two registers": 2, "store lanes": 0}[kind]
    if not isinstance(at, PointerTerm) or isinstance(at.root, Value) or not is_integer(offset):
        return "its address is not followed"
    if len(op.results) > registers:
        return "an advanced pointer is not followed"
    if not order.inside:
        return "it is outside of a vecscope"
    held: Any = op.get("value").type if writes else op.results[0].type  # type: ignore[union-attr]
    token, size, step = str(op.attr("dist")), max(1, (held.bits or 8) // 8), 0
    if registers == 2:
        mode, step = pair_mode(token, at.bits // 8)
    else:
        mode = store_mode(token, size) if writes else load_mode(token, size)
    if mode is None:
        return f"'{token}' is not followed"
    items = (mode.rows - 1) * mode.row_step + (mode.cols - 1) * mode.col_step + 1 + step
    start: Int = offset * (at.bits // 8)
    aligned = eq(mod(at.offset + start, mode.align), 0)
    walk.claim(op, s)(aligned, f"the address is not a multiple of {mode.align}")
    place = span(walk, op, s, at, start, items * mode.width)
    access = TermAccess(place, writes, 0)
    order.access(op, s, pipe_of(op, walk.profile), (access,))
    order.lane(op, s, access)
    where = _filled(place, at)
    if writes:
        whole = mode.cols == 1 or ((mode.rows, mode.col_step) == (1, 1) and _all_lanes(op))
        written(walk, s, place, at.storage, where if whole else None, s.contents.registers)
    else:
        when = defined(walk, op, s, op.operands[0].name, where)
        s.contents.registers = both(s.contents.registers, when)
    for r in op.results:
        s.env[r] = walk.unknown(r, s)
    return ""


def _all_lanes(op: Operation) -> bool:
    """Return whether the mask of a store has all lanes on."""
    mask = op.get("mask")
    made = mask.op if mask is not None else None
    if made is None or made.row is None:
        return mask is None
    by_pattern = made.row.algorithm.startswith("mask by pattern") and not made.operands
    return by_pattern and str(made.attr("pattern")) == "PAT_ALL"
