"""The kernels of the corpora (programs/, cpp/) by every way to run them: alone, and as the only task of a graph."""

from __future__ import annotations

import contextlib
import ctypes
import io
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import pto
from pto import runtime
from pto.cli.main import main
from pto.diag import DiagnosticError
from pto.engine.sanitize import NAMES as SANITIZERS

from . import test_cpp
from .corpus import NAMES, Program, _value, load
from .corpus import PROGRAMS as FOLDER
from .doors import ROOT, Corpus, Differs, Door, Found, differing, of_json, of_text, places, scripted
from .test_emitted import KNOWN


class Launch(NamedTuple):
    """A launch of a kernel."""

    program: Program  # for its arguments and options
    built: Callable[[], Path]  # a program, or a library that is traced
    entry: str | None
    task: Callable[[str], Path]  # a source with the kernel as a task, in a folder
    number: int | None  # of the kernel in that source
    core: str


#: Programs of two halves that no run passes over.
_STOPS = "fifo_free_without_pop.bad", "fifo_slot_too_small.bad"


def no_task(launch: Launch, explicit: bool = False) -> str:
    """Return the reason why a graph, or one with explicit edges, does not check the kernel as a task."""
    if explicit and (launch.core == "mixed" or "blocks" in launch.program.options):
        return "a graph with explicit edges has no tasks of several blocks or of two halves"
    if launch.core == "mixed" and launch.program.name not in _STOPS:
        return "a task of two halves is not checked, and Run.unchecked says so"
    return "a graph has one rank, and no windows" if "ranks" in launch.program.options else ""


_KIND = re.compile(r"pto\.(?:section\.|kernel_kind<)(cube|vector)")


def program(name: str) -> Launch:
    bad = load(f"{name}.bad")
    path = FOLDER / f"{name}.bad.pto"
    kinds = set(_KIND.findall(bad.text))
    core = "mixed" if len(kinds) > 1 else "aic" if kinds == {"cube"} else "aiv"
    return Launch(bad, lambda: path, None, lambda _: path, None, core)


def cpp(name: str) -> Launch:
    file, _, arguments, options, _ = _WRITTEN[name]
    given = Program(name, "", list(arguments), dict(options))
    core = {"cube": "aic", "mixed": "mixed", "across": "mixed"}.get(file, "aiv")
    number = list(test_cpp.kernels(file)).index(name)
    return Launch(given, lambda: test_cpp.library(file), name, partial(_task, file), number, core)


_WRITTEN = {name: written for file in test_cpp.FILES for name, written in test_cpp.kernels(file).items()}
_PARAMETERS = re.compile(r"__global__ AICORE void (\w+)\(([^)]*)\)")


def _task(file: str, folder: str) -> Path:
    """C++ with a task that runs one of the kernels of a file; the lines of these are as in the file."""
    text, calls = test_cpp.text_of(file, "bad"), ""
    for number, (name, parameters) in enumerate(_PARAMETERS.findall(text)):
        values = ", ".join(
            f"tensor_at<{m[1]}>(args[{n}])" if (m := re.search(r"(\w+)\*", parameter)) else f"args[{n}]"
            for n, parameter in enumerate(parameters.split(","), 1)
        )
        calls += f"    case {number}: return {name}({values});\n"
    path = Path(folder) / f"{file}.cpp"
    path.write_text(
        f'{text}\n#include "{ROOT}/examples/runtime/common/slots.h"\n'
        'extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {\n'
        f"  switch (args[0]) {{\n{calls}  }}\n}}\n"
    )
    return path


# -- from Python, and by commands ------------------------------------------------------------------------------


def by_run(launch: Launch) -> Found:
    try:
        kernel = pto.kernel(launch.built(), launch.entry)
        return places(launch.program.launch(kernel, sanitize="all")[0].diagnostics)
    except DiagnosticError as e:
        return places(e.diagnostics)


_SCRIPT = """
import pickle, sys
import pto
from pto.diag import DiagnosticError
for name, (program, path, entry) in pickle.load(open(sys.argv[1], "rb")).items():
    print("==", name, file=sys.stderr, flush=True)
    try:
        program.launch(pto.kernel(path, entry))
    except DiagnosticError as e:
        print(e, file=sys.stderr)
"""


def by_script(launches: Mapping[str, Launch], environment: bool = False) -> dict[str, Found]:
    """A script that runs one kernel after the other. Without a handler the first error would end it."""
    with TemporaryDirectory() as folder:
        given = Path(folder, "launches")
        rows = {name: (launch.program, launch.built(), launch.entry) for name, launch in launches.items()}
        given.write_bytes(pickle.dumps(rows))
        found = scripted(_SCRIPT, str(given), environment=environment)
    return {name: of_text(text) for name, text in found.items()}


@contextlib.contextmanager
def printed() -> Iterator[io.StringIO]:
    """The output on stderr; that on stdout is dropped."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        yield err


def by_command(verb: str, launch: Launch) -> Found:
    """`pto run`, or `pto debug`, with the arrays of the launch in files. Without a terminal the debugger goes on
    from stop to stop."""
    given = launch.program
    ranks, rng = given.options.get("ranks", 1), np.random.default_rng(7)
    with TemporaryDirectory() as folder, printed() as err:
        words: list[str] = []
        for n, text in enumerate(given.arguments):
            made = [_value(text, rng) if text[0] in "bfiu" else None for _ in range(ranks)]
            for rank, value in enumerate(made):
                if isinstance(value, np.ndarray):
                    np.save(f"{folder}/{n}-{rank}.npy", value)
            saved = f"@{folder}/{n}-{'{rank}' if 'ranks' in given.options else 0}.npy"
            words.append(saved if isinstance(made[0], np.ndarray) else text)
        options = {**({"entry": launch.entry} if launch.entry is not None else {}), **given.options}
        more = [f"--{name}={value}" for name, value in options.items()]
        main([verb, "--sanitize", "all", "--diagnostics", "json", *more, str(launch.built()), "--", *words])
    return of_json(err.getvalue())


# -- as the only task of a graph -------------------------------------------------------------------------------


def _role(value: Any) -> str:
    return "inout" if isinstance(value, np.ndarray) else "float" if isinstance(value, float) else "scalar"


def by_task(name: str, launch: Launch) -> Found:
    """runtime.run with a runtime of that name."""
    explicit = name != "tensormap_and_ringbuffer"
    if no_task(launch, explicit) and (launch.entry or explicit or launch.core != "mixed"):
        return set()  # it cannot be given, or is refused
    given = [*([] if launch.number is None else [launch.number]), *launch.program.values()]
    blocks = launch.program.options.get("blocks", 0)
    with TemporaryDirectory() as folder:
        kernel = runtime.kernel(launch.task(folder), " ".join(map(_role, given)), core=launch.core)

        def orchestrate(rt: Any) -> None:
            if explicit:
                rt.publish_task(rt.add_task(kernel, *given))
            else:
                rt.submit(kernel, *given, blocks=blocks)

        try:
            run = runtime.run(orchestrate, sanitize="all", block_dim=4, runtime=name)
            found = run.diagnostics  # of sources that are still there
        except DiagnosticError as e:
            return places(e.diagnostics)
    assert run.checked == set(SANITIZERS) and bool(run.unchecked) == (blocks > 1 or launch.core == "mixed")
    return places(found)


_CONFIG = """
KERNELS = [{{"func_id": 0, "source": {kernel!r}, "core_type": {core!r}}}]
ORCHESTRATION = {{"source": {source!r}, "function_name": "build"}}
RUNTIME_CONFIG = {{"runtime": "host_build_graph"}}
"""
_GOLDEN = """
import pickle
from pathlib import Path

VALUES = pickle.loads((Path(__file__).parent / "values").read_bytes())
__outputs__ = [name for name, value in VALUES if hasattr(value, "nbytes")]


def generate_inputs(params):
    return VALUES


def compute_golden(tensors, params):
    pass
"""
#: Arguments: the slots of a task, then the bytes of each that is an array, then the core.
_BUILD = """
#include "runtime.h"
extern "C" int build(Runtime* runtime, uint64_t* args, int count) {
  const int slots = count / 2;
  for (int i = 0; i < slots; ++i)
    if (const uint64_t bytes = args[slots + i]) {
      void* memory = runtime->host_api.device_malloc(bytes);
      runtime->host_api.copy_to_device(memory, reinterpret_cast<void*>(args[i]), bytes);
      args[i] = reinterpret_cast<uint64_t>(memory);
    }
  runtime->add_task(args, slots, 0, args[2 * slots] ? CoreType::AIC : CoreType::AIV);
  return 0;
}
"""


def by_folder(launch: Launch) -> Found:
    """`pto runtime run` of a folder, with an orchestration that fits every kernel."""
    if no_task(launch, True):
        return set()
    given: list[Any] = [*([] if launch.number is None else [launch.number]), *launch.program.values()]
    numbers = [getattr(v, "nbytes", 0) for v in given] + [launch.core == "aic"]
    slots = [
        v if isinstance(v, np.ndarray) else ctypes.c_float(v) if isinstance(v, float) else ctypes.c_int64(v)
        for v in given
    ]
    named = [(f"p{n}", v) for n, v in enumerate([*slots, *map(ctypes.c_int64, numbers)])]
    with TemporaryDirectory() as folder, printed() as err:
        texts = {"orchestration.cpp": _BUILD, "golden.py": _GOLDEN}
        texts["kernel_config.py"] = _CONFIG.format(
            kernel=str(launch.task(folder)), core=launch.core, source=f"{folder}/orchestration.cpp"
        )
        for name, text in texts.items():
            Path(folder, name).write_text(text)
        Path(folder, "values").write_bytes(pickle.dumps(named))
        main(["runtime", "run", folder, "--sanitize", "all", "--diagnostics", "json"])
    return of_json(err.getvalue()) - {("PTO-E2606", 0)}  # the results, which golden.py does not know


# -- the rows --------------------------------------------------------------------------------------------------

_REFUSED = differing(
    "engine native refuses the flags before the launch",
    "not_primed set_twice set_twice_dynamic wait_for_other_id wait_without_set".split(),
    "PTO-E0803",
)
_FIRST = "the task itself fails before a sanitizer judges it"
_BLOCKS = "blocks of a task are not checked against each other, and Run.unchecked says so"
_STUCK = "barrier_not_met", "barrier_of_other_cores", "signal_never_comes"
_APART = [
    name for name in NAMES if name.startswith("blocks_") and "mixed" not in name and "slots" not in name
]
_TASKS = {
    **{name.removesuffix(".bad"): Differs(why) for name, why in KNOWN.items() if name.endswith(".bad")},
    **differing(_FIRST, ["unbound_tile", "valid_shape_too_large", "tassign_beyond_capacity"]),
    **differing("the graph is stuck", _STUCK, "PTO-E2624"),
    **differing(_BLOCKS, _APART),
}
_CPP_TASKS = {
    **differing(_FIRST, ["never_assigned"], "R003"),
    **differing(
        _BLOCKS,
        "sums_not_atomic rows_of_a_neighbour blocks_write_the_same blocks_read_before_barrier".split(),
    ),
    **differing(
        "tasks of C++ are for the platform, here a2a3, whose pipes have another order than the a5 of the file",
        ["scattered", "gathered", "lanes_behind_the_data"],
    ),
}


def row(name: str, launches: Mapping[str, Launch], expected: Callable[[str], Found],
        refused: Mapping[str, Differs], tasks: Mapping[str, Differs], share: int) -> Corpus:  # fmt: skip
    def one(function: Callable[..., Found], *options: Any) -> Callable[[str], Found]:
        return lambda fault: function(*options, launches[fault])

    def script(environment: bool) -> Callable[[Sequence[str]], dict[str, Found]]:
        return lambda some: by_script({fault: launches[fault] for fault in some}, environment)

    tasks = {**tasks, **{n: Differs(why) for n, at in launches.items() if (why := no_task(at))}}
    addresses = [n for n in launches if n == "pointer_arithmetic"]
    edges = {**tasks, **differing("tasks get addresses, and a load through a pointer is no call", addresses)}
    edges |= {n: Differs(why) for n, at in launches.items() if (why := no_task(at, True))}
    return Corpus(name, list(launches), expected, {
        ".run": Door(one(by_run), refused, share),
        "PTO_SANITIZE": Door(script(True), refused, share=4, at_once=True),
        "pto python": Door(script(False), refused, share=4, at_once=True),
        "pto run": Door(one(by_command, "run"), share=2),
        "pto debug": Door(one(by_command, "debug"), share=8),
        "runtime.run": Door(one(by_task, "tensormap_and_ringbuffer"), tasks, share=60),
        "host_build_graph": Door(one(by_task, "host_build_graph"), edges, share=200),
        "aicpu_build_graph": Door(one(by_task, "aicpu_build_graph"), edges, share=200),
        "Compiled.load": "loads programs of the Python language",
        "pto runtime run": Door(one(by_folder), edges, share=200),
        "pto ranks": "starts C++ with a main; pto run --ranks runs kernels on several ranks",
    })  # fmt: skip


def _planted(name: str) -> Found:
    return {(c.code, c.line) for c in load(f"{name}.bad").checks}


PROGRAMS = row("kernels in PTO", {name: program(name) for name in NAMES}, _planted, _REFUSED, _TASKS, 8)
CPP = row(
    "kernels in C++", {n: cpp(n) for n in _WRITTEN}, lambda n: set(_WRITTEN[n].found), {}, _CPP_TASKS, 1
)
