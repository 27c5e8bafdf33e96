"""Loops that operators and passes emit, and copies between tensors through a core, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtypes import INDEX, DataType
from ..enums import AtomicType
from ..ir import Dim, Op, ScalarType, Value, index
from ..ir.build import Build
from .core import FUNCTIONS

#: Bytes of a block of a copy, at most.
_BLOCK = 32 * 1024


def loop(b: Build, stop: Dim, body: Callable[[Value], None], step: int = 1) -> None:
    """Emit a loop from 0; `body` builds its body."""
    args = {"kind": "range", "start": 0, "stop": stop, "step": step, "init_values": [], "stage": 0}
    op = Op("for", args, [], b.place)
    block = op.add_block([(ScalarType(INDEX), "k")])
    with b.into(block):
        body(block.args[0])
        b.append("yield", [], {"values": []})
    b.block.append(op)


def block_of(dtype: DataType, extent: Sequence[Dim], most: Sequence[int | None] = ()) -> list[int]:
    """Return the shape of blocks: as many columns, then rows, as fit, and no more than `most`."""
    room = _BLOCK * 8 // dtype.bits
    rank = len(extent)
    size = [1] * rank
    for axis, limit in zip((rank - 1, rank - 2), [*reversed(most), None, None], strict=False):
        if axis >= 0:
            known = index.known(extent[axis])
            size[axis] = min(room, known if known is not None else 64, limit or room)
            # cut pages evenly, because the rest of a page is not a run of rows
            if axis and rank > 2 and known:
                size[axis] = next(n for n in range(size[axis], 0, -1) if known % n == 0)
            room = max(1, room // size[axis])
    return size


def copied(
    b: Build, target: Value, at: Sequence[Dim], source: Value, start: Sequence[Dim], extent: Sequence[Dim],
    block: Sequence[int], atomic: AtomicType = AtomicType.None_,
) -> None:  # fmt: skip
    """Copy a part of a tensor, which begins at `start`, to `at` in another one."""
    lead = [0] * (target.type.rank - len(extent))

    def step(done: list[Dim]) -> None:
        axis = len(done)
        if axis < len(extent):
            whole = extent[axis]
            if index.known(whole) == block[axis]:
                step([*done, 0])
            else:
                loop(b, whole, lambda k: step([*done, k]), block[axis])
            return
        valid = [
            n if n == 1 or (index.known(whole) or 1) % n == 0
            else b.scalar("min", n, b.scalar("sub", whole, o))
            for n, whole, o in zip(block, extent, done, strict=True)
        ]  # fmt: skip
        begin = [b.scalar("add", o, n) for o, n in zip(start, done, strict=True)]
        part = FUNCTIONS["slice"](b, source, list(block), begin, valid)
        places = [b.scalar("add", o, n) for o, n in zip(at, [*lead, *done], strict=True)]
        FUNCTIONS["assemble"](b, target, part, places, atomic=atomic)

    step([])
