"""`@pl.autotune`: the quickest legal choice is taken, once for a key, and arguments are not touched by trials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import each

import pto.language as pl
from pto.diag import DiagnosticError


@pl.jit
def twice(x: pl.Tensor, y: pl.Out[pl.Tensor], rows=16):
    for i in pl.range(0, 64, rows):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[i : i + rows, :] = pl.add(x[i : i + rows, :], x[i : i + rows, :])


def arrays(columns: int = 64) -> tuple[Any, Any]:
    return np.ones((64, columns), np.float32), np.zeros((64, columns), np.float32)


def test_the_quickest_legal_choice_is_taken():
    tuned = pl.autotune(configs={"rows": [16, 32, 48]}, key=["x"])(twice)
    x, y = arrays()
    found = tuned.choices(x, y)
    assert not y.any()
    assert [c.config["rows"] for c in found] == [32, 16, 48]
    assert found[0].us < found[1].us and found[2].us is None and "PTO-E2101" in found[2].why
    assert tuned.best(x, y) == {"rows": 32}
    tuned(x, y)
    assert (y == 2).all()
    assert tuned.compile(x, y).execute([x, y, 32], virtual_time=True).stats["virtual_ns"] / 1e3 == found[0].us
    assert tuned.run(x, y).ok
    tuned(x, y, rows=16)  # who says it himself is not asked


def test_a_key_is_asked_once():
    asked: list[dict[str, Any]] = []

    class Counting(type(pl.autotune([{"rows": 16}])(twice))):
        def _timed(self, config: dict[str, Any], *rest: Any) -> Any:
            asked.append(config)
            return super()._timed(config, *rest)

    tuned = Counting(twice, [{"rows": 16}, {"rows": 32}], ["x"], None, None)
    for columns in (64, 64, 32):
        tuned(*arrays(columns))
    assert len(asked) == 4, "two choices for each of two shapes"


def test_results_are_kept(tmp_path: Path):
    file = tmp_path / "twice.jsonl"
    x, y = arrays()
    first = pl.autotune([{"rows": 16}, {"rows": 32}], results=str(file))(twice).choices(x, y)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["params"] for line in lines] == [{"rows": 16}, {"rows": 32}]
    for line, us in zip(lines, (1.0, 2.0), strict=True):
        line["us"] = us
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = pl.autotune([{"rows": 16}, {"rows": 32}], results=str(file))(twice)
    assert again.best(x, y) == {"rows": 16} != first[0].config
    other = pl.autotune([{"rows": 16}, {"rows": 64}], results=str(file))(twice)
    assert other.best(x, y) == {"rows": 16} and len(file.read_text().splitlines()) == 3


def test_a_file_rates_choices_only(tmp_path: Path):
    """No value of a file reaches the function: other choices are ignored, and what is no result is refused."""
    file = tmp_path / "twice.jsonl"
    x, y = arrays()
    pl.autotune([{"rows": 16}], results=str(file))(twice).choices(x, y)
    good = json.loads(file.read_text())

    def check(line: Any) -> None:
        file.write_text((json.dumps(line) if line != "deep" else "[" * 100000) + "\n{}\n")
        with pytest.raises(DiagnosticError, match="expected a result of a search"):
            pl.autotune([{"rows": 16}], results=str(file))(twice)(x, y)

    each(check, [
        {**good, "us": "1"}, {**good, "us": float("nan")}, {**good, "us": True}, {**good, "us": -1},
        {**good, "more": 1}, {"program": good["program"]}, [], None, 7, "deep",
    ])  # fmt: skip
    for params in ({"rows": 7}, {"rows": 16, "x": 1}, [16]):
        file.write_text(json.dumps({**good, "params": params, "us": 0.0}) + "\n")
        found = pl.autotune([{"rows": 16}], results=str(file))(twice).choices(x, y)
        assert [c.config for c in found] == [{"rows": 16}] and found[0].us == good["us"]
    assert not y.any()


def test_what_makes_no_sense():
    for configs, message in (
        ([], "missing configs for twice"),
        ([{"TILE": 3}], "twice has no parameter 'TILE'"),
    ):
        with pytest.raises(DiagnosticError, match=message):
            pl.autotune(configs)(twice)
    with pytest.raises(DiagnosticError, match=r"expected a function of pl.jit for pl.autotune"):
        pl.autotune([{"rows": 1}])(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(DiagnosticError, match="none of 1 choices can be timed") as error:
        pl.autotune([{"rows": 48}])(twice)(*arrays())
    assert error.value.diagnostics[0].code == "PTO-E2902"
