"""Hostile inputs for every reader: only diagnostics, in time, in bounded memory, without side effects or a crash.

Each reader gets about 60, and all its examples in `make matrix`; `make fuzz` draws others, and `python -m tests.fuzz.run`
as many as there is time for.
"""

from __future__ import annotations

import gc
import os
import signal
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
from tests.each import together

from pto.cli import main, ptoas

from ..sampling import some
from ..seeds import seeds
from . import batches, run
from .batches import Reader, shrunk, tried
from .mutations import CORPUS, MUTATIONS, programs
from .properties import check
from .readers import READERS


@pytest.mark.seeded
@pytest.mark.parametrize("name", READERS)
def test_reader(name: str) -> None:
    reader = READERS[name]
    drawn = seeds(some(range(reader.examples), max(1, reader.examples // 60)))
    found = tried(reader, drawn)
    assert not found.failures, "\n".join(map(str, found.failures[:5]))
    assert found.done == found.outcomes.total() == len(drawn)
    if name == "object" and not find_spec("llvmlite"):  # then there is no valid one
        return
    assert len(found.outcomes) > 1, f"all inputs are {found.outcomes}: the test shows nothing"


@pytest.mark.parametrize("name", READERS)
def test_valid_inputs_are_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = READERS[name].corpus()
    got = {READERS[name].read(data) for data in some(corpus, 4 if len(corpus) > 40 else 1)}
    assert got != {"refused"} or (name == "object" and not find_spec("llvmlite"))


@together("path", sorted(CORPUS.glob("*.pto")))
def test_corpus_is_read(path: Path) -> None:
    expected = "illegal" if path.stem in ("names", "pipes") else "legal"
    assert check(path.read_bytes()) == expected


@together("name", MUTATIONS)
def test_every_mutation_changes_something(name: str) -> None:
    assert any(MUTATIONS[name](data, Random(k)) != data for k, data in enumerate(programs()[:20]))


def test_the_tools_survive_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fuzz.pto"
    for seed in some(range(60), 3):
        path.write_bytes(READERS["text"].input(seed))
        assert ptoas.main([str(path), "--emit=generic"]) in (0, 1)
        assert main.main(["check", str(path)]) in (0, 1)
        assert main.main(["fmt", str(path)]) in (0, 1)
        capsys.readouterr()


# -- what finds failures finds them ---------------------------------------------------------------------------


def _bad(data: bytes) -> str:
    """A reader that mishandles some bytes."""
    if b"\xff" in data:
        raise KeyError(data)
    if b"\xfe" in data:
        os.kill(os.getpid(), signal.SIGSEGV)
    if b"\xfd" in data:
        while True:
            pass
    if b"\xfc" in data:
        Path("../elsewhere").write_bytes(data)
    if b"\xfb" in data:
        try:
            os.system("true")
        except Exception:  # as a reader that catches everything
            return "caught"
    if b"\xfa" in data:
        gc.collect()
        bytearray(b"x") * (2 * batches.MEMORY)
    return "read"


def reader(*inputs: bytes) -> Reader:
    return Reader("bad", lambda: inputs, lambda data, r, others: inputs[r.randrange(len(inputs))], _bad)


@pytest.mark.parametrize(
    ("byte", "kind"),
    [
        (b"\xff", "KeyError at test_readers.py"), (b"\xfe", "crash by SIGSEGV"), (b"\xfd", "hang"), (b"\xfc", "side effect writes"),
        (b"\xfb", "side effect os.system"), (b"\xfa", "memory"),
    ],
)  # fmt: skip
def test_every_kind_of_failure_is_found(byte: bytes, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "hang":  # elsewhere it would end what takes memory, at any place
        monkeypatch.setattr(batches, "CPU", 0.02)
    monkeypatch.setattr(batches, "MEMORY", 1 << 25)
    if kind == "memory":
        garbage: list[object] = [bytearray(b"x") * (4 * batches.MEMORY)]  # which no input may give back
        garbage.append(garbage)
        freed = [bytes(100_000) for _ in range(1000)]  # memory that the allocator keeps
        freed = freed[-1:]
        del garbage
    bad = reader(b"good", b"good", b"good", b"ba" + byte + b"d")
    found = tried(bad, range(12))
    assert found.failures and all(f.kind.startswith(kind) for f in found.failures), found.failures
    assert found.outcomes["read"] or kind.startswith("crash")
    failed, expected = {f.seed for f in found.failures}, {s for s in range(12) if byte in bad.input(s)}
    assert failed == expected or (
        kind == "memory" and min(expected) in failed
    )  # only the maximum of memory is known
    small = shrunk(bad, b"some more " + byte + b" and more", found.failures[0].kind)
    assert small == byte if kind not in ("hang", "memory") else byte in small


def test_a_search_counts_shows_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(READERS, "bad", reader(b"good", b"\xff and more"))
    words = [
        "run",
        "--reader",
        "bad",
        "--reader",
        "dap",
        "--count",
        "300",
        "--jobs",
        "2",
        "--keep",
        str(tmp_path),
    ]
    monkeypatch.setattr("sys.argv", words)
    assert run.main() == 1
    out = capsys.readouterr().out
    assert "KeyError at test_readers.py" in out and "---- 1 of 10 bytes" in out
    assert out.splitlines()[-2].startswith("300 inputs in ") and "bad: KeyError at" in out.splitlines()[-1]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"\xff"]
    monkeypatch.setattr("sys.argv", ["run", "--reader", "dap", "--count", "5"])
    assert run.main() == 0


# Inputs that grow without end: each would take minutes if any stage were worse than linear.
_HEAD = "func.func @f() {\n"
_LARGE: dict[str, str] = {
    "parentheses": "(" * 30_000,
    "braces": "{" * 30_000,
    "regions": _HEAD + "scf.execute_region {\n" * 3000,
    "closed regions": _HEAD + "scf.execute_region {\n" * 3000 + "}" * 3001,
    "generic regions": '"a.b"() ({\n' * 1500,
    "types": "!a<" * 20_000,
    "pointers": "func.func @f(%a: " + "!pto.ptr<" * 10_000,
    "attributes": "module attributes {a = " + "[" * 20_000,
    "dictionaries": "module attributes " + "{a = " * 20_000,
    "locations": _HEAD + "return " + "loc(fused[" * 10_000,
    "digits": _HEAD + "%x = arith.constant " + "9" * 100_000 + " : i32\nreturn }",
    "fraction": _HEAD + "%x = arith.constant 1." + "9" * 100_000 + " : f32\nreturn }",
    "exponent": _HEAD + "%x = arith.constant 1.0e" + "9" * 100_000 + " : f32\nreturn }",
    "shape": "func.func @f(%a: memref<" + "9" * 100_000 + "xf32>) { return }",
    "operands": _HEAD + "%c = arith.constant 1 : i32\n" + f'"a.b"({", ".join(["%c"] * 2000)}) : ({", ".join(["i32"] * 2000)}) -> ()\nreturn }}',
    "unknown operands": _HEAD + "pto.tadd " + "%a, " * 10_000,
    "arguments": "func.func @f(" + ", ".join(f"%a{i}: i32" for i in range(1500)) + ") { return }",
    "one long word": "x" * 300_000,
    "one long line": "module {" + " ".join(f"func.func @f{i}() {{ return }}" for i in range(200)) + "}",
    "quotes": '"' * 5000,
    "unclosed string": '"' + "a" * 150_000,
    "nul": "\0" * 20_000,
    "emoji": "🙂" * 20_000,
    "comments": "//\n" * 100_000,
    "assembly comments": "# x\n" * 20_000,
    "blocks": _HEAD + "cf.br ^b0\n" + "".join(f"^b{i}:\ncf.br ^b{i + 1}\n" for i in range(500)) + "^b500:\nreturn\n}",
    "functions": "".join(f"func.func @f{i}() {{ return }}\n" for i in range(200)),
    "calls": "".join(f"func.func @f{i}() {{ func.call @f{i + 1}() : () -> ()\nreturn }}\n" for i in range(150)) + "func.func @f150() { return }",
    "type aliases": "!a0 = (i32) -> i32\n" + "".join(f"!a{i + 1} = (!a{i}, !a{i}) -> !a{i}\n" for i in range(60)),
    "attribute aliases": "#a0 = 1\n" + "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(60)),
    "closing braces": "}" * 5000,
}  # fmt: skip


@together("name", _LARGE)
def test_large_and_deep(name: str) -> None:
    check(_LARGE[name].encode())
