"""`pto run`: execute a kernel on arrays from files, with checks, timelines and memory maps."""

from __future__ import annotations

import io
import os
import sys
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..asm import parse_source
from ..diag import Diagnostic, DiagnosticError, visible
from ..engine import making, registry
from ..engine.registry import Engine
from ..engine.sanitize import summary
from ..isa.machine import SUBBLOCKS
from .arguments import Argument
from .common import (
    CommandParser,
    add_auto,
    add_diagnostics,
    add_sanitize,
    add_target,
    block_count,
    ended,
    rank_count,
    read_input,
    refuse_auto,
    seconds,
    target,
    tell,
    write_output,
)
from .timing import (
    add_timing,
    apply_advice,
    cpp_of,
    keeper,
    map_asked,
    map_is_page,
    timing_asked,
    write_map,
    write_timing,
)

if TYPE_CHECKING:
    from ..engine.debug.session import Stops
    from ..engine.entry import Launchable
    from ..engine.ranks import World
    from ..engine.result import LaunchResult
    from ..ir.core import Module
    from ..isa.profiles import Profile

_EXAMPLES = """\
  pto run k.pto -- @a.npy @b.npy f32:16x64=out.npy
  pto run k.pto --entry vec_add --blocks 24 -- @a.npy @+inout.npy 4096 1.5
  pto run k.pto --sanitize all --print -- @a.npy f32:16x64
  pto run k.pto --schedule seed=7 -- @a.npy f32:16x64
  pto run k.pto --shadow f64 --memory-map map.html -- @a.npy f32:16x64
  pto run k.pto --time --blocks 24 --dry -- f16:4096x4096 f16:4096x4096 f32:4096x4096
  pto run k.pto --timeline t.html -- @a.npy f32:16x64
  pto run k.pto --threads 4 --blocks 24 -- @a.npy f32:16x64=out.npy
  pto run k.pto --engine cpp -- @a.npy f32:16x64=out.npy
  pto run k.cpp --entry vec_add --arch a5 --checked -- @a.npy @b.npy f32:16x64=out.npy
  pto run k.so -- @a.npy f32:16x64
  pto run k.elf -- @a.npy f32:16x64

  pto run k.pto --ranks 4 --sanitize all -- @x{rank}.npy window:f32:1x256 window:i32:4 context f32:1x256=y.npy

arguments:
  @FILE.npy            an array, copied in
  @+FILE.npy           an array, written back to its file
  DTYPE:DIMS           a new array of zeros, e.g. f32:16x64 or bf16:128
  DTYPE:DIMS=FILE.npy  the same, saved after the run
  12, 0x10, 1.5        a scalar

with --ranks, every rank has its own arrays; {rank} in a file name is the number of the rank, and without it
the arrays of all ranks are saved in one file:
  window:DTYPE:DIMS    memory that other ranks can access, initially zero (=FILE.npy saves it)
  context              pointer to a structure: rank, number of ranks, and where their windows begin
  rank, ranks          the rank and the number of ranks, as numbers
"""


def parser(prog: str, description: str, examples: str) -> CommandParser:
    """Return the parser of `pto run` and `pto debug`."""
    p = CommandParser(prog, description, examples)
    p.add_argument(
        "input",
        metavar="FILE",
        help="program text or bytecode ('-' for standard input), C++ (.cpp), a library of pto build, or "
        "output of ptoas (.elf, .so)",
    )
    p.add_argument("args", nargs="*", metavar="ARG", help="one value per argument of the kernel, after '--'")
    p.add_argument("--entry", metavar="NAME", help="function to run (default: the only entry)")
    p.add_argument(
        "--engine",
        choices=tuple(registry.ENGINES),
        help=_engines(),
    )
    add_target(p)
    p.add_argument(
        "--blocks", type=block_count, default=1, metavar="N", help="blocks of the launch (default: 1)"
    )
    p.add_argument(
        "--ranks",
        type=rank_count,
        metavar="N",
        help="launch on N ranks that can access each other's windows, each with --blocks blocks",
    )
    p.add_argument("--processes", action="store_true", help="with --ranks: run each rank as a process")
    p.add_argument(
        "--messages",
        metavar="FILE",
        help="with --ranks: draw the data and signals between ranks, as SVG",
    )
    p.add_argument(
        "--subblocks",
        type=int,
        choices=(1, SUBBLOCKS),
        help="vector cores per block of a mixed kernel "
        f"(default: {SUBBLOCKS}, or 1 if the kernel is written for one)",
    )
    p.add_argument(
        "--threads",
        type=_threads,
        default=1,
        metavar="N",
        help=f"host threads of engine {registry.those_with('threads')} (default: 1)",
    )
    p.add_argument(
        "--checked",
        action="store_true",
        help=f"engine {registry.those_with('checked')}: compile with run-time checks of bounds, capacity and "
        "validity",
    )
    add_auto(p)
    add_sanitize(p, "check the run")
    p.add_argument(
        "--schedule",
        type=_seed,
        metavar="seed=N",
        help="run the pipes in an adversarial order that the synchronization allows, chosen by seed N",
    )
    p.add_argument(
        "--shadow", choices=("f64",), help="compute float64 values too, and report the first deviation"
    )
    p.add_argument(
        "--memory-map",
        metavar="FILE",
        help="write the memory map, tiles in each buffer over time: .html, or text; '-' for stdout",
    )
    add_timing(p)
    p.add_argument(
        "--semantics",
        choices=("hw", "doc"),
        help="follow the hardware or the manual where vector instructions differ (default: hw)",
    )
    p.add_argument("--print", action="store_true", dest="show_arrays", help="print the arrays after the run")
    p.add_argument("--max-steps", type=_steps, metavar="N", help="stop a run after N scalar steps")
    p.add_argument("--timeout", type=seconds, metavar="SECONDS", help="stop a run after that time")
    p.add_argument(
        "--enable-insert-sync",
        action="store_true",
        help="insert flags into a program that has addresses but no flags "
        "(a program without addresses always gets both)",
    )
    p.add_argument("--no-check", action="store_true", help="skip the verifier")
    p.add_argument("-q", "--quiet", action="store_true", help="print no summary and no progress")
    add_diagnostics(p)
    add_debugger(p)
    return p


def add_debugger(p: CommandParser) -> None:
    p.add_argument(
        "--break",
        action="append",
        default=[],
        dest="breaks",
        metavar="LINE[:N]",
        help="stop before a line, or before its N-th execution; FILE:LINE, @FUNCTION, 'LINE if CONDITION'",
    )
    p.add_argument(
        "--watch",
        action="append",
        default=[],
        dest="watches",
        metavar="%TILE[R,C]",
        help="stop after a write to this element",
    )
    p.add_argument(
        "--command",
        action="append",
        default=[],
        dest="commands",
        metavar="TEXT",
        help="debugger commands to run in order: print, step, continue, .. ('help' lists them)",
    )
    p.add_argument(
        "--command-file",
        metavar="FILE",
        help="read debugger commands from a file, one per line; '-' for stdin",
    )
    p.add_argument("--debug", action="store_true", help="stop before the first operation")


def parsed(p: CommandParser, arguments: Sequence[str], program: str | None = None) -> Namespace:
    """Return the options, with the arguments of the kernel after '--'. `program` is the input if it is
    known."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    inputs = [] if program is None else ["program"]
    options = p.parse_launch([*arguments[:at], *inputs, *arguments[at:]])
    options.input = program or options.input
    asked = options.breaks or options.watches or options.sanitize
    scripted = options.commands or options.command_file
    options.stop_first = options.debug or bool(scripted and not asked)
    options.debug = bool(
        options.debug or options.breaks or options.watches or options.commands or options.command_file
    )
    options.timeline = timing_asked(options)
    options.keeper = keeper(options)
    options.watchers = []
    options.drawn = None
    if options.messages is not None:
        if options.ranks is None:
            p.error("--messages needs --ranks N")
        from ..engine.sanitize.messages import Messages

        options.drawn = Messages()
        options.watchers.append(options.drawn)
        if options.debug:
            p.error("cannot combine --messages with the debugger: leave out --break, --watch and --debug")
    if options.processes and options.ranks is None:
        p.error("--processes needs --ranks N")
    from ..host.meeting import placed

    options.place = placed(os.environ) if options.ranks is not None else None
    options.processes = options.processes or options.place is not None
    return options


def main(arguments: Sequence[str]) -> int:
    doc = "Run a kernel without an NPU, with exact results, and report bugs of the program."
    options = parsed(parser("pto run", doc, _EXAMPLES), arguments)
    problems = run(options)
    return ended(problems, options)


def _engines() -> str:
    """Return the help of --engine, from the table of engines."""
    *first, last = [e.doc for e in registry.ENGINES.values()]
    usual = {kind: [e.name for e in registry.by_default(kind)] for kind in registry.INPUTS}
    others: dict[str, list[str]] = {}
    for kind, names in usual.items():
        if names != usual["module"]:
            others.setdefault(names[0], []).append(registry.INPUTS[kind])
    order = f"the first of {', '.join(usual['module'])} that supports the options"
    default = [order, *(f"{' and '.join(kinds)}: {name}" for name, kinds in others.items())]
    return f"engine: {', '.join(first)}, or {last} (default: {'; '.join(default)})"


def _choice(options: Namespace, kind: str) -> list[Engine]:
    """Return the engines for an input of some kind: the engine of --engine, or all that support the options,
    in order of preference. Raise `DiagnosticError` if there is none."""
    able = registry.those_for(kind)
    if options.engine is None:
        usual = registry.by_default(kind)
        fit = [e for e in usual if not _lacking(options, e)]
        if fit:
            return fit
        named = min(reversed(usual), key=lambda e: len(_lacking(options, e)))
    else:
        named = registry.ENGINES[options.engine]
    if named not in able:
        what = f"'{options.input}' is {'a' if kind == 'module' else 'not a'} program"
        names = ", ".join(e.name for e in able)
        raise DiagnosticError([
            Diagnostic("PTO-E2403", f"{what}: it runs on engine {names} only", help="leave out --engine")
        ])  # fmt: skip
    _refuse(options, kind, named)
    return [named]


def _lacking(options: Namespace, engine: Engine) -> list[str]:
    asked = {name: getattr(options, name, None) for name in registry.options()}
    return registry.lacking(engine.name, asked)


def _refuse(options: Namespace, kind: str, engine: Engine) -> None:
    """Raise `DiagnosticError` if an engine lacks an option."""
    lacking = _lacking(options, engine)
    if lacking == ["checked"]:
        more = "--sanitize all finds more" if "sanitize" in engine.options else ""
        help = "; ".join(filter(None, (engine.instead.get("checked", ""), more)))
        message = f"--checked is an option of engine {registry.those_with('checked')}"
        raise DiagnosticError([Diagnostic("PTO-E2403", message, help=help)])
    if lacking:
        way_out = "compile with --checked, or write it as a program"
        if kind == "module" or kind in registry.HOLDING:
            way_out = registry.instead_of(lacking)
        raise DiagnosticError([registry.refusal(engine.name, map(registry.flag, lacking), way_out)])


def _kernel(options: Namespace) -> Launchable:
    """Return the kernel to run; raise `DiagnosticError` if there is none."""
    kind = registry.kind_of(options.input) or "module"
    engines = _choice(options, kind)
    if kind != "module":
        request = registry.Request(options.input, options.entry, options.arch, checked=options.checked)
        request = request.replace(capacity=dict(options.capacity), auto=options.auto)
        return making.first(
            engines, lambda e: making.make(e, request if kind in e.takes else _embedded(options))
        )
    refuse_auto(options)
    source, problems = read_input(options.input)
    if source is None:
        raise DiagnosticError(problems)
    facts = [*map(repr, (options.entry, options.arch, sorted(options.capacity), options.no_check))]

    def make(engine: Engine) -> Launchable:
        module, problems = parse_source(source)
        if module is None:
            raise DiagnosticError(problems)
        return making.make(engine, _request(options, module, target(options, module)))

    if options.sanitize:  # reports need the text; the run reports flags that block it
        return making.first(engines, make, (*making.ELSEWHERE, "PTO-E0803"))
    return making.first(engines, lambda e: making.of_text(e, source, facts, lambda: make(e)))


def _request(options: Namespace, module: Module, target: str | Profile | None) -> registry.Request:
    return registry.Request(
        module,
        options.entry,
        target,
        check=not options.no_check,
        insert_sync=options.enable_insert_sync,
        checked=options.checked,
    )


def _embedded(options: Namespace) -> registry.Request:
    """Return a request for the program in a file of images, for an engine that takes programs."""
    from ..engine.native.files import program_and_target

    refuse_auto(options)
    module, usual = program_and_target(options.input)
    return _request(options, module, target(options, module) or usual)


class Prepared:
    """A kernel and its arguments, ready for a launch. Raises `DiagnosticError` if one of them is invalid."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.kernel = _kernel(options)
        self.world = _world(options)
        self.values = [Argument(text, self.world) for text in options.args]
        broken = [a.problem for a in self.values if a.problem is not None]
        if broken:
            raise DiagnosticError(broken)
        own = {
            "subblocks": options.subblocks, "threads": options.threads, "sanitize": options.sanitize,
            "schedule": options.schedule, "shadow": options.shadow, "max_steps": options.max_steps,
            "timeout": options.timeout,
            "memory_map": map_asked(options), "semantics": options.semantics or "hw",
            "ranks": self.world, "processes": options.processes, "dry": options.dry,
            "watchers": [*options.watchers, *([options.keeper] if options.keeper is not None else [])],
            "timeline": options.timeline or map_is_page(options),
        }  # fmt: skip
        able = registry.ENGINES[self.kernel.engine].options
        self.launch = {"blocks": options.blocks, **{n: v for n, v in own.items() if n in able}}
        of_ranks = [[a.values[rank] for a in self.values] for rank in range(options.ranks or 1)]
        self.args = of_ranks[0] if self.world is None else of_ranks
        self.started = time.perf_counter()

    def run(self) -> LaunchResult:
        bar = _Progress(not self.options.quiet and sys.stderr.isatty())
        printed = io.StringIO()
        result = self.kernel.run(*self.args, progress=bar.step, out=printed, **self.launch)
        bar.end()
        sys.stdout.write(printed.getvalue())
        return result

    def stops(self) -> Stops:
        """Return the launch for a debugger, before its first operation."""
        try:
            stops = self.kernel.debug(
                *self.args, breaks=self.options.breaks, watch=self.options.watches,
                entry=self.options.stop_first, **self.launch,
            )  # fmt: skip
            return cast("Stops", stops)
        except ValueError as e:
            raise DiagnosticError(
                [Diagnostic("PTO-E2016", str(e), help="'pto debug --help' has examples")]
            ) from None

    def debug(self) -> LaunchResult | list[Diagnostic]:
        """Run the kernel under a prompt or a list of commands. Return the findings so far if the user quits
        early."""
        from ..engine.debug.prompt import Prompt

        stops, options = self.stops(), self.options
        commands = [*options.commands, *_command_file(options)]
        interactive = not commands and options.command_file is None and sys.stdin.isatty()
        ended = Prompt(stops.session, commands, interactive).run(options.stop_first)
        return stops.result if ended and stops.result is not None else stops.session.findings


def _command_file(options: Namespace) -> list[str]:
    path = options.command_file
    if path is None:
        return []
    try:
        if path == "-":
            return sys.stdin.read().splitlines()
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read().splitlines()
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise DiagnosticError([Diagnostic("PTO-E0001", f"cannot read '{path}': {why}")]) from None


def run(options: Namespace) -> list[Diagnostic]:
    try:
        ready = Prepared(options)
        result = ready.debug() if options.debug else ready.run()
    except DiagnosticError as e:
        return e.diagnostics
    return result if isinstance(result, list) else finished(ready, result)


def finished(ready: Prepared, result: LaunchResult) -> list[Diagnostic]:
    """Save and print the results of a launch."""
    options, k, world, values = ready.options, ready.kernel, ready.world, ready.values
    if world is not None and world.member is not None and world.member.rank != 0:
        return result.diagnostics if not result.ok else []  # the first rank has the results of all ranks
    if result.ok:
        for argument in values:
            result.diagnostics.extend(argument.save())
    if options.show_arrays:
        for param, argument in zip(k.args, values, strict=False):
            for rank, array in enumerate(argument.arrays()):
                tell(f"%{param.name}{f' of rank {rank}' if world is not None else ''} =\n{array}")
    if options.drawn is not None:
        title = f"@{k.name} on {options.ranks} ranks"
        result.diagnostics.extend(write_output(options.messages, options.drawn.svg(title).encode()))
    if options.memory_map is not None and result.memory_map is not None:
        result.diagnostics.extend(write_map(result.memory_map, result.timeline, options, k))
    if result.timeline is not None:
        from ..perf.explorer.kernel import Recorded

        values = options.keeper.values if options.keeper is not None else None
        recorded = Recorded(values, result.memory_map, cpp_of(k) if options.view is not None else None)
        result.diagnostics.extend(write_timing(result.timeline, options, k.name, recorded))
        if options.apply_to is not None:
            result.diagnostics.extend(
                apply_advice(result.timeline, options, lambda file: _timeline(options, file))
            )
    if result.shadow is not None and not options.quiet:
        tell(result.shadow.text())
    if result.ok and not options.quiet and options.diagnostics == "text":
        checks = _verdict(options.sanitize, result.checked, len(result.diagnostics))
        blocks = f"{options.blocks} blocks" if options.blocks > 1 else "1 block"
        if options.ranks is not None:
            blocks = f"{options.ranks} ranks of {blocks}"
        took = f"{time.perf_counter() - ready.started:.3f} s"
        how = f"target {k.profile.name}, engine {result.engine}{checks}"
        tell(f"@{visible(k.name)}: ok ({blocks}, {how}, {took})")
    return result.diagnostics


def _verdict(asked: Collection[str], checked: Collection[str], warnings: int) -> str:
    """Return the checks of a run and their result, as text."""
    if not checked:
        return ", nothing checked: a kernel has no tasks" if asked else ""
    found = f"{warnings} warning{'s'[: warnings != 1]}" if warnings else "nothing found"
    return f", {summary(checked)}: {found}"


def _timeline(options: Namespace, file: str) -> Any:
    """Return the timeline of the same launch of another program."""
    return (
        Prepared(Namespace(**{**vars(options), "input": file, "quiet": True, "keeper": None})).run().timeline
    )


class _Progress:
    """A line on a terminal that shows the progress of launches that take longer than a second."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.started = time.perf_counter()
        self.last = 0.0
        self.width = 0

    def step(self, begun: int, total: int, steps: int) -> None:
        now = time.perf_counter()
        if self.wanted and now - self.started > 1.0 and now - self.last > 0.1:
            self.last = now
            text = f"block {begun} of {total}, {steps:,} steps"
            self.width = max(self.width, len(text))
            print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)


def _world(options: Namespace) -> World | None:
    """Return the ranks of a launch with several ranks, else None."""
    if options.ranks is None:
        return None
    from ..engine.ranks import World
    from ..host.launched import launched_ranks
    from ..host.meeting import agreed

    if agreed(options.place, options.ranks, "start as many processes as ranks") is not None:
        return launched_ranks()
    return World(options.ranks)


def _threads(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 256:
        raise ArgumentTypeError(f"'{text}': expected a number of threads from 1 to 256")
    return int(text)


def _steps(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise ArgumentTypeError(f"'{text}': expected a positive number of steps")
    return int(text)


def _seed(text: str) -> int:
    digits = text.removeprefix("seed=")
    if not digits.isdigit():
        raise ArgumentTypeError(f"'{text}': expected seed=N")
    return int(digits)
