"""The kernels of examples/kernels: legal, right, free of races, and with no flag or barrier too many."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.sampling import some

import pto

FOLDER = Path(__file__).parents[2] / "examples" / "kernels"


def _reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pto_examples_kernels_reference", FOLDER / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


REFERENCE = _reference()
KERNELS: dict[str, Any] = REFERENCE.KERNELS
each_kernel = pytest.mark.parametrize("name", KERNELS)

#: Kernels that divide any amount of work among any number of blocks.
ANY_BLOCKS = ("vector_add", "softmax", "layer_norm", "gemm", "topk")


def launch(name: str, text: str | None = None, blocks: int | None = None, **options: Any) -> tuple[Any, Any]:
    """Run a kernel, or a changed text of it; return (expected and found outputs, the result of the
    launch)."""
    k = KERNELS[name]
    args, expected = k.make(np.random.default_rng(1))
    runner = pto.kernel(pto.parse(k.path if text is None else text), k.entry, engine="reference")
    result = runner.run(*args, blocks=blocks or k.blocks, **options)
    return [(want, args[index]) for index, want in expected.items()], result


def compare(name: str, outputs: Any) -> None:
    for want, found in outputs:
        np.testing.assert_allclose(
            found.astype(np.float64), want, rtol=KERNELS[name].rtol, atol=KERNELS[name].atol
        )


def messages(result: Any) -> str:
    return "\n".join(f"{d.code} {d.message}" for d in result.diagnostics)


def test_every_program_has_a_reference() -> None:
    assert sorted(p.name for p in FOLDER.glob("*.pto")) == sorted(k.file for k in KERNELS.values())


@each_kernel
def test_legal_and_readable(name: str) -> None:
    text = KERNELS[name].path.read_text()
    assert pto.verify(pto.parse(text), level="level3", flags="error") == []
    assert text.startswith("//"), "say in a comment what it shows"
    assert 40 <= text.count("\n") <= 200


@each_kernel
@pytest.mark.parametrize("form", ["pto", "asm", "generic"])
def test_forms_say_the_same(name: str, form: str) -> None:
    module = pto.parse(KERNELS[name].path)
    assert pto.to_text(pto.parse(pto.to_text(module, form)), "pto") == pto.to_text(module, "pto")


@each_kernel
def test_result(name: str) -> None:
    k = KERNELS[name]
    args, expected = k.make(np.random.default_rng(0))
    pto.kernel(pto.parse(k.path), k.entry, engine="reference")(*args, blocks=k.blocks)
    compare(name, [(want, args[index]) for index, want in expected.items()])


@pytest.mark.parametrize(
    ("name", "blocks"), some(product(ANY_BLOCKS, (1, 2, 5, 12)), 4, by=lambda case: case[0])
)
def test_any_number_of_blocks(name: str, blocks: int) -> None:
    outputs, result = launch(name, blocks=blocks)
    assert result.ok, messages(result)
    compare(name, outputs)


@each_kernel
def test_nothing_to_report(name: str) -> None:
    outputs, result = launch(name, sanitize="all")
    assert result.diagnostics == [], messages(result)
    compare(name, outputs)


@each_kernel
@pytest.mark.parametrize("seed", some(range(3), 3))
def test_any_order_of_the_pipes(name: str, seed: int) -> None:
    outputs, result = launch(name, schedule=seed)
    assert result.ok, messages(result)
    compare(name, outputs)


# -- nothing too much ------------------------------------------------------------------------------------------

_FLAG = re.compile(
    r"^ *pto\.(?:set|wait)_flag(?:_dyn)?\[<(PIPE_\w+)>, <(PIPE_\w+)>, (<EVENT_ID\d>|%\w+)\]\n", re.M
)
_BARRIER = re.compile(r"^ *pto\.barrier <PIPE_\w+>\n", re.M)


def without_one_barrier(text: str) -> Iterator[tuple[str, str]]:
    for m in _BARRIER.finditer(text):
        line = text.count("\n", 0, m.start()) + 1
        yield f"barrier in line {line}", text[: m.start()] + text[m.end() :]


def without_one_flag(text: str) -> Iterator[tuple[str, str]]:
    """Each flag gone with all its sets and waits; the run-time ids of a pipe pair with its fixed ones."""
    found = {(m[1], m[2], m[3]) for m in _FLAG.finditer(text)}
    dynamic = {(a, b) for a, b, id in found if id.startswith("%")}
    for flag in sorted({(a, b, "any" if (a, b) in dynamic else id) for a, b, id in found}):

        def gone(m: re.Match[str], flag: tuple[str, str, str] = flag) -> str:
            return "" if (m[1], m[2]) == flag[:2] and flag[2] in ("any", m[3]) else m[0]

        yield f"flag {' '.join(flag)}", _FLAG.sub(gone, text)


@each_kernel
def test_every_flag_and_barrier_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker forgives a missing barrier where hardware would be fast enough; here it does not."""
    monkeypatch.setattr("pto.engine.sanitize.race.CHAINED", sys.maxsize)
    text = KERNELS[name].path.read_text()
    _, whole = launch(name, text, sanitize="race")
    assert whole.ok, messages(whole)
    spare: list[str] = []
    found = [*without_one_barrier(text), *without_one_flag(text)]
    for what, changed in some(found, 4, by=lambda case: case[0].split()[0]):
        _, result = launch(name, changed, sanitize="race")
        if not any(d.severity == "error" for d in result.diagnostics):
            spare.append(what)
    assert spare == []
