"""`pto`, `ptoas` and `ptobc` for pages, scripts and tests that call them a hundred times.

A process that has imported them forks once per call. A fork behaves like a fresh process, without half a
second of importing: caches, folders and the environment are those of the call.

    python -m tests.tools NAME          # the process; `ready` on its output: it listens there
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import pkgutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pto
from pto import isa

#: Tool -> its entry point, as in pyproject.toml.
TOOLS = {"ptoas": "pto.cli.ptoas:command", "ptobc": "pto.cli.ptobc:main", "pto": "pto.cli.main:main"}
#: Packages that few calls import.
_RARE = ("pto.compat", "pto.language", "pto.objects")

#: Hands its arguments, folder, environment and files to the process, and ends as the fork does. It imports little.
_CALL = """\
import _socket, array, marshal, os, sys
s = _socket.socket(_socket.AF_UNIX)
s.connect({address!r})
data = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
files = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", (0, 1, 2)))
s.sendmsg([len(data).to_bytes(8, "little")], [files])
s.sendall(data)
sys.exit(int(s.recv(8) or 1))
"""
_TOOL = '#!/bin/sh\nexec "{python}" -IS "{folder}/call.py" {tool} "$@"\n'


@contextmanager
def tools(folder: Path) -> Iterator[Path]:
    """A folder for PATH with the tools in it."""
    name = f"pto-tools-{os.getpid()}-{os.urandom(6).hex()}"
    command = [sys.executable, "-m", "tests.tools", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]) as served:
        try:
            assert served.stdout is not None and served.stdout.readline() == b"ready\n"
            (folder / "call.py").write_text(_CALL.format(address=f"\0{name}"))
            for tool in TOOLS:
                (folder / tool).write_text(_TOOL.format(python=sys.executable, folder=folder, tool=tool))
                (folder / tool).chmod(stat.S_IRWXU)
            yield folder
        finally:
            served.terminate()


def serve(name: str) -> None:
    for module in pkgutil.walk_packages(pto.__path__, "pto."):
        if not module.name.startswith(_RARE):
            importlib.import_module(module.name)
    isa.rows()
    gc.freeze()  # else a collection in a fork copies its pages
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen(64)
        print("ready", flush=True)
        while True:
            call, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _wait_for(call)
            call.close()
            _reap()


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _wait_for(call: socket.socket) -> None:
    """Fork a tool; report how it ended."""
    size, files, *_ = socket.recv_fds(call, 8, 3)
    data = b""
    while len(data) < int.from_bytes(size, "little"):
        data += call.recv(1 << 16)
    worker = os.fork()
    if worker == 0:
        call.close()
        _become(files, *marshal.loads(data))
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    call.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def _become(files: list[int], command: list[str], folder: str, environment: dict[str, str]) -> None:
    for k, file in enumerate(files):
        os.dup2(file, k)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = command
    module, _, name = TOOLS[command[0]].partition(":")
    try:
        status = getattr(sys.modules[module], name)()
    except SystemExit as e:
        status = e.code
    if status is not None and not isinstance(status, int):
        sys.exit(status)
    # As the interpreter ends, but it does not free state shared with the fork: that takes longer than most
    # calls.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(int(status or 0))


if __name__ == "__main__":
    serve(sys.argv[1])
