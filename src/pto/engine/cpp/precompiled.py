"""Our headers, compiled once for many kernels: to read them takes most of the time that a small kernel takes.

They are compiled when a second kernel needs them with the same flags, which costs as much as a third kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ... import cache
from ...cache import Built
from . import compiler as compilers
from .compiler import Compiler

_HEADERS = '#include "pto/pto-inst.hpp"\n'
_FILE = "headers.hpp"
_COMPILED = f"{_FILE}.gch"
_OURS = re.compile(r'^\s*#\s*include\s*["<]pto/', re.MULTILINE)
#: What may change how our headers read: they are then read where the source includes them.
_BEFORE = re.compile(r"^[ \t]*#[ \t]*(?!include[ \t]*<|pragma\b)", re.MULTILINE)


def headers(found: Compiler, key: str, flags: Sequence[str], text: str, more: str = "") -> list[str]:
    """Return flags that make g++ begin with our compiled headers, and `more` includes. There are none for the
    first kernel with these flags, nor for a source `text` with anything before our headers that may change
    them. `key` is a key of the cache for all that the headers depend on beside the flags."""
    first = _OURS.search(text)
    if found.is_clang or first is None or _BEFORE.search(text, 0, first.start()) or _others(flags):
        return []
    every = [flag for flag in flags if flag.startswith("-") and not flag.startswith(("-I", "-M"))]
    key = cache.key("headers", key, more, *every)
    built = cache.stored(key)
    if built is None:
        seen = cache.key("seen", key)
        if cache.find(seen) is None:
            cache.put(seen, "headers")
            return []
        built = cache.built(key, "headers", lambda work: _built(found, every, _HEADERS + more, work))
    return ["-include", built.path.removesuffix(".gch")] if built.ok else []


def is_ours(path: str) -> bool:
    """Whether a file that a compiler notes as included (`-MMD`) is one of these."""
    return path.endswith((f"/{_FILE}", f"/{_COMPILED}"))


def _others(flags: Sequence[str]) -> bool:
    """Whether the user has named a folder with headers that hide ours."""
    folders = {Path(flag[2:]) for flag in flags if flag.startswith("-I")} - {compilers.include_dir()}
    return any((folder / "pto" / "pto-inst.hpp").is_file() for folder in folders)


def _built(found: Compiler, flags: Sequence[str], text: str, work: Path) -> Built:
    source, target = work / _FILE, work / _COMPILED
    source.write_text(text, encoding="utf-8")
    where = f"-I{compilers.include_dir()}"
    done = compilers.call([*found.command, *flags, where, "-x", "c++-header", str(source), "-o", str(target)])
    return Built(str(target) if done.returncode == 0 and target.exists() else "", done.stderr)
