"""Sets of bytes of a memory space, and tests of overlap.

A place is a range of bytes, or evenly spaced chunks of a range. A window of a view is also a box of indices,
which may depend on the iteration of a loop.
"""

from __future__ import annotations

from ...ir.core import Block, Operation
from ...ir.types import TileBufType
from ...isa.profiles import Profile
from ...isa.tile import LAYOUTS
from .affine import BIG, Affine, difference, inside, repeats, separate


class Box:
    """A window of a view: offsets and sizes by dimension. Boxes of one frame are disjoint if they are
    disjoint in one dimension. The frame is computed in the block `scope`: in a loop, each iteration has a
    different frame."""

    __slots__ = ("fixed", "frame", "offsets", "scope", "sizes")

    def __init__(
        self,
        frame: object,
        offsets: tuple[Affine, ...],
        sizes: tuple[int, ...],
        scope: Block | None = None,
    ) -> None:
        self.frame = frame
        self.offsets = offsets
        self.sizes = sizes
        self.scope = scope
        #: True if the window is the same in all iterations.
        self.fixed = not any(o.terms for o in offsets) and not repeats(scope)

    def apart(self, front: Box, loop: Operation | None) -> bool:
        """Return True if this window is disjoint from another one, of an earlier iteration of `loop`."""
        if self.frame != front.frame or len(self.sizes) != len(front.sizes):
            return False
        if loop is not None and inside(self.scope, loop):
            return False
        fixed = self.fixed and front.fixed
        for a, b, size, other in zip(self.offsets, front.offsets, self.sizes, front.sizes, strict=True):
            low, high = (a.constant - b.constant,) * 2 if fixed else difference(a, b, loop)
            if low >= other or high <= -size:
                return True
            if loop is None and not fixed and separate(a, b, size, other):
                return True
        return False


class BytePlace:
    """The bytes `low` to `high` of an object `root` in a space: all of them, or `count` chunks of `chunk`
    bytes, `pitch` apart."""

    __slots__ = ("box", "chunk", "count", "exact", "high", "key", "low", "pitch", "root", "space")

    def __init__(
        self,
        space: str,
        root: object,
        low: int = 0,
        high: int = BIG,
        pattern: tuple[int, int, int] | None = None,
        box: Box | None = None,
        exact: bool = False,
    ) -> None:
        self.space = space
        self.root = root  # None: absolute addresses
        self.low = low
        self.high = high
        self.count, self.chunk, self.pitch = pattern or (1, high - low, 0)
        self.box = box
        self.exact = exact  # False if the place is an upper bound
        self.key = (
            space, root, low, high, pattern,
            (box.frame, tuple(o.key for o in box.offsets), box.sizes) if box is not None else None,
        )  # fmt: skip

    def meets(self, front: BytePlace, loop: Operation | None) -> bool:
        """Return True if a byte may be shared with a place that an earlier instruction accessed."""
        if self.low >= front.high or front.low >= self.high:
            return False
        if self.box is not None and front.box is not None and self.box.apart(front.box, loop):
            return False
        if self.count > 1 and front.count > 1 and self.pitch == front.pitch:
            shift = (self.low - front.low) % self.pitch
            return shift < front.chunk or shift + self.chunk > self.pitch
        if self.count > 1 or front.count > 1:
            many, one = (self, front) if self.count > 1 else (front, self)
            return one.count > 1 or _hits(many, one.low, one.high)
        return True

    @property
    def symbolic(self) -> bool:
        """Return True if overlap depends on the iteration."""
        return self.box is not None and not self.box.fixed


def _hits(many: BytePlace, low: int, high: int) -> bool:
    """Return True if an evenly spaced place overlaps a range."""
    first = (low - many.low) // many.pitch
    return (low - many.low) - first * many.pitch < many.chunk or many.low + (first + 1) * many.pitch < high


class Geometry:
    """The layout of a tile in memory, for its windows."""

    __slots__ = ("base", "bits", "box", "cols", "layout", "root", "rows", "space")

    def __init__(self, place: BytePlace, type: TileBufType, profile: Profile) -> None:
        self.space, self.root, self.base = place.space, place.root, place.low
        self.rows, self.cols, self.bits = type.rows, type.cols, type.bits or 8
        blayout = profile.left_blayout if type.loc == "left" else type.blayout
        self.layout = LAYOUTS.get((blayout, type.slayout), "")
        self.box = type.box

    def window(self, r: int, c: int, rows: int, cols: int) -> BytePlace:
        """Return the place of `rows` x `cols` elements at (r, c), rounded to whole boxes."""
        ir, ic = self.box
        if self.layout in ("ND", "ZN", "ZZ"):  # rows of boxes are contiguous
            count, first, pitch = -(-(r % ir + rows) // ir), r // ir, self.cols * ir
            lead, chunk = c // ic * ic * ir, -(-(c % ic + cols) // ic) * ic * ir
        else:
            count, first, pitch = -(-(c % ic + cols) // ic), c // ic, self.rows * ic
            lead, chunk = r // ir * ir * ic, -(-(r % ir + rows) // ir) * ir * ic
        start = (first * pitch + lead) * self.bits
        end = start + ((count - 1) * pitch + chunk) * self.bits
        low, high = self.base + start // 8, self.base - (-end // 8)
        whole = not (start % 8 or chunk * self.bits % 8 or pitch * self.bits % 8)
        if chunk == pitch or count == 1 or not whole:
            return BytePlace(self.space, self.root, low, high, exact=whole)
        pattern = count, chunk * self.bits // 8, pitch * self.bits // 8
        return BytePlace(self.space, self.root, low, high, pattern, exact=True)
