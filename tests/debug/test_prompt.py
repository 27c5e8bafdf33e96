"""The prompt: whole sessions as transcripts (`pytest tests/debug --rebase` rewrites them), a terminal, any text."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.debug.kernels import CASES, LOOP, loop, loop_args
from tests.each import each
from tests.sampling import examples

from pto.cli.main import main
from pto.engine.debug.commands import COMMANDS, GROUPS, TOPICS, CommandInterpreter, find
from pto.engine.debug.points import Breakpoint
from pto.engine.debug.session import DebugSession
from pto.engine.traced.kernel import TracedKernel

ROOT = Path(__file__).parents[2]
TRANSCRIPTS = Path(__file__).parent / "transcripts"

_RACE = "debug examples/12_race.pto --sanitize race -- @a.npy @b.npy f32:64x128"
_MIXED = "run examples/07_mixed_sections.pto --break 47 --break 67 -- @h.npy @eye.npy f32:64x64 f32:64x64"
#: Name -> the tool's arguments, and the typed lines.
SESSIONS: dict[str, tuple[str, list[str]]] = {
    "race": (_RACE, [
        "list 32,37", "break 34", "info breakpoints", "continue", "print %ta[0:2, 0:4]", "print/x %tb[0, 0]",
        "print %ta[1, 2] + %tb[0, 0] * 2", "x/4 %ta[1, 0]", "x/4x vec:0x8000 f32", "info flags", "info args",
        "watch %tc[0, 1]", "continue", "reverse-step", "where", "step", "step", "step", "info pipes", "info cores",
        "continue", "reverse-continue", "continue",
    ]),
    "mixed": (_MIXED, [
        "info cores", "print %l[0:2, 0:4]", "next", "info flags", "continue", "core AIV1", "where", "core 1",
        "print %row", "info names", "delete 1", "step 3", "reverse-next", "tbreak 70", "continue", "finish",
        "continue", "continue",
    ]),
    "micro": ("run examples/08_vector_micro.pto --break 32:2 -- @v.npy @v.npy f32:100 100", [
        "print %m", "print %x[0:4]", "info loops", "where", "step", "finish", "reverse-continue", "until 39",
    ]),
    "fifo": ("run examples/09_fifo_push_pop.pto --break 40 --break 60 -- @h16.npy @h16.npy f32:16x16", [
        "info fifos", "step", "info fifos", "continue", "info fifos", "info waits", "quit",
    ]),
    "schedule": ("run examples/12_race.pto --schedule seed=4 --break 34 -- @a.npy @b.npy f32:64x128", [
        "info pipes", "print %tb[0, 0]", "continue",
    ]),
    "loop": ("run loop.pto --break '20 if %i == 1' --watch '%t[0, 1]' -- @x.npy 3", [
        "continue", "continue", "display %i", "step", "step", "where", "print %u", "print %u[3, 0]", "finish",
        "reverse-step", "disable", "continue",
    ]),
    "stops": ("run loop.pto --break 4:2 --break 24 -- @x.npy 3", []),  # nothing typed: it goes on
    "fault": ("run loop.pto -- @small.npy 3 --command x", ["quit"]),
    "cpp": ("debug tests/debug/mixed.cpp --break 30 --break parts.hpp:17 -- @h32.npy @eye32.npy f32:32x32 f32:32x32", [
        "where", "info args", "info names", "print x0[0:2, 0:4]", "print a[0:4]", "print $dst[0, 0]", "step", "step",
        "info flags", "continue", "where", "info files", "list 7,19", "info cores", "watch y[1, 1]", "continue",
        "reverse-step", "break @sync", "info breakpoints", "continue", "print q", "print x[99, 0]", "delete",
        "continue",
    ]),
    "cpp race": ("debug race.cpp --sanitize all -- @a.npy @b.npy f32:64x128", [
        "info args", "continue", "where", "info flags", "print z[0, 0:4]", "reverse-step", "quit",
    ]),
    "cpp schedule": ("run race.cpp --schedule seed=4 --break 23 -- @a.npy @b.npy f32:64x128", [
        "info pipes", "info waits", "step", "quit",
    ]),
    "stuck": ("debug tests/sanitize/programs/crossed_waits.bad.pto -- f32:8x64 f32:8x64", [
        "continue", "info waits", "info pipes", "reverse-step", "step",
    ]),
}  # fmt: skip
SESSIONS["fault"] = ("debug loop.pto -- @small.npy 3", ["continue", "print %p", "reverse-step", "quit"])


@pytest.fixture
def folder(kept_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the sessions: examples, and arrays."""
    for name in ("examples", "tests"):
        (kept_place / name).unlink(missing_ok=True)
        (kept_place / name).symlink_to(ROOT / name)
    (kept_place / "loop.pto").write_text(LOOP)
    correct = (ROOT / "tests/debug/add.cpp").read_text()
    (kept_place / "race.cpp").write_text(correct.replace("  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);\n", ""))
    a = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    half = (np.arange(64 * 64) % 5).reshape(64, 64).astype(np.float16)
    arrays: dict[str, Any] = {
        "a": a, "b": np.ones_like(a), "h": half, "eye": np.eye(64, dtype=np.float16), "h16": half[:16, :16] / 8,
        "h32": half[:32, :32] / 8, "eye32": np.eye(32, dtype=np.float16),
        "v": np.arange(100, dtype=np.float32), "x": np.arange(30, dtype=np.float32).reshape(3, 10),
        "small": np.zeros((2, 10), np.float32),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(kept_place / f"{name}.npy", np.ascontiguousarray(array))
    monkeypatch.chdir(kept_place)
    return kept_place


def split(text: str) -> list[str]:
    import shlex

    return shlex.split(text)


@pytest.mark.parametrize("name", SESSIONS)
def test_transcripts(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], request: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(
        "PTO_CXXFLAGS", raising=False
    )  # callers of what the compiler leaves out show otherwise
    text, typed = SESSIONS[name]
    at = text.index(" --")
    options = [word for line in typed for word in ("--command", line)]
    head, tail = split(text[:at]), split(text[at:])
    main([*head, *options, *tail])
    found = re.sub(r"\d+\.\d{3} s", "T s", capsys.readouterr().out)
    path = TRANSCRIPTS / f"{name}.txt"
    whole = f"$ pto {text}\n{found}"
    if request.config.getoption("--rebase"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(whole)
    assert whole == path.read_text(), "if this is right: pytest tests/debug --rebase"


def test_no_stray_transcripts() -> None:
    assert {p.stem for p in TRANSCRIPTS.glob("*.txt")} == set(SESSIONS)


def test_commands_from_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "script").write_text("# looks at a tile\n\nprint %t[0, 1]\nquit\n")
    assert main(["run", "loop.pto", "--break", "4:2", "--command-file", "script", "--", "@x.npy", "3"]) == 0
    out = capsys.readouterr().out
    assert "(pto) print %t[0, 1]\n%t[0, 1] = 2\n" in out and "ok (" not in out  # left before the end


def test_commands_without_a_place_begin_at_the_first_operation(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "loop.pto", "--command", "print %n", "--command", "quit", "--", "@x.npy", "3"]) == 0
    assert "before arith.constant at loop.pto:8" in (out := capsys.readouterr().out) and "%n = 3" in out


def test_who_leaves_at_a_finding_is_told_what_a_run_would_say(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    race = [
        "--sanitize",
        "race",
        "--command",
        "continue",
        "--command",
        "quit",
        "--",
        "@a.npy",
        "@b.npy",
        "f32:64x128",
    ]
    assert main(["debug", "race.cpp", *race]) == 1
    assert "race.cpp:25:3: error[PTO-E2201]: TSTORE: RAW race" in capsys.readouterr().err
    assert main(["debug", "examples/12_race.pto", *race]) == 1
    assert "12_race.pto:34:5: error[PTO-E2201]: tadd: RAW race" in capsys.readouterr().err


def test_names_of_cpp_are_completed(folder: Path) -> None:
    case = CASES["cpp"]
    kernel: Any = TracedKernel(str(case.path))
    with DebugSession(kernel, list(case.arrays), {}) as session:
        interpreter = CommandInterpreter(session, lambda text: None)
        assert interpreter.completions("break @") == ["break @add"]
        session.points.add(Breakpoint.parsed("26", session.places))
        session.start()
        assert interpreter.completions("print g") == ["print ga", "print gb", "print gc"]
        assert interpreter.completions("print ") == [
            f"print {n}" for n in ("a", "addr", "b", "c", "ga", "gb", "gc", "x", "y", "z")
        ]


def test_results_are_saved_as_without(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "loop.pto", "--break", "4", "--", "@+x.npy", "3"]) == 0
    assert np.load("x.npy")[0, 1] == 8


def test_what_is_wrong_with_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def check(arguments: list[str], why: str) -> None:
        assert main(["run", "loop.pto", *arguments, "--", "@x.npy", "3"]) == 1
        assert why in capsys.readouterr().err

    each(check, [
        (["--break", "99"], "error[PTO-E2016]: no operation at line 99 of loop.pto or after it"),
        (["--watch", "%t +"], "error[PTO-E2016]: watch '%t +'"),
        (["--command-file", "none"], "error[PTO-E0001]: cannot read 'none'"),
        (["--break", "4", "--engine", "native"], "error[PTO-E2403]: engine native has no --debug"),
    ])  # fmt: skip


# -- a terminal --------------------------------------------------------------------------------------------


def test_a_terminal(folder: Path) -> None:
    """Typed, completed, repeated, interrupted: at a real terminal."""
    print_once = """\
      %ten = arith.constant 10 : index
      %tenth = arith.cmpi eq, %i, %ten : index
      scf.if %tenth {
        %one = arith.constant 1 : i32
        pto.print ins("here %d", %one : i32)
      }
    }
    pto.barrier <PIPE_ALL>
    pto.tstore"""
    text = LOOP.replace("    }\n    pto.barrier <PIPE_ALL>\n    pto.tstore", print_once)
    assert text != LOOP
    (folder / "endless.pto").write_text(text)
    here, there = pty.openpty()
    tool = [
        sys.executable,
        "-m",
        "pto.cli.main",
        "debug",
        "endless.pto",
        "--break",
        "4",
        "--",
        "@x.npy",
        "1000000000",
    ]
    seen: list[str] = []

    def until(text: str, typed: str = "") -> str:
        """Return the output up to a text."""
        os.write(here, typed.encode())
        got = ""
        while text not in got:
            assert select.select([here], [], [], 120)[0], f"{text!r} does not come: {seen} {got!r}"
            got += os.read(here, 65536).decode().replace("\r", "")
        seen.append(got)
        return got

    with subprocess.Popen(
        tool,
        stdin=there,
        stdout=there,
        stderr=there,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb"},
    ) as process:
        try:
            assert "before tadd at endless.pto:4" in until("(pto) ")
            assert "before func.return" in until("(pto) ", "step\n")
            assert "before barrier" in until("(pto) ", "\n")  # once more
            assert "%t[0, 1] = 2\n" in until("(pto) ", "pri\t%t[0, 1]\n")
            until("(pto) ", "delete\n")
            until("here", "continue\n")  # output of the program: it runs
            process.send_signal(signal.SIGINT)  # as Ctrl-C does
            assert "Interrupted: core 0" in until("(pto) ")
            assert "%i = " in until("(pto) ", "info loops\n")
            os.write(here, b"quit\n")
            assert process.wait(120) == 0
        finally:
            process.kill()
            os.close(there)
            os.close(here)


# -- any text ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped() -> Any:
    made = DebugSession(loop(), loop_args(), {})
    made.points.add(Breakpoint.parsed("4:2", made.places))
    with made:
        made.start()
        yield made


_WORDS = st.sampled_from(
    [n for c in COMMANDS for n in c.names if c.name not in ("quit", "run") and not c.group.startswith("going")]
    + [*TOPICS, "%t", "%t[0, 1]", "%x[3]", "4", "4:2", "if", "/x", "/3", "vec:0", "gm:0x10000000", "f32", "0", "99", ","]
)  # fmt: skip
_TEXT = st.one_of(
    st.lists(_WORDS, max_size=6).map(" ".join),
    st.lists(_WORDS, max_size=6).map("".join),
    st.text(max_size=40),
)


@examples(300)
@given(text=_TEXT)
def test_any_command_is_answered(text: str, stopped: DebugSession) -> None:
    said: list[str] = []
    interpreter = CommandInterpreter(stopped, said.append)
    word = text.split("/")[0].split()
    if word and _moves(word[0]):
        return
    assert interpreter.run(text) in (True, False)
    interpreter.completions(text)
    assert stopped.stop is not None and all(isinstance(line, str) for line in said)


def _moves(word: str) -> bool:
    try:
        return find(re.split(r"\W", word)[0] or "x").group.startswith("going")
    except Exception:
        return False


def test_help_has_every_command() -> None:
    said: list[str] = []
    with DebugSession(loop(), loop_args(), {}) as s:
        interpreter = CommandInterpreter(s, said.append)
        interpreter.run("help")
        assert len(said) == len(COMMANDS) + len(GROUPS)
        for c in COMMANDS:
            assert c.group in GROUPS and find(c.name) is c
            said.clear()
            interpreter.run(f"help {c.name}")
            assert said[0].startswith(c.name)
        said.clear()
        for text in ("frobnicate", "info nothing", "print", "core 9", "x/9z 3", "step x", "re", "print %t"):
            interpreter.run(text)
        assert "no command 'frobnicate'; help lists them" in said
        assert any("may be reverse-step or reverse-next" in text for text in said)


def test_completion() -> None:
    with DebugSession(loop(), loop_args(), {}) as s:
        interpreter = CommandInterpreter(s, print)
        assert interpreter.completions("rev") == ["reverse-continue ", "reverse-next ", "reverse-step "]
        assert interpreter.completions("info fl") == ["info flags"]
        assert interpreter.completions("print %") == []
        s.points.add(Breakpoint.parsed("24", s.places))
        s.start()
        assert interpreter.completions("print %c1") == ["print %c1", "print %c10"]
        assert interpreter.completions("nonsense x") == []
