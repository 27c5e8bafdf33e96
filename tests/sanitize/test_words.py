"""One set of words for what is checked: every way to run a program knows all of them, and `all` contains the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import each
from tests.sampling import EVERY

import pto
import pto.language as pl
from pto import knobs
from pto.cli.main import main
from pto.engine.sanitize import NAMES, OF_GRAPHS, WARN, asked, parse_names

EXAMPLES = Path(__file__).parents[2] / "examples"


@pl.jit
def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.range(0, 32, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[r : r + 16] = pl.add(x[r : r + 16], x[r : r + 16])
    return out


def arrays(count: int, *shape: int) -> list[Any]:
    return [np.ones(shape, np.float32) for _ in range(count)]


def ranks(word: str) -> Any:
    world = pto.ranks(2)
    kernel = pto.kernel(EXAMPLES / "02_manual_flags.pto")
    return world.run(kernel, lambda rank: arrays(3, 64, 128), sanitize=word)


def simpler(word: str) -> frozenset[str]:
    with knobs.override(PTO_SANITIZE=word):
        return asked()


DOORS: dict[str, Callable[[str], Any]] = {
    "a program": lambda w: pto.kernel(EXAMPLES / "02_manual_flags.pto").run(*arrays(3, 64, 128), sanitize=w).ok,
    "ranks": lambda w: ranks(w).ok,
    "a graph of the language": lambda w: twice.run(*arrays(2, 32, 64), sanitize=w).ok,
    "programs for simpler": lambda w: simpler(w) == parse_names(w),
    "pto run": lambda w: main([
        "run", "-q", "--sanitize", w, str(EXAMPLES / "02_manual_flags.pto"), "--", *["f32:64x128"] * 3
    ]) == 0,
    "pto ranks": lambda w: main(["ranks", "--sanitize", w, str(EXAMPLES / "ranks" / "04_program.cpp")]) == 0,
    "pto python": lambda w: main(["python", "--sanitize", w, "-c", "pass"]) == 0,
    "pto runtime run": lambda w: main(
        ["runtime", "run", "--silent", "--sanitize", w, str(EXAMPLES / "runtime" / "vector_dag")]
    ) == 0,
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_every_word_at_every_door(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_SANITIZE", "")  # `pto python` sets it

    def check(word: str) -> None:
        assert DOORS[door](word)

    slow = door == "pto runtime run" and not EVERY  # it compiles kernels that tell what they do
    each(check, [OF_GRAPHS] if slow else [*NAMES, "all"])


def test_no_other_word(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="unknown sanitizer 'races'"):
        parse_names("races")
    for tool in (["run"], ["ranks"], ["python"], ["runtime", "run"]):
        with pytest.raises(SystemExit, match="2"):
            main([*tool, "--sanitize", "races", "x"])
        assert "unknown sanitizer 'races': expected race, undef, " in capsys.readouterr().err
    assert parse_names("all") == frozenset(NAMES) and WARN not in NAMES
