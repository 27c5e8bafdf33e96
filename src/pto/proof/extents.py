"""Conditions of instructions besides their rules, and exact bytes of their accesses.

The rules of a row are in `rules.py`. Executors check a few more conditions; an instruction whose algorithm is
not listed here may have some that the proof does not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..engine.sanitize.race_access import meets
from ..ir.core import Operation, Value
from ..isa import tile as tiles
from ..isa import view as views
from ..isa.machine import CHAINING
from ..symbolic.terms import Int, Truth, both, either, is_int, is_integer, negated
from .context import WalkedCore
from .findings import ACCESSES, Reason
from .state import State
from .values import MEMORY, Opaque, PointerTerm, TermPlace, TileTerm, ViewTerm

Note = tuple[str, tuple[str, ...]]
Check = Callable[[WalkedCore, Operation, State, dict[str, Any]], Iterator[Note]]
CHECKS: dict[str, Check] = {}
#: Algorithms without further conditions.
PLAIN = (
    "convert", "count", "triangle", "fill padding", "interleaving", "random numbers",
    "index of extreme", "part extreme", "separation", "sort blocks", "histogram", "low bits", "pair sums",
)  # fmt: skip


def check(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    """Check the conditions of an instruction; yield the reasons why one of them is not known."""
    row = op.row
    assert row is not None
    kind = row.algorithm.partition(":")[0]
    if any(isinstance(s.env[v], Opaque) and isinstance(v.type, MEMORY) for v in op.operands) and not row.expr:
        yield "an operand is not followed", ("bounds",)
    if kind in CHECKS:
        yield from CHECKS[kind](walk, op, s, args)
    elif not row.expr and kind not in PLAIN:
        yield f"the conditions of '{kind}' are not followed", ("bounds",)


def checks(*algorithms: str, tiles: str = "") -> Callable[[Check], Check]:
    """Register a check whose operands `tiles` have to be tiles that the proof follows."""

    def register(function: Check) -> Check:
        def checked(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
            if all(isinstance(args.get(name), TileTerm) for name in tiles.split()):
                yield from function(walk, op, s, args)
            else:
                yield "its operands are not followed", ACCESSES

        CHECKS.update(dict.fromkeys(algorithms, checked))
        return function

    return register


@checks("load", "store")
def _transfer(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    """Check that the window contains the valid region of the tile."""
    src, dst = args.get("src"), args.get("dst")
    tile, view = (dst, src) if isinstance(dst, TileTerm) else (src, dst)
    if not isinstance(tile, TileTerm) or not isinstance(view, ViewTerm):
        yield "its operands are not followed", ACCESSES
        return
    layout = _layout(op, tile, view)
    if layout is None:
        yield "the layout of the view is not known", ("bounds",)
        return
    extent, shape = _extent(view, layout), tile.valid
    if tile is dst:
        shape = moved(walk, op, tile, view) or shape
        room = both(*(n <= m for n, m in zip(shape, tile.shape, strict=True)))
        walk.claim(op, s)(room, "the tile has no room for the window")
        if not views.is_bounded(walk.profile.isa, layout):
            yield f"a load with layout {layout} is not followed", ACCESSES
    holds = both(*(n <= m for n, m in zip(shape, extent, strict=True)))
    walk.claim(op, s)(holds, "the window does not hold the valid region of the tile")


def _extent(view: ViewTerm, layout: str) -> tuple[Int, Int]:
    five = ((1,) * (5 - len(view.sizes)) + view.sizes)[-5:]
    return views.matrix_shape(layout, five, tiles.block_elements(view.bits))  # type: ignore[arg-type]


def moved(walk: WalkedCore, op: Operation, tile: TileTerm, view: ViewTerm) -> tuple[Int, Int] | None:
    """Return the rows and columns that a load moves; None if the layout of the view is not known."""
    layout = _layout(op, tile, view)
    if layout is None:
        return None
    isa, loc, extent = walk.profile.isa, tile.type.loc, _extent(view, layout)
    return views.loaded(isa, loc, tile.layout, layout, tile.valid, extent)  # type: ignore[arg-type]


def _layout(op: Operation, tile: TileTerm, view: ViewTerm) -> str | None:
    """Return the layout of a view at a load or store; None if it is not known."""
    given = str(op.attr("layout") or "").upper() or view.layout
    if given:
        return given if given in ("ND", "DN", "NZ") else None
    if len(view.sizes) <= 2 or all(is_int(n) and n == 1 for n in view.sizes[:-2]):
        return "ND"  # rows and columns are the last two extents in either order
    numbers = (*view.sizes, *view.strides, *view.dims, *tile.valid)
    if not all(is_int(n) for n in numbers):
        return None
    found = views.strided(view.dims, view.strides, view.bits)
    five = ((1,) * (5 - len(view.sizes)) + view.sizes)[-5:]
    scales = tile.type.loc == "mat" and str(tile.type.dtype) == "f8e8m0"
    return views.window_layout(found, five, view.bits, tile.layout, tile.valid, scales)  # type: ignore[arg-type]


@checks("matrix product")
def _product(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    a, b, dst = args.get("lhs", args.get("a")), args.get("rhs", args.get("b")), args.get("dst")
    if not all(isinstance(t, TileTerm) for t in (a, b, dst)):
        yield "its operands are not followed", ACCESSES
        return
    (m, k), (depth, n), (rows, cols) = a.valid, b.valid, dst.valid  # type: ignore[union-attr]
    walk.claim(op, s)(k <= depth, "the right operand has fewer valid rows than the left one has columns")
    walk.claim(op, s)(both(m <= rows, n <= cols), "the destination does not hold the product")


@checks("move", tiles="src dst")
def _move(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    src, dst = args["src"], args["dst"]
    if "tmp" in args:
        yield "its operands are not followed", ACCESSES
        return
    by_valid = walk.profile.behaviour.valid_sources
    whole = src.valid if by_valid else src.shape
    fits = both(*(n <= m for n, m in zip(dst.valid, whole, strict=True)))
    if src.bits != dst.bits or (by_valid and src.type.loc != "acc"):
        walk.claim(op, s)(fits, "the source has fewer elements than the destination")
    elif fits is not True and not walk.holds(s)(fits):
        yield "the source may have fewer elements than the destination", ACCESSES


@checks("window", "insertion", "quantised window")
def _window(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    src, dst = args.get("src"), args.get("dst")
    part, whole = (src, dst) if op.row is not None and op.row.algorithm == "insertion" else (dst, src)
    if not isinstance(part, TileTerm) or not isinstance(whole, TileTerm) or "dst1" in args:
        yield "its operands are not followed", ACCESSES
        return
    starts = [args.get(name, 0) for name in ("indexRow", "indexCol")]
    if any(isinstance(x, Opaque) for x in starts):
        yield "its start is not followed", ACCESSES
        return
    extent = whole.valid if walk.profile.behaviour.valid_sources else whole.shape
    inside: list[Truth] = []
    for start, n, m in zip(starts, part.valid, extent, strict=True):
        inside += [start >= 0, start + n <= m]
    walk.claim(op, s)(both(*inside), "the window leaves the whole tile")


@checks("transposition", tiles="src dst")
def _transposed(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    src, dst = args["src"], args["dst"]
    fits = both(src.valid[0] <= dst.shape[1], src.valid[1] <= dst.shape[0])
    walk.claim(op, s)(fits, "the destination does not hold the transpose")
    yield from ()


@checks("merge", tiles="src dst")
def _merged(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    if "src1" not in args and not walk.holds(s)(args["dst"].valid[1] <= args["src"].shape[1]):
        yield "the source may be shorter than the destination", ("bounds",)


@checks("concatenation", tiles="src0 src1 dst")
def _joined(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    if "src0Idx" not in args:
        fits = args["src0"].valid[1] + args["src1"].valid[1] <= args["dst"].shape[1]
        walk.claim(op, s)(fits, "the destination has no room for both sources")
    yield from ()


@checks("gather", "gather blocks")
def _gathered(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    if "indices" in args or "offsets" in args:
        yield "its indices are data", ("bounds",)


@checks("gather from memory", "scatter to memory", "prefetch")
def _indexed(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> Iterator[Note]:
    yield "data decide which elements it accesses", ACCESSES


def element(walk: WalkedCore, op: Operation, s: State, place: Any, index: Any) -> TermPlace | None:
    """Return the bytes of one element, at an index in the storage of a tile, or after a pointer."""
    if not is_integer(index):
        return None
    if isinstance(place, TileTerm):
        if place.low is None or place.at != (0, 0) or place.shape != place.pitch or place.bits < 8:
            return None
        inside = both(index >= 0, index < place.shape[0] * place.shape[1])
        walk.claim(op, s)(inside, "the element is outside the tile")
        low, item = place.low + index * (place.bits // 8), place.bits // 8
        return TermPlace(place.root, low, low + item)
    if isinstance(place, ViewTerm):
        first = sum((o * n for o, n in zip(place.offsets, place.strides, strict=True)), 0)
        pointer = PointerTerm(place.root, place.base + first * (place.bits // 8), place.bits)
    elif isinstance(place, PointerTerm):
        pointer = place
    else:
        return None
    item = pointer.bits // 8
    return span(walk, op, s, pointer, index * item, item) if item else None


def span(
    walk: WalkedCore, op: Operation, s: State, pointer: PointerTerm, first: Int, size: Int,
    some: tuple[Truth, ...] = (),
) -> TermPlace:  # fmt: skip
    """Return `size` bytes that an instruction accesses under the conditions `some`."""
    low, root = pointer.offset + first, pointer.root
    claim, idle = walk.claim(op, s), negated(both(*some))
    claim(either(idle, low >= 0), "the access begins before its array or buffer")
    if isinstance(root, Value):
        if not walk.context.holds_bytes(root, low + size, s.loops):
            note = Reason(op, f"the number of elements of %{root.name} is not known")
            walk.context.findings.note(note, ("bounds",))
    else:
        start, end = 0, walk.profile.capacity[root]
        if pointer.storage is not None and pointer.storage.low is not None:
            start, end = pointer.storage.low, pointer.storage.low + pointer.storage.size
        inside = both(low >= start, low + size <= end)
        claim(either(idle, inside), f"the access leaves its {root} buffer or its tile")
    return TermPlace(root, low, low + size, some=some)


# -- accesses ----------------------------------------------------------------------------------------------


def atomic(op: Operation) -> int:
    """Return the kind of accesses that need no order among each other; 0 for plain ones."""
    return meets(op)


def chain(op: Operation, name: str, value: Any, write: bool) -> tuple[Int, Int, Truth] | None:
    """Return the bytes of an operand of a vector instruction that works in order: the first byte, the end,
    and whether all bytes between them are accessed. Return None for other instructions."""
    row = op.row
    if row is None or not isinstance(value, TileTerm) or not row.expr or row.family not in CHAINING.families:
        return None
    if row.over or row.packed or row.single or (write and row.writes != "valid") or name.startswith("tmp"):
        return None
    return value.used
