"""Sanitizer undef: follows data that was never written or is padding, and all results computed from it.

It reports the first observable use: a store to global memory, a branch, an address. A store to a tensor
between tasks of a graph is not reported: the tensor passes the undefined data on to the tasks that read it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.core import Operation
from ..access import Access, Place
from ..elements import Array
from ..memory import Tile
from ..reference.watched import repeatable
from ..region import Region
from ..watch import INSTRUCTION, Event, WatchedCore, WatchedLaunch
from .replay import Load, dependence
from .sanitizer import Sanitizer
from .undefined_bytes import FREED, PADDING, SCRATCH, Origin, Undefined, name_of


class Undef(Sanitizer):
    registers = True
    tracks = True
    wants = (INSTRUCTION,)

    undefined: Undefined
    #: Set after an instruction with undefined operands.
    followed = False

    def launch_started(self, launch: WatchedLaunch) -> None:
        super().launch_started(launch)
        self.undefined = Undefined(launch, self.reports)

    # -- an instruction --------------------------------------------------------------------------------

    def started(self, event: Event) -> None:
        self.loads: list[Load] = []
        self.stores: list[tuple[Place, Region | Array, Array]] = []
        #: The bytes that the instruction leaves unspecified, even if it wrote them.
        self.unspecified: list[Access] = []
        #: Set if an operand is undefined.
        self.tainted = bool(event.poison)

    def loaded(self, event: Event, access: Access, data: Array) -> None:
        place, region = access.place, access.region
        if region is not None:
            mask = self.undefined.mask(place, region)
            self.loads.append(Load(place, region, data, mask))
        else:
            at = access.at
            assert at is not None
            mask = self.undefined.mask_at(place, at)
            self.loads.append(Load(place, at, data, mask))
        if mask is not None:
            self.tainted = True

    def storing(self, event: Event, access: Access, data: Array) -> None:
        """Keep a store, and copies of the loaded data, which the store may overwrite."""
        if self.tainted:
            if not self.stores:
                for load in self.loads:
                    load.data = np.array(load.data)
            self.stores.append((access.place, access.where, np.array(data)))

    def stored(self, event: Event, access: Access) -> None:
        if not self.tainted:
            self.undefined.define(access.place, access.where)

    def left_undefined(self, event: Event, access: Access) -> None:
        self.unspecified.append(access)

    def finished(self, event: Event) -> None:
        if self.tainted and repeatable(event.op):
            self.followed = True
            self._follow(event)
        for access in self.unspecified:
            self._undefine(event.op, access, PADDING)
        for access in event.scratch:
            self._undefine(event.op, access, SCRATCH)

    def _undefine(self, op: Operation, access: Access, kind: str) -> None:
        region, place = access.region, access.place
        if region is not None and region.shape[0] and region.shape[1]:
            self._mark(op, place, region, kind)

    def _mark(self, op: Operation, place: Place, region: Region, kind: str) -> None:
        origin = Origin(op, name_of(place), None, kind)
        self.undefined.define(place, region, np.ones(region.shape, bool), origin)

    def _follow(self, event: Event) -> None:
        """Report or propagate the results of an instruction that depend on its undefined operands."""
        undefined = self.undefined
        load = next((n for n in self.loads if n.mask is not None), None)
        if load is not None and load.mask is not None:
            origin = undefined.origin(event, load.place, load.where, load.mask)
        else:
            origin = _scalar_origin(event)
        found = dependence(event, self.loads, self.stores)
        if found.address:  # report it once: results of a reported instruction count as defined
            undefined.report(event.core, event.op, origin, "an address depends on undefined data")
        elif found.result:
            event.undefined = origin
        fifo = event.op.row is not None and event.op.row.fifo == "push"  # undefined data may pass a FIFO
        for (place, where, _), taint in zip(self.stores, found.taints, strict=True):
            bad = taint.any() and not found.address
            shadow = undefined.shadow(place.buffer)
            holds = shadow is not None and shadow.holds
            if shadow is not None:
                shadow.define(place, where, taint if bad and holds else None, origin)
            if bad and not holds and not fifo:
                at = ", ".join(str(n) for n in np.unravel_index(int(np.argmax(taint)), taint.shape))
                undefined.report(
                    event.core,
                    event.op,
                    origin,
                    f"stores undefined data to {place.buffer.name}: {int(taint.sum())} of {taint.size} "
                    + (f"elements, the first at ({at})" if taint.size > 1 else "elements"),
                )

    # -- other uses ------------------------------------------------------------------------------------

    def undefined_use(self, core: WatchedCore, op: Operation, origin: Any, what: str) -> None:
        self.undefined.report(core, op, origin, f"{what} depends on undefined data")

    def freed(self, core: WatchedCore, op: Operation, tile: Tile) -> None:
        """Mark a popped tile as undefined: the producer may overwrite it from here on."""
        if tile.address is not None:
            self._mark(op, tile, tile.region(tile.rows, tile.cols), FREED)


def _scalar_origin(event: Event) -> Origin:
    """Return the origin of the first undefined scalar operand."""
    (name, n), parent = next(iter(event.poison.items()))
    value = event.op.group(name)[n or 0]
    shown = f"%{value.name}" if value.name else ""
    return Origin(event.op, shown, None, parent.kind, "which is undefined", parent)
