"""Options of `ptoas` that show its steps on the way to C++."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.each import together

import pto
from pto.cli import ptoas
from pto.passes import PASSES

PROGRAM = """\
!tile = !pto.tile_buf<vec, 16x64xf32>
func.func @k(%x: !pto.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64]
    : !pto.tensor_view<16x64xf32> -> !pto.partition_tensor_view<16x64xf32>
  %t = pto.alloc_tile : !tile
  pto.tload ins(%w : !pto.partition_tensor_view<16x64xf32>) outs(%t : !tile)
  pto.texp ins(%t : !tile) outs(%t : !tile)
  pto.tstore ins(%t : !tile) outs(%w : !pto.partition_tensor_view<16x64xf32>)
  return
}
"""
PLACED = PROGRAM.replace(
    "%t = pto.alloc_tile :", "%a = arith.constant 0 : i64\n  %t = pto.alloc_tile addr = %a :"
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "k.pto"
    path.write_text(PROGRAM)
    return str(path)


def test_text_forms_print_the_program_as_it_is_written(program: str, capsys: Capture) -> None:
    assert ptoas.main([program, "--emit=pto", "--enable-insert-sync"]) == 0
    out = capsys.readouterr().out
    assert "addr =" not in out and "set_flag" not in out and "layout" not in out


def test_lowered_prints_what_the_cpp_is_made_of(program: str, capsys: Capture) -> None:
    assert ptoas.main([program, "--emit=pto", "--lowered", "--enable-insert-sync"]) == 0
    lowered = capsys.readouterr().out
    assert "addr =" in lowered and "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]" in lowered
    module = pto.parse(lowered)
    assert not [d for d in pto.verify(module) if d.severity == "error"]
    assert ptoas.main([program, "--enable-insert-sync"]) == 0
    assert capsys.readouterr().out.count("set_flag(") == 1 + lowered.count("pto.set_flag")


def test_print_after(program: str, capsys: Capture) -> None:
    assert ptoas.main([program, "--print-after=plan-memory", "--print-after=canonicalize"]) == 0
    out, err = capsys.readouterr()
    assert re.findall(r"^// after (.*)$", err, re.MULTILINE) == ["plan-memory", "canonicalize"]
    assert out.startswith("#include") and "addr =" in err


@pytest.mark.parametrize("option", ["--print-after=all", "--print-after-all"])
def test_print_after_all(option: str, program: str, capsys: Capture) -> None:
    assert ptoas.main([program, option, "--enable-insert-sync", "-o", "/dev/null"]) == 0
    named = re.findall(r"^// after (.*)$", capsys.readouterr().err, re.MULTILINE)
    assert named == [p.name for p in PASSES]


def test_an_unknown_pass_is_usage(program: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        ptoas.main([program, "--print-after=plan-memroy"])
    assert stop.value.code == 2 and "plan-memory" in capsys.readouterr().err


def test_times(program: str, capsys: Capture) -> None:
    assert ptoas.main([program, "--time-passes", "-o", "/dev/null"]) == 0
    rows = re.findall(r"^ *[\d.]+ ms +([\d.]+)%  (.*)$", capsys.readouterr().err, re.MULTILINE)
    steps = [step for _, step in rows]
    assert steps[:2] == ["parse", "verify"] and steps[-2:] == ["emit", "total"] and "plan-memory" in steps
    assert abs(sum(float(share) for share, step in rows if step != "total") - 100) < 1


def test_explain_memory(program: str, tmp_path: Path, capsys: Capture) -> None:
    assert ptoas.main([program, "--explain-memory", "-o", "/dev/null"]) == 0
    assert "%t" in capsys.readouterr().err
    page = tmp_path / "m.html"
    assert ptoas.main([program, f"--explain-memory={page}", "-o", "/dev/null"]) == 0
    assert "<html" in page.read_text().lower() and "%t" not in capsys.readouterr().err


def test_explain_memory_of_a_program_that_places_its_tiles(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "k.pto"
    path.write_text(PLACED)
    assert ptoas.main([str(path), "--explain-memory", "-o", "/dev/null"]) == 0
    assert "no memory plan: the program gives its tiles addresses" in capsys.readouterr().err


_LEVELS = [
    (PROGRAM, "level3", "requires 'addr' operand when --pto-level=level3"),
    (PLACED, "level2", "unexpected 'addr' operand: only supported when --pto-level=level3"),
    (PLACED, "level1", "unexpected 'addr' operand: only supported when --pto-level=level3"),
]


@pytest.mark.parametrize(("text", "level", "message"), _LEVELS)
def test_levels_are_also_numbers(
    text: str, level: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "k.pto"
    path.write_text(text)
    assert ptoas.main([str(path), "--pto-level", level.removeprefix("level")]) == 1
    assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        ptoas.main([str(path), "--pto-level", "4"])


def test_passes_that_did_not_run_print_nothing_and_say_so(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "k.pto"
    path.write_text(PLACED)
    passes = ("plan-memory", "insert-sync", "infer-layout")
    options = [f"--print-after={name}" for name in passes]
    assert ptoas.main([str(path), *options, "--disable-infer-layout", "-o", "/dev/null"]) == 0
    err = capsys.readouterr().err
    for name, help in zip(
        passes, ("no addresses", "--enable-insert-sync", "--disable-infer-layout"), strict=True
    ):
        assert re.search(
            f"warning.PTO-E0003.: cannot print the program after {name}: the pass did not run\n.*{help}", err
        ), err
    assert "// after" not in err


@pytest.mark.parametrize(("text", "level", "message"), _LEVELS)
def test_levels(text: str, level: str, message: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "k.pto"
    path.write_text(text)
    assert ptoas.main([str(path), f"--pto-level={level.upper()}"]) == 1
    assert message in capsys.readouterr().err
    other = "level3" if level != "level3" else "level2"
    assert ptoas.main([str(path), f"--pto-level={other}", "-o", "/dev/null"]) == 0


def test_layout_inference_may_be_left_out(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "k.pto"
    path.write_text(
        PROGRAM.replace(
            "shape = [%c16, %c64], strides = [%c64, %c1]", "shape = [%c16, %c64], strides = [%c1, %c16]"
        )
        .replace("16x64xf32>\nfunc", "16x64xf32, blayout=col_major>\nfunc")
        .replace("pto.texp ins(%t : !tile) outs(%t : !tile)", "pto.barrier <PIPE_ALL>")
    )
    assert ptoas.main([str(path)]) == 0
    assert "pto::Layout::DN" in capsys.readouterr().out
    assert ptoas.main([str(path), "--disable-infer-layout"]) == 0
    assert "pto::Layout::DN" not in capsys.readouterr().out


def test_several_files_become_several_cpp_files(program: str, tmp_path: Path) -> None:
    other = tmp_path / "l.pto"
    other.write_text(PROGRAM.replace("@k", "@l"))
    out = tmp_path / "out"
    assert ptoas.main([program, str(other), "-j", "2", "-o", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["k.cpp", "l.cpp"]


def test_processes_report_as_one_does(
    program: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Output of the passes, output, and diagnostics with their places come from other processes as they are."""
    wrong, other = tmp_path / "wrong.pto", tmp_path / "other.pto"
    wrong.write_text(PROGRAM.replace("pto.texp ins(%t", "pto.texp ins(%u"))
    other.write_text(PROGRAM.replace("@k", "@l"))
    for names in ([program, str(wrong), str(other)], [program, str(other)]):
        for more in ("--diagnostics=json", "--print-after-all"):
            found = []
            for jobs in ("1", "3"):
                status = ptoas.main([*names, "-j", jobs, "--emit=pto", "--lowered", more])
                found.append((status, *capfd.readouterr()))
            assert found[0] == found[1] and found[0][2]
            assert found[0][0] == (str(wrong) in names)


@together("name", ["T", "int32_t", "concept", "requires", "nullptr", "AICORE", "char8_t"])
def test_functions_with_names_of_cpp(name: str) -> None:
    text = pto.emit_cpp(pto.parse(PROGRAM.replace("@k", f"@{name}")))
    assert f"void f_{name}(" in text


def test_an_output_that_would_not_be_what_its_name_says(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ptoas.main(["k.pto", "-o", "k.ptobc"])
    assert ended.value.code == 2
    assert "ptobc encode FILE" in capsys.readouterr().err
