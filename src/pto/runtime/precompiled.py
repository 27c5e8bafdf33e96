"""Our headers, read once for all kernels: a precompiled header of g++ in the cache.

Most of the time of a small kernel goes into reading our headers: with these, 2.0 s become 0.7 s per kernel,
for 4 s once per version of the headers. Nobody waits for them: a kernel that is compiled while they are made
reads the headers as text. They hold what depends on the flags, not on the runtime that a kernel is for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..engine.cpp import build, compiler
from ..engine.cpp.compiler import Compiler

_NAME = "pto2_first.hpp"
_TEXT = '#include <cstdint>\n#include "pto/pto-inst.hpp"\n#include "pto/core/machine.hpp"\n'
_KEPT = 3  # each takes about 80 MB


def _folder(found: Compiler, flags: Sequence[str]) -> Path:
    parts = (found.identity, compiler.headers_digest(), _TEXT, *flags)
    return build.cache_dir() / f"headers-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"


def use(found: Compiler, flags: Sequence[str]) -> list[str]:
    """What makes a compilation with those flags use the headers; nothing where they are not there."""
    folder = _folder(found, flags)
    if not (folder / f"{_NAME}.gch").exists():
        return []
    build.touch(folder)
    return [f"-I{folder}", "-include", _NAME]


def make(found: Compiler, flags: Sequence[str]) -> None:
    """Precompile the headers, unless they are there; a failure is left to the kernels to report."""
    folder = _folder(found, flags)
    if folder.exists():
        return
    with contextlib.suppress(OSError), build.locked(folder.parent, folder.name[-32:]):
        if folder.exists():
            return
        work = Path(tempfile.mkdtemp(prefix=".build-", dir=folder.parent))
        try:
            (work / _NAME).write_text(_TEXT, encoding="utf-8")
            root = compiler.include_dir()
            command = [*found.command, *flags, f"-I{root}", f"-I{root / 'pto'}", "-x", "c++-header"]
            done = compiler.call([*command, str(work / _NAME), "-o", str(work / f"{_NAME}.gch")])
            if done.returncode == 0:
                os.replace(work, folder)
                _prune(folder.parent)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _prune(folder: Path) -> None:
    with contextlib.suppress(OSError):
        found = sorted(folder.glob("headers-*"), key=lambda p: p.stat().st_mtime, reverse=True)
        for old in found[_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
