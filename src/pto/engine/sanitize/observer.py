"""The sanitizers of one launch together: what they see of memory, and how instructions run under them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.core import Operation
from ...isa.profiles import Profile
from ..elements import Array
from ..memory import ConvTile, Tile, View
from ..reference.grid import Watch
from ..reference.instr import Instr, Place, Port, start_of
from ..region import Region
from .race import Clock, RaceChecker, forget_blocks, meet
from .reports import Reports
from .undef import Load, Origin, Undefined, replay_taints

if TYPE_CHECKING:
    from ..reference.core import Core
    from ..reference.grid import Grid



class Observer(Watch):
    """Everything that watches a launch."""

    def __init__(
        self,
        profile: Profile,
        names: frozenset[str],
        shadow: Any,
        memory_map: Any,
        result: Any,
        automatic: bool = False,
    ) -> None:
        self.profile = profile
        self.names = names
        self.result = result
        self.reports = Reports()
        self.automatic = automatic  # its pipes are not synchronised yet
        self.sync = "sync" in names
        self.tracks = "undef" in names
        self.bounds = "oob" in names
        self.undef = Undefined(self.reports) if self.tracks else None
        self.race: RaceChecker | None = None
        self.clocks: dict[int, Clock] = {}
        self.shadow = shadow
        self.map = memory_map

    # -- cores -----------------------------------------------------------------------------------------

    def core_started(self, core: Core) -> None:
        core.port = Watched(self)
        core.observer = self.perform
        if "race" in self.names:
            if self.race is None:
                self.race = RaceChecker(self.profile.isa, self.reports, core.grid.blocks)
            if not self.automatic:
                core.clock = self.clocks.setdefault(core.block, Clock(self.profile.isa, core.block))

    def core_ended(self, core: Core) -> None:
        self.clocks.pop(core.block, None) if not any(
            c.block == core.block and c is not core for c in core.grid.active
        ) else None
        if not self.sync:
            return
        for (src, dst, number), left in core.flags.items():
            if left:
                d = core.diagnostic(
                    left[0][1], "PTO-E0805",
                    f"flag PIPE_{src} -> PIPE_{dst}, id {number} is still set when the kernel ends",
                    help="wait for it, or set it one time less: the next kernel would find it set",
                )  # fmt: skip
                self.reports.add(("left", left[0][1]), d)
        for number, token in core.tokens.items():
            for pipe in token.held:
                op = core.code.function
                self.reports.add(("held", number, pipe), core.diagnostic(
                    op, "PTO-E0807", f"PIPE_{pipe} still holds buffer token {number} when the kernel ends",
                    help="release it with pto.rls_buf",
                ))  # fmt: skip

    def finish(self, grid: Grid) -> None:
        self.result.diagnostics.extend(self.reports.all())
        if self.shadow is not None:
            self.result.shadow = self.shadow
            self.result.diagnostics.extend(self.shadow.reports.all())
        if self.map is not None:
            self.result.memory_map = self.map

    # -- an instruction --------------------------------------------------------------------------------

    def perform(self, i: Instr, execute: Callable[[Instr], Any]) -> Any:
        """Run an instruction and all that is kept beside it."""
        port = Watched(self)
        i.port = port
        if self.shadow is not None:
            self.shadow.before(i, execute)
        result = execute(i)
        if self.undef is not None:
            self._undefined(i, execute, port)
        for declared in i.op.row.operands if i.op.row else ():
            if declared.role == "tmp":
                self._scratch(i, port, i.args.get(declared.name))
        if self.shadow is not None:
            self.shadow.after(i)
        if self.map is not None:
            self.map.tick(i)
        return result

    def _scratch(self, i: Instr, port: Watched, place: Any) -> None:
        """A scratch operand is written with nobody knows what."""
        if not isinstance(place, Tile) or place.address is None or place.buffer.space == "gm":
            return
        region = place.region(*place.valid)
        if region.bounds[1] > place.buffer.data.size:
            return
        if self.race is not None:
            self.race.access(i, place, True, region, None)
        if self.map is not None:
            self.map.touch(i, place, True, region)
        if self.undef is not None:
            self.undefine(i, place, region, "scratch of this instruction")

    def undefine(self, i: Instr, place: Place, region: Region, why: str) -> None:
        if self.undef is not None and region.shape[0] and region.shape[1]:
            number = self.undef.number(Origin(i.core, i.op, place.name, None, why, None))
            self.undef.define(place, region, np.ones(region.shape, bool), number)

    def _undefined(self, i: Instr, execute: Callable[[Instr], Any], port: Watched) -> None:
        undef = self.undef
        assert undef is not None
        bad = next((n for n, load in enumerate(port.loads) if load.mask is not None), None)
        i.core.registers["undefined scalar"] = None
        if bad is None:
            return
        origin = undef.origin(i, port.loads[bad], port.regions[bad])
        if i.op.results:
            i.core.registers["undefined scalar"] = origin
        taints, address = replay_taints(i, execute, port.loads, port.stores)
        if address:
            undef.report(i.core, i.op, origin, "an address depends on undefined data")
            return
        number = undef.number(origin) if any(t.any() for t in taints) else 0
        for (place, where, _), taint in zip(port.stores, taints, strict=True):
            if place.buffer.space == "gm":
                if taint.any():
                    r = int(np.argmax(taint))
                    shape = " x ".join(str(n) for n in np.unravel_index(r, taint.shape))
                    undef.report(
                        i.core, i.op, origin,
                        f"stores undefined data to {place.buffer.name}: {int(taint.sum())} of {taint.size} elements, "
                        f"the first at ({shape.replace(' x ', ', ')})",
                    )  # fmt: skip
            elif isinstance(where, Region):
                undef.define(place, where, taint if taint.any() else None, number)
            else:
                undef.define_at(place, where, taint if taint.any() else None, number)

    # -- what cores tell -------------------------------------------------------------------------------

    def allocated(self, core: Core, op: Operation, tile: Any) -> None:
        if self.bounds and isinstance(tile, Tile | ConvTile) and tile.address is not None:
            limit = tile.buffer.limit
            if tile.address < limit and (tile.address < 0 or tile.address + tile.size > limit):
                self.reports.add(("place", op), core.diagnostic(
                    op, "PTO-E2205",
                    f"%{tile.name} takes bytes {tile.address}..{tile.address + tile.size} of {tile.buffer.name}, "
                    f"which has {limit}",
                    expected=f"an end of at most {limit}", got=str(tile.address + tile.size),
                    help="place it lower, or make the tile smaller",
                ))  # fmt: skip

    def outside_tile(
        self, core: Core, op: Operation, source: Tile, at: tuple[int, int], size: tuple[int, int]
    ) -> None:
        if self.bounds:
            self.reports.add(("subview", op), core.diagnostic(
                op, "PTO-E2204",
                f"a window of {size[0]} x {size[1]} from ({at[0]}, {at[1]}) leaves %{source.name}, "
                f"a tile of {source.rows} x {source.cols}",
                help="keep offset + size within the source tile",
            ))  # fmt: skip

    def outside_view(self, core: Core, op: Operation, source: View, dim: int, offset: int, size: int) -> None:
        if self.bounds:
            self.reports.add(("view", op), core.diagnostic(
                op, "PTO-E2204",
                f"elements {offset}..{offset + size} of dimension {dim} leave the view %{source.name}, "
                f"which has {source.dims[dim]}",
                expected=f"an end of at most {source.dims[dim]}", got=str(offset + size),
                help="shrink the last partition (a dynamic valid region handles tails)",
            ))  # fmt: skip

    def undefined_use(self, core: Core, op: Operation, origin: Any, what: str) -> None:
        if self.undef is not None and origin is not None:
            self.undef.report(core, op, origin, f"{what} depends on undefined data")

    def flag_overrun(self, core: Core, op: Operation, what: str, first: Operation) -> None:
        d = core.diagnostic(
            op, "PTO-E0804", f"{what} is set although it is set already",
            help="wait for it first, or use another event id",
        )  # fmt: skip
        d.notes.append(("set here before", core.grid.span(first)))
        self.reports.add(("overrun", op), d)

    def token_misuse(self, core: Core, op: Operation, what: str) -> None:
        self.reports.add(("token", op), core.diagnostic(op, "PTO-E0806", what, help="pair every get with one release"))

    def met(self, cores: list[Core]) -> None:
        if self.race is None or not cores:
            return
        meet(cores)
        grid = cores[0].grid
        if len(cores) == grid.blocks * len(grid.roles):
            forget_blocks(grid.gm.buffers)


class Watched(Port):
    """The way to memory of one instruction under watch: records its loads and stores."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.loads: list[Load] = []
        self.regions: list[Region | None] = []
        self.stores: list[tuple[Place, Any, Array]] = []
        self._tainted = False

    def load(self, i: Instr, place: Place, region: Region, dtype: Any) -> Array:
        found = super().load(i, place, region, dtype)
        o = self.observer
        if o.bounds or o.race is not None or o.map is not None:
            self._seen(i, place, region, None, False)
        if o.undef is not None:
            self._keep(place, region, found, o.undef.mask(place, region))
        return found

    def load_at(self, i: Instr, place: Place, at: Array, dtype: Any) -> Array:
        found = super().load_at(i, place, at, dtype)
        self._seen(i, place, None, at, False)
        undef = self.observer.undef
        if undef is not None:
            self._keep(place, None, found, undef.mask_at(place, at))
        return found

    def _keep(self, place: Place, region: Region | None, found: Array, mask: Array | None) -> None:
        self.loads.append(Load(place, found, mask))
        self.regions.append(region)
        if mask is not None:
            self._tainted = True

    def _before_store(self) -> None:
        """Stores may overwrite what loads gave: keep copies where they are still needed."""
        if self._tainted and not self.stores:
            for load in self.loads:
                load.data = np.array(load.data)

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        o = self.observer
        if o.undef is not None:
            self._before_store()
            if self._tainted:
                self.stores.append((place, region, np.array(codes)))
        super().store(i, place, region, codes)
        if o.bounds or o.race is not None or o.map is not None:
            self._seen(i, place, region, None, True)
        if o.undef is not None and not self._tainted:
            o.undef.define(place, region)

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        o = self.observer
        if o.undef is not None:
            self._before_store()
            if self._tainted:
                self.stores.append((place, at, np.array(codes)))
        super().store_at(i, place, at, codes)
        self._seen(i, place, None, at, True)
        if o.undef is not None and not self._tainted:
            o.undef.define_at(place, at)

    def undefine(self, i: Instr, place: Place, region: Region) -> None:
        self.observer.undefine(i, place, region, "outside the valid region that this instruction wrote")

    def scalar_origin(self, i: Instr) -> Any:
        """Where an undefined scalar result comes from; None where it is defined."""
        return i.core.registers.get("undefined scalar")

    def _seen(self, i: Instr, place: Place, region: Region | None, at: Array | None, write: bool) -> None:
        o = self.observer
        buffer = place.buffer
        if o.bounds and buffer.space != "gm" and buffer.limit < buffer.data.size:
            low, high = region.bounds if region is not None else _range(place, at)
            if low < buffer.limit < high:
                o.reports.add(("chip", i.op, place.name), i.core.diagnostic(
                    i.op, "PTO-E2205",
                    f"{'writes' if write else 'reads'} bytes {low}..{high} of {buffer.name}, which has {buffer.limit}",
                    help="place the tile lower, or make it smaller",
                ))  # fmt: skip
        if o.race is not None:
            o.race.access(i, place, write, region, at)
        if o.map is not None and buffer.space != "gm":
            o.map.touch(i, place, write, region, at)


def _range(place: Place, at: Array | None) -> tuple[int, int]:
    base, bits, _ = start_of(place)
    if at is None or not at.size:
        return base, base
    return base + int(at.min()) * bits // 8, base + (int(at.max()) + 1) * bits // 8
