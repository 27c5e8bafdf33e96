"""C++ kernels on the reference engine.

    pto run k.cpp --sanitize all -- @a.npy f32:16x64
    pto.kernel("k.cpp").run(a, out, sanitize="all")

The kernel is compiled with -DPTO_TRACED and runs on copies of its arguments. The cores of the reference
engine execute its records (`stream`, `sites`), with all observers. Their results are those of the launch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ...diag import Diagnostic, DiagnosticError, Source, Span, has_errors
from ...driver import Options, lowered
from ...ir.builder import Builder
from ...ir.core import Block, Module, Operation
from ...ir.nesting import BlockStatement, nesting
from ...ir.types import Type
from ...isa.profiles import Profile
from ..binding import Binding, bound
from ..compiled.arguments import word
from ..compiled.kernel import CompiledKernel
from ..compiled.library import LaunchOutcome
from ..cpp.files import FileKernel
from ..cpp.kernel import CppKernel
from ..cpp.nesting import blocks_around
from ..cpp.places import LibraryPlaces, stands_inside
from ..entry import check_options
from ..memory import WINDOWS_BASE, GlobalMemory
from ..progress import in_notebook
from ..ranks import RankContext
from ..reference import interval
from ..reference.code import Code, Step
from ..reference.core import BLOCKED, Core, RunError
from ..reference.grid import Grid
from ..reference.instr import IllegalInstruction
from ..reference.lower import LoweredModule
from ..reference.semantics import preset
from ..reference.sync import DrainAll
from ..result import LaunchResult
from ..watch import Watcher
from .memory import TracedMemory
from .record import MOST, CoreRecorder, LaunchRecorder, RecordedProgram, RegisterScope
from .sites import CallSite, Sites
from .spelling import CppWords, first_calls, in_cpp
from .stream import CoreRecords, Feed, Stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..options import LaunchOptions
    from ..ranks import World
    from ..registry import Request

_KINDS = {"mix": 0, "cube": 1, "vector": 2}


class TracedCore(Core):
    """A core that executes the records of a core of the kernel."""

    feed: Feed | CoreRecords
    sites: Sites

    def begin(self, feed: Feed | CoreRecords, sites: Sites) -> None:
        self.feed = feed
        self.sites = sites
        #: The storage of tiles, by memory, address, and the object in C++ or the type of the tile.
        self.placed: dict[Any, Any] = {}
        #: The storages that are not inside of others, by memory, start and size.
        self.storages: dict[str, dict[tuple[int, int], Any]] = {}
        self.tiles: dict[Any, Any] = {}
        #: Tiles by their words in records, since the last tile was placed or cut.
        self.latest: dict[Any, Any] = {}
        #: Views by their words in records.
        self.views: dict[Any, Any] = {}
        #: Windows that leave their source, by the object in C++.
        self.edges: dict[int, Any] = {}
        #: Registers by the object in C++, and by their contents.
        self.vectors: dict[Any, Any] = {}
        #: Sessions of transfers by the object in C++.
        self.sessions: dict[int, Any] = {}
        #: The recorder of its calls.
        self.note: CoreRecorder | None = None
        #: In auto mode the compiler orders pipes, and gives tiles their storage.
        self.auto = sites.auto
        #: The operation that all later ones wait for.
        self._before: Operation | None = None

    def run(self, limit: int = 1 << 62) -> None:
        if self.queued:
            self.drain()
        self.waiting = ""
        feed, sites, code, regs = self.feed, self.sites, self.code, self.regs
        words, at = feed.words, feed.at
        ticks = 0
        try:
            while ticks < limit:
                if at >= len(words):
                    if not feed.ready():
                        self.done = True
                        break
                    words, at = feed.words, feed.at
                site, values = sites.of(words, at)
                if site.waits and self._before is None:
                    self._before = site.op
                if self._before is not None:
                    if self.stall(DrainAll(self._before)) == BLOCKED:
                        break
                    self._before = None
                self.pc = site.pc
                if site.scope:
                    self._scope(site)
                    words, at = feed.words, feed.at
                    ticks += 1
                    continue
                if len(regs) < code.registers:
                    regs += [None] * (code.registers - len(regs))
                for slot, offset, make in site.loads:
                    regs[slot] = make(self, words, values + offset)
                if site.step(self) == BLOCKED:
                    break
                if site.after is not None:
                    site.after(self, words, values)
                if self.note is not None:
                    self.note.call(site, sites.slots(site))
                if self.auto or site.waits:
                    self._before = site.op
                at += words[at]
                feed.at = at
                ticks += 1
        except IllegalInstruction as problem:
            raise self.illegal(code.ops[self.pc], problem) from None
        except LookupError as missing:
            raise self.unplaced(code.ops[self.pc], missing) from None
        finally:
            self.ticks += ticks

    def _scope(self, first: CallSite) -> None:
        """Issue a vector scope as an item of pipe V; calls with registers outside of scopes form another
        item."""
        feed, sites = self.feed, self.sites
        function = self.code.function
        code = Code(function)
        scope = self.note.scope(first.op) if self.note is not None else None
        if first.scope == "begin":
            feed.taken()
        depth = 0
        while feed.ready():
            site, values = sites.of(feed.words, feed.at)
            if site.scope == "begin":
                depth += 1
            elif site.scope == "end" and first.scope == "begin":
                depth -= 1
                if depth < 0:
                    feed.taken()
                    break
            elif site.scope != "inside" and first.scope == "inside":
                break
            else:
                code.steps.append(_executed(site, feed.words, values, sites, scope))
                code.ops.append(site.op)
            feed.taken()
        code.steps.append(interval.end)
        code.ops.append(first.op)
        registers = [None] * self.code.registers
        self.enqueue("V", interval.Interval(first.op, code, 0, registers, {}))
        if self.auto:
            self._before = first.op


def _executed(
    site: CallSite, words: list[int], values: int, sites: Sites, scope: RegisterScope | None
) -> Step:
    """Return a record as a step."""

    def step(core: Any) -> None:
        site.load(core, words, values)
        site.step(core)
        if site.after is not None:
            site.after(core, words, values)
        if scope is not None:
            core.note.call(site, sites.slots(site), scope)

    return step


class TracedGrid(Grid):
    """A launch whose cores execute records."""

    stream: Stream
    sites: dict[str, Sites]
    recorder: LaunchRecorder | None = None
    #: For hand-written C++: its arguments by rank, and the source locations of its calls.
    given: Sequence[Sequence[tuple[str, Any, Type]]] = ()
    places: LibraryPlaces | None = None
    #: The program that the C++ was emitted from.
    like: Module | None = None

    def callers(self, op: Operation) -> Sequence[tuple[str, Span]]:
        found = next((s.frames[op] for s in self.sites.values() if op in s.frames), ())
        return self.places.functions(found) if self.places is not None else ()

    def arguments(self, rank: int) -> Sequence[tuple[str, Any, Type]]:
        return self.given[rank] if self.given else ()

    def nesting(self, op: Operation) -> list[BlockStatement]:
        loc = op.loc
        if loc is None or not isinstance(loc.source, Source):
            return []
        if self.like is None:
            return blocks_around(loc, self.module.source)
        at = next((o for o in self.like.walk() if o.loc is not None and o.loc.place == loc.place), None)
        return nesting(self.like, at) if at is not None else []

    def stands_inside(self, inner: Operation, outer: Operation) -> bool:
        a, b = inner.loc, outer.loc
        return a is not None and b is not None and stands_inside(a, b)

    def make_core(self, *about: Any) -> Core:
        return TracedCore(*about)

    def begin(self, core: Core, code: Code) -> None:
        assert isinstance(core, TracedCore)
        core.start(code, [])
        core.begin(
            self.stream.feed((core.rank, core.block, _KINDS[core.kind], core.sub)), self.sites[code.name]
        )
        if self.recorder is not None:
            core.note = self.recorder.of(core)


class TaskGrid(TracedGrid):
    """A block of a task with complete records."""

    feeds: dict[tuple[str, int], CoreRecords]
    number = 0  # of the block

    @property
    def signalled(self) -> bool:
        """Return True, because a record after a wait shows that another task or chip has ended the wait."""
        return True

    def make_core(self, *about: Any) -> Core:
        core = super().make_core(*about)
        core.block = self.number
        return core

    def begin(self, core: Core, code: Code) -> None:
        assert isinstance(core, TracedCore)
        core.start(code, [])
        core.begin(self.feeds[core.kind, core.sub], self.sites[code.name])


class _Traced(CompiledKernel):
    """A traced kernel on the reference engine."""

    engine = "traced"
    _places: LibraryPlaces
    #: The program that the C++ was emitted from.
    _like: Module | None = None
    #: It is in auto mode.
    _auto = False

    def _told(self) -> Source:
        """Return the source of the kernel."""
        raise NotImplementedError

    def _cores(self, subblocks: int | None) -> list[tuple[str, int]]:
        """Return the kind and sub-block of the cores of a block."""
        raise NotImplementedError

    def run(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        """Run one launch to its end; the options are those of the reference engine."""
        with in_notebook(options) as given:
            return self.begin(*args, **given).end()

    def begin(
        self,
        *args: Any,
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
        timeline: Any = False,
        processes: bool = False,
        dry: bool = False,
        only: Collection[int] | None = None,
    ) -> TracedLaunch:
        from ..sanitize import OF_GRAPHS, parse_names, recorder, watching

        apart = processes or (ranks is not None and ranks.member is not None)
        self.refuse({"processes": apart, "dry": dry, "only": only})
        check_options(blocks, subblocks, schedule, max_steps, memory_map, timeout)
        result = LaunchResult(self.engine)
        names = parse_names(sanitize)
        result.checked = names - {OF_GRAPHS}
        gm = GlobalMemory()
        bindings = bound(args, gm, ranks, WINDOWS_BASE, self._binding, blocks)
        timing = recorder(timeline, self.profile)
        watch = watching(names, shadow, memory_map, watchers, timing)
        memory = TracedMemory(gm.buffers, world=ranks)
        if ranks is not None:
            for rank, (given, binding) in enumerate(zip(args, bindings, strict=True)):
                for value, made in zip(given, binding.values[self._longest], strict=False):
                    if isinstance(value, RankContext):
                        memory.tell(made.buffer, ranks.context_of(rank, memory.base))
        cores = self._cores(subblocks)
        module = module_of(self._told(), cores)
        program, roles, sites = roles_of(
            module, self.profile, watch is not None and watch.tracks, cores,
            lambda p, code, block: Sites(p, code, block, self._places, memory, self._like, self._auto),
        )  # fmt: skip
        order = None
        if schedule is not None:
            from ..sanitize.schedule import Schedule

            order = Schedule(schedule)
        values = [{kind: [] for kind in sites} for _ in bindings]
        grid = TracedGrid(
            program, self.profile, gm, roles, values, blocks, out or sys.stdout, watch, order, progress,
            max_steps, False, preset(semantics), timeout,
        )  # fmt: skip
        grid.sites, grid.like = sites, self._like
        if isinstance(self, FileKernel):
            grid.words, grid.places = CppWords(), self._places
            grid.given = [
                [
                    (p.name, v, t)
                    for p, v, t in zip(self.args, b.values[self._longest], self._types, strict=True)
                ]
                for b in bindings
            ]
        words = [
            word(t, v) if isinstance(v, int | float | str) else memory.word(t, v)
            for binding in bindings
            for t, v in zip(self._types, binding.values[self._longest], strict=True)
        ]
        arrays = [(a.address, a.copy.size, a.buffer.name.encode(), 0) for a in memory.arrays]
        special = self._special(bindings[0])

        def call(tracer: int) -> LaunchOutcome:
            return self._library.call(
                self._symbol, words, blocks, subblocks or self.subblocks, 1, special, lambda text: None,
                arrays, tracer, ranks=0 if ranks is None else len(bindings),
            )  # fmt: skip

        grid.stream = Stream(call)
        return TracedLaunch(self, grid, bindings, result)

    def record(
        self, *args: Any, blocks: int = 1, subblocks: int | None = None, limit: int | None = None
    ) -> Module:
        """Return one launch as a program (`record.py`); raise the errors of the launch."""
        launch = self.begin(*args, blocks=blocks, subblocks=subblocks)
        values = launch.bindings[0].values[self._longest]
        try:
            recorder = launch.grid.recorder = LaunchRecorder(launch.bindings, values, limit or MOST)
            result = launch.end()
        finally:
            launch.grid.stream.stop()
        if not result.ok:
            raise DiagnosticError(result.diagnostics)
        params = [(p.name, t, v) for p, t, v in zip(self.args, self._types, values, strict=True)]
        module = RecordedProgram(recorder, self.name, self.profile, params).module
        # flags are not checked: a recording may contain the errors of the kernel
        found = lowered(module, self.profile, Options(passes="never", flags="off")).diagnostics
        if has_errors(found):
            raise DiagnosticError(found)
        return module

    def told(self, done: LaunchOutcome, frames: Sequence[int], bindings: list[Binding]) -> Diagnostic:
        """Return the diagnostic of the kernel itself, if the reference engine has reported nothing."""
        d = self._problem(done._replace(touched=range(0)), None, bindings[done.rank])  # type: ignore[arg-type]
        d.span = self._places.span(frames) or d.span
        return d


class TracedKernel(_Traced, FileKernel):
    """A traced kernel of a C++ file."""

    traced = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = LibraryPlaces(self.built.path, [self.text] if self.text is not None else [])
        self._auto = self.auto

    def _told(self) -> Source:
        return self.text or Source(self.path, "")

    def first_calls(self) -> dict[str, tuple[str, int]]:
        """Return the file and line of the first call of each function, by name."""
        return first_calls(self.text) if self.text is not None else {}

    def _cores(self, subblocks: int | None) -> list[tuple[str, int]]:
        if self.kind != "mixed":
            return [(self.kind, 0)]
        return [("cube", 0), *(("vector", n) for n in range(subblocks or self.subblocks))]


class TracedProgram(_Traced, CppKernel):
    """A traced kernel of a program: the C++ emitted for it, with calls at the lines of the program."""

    traced = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = LibraryPlaces(self.built.path, self.module.sources)
        self._like = self.module

    def _told(self) -> Source:
        return self.module.source

    def _cores(self, subblocks: int | None) -> list[tuple[str, int]]:
        most = subblocks or self.subblocks
        return [
            (kind, sub)
            for kind, sub, _ in self.roles
            if kind != "vector" or sub < most or len(self.roles) == 1
        ]


class TracedLaunch:
    """A launch that has begun, like `reference.kernel.Launch`."""

    def __init__(
        self, kernel: _Traced, grid: TracedGrid, bindings: list[Binding], result: LaunchResult
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.bindings = bindings
        self.result = result

    def end(self) -> LaunchResult:
        grid, result = self.grid, self.result
        problem: Diagnostic | None = None
        try:
            if not grid.go():
                problem = grid.stuck().diagnostic
        except RunError as e:
            problem = e.diagnostic
        finally:
            grid.stream.stop()
        done = grid.stream.end()
        for binding in self.bindings:
            binding.write_back()
        if problem is not None and problem.code == "PTO-E2104" and grid.stream.frames and done.status:
            # other cores wait for a core that ended with a fault
            problem = self.kernel.told(done, grid.stream.frames, self.bindings)
        if problem is not None:
            result.diagnostics.append(problem)
        if grid.watch is not None:
            grid.watch.tell("launch_ended", result)
        if grid.broken is not None and result.ok:
            result.diagnostics.append(grid.broken.diagnostic)
        if result.ok and done.status:
            result.diagnostics.append(self.kernel.told(done, grid.stream.frames, self.bindings))
        if isinstance(self.kernel, FileKernel):
            for d in result.diagnostics:
                in_cpp(d)
        return result


def roles_of(
    module: Module, profile: Profile, track: bool, cores: Sequence[tuple[str, int]],
    make: Callable[[LoweredModule, Code, Block], Sites],
) -> tuple[LoweredModule, list[tuple[str, int, Code]], dict[str, Sites]]:  # fmt: skip
    """Return the lowered program of a block, the code of its cores, and the sites by kind of core."""
    program = LoweredModule(module, profile, track)
    codes: dict[str, Code] = {}
    sites: dict[str, Sites] = {}
    for kind in dict.fromkeys(kind for kind, _ in cores):
        function = module.function(kind)
        assert function is not None
        codes[kind] = Code(function)
        sites[kind] = make(program, codes[kind], function.regions[0].blocks[0])
    return program, [(kind, sub, codes[kind]) for kind, sub in cores], sites


def module_of(source: Source, roles: Sequence[tuple[str, int]]) -> Module:
    """Return a module with an empty function for each kind of core."""
    builder = Builder.module()
    for kind in dict.fromkeys(kind for kind, _ in roles):
        builder.at(None).func(kind, [])
    return Module(builder.built.op, source)


def made(request: Request) -> CompiledKernel:
    """Return the requested kernel."""
    r = request
    if isinstance(r.program, Module):
        return TracedProgram(r.program, r.entry, r.target, r.check)
    return TracedKernel(r.program, r.entry, r.target, False, r.capacity, r.auto)
