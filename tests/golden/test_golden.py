"""One-file golden tests: a program, command lines of the tools, and their output.

    // RUN: ptoas %s --emit=ssa        one or more; each may be followed by its exit status
    // EXIT: 1                         (default 0)
    module { ... }
    // STDOUT:                         of the first RUN; `// STDOUT 2:` is the second's
    //| line of output
    // STDERR:
    //| line of output

`%s` is the program without its expectations, under the file's own name, so that locations do not depend on
expectations; `< %s` feeds it to standard input. `pytest tests/golden --rebase` rewrites the expectations.
"""

from __future__ import annotations

import difflib
import io
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pto import knobs
from pto.cli import main as pto_main
from pto.cli import ptoas as ptoas_main

_TOOLS = {"ptoas": ptoas_main.main, "pto": pto_main.main}
_HERE = Path(__file__).parent
_CASES = sorted(_HERE.rglob("*.pto"))
_SECTION = re.compile(r"// (STDOUT|STDERR)(?: (\d+))?:$")
_NO_NEWLINE = "//\\ no newline at the end"


@dataclass
class Run:
    command: str
    status: int = 0
    stdout: list[str] = field(default_factory=list)  # as expectation lines
    stderr: list[str] = field(default_factory=list)


@dataclass
class Case:
    program: str
    runs: list[Run]


def read_case(text: str) -> Case:
    """Split a file into its program (RUN and EXIT lines included) and the expected runs."""
    lines = text.split("\n")
    end = next((i for i, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    runs: list[Run] = []
    for line in lines[:end]:
        if line.startswith("// RUN: "):
            runs.append(Run(line.removeprefix("// RUN: ")))
        elif line.startswith("// EXIT: "):
            runs[-1].status = int(line.removeprefix("// EXIT: "))
        elif line and not line.startswith("//"):
            break
    current: list[str] = []
    for line in lines[end:]:
        m = _SECTION.match(line)
        if m:
            run = runs[int(m[2] or 1) - 1]
            current = run.stdout if m[1] == "STDOUT" else run.stderr
        elif line:
            assert line.startswith(("//|", "//\\")), f"neither a section nor an expected line: {line!r}"
            current.append(line)
    program = "\n".join(lines[:end])
    return Case(program, runs)


def write_case(case: Case) -> str:
    out = [case.program if case.program.endswith("\n") else case.program + "\n"]
    for number, run in enumerate(case.runs, 1):
        for name, expected in (("STDOUT", run.stdout), ("STDERR", run.stderr)):
            if expected:
                out.append(f"// {name}{f' {number}' if number > 1 else ''}:\n")
                out += [line + "\n" for line in expected]
    return "".join(out)


def as_lines(text: str) -> list[str]:
    """Output as expectation lines."""
    if not text:
        return []
    *lines, last = text.split("\n")
    shown = [f"//| {line}" if line else "//|" for line in lines]
    return shown if not last else [*shown, f"//| {last}", _NO_NEWLINE]


def execute(
    run: Run, program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run the command in-process, in the folder of the program."""
    tool, *arguments = shlex.split(run.command.replace("%s", program.name))
    if "<" in arguments:
        at = arguments.index("<")
        stdin = io.TextIOWrapper(io.BytesIO(Path(arguments[at + 1]).read_bytes()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stdin)
        del arguments[at : at + 2]
    capsys.readouterr()
    try:
        status = _TOOLS[tool](arguments)
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else 1
    out, err = capsys.readouterr()
    return Run(run.command, status, as_lines(out), as_lines(err))


def difference(case: Case, found: Case) -> str:
    pairs = (
        (f"{run.command} (exit {run.status})", *run.stdout, *run.stderr)
        for side in (case, found)
        for run in side.runs
    )
    sides = list(pairs)
    half = len(case.runs)
    expected = [line for run in sides[:half] for line in run]
    got = [line for run in sides[half:] for line in run]
    return "\n".join(difflib.unified_diff(expected, got, "expected", "got", lineterm="", n=3))


@pytest.mark.parametrize("path", _CASES, ids=[str(p.relative_to(_HERE)) for p in _CASES])
def test_golden(
    path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    text = path.read_bytes().decode()
    case = read_case(text)
    assert case.runs, "no RUN line"
    monkeypatch.chdir(tmp_path)
    program = tmp_path / path.name
    program.write_bytes(case.program.encode())
    with knobs.override(PTO_COLOR="never"):
        found = Case(case.program, [execute(run, program, capsys, monkeypatch) for run in case.runs])
    statuses = [run.status for run in found.runs]
    if request.config.getoption("--rebase"):
        assert statuses == [run.status for run in case.runs], "the exit status is stated by hand: // EXIT: n"
        path.write_bytes(write_case(found).encode())
        return
    assert found == case, f"\n{difference(case, found)}\nif this is right: pytest {path} --rebase"


def test_there_are_cases() -> None:
    assert _CASES, "no golden files found"


def test_expectations_round_trip() -> None:
    """Rebasing a file that is already right changes nothing."""
    text = (
        "// RUN: ptoas %s\n// RUN: ptoas %s --emit=asm\n// EXIT: 1\nx\n// STDOUT:\n//| a\n//|\n//| b\n"
        "// STDERR:\n//| e\n// STDOUT 2:\n//| c\n//\\ no newline at the end\n"
    )
    case = read_case(text)
    assert write_case(case) == text
    assert [run.status for run in case.runs] == [0, 1]
    assert case.runs[0].stdout == as_lines("a\n\nb\n") and case.runs[1].stdout == as_lines("c")


def test_a_difference_is_shown() -> None:
    right = read_case("// RUN: ptoas %s\nx\n// STDOUT:\n//| a\n//| b\n")
    wrong = read_case("// RUN: ptoas %s\nx\n// STDOUT:\n//| a\n//| c\n")
    shown = difference(right, wrong)
    assert "-//| b" in shown and "+//| c" in shown
