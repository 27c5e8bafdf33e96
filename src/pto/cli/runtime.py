"""`pto runtime run`: run a folder of the task runtime, and compare its results with golden.py."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import knobs
from ..diag import Diagnostic, DiagnosticError, has_errors, visible
from ..engine.sanitize import summary
from ..files import write_whole
from ..isa.profiles import DEFAULT_PLATFORM, PLATFORMS
from .common import FAILED, OK, USAGE, CommandParser, add_depth, add_diagnostics, add_sanitize, show
from .interrupt import allow
from .terminal import Screen

if TYPE_CHECKING:
    from ..runtime.compile import Ahead, CompiledJob
    from ..runtime.folder import Config
    from ..runtime.runner import CaseResult, Runner
    from ..runtime.virtual import Virtual

_EXAMPLES = """\
  pto runtime run examples/runtime/vector_dag             run the default case of a folder
  pto runtime run examples/runtime/bgemm --all -v         run all cases, and print progress messages
"""
_RUN_EXAMPLES = """\
  pto runtime run examples/runtime/vector_dag
  pto runtime run examples/runtime/paged_attention --case Case1 --block-dim 3
  pto runtime run examples/runtime/bgemm --all --trace trace.json --swimlane run.html
  pto runtime run -k my/kernels -g my/golden.py -p a2a3sim -v
  pto runtime run DIR --virtual-time --durations us.csv --what-if block_dim=8,16,24 --what-if schedulers=1..4
  PTO2_RING_TASK_WINDOW=16 pto runtime run examples/runtime/vector_dag

A folder has golden.py (generate_inputs, compute_golden) and kernels/kernel_config.py (KERNELS, ORCHESTRATION,
RUNTIME_CONFIG). Exit status: 0 passed, 1 failed or diagnostics, 2 usage, 70 a bug of pto.
"""
#: Seconds for this tool to end after a signal. The runtime gives up a task that does not return after two.
_SECONDS = 3.0
_LEVELS = {"error": 0, "warn": 1, "info": 2, "debug": 3}


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto runtime",
        "Run graphs of kernels on the cores of a simulated device, with the PTO2 task runtime.",
        _EXAMPLES,
    )
    verbs = p.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=CommandParser)
    _add_run(verbs)
    options = p.parse_args(arguments)
    if options.folder is None and options.kernels is None:
        print("pto runtime run: missing DIR\ntry 'pto runtime run --help'", file=sys.stderr)
        return USAGE
    return run(options)


def _add_run(verbs: Any) -> None:
    p = verbs.add_parser(
        "run",
        prog="pto runtime run",
        help="run a folder with kernel_config.py and golden.py, and compare the results",
        description="Compile the kernels and the orchestration of a folder, run its cases, and compare the "
        "results with golden.py.",
        examples=_RUN_EXAMPLES,
    )
    add = p.add_argument
    add("folder", nargs="?", metavar="DIR", help="folder with golden.py and kernels/kernel_config.py")
    add("-k", "--kernels", metavar="DIR", help="folder of kernel_config.py (default: DIR/kernels or DIR)")
    add("-g", "--golden", metavar="FILE", help="golden file (default: golden.py in DIR or its parent)")
    which = p.add_mutually_exclusive_group()
    which.add_argument(
        "--case", metavar="NAME", help="a case of ALL_CASES (default: PA_CASE, or DEFAULT_CASE)"
    )
    which.add_argument("--all", action="store_true", help="run all cases")
    add("-r", "--runtime", metavar="NAME", help="runtime to use instead of the folder's: host_build_graph, "
        "aicpu_build_graph or tensormap_and_ringbuffer")  # fmt: skip
    add("-p", "--platform", choices=tuple(PLATFORMS), default=DEFAULT_PLATFORM,
        help=f"platform of the kernels; all are simulated (default: {DEFAULT_PLATFORM})")  # fmt: skip
    add(
        "--threads",
        type=_number(1, 256),
        default=0,
        metavar="N",
        help="host threads (default: one per processor)",
    )
    add(
        "--aicpu-threads",
        type=_number(1, 64),
        default=0,
        metavar="N",
        help="threads of orchestrator and schedulers",
    )
    add("--block-dim", type=_number(1, 24), default=0, metavar="N", help="blocks of 1 AIC and 2 AIV, 1 to 24")
    add("--seed", type=_number(0, (1 << 63) - 1), metavar="N", help="replay the schedule of this seed")
    add("--rounds", type=_number(1, 1_000_000), default=1, metavar="N", help="run each case N times")
    add(
        "--check-hazards",
        action="store_true",
        help="report tasks that write memory of other tasks, without an order between them",
    )
    add_sanitize(p, "check kernels and their order")
    add_depth(p)
    add("--track-war", action="store_true", help="order such tasks, which devices do not")
    add("--enable-profiling", action="store_true", help="record tasks; write outputs/perf_swimlane_TIME.json")
    add("--trace", metavar="FILE", help="write a trace for ui.perfetto.dev")
    add("--swimlane", metavar="FILE", help="write an HTML page of the run")
    add("--graph", metavar="FILE", help="write the graph of tasks (DOT)")
    add("--summary", action="store_true", help="print where the run spent its time")
    timed = p.add_argument_group("virtual time")
    also = timed.add_argument
    also(
        "--virtual-time", action="store_true", help="simulate the time of kernels and schedulers with a model"
    )
    also("--durations", metavar="FILE", help="durations of kernels in microseconds: CSV (kernel,us), "
         "TOML ([durations]) or records of a run")  # fmt: skip
    also("--measure", action="store_true", help="use durations of a run on this host, a rough approximation")
    also(
        "--machine",
        metavar="FILE",
        help="overheads of the runtime: TOML, table [runtime] (default: those of a2a3)",
    )
    also("--no-compute", action="store_true", help="simulate the time of kernels without their results")
    also("--what-if", action="append", default=[], metavar="OPTION=VALUES",
         help="run again with other values: block_dim=8,16 or schedulers=1..4 or window=64,256")  # fmt: skip
    add("-j", "--jobs", type=_number(1, 256), default=0, metavar="N", help="number of compilers in parallel")
    add("-v", "--verbose", action="store_true", help="print progress messages")
    add("--silent", action="store_true", help="print errors only")
    add(
        "--log-level",
        choices=tuple(_LEVELS),
        help="level of messages of the runtime (default: PTO_LOG_LEVEL)",
    )
    add("-d", "--device", type=_number(0, 1 << 16), default=0, help=argparse.SUPPRESS)
    add("-c", "--pto-isa-commit", help=argparse.SUPPRESS)
    add_diagnostics(p)


def _number(least: int, most: int) -> Any:
    def read(text: str) -> int:
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}': expected a number from {least} to {most}")
        return int(text)

    return read


def run(options: Namespace) -> int:
    allow(_SECONDS, signal.SIGINT, signal.SIGTERM)
    level = options.log_level or ("debug" if options.verbose else "error" if options.silent else "")
    with knobs.environment({"PTO_LOG_LEVEL": level} if level else {}):
        session = _Session(options)
        try:
            session.run()
        except DiagnosticError as e:
            session.problems += e.diagnostics
    show(session.problems, options.diagnostics)
    failed = has_errors(session.problems)
    if not options.silent:
        session.verdict(not failed)
    return FAILED if failed else OK


class _Session:
    """One call of the tool: its options, problems and results."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.problems: list[Diagnostic] = []
        self.results: list[CaseResult] = []
        self._progress = _CompileProgress(not options.silent and not options.verbose and sys.stderr.isatty())
        self._screen = Screen()
        self._ahead: Ahead | None = None
        self._unchecked: dict[str, str] = {}

    def run(self) -> None:
        from ..engine.cpp import compiler

        compiler.find_early()  # reading the folder takes as long
        try:
            self._run()
        except BaseException:
            if self._ahead is not None:
                self._ahead.give_up()
            raise

    def _begin(self, config: Config) -> None:
        """Begin to compile while golden.py is loaded. A `.pto` source would import the same modules at that
        time."""
        from ..runtime import folder as folders
        from ..runtime.compile import Ahead

        o = self.options
        runtime = o.runtime or config.runtime
        if runtime not in folders.RUNTIMES:
            return
        jobs = config.jobs(runtime, PLATFORMS[o.platform])
        # traced kernels are compiled with other options
        plain = not o.sanitize and not o.check_hazards and (not o.virtual_time or o.measure)
        if not any(job.is_program for job in jobs) and plain:
            self._ahead = Ahead(jobs, self._progress.step, o.jobs)

    def _run(self) -> None:
        from ..runtime import folder as folders

        o = self.options
        folder = folders.load(o.folder, o.kernels, o.golden, self._begin)
        from ..runtime import runner as runners

        if o.runtime is not None and o.runtime not in folders.RUNTIMES:
            known = f"expected one of {', '.join(folders.RUNTIMES)}"
            raise DiagnosticError([Diagnostic("PTO-E2603", f"unknown runtime '{o.runtime}'", help=known)])
        cases = folder.golden.choose(o.case, o.all)
        virtual = self._virtual()
        wanted = bool(o.enable_profiling or o.trace or o.swimlane or o.graph or o.summary) or o.virtual_time
        runner = runners.Runner(
            folder,
            runners.RunnerOptions(
                o.runtime,
                o.platform,
                o.block_dim,
                o.aicpu_threads,
                o.threads,
                wanted,
                o.seed,
                o.check_hazards,
                o.track_war,
                virtual_time=virtual,
                sanitize=o.sanitize,
                strict_undef=o.strict_undef or None,
                sample=o.sample,
            ),
            runners.make_engine,
            self._log,
        )
        started = time.perf_counter()
        made = self._compile(runner)
        seconds = self._ahead.seconds if self._ahead is not None else time.perf_counter() - started
        self._say(visible(self._about(runner, made, seconds)))
        for number, params in enumerate(cases, 1):
            self._log("info", f"=== Case {number}/{len(cases)}: {params} ===")
            if o.measure:
                self._measure(runner, params)
            result = runner.run(params)
            for _ in range(o.rounds - 1):
                result = runner.run(params) if result.ok else result
            self.problems += result.problems
            self.results.append(result)
            if result.ok:
                self._log("info", f"=== Case {number}/{len(cases)} Passed ===")
            if result.records is not None:
                self._write(result, params["name"] if len(cases) > 1 else "")
            if o.what_if and result.ok:
                self._what_if(runner, params)
        self._unchecked = runner.unchecked
        self._say("\n".join(_table(self._screen, self.results)))

    # -- virtual time --------------------------------------------------------------------------------------

    def _virtual(self) -> Virtual | None:
        """Return the durations of virtual time, or None without --virtual-time."""
        o = self.options
        if not o.virtual_time:
            for name in ("durations", "measure", "machine", "no_compute", "what_if"):
                if getattr(o, name):
                    option = "--" + name.replace("_", "-")
                    raise DiagnosticError(
                        [Diagnostic("PTO-E2621", f"{option} needs --virtual-time", help="add --virtual-time")]
                    )
            return None
        from ..runtime import variations
        from ..runtime.virtual import Virtual

        if o.seed is not None:
            message = "cannot combine --virtual-time with --seed: virtual time has only one schedule"
            raise DiagnosticError([Diagnostic("PTO-E2621", message, help="leave out --seed")])
        if o.measure and o.durations:
            message = "cannot combine --durations with --measure"
            raise DiagnosticError([Diagnostic("PTO-E2621", message, help="leave out one of them")])
        variations.parse(o.what_if)  # raises an error before anything runs
        return Virtual(o.durations, o.machine, not o.no_compute, listen=not o.measure)

    def _measure(self, runner: Runner, params: Any) -> None:
        """Take the durations of kernels from a run on this host."""
        from ..runtime.durations import mean_durations
        from ..runtime.virtual import Virtual

        given = runner.options
        runner.options = given.replace(virtual_time=None)
        result = runner.run(params)
        runner.options = given
        if result.records is None:
            raise DiagnosticError(list(result.problems))
        table = mean_durations(result.records)
        self._log("info", f"durations of this host: {table}")
        runner.options = given.replace(
            virtual_time=Virtual(
                table, self.options.machine, given.virtual_time.compute, "this host's own times"
            )
        )

    def _what_if(self, runner: Runner, params: Any) -> None:
        from ..runtime import variations

        given = runner.options

        def run(changed: dict[str, int]) -> Any:
            rings = {k: v for k, v in changed.items() if k in ("task_window", "heap")}
            runner.options = given.replace(
                block_dim=changed.get("block_dim", given.block_dim),
                aicpu_threads=changed["schedulers"] + 1 if "schedulers" in changed else given.aicpu_threads,
                rings=rings,
            )
            result = runner.run(params)
            if result.records is None:
                raise DiagnosticError(list(result.problems))
            return result.records

        rows = variations.vary(run, variations.parse(self.options.what_if))
        runner.options = given
        self._say("\n".join(self._screen.table(*variations.table(rows), indent=0)) + "\n")

    def _compile(self, runner: Runner) -> list[CompiledJob]:
        try:
            return runner.compile(self._progress.step, self.options.jobs, self._ahead)
        finally:
            self._progress.end()

    def _about(self, runner: Runner, made: Sequence[CompiledJob], seconds: float) -> str:
        config = runner.options.engine(runner.folder)
        built = sum(not m.cached for m in made)
        how = (
            f"{built} of {len(made)} compiled in {seconds:.1f} s" if built else f"{len(made)} from the cache"
        )
        blocks = config["block_dim"]
        platform = config["platform"]
        machine = platform if platform.endswith("sim") else f"simulated {platform}"
        where = f"{runner.runtime} on {machine}, {blocks} block{'s'[: blocks != 1]}"
        return f"{runner.folder.name}: {where}, libraries: {how}"

    # -- output --------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        if not self.options.silent:
            print(text, flush=True)

    def _log(self, level: str, text: str) -> None:
        if self.options.verbose:
            print(f"[{level.upper()}] {visible(text, layout=True)}", flush=True)

    def verdict(self, passed: bool) -> None:
        """Print the last line, which scripts search for."""
        count = len(self.results)
        if passed:
            warned = sum(p.severity == "warning" for r in self.results for p in r.problems)
            more = f", with {warned} warning{'s'[: warned != 1]}" if warned else ""
            if self.options.sanitize:
                more += f", {summary(self.options.sanitize, self._unchecked)}"
            word, color = f"TEST PASSED ({count} case{'s'[: count != 1]}){more}", "good"
        else:
            bad = [r.name for r in self.results if not r.ok]
            word, color = "TEST FAILED" + (f": {', '.join(bad)}" if bad else ""), "bad"
        print(self._screen.paint(visible(word), color), flush=True)

    # -- files ---------------------------------------------------------------------------------------------

    def _write(self, result: CaseResult, case: str) -> None:
        from ..perf import summary, swimlane_json, task_graph, trace
        from ..perf.explorer import tasks

        o, records = self.options, result.records
        try:
            if o.trace:
                trace.write(records, _named(o.trace, case))
            if o.swimlane:
                tasks.write(records, _named(o.swimlane, case), result.name)
            if o.graph:
                write_whole(_named(o.graph, case), task_graph.dot(records))
            if o.enable_profiling:
                os.makedirs("outputs", exist_ok=True)
                stamp = time.strftime("%Y%m%d_%H%M%S")
                swimlane_json.write(records, _named(f"outputs/perf_swimlane_{stamp}.json", case))
        except DiagnosticError as e:
            self.problems += e.diagnostics
        except OSError as e:
            why = (e.strerror or str(e)).lower()
            self.problems.append(Diagnostic("PTO-E0002", f"cannot write '{e.filename}': {why}"))
        if o.summary or o.virtual_time:
            self._say(visible(summary.text(records), layout=True))


def _named(path: str, case: str) -> str:
    """Return a file name; with several cases, one name per case."""
    root, extension = os.path.splitext(path)
    word = re.sub(r"[^\w.+=,-]", "_", case)
    return f"{root}_{word}{extension}" if case else path


def _table(screen: Screen, results: Sequence[CaseResult]) -> list[str]:
    """Return one line per output, with the number of matching elements."""
    head = ("case", "output", "shape", "dtype", "matched", "max error", "tolerance", "run", "result")
    rows: list[tuple[str, ...]] = []
    for r in results:
        for c in r.comparisons:
            matched = f"{c.total - c.mismatched}/{c.total}"
            shape = "x".join(map(str, c.shape)) or "scalar"
            verdict = "PASS" if c.ok and r.ok else "FAIL"
            rows.append((r.name, c.name, shape, c.dtype, matched, f"{c.max_abs:.2g}", _share(c.used),
                         _time(r.seconds), verdict))  # fmt: skip
        if not r.comparisons and r.ok:
            rows.append((r.name, *["-"] * 6, _time(r.seconds), "not computed"))
        elif not r.comparisons:
            rows.append((r.name, *["-"] * 7, "FAIL"))
    return screen.table(head, rows, indent=0)


def _share(used: float) -> str:
    """Return the error of the worst element, as a share of the tolerance of RTOL and ATOL."""
    return "-" if used != used else f"{100 * used:.2g}%" if used < 100 else ">100x"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


class _CompileProgress:
    """A line on a terminal that shows the progress of compilation."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def step(self, done: int, total: int, last: CompiledJob) -> None:
        if self._shown:
            name = visible(last.job.name)
            print(f"\r\x1b[Kcompiling {done}/{total}: {name}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
