"""Compile small C++ sources against the user headers of the runtimes, once per content.

    build("headers/vector_dag.cpp", TMR)                        # a shared object
    build("headers/graphs.cpp", HBG, more=..., shared=False)    # a program

Workers that want the same source wait for the one that compiles it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.made import made_once

HERE = Path(__file__).parent
PTO2 = HERE.parents[1] / "native/include/pto2"
TMR, HBG, ABG = "tensormap_and_ringbuffer", "host_build_graph", "aicpu_build_graph"

COMPILER = shutil.which("g++") or shutil.which("clang++")
COMPILERS = [c for c in ("g++", "clang++") if shutil.which(c)]
WARNINGS = ("-Wall", "-Wextra", "-Werror")


@cache
def _digest() -> str:
    files = [*sorted(PTO2.rglob("*.h")), *sorted((HERE / "headers").iterdir())]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def includes(variant: str) -> list[str]:
    """The include path that sources of a runtime are compiled with."""
    return [f"-I{PTO2 / variant}", f"-I{PTO2 / 'platform'}"]


def run_compiler(command: Sequence[str]) -> str:
    """Return its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return done.stdout


@cache
def build(source: str, variant: str, *flags: str, shared: bool = True) -> Path:
    """Compile and link one source; objects may be among the flags."""
    assert COMPILER is not None
    key = hashlib.sha256("\0".join((_digest(), COMPILER, source, variant, str(shared), *flags)).encode())
    kind = ["-fPIC"] if "-c" in flags else ["-shared", "-fPIC", "-fno-gnu-unique"] if shared else []
    standard = [] if any(f.startswith("-std") for f in flags) else ["-std=c++17"]
    paths = [*includes(variant), str(HERE / source)]
    command = [COMPILER, *standard, "-g", *WARNINGS, *kind, *paths, *flags, "-ldl", "-o"]
    return made_once(
        "headers", key.hexdigest(), Path(source).stem, lambda part: run_compiler([*command, str(part)])
    )


def output(program: Path, *arguments: str | Path) -> list[str]:
    """The lines that a program prints."""
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()
