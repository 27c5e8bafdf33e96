"""Screens of engine native suspect every program that the sanitizers of the reference engine report, and decide
most correct programs by themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.each import each
from tests.examples.test_kernels import KERNELS, without_one_barrier, without_one_flag
from tests.sampling import EVERY, examples, some
from tests.seeds import seeds

import pto
import pto.language as pl
from pto.engine.native.screened import CheckedLaunches

from .agreement import reason_of, reasons, screen, told
from .corpus import NAMES, load
from .test_corpus import for_each
from .test_undef_property import Step, data, programs, text

EXAMPLES = Path(__file__).parents[2] / "examples"

#: Programs of the corpus on one rank: the others go to the reference engine.
ALONE = [name for name in NAMES if "ranks" not in load(f"{name}.good").options]


def run(screen: CheckedLaunches, values: list[Any], **options: Any) -> tuple[Any, list[bytes]]:
    result = screen.run(*values, **options)
    return result, [v.tobytes() for v in values if isinstance(v, np.ndarray)]


@for_each(ALONE)
def test_every_bug_is_suspected(name: str) -> None:
    """Each sanitizer alone suspects its own bugs; the findings are those of the reference engine."""
    bad = load(f"{name}.bad")
    checked = CheckedLaunches(bad.kernel)
    for sanitizer in sorted({c.sanitizer for c in bad.checks}):
        names = "race" if sanitizer == "run" else sanitizer
        result, arrays = run(checked, bad.values(), **bad.options, sanitize=names)
        wanted, expected = bad.run(sanitize=names)
        assert checked.reason, sanitizer
        assert (told(result), arrays) == (told(wanted), expected)


def test_most_twins_need_no_second_run() -> None:
    decided: list[str] = []

    def same(name: str) -> None:
        good = load(f"{name}.good")
        checked = CheckedLaunches(good.kernel)
        result, arrays = run(checked, good.values(), **good.options, sanitize="all")
        wanted, expected = good.run(sanitize="all")
        assert (told(result), arrays) == (told(wanted), expected)
        decided.extend([name] if not checked.reason else [])

    chosen = some(ALONE, 3)
    each(same, chosen)
    assert len(decided) >= 0.8 * len(chosen), f"{len(decided)} of {len(chosen)}"


def suspected_if_reported(text: str, sanitize: str, arrays: Any, **options: Any) -> str:
    return reason_of(screen(text), sanitize, arrays, **options)[0]


#: Seeds of programs that the screens once missed: an instruction reads and writes a tile, which the one before it
#: reads, too; a core comes to a grid barrier again before others have left.
REMEMBERED = {"tiles": [4398], "vectors": [], "cores": [1812]}


@pytest.mark.seeded
@pytest.mark.parametrize(
    ("kind", "usual", "every"),
    [
        ("tiles", 40, {"race", "race between blocks", "undefined data", "overlap"}),
        ("vectors", 40, {"race", "race in a vecscope", "undefined data", "a pointer"}),
        ("cores", 30, {"race", "race between blocks", "undefined data", "a semaphore that is left raised"}),
    ],
)
def test_random_programs(kind: str, usual: int, every: set[str]) -> None:
    """`python -m tests.sanitize.agreement` runs more of them."""
    seen: set[str] = set()
    chosen = seeds(range(200 if EVERY else usual))
    chosen += REMEMBERED[kind]
    each(lambda seed: seen.update(why for _, why, _ in reasons(kind, seed)), chosen)
    assert {"", *every} <= seen


@examples(60)
@given(programs())
def test_random_undefined_data(case: tuple[str, list[Step]]) -> None:
    dtype, steps = case

    def arrays() -> list[Any]:
        x = data(dtype)
        return [x, *(np.zeros_like(x) for _ in range(3))]

    suspected_if_reported(text(dtype, steps), "undef", arrays)


@pytest.mark.parametrize("name", ["vector_add", "softmax", "layer_norm", "gemm", "quantised_matmul"])
def test_kernels_without_a_flag_or_barrier(name: str) -> None:
    k = KERNELS[name]
    source = k.path.read_text()
    changed = [*without_one_barrier(source), *without_one_flag(source)]

    def arrays() -> Any:
        return k.make(np.random.default_rng(1))[0]

    assert suspected_if_reported(source, "all", arrays, blocks=k.blocks) == ""
    for _, broken in some(changed, 4, by=lambda case: case[0].split()[0]):
        suspected_if_reported(broken, "race,sync", arrays, blocks=k.blocks)


def test_vector_registers_without_a_flag_or_barrier() -> None:
    source = (EXAMPLES / "micro" / "softmax.pto").read_text(encoding="utf-8")

    def arrays() -> list[Any]:
        return [np.ones((3, 128), np.float32), np.zeros((3, 128), np.float32), 3, 128]

    assert suspected_if_reported(source, "all", arrays) == ""
    orders = [m.group() for m in re.finditer(r" *pto\.(mem_bar|set_flag|wait_flag).*\n", source)]
    for line in some(orders, 4):
        assert suspected_if_reported(source.replace(line, ""), "race,sync", arrays) != ""


@pl.jit
def doubled(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, 64, 16):
        between = pl.create_tensor([16, 64], dtype=pl.FP32)
        between = plus(x[r : r + 16, :], between)
        plus(between, y[r : r + 16, :])
    return y


@pl.jit.incore
def plus(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), 1.0), [0, 0], out)
    return out


def test_tasks_of_the_language() -> None:
    """Screens also check tensors between tasks, complete outputs and claims of independence (`Footprint`)."""
    x, y = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
    result = doubled.run(x, y, sanitize="all")
    assert (result.diagnostics, [left.engine for left in result.launches]) == ([], ["native"] * 8)
    assert (y == 3).all()
    result = plus.run(x[:16].copy(), np.zeros((17, 64), np.float32), sanitize="race")
    assert [d.code for d in result.diagnostics] == ["PTO-E3014"]
    assert [left.engine for left in result.launches] == ["native"]


COPY = """
!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.tensor_view<16x64xf32>
func.func @copy(%x: !view, %y: !view) attributes {pto.entry} {
  %at = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %at : !tile
  pto.tload ins(%x : !view) outs(%t : !tile)
  pto.barrier <PIPE_ALL>
  pto.tstore ins(%t : !tile) outs(%y : !view)
  return
}
"""


def test_the_engine_that_decides_is_named() -> None:
    """Options that the screens lack, and arguments that they cannot restore, go to the reference engine."""
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    kernel = pto.kernel(pto.parse(COPY))
    result = kernel.run(x, y, sanitize="all")
    assert (result.engine, result.diagnostics) == ("native", []) and "race" in result.checked
    assert (y == 1).all()
    assert kernel.run(x, y, sanitize="all", timeout=60).engine == "reference"
    wide = np.ones((16, 128), np.float32)
    assert kernel.run(wide[:, ::2], y, sanitize="all").engine == "reference"
    assert pto.kernel(pto.parse(COPY), engine="reference").run(x, y, sanitize="all").engine == "reference"
    broken = pto.kernel(pto.parse(re.sub(r"  pto.barrier.*\n", "", COPY)))
    y[:] = 5
    found = broken.run(x, y, sanitize="race")
    assert found.engine == "reference" and [d.code for d in found.diagnostics] == ["PTO-E2201"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        kernel.run(x, y, sanitize="all", **{"colour": 1})  # type: ignore[arg-type]


def test_output_appears_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A launch that is repeated prints its text once, from arrays with their first contents."""
    printing = COPY.replace("  return", "  pto.tprint ins(%t : !tile)\n  return")
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    for source in (printing, printing.replace("  pto.barrier <PIPE_ALL>\n", "")):
        kernel = pto.kernel(pto.parse(source))
        kernel.run(x, y, sanitize="race")
        checked = capsys.readouterr().out
        pto.kernel(pto.parse(source), engine="reference").run(x, y)
        assert checked == capsys.readouterr().out != ""
