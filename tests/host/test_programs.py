"""Whole programs as ranks: their common results, the reports of failed ones, and that nothing is left."""

from __future__ import annotations

import contextlib
import io
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.sampling import EVERY, some
from tests.sanitize.rank_doors import built
from tests.seeds import seeds

from pto.cli.main import main
from pto.diag import render
from pto.engine.cpp import compiler as compilers
from pto.host import launch
from pto.host.checks import RankChecks
from pto.host.trace import HostProgram

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "ranks" / "04_program.cpp"

needs_shared_memory = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files without a name")
pytestmark = needs_shared_memory


def ranks(count: int, *words: str) -> subprocess.CompletedProcess[str]:
    """`pto ranks` in this process; the ranks are processes of their own."""
    command = ["ranks", "-n", str(count), "--timeout", "100", *words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(command)
        except SystemExit as e:
            status = e.code
    assert isinstance(status, int)
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())


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
        "not finished after 2 s: rank 0 waits for the others at a barrier of the host, rank 1 was at work"
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
        ([str(EXAMPLE), str(text)], "expected C++ sources and objects, or one executable program, got both"),
        (["-n", "0", str(EXAMPLE)], "'0': expected a number of ranks"),
        (["--timeout", "-1", str(EXAMPLE)], "'-1': expected a positive number of seconds"),
        ([str(EXAMPLE), "-o", str(tmp_path / "no" / "program")], "cannot write"),
    ):
        with pytest.raises(SystemExit) as ended:
            sys.exit(main(["ranks", "-n", "2", *words]))
        said = capfd.readouterr().err
        assert ended.value.code in (1, 2)
        assert says in said, said


def test_another_launcher_has_started_others(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings are not ignored, but a launcher of one process leaves the ranks to us."""
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "3")
    done = ranks(2, program, "--", "meet")
    assert done.returncode == 1 and "expected 3 ranks, as another launcher has started, got 2" in done.stderr
    monkeypatch.setenv("PMI_SIZE", "1")
    assert sorted(ranks(2, program, "--", "meet").stdout.splitlines()) == ["rank 0: met 1", "rank 1: met 1"]


@pytest.fixture(scope="module")
def checked() -> str:
    """Return a program that reports its calls."""
    return built(HERE / "checked.cpp")


RACING = (HERE / "checked.cpp").read_text().partition("TADDS(tile")[0].count("\n") + 1
#: By the argument of the program: exit status, findings, checked kernels, unchecked ones.
CHECKED = {
    "good": (0, [], "checked: 2 launches of 2 ranks for nan, oob, overlap, race, sync, undef: nothing found", ""),
    "poll": (0, [], "nothing found", ""),
    "hasty": (1, ["error[PTO-E2212]: TLOAD: RAW race between ranks"], "2 findings", ""),
    "again": (0, [], "8 launches of 2 ranks for", "launches of different numbers against each other"),
    "uneven": (0, [], "6 launches of 2 ranks for nan, oob, overlap, race, sync, undef: nothing found", ""),
    "nothing": (0, [], "checked: nothing, since no kernel was launched", ""),
    "race": (1, [f"checked.cpp:{RACING}:3: error[PTO-E2201]: TADDS: RAW race: ",
                 " (rank 1) in launch 1 of add<1>", "note: the same in launch 2"], "4 launches", ""),
    "early": (1, ["error[PTO-E2213]: TLOAD: RAW race between ranks: reads bytes 256..512 of the window of rank ",
                  " in launch 1 of both", "note: rank 0 signals here, perhaps before that"], "1 finding", ""),
    "zero": (0, ["warning[PTO-E2302]: TRECIP: element (0, 7) of 'tile' becomes an infinity", "(rank 1)",
                 "TSTORE stores 1 element of it to memory 2 (aclrtMalloc) of rank 1"], "1 finding", ""),
    "outside": (1, ["error[PTO-E2101]: TLOAD: touches bytes 0..512 of memory 1 (aclrtMalloc) of rank 0, which "
                    "has 256 bytes (rank 0) in launch 1 of add<2>"], "1 finding", ""),
    "stuck": (1, ["checked.cpp:", "error[PTO-E2104]: TWAIT: the program is stuck: waits for signal 'own' ge 1 (holds 0)",
                  " in launch 1 of take"], "1 finding", "the state at the end of launch 1 (take), because it did not end"),
    "apart": (1, ["error[PTO-E2201]: TADDS", "(rank 0) in launch 2 of add<1>"], "4 launches",
              "effects between ranks, and nan, from launch 1 (take, give) on, because it waits "
              "for an event outside the launches with the same number"),
}  # fmt: skip


@pytest.mark.parametrize("word", some(CHECKED, 2, by=lambda word: CHECKED[word][0]))
def test_sanitizers_watch_every_rank(checked: str, word: str) -> None:
    """Findings name rank, kernel, file and line; windows and signals are those of all ranks together."""
    status, findings, verdict, unchecked = CHECKED[word]
    done = ranks(2, "--sanitize", "all", checked, "--", word)
    assert done.returncode == status, done.stderr
    for text in findings:
        assert text in done.stderr
    assert ("error[" in done.stderr or "warning[" in done.stderr) == bool(findings), done.stderr
    assert verdict in done.stderr
    assert "not checked: tasks, because a host program has no graph of tasks" in done.stderr
    assert unchecked in done.stderr
    assert ("effects between ranks" in done.stderr) == (word == "apart")
    assert ("launches of different numbers" in done.stderr) == (word in ("again", "race"))


@pytest.mark.seeded
def test_e2424_damaged_bytes(checked: str) -> None:
    """A byte of a trace that differs is a finding; a trace that ends too early is named; others are checked."""
    with tempfile.TemporaryFile() as one, tempfile.TemporaryFile() as other:
        launch.run([checked, "good"], 2, None, traces=[one.fileno(), other.fileno()])
        whole = Path(f"/proc/self/fd/{one.fileno()}").read_bytes()

        def check(text: bytes) -> RankChecks:
            one.seek(0)
            one.truncate(0)
            one.write(text)
            one.flush()
            checks = RankChecks(HostProgram(checked), frozenset(["oob"]), [one.fileno(), other.fileno()])
            found = checks.run()
            assert {d.code for d in found} <= {"PTO-E2424"}, render(found)
            cut = [u for u in checks.unchecked if "because its trace ends in the middle of a message" in u]
            assert (len(found) + len(cut) == 1) == (text != whole), (len(found), cut)
            return checks

        assert check(whole).launches == 2
        for seed in seeds(range(200 if EVERY else 12)):
            rng = random.Random(seed)
            at = rng.randrange(len(whole))
            check(whole[:at] + bytes([whole[at] ^ rng.randrange(1, 256)]) + whole[at + 1 :])
        assert check(whole[:-3]).launches == 2


def test_mixed_kernels() -> None:
    """The cube and vector cores of a block run beside each other, and are watched together."""
    source = str(HERE / "mixed.cpp")
    assert not EVERY or ranks(1, source).stdout == "ok 37\n"
    done = ranks(1, "--sanitize", "race,sync", "-D", "RACE", source)
    assert done.returncode == 1 and done.stdout == "ok 37\n"
    assert "error[PTO-E2201]: TADDS: RAW race: PIPE_V reads bytes 0..1024 of UB of AIV0" in done.stderr
    assert " in launch 1 of product<Add>\n" in done.stderr
    assert "checked: 1 launch of 1 rank for race, sync: 1 finding" in done.stderr


def test_a_program_is_checked_for_the_target_that_it_was_built_for(tmp_path: Path) -> None:
    """A vector core of a2a3 has 192 KiB of UB, one of a5 has 248."""
    source = tmp_path / "main.cpp"
    source.write_text("""#include "acl/acl.h"
#include "pto/pto-inst.hpp"
using namespace pto;
__global__ AICORE void high() {
  Tile<TileType::Vec, float, 1, 64> tile;
  TASSIGN(tile, 200 * 1024);
  TEXPANDS(tile, 1.0f);
}
int main() {
  high<<<1, nullptr, nullptr>>>();
}
""")
    for target, found in (("a2a3", True), ("a5", False))[not EVERY :]:
        built = ranks(1, "--arch", target, "--sanitize", "oob", str(source), "-o", str(tmp_path / target))
        assert built.returncode == 0, built.stderr
        done = ranks(1, "--sanitize", "oob", str(tmp_path / target))
        assert ("main.cpp:6:3: error[" in done.stderr) == found, done.stderr
        assert "checked: 1 launch of 1 rank for oob" in done.stderr


def test_what_cannot_be_checked(program: str, checked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ranks(2, "--sanitize", "all", program, "--", "meet")
    assert done.returncode == 1
    assert f"error[PTO-E2405]: cannot trace '{program}': built without traced calls" in done.stderr
    done = ranks(1, "--sanitize", "tasks", checked, "--", "race")
    assert done.returncode == 0 and "\nchecked: nothing\nnot checked: tasks, because" in f"\n{done.stderr}"
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    done = ranks(2, "--sanitize", "all", checked, "--", "nothing")
    assert done.returncode == 1
    assert "--sanitize needs all ranks, but another launcher has started this one" in done.stderr


def test_flags_are_those_of_another_compiler(tmp_path: Path) -> None:
    flags = ranks(1, "--flags").stdout.split()
    assert any(f.startswith("-I") and f.endswith("host") for f in flags) and "-lpto_host" in flags


def test_objects_of_another_build_are_linked(tmp_path: Path) -> None:
    """Files without launches may be compiled elsewhere, with the flags that pto prints."""
    (tmp_path / "answer.cpp").write_text("int answer() { return 42; }\n")
    (tmp_path / "main.cpp").write_text(
        '#include <cstdio>\nint answer();\nint main() { std::printf("%d\\n", answer()); }\n'
    )
    flags = [f for f in ranks(1, "--flags").stdout.split() if not f.startswith(("-l", "-L", "-Wl"))]
    found = compilers.find()
    words = [*found.command, *flags, "-c", str(tmp_path / "answer.cpp"), "-o", str(tmp_path / "answer.o")]
    subprocess.run(words, check=True)
    done = ranks(1, str(tmp_path / "main.cpp"), str(tmp_path / "answer.o"))
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    assert "cannot read" in ranks(1, str(tmp_path / "main.cpp"), str(tmp_path / "other.o")).stderr
