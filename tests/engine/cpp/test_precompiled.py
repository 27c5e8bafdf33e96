"""Our headers, compiled once for many kernels (src/pto/engine/cpp/precompiled.py)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import cache
from pto.engine.cpp import compiler, precompiled

KERNEL = """
__global__ AICORE void add(__gm__ float* a, __gm__ float* c) {{
  for (int i = 0; i < 8; ++i) c[i] = a[i] + {};
}}
"""
PLAIN = '#include <cstdint>\n#include "pto/pto-inst.hpp"'


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """An empty cache; return the command lines of the compiler."""
    if compiler.find().is_clang:
        pytest.skip("only g++ finds precompiled headers by their name")
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(precompiled, "_PLAIN", 1)
    found: list[str] = []
    call = compiler.call

    def listen(command: list[str]) -> Any:
        found.append(" ".join(command))
        return call(command)

    monkeypatch.setattr(compiler, "call", listen)
    compiler.find()
    found.clear()
    return found


def run(place: Path, number: int) -> None:
    place.write_text(PLAIN + KERNEL.format(number))
    a, c = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    pto.kernel(place).run(a, c)
    assert (c == a + number).all()


def headers() -> list[cache.CacheEntry]:
    return [e for e in cache.entries() if e.kind == "headers" and e.size > 1 << 20]


def test_the_second_kernel_compiles_them(commands: list[str], tmp_path: Path) -> None:
    place = tmp_path / "k.cpp"
    for number in range(1, 4):
        run(place, number)
    made = ["c++-header" in command for command in commands]
    used = ["headers.hpp" in command and not header for command, header in zip(commands, made, strict=True)]
    assert made == [False, True, False, False] and used == [False, False, True, True]
    assert len(headers()) == 1
    commands.clear()
    run(place, 3)  # nothing is compiled: no file of the cache counts as one that the user includes
    assert commands == []


@pytest.mark.parametrize(
    "head",
    [
        '#define PTO_ANYTHING 1\n#include "pto/pto-inst.hpp"',
        '#ifndef PTO_ANYTHING\n#include "pto/pto-inst.hpp"\n#endif',
        '#include "missing.hpp"\n#include "pto/pto-inst.hpp"',
        '#include "changes.hpp"\n#include "pto/pto-inst.hpp"',
        '#include "itself.hpp"',
        "#include <cmath>",
    ],
)
def test_where_the_source_may_change_them_they_are_read(
    head: str, commands: list[str], tmp_path: Path
) -> None:
    (tmp_path / "changes.hpp").write_text("#pragma once\n#include <cmath>\n#undef PTO_ANYTHING\n")
    (tmp_path / "itself.hpp").write_text('#include "itself.hpp"\n')
    found = [precompiled.headers(compiler.find(), "", [], head, str(tmp_path)) for _ in range(3)]
    assert found == [[], [], []] and commands == []


def test_files_of_the_user_may_include_them(
    commands: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precompiled, "_HEADERS", "#include <cstdint>\n")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "rows.h").write_text(
        "// rows\n#ifndef ROWS\n#define ROWS\n#include <pto/x.hpp>\n"
    )
    (tmp_path / "mine.h").write_text('#pragma once\n#include <cmath>\n#include "rows.h"\n')
    flags = [*compiler.find().flags, "-O0", f"-I{tmp_path / 'include'}"]
    text = '/* #define */ #include "mine.h"'
    found = [precompiled.headers(compiler.find(), "", flags, text, str(tmp_path)) for _ in range(2)]
    assert found[0] == [] and found[1][0] == "-include" and len(commands) == 1


def test_headers_of_the_user_hide_ours(commands: list[str], tmp_path: Path) -> None:
    (tmp_path / "pto").mkdir()
    (tmp_path / "pto" / "pto-inst.hpp").touch()
    flags = [f"-I{tmp_path}"]
    assert [precompiled.headers(compiler.find(), "", flags, PLAIN) for _ in range(3)] == [[], [], []]


def test_damaged_ones_are_made_again(commands: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompiled, "_HEADERS", "#include <cstdint>\n")
    flags = list(compiler.find().flags)
    for _ in range(3):
        found = precompiled.headers(compiler.find(), "", flags, PLAIN)
    assert len(commands) == 1
    os.truncate(f"{found[1]}.gch", 1 << 10)
    assert precompiled.headers(compiler.find(), "", flags, PLAIN) == found and len(commands) == 2
