"""A kernel on the reference engine: what it lowers to, and one launch of it, watched as the caller asks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ...diag import DiagnosticError
from ...driver import complete
from ...ir.core import Module
from ...isa.profiles import Profile
from .. import elements
from ..binding import Binding, Windows
from ..entry import Launchable, LaunchResult, check_options
from ..memory import GlobalMemory
from ..watch import Watcher
from .control import Unsupported
from .core import RunError
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
        self._programs: dict[bool, LoweredModule] = {}
        self.program(False)

    def program(self, track: bool) -> LoweredModule:
        """The lowered functions; raises where one holds what cannot be executed."""
        found = self._programs.get(track)
        if found is None:
            found = LoweredModule(self.prepared, self.profile, track, legal=self.checked)
            try:
                for function in self.functions:
                    found.code(str(function.attr("sym_name")))
            except Unsupported as e:
                raise DiagnosticError(e.diagnostics) from None
            self._programs[track] = found
        return found

    def run(
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
    ) -> LaunchResult:
        """One launch on `blocks` blocks, all on one thread: `threads` is for engines that have them, and
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
        """
        from ..sanitize import parse_names, watching

        check_options(blocks, subblocks, schedule, max_steps, memory_map, timeout)
        result = LaunchResult(self.engine)
        names = parse_names(sanitize)
        result.checked = names
        gm = GlobalMemory()
        bindings = _bindings(self, gm, args, ranks)
        watch = watching(names, shadow, memory_map, watchers)
        program = self.program(watch is not None and watch.tracks)
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
        )
        try:
            grid.run()
        except RunError as e:
            result.diagnostics.append(e.diagnostic)
        except Exception as e:
            if self.checked and grid.broken is None:
                raise  # a bug of ours
            if grid.broken is None:
                result.diagnostics.append(grid.unexpected(e))
        finally:
            for binding in bindings:
                binding.write_back()
        if watch is not None:
            watch.tell("launch_ended", result)
        if grid.broken is not None and result.ok:
            result.diagnostics.append(grid.broken.diagnostic)
        return result


def _bindings(
    kernel: Launchable, gm: GlobalMemory, args: Sequence[Any], ranks: World | None
) -> list[Binding]:
    """The arguments of every rank; raises where some are wrong."""
    if ranks is None:
        bindings, given = [Binding(kernel, gm)], [args]
    else:
        windows = Windows(ranks, gm)
        bindings, given = [Binding(kernel, gm, windows, rank) for rank in range(ranks.ranks)], args
    problems = [
        problem for binding, own in zip(bindings, given, strict=True) for problem in binding.bind(own)
    ]
    if problems:
        raise DiagnosticError(problems)
    return bindings


def made(request: Request) -> ReferenceKernel:
    """The kernel that is asked for."""
    assert isinstance(request.program, Module), "the registry says what the engine takes"
    return ReferenceKernel(request.program, request.entry, request.target, request.check, request.insert_sync)


def remark() -> str:
    """What `pto doctor` adds."""
    how = "C++" if elements.has_compiled() else "NumPy, which is slower: no native module"
    return f"; element conversions in {how}"
