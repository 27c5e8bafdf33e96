"""Fuzzing of the text tools: whatever the input, only diagnostics, and in time. See `properties` for what holds.

`make fuzz` draws others. For a longer search, which also cuts what it finds down to a small input:

    python -m tests.fuzz.run --minutes 10
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pto.cli import main, ptoas

from .mutations import CORPUS, MUTATIONS, mutant, programs
from .properties import check

PROFILE = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.pto")), ids=lambda p: p.stem)
def test_corpus_is_read(path: Path) -> None:
    expected = "illegal" if path.stem in ("names", "pipes") else "legal"
    assert check(path.read_bytes()) == expected


@settings(PROFILE, max_examples=600)
@given(seed=SEEDS)
def test_mutants(seed: int) -> None:
    check(mutant(seed, programs()))


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_on_its_own(name: str) -> None:
    from random import Random

    for k, data in enumerate(programs()[::3]):
        check(MUTATIONS[name](data, Random(k)))


@settings(PROFILE, max_examples=150)
@given(text=st.text(max_size=60))
def test_any_text(text: str) -> None:
    check(text.encode("utf-8", "surrogatepass"))


@settings(PROFILE, max_examples=150)
@given(data=st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    check(data)


@settings(PROFILE, max_examples=300)
@given(
    words=st.lists(st.sampled_from(sorted({w for p in programs() for w in p.decode().split()})), max_size=25)
)
def test_any_words(words: list[str]) -> None:
    check(" ".join(words).encode())


def test_the_tools_survive_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fuzz.pto"
    for seed in range(60):
        path.write_bytes(mutant(seed, programs()))
        assert ptoas.main([str(path), "--emit=generic"]) in (0, 1)
        assert main.main(["check", str(path)]) in (0, 1)
        assert main.main(["fmt", str(path)]) in (0, 1)
        capsys.readouterr()


# Inputs that grow without end: each would take minutes if any stage were worse than linear.
_HEAD = "func.func @f() {\n"
_LARGE: dict[str, str] = {
    "parentheses": "(" * 100_000,
    "braces": "{" * 100_000,
    "regions": _HEAD + "scf.execute_region {\n" * 10_000,
    "closed regions": _HEAD + "scf.execute_region {\n" * 10_000 + "}" * 10_001,
    "generic regions": '"a.b"() ({\n' * 10_000,
    "types": "!a<" * 20_000,
    "pointers": "func.func @f(%a: " + "!pto.ptr<" * 10_000,
    "attributes": "module attributes {a = " + "[" * 20_000,
    "dictionaries": "module attributes " + "{a = " * 20_000,
    "locations": _HEAD + "return " + "loc(fused[" * 10_000,
    "digits": _HEAD + "%x = arith.constant " + "9" * 100_000 + " : i32\nreturn }",
    "fraction": _HEAD + "%x = arith.constant 1." + "9" * 100_000 + " : f32\nreturn }",
    "exponent": _HEAD + "%x = arith.constant 1.0e" + "9" * 100_000 + " : f32\nreturn }",
    "shape": "func.func @f(%a: memref<" + "9" * 100_000 + "xf32>) { return }",
    "operands": _HEAD + "%c = arith.constant 1 : i32\n" + f'"a.b"({", ".join(["%c"] * 5000)}) : ({", ".join(["i32"] * 5000)}) -> ()\nreturn }}',
    "unknown operands": _HEAD + "pto.tadd " + "%a, " * 10_000,
    "arguments": "func.func @f(" + ", ".join(f"%a{i}: i32" for i in range(5000)) + ") { return }",
    "one long word": "x" * 1_000_000,
    "one long line": "module {" + " ".join(f"func.func @f{i}() {{ return }}" for i in range(1000)) + "}",
    "quotes": '"' * 5000,
    "unclosed string": '"' + "a" * 500_000,
    "nul": "\0" * 20_000,
    "emoji": "🙂" * 20_000,
    "comments": "//\n" * 100_000,
    "assembly comments": "# x\n" * 20_000,
    "blocks": _HEAD + "cf.br ^b0\n" + "".join(f"^b{i}:\ncf.br ^b{i + 1}\n" for i in range(1500)) + "^b1500:\nreturn\n}",
    "functions": "".join(f"func.func @f{i}() {{ return }}\n" for i in range(1500)),
    "calls": "".join(f"func.func @f{i}() {{ func.call @f{i + 1}() : () -> ()\nreturn }}\n" for i in range(1000)) + "func.func @f1000() { return }",
    "type aliases": "!a0 = (i32) -> i32\n" + "".join(f"!a{i + 1} = (!a{i}, !a{i}) -> !a{i}\n" for i in range(60)),
    "attribute aliases": "#a0 = 1\n" + "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(60)),
    "closing braces": "}" * 5000,
}  # fmt: skip


@pytest.mark.parametrize("name", _LARGE)
def test_large_and_deep(name: str) -> None:
    check(_LARGE[name].encode())
