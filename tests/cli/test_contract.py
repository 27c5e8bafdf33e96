"""Contract of every tool: exit status, standard streams, several files, whole outputs or none."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pto import knobs
from pto.cli import check, common, main, ptoas
from pto.isa.errors import CATALOGUE

from .conftest import Tool

GOOD = "module {\n  func.func @k() {\n    return\n  }\n}\n"
UGLY = "module{func.func @k(){return}}"
BAD = "module {\n  func.func @k() {\n    pto.tnothing\n    return\n  }\n}\n"
WARNS = 'module attributes {pto.target_arc = "a3"} {\n}\n'

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.pto"
    path.write_text(UGLY)
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.pto"
    path.write_text(BAD)
    return path


# ------------------------------------------------------------------------------------------------ exit status


def test_status_0_prints_the_program_and_nothing_else(good: Path, capsys: Capture) -> None:
    assert ptoas.main([str(good), "--emit=pto"]) == 0
    assert capsys.readouterr() == (GOOD, "")


def test_the_default_output_is_cpp(good: Path, capsys: Capture) -> None:
    assert ptoas.main([str(good)]) == 0
    out, err = capsys.readouterr()
    assert (
        out.startswith('#include "pto/pto-inst.hpp"\n')
        and "__global__ AICORE void k() {" in out
        and err == ""
    )


def test_status_1_prints_diagnostics_and_no_program(bad: Path, capsys: Capture) -> None:
    assert ptoas.main([str(bad)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and f"{bad}:3:5: error[" in err and "Traceback" not in err


def test_warnings_keep_status_0(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "w.pto"
    path.write_text(WARNS)
    assert ptoas.main([str(path), "--emit=pto"]) == 0
    out, err = capsys.readouterr()
    assert out == WARNS and "warning[PTO-E0113]" in err


@pytest.mark.parametrize(
    ("entry", "arguments"),
    [
        (ptoas.main, ["--no-such-option"]),
        (ptoas.main, ["--emit", "cobol"]),
        (ptoas.main, ["--arch", "a9"]),
        (ptoas.main, ["-", "-"]),
        (main.main, ["check"]),
        (main.main, ["isa", "--profile", "a9"]),
        (main.main, ["fmt", "--no-such-option"]),
    ],
)
def test_status_2_is_usage(entry: Any, arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        entry(arguments)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and "--help'" in err


def test_unknown_verb_is_usage_with_a_hint(capsys: Capture) -> None:
    assert main.main(["chek"]) == 2
    assert "did you mean 'check'?" in capsys.readouterr().err


def test_several_outputs_need_a_folder(good: Path, bad: Path, tmp_path: Path, capsys: Capture) -> None:
    taken = tmp_path / "file"
    taken.write_text("old")
    assert ptoas.main([str(good), str(good), "-o", str(taken)]) == 2
    assert taken.read_text() == "old"


@pytest.fixture
def broken_printer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> str:
        raise ZeroDivisionError("the bug")

    monkeypatch.setattr("pto.asm.to_text", broken)


@pytest.mark.usefixtures("broken_printer")
def test_status_70_is_a_bug_and_leaves_a_reproducer(good: Path, tmp_path: Path, capsys: Capture) -> None:
    where = tmp_path / "reports"
    where.mkdir()
    with knobs.override(PTO_REPRODUCER_DIR=str(where)):
        assert ptoas.main([str(good), "--emit=pto"]) == 70
    out, err = capsys.readouterr()
    (report,) = where.iterdir()
    assert out == "" and "this is a bug of pto" in err and str(report) in err and "Traceback" not in err
    text = report.read_text()
    assert "ZeroDivisionError: the bug" in text and UGLY in text and "command: ptoas" in text


@pytest.mark.usefixtures("broken_printer")
def test_status_70_without_a_place_for_the_reproducer(good: Path, tmp_path: Path, capsys: Capture) -> None:
    with knobs.override(PTO_REPRODUCER_DIR=str(tmp_path / "missing")):
        assert ptoas.main([str(good), "--emit=pto"]) == 70
    assert "this is a bug of pto\n" in capsys.readouterr().err


def test_a_verb_that_breaks_is_our_bug_too(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pto.isa.rows", lambda: 1 / 0)
    with knobs.override(PTO_REPRODUCER_DIR=str(tmp_path)):
        assert main.main(["isa"]) == 70
    (report,) = tmp_path.iterdir()
    assert report.name.startswith("pto-isa-bug-") and "pto isa: internal error" in capsys.readouterr().err


def test_interrupt(good: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(common, "read_input", stop)
    assert ptoas.main([str(good)]) == 130
    assert capsys.readouterr().err == "ptoas: interrupted\n"


# --------------------------------------------------------------------------------------------- standard streams


@pytest.mark.parametrize("arguments", [[], ["-"], ["-", "-o", "-"]])
def test_standard_input_to_standard_output(tool: Tool, arguments: list[str]) -> None:
    done = tool(*arguments, "--emit=pto", data=UGLY.encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, GOOD.encode(), b"")


def test_diagnostics_of_standard_input_name_it(tool: Tool) -> None:
    done = tool(data=BAD.encode())
    assert done.returncode == 1 and done.stderr.startswith(b"<stdin>:3:5: error[")


@pytest.mark.parametrize("verb", ["check", "fmt"])
def test_verbs_read_standard_input(tool: Tool, verb: str) -> None:
    assert tool(verb, "-", data=GOOD.encode(), name="pto").returncode == 0


def test_dev_stdout_as_output(tool: Tool, good: Path) -> None:
    done = tool(str(good), "--emit=pto", "-o", "/dev/stdout")
    assert (done.returncode, done.stdout) == (0, GOOD.encode())


@pytest.mark.parametrize("name", ["ptoas", "pto"])
def test_a_reader_that_goes_away_does_not_hide_errors(name: str, tmp_path: Path) -> None:
    """As in `ptoas bad.pto 2>&1 | head -1` with pipefail."""
    bad = tmp_path / "bad.pto"
    bad.write_text("".join(f"func.func @f{i}() {{\n  pto.no\n}}\n" for i in range(600)))
    script = "from pto.cli.ptoas import command; command()" if name == "ptoas" else (
        "import sys; from pto.cli.main import main; sys.exit(main())"
    )  # fmt: skip
    command = [sys.executable, "-c", script, *(["check"] if name == "pto" else []), str(bad)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
    assert process.returncode == 1


# ------------------------------------------------------------------------------------------------ several files


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[list[str]]:
    paths = [tmp_path / f"k{i}.pto" for i in range(5)]
    for i, path in enumerate(paths):
        path.write_text(UGLY.replace("@k", f"@k{i}"))
    yield [str(p) for p in paths]


@pytest.mark.parametrize("jobs", ["1", "2", "0"])
def test_several_files_into_a_folder(folder: list[str], jobs: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert ptoas.main([*folder, "--emit=pto", "-j", jobs, "-o", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == [f"k{i}.pto" for i in range(5)]
    for i in range(5):
        assert (out / f"k{i}.pto").read_text() == GOOD.replace("@k", f"@k{i}")


def test_several_files_on_standard_output_are_told_apart(folder: list[str], capsys: Capture) -> None:
    assert ptoas.main([*folder, "-j", "2"]) == 0
    out = capsys.readouterr().out
    said = [line for line in out.splitlines() if line.startswith("// ") and "target:" not in line]
    assert said == [f"// {path}" for path in folder]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_one_bad_file_writes_none_and_all_errors_are_told(
    folder: list[str], bad: Path, jobs: str, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    missing = str(tmp_path / "missing.pto")
    assert ptoas.main([*folder, str(bad), missing, "-j", jobs, "-o", str(out), "--diagnostics=json"]) == 1
    assert not out.exists() or not list(out.iterdir())
    codes = {d["code"] for d in json.loads(capsys.readouterr().err)}
    assert "PTO-E0001" in codes and len(codes) >= 2


# ---------------------------------------------------------------------------------------------------- output


def _names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_errors_leave_the_old_output_alone(bad: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pto"
    out.write_text("old")
    assert ptoas.main([str(bad), "-o", str(out)]) == 1
    assert out.read_text() == "old" and _names(tmp_path) == ["bad.pto", "out.pto"]


def test_a_failing_write_leaves_the_old_output_and_no_temporary_file(
    good: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.pto"
    out.write_text("old")

    class Full(io.RawIOBase):
        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(handle: int, *_: object) -> Full:
        os.close(handle)
        return Full()

    monkeypatch.setattr(os, "fdopen", full)
    assert ptoas.main([str(good), "-o", str(out)]) == 1
    assert out.read_text() == "old" and _names(tmp_path) == ["good.pto", "out.pto"]
    assert "no space left on device" in capsys.readouterr().err


def test_an_unwritable_folder(good: Path, capsys: Capture) -> None:
    assert ptoas.main([str(good), "-o", "/proc/no/out.pto"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "error[PTO-E0002]: cannot write '/proc/no/out.pto'" in err


def test_the_mode_of_a_replaced_file_stays(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pto"
    out.write_text("old")
    out.chmod(0o640)
    assert ptoas.main([str(good), "--emit=pto", "-o", str(out)]) == 0
    assert out.stat().st_mode & 0o777 == 0o640 and out.read_text() == GOOD


def test_a_link_keeps_pointing(good: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "real.pto", tmp_path / "link.pto"
    target.write_text("old")
    link.symlink_to(target)
    assert ptoas.main([str(good), "--emit=pto", "-o", str(link)]) == 0
    assert link.is_symlink() and target.read_text() == GOOD


def test_input_and_output_may_be_one_file(good: Path) -> None:
    assert ptoas.main([str(good), "--emit=pto", "-o", str(good)]) == 0
    assert good.read_text() == GOOD


# ------------------------------------------------------------------------------------------------------ input


def test_check_and_ptoas_agree_on_programs_with_nothing_to_run_or_to_emit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors that only one of them reported: no function at all, and vector registers on an A3."""
    path = tmp_path / "k.pto"
    scope = 'pto.vecscope {\n      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>\n    }'
    for text, arch, code, status in (
        ("", "a3", "PTO-E0219", 0),
        (f"func.func @k() {{\n    {scope}\n    return\n}}\n", "a3", "PTO-E1301", 1),
        (f"func.func @k() {{\n    {scope}\n    return\n}}\n", "a5", "", 0),
    ):
        path.write_text(text)
        said = []
        for tool, more, wanted in ((ptoas.main, ["-o", os.devnull], status), (check.main, [], 0)):
            assert tool([str(path), "--pto-arch", arch, *more]) == wanted
            said.append([line for line in capsys.readouterr().err.splitlines() if "[PTO-" in line])
        assert [code in line for lines in said for line in lines] == ([True, True] if code else [])


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"", 0, "PTO-E0219"),
        (b"\n\n", 0, "PTO-E0219"),
        (b"module {}", 0, "PTO-E0219"),
        (b"\xef\xbb\xbf" + GOOD.encode(), 0, None),
        (GOOD.replace("\n", "\r\n").encode(), 0, None),
        (GOOD.encode().rstrip(), 0, None),
        (b"module {\xff}", 1, "PTO-E0103"),
        (b"\xc3", 1, "PTO-E0103"),
        (GOOD.encode("utf-16"), 1, "PTO-E0103"),
        (b"\0" * 100, 1, "PTO-E0101"),
        (b"module {\0}", 1, "PTO-E0101"),
        (b"module {", 1, "PTO-E0106"),
        (b'"', 1, "PTO-E0102"),
    ],
)
def test_odd_inputs(tool: Tool, data: bytes, status: int, code: str | None) -> None:
    done = tool("--diagnostics=json", data=data)
    assert done.returncode == status, done.stderr.decode()
    found = json.loads(done.stderr)
    assert code in {d["code"] for d in found} if code else found == []


def test_line_ends_do_not_move_places(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "dos.pto"
    path.write_bytes(BAD.replace("\n", "\r\n").encode())
    assert ptoas.main([str(path)]) == 1
    err = capsys.readouterr().err
    assert f"{path}:3:5: error[" in err and "\r" not in err


def test_json_diagnostics_have_a_fixed_shape(bad: Path, capsys: Capture) -> None:
    assert ptoas.main([str(bad), "--diagnostics=json"]) == 1
    found = json.loads(capsys.readouterr().err)
    assert found
    for d in found:
        assert d["code"] in CATALOGUE and d["severity"] in ("error", "warning") and d["message"]
        assert d["file"] == str(bad) and d["line"] >= 1 and d["column"] >= 1
        assert (d["end_line"], d["end_column"]) > (d["line"], d["column"])


def test_names_that_act_on_a_terminal_do_not_reach_it(tmp_path: Path, capsys: Capture) -> None:
    """Names of functions and files in verdicts, tables and diagnostics; `\\udcff` is a byte that is not
    UTF-8."""
    path = tmp_path / "a\x1b[31m\u202e\udcff.pto"
    named = r'@"k\1B[2J\0Ax"() attributes {pto.entry} '
    path.write_text(UGLY.replace("@k()", named).replace("{", ' attributes {pto.target_arch = "a3"} {', 1))
    bad = path.with_name("b\x07\udcfe.pto")
    bad.write_text('module {\n  func.func @"k\1B[2J\u202e"() {\n    return %"\u202e\x1b\n  }\n}\n')
    shown = r"a\x1b[31m\u202e\udcff.pto"
    for arguments, wanted in (
        (["check", str(path), str(path.with_name("no\x1b"))], rf"{shown}: ok"),
        (["fmt", str(path)], rf"{shown}: rewritten"),
        (["run", str(path), "--"], r"@k\x1b[2J\nx: ok"),
        (["run", str(path), "--time", "--"], " us"),
        (["run", str(path), "--memory-map", "-", "--"], "no tile was touched"),
        (["check", str(bad)], r"b\x07\udcfe.pto:"),
        (["check", str(bad), "--diagnostics=json"], r"b\u0007\udcfe.pto"),
        (["check\x1b", "--x\x1b"], "unknown verb"),
    ):
        with contextlib.suppress(SystemExit):
            main.main(arguments)
        said = "".join(capsys.readouterr())
        assert wanted in said, (arguments, said)
        assert all(c.isprintable() or c == "\n" for c in said), (arguments, said)


def test_colour_follows_the_knob(bad: Path, capsys: Capture) -> None:
    for choice, coloured in (("always", True), ("never", False), ("auto", False)):
        with knobs.override(PTO_COLOR=choice):
            assert ptoas.main([str(bad)]) == 1
        assert ("\x1b[1;31m" in capsys.readouterr().err) is coloured
