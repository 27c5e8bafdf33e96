"""The sanitizers of one launch together: what they see of memory, and how instructions run under them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.core import Operation
from ...isa.profiles import Profile
from ..elements import Array
from ..memory import Buffer, ConvTile, Pointer, Tile, View
from ..reference.grid import Watch
from ..reference.instr import Instr, Place, Port, start_of
from ..region import Region
from ..registers import SPACE, SPECIAL, Register
from .blocks import forget_blocks
from .clock import Clock, meet
from .interval import IntervalHazards
from .race import RaceChecker
from .reports import Reports, bytes_of
from .undef import FREED, PADDING, SCRATCH, Load, Origin, Undefined, dependence, name_of

if TYPE_CHECKING:
    from ..reference.core import Core
    from ..reference.grid import Grid
    from ..reference.state import CoreState


class Observer(Watch):
    """Everything that watches a launch."""

    def __init__(
        self,
        profile: Profile,
        names: frozenset[str],
        shadow: Any,
        memory_map: Any,
        result: Any,
    ) -> None:
        self.profile = profile
        self.names = names
        self.result = result
        self.reports = Reports()
        self.sync = "sync" in names
        self.tracks = "undef" in names
        self.bounds = "oob" in names
        self.undef = Undefined(self.reports) if self.tracks else None
        self.race: RaceChecker | None = None
        self.clocks: dict[int, Clock] = {}
        #: What happens inside the vecscopes of each core.
        self.intervals: dict[Core, IntervalHazards] = {}
        self.shadow = shadow
        self.map = memory_map
        #: Whether an instruction runs once more, beside the program: what it does wrong is said once.
        self._beside = False

    # -- cores -----------------------------------------------------------------------------------------

    def core_started(self, core: Core) -> None:
        core.port = Watched(self)
        core.observer = self.perform
        if "race" in self.names:
            if self.race is None:
                self.race = RaceChecker(self.profile.isa, self.reports, core.grid.blocks)
            core.clock = self.clocks.setdefault(core.block, Clock(self.profile.isa, core.block))

    def interval_started(self, core: Core, op: Operation) -> None:
        if "race" in self.names:
            self.intervals.setdefault(core, IntervalHazards(self.reports)).started()

    def interval_ended(self, core: Core, op: Operation) -> None:
        if core in self.intervals:
            self.intervals[core].ended(core)

    def memory_barrier(self, core: Core, op: Operation, kind: str) -> None:
        if core in self.intervals:
            self.intervals[core].barrier(kind)

    def other_granularity(self, core: Any, op: Operation, mask: Register, size: int) -> None:
        if self._beside:
            return
        d = core.diagnostic(
            op,
            "PTO-E2208",
            f"%{mask.name} was made for elements of {8 * mask.granule} bits, and these have {8 * size}",
            expected=f"a mask of granularity b{8 * size}",
            got=f"b{8 * mask.granule}",
            help="make the mask for this width, or change it with pbitcast, ppack or punpack",
        )
        made = next((v.op for v in op.operands if v.name == mask.name), None)
        if made is not None:
            d.notes.append((f"%{mask.name} is made here", core.grid.span(made)))
        self.reports.add(("granularity", made or mask.name), d)  # one wrong mask is one report

    def core_ended(self, core: Core) -> None:
        self.intervals.pop(core, None)
        last = not any(c.block == core.block for c in core.grid.active if c is not core)
        if last:  # only the table of `BlockMap` is still of interest to other blocks
            self.clocks.pop(core.block, None)
            for buffer in core.gm.buffers:
                buffer.shadows.pop(f"race {core.block}", None)
        if not self.sync:
            return
        for (src, dst, number), left in core.flags.items():
            if left:
                op = left[0][1]
                flag = f"[<PIPE_{src}>, <PIPE_{dst}>, <EVENT_ID{number}>]"
                d = core.diagnostic(
                    op,
                    "PTO-E0805",
                    f"flag PIPE_{src} -> PIPE_{dst}, id {number} is still set when the kernel ends",
                    help=f"wait for it with 'pto.wait_flag{flag}' before the end, or set it one time less: "
                    "the next kernel would find it set",
                )
                self.reports.add(("left", op), d)
        for number, token in core.tokens.items():
            for pipe, (_, op) in token.held.items():
                d = core.diagnostic(
                    op,
                    "PTO-E0807",
                    f"PIPE_{pipe} still holds buffer token {number} when the kernel ends",
                    help=f"release it with 'pto.rls_buf[PIPE_{pipe}, {number}]' after the last use of the "
                    "buffer",
                )
                self.reports.add(("held", op), d)
        for (owner, number), left in core.cluster.semaphores.items() if last else ():
            if left:
                op = left[0][1]
                d = core.diagnostic(
                    op,
                    "PTO-E0805",
                    f"cross-core semaphore {number} ({owner}) is still raised when the kernel ends",
                    help="let the other core wait for it, or raise it one time less: the next kernel would "
                    "find it raised",
                )
                self.reports.add(("raised", op), d)

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
        row = i.op.row
        again = row is None or row.effect != "io"  # what prints runs once
        port = Watched(self, bool(i.poison))
        i.port = port
        if self.shadow is not None and again:
            self._beside = True
            self.shadow.before(i, execute)
            self._beside = False
        result = execute(i)
        if self.undef is not None:
            if again:
                self._beside = True
                self._undefined(self.undef, i, execute, port, result)
                self._beside = False
            for place, region in port.unspecified:
                self.undefine(i, place, region, PADDING)
        for name in row.scratch_on(i.isa) if row is not None else ():
            self._scratch(i, i.args.get(name))
        if self.race is not None and row is not None and row.family == "signal":
            self._signal(i, row.name, result)
        if self.shadow is not None and again:
            self.shadow.after(i, port.written)
        if self.map is not None:
            self.map.tick(i)
        core: Any = i.core
        if core in self.intervals and core.interval is not None:
            self.intervals[core].done(i)
        return result

    def _scratch(self, i: Instr, place: Any) -> None:
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
        self.undefine(i, place, region, SCRATCH)

    def undefine(self, i: Instr, place: Place, region: Region, kind: str) -> None:
        if self.undef is not None and region.shape[0] and region.shape[1]:
            number = self.undef.number(Origin(i.op, name_of(place), None, kind))
            self.undef.define(place, region, np.ones(region.shape, bool), number)

    def _undefined(
        self, undef: Undefined, i: Instr, execute: Callable[[Instr], Any], port: Watched, result: Any
    ) -> None:
        i.core.registers["undefined scalar"] = None
        load = next((n for n in port.loads if n.mask is not None), None)
        if load is None and not i.poison:
            return
        origin = undef.origin(i, load) if load is not None else _scalar_origin(i)
        found = dependence(i, execute, port.loads, port.stores, result)
        if found.address:  # reported here and once: what comes of it counts as defined
            undef.report(i.core, i.op, origin, "an address depends on undefined data")
        elif found.result:
            i.core.registers["undefined scalar"] = origin
        number = undef.number(origin) if any(t.any() for t in found.taints) else 0
        fifo = i.op.row is not None and i.op.row.fifo == "push"  # its slot carries what is undefined
        for (place, where, _), taint in zip(port.stores, found.taints, strict=True):
            bad = taint.any() and not found.address
            if place.buffer.space != "gm":
                undef.define(place, where, taint if bad else None, number)
            elif bad and not fifo:
                at = ", ".join(str(n) for n in np.unravel_index(int(np.argmax(taint)), taint.shape))
                undef.report(
                    i.core,
                    i.op,
                    origin,
                    f"stores undefined data to {place.buffer.name}: {int(taint.sum())} of {taint.size} "
                    + (f"elements, the first at ({at})" if taint.size > 1 else "elements"),
                )

    def _signal(self, i: Instr, name: str, result: Any) -> None:
        """Signals in global memory order what their writer did before what their reader does after."""
        assert self.race is not None
        view: View = i.args["signal"]
        if name == "tnotify":
            self.race.signals.notify(i.core, view.buffer, view.offset)
        elif result:
            self.awaited(i.core, view)

    # -- what cores tell -------------------------------------------------------------------------------

    def allocated(self, core: Core, op: Operation, tile: Any) -> None:
        if not self.bounds or not isinstance(tile, Tile | ConvTile) or tile.address is None:
            return
        buffer, low, high = tile.buffer, tile.address, tile.address + tile.size
        align = self.profile.align
        if low < 0 or (high > buffer.limit and not _unplaced(buffer, low, high)):
            d = core.diagnostic(
                op,
                "PTO-E2205",
                f"%{tile.name} takes bytes {low}..{high} of {buffer.name}, which has {buffer.limit}",
                expected=f"an end of at most {buffer.limit}",
                got=str(high),
                help="place it lower, or make the tile smaller",
            )
            self.reports.add(("place", op), d)
        elif low % align:
            d = core.diagnostic(
                op,
                "PTO-E2102",
                f"%{tile.name} lies at byte {low} of {buffer.name}, which is no multiple of {align}",
                expected=f"a multiple of {align}",
                got=str(low),
                help=f"move it to {low // align * align} or {-(-low // align) * align}",
            )
            self.reports.add(("place", op), d)

    def outside_tile(
        self, core: Core, op: Operation, source: Tile, at: tuple[int, int], size: tuple[int, int]
    ) -> None:
        if self.bounds:
            d = core.diagnostic(
                op,
                "PTO-E2204",
                f"a window of {size[0]} x {size[1]} from ({at[0]}, {at[1]}) leaves %{source.name}, "
                f"a tile of {source.rows} x {source.cols}",
                help=f"keep the offsets within 0..{source.rows - size[0]} and 0..{source.cols - size[1]}",
            )
            self.reports.add(("subview", op), d)

    def outside_view(self, core: Core, op: Operation, source: View, dim: int, offset: int, size: int) -> None:
        if self.bounds:
            extent = source.dims[dim]
            left = max(0, extent - offset)
            d = core.diagnostic(
                op,
                "PTO-E2204",
                f"elements {offset}..{offset + size} of dimension {dim} leave the view %{source.name}, "
                f"which has {extent}",
                expected=f"an end of at most {extent}",
                got=str(offset + size),
                help="a partition starts at 0 or later"
                if offset < 0
                else f"only {left} elements are left there: make the partition that small, with a dynamic "
                "valid region of the tile",
            )
            self.reports.add(("view", op), d)

    def undefined_use(self, core: Core, op: Operation, origin: Any, what: str) -> None:
        if self.undef is not None and origin is not None:
            self.undef.report(core, op, origin, f"{what} depends on undefined data")

    def flag_overrun(self, core: Core, op: Operation, what: str, first: Operation) -> None:
        d = core.diagnostic(
            op,
            "PTO-E0804",
            f"{what} is set although it is set already",
            help="wait for it between the two, or use another event id",
        )
        d.notes.append(("set here before", core.grid.span(first)))
        self.reports.add(("overrun", op), d)

    def token_misuse(self, core: Core, op: Operation, what: str) -> None:
        d = core.diagnostic(op, "PTO-E0806", what, help="pair every get with one release")
        self.reports.add(("token", op), d)

    def met(self, cores: list[Core]) -> None:
        if self.race is None or not cores:
            return
        meet(cores)
        grid = cores[0].grid
        if len(cores) == grid.blocks * len(grid.roles):
            forget_blocks(grid.gm.buffers)

    def awaited(self, core: CoreState, signal: View) -> None:
        if self.race is not None:
            at = signal.whole()
            words = at.base + (at.rows.offsets[:, None] + at.cols.offsets[None, :]) * at.bits // 8
            self.race.signals.awaited(core, signal.buffer, [int(n) for n in words.ravel()])

    def freed(self, core: Core, op: Operation, tile: Tile) -> None:
        """The producer may overwrite a popped tile from here on."""
        if self.undef is not None and tile.address is not None:
            region = tile.region(tile.rows, tile.cols)
            number = self.undef.number(Origin(op, name_of(tile), None, FREED))
            self.undef.define(tile, region, np.ones(region.shape, bool), number)


class Watched(Port):
    """The way to memory of one instruction under watch: records its loads and stores."""

    def __init__(self, observer: Observer, tainted: bool = False) -> None:
        self.observer = observer
        self.loads: list[Load] = []
        self.stores: list[tuple[Place, Any, Array]] = []
        #: What the instruction leaves unspecified, whatever it wrote there.
        self.unspecified: list[tuple[Place, Region]] = []
        #: Everything stored, where a float64 shadow follows.
        self.written: list[tuple[Place, Any]] = []
        self._tainted = tainted

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
            self._keep(place, at, found, undef.mask_at(place, at))
        return found

    def _keep(self, place: Place, where: Any, found: Array, mask: Array | None) -> None:
        self.loads.append(Load(place, where, found, mask))
        if mask is not None:
            self._tainted = True

    def _before_store(self, place: Place, where: Any, codes: Array) -> None:
        """Stores may overwrite what loads gave: keep copies where they are still needed."""
        if self.observer.shadow is not None:
            self.written.append((place, where))
        if self.observer.undef is not None and self._tainted:
            if not self.stores:
                for load in self.loads:
                    load.data = np.array(load.data)
            self.stores.append((place, where, np.array(codes)))

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        o = self.observer
        self._before_store(place, region, codes)
        super().store(i, place, region, codes)
        if o.bounds or o.race is not None or o.map is not None:
            self._seen(i, place, region, None, True)
        if o.undef is not None and not self._tainted:
            o.undef.define(place, region)

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        o = self.observer
        self._before_store(place, at, codes)
        super().store_at(i, place, at, codes)
        self._seen(i, place, None, at, True)
        if o.undef is not None and not self._tainted:
            o.undef.define(place, at)

    def undefine(self, i: Instr, place: Place, region: Region) -> None:
        self.unspecified.append((place, region))

    def scalar_origin(self, i: Instr) -> Any:
        """Where an undefined scalar result comes from; None where it is defined."""
        return i.core.registers.get("undefined scalar")

    def _seen(self, i: Instr, place: Place, region: Region | None, at: Array | None, write: bool) -> None:
        o = self.observer
        buffer = place.buffer
        if buffer.space == SPACE:
            return  # a register belongs to one value of one core
        if o.bounds and buffer.space != "gm" and buffer.limit < buffer.data.size:
            low, high = region.bounds if region is not None else _range(place, at)
            if low < high and high > buffer.limit and not _unplaced(buffer, low, high):
                d = i.core.diagnostic(
                    i.op,
                    "PTO-E2205",
                    ("writes" if write else "reads")
                    + f" {bytes_of(place, low, high)}, which has {buffer.limit}",
                    help="place the tile lower, or make it smaller",
                )
                o.reports.add(("chip", i.op, place.name), d)
        if o.bounds and isinstance(place, Pointer) and place.home is not None:
            self._leaves(i, place, place.home, *(region.bounds if region is not None else _range(place, at)))
        if o.race is not None:
            o.race.access(i, place, write, region, at)
            core: Any = i.core
            if core.interval is not None and buffer.space == "vec" and i.isa != "cpu":
                o.intervals[core].access(i, place, write, region, at)
        if o.map is not None and buffer.space not in ("gm", "fifo", SPECIAL):
            o.map.touch(i, place, write, region, at)

    def _leaves(self, i: Instr, place: Pointer, home: tuple[int, int, str], low: int, high: int) -> None:
        """An access through a pointer made from a tile stays inside that tile."""
        first, end, name = home
        if low < high and (low < first or high > end):
            d = i.core.diagnostic(
                i.op,
                "PTO-E2209",
                f"touches bytes {low - first}..{high - first} from the start of %{name}, "
                f"which has {end - first}",
                help="the pointer comes from that tile: check offsets and sizes",
            )
            self.observer.reports.add(("home", i.op, name), d)


def _scalar_origin(i: Instr) -> Origin:
    """Where the first undefined scalar operand comes from."""
    (name, n), parent = next(iter(i.poison.items()))
    value = i.op.group(name)[n or 0]
    shown = f"%{value.name}" if value.name else ""
    return Origin(i.op, shown, None, parent.kind, "which is undefined", parent)


def _unplaced(buffer: Buffer, low: int, high: int) -> bool:
    """Whether bytes lie where the engine puts what the program did not place, behind the capacity."""
    return buffer.limit <= low and high <= buffer.unplaced


def _range(place: Place, at: Array | None) -> tuple[int, int]:
    base, bits, _ = start_of(place)
    if at is None or not at.size:
        return base, base
    return base + int(at.min()) * bits // 8, base + (int(at.max()) + 1) * bits // 8
