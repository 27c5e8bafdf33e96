"""`pto tune`: parameters, the use of their values, omitted ones, and the records of a search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pto.cli.tune import main
from pto.diag import DiagnosticError
from pto.trials import FAILED, ILLEGAL, TIMED, TOO_LARGE
from pto.tune import Outcome, Space
from pto.tune.explore import search
from pto.tune.measure import TunedProgram, measure
from pto.tune.picture import html, svg
from pto.tune.source import fill, named
from pto.tune.space import evaluate

EXAMPLE = Path(__file__).parents[2] / "examples/tune/double.pto"
ARGUMENTS = ("f32:1024x128", "f32:1024x128")


# -- parameters ----------------------------------------------------------------------------------------------


def test_values_of_parameters() -> None:
    space = Space.parse(["TILE=64,128", "STAGES=1..3", "K=16..64*2", "AT=0..32+16", "LAYOUT=nz,nd", "F=0.5"])
    assert space.params == {"TILE": [64, 128], "STAGES": [1, 2, 3], "K": [16, 32, 64], "AT": [0, 16, 32],
                            "LAYOUT": ["nz", "nd"], "F": [0.5]}  # fmt: skip
    assert len(space.points) == 2 * 3 * 3 * 3 * 2 and space.left_out == 0
    assert space.points[0] == {"TILE": 64, "STAGES": 1, "K": 16, "AT": 0, "LAYOUT": "nz", "F": 0.5}
    assert Space.parse(["A=1", "A=1,2"]).params == {"A": [1, 2]}


def test_conditions_leave_points_out() -> None:
    space = Space.parse(["A=1..4", "B=1..4"], ["A * B <= 6", "A != 3 or B == 1"])
    assert space.points == [{"A": a, "B": b} for a in range(1, 5) for b in range(1, 5)
                            if a * b <= 6 and (a != 3 or b == 1)]  # fmt: skip
    assert space.left_out == 16 - len(space.points)


@pytest.mark.parametrize(
    ("params", "where", "message"),
    [
        ([], [], "missing parameters to search"),
        (["TILE"], [], "expected a name and values"),
        (["TILE="], [], "expected a name and values"),
        (["TILE=1,,2"], [], "missing value"),
        (["TILE=4..1"], [], "4..1 has no values"),
        (["TILE=0..8*2"], [], r"0..8\*2 has no values"),
        (["1A=2"], [], "expected the name of a parameter, got '1A'"),
        (["A=1..1000", "B=1..1000"], [], "expected at most 100000 combinations, got 1000000"),
        (["A=1"], ["B > 1"], "unknown parameter 'B'"),
        (["A=1"], ["A >"], "expected an expression, got 'A >'"),
        (["A=1"], ["open('x')"], "expected an expression over parameters"),
        (["A=0"], ["1 // A"], "division"),
        (["A=1"], ["1 << 10 * 1000000000"], "cannot shift by 10000000000"),
        (["A=x"], ["A * 99999999999 == A"], "cannot compute with a text"),
        (["A=1"], ["'%99999999999d' % A == A"], "cannot compute with a text"),
        (["A=1"], ["(" * 500 + "A" + ")" * 500], "expected an expression"),
        (["A=1"], ["-" * 5000 + "A"], "expected an expression"),
        (["A=nz"], ["A + 1"], "can only concatenate|must be str|unsupported"),
    ],
)
def test_e2901_what_makes_no_sense(params: list[str], where: list[str], message: str) -> None:
    with pytest.raises(DiagnosticError, match=message) as error:
        Space.parse(params, where)
    assert error.value.diagnostics[0].code == "PTO-E2901"


def test_expressions() -> None:
    names = {"A": 6, "B": 4}
    for text, value in (("A*B", 24), ("-A // B", -2), ("A % B", 2), ("A << 1", 12), ("max(A, B) if A > B else 0", 6),
                        ("1 < B <= 4 and not A == 5", True), ("min(A, 5)", 5)):  # fmt: skip
        assert evaluate(text, names) == value, text


# -- where values go -----------------------------------------------------------------------------------------


def test_places_in_a_text() -> None:
    text = "${A=2} ${A} ${A * B} ${B=A + 1}"
    assert named(text) == {"A", "B"}
    assert fill(text, {}) == "2 2 6 3"
    assert fill(text, {"A": 4}) == "4 4 12 3"  # what B is says the text: of its own A
    assert fill(text, {"A": 4, "B": 5}) == "4 4 20 5"


def test_a_place_without_a_value_is_shown() -> None:
    with pytest.raises(DiagnosticError, match="unknown parameter 'ROW'") as error:
        fill("one\n  ${ROW}x128", {"ROWS": 1}, "k.pto")
    assert "k.pto:2:3" in str(error.value)
    with pytest.raises(DiagnosticError, match="expected an expression over parameters") as error:
        named("${1 +}", "k.pto")
    assert "k.pto:1:1" in str(error.value)


@pytest.mark.parametrize("places", [["${A0=1 << 63}", "${A%d=A%d * A%d}"], ['${A0="x"}', "${A%d=A%d + A%d}"]])
def test_values_do_not_grow_with_each_place(places: list[str]) -> None:
    text = places[0] + "".join(places[1] % (n + 1, n, n) for n in range(60))
    with pytest.raises(DiagnosticError, match="of reasonable length"):
        fill(text, {})


def test_a_parameter_that_changes_nothing_is_refused() -> None:
    program = TunedProgram(EXAMPLE.read_text(), str(EXAMPLE), ARGUMENTS)
    with pytest.raises(DiagnosticError, match="has no parameter 'ROW'") as error:
        search(program, Space({"ROW": [1]}))
    assert "ROWS" in error.value.diagnostics[0].help


# -- the search ----------------------------------------------------------------------------------------------


def test_pictures() -> None:
    found = [Outcome({"A": a, "B": b}, TIMED if b < 3 else TOO_LARGE, float(a * b), "V", 0.5, code="SA-0352", why="<no>")
             for a in (1, 2) for b in (1, 2, 3)]  # fmt: skip
    grid = svg("k", Space({"A": [1, 2], "B": [1, 2, 3]}), found)
    assert grid.count("<rect") == 1 + 6 and "too large" in grid and "&lt;no&gt;" in grid
    bars = svg("k", Space({"A": [1, 2], "B": [1, 2, 3], "C": [1]}), found)
    assert bars.count("<rect") == 1 + 4 and "A=1, B=1" in bars
    page = html("k", Space({"A": [1, 2], "B": [1, 2, 3]}), found)
    assert (
        page.count("<tr") == 1 + 6
        and page.count('<tr class="best">') == 1
        and "http:" not in page.replace("http://www.w3.org/2000/svg", "")
    )


def arguments(texts: Any) -> list[Any]:
    from pto.cli.tune import _arguments

    return _arguments(texts)


def test_what_is_illegal_or_too_large_is_left_out() -> None:
    program = TunedProgram(EXAMPLE.read_text(), str(EXAMPLE), ARGUMENTS, arguments=arguments)
    found = search(program, Space({"ROWS": [64, 512], "COLS": [1, 128]}))
    status = {(o.params["ROWS"], o.params["COLS"]): (o.status, o.code) for o in found}
    assert status[64, 128] == (TIMED, "") and status[512, 128] == (TOO_LARGE, "SA-0352")
    assert status[64, 1][0] == ILLEGAL  # rows of 4 bytes
    assert found[0].params == {"ROWS": 64, "COLS": 128} and found[0].us > 1 and found[0].busy
    wrong = measure(program._replace(args=("f32:1024x128",)), {"ROWS": 64, "COLS": 128})
    assert wrong.status == FAILED and wrong.code


def test_results_are_kept_and_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = TunedProgram(EXAMPLE.read_text(), str(EXAMPLE), ARGUMENTS, arguments=arguments)
    file = tmp_path / "k.jsonl"
    first = search(program, Space({"ROWS": [32, 64]}), str(file))
    assert len(file.read_text().splitlines()) == 2
    with file.open("a") as unfinished:
        unfinished.write('{"program": "')
    asked: list[Any] = []

    def counted(program: TunedProgram, point: dict[str, Any]) -> Outcome:
        asked.append(point)
        return Outcome(point, TIMED, 1.0)

    monkeypatch.setattr("pto.tune.explore.measure", counted)
    told: list[int] = []
    again = search(program, Space({"ROWS": [32, 64, 128]}), str(file), 1, lambda done, *_: told.append(done))
    assert asked == [{"ROWS": 128}] and told == [3]
    assert again[1:] == first and again[0].us == 1.0
    assert json.loads(file.read_text().splitlines()[-1])["params"] == {"ROWS": 128}
    asked.clear()
    search(program._replace(blocks=2), Space({"ROWS": [32]}), str(file))
    assert asked == [{"ROWS": 32}], "another launch has other results"


def test_a_file_that_holds_something_else(tmp_path: Path) -> None:
    program = TunedProgram(EXAMPLE.read_text(), str(EXAMPLE), ARGUMENTS, arguments=arguments)
    file = tmp_path / "k.jsonl"
    search(program, Space({"ROWS": [64]}), str(file))
    line = json.loads(file.read_text())
    for wrong in (
        {"us": "1"},
        {"us": None},
        {"status": 7},
        {"busy": ["V"]},
        {"more": 1},
        {"params": {1: [2]}, "why": 0},
    ):
        file.write_text(f"{json.dumps({**line, **wrong})}\n{json.dumps(line)}\n")
        with pytest.raises(DiagnosticError, match=r"k\.jsonl:1: expected a result of a search"):
            search(program, Space({"ROWS": [64]}), str(file))


def test_processes_find_the_same() -> None:
    program = TunedProgram(EXAMPLE.read_text(), str(EXAMPLE), ARGUMENTS, arguments=_of_the_tool())
    space = Space({"ROWS": [64, 128]})
    assert search(program, space, None, 2) == search(program, space)


def test_what_a_process_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("ROWS = 1\n")
    program = TunedProgram("ROWS = 1\n", str(tmp_path / "k.py"), ())
    with pytest.raises(DiagnosticError, match=r"cannot choose a program in .*: expected a function build"):
        search(program, Space({"ROWS": [1, 2]}), None, 2)


def _of_the_tool() -> Any:
    from pto.cli.tune import _arguments

    return _arguments


def test_python_files(tmp_path: Path) -> None:
    """A function that builds programs; and constants of a function of the language, timed as a graph of tasks."""
    (tmp_path / "k.py").write_text(
        "from pathlib import Path\n"
        "import numpy as np\n"
        f"TEXT = Path({str(EXAMPLE)!r}).read_text()\n"
        "def build(ROWS, COLS=128):\n"
        "    text = TEXT.replace('${ROWS=64}', str(ROWS)).replace('${COLS=128}', str(COLS))\n"
        "    x = np.zeros((1024, 128), np.float32)\n"
        "    return text.replace('${ROWS}', str(ROWS)).replace('${COLS}', str(COLS)), x, x.copy()\n"
    )
    program = TunedProgram((tmp_path / "k.py").read_text(), str(tmp_path / "k.py"))
    found = search(program, Space({"ROWS": [16, 128]}))
    assert [o.params["ROWS"] for o in found] == [128, 16] and found[0].status == TIMED
    text = TunedProgram(EXAMPLE.read_text(), str(EXAMPLE), ARGUMENTS, arguments=arguments)
    assert measure(text, {"ROWS": 128}).us == found[0].us
    (tmp_path / "slow.toml").write_text('machine = "a2a3"\nmhz = 925\n[runtime]\npoll = 200\n')
    slow = measure(text._replace(machine=str(tmp_path / "slow.toml")), {"ROWS": 128})
    assert slow.us == pytest.approx(2 * found[0].us)

    (tmp_path / "j.py").write_text(
        "import numpy as np\n"
        "import pto.language as pl\n"
        "ROWS, COUNT = 16, 64\n"
        "@pl.jit.inline\n"
        "def double(x):\n"
        "    return pl.add(x, x)\n"
        "@pl.jit\n"
        "def twice(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n"
        "    for i in pl.range(0, COUNT, ROWS):\n"
        "        with pl.at(level=pl.Level.CORE_GROUP):\n"
        "            y[i : i + ROWS, :] = double(x[i : i + ROWS, :])\n"
        "def inputs():\n"
        "    return np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)\n"
    )
    program = TunedProgram((tmp_path / "j.py").read_text(), str(tmp_path / "j.py"))
    found = search(program, Space({"ROWS": [16, 32]}))
    assert [o.status for o in found] == [TIMED, TIMED], found
    assert found[0].params == {"ROWS": 32}, "fewer tasks"


def test_the_tool(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = [str(EXAMPLE), "-j", "1", "--param", "ROWS=16,64,512"]
    assert (
        main([*call, "--plot", "t.html", "--write", "best.pto", "--where", "ROWS != 16", "--", *ARGUMENTS])
        == 0
    )
    out = capsys.readouterr().out
    assert "1 of 3 timed; left out: 1 too large (SA-0352), 1 by --where" in out
    assert (tmp_path / "double.tune.jsonl").exists() and "<svg" in (tmp_path / "t.html").read_text()
    assert "64x128xf32" in (tmp_path / "best.pto").read_text()
    assert main([str(EXAMPLE), "-j", "1", "--param", "ROWS=512", "--", *ARGUMENTS]) == 1
    assert "PTO-E2902" in capsys.readouterr().err


def test_the_tool_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where results are kept
    constants, built = tmp_path / "constants.py", tmp_path / "built.py"
    constants.write_text(
        "import pto.language as pl\nROWS, (COUNT, KIND) = 16, (64, 'wide')\nSIZE: int = 2\nLONG = [1]\n"
        "@pl.jit.inline\ndef part(x):\n    return x\n"
        + "".join(
            f"@pl.jit\ndef {n}(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n    y[:] = x\n" for n in ("one", "two")
        )
    )
    built.write_text("def build(A, B=2, *, C, D=3):\n    return ''\n")
    for arguments, message in (
        (
            [str(EXAMPLE)],
            "missing parameters to search\n  help: --param NAME=16,32,64; it has COLS=128, ROWS=64\n",
        ),
        ([str(constants)], "help: --param NAME=16,32,64; it has ROWS=16, COUNT=64, KIND='wide', SIZE=2\n"),
        ([str(constants), "--param", "ROWS=1"], "or name a function: --entry one or --entry two\n"),
        ([str(constants), "--param", "ROWS=1", "--entry", "one", "--", *["f32:64x64"] * 3], "too many"),
        (
            [str(constants), "--param", "ROWS=1", "--entry", "part", "--", "f32:64x64"],
            "cannot call part from Python",
        ),
        ([str(built)], "help: --param NAME=16,32,64; it has A, B=2, C, D=3\n"),
        ([str(tmp_path / "no.pto"), "--param", "A=1"], "cannot read"),
        ([str(EXAMPLE), "--param", "TILES=1"], "has no parameter 'TILES'"),
    ):
        assert main(arguments) == 1
        assert message in capsys.readouterr().err
