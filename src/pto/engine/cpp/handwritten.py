"""C++ written by users: which kernels a file holds, and their launchers.

A kernel is a function that is marked `__global__`. A file that asks for both `__DAV_CUBE__` and `__DAV_VEC__`
holds mixed kernels and is compiled once for each kind of core; one that asks for a single guard runs on that
kind; any other runs as it is, on one core per block.
"""

from __future__ import annotations

import os
import re

from ...diag import Diagnostic, Source, did_you_mean
from ...isa.profiles import Profile
from .build import Built, Unit, compile_units
from .compiler import arch_flags, find
from .launcher import Entry, guard, half, joined, whole

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_KERNEL = re.compile(
    r"(?P<template>template\s*<[^;{}]*>\s*)?(?:extern\s*\x22C\x22\s*)?__global__\s+(?P<words>[\w\s]*?)\b(?P<name>\w+)\s*\("
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_GUARD = {"cube": re.compile(r"__DAV_(?:\w+_)?CUBE__"), "vector": re.compile(r"__DAV_(?:\w+_)?VEC__")}


def without_comments(text: str) -> str:
    """The text with comments and strings blanked; offsets stay."""

    def blank(m: re.Match[str]) -> str:
        return "".join(c if c in "\n\x22" else " " for c in m[0])

    return _COMMENT.sub(blank, text)


def kernels(text: str) -> list[str]:
    """Names of the functions marked `__global__` that can be called as they are: templates cannot."""
    found = [m["name"] for m in _KERNEL.finditer(without_comments(text)) if not m["template"]]
    return list(dict.fromkeys(found))


def kinds(text: str, folder: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Kinds of core that a file and the files it includes by a relative name ask for."""
    found = {kind for kind, pattern in _GUARD.items() if pattern.search(text)}
    for name in _INCLUDE.findall(text):
        path = os.path.realpath(os.path.join(folder, name))
        if path in seen or not os.path.isfile(path) or len(seen) > 200:
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            found |= kinds(f.read(), os.path.dirname(path), seen | {path})
    return found


def entries(source: Source, wanted: str | None) -> tuple[list[Entry], list[Diagnostic]]:
    """Launchers for the kernels of a file, or for the one that is wanted."""
    found = kernels(source.text)
    if wanted is not None and wanted not in found:
        help = did_you_mean(wanted, found) or (
            f"the file has {', '.join(found)}" if found else "mark it __global__; a template is no kernel"
        )
        return [], [Diagnostic("PTO-E2404", f"no kernel '{wanted}' in '{source.name}'", help=help)]
    if not found:
        return [], [
            Diagnostic(
                "PTO-E2404", f"no kernel in '{source.name}'",
                help="mark the function __global__ AICORE void; a template is no kernel, call it from one",
            )
        ]  # fmt: skip
    cores = kinds(source.text, os.path.dirname(os.path.abspath(source.name)))
    names = [wanted] if wanted is not None else found
    if cores == {"cube", "vector"}:
        return [Entry(n, cube=n, vector=n) for n in names], []
    kind = next(iter(cores), "mix")
    return [Entry(n, **{kind: n}) for n in names], []


def library(source: Source, made: list[Entry], profile: Profile, checked: bool, work: str) -> Built:
    """Compile a file with its launchers in a folder."""
    from pathlib import Path

    body = os.path.abspath(source.name)
    flags = [*arch_flags(profile), f"-I{os.path.dirname(body)}", *(["-DPTO_CHECKED"] if checked else [])]
    if made[0].mixed:
        units = [
            Unit(f"{kind}.cpp", half(kind, made, body), (guard(kind),), apart=True)
            for kind in ("cube", "vector")
        ]
        units.append(Unit("launch.cpp", joined(made)))
    else:
        kind = next(k for k in ("cube", "vector", "mix") if getattr(made[0], k))
        units = [Unit("launch.cpp", whole(made, body), () if kind == "mix" else (guard(kind),))]
    return compile_units(find(), units, [], flags, Path(work))
