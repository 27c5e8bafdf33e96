"""Sanitizer oob: reports windows that leave their view or tile, tiles beyond their buffer, and pointers and
indices that leave their tile."""

from __future__ import annotations

import numpy as np

from ...ir.core import Operation
from ..access import Access, Place
from ..elements import Array
from ..memory import Home, Pointer, Tile, View
from ..registers import Register
from ..watch import Event, WatchedCore
from .sanitizer import Sanitizer


class Bounds(Sanitizer):
    # -- accesses --------------------------------------------------------------------------------------

    def loaded(self, event: Event, access: Access, data: Array | None = None) -> None:
        place = access.place
        if isinstance(place, Pointer) and place.home is not None:
            self._leaves(event, place.home, *access.bounds)
        elif isinstance(place, Tile) and place.edge is not None:
            self._beyond(event, place, access)

    stored = loaded

    def _beyond(self, event: Event, tile: Tile, access: Access) -> None:
        """Report an access to more of a window at the edge than was checked when the window was made."""
        if tile.edge is None or access.region is None:
            return
        source, r, c = tile.edge
        rows, cols = (a + b for a, b in zip(access.region.first, access.region.shape, strict=True))
        counted = tile.shape if event.core.profile.behaviour.whole_windows else tile.valid
        judged = rows <= counted[0] and cols <= counted[1]
        if not judged and (r + rows > source.rows or c + cols > source.cols):
            self.outside_tile(event.core, event.op, source, (r, c), (rows, cols))

    def _leaves(self, event: Event, home: Home, low: int, high: int) -> None:
        """Report an access through a pointer into a tile that leaves the tile."""
        first, end, name, _ = home
        if low < high and (low < first or high > end) and "index" not in event.keeps:
            d = event.core.diagnostic(
                event.op,
                "PTO-E2209",
                f"touches bytes {low - first}..{high - first} from the start of %{name}, "
                f"which has {end - first}",
                help="the pointer comes from that tile: check offsets and sizes",
            )
            self.reports.add(("home", event.op, name), d)

    def indexed(
        self, event: Event, operand: str, index: Array, inside: Array, of: Place, extent: str
    ) -> None:
        bad = int(np.argmin(inside))
        event.keeps["index"] = True  # reported here, at its cause: `_leaves` stays silent
        holder = event.args[operand]
        name = event.op.group(operand)[0].name
        operands = [v for declared, v in event.op.named() if event.args.get(declared.name) is of]
        whole = operands[0].name if operands else of.name
        value = int(np.asarray(index).ravel()[bad])
        where = _holding(holder, bad, np.shape(inside))
        d = event.core.diagnostic(
            event.op,
            "PTO-E2211",
            f"index {value} in {where}%{name} ({operand}) leaves %{whole}, {extent}",
            help="the instruction does not check indices: keep them inside, or set its attribute for such "
            "indices, if it has one",
        )
        count = int(np.size(inside) - np.count_nonzero(inside))
        if count > 1:
            d.notes.append((f"{count} of {np.size(inside)} indices leave it", None))
        self.reports.add(("index", event.op, operand), d)

    # -- descriptors -----------------------------------------------------------------------------------

    def outside_tile(
        self, core: WatchedCore, op: Operation, source: Tile, at: tuple[int, int], size: tuple[int, int]
    ) -> None:
        d = core.diagnostic(
            op,
            "PTO-E2204",
            f"a window of {size[0]} x {size[1]} from ({at[0]}, {at[1]}) leaves %{source.name}, "
            f"a tile of {source.rows} x {source.cols}",
            help=f"keep the offsets within 0..{source.rows - size[0]} and 0..{source.cols - size[1]}",
        )
        self.reports.add(("subview", op), d)

    def outside_view(
        self, core: WatchedCore, op: Operation, source: View, dim: int, offset: int, size: int
    ) -> None:
        extent = source.dims[dim]
        left = max(0, extent - offset)
        d = core.diagnostic(
            op,
            "PTO-E2204",
            f"elements {offset}..{offset + size} of dimension {dim} leave the view %{source.name}, "
            f"which has {extent}",
            expected=f"an end of at most {extent}",
            got=str(offset + size),
            help="expected a start of at least 0"
            if offset < 0
            else f"only {left} elements are left there: make the partition that small, with a dynamic "
            "valid region of the tile",
        )
        self.reports.add(("view", op), d)


def _holding(holder: object, number: int, shape: tuple[int, ...]) -> str:
    """Return the text for the element of an operand that has the index of this number."""
    if isinstance(holder, Register):
        return f"lane {number} of "
    if isinstance(holder, Tile):
        at = divmod(number, shape[1]) if len(shape) == 2 and shape[1] > 1 else holder.element_at(number)
        return f"element ({at[0]}, {at[1]}) of " if at is not None else ""
    return f"element {number} of " if isinstance(holder, View) else ""
