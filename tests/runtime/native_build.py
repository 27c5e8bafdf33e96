"""Programs of native/tests, compiled once per content; the engine is compiled once for all of them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.made import made_once

NATIVE = Path(__file__).parents[2] / "native"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
#: Orchestrations from shared objects: each has its own idea of a Runtime. The rest is compiled in one go.
LOADERS = tuple(
    NATIVE / "runtime" / f"{p}.cpp" for p in ("graph/device", "graph/host", "tensormap/orchestration")
)
ENGINE = tuple(p for p in sorted(NATIVE.glob("runtime/*/*.cpp")) if p not in LOADERS)
FLAGS = ("-std=c++20", "-O1", "-Wall", "-Wextra", *(f"-I{NATIVE / p}" for p in (
    "runtime", "include", "include/pto2/tensormap_and_ringbuffer")))  # fmt: skip
#: What test_runtime consists of beside the file of its name.
PARTS = tuple(p for p in sorted(NATIVE.glob("tests/test_runtime*.cpp")) if p.stem != "test_runtime")


@cache
def key() -> str:
    """Of what the programs are made of."""
    state = hashlib.sha256("\0".join((str(COMPILER), *FLAGS)).encode())
    for folder in ("runtime", "include", "tests"):
        for path in sorted(p for p in (NATIVE / folder).rglob("*") if p.suffix in (".cpp", ".hpp", ".h")):
            state.update(path.read_bytes())
    return state.hexdigest()


def _compile(name: str, *arguments: str | Path) -> Path:
    def make(part: Path) -> None:
        command = [str(COMPILER), *FLAGS, *map(str, arguments), "-o", str(part)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "warning" not in done.stderr, done.stderr

    return made_once("native", key(), name, make)


@cache
def program(name: str) -> Path:
    """A program of native/tests with the engine; the engine is compiled once for all of them."""
    unit = made_once(
        "native", key(), "engine.cpp",
        lambda part: part.write_text("".join(f'#include "{p}"\n' for p in ENGINE)),
    )  # fmt: skip
    engine = _compile("engine.o", "-c", unit)
    more = LOADERS if name == "stress_libraries" else PARTS if name == "test_runtime" else ()
    return _compile(name, NATIVE / "tests" / f"{name}.cpp", *more, engine, "-lpthread", "-ldl")
