"""`pto run`: forms of arguments, outputs, exit status; printed text and unchanged arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.each import together

from pto import knobs
from pto.cli import ptobc
from pto.cli.main import main

from .conftest import Tool

Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

#: y = s * x on one 4x64 tile.
SCALE = """\
!tile = !pto.tile_buf<vec, 4x64x{0}>
!view = !pto.tensor_view<4x64x{0}>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @scale(%x: !view, %s: {0}, %y: !view) attributes {{pto.entry}} {{
    %t = pto.alloc_tile : !tile
    pto.tload ins(%x : !view) outs(%t : !tile)
    pto.tmuls ins(%t, %s : !tile, {0}) outs(%t : !tile)
    pto.tstore ins(%t : !tile) outs(%y : !view)
    return
  }}
}}
"""

#: Prints one tile and its argument, then adds one in place.
TALK = """\
!tile = !pto.tile_buf<vec, 1x8xf32>
!view = !pto.tensor_view<1x8xf32>
func.func @talk(%x: !view, %n: i32) attributes {pto.entry} {
  %one = arith.constant 1.0 : f32
  %t = pto.alloc_tile : !tile
  pto.tload ins(%x : !view) outs(%t : !tile)
  pto.tprint ins(%t : !tile)
  pto.tadds ins(%t, %one : !tile, f32) outs(%t : !tile)
  pto.tstore ins(%t : !tile) outs(%x : !view)
  return
}
"""

#: Stores the loaded tile, after the flag; without the flag if the lines are removed.
FLAGGED = """\
!tile = !pto.tile_buf<vec, 4x64xf32>
!view = !pto.tensor_view<4x64xf32>
func.func @copy(%x: !view, %y: !view) attributes {pto.entry} {
  %at = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %at : !tile
  pto.tload ins(%x : !view) outs(%t : !tile)
  pto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.tstore ins(%t : !tile) outs(%y : !view)
  return
}
"""

ENDLESS = """\
func.func @spin() attributes {pto.entry} {
  %true = arith.constant true
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    scf.yield
  }
  return
}
"""

X = (np.arange(256, dtype=np.float32) / 8).reshape(4, 64)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands run where their files are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.pto").write_text(SCALE.format("f32"))
    (tmp_path / "talk.pto").write_text(TALK)
    (tmp_path / "flagged.pto").write_text(FLAGGED)
    (tmp_path / "race.pto").write_text("".join(s for s in FLAGGED.splitlines(True) if "_flag" not in s))
    np.save("x.npy", X)
    return tmp_path


def run(*arguments: str) -> int:
    return main(["run", *arguments])


def problems(capsys: Capture) -> list[dict[str, Any]]:
    return json.loads(capsys.readouterr().err)


# ------------------------------------------------------------------------------------------------ arguments


def test_an_array_in_and_an_array_out(capsys: Capture) -> None:
    assert run("scale.pto", "--", "@x.npy", "3", "f32:4x64=y.npy") == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("@scale: ok (1 block, target a5, ") and out.count("\n") == 1
    assert np.array_equal(np.load("y.npy"), 3 * X)
    assert np.array_equal(np.load("x.npy"), X), "only @+ writes back"


@together(
    ("text", "value"), [("3", 3), ("0x10", 16), ("-2", -2), ("1.5", 1.5), ("-.5", -0.5), ("1e-3", 1e-3)]
)
def test_scalars(text: str, value: float) -> None:
    assert run("scale.pto", "-q", "--", "@x.npy", text, "f32:4x64=y.npy") == 0
    assert np.array_equal(np.load("y.npy"), X * np.float32(value))


def test_an_array_written_back() -> None:
    np.save("v.npy", np.arange(8, dtype=np.float32).reshape(1, 8))
    assert run("talk.pto", "-q", "--", "@+v.npy", "1") == 0
    assert np.load("v.npy").tolist() == [[1, 2, 3, 4, 5, 6, 7, 8]]


def test_a_fresh_array_needs_no_file(folder: Path) -> None:
    before = sorted(p.name for p in folder.iterdir())
    assert run("scale.pto", "-q", "--", "@x.npy", "1", "f32:4x64") == 0
    assert sorted(p.name for p in folder.iterdir()) == before


def test_arguments_without_the_dashes() -> None:
    assert run("scale.pto", "@x.npy", "2", "f32:4x64=y.npy") == 0
    assert np.array_equal(np.load("y.npy"), 2 * X)


def test_bf16_round_trip(folder: Path) -> None:
    """.npy files have no bfloat16: NumPy saves it as two nameless bytes, and it comes out as uint16."""
    (folder / "bf16.pto").write_text(SCALE.format("bf16"))
    x = X.astype(ml_dtypes.bfloat16)
    np.save("in.npy", x)
    assert run("bf16.pto", "-q", "--", "@in.npy", "2", "bf16:4x64=out.npy") == 0
    y = np.load("out.npy")
    assert y.dtype == np.uint16 and np.array_equal(y.view(ml_dtypes.bfloat16), x + x)
    assert run("bf16.pto", "-q", "--", "@out.npy", "0.5", "bf16:4x64=again.npy") == 0
    assert np.array_equal(np.load("again.npy").view(ml_dtypes.bfloat16), x)


def test_f16_keeps_its_type(folder: Path) -> None:
    (folder / "f16.pto").write_text(SCALE.format("f16"))
    np.save("in.npy", X.astype(np.float16))
    assert run("f16.pto", "-q", "--", "@in.npy", "2", "f16:4x64=out.npy") == 0
    y = np.load("out.npy")
    assert y.dtype == np.float16 and np.array_equal(y, 2 * X.astype(np.float16))


@pytest.mark.parametrize(
    ("argument", "message", "help"),
    [
        ("@none.npy", "cannot read 'none.npy': no such file or directory", "check the path"),
        ("@scale.pto", "is not a .npy array", "numpy.save"),
        ("@pair.npz", "contains several arrays", "a .npy file of its own"),
        ("f23:4x64", "unknown element type 'f23'", "did you mean 'f32'?"),
        ("f32:99999x99999x99", "larger than 64 GiB", "fewer"),
        ("f32:4x", "expected an array or a number", "ROWSxCOLS"),
        ("hello", "expected an array or a number", "--help"),
        ("", "expected an array or a number", "--help"),
    ],
)
def test_e2010_bad_arguments(argument: str, message: str, help: str, capsys: Capture) -> None:
    np.savez("pair.npz", a=X, b=X)
    assert run("scale.pto", "--diagnostics=json", "--", argument, "1", "f32:4x64") == 1
    (found,) = problems(capsys)
    assert found["code"] == "PTO-E2010" and message in found["message"] and help in found["help"]


def test_all_bad_arguments_are_told(capsys: Capture) -> None:
    assert run("scale.pto", "--diagnostics=json", "--", "@no.npy", "x", "f99:4") == 1
    assert [d["code"] for d in problems(capsys)] == ["PTO-E2010"] * 3


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["@x.npy", "1"], "PTO-E2011"),
        (["@x.npy", "1", "f32:4x64", "2"], "PTO-E2011"),
        (["@x.npy", "1", "f16:4x64"], "PTO-E2012"),
        (["1", "1", "f32:4x64"], "PTO-E2012"),
        (["@x.npy", "@x.npy", "f32:4x64"], "PTO-E2013"),
        (["@x.npy", "1", "f32:64x4"], "PTO-E2015"),
    ],
)
def test_arguments_that_do_not_fit(arguments: list[str], code: str, capsys: Capture) -> None:
    assert run("scale.pto", "--diagnostics=json", "--", *arguments) == 1
    (found,) = problems(capsys)
    assert found["code"] == code and found["file"] == "scale.pto" and found["line"] == 4
    assert found["expected"] and found["got"]


# --------------------------------------------------------------------------------------------------- output


def test_what_the_program_prints_comes_first(capsys: Capture) -> None:
    np.save("v.npy", np.arange(8, dtype=np.float32).reshape(1, 8))
    assert run("talk.pto", "--", "@v.npy", "1") == 0
    out, err = capsys.readouterr()
    assert err == "" and out.rstrip().splitlines()[-1].startswith("@talk: ok") and "7" in out.splitlines()[-2]


def test_print_shows_the_arrays(capsys: Capture) -> None:
    assert run("scale.pto", "-q", "--print", "--", "@x.npy", "0", "f32:4x64") == 0
    out = capsys.readouterr().out
    assert out.startswith("%x =\n[[ 0.") and "%y =\n[[0." in out and "%s" not in out


def test_quiet_says_nothing(capsys: Capture) -> None:
    for flag in ("-q", "--quiet"):
        assert run("scale.pto", flag, "--", "@x.npy", "1", "f32:4x64") == 0
        assert capsys.readouterr() == ("", "")


def test_the_summary_says_what_was_checked(capsys: Capture) -> None:
    assert run("flagged.pto", "--blocks", "1", "--sanitize", "race,undef", "--", "@x.npy", "f32:4x64") == 0
    assert (
        "(1 block, target a2a3, engine native, checked for race, undef: nothing found, "
        in capsys.readouterr().out
    )


def test_a_program_without_flags_is_synchronised_first(capsys: Capture) -> None:
    arguments = ("scale.pto", "--sanitize", "all", "--", "@x.npy", "1", "f32:4x64")
    assert run(*arguments) == 0
    assert "checked for nan, oob, overlap, race, sync, undef: nothing found" in capsys.readouterr().out
    race = ("race.pto", "--sanitize=race", "--", "@x.npy", "f32:4x64")
    assert run(*race) == 1  # it has addresses: its author is in charge
    assert "error[PTO-E2201]" in capsys.readouterr().err
    assert run("--enable-insert-sync", *race) == 0


def test_json_is_all_there_is_on_standard_error(capsys: Capture) -> None:
    assert run("scale.pto", "--diagnostics=json", "--", "@x.npy", "1", "f32:4x64") == 0
    assert capsys.readouterr() == ("", "[]\n")
    assert run("race.pto", "--diagnostics=json", "--sanitize=race", "--", "@x.npy", "f32:4x64") == 1
    (found,) = problems(capsys)
    assert found["code"] == "PTO-E2201" and found["line"] == 7 and "set_flag" in found["help"]


def test_shadow_prints_its_histogram(capsys: Capture) -> None:
    assert run("scale.pto", "--shadow", "f64", "--", "@x.npy", "0.1", "f32:4x64") == 0
    out = capsys.readouterr().out
    assert out.startswith("error in units of the last place") and "<= 0.5" in out
    assert run("scale.pto", "-q", "--shadow=f64", "--", "@x.npy", "0.1", "f32:4x64") == 0
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------------------------------------- memory maps


def test_memory_map_as_text(capsys: Capture) -> None:
    assert run("flagged.pto", "-q", "--memory-map", "-", "--", "@x.npy", "f32:4x64") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("UB: peak 1024 of ") and "0..1024" in shown
    assert run("flagged.pto", "-q", "--memory-map", "map.txt", "--", "@x.npy", "f32:4x64") == 0
    assert Path("map.txt").read_text() == shown and capsys.readouterr().out == ""


def test_memory_map_as_a_page(capsys: Capture) -> None:
    assert run("flagged.pto", "-q", "--memory-map", "map.html", "--", "@x.npy", "f32:4x64") == 0
    page = Path("map.html").read_text()
    assert page.lower().startswith("<!doctype html>") and "copy" in page
    assert "http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page, "works offline"


def test_memory_map_of_a_run_that_failed() -> None:
    """The picture is there to find out why."""
    assert run("race.pto", "--sanitize=race", "--memory-map", "map.txt", "--", "@x.npy", "f32:4x64") == 1
    assert Path("map.txt").exists()


def test_memory_map_that_cannot_be_written(capsys: Capture) -> None:
    assert run("flagged.pto", "--memory-map", "no/map.txt", "--", "@x.npy", "f32:4x64") == 1
    assert "error[PTO-E0002]: cannot write 'no/map.txt'" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------- runs that fail


def test_a_failed_run_writes_no_arrays(folder: Path) -> None:
    np.save("y.npy", np.full((4, 64), 7, np.float32))
    assert run("race.pto", "--sanitize=race", "--", "@x.npy", "f32:4x64=new.npy") == 1
    assert run("race.pto", "--sanitize=race", "--", "@x.npy", "@+y.npy") == 1
    assert not (folder / "new.npy").exists() and (np.load("y.npy") == 7).all()


def test_an_output_that_cannot_be_written(capsys: Capture) -> None:
    assert run("scale.pto", "--", "@x.npy", "1", "f32:4x64=no/y.npy") == 1
    out, err = capsys.readouterr()
    assert out == "" and "error[PTO-E0002]: cannot write 'no/y.npy'" in err


def test_a_race_is_found_whatever_the_order_was(capsys: Capture) -> None:
    assert run("race.pto", "-q", "--", "@x.npy", "f32:4x64=y.npy") == 0
    assert np.array_equal(np.load("y.npy"), X), "in program order it works"
    assert run("race.pto", "--sanitize", "all", "--", "@x.npy", "f32:4x64") == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("race.pto:7:3: error[PTO-E2201]: tstore: RAW race")


def test_schedules_show_what_a_race_does() -> None:
    wrong = 0
    for seed in range(20):
        assert run("race.pto", "-q", "--schedule", f"seed={seed}", "--", "@x.npy", "f32:4x64=y.npy") == 0
        wrong += not np.array_equal(np.load("y.npy"), X)
        assert run("flagged.pto", "-q", "--schedule", f"{seed}", "--", "@x.npy", "f32:4x64=y.npy") == 0
        assert np.array_equal(np.load("y.npy"), X)
    assert wrong


def test_an_array_that_is_too_small(folder: Path, capsys: Capture) -> None:
    program = (EXAMPLES / "02_manual_flags.pto").read_text()
    (folder / "add.pto").write_text(program)
    assert run("add.pto", "--", "f32:64x128", "f32:64x100", "f32:64x128=c.npy") == 1
    out, err = capsys.readouterr()
    assert "error[PTO-E2101]: tload: touches bytes" in err and out == "" and not Path("c.npy").exists()


def test_max_steps_end_a_loop(folder: Path, capsys: Capture) -> None:
    (folder / "spin.pto").write_text(ENDLESS)
    assert run("spin.pto", "--max-steps", "1000") == 1
    assert "error[PTO-E2106]" in capsys.readouterr().err


def test_an_illegal_program_is_not_run(folder: Path, capsys: Capture) -> None:
    text = SCALE.format("f32").replace("outs(%t : !tile)\n    pto.tstore", "outs(%x : !view)\n    pto.tstore")
    (folder / "bad.pto").write_text(text)
    assert run("bad.pto", "--", "@x.npy", "1", "f32:4x64=y.npy") == 1
    assert "error[" in capsys.readouterr().err and not Path("y.npy").exists()


def test_no_check_leaves_legality_out(folder: Path, capsys: Capture) -> None:
    """tmuls has no bf16 on A2/A3; the engine could do it all the same."""
    (folder / "bf16.pto").write_text(SCALE.format("bf16").replace('"a5"', '"a3"'))
    arguments = ["bf16.pto", "-q", "--", "bf16:4x64", "2", "bf16:4x64"]
    assert run(*arguments) == 1
    assert "error[" in capsys.readouterr().err
    assert run("--no-check", *arguments) == 0


def test_a_missing_file_and_a_broken_program(folder: Path, capsys: Capture) -> None:
    assert run("none.pto") == 1
    assert "error[PTO-E0001]" in capsys.readouterr().err
    (folder / "broken.pto").write_text("func.func @k() { pto.tnothing }")
    assert run("broken.pto") == 1
    assert "broken.pto:1:" in capsys.readouterr().err


# -------------------------------------------------------------------------------------- programs and entries


def test_entries(capsys: Capture) -> None:
    assert run("scale.pto", "--entry", "scale", "-q", "--", "@x.npy", "1", "f32:4x64") == 0
    assert run("scale.pto", "--entry", "sclae", "--", "@x.npy", "1", "f32:4x64") == 1
    err = capsys.readouterr().err
    assert "error[PTO-E2001]: no function '@sclae' to run" in err and "did you mean 'scale'?" in err


def test_several_entries_need_a_name(folder: Path, capsys: Capture) -> None:
    both = "".join(f"func.func @{n}() attributes {{pto.entry}} {{\n  return\n}}\n" for n in ("f", "g"))
    (folder / "both.pto").write_text(both)
    assert run("both.pto") == 1
    assert "name one with --entry: @f, @g" in capsys.readouterr().err
    assert run("both.pto", "--entry=g") == 0
    assert capsys.readouterr().out.startswith("@g: ok")


def test_blocks(folder: Path, capsys: Capture) -> None:
    n = 5000
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, n), dtype=np.float32)
    np.save("a.npy", a)
    np.save("b.npy", b)
    program = str(EXAMPLES / "kernels/vector_add.pto")
    assert (
        run(program, "--blocks", "3", "--sanitize", "all", "--", "@a.npy", "@b.npy", f"f32:{n}=c.npy", f"{n}")
        == 0
    )
    assert "(3 blocks, " in capsys.readouterr().out
    assert np.array_equal(np.load("c.npy"), a + b)


def test_subblocks(capsys: Capture) -> None:
    """With one vector core, the other half is left as it was."""
    program = str(EXAMPLES / "07_mixed_sections.pto")
    ones = np.ones((64, 64), np.float16)
    np.save("ones.npy", ones)
    for cores, rows in ((1, 32), (2, 64)):
        arguments = ["--", "@ones.npy", "@ones.npy", "f32:64x64", "f32:64x64=y.npy"]
        assert run(program, "-q", "--subblocks", str(cores), *arguments) == 0
        assert np.count_nonzero(np.load("y.npy")) == rows * 64


def test_another_target_and_another_capacity(capsys: Capture) -> None:
    assert run("scale.pto", "--arch", "a3", "--", "@x.npy", "1", "f32:4x64") == 0
    assert "target a2a3" in capsys.readouterr().out
    assert run("flagged.pto", "--capacity", "vec=512", "--", "@x.npy", "f32:4x64") == 1
    assert "holds 512 bytes" in capsys.readouterr().err


def test_bytecode_is_as_good_as_text(capsys: Capture) -> None:
    assert ptobc.main(["encode", "scale.pto", "-o", "scale.ptobc"]) == 0
    assert run("scale.ptobc", "--", "@x.npy", "2", "f32:4x64=y.npy") == 0
    assert np.array_equal(np.load("y.npy"), 2 * X)
    assert capsys.readouterr().out.startswith("@scale: ok")


def test_standard_input(tool: Tool, folder: Path) -> None:
    text = SCALE.format("f32").encode()
    done = tool("run", "-", "--", "@x.npy", "2", "f32:4x64=y.npy", data=text, name="pto")
    assert done.returncode == 0 and done.stdout.startswith(b"@scale: ok") and done.stderr == b""
    assert np.array_equal(np.load("y.npy"), 2 * X)


# -------------------------------------------------------------------------------------------------- usage


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["scale.pto", "--blocks", "0"],
        ["scale.pto", "--blocks", "many"],
        ["scale.pto", "--blocks", "65537"],
        ["scale.pto", "--subblocks", "3"],
        ["scale.pto", "--sanitize", "races"],
        ["scale.pto", "--schedule", "fast"],
        ["scale.pto", "--schedule", "seed=-1"],
        ["scale.pto", "--shadow", "f32"],
        ["scale.pto", "--engine", "warp"],
        ["scale.pto", "--arch", "a9"],
        ["scale.pto", "--max-steps", "few"],
        ["scale.pto", "--max-steps", "0"],
        ["scale.pto", "--capacity", "vec=x"],
        ["scale.pto", "--no-such-option"],
    ],
)
def test_status_2_is_usage(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("pto run: ") and err.endswith("try 'pto run --help'\n")


def test_status_70_is_a_bug(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pto.engine.reference.kernel.Grid.go", lambda _: 1 / 0)
    where = folder / "reports"
    where.mkdir()
    with knobs.override(PTO_REPRODUCER_DIR=str(where)):
        assert run("scale.pto", "--engine=reference", "--", "@x.npy", "1", "f32:4x64=y.npy") == 70
    assert "this is a bug of pto" in capsys.readouterr().err
    assert len(list(where.iterdir())) == 1 and not Path("y.npy").exists()


# -- ranks -------------------------------------------------------------------------------------------------

HELLO = [str(EXAMPLES / "ranks" / "01_hello.pto"), "--ranks", "2"]
WINDOWS = ["window:i32:1x8=w.npy", "window:i32:1", "context"]


def test_arrays_of_ranks_stacked_in_a_file_or_one_by_one(folder: Path, capsys: Capture) -> None:
    assert main(["run", *HELLO, "--", *WINDOWS, "i32:1x8=y.npy"]) == 0
    assert "2 ranks of 1 block" in capsys.readouterr().out
    for name in ("y.npy", "w.npy"):
        assert np.load(folder / name)[:, 0, 0].tolist() == [101, 100]
    for rank in range(2):
        np.save(folder / f"x{rank}.npy", np.full((1, 8), rank, np.int32))
    assert main(["run", *HELLO, "--", *WINDOWS, "@+x{rank}.npy"]) == 0
    assert [int(np.load(folder / f"x{rank}.npy")[0, 0]) for rank in range(2)] == [101, 100]
    assert main(["run", *HELLO, "--", *WINDOWS, "i32:1x8=z{rank}.npy"]) == 0
    assert [int(np.load(folder / f"z{rank}.npy")[0, 7]) for rank in range(2)] == [101, 100]


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ([], ["window:i32:1x8", "window:i32:1", "context", "i32:1x8"], "needs a launch with several ranks"),
        (
            ["--ranks", "2"],
            ["window:i32", "window:i32:1", "context", "i32:1x8"],
            "expected window:TYPE:ROWSxCOLS",
        ),
        (
            ["--ranks", "2"],
            ["window:i33:8", "window:i32:1", "context", "i32:1x8"],
            "unknown element type 'i33'",
        ),
        (
            ["--ranks", "2"],
            ["window:i32:99999x9999", "window:i32:1", "context", "i32:1x8"],
            "bytes of a rank",
        ),
        (
            ["--ranks", "2"],
            ["window:i32:1x8", "window:i32:1", "context", "@+x.npy"],
            "name one file per rank",
        ),
        (
            ["--ranks", "2"],
            ["window:i32:1x8", "window:i32:1", "context", "@x{rank}.npy"],
            "cannot read 'x0.npy'",
        ),
    ],
)
def test_wrong_arguments_of_ranks(
    options: list[str], arguments: list[str], message: str, folder: Path, capsys: Capture
) -> None:
    np.save(folder / "x.npy", np.zeros((1, 8), np.int32))
    assert main(["run", HELLO[0], *options, "--diagnostics", "json", "--", *arguments]) == 1
    found = problems(capsys)
    assert {d["code"] for d in found} == {"PTO-E2010"}
    assert any(message in d["message"] + d["help"] for d in found)


def test_processes_are_those_of_ranks(capsys: Capture) -> None:
    assert main(["run", *HELLO, "--processes", "--", *WINDOWS, "i32:1x8"]) == 0
    assert "2 ranks of 1 block" in capsys.readouterr().out
    assert main(["run", *HELLO, "--processes", "--sanitize", "all", "--", *WINDOWS, "i32:1x8"]) == 1
    assert "has no --processes" in (said := capsys.readouterr().err) or "has no sanitize for ranks" in said
    with pytest.raises(SystemExit):
        main(["run", HELLO[0], "--processes"])
    assert "--processes needs --ranks N" in capsys.readouterr().err
