"""Standard streams and disks that take nothing more: one line and status 1, for every tool and verb."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from tests.each import each
from tests.sampling import some

from pto.cli import doctor
from pto.cli.main import VERBS

from .conftest import Tool

EXAMPLES = Path(__file__).parents[2] / "examples"
_ARRAYS = "f32:64x128 f32:64x128 f32:64x128"
_FOREVER = "#!/bin/sh\nwhile :; do echo on; done\n"
#: What prints; `k.pto` is examples/02_manual_flags.pto.
PRINTING = f"""\
pto
pto --version
pto run --help
pto isa
pto isa --json
pto explain SA-0353
pto cost table
pto doctor --json
pto examples
pto cache
pto check k.pto
pto prove k.pto
pto fmt --diff ugly.pto
pto fix --diff k.pto -- {_ARRAYS}
pto objdump k.elf
pto build --flags
pto build k.pto -o -
pto run k.pto -- {_ARRAYS}
pto run k.pto --engine cpp --print -- {_ARRAYS}
pto run k.pto --time --memory-map - -- {_ARRAYS}
pto debug k.pto --command step -- {_ARRAYS}
pto explore k.pto -o -
pto record {EXAMPLES}/17_race.cpp -- f32:64x128 f32:64x128
pto ranks -n 2 ./forever
pto tune double.pto --fresh -j 1 --param ROWS=16 -- f32:1024x128 f32:1024x128
pto runtime run {EXAMPLES}/runtime/vector_dag
pto python forever.py
pto python --report out empty
ptoas --version
ptoas --help
ptoas k.pto
ptoas k.pto --emit=elf
pto lsp --grammar textmate
pto completion fish
ptobc --version
ptobc encode k.pto
ptobc decode k.ptobc
ptobc dump k.ptobc
""".splitlines()
#: What writes a file, and which.
WRITING = [
    ("pto run k.pto -- f32:64x128 f32:64x128 f32:64x128={}", "o.npy"),
    (f"pto run k.pto --timeline {{}} -- {_ARRAYS}", "t.html"),
    (f"pto run k.pto --timeline {{}} -- {_ARRAYS}", "t.json"),
    (f"pto run k.pto --memory-map {{}} -- {_ARRAYS}", "m.html"),
    (f"pto run k.pto --ranks 2 --messages {{}} -- {_ARRAYS}", "m.svg"),
    ("pto objdump k.elf -o {}", "k.txt"),
    ("pto build k.pto -o {}", "k.so"),
    (f"pto record {EXAMPLES}/17_race.cpp -o {{}} -- f32:64x128 f32:64x128", "r.pto"),
    ("pto tune double.pto -j 1 --param ROWS=16 --plot {} -- f32:1024x128 f32:1024x128", "p.svg"),
    ("pto tune double.pto -j 1 --param ROWS=16 --write {} -- f32:1024x128 f32:1024x128", "p.pto"),
    *((f"pto runtime run {EXAMPLES}/runtime/vector_dag --{kind} {{}}", f"{kind}.x")
      for kind in ("trace", "swimlane", "graph")),
    ("pto python --report out empty", "out/report.json"),
    ("ptoas k.pto -o {}", "k.cpp"),
    ("ptobc encode k.pto -o {}", "k2.ptobc"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.pto").write_text((EXAMPLES / "02_manual_flags.pto").read_text())
    (tmp_path / "double.pto").write_text((EXAMPLES / "tune/double.pto").read_text())
    (tmp_path / "ugly.pto").write_text("module{func.func @k(){return}}")
    (tmp_path / "forever").write_text(_FOREVER)
    (tmp_path / "forever").chmod(stat.S_IRWXU)
    (tmp_path / "forever.py").write_text("while True:\n    print('on')\n")
    (tmp_path / "empty").mkdir()
    assert tool("k.pto", "-o", "k.elf").returncode == 0
    assert tool("encode", "k.pto", "-o", "k.ptobc", name="ptobc").returncode == 0
    return tmp_path


@contextmanager
def _closed_pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


def _called(tools: Path, line: str, **streams: int) -> subprocess.CompletedProcess[str]:
    """Call a tool; a time limit is there to end what goes on printing."""
    name, *words = line.split()
    usual = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.run(
        [tools / name, *words], text=True, check=False, timeout=600, stdin=subprocess.DEVNULL,
        **{**usual, **streams},  # type: ignore[call-overload]
    )  # fmt: skip


def test_every_verb_is_tried() -> None:
    assert {line.split()[1] for line in PRINTING if line.startswith("pto ")} - {"--version"} == set(VERBS)


@pytest.mark.usefixtures("folder")
def test_standard_output_that_cannot_be_written(tool_folder: Path) -> None:
    def check(line: str, reason: str) -> None:
        with open("/dev/full", "wb") as full, _closed_pipe() as pipe:
            done = _called(tool_folder, line, stdout=pipe if reason == "broken pipe" else full.fileno())
        assert done.stderr == f"error[PTO-E0002]: cannot write to standard output: {reason}\n"
        assert done.returncode == 1

    reasons = ("no space left on device", "broken pipe")
    each(check, some(product(PRINTING, reasons), 2, by=lambda case: case[0]))


@pytest.mark.usefixtures("folder")
def test_standard_error_that_cannot_be_written_changes_nothing(tool_folder: Path) -> None:
    def check(line: str, status: int) -> None:
        with open("/dev/full", "wb") as full, _closed_pipe() as pipe:
            for file in (full.fileno(), pipe):
                done = _called(tool_folder, line, stdout=subprocess.PIPE, stderr=file)
                assert (done.returncode, done.stdout) == (status, "")

    wrong = [(f"pto check {EXAMPLES}/10_wrong.pto", 1), (f"ptoas {EXAMPLES}/10_wrong.pto", 1)]
    usage = [("pto chek", 2), ("pto run", 2), ("ptoas --no-such-option", 2)]
    each(check, [*wrong, *usage, ("pto fmt --check ugly.pto", 1), ("ptoas k.pto --time-passes -o x.cpp", 0)])


_LIMITED = """\
import resource, sys
from pto.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # stands for a full disk
main()
"""


@pytest.mark.usefixtures("folder")
def test_a_file_that_takes_nothing_more(tool_folder: Path) -> None:
    def check(line: str, output: str) -> None:
        Path(output).parent.mkdir(exist_ok=True)
        Path(output).symlink_to("/dev/full")
        done = _called(tool_folder, line.format(output))
        assert f"error[PTO-E0002]: cannot write '{output}': no space left on device\n" in done.stderr
        assert done.returncode == 1 and "\n" not in done.stderr.rstrip().partition("\n  help: ")[0]

    each(check, WRITING)


@pytest.mark.usefixtures("folder")
def test_a_full_disk() -> None:
    """Output that is written in several steps: the results of a search, line by line."""
    words = "tune double.pto -j 1 --param ROWS=16 -- f32:1024x128 f32:1024x128".split()
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, *words], capture_output=True, text=True, check=False
    )
    assert done.stderr == "error[PTO-E0002]: cannot write 'double.tune.jsonl': file too large\n"


@pytest.mark.parametrize(("line", "closed", "status", "shown"), [
    ("pto isa", 1, 1, "bad file descriptor"),
    ("pto run --help", 1, 1, "bad file descriptor"),
    ("pto ranks ./forever", 1, 1, "bad file descriptor"),
    ("ptoas k.pto", 1, 1, "bad file descriptor"),
    ("ptoas k.pto -o x.cpp", 1, 0, ""),
    ("ptoas -", 0, 1, "cannot read standard input: bad file descriptor"),
    ("pto chek", 2, 2, ""),
    ("ptoas --version", 2, 0, "ptoas "),
])  # fmt: skip
def test_a_stream_that_is_closed(line: str, closed: int, status: int, shown: str, folder: Path) -> None:
    """As in `pto isa >&-`: the next file that is opened would have its number."""
    name, *words = line.split()
    tools = Path(sys.executable).parent
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}>&-', "sh", tools / name, *words], cwd=folder, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if closed != 1 else subprocess.PIPE,
        text=True, timeout=600,
    )  # fmt: skip
    told = done.stdout if done.stderr is None else done.stderr
    assert done.returncode == status and shown in told and told.count("\n") == bool(shown), told


def test_a_full_cache_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    found = doctor._run("cache", False, doctor._cache)
    assert (
        found.status == "missing"
        and "no space left on device" in found.detail
        and "PTO_CACHE_DIR" in found.help
    )
