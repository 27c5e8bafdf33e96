"""SIGINT and SIGTERM end a tool whatever it does, with one line, and nothing stays behind."""

from __future__ import annotations

import itertools
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sampling import some

#: A kernel that says when it begins, and never returns.
_KERNEL = """\
#include <unistd.h>
#include "pto/pto-inst.hpp"

__global__ AICORE void spin(__gm__ float* a) {
  if (::write(1, "on\\n", 3) != 3) return;
  volatile float* first = a;
  while (first[0] == 0) {%s}
}
"""
#: What `pto tune` calls in its workers.
_BUILD = """\
import time

def build(ROWS):
    print("on\\n", end="", flush=True)  # in one piece: two workers print at a time
    while True:
        time.sleep(1)
"""
#: Has a process of its own, as a compiler does.
_SCRIPT = "#!/bin/sh\necho on {}\nsleep 600\n"
_FILES = {
    "spin.cpp": _KERNEL % "",
    "prints.cpp": _KERNEL % ' cce::printf("more"); ',
    "build.py": _BUILD,
    "rank": _SCRIPT.format(""),
    "compiler": _SCRIPT.format("> begun"),
    "script.py": "print('on', flush=True)\nwhile True:\n    pass\n",
}
_CASES = {
    "machine code": "run spin.cpp -- f32:4",
    "callbacks of machine code": "run prints.cpp -- f32:4",
    "traced C++": "run spin.cpp --sanitize all -- f32:4",
    "ranks of a launch": "run spin.cpp --ranks 2 --processes -- f32:4",
    "workers": "tune build.py --param ROWS=1..8 -j 2",
    "ranks of a program": "ranks -n 2 ./rank",
    "a compiler": "run other.cpp -- f32:4",
    "a script": "python script.py",
}
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LIMIT = 120  # seconds: there to end a test that hangs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in _FILES.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(stat.S_IRWXU)
    (tmp_path / "other.cpp").write_text(_KERNEL % f"/* {tmp_path} */")  # not in the cache
    (tmp_path / "temporary").mkdir()
    os.mkfifo(tmp_path / "begun")
    return tmp_path


def _processes(tag: str) -> Iterator[int]:
    """Return the processes with a variable in their environment."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"TAG={tag}".encode() in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                yield int(name)
        except OSError:
            continue  # it has ended, or is another user's


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc")
@pytest.mark.parametrize(("name", "number"), some(itertools.product(_CASES, _SIGNALS), 2, by=lambda c: c[0]))
def test_a_signal_ends_a_tool(name: str, number: signal.Signals, folder: Path) -> None:
    """SIGINT as a terminal sends it, to all processes; SIGTERM to the tool alone."""
    words = _CASES[name].split()
    environment = {**os.environ, "TAG": str(folder), "TMPDIR": str(folder / "temporary")}
    if name == "a compiler":
        environment["PTO_CXX"] = str(folder / "compiler")
    with subprocess.Popen(
        [sys.executable, "-m", "pto.cli.main", *words], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        if name == "a compiler":
            assert (folder / "begun").read_text() == "on\n"
        else:
            while (line := process.stdout.readline()).split()[-1:] != ["on"]:
                assert line, process.communicate()
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        _, err = process.communicate(timeout=_LIMIT)
    assert process.returncode == 130, err
    assert err.startswith(f"pto {words[0]}: interrupted") and err.count("\n") == 1, err
    begin = time.monotonic()
    while left := list(_processes(str(folder))):  # those that were killed take a moment
        assert time.monotonic() - begin < _LIMIT, left
        time.sleep(0.01)
    assert list((folder / "temporary").iterdir()) == []


def _script(code: str, *before: str) -> subprocess.Popen[str]:
    """One that `pto python` runs, and that prints a line at first."""
    return subprocess.Popen(
        [*before, sys.executable, "-m", "pto.cli.main", "python", "-c", code], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_what_ctrl_c_does_to_a_script_is_its_own_affair() -> None:
    """As without us it may catch it, and go on for as long as it likes."""
    catching = (
        "try: print('on', flush=True); time.sleep(600)\nexcept KeyboardInterrupt: print('no', flush=True)"
    )
    usual = "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    with _script(f"import signal, time\n{catching}\n{usual}\nprint(input())") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "no\n"
        assert process.stdout.readline() == "True\n"
        assert process.communicate("more\n", _LIMIT) == ("more\n", "")
    assert process.returncode == 0


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As in `nohup pto ...`, or in the background of a script."""
    ignoring = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    with _script("print('on', flush=True)\nprint(input())", sys.executable, "-c", ignoring) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate("more\n", _LIMIT) == ("more\n", "")
    assert process.returncode == 0
