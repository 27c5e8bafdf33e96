"""Whole programs as ranks: what they do together, what is told of those that fail, and that nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pto.cli.main import main

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "ranks" / "04_program.cpp"

needs_shared_memory = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files without a name")
pytestmark = needs_shared_memory


def ranks(count: int, *words: str, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pto.cli.main", "ranks", "-n", str(count), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program of the tests, built once."""
    path = tmp_path_factory.mktemp("program") / "program"
    done = ranks(1, str(HERE / "program.cpp"), "-o", str(path))
    assert done.returncode == 0, done.stderr
    return str(path)


def test_the_example() -> None:
    for count in (1, 3):
        done = ranks(count, str(EXAMPLE))
        assert (done.returncode, done.stderr) == (0, "")
        said = sorted(
            line.removeprefix(f"rank {n}: ") for n, line in enumerate(sorted(done.stdout.splitlines()))
        )
        assert said == sorted(f"ok: got {100 + n} from the rank before" for n in range(count))


def test_more_ranks_than_processors_meet(program: str) -> None:
    done = ranks(8, program, "--", "meet")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"rank {n}: met 1" for n in range(8)]


def test_ranks_that_are_stuck_are_told_at_once(program: str) -> None:
    begin = time.monotonic()
    done = ranks(3, program, "--", "stuck")
    assert done.returncode == 1 and time.monotonic() - begin < 50
    for rank in range(3):
        want = f"rank {rank}: [PTO-E2104] the kernel is stuck: waits for a signal of the window of rank {rank} ge 4 (holds 3)"
        assert want in done.stderr


def test_a_rank_that_never_comes(program: str) -> None:
    """Others wait in a kernel for a rank that waits for them in a barrier of the host."""
    done = ranks(2, program, "--", "absent")
    assert done.returncode != 0
    assert (
        "rank 1: [PTO-E2104] the kernel is stuck: waits for a signal of the window of rank 1 ge 2 (holds 1)"
        in done.stderr
    )
    assert "rank 0: [PTO-E2104] rank 0 is stuck: waits for the others at a barrier of the host" in done.stderr


def test_a_rank_that_is_killed_ends_the_others(program: str) -> None:
    done = ranks(3, program, "--", "killed")
    assert done.returncode == 1
    assert "error[PTO-E2422]: rank 1 was killed by SIGKILL" in done.stderr


def test_a_rank_that_is_stopped_or_late(program: str) -> None:
    done = ranks(2, program, "--", "stopped")
    assert (
        done.returncode == 1
        and "has been stopped for 5 s; rank 0 waits for the others at a barrier" in done.stderr
    )
    done = ranks(2, "--timeout", "2", program, "--", "late")
    assert done.returncode == 1
    assert (
        "not done after 2 s: rank 0 waits for the others at a barrier of the host, rank 1 was at work"
        in done.stderr
    )


def test_ranks_end_with_their_launcher(program: str) -> None:
    command = [sys.executable, "-m", "pto.cli.main", "ranks", "-n", "2", program, "--", "late"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        started = sorted(int(launcher.stdout.readline().split()[-1]) for _ in range(2))
        launcher.kill()
    for process in started:
        deadline = time.monotonic() + 50
        while os.path.exists(f"/proc/{process}/exe") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not os.path.exists(f"/proc/{process}/exe")


def test_a_kernel_is_held_to_what_was_allocated(program: str) -> None:
    done = ranks(1, program, "--", "outside")
    assert (done.returncode, done.stdout) == (1, "first 0 7\n")
    assert (
        "[PTO-E2101] TSTORE: touches bytes 0..576 of memory 1 (aclrtMalloc), which has 512 bytes"
        in done.stderr
    )


def test_wrong_calls_are_told(program: str) -> None:
    done = ranks(1, program, "--", "calls")
    assert (done.returncode, done.stdout) == (0, "refused 4 of 4\n")
    assert done.stderr.count("[PTO-E2420]") == 4


def test_what_cannot_be_started(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    for words, says in (
        (["nothing"], "cannot start 'nothing': no such file"),
        ([str(text)], "it cannot be executed"),
        ([str(EXAMPLE), str(text)], "a program is C++ sources, or one file"),
        (["-n", "0", str(EXAMPLE)], "'0' is not a number of ranks"),
        (["--timeout", "-1", str(EXAMPLE)], "'-1' is not a positive number of seconds"),
        ([str(EXAMPLE), "-o", str(tmp_path / "no" / "program")], "cannot write"),
    ):
        with pytest.raises(SystemExit) as ended:
            sys.exit(main(["ranks", "-n", "2", *words]))
        said = capfd.readouterr().err
        assert ended.value.code in (1, 2)
        assert says in said, said


def test_another_launcher_has_started_others(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is not passed over, but a launcher of one process leaves the ranks to us."""
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "3")
    done = ranks(2, program, "--", "meet")
    assert done.returncode == 1 and "2 ranks are asked for, but another launcher has started 3" in done.stderr
    monkeypatch.setenv("PMI_SIZE", "1")
    assert sorted(ranks(2, program, "--", "meet").stdout.splitlines()) == ["rank 0: met 1", "rank 1: met 1"]


def test_flags_are_those_of_another_compiler(tmp_path: Path) -> None:
    flags = ranks(1, "--flags").stdout.split()
    assert any(f.startswith("-I") and f.endswith("host") for f in flags) and "-lpto_host" in flags
