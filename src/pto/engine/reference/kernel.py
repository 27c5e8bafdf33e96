"""A kernel on the reference engine: what it lowers to, and one launch of it, watched as the caller asks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from ...diag import Diagnostic, DiagnosticError
from ...driver import complete
from ...ir.core import Module
from ...isa.profiles import Profile
from .. import elements
from ..binding import Binding, bound
from ..entry import Launchable, check_options
from ..memory import WINDOWS_BASE, GlobalMemory
from ..result import LaunchResult
from ..watch import Watcher
from .control import Unsupported
from .core import RunError
from .dry import depends_on_data
from .grid import Grid
from .lower import LoweredModule
from .semantics import preset

if TYPE_CHECKING:
    from ..ranks import World
    from ..registry import Request


class ReferenceKernel(Launchable):
    """A kernel on the reference engine."""

    engine = "reference"

    def __init__(
        self,
        module: Module,
        entry: str | None,
        target: str | Profile | None,
        check: bool,
        insert_sync: bool = False,
    ) -> None:
        super().__init__(module, entry, target, check)
        #: What is run: where tiles have no address, they got one and the pipes their flags.
        self.prepared = self.lowered(passes="needed" if check else "never", insert_sync=insert_sync).module
        #: Whether nothing orders its pipes: a plain run then goes in program order.
        self.in_order = not complete(self.prepared)[1]
        self._programs: dict[tuple[bool, bool], LoweredModule] = {}
        self.program(False)

    def program(self, track: bool, tell: bool = False) -> LoweredModule:
        """The lowered functions; raises where one holds what cannot be executed."""
        found = self._programs.get((track, tell))
        if found is None:
            found = LoweredModule(self.prepared, self.profile, track, legal=self.checked, tell=tell)
            try:
                for function in self.functions:
                    found.code(str(function.attr("sym_name")))
            except Unsupported as e:
                raise DiagnosticError(e.diagnostics) from None
            self._programs[track, tell] = found
        return found

    def run(self, *args: Any, **options: Any) -> LaunchResult:
        """One launch, to its end; options are those of `begin`."""
        world: World | None = options.get("ranks")
        if options.pop("processes", False) or (world is not None and world.member is not None):
            self.refuse({"processes": True})
        return self.begin(*args, **options).end()

    def begin(
        self,
        *args: Any,
        blocks: int = 1,
        subblocks: int | None = None,
        sanitize: str | Sequence[str] = (),
        schedule: int | None = None,
        shadow: str | None = None,
        memory_map: bool = False,
        out: TextIO | None = None,
        progress: Callable[[int, int, int], None] | None = None,
        max_steps: int | None = None,
        timeout: float | None = None,
        semantics: str = "hw",
        watchers: Sequence[Watcher] = (),
        threads: int = 1,
        ranks: World | None = None,
        timeline: Any = False,
        dry: bool = False,
    ) -> Launch:
        """A launch on `blocks` blocks, all on one thread: `threads` is for engines that have them, and
        changes no result. With `ranks` (see `World.run`) every rank has so many blocks, and `args` are for
        each of them a list of arguments.

        Arrays are used in place where they are contiguous. `subblocks` is the number of vector cores of a
        mixed kernel (default 2; 1 where its FIFOs split nothing and it does not ask which one it is on).
        `sanitize` names checks (`pto.engine.sanitize.NAMES`, or "all"); `schedule` seeds an adversarial order
        of the pipes; `shadow="f64"` runs a float64 shadow beside; `out` receives what the program prints
        (default: standard output); `max_steps` ends a run that takes more steps, `timeout` one that takes
        more seconds; `progress` is called now and then with the blocks begun, all blocks and the steps done.
        `semantics` ("hw" or "doc") says what
        vector instructions do where the manual and the hardware differ. `watchers` are told what happens, see
        `engine/watch.py`.

        `timeline` gives the result a timeline of the machine: True for that of the target, or one by name, by
        file of parameters or as `isa.timing.Machine`. `dry` issues everything and computes no tile, where no
        scalar depends on one: arrays keep what they hold.
        """
        from ..sanitize import OF_GRAPHS, parse_names, recorder, watching

        check_options(blocks, subblocks, schedule, max_steps, memory_map, timeout)
        result = LaunchResult(self.engine)
        names = parse_names(sanitize)
        result.checked = names - {OF_GRAPHS}
        gm = GlobalMemory()
        bindings = bound(args, gm, ranks, WINDOWS_BASE, partial(Binding, self))
        depends = depends_on_data(self.prepared) if dry else None
        if depends is not None:
            raise DiagnosticError([depends])
        timing = recorder(timeline, self.profile, dry)
        watch = watching(names, shadow, memory_map, watchers, timing)
        program = self.program(watch is not None and watch.tracks, watch is not None and bool(watch.reached))
        roles = [
            (kind, sub, program.code(str(f.attr("sym_name"))))
            for kind, sub, f in self.roles
            if kind != "vector" or sub < (subblocks or self.subblocks) or len(self.roles) == 1
        ]
        order = None
        if schedule is not None:
            from ..sanitize.schedule import Schedule

            order = Schedule(schedule)
        grid = Grid(
            program,
            self.profile,
            gm,
            roles,
            [binding.values for binding in bindings],
            blocks,
            out or sys.stdout,
            watch,
            order,
            progress,
            max_steps,
            self.in_order and order is None,
            preset(semantics),
            timeout,
            dry,
        )
        return Launch(self, grid, bindings, result)


class Launch:
    """A launch that has begun. What waits for a signal may go on when others have run."""

    def __init__(
        self, kernel: ReferenceKernel, grid: Grid, bindings: list[Binding], result: LaunchResult
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.bindings = bindings
        self.result = result
        self.over = False

    @property
    def moves(self) -> int:
        """Grows whenever it has done something."""
        return self.grid.moves

    def go(self) -> bool:
        """As far as it can; whether it is over, one way or the other."""
        if self.over:
            return True
        try:
            self.over = self.grid.go()
        except RunError as e:
            self._fail(e.diagnostic)
        except BaseException as e:
            if not isinstance(e, Exception) or (self.kernel.checked and self.grid.broken is None):
                self._write_back()
                raise  # somebody interrupts it, or a bug of ours
            self._fail(self.grid.unexpected(e) if self.grid.broken is None else None)
        if self.over:
            self._close()
        return self.over

    def end(self) -> LaunchResult:
        """Go to the end: what it still waits for, nobody does."""
        if not self.go():
            self._fail(self.grid.stuck().diagnostic)
            self._close()
        return self.result

    def _write_back(self) -> None:
        for binding in self.bindings:
            binding.write_back()

    def _fail(self, found: Diagnostic | None) -> None:
        self.over = True
        if found is not None:
            self.result.diagnostics.append(found)

    def _close(self) -> None:
        self._write_back()
        if self.grid.watch is not None:
            self.grid.watch.tell("launch_ended", self.result)
        if self.grid.broken is not None and self.result.ok:
            self.result.diagnostics.append(self.grid.broken.diagnostic)


def made(request: Request) -> ReferenceKernel:
    """The kernel that is asked for."""
    assert isinstance(request.program, Module), "the registry says what the engine takes"
    return ReferenceKernel(request.program, request.entry, request.target, request.check, request.insert_sync)


def remark() -> str:
    """What `pto doctor` adds."""
    how = "C++" if elements.has_compiled() else "NumPy, which is slower: no native module"
    return f"; element conversions in {how}"
