"""Calls as C++: the source of a pack, a library of functions that the virtual machine finds by their keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b

from ..codegen.cpp import prologue
from .calls import key

_DECLARED = re.compile(r"([^;]*?)& a(\d+); ")
HEADERS = '#include "pto/core/functions.hpp"\n#include "pto/vm/open.hpp"\n'
_HEAD = f"""\
{HEADERS}
using namespace pto;
using namespace pto::vm;
"""


def _before() -> str:
    """Return the text before the functions of a file."""
    return f"{_HEAD}namespace {{\nPTO_OWN_FUNCTIONS\n{prologue.helpers()}"


@cache
def digest() -> str:
    """Return a digest of everything besides names and headers: a pack with another digest is outdated."""
    text = _before() + function("int32_t& a0; a0 = 1;")
    return blake2b(text.encode(), digest_size=8).hexdigest()


def function(name: str) -> str:
    """Return the C++ function of a call."""
    places: list[str] = []
    at = 0
    while (declared := _DECLARED.match(name, at)) is not None:
        places.append(f"  auto& a{declared[2]} = at<{declared[1]}>(f, s[{declared[2]}]);\n")
        at = declared.end()
    unused = "" if places else "  (void)f, (void)s;\n"
    return (
        f"void k{key(name):016x}(char* f, const uint32_t* s) {{\n{unused}{''.join(places)}  {name[at:]}\n}}\n"
    )


def files(pieces: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the files of a pack, one for each piece of its calls. The last file has the
    lookup of functions by their keys."""
    for n, piece in enumerate(pieces):
        out = [_before(), *map(function, piece), "}  // namespace\n"]
        out.append(f"extern const Entry kEntries{n}[];\nconst Entry kEntries{n}[] = {{\n")
        out += [f"    {{0x{k:016x}u, k{k:016x}}},\n" for k in sorted(map(key, piece))]
        last = _found(pieces) if n == len(pieces) - 1 else ""
        yield f"part{n}.cpp", "".join((*out, "};\n", last))


def _found(pieces: Sequence[Sequence[str]]) -> str:
    return "".join((
        *(f"extern const Entry kEntries{n}[];\n" for n in range(len(pieces))),
        "static const Table kTables[] = {\n",
        *(f"    {{kEntries{n}, {len(piece)}}},\n" for n, piece in enumerate(pieces)),
        "};\n",
        'extern "C" __attribute__((visibility("default"))) void* pto_pack_find(uint64_t key) {\n',
        f"  return reinterpret_cast<void*>(find(kTables, {len(pieces)}, key));\n}}\n",
        'extern "C" __attribute__((visibility("default"))) const char* pto_pack_digest() {\n',
        f'  return "{digest()}";\n}}\n',
        'extern "C" __attribute__((visibility("default"))) uint64_t pto_pack_size() {\n',
        f"  return {sum(map(len, pieces))};\n}}\n",
    ))  # fmt: skip
