"""A launcher of ranks for tests: it gives each rank its number in the environment, as MPI launchers do.

Ranks are forks of one process that has imported everything, so that a rank takes no time to start; their parent is
that process, as ranks of a launch have one.

    python -m tests.host.launching      # the process: reads a launch from its input, writes what became of it
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

#: What MPICH and Open MPI call the rank and the number of ranks.
LAUNCHERS = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))


def start(
    count: int, *command: str, launcher: int = 0, timeout: float = 120, **more: Callable[[int], object]
) -> list[tuple[int, str, str]]:
    """Start ranks of a command, which begins with this Python and -m or -c. Return the status, output and errors
    of each; `more` are other variables, by rank."""
    assert command[0] == sys.executable and command[1] in ("-m", "-c"), command
    rank_name, size_name = LAUNCHERS[launcher]
    environments = [
        {**os.environ, rank_name: str(rank), size_name: str(count),
         **{name: str(of(rank)) for name, of in more.items()}}
        for rank in range(count)
    ]  # fmt: skip
    process = _launcher()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps([command[1:], environments]) + "\n")
    process.stdin.flush()
    limit = threading.Timer(timeout, os.killpg, (process.pid, signal.SIGKILL))
    limit.start()
    answer = process.stdout.readline()
    limit.cancel()
    if not answer:
        _launcher.cache_clear()
    assert answer, f"the ranks have not ended after {timeout:g} s"
    return [(status, out, err) for status, out, err in json.loads(answer)]


@cache
def _launcher() -> subprocess.Popen[str]:
    """The process; it ends with its input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.host.launching"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip

    def end() -> None:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.wait()

    atexit.register(end)
    return process


def _serve() -> None:
    for module in ("pto.cli.run", "pto.engine.native.kernel", "pto.host.launched"):
        importlib.import_module(module)
    gc.freeze()  # else a collection in a fork copies its pages
    for line in sys.stdin:
        command, environments = json.loads(line)
        folder = Path(tempfile.mkdtemp())  # whose removal ranks do not inherit
        ranks = [_fork(command, e, f"{folder}/{n}") for n, e in enumerate(environments)]
        ended = [os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) for rank in ranks]
        said = [[(folder / f"{n}.{kind}").read_text() for kind in ("out", "err")] for n in range(len(ranks))]
        shutil.rmtree(folder)
        print(json.dumps([[status, *both] for status, both in zip(ended, said, strict=True)]), flush=True)


def _fork(command: list[str], environment: dict[str, str], files: str) -> int:
    process = os.fork()
    if process:
        return process
    status: Any = 1
    try:
        for number, name in enumerate((os.devnull, f"{files}.out", f"{files}.err")):
            opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
            os.dup2(opened, number)
            os.close(opened)
        os.environ.clear()
        os.environ.update(environment)
        kind, what, *rest = command
        sys.argv = [what if kind == "-m" else kind, *rest]
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(what, {"__name__": "__main__"})
        status = 0
    except SystemExit as e:
        status = e.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    _serve()
