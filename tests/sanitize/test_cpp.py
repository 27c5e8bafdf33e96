"""Broken C++ kernels, which are run in test_doors.py, and their correct twins, which have nothing to report.

A file of `cpp/` holds kernels, and each of them twice: without the lines that end in `// good` it has a bug, and
without those that end in `// bad` it has none. Comments say what has to be found:

    // RUN: f32:16x64 i32:4 3 blocks=2      above a kernel: its arguments, and options of the launch
    TADD(z, x, y);  // FOUND PTO-E2201      a report of that code points at this line
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.each import each
from tests.made import folder, held
from tests.seeds import seeds

from pto.diag import Source, render
from pto.engine.cpp import compiler, handwritten, messages
from pto.engine.traced.kernel import TracedKernel
from pto.isa.profiles import profile

from .corpus import _value

FOLDER = Path(__file__).parent / "cpp"
FILES = sorted(p.stem for p in FOLDER.glob("*.cpp"))
_ONLY = re.compile(r"// (good|bad)\b")
_FOUND = re.compile(r"// .*\bFOUND ((?:PTO-E|SA-)\d{4})")
_KERNEL = re.compile(r"__global__ AICORE void (\w+)\(")


class Written(NamedTuple):
    """A kernel of a file."""

    file: str
    name: str
    arguments: tuple[str, ...]
    options: dict[str, int]
    found: frozenset[tuple[str, int]]  # codes and lines


def text_of(file: str, kind: str) -> str:
    """A file without the lines of the other kind; those that stay keep their numbers."""
    lines = (FOLDER / f"{file}.cpp").read_text(encoding="utf-8").splitlines()
    other = "good" if kind == "bad" else "bad"
    return "\n".join("" if (m := _ONLY.search(line)) and m[1] == other else line for line in lines) + "\n"


@cache
def kernels(file: str) -> dict[str, Written]:
    made: dict[str, Written] = {}
    arguments: list[str] = []
    found: set[tuple[str, int]] = set()
    name = ""
    for number, line in enumerate(text_of(file, "bad").splitlines(), 1):
        if line.startswith("// RUN: "):
            arguments = line.removeprefix("// RUN: ").split()
        elif m := _KERNEL.match(line):
            name = m[1]
            options = {k: int(v) for k, _, v in (a.partition("=") for a in arguments) if v}
            plain = tuple(a for a in arguments if "=" not in a)
            made[name] = Written(file, name, plain, options, frozenset(found))
            found = set()
        if m := _FOUND.search(line):
            found.add((m[1], number))
            if line.startswith("  ") and name and not _in_helper(file, number):
                made[name] = made[name]._replace(found=made[name].found | found)
                found = set()
    return made


def _in_helper(file: str, number: int) -> bool:
    """Return True if a line is in a function that is not a kernel: its reports belong to the next kernel."""
    lines = text_of(file, "bad").splitlines()[: number - 1]
    head = next(line for line in reversed(lines) if line.startswith(("AICORE", "__global__", "#define")))
    return not head.startswith("__global__")


def both(file: str) -> str:
    """A file with its bugs, then the correct twins under other names."""
    bad, good = text_of(file, "bad"), text_of(file, "good").partition("\n// RUN:")[2]
    names = re.findall(r"^(?:AICORE inline \w+|__global__ AICORE void|using) (\w+)", good, re.MULTILINE)
    return bad + "//" + re.sub(rf"\b({'|'.join(names)})\b", r"good_\1", good)


@cache
def library(file: str) -> Path:
    """The kernels of a file in a traced library, built once."""
    text = both(file)
    key = f"{compiler.headers_digest()}{compiler.find().identity}{compiler.find().flags}{text}"
    from hashlib import sha256

    key = sha256(key.encode()).hexdigest()
    with held("traced", key):
        place = folder("traced", key)
        path = place / f"{file}.cpp"
        path.write_text(text, encoding="utf-8")
        made = place / "kernel.so"
        if not made.exists():
            source = Source(str(path), text)
            entries, problems = handwritten.entries(source, None)
            assert entries, render(problems)
            work = place / f"work{os.getpid()}"
            work.mkdir(exist_ok=True)
            target = profile(handwritten.target_of(text) or "a2a3")
            built = handwritten.library(source, entries, target, False, False, str(work), traced=True)
            assert built.ok, render(messages.diagnostics(built.output, {str(path): source}))
            Path(built.path).rename(made)
    return made


@cache
def kernel(file: str, name: str, kind: str) -> TracedKernel:
    return TracedKernel(str(library(file)), name if kind == "bad" else f"good_{name}")


def run(written: Written, kind: str, **options: Any) -> tuple[Any, list[bytes]]:
    rng = np.random.default_rng(7)
    values = [_value(text, rng) for text in written.arguments]
    result = kernel(written.file, written.name, kind).run(*values, **written.options, **options)
    return result, [v.tobytes() for v in values if isinstance(v, np.ndarray)]


def errors(result: Any) -> set[tuple[str, int]]:
    return {
        (d.code, d.span.place[0] if d.span is not None else 0)
        for d in result.diagnostics
        if d.severity == "error"
    }


def for_each(check: Any) -> Any:
    @pytest.mark.parametrize("file", FILES)
    def test(file: str) -> None:
        each(lambda name: check(kernels(file)[name]), list(kernels(file)))

    test.__doc__ = check.__doc__
    return test


@for_each
def test_the_twin_has_nothing_to_report(written: Written) -> None:
    result, _ = run(written, "good", sanitize="all")
    assert result.ok, render(result.diagnostics)


@pytest.mark.seeded
@for_each
def test_no_schedule_changes_the_twin(written: Written) -> None:
    plain, expected = run(written, "good")
    assert plain.ok, render(plain.diagnostics)
    for seed in seeds(range(int(os.environ.get("PTO_TEST_SCHEDULES", "1")))):
        result, found = run(written, "good", schedule=seed)
        assert result.ok, (seed, render(result.diagnostics))
        assert found == expected, f"seed {seed}"
