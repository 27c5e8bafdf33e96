"""Precompiled headers: g++ reads the headers of the package in a tenth of the time.

Headers take most of the compile time of a small kernel. To compile them takes as long as two kernels, and
saves half of each later one with the same flags. So the fourth kernel does it, and all later kernels use the
result.
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
#: Preprocessor directives: `#include "file"`, `#include <file>`, and any other.
_DIRECTIVE = re.compile(
    r'^[ \t]*#[ \t]*(?:include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)|(\w+)[^\n]*)', re.MULTILINE
)
_GUARD = re.compile(r"\s*#[ \t]*ifndef[ \t]+(\w+)\s+#[ \t]*define[ \t]+\1[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: Kernels with the same flags that read the headers as text.
_PLAIN = 3
#: The largest number of files to read in search of our headers.
_MOST_FILES = 20


def headers(
    found: Compiler, key: str, flags: Sequence[str], text: str, folder: str | None = None, more: str = ""
) -> list[str]:
    """Return flags that make g++ begin with the includes `more` and with our headers, both precompiled.
    Return none for the first kernels with these flags, and for a source `text` (of a file in `folder`) with a
    directive before our headers that may change them. `key` covers all that the headers depend on except the
    flags.
    """
    folders = [Path(flag[2:]) for flag in flags if flag.startswith("-I")]
    ours = compilers.include_dir()
    others = any((f / "pto" / "pto-inst.hpp").is_file() for f in folders if f != ours)  # theirs hide ours
    if found.is_clang or others or not _leads_to_ours(text, folder, folders, [ours]):
        return []
    every = [flag for flag in flags if flag.startswith("-") and not flag.startswith(("-I", "-M"))]
    key = cache.key("headers", key, more, *every)
    built = cache.stored(key)
    if built is None:
        for number in range(_PLAIN):
            seen = cache.key("seen", key, str(number))
            if cache.find(seen) is None:
                cache.put(seen, "headers")
                return []
        built = cache.built(key, "headers", lambda work: _built(found, every, f"{more}{_HEADERS}", work))
    return ["-include", built.path.removesuffix(".gch")] if built.ok else []


def _leads_to_ours(
    text: str, folder: str | Path | None, folders: Sequence[Path], seen: list[Path]
) -> bool | None:
    """Check whether a text includes our headers, perhaps through files of the user, before any directive
    other than includes, pragmas and include guards. Return None if no directive decides.
    """
    text = _COMMENT.sub("", text)
    guard = _GUARD.match(text)
    for quoted, angled, other in _DIRECTIVE.findall(text, guard.end() if guard else 0):
        if (quoted or angled).startswith("pto/"):
            return True
        if other and other != "pragma":
            return False
        places = [*([Path(folder)] if folder else []), *folders] if quoted else []
        path = next((place / quoted for place in places if (place / quoted).is_file()), None)
        if quoted and (path is None or len(seen) > _MOST_FILES):
            return False
        if path is None or path in seen or path.is_relative_to(seen[0]):
            continue
        seen.append(path)
        led = _leads_to_ours(path.read_text(encoding="utf-8", errors="replace"), path.parent, folders, seen)
        if led is not None:
            return led
    return None


def is_ours(path: str) -> bool:
    """Check whether a file that the compiler lists as included (`-MMD`) is a precompiled header."""
    return path.endswith((f"/{_FILE}", f"/{_COMPILED}"))


def _built(found: Compiler, flags: Sequence[str], text: str, work: Path) -> Built:
    source, target = work / _FILE, work / _COMPILED
    source.write_text(text, encoding="utf-8")
    where = f"-I{compilers.include_dir()}"
    done = compilers.call([*found.command, *flags, where, "-x", "c++-header", str(source), "-o", str(target)])
    return Built(str(target) if done.returncode == 0 and target.exists() else "", done.stderr)
