"""A kernel on the reference engine: its lowered program, and its launches with observers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, TextIO

from ...diag import Diagnostic, DiagnosticError
from ...driver import complete
from ...ir.core import Module
from ...isa.profiles import Profile
from .. import elements
from ..binding import Binding, bound
from ..entry import Launchable, check_options
from ..memory import WINDOWS_BASE, GlobalMemory
from ..progress import in_notebook
from ..result import LaunchResult
from ..watch import Watcher
from .control import Unsupported
from .core import RunError
from .dry import depends_on_data
from .grid import Grid
from .lower import LoweredModule
from .semantics import preset

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..options import LaunchOptions
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
        #: The program to run; tiles without an address have got one, and the pipes their flags.
        self.prepared = self.lowered(passes="needed" if check else "never", insert_sync=insert_sync).module
        #: The program does not order its pipes: a plain run then goes in program order.
        self.in_order = not complete(self.prepared)[1]
        self._programs: dict[tuple[bool, bool], LoweredModule] = {}
        self.program(False)

    def program(self, track: bool, tell: bool = False) -> LoweredModule:
        """Return the lowered functions; raise `DiagnosticError` for operations that cannot be executed."""
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

    def run(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        """Run one launch to its end; the options are those of `begin`."""
        with in_notebook(options) as given:
            return self.begin(*args, **given).end()

    def begin(
        self,
        *args: object,
        blocks: int = 1,
        subblocks: int | None = None,
        sanitize: str | Sequence[str] | frozenset[str] = (),
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
        timeline: object = False,
        dry: bool = False,
        only: Collection[int] | None = None,
        processes: bool = False,
    ) -> Launch:
        """Begin a launch on `blocks` blocks, all on one thread: `threads` is for engines that have them, and
        changes no result. With `ranks` (see `World.run`) every rank has that many blocks, and `args` has a
        list of arguments for each rank.

        Contiguous arrays are used in place. `subblocks` is the number of vector cores of a mixed kernel (by
        default 2; 1 if its FIFOs have no split and it does not use the number of its vector core).
        `sanitize` names checks (`pto.engine.sanitize.NAMES`, or "all"). `schedule` is the seed of an
        adversarial order of the pipes. `shadow="f64"` adds a float64 shadow run. `out` receives the output of
        the program (by default standard output). `max_steps` limits the steps of a run, `timeout` its
        seconds. `progress` is called repeatedly with the number of started blocks, of all blocks, and of
        steps. `semantics` ("hw" or "doc") selects the semantics of vector instructions for which the manual
        and the hardware differ. `watchers` observe the run, see `engine/watch.py`.

        `timeline` adds a timeline of a machine to the result: True for the machine of the target, or a
        machine by name, by file of parameters or as `isa.timing.Machine`. `dry` issues all instructions and
        computes no data, which requires that no scalar depends on data; arrays do not change. `only` are the
        numbers of the blocks to run, by default all.
        """
        from ..sanitize import OF_GRAPHS, parse_names, recorder, watching

        apart = processes or (ranks is not None and ranks.member is not None)
        self.refuse({"processes": apart})
        check_options(blocks, subblocks, schedule, max_steps, memory_map, timeout)
        result = LaunchResult(self.engine)
        names = parse_names(sanitize)
        result.checked = names - {OF_GRAPHS}
        gm = GlobalMemory()
        bindings = bound(args, gm, ranks, WINDOWS_BASE, partial(Binding, self), blocks)
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
            only,
        )
        return Launch(self, grid, bindings, result)


class Launch:
    """A launch that has begun. If it waits for a signal, it may go on after other launches have run."""

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
        """A counter of progress."""
        return self.grid.moves

    def go(self) -> bool:
        """Run as far as possible; return whether the launch has ended, also by an error."""
        if self.over:
            return True
        try:
            self.over = self.grid.go()
        except RunError as e:
            self._fail(e.diagnostic)
        except BaseException as e:
            if not isinstance(e, Exception) or (self.kernel.checked and self.grid.broken is None):
                self._write_back()
                raise  # an interrupt, or a bug of ours
            self._fail(self.grid.unexpected(e) if self.grid.broken is None else None)
        if self.over:
            self._close()
        return self.over

    def end(self) -> LaunchResult:
        """Run to the end; a launch that still waits is stuck."""
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
    """Return the requested kernel."""
    assert isinstance(request.program, Module), "the registry checks the inputs of an engine"
    return ReferenceKernel(request.program, request.entry, request.target, request.check, request.insert_sync)


def remark() -> str:
    """Return the remark of this engine for `pto doctor`."""
    how = "C++" if elements.has_compiled() else "Python, which is slower: missing native module"
    return f"; element conversions in {how}"
