"""C++ written by users: the kernels of a file, and their launchers.

A kernel is a function that is marked `__global__`. A file that tests both `__DAV_CUBE__` and `__DAV_VEC__`
has mixed kernels and is compiled once for each kind of core; a file that tests one of them runs on that kind;
other files run on one core per block. The two sides of a mixed kernel may also be functions of their own, as
the assembler writes them; see `pairs`.
"""

from __future__ import annotations

import os
import re

from ...diag import Diagnostic, Source, did_you_mean
from ...isa.machine import SUBBLOCKS
from ...isa.profiles import ALIASES, Profile
from .build import Built, TranslationUnit, cached_with_includes, compile_units
from .compiler import TRACED, arch_flags, core_flags, find, header_flags, placed
from .launcher import LaunchEntry, about, half, joined, whole

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_KERNEL = re.compile(
    r"(?P<template>template\s*<[^;{}]*>\s*)?(?:extern\s*\x22C\x22\s*)?__global__\s+(?P<words>[\w\s]*?)\b(?P<name>\w+)\s*\("
)
_PLAIN = re.compile(
    r"^[ \t]*(?:extern\s*\x22.\x22\s*)?(?:static\s+)?AICORE\s+void\s+(?P<name>\w+)\s*\((?=[^;{}]*\)\s*\{)",
    re.MULTILINE,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_TARGET = re.compile(r"^// target: (\w+)[ \t]*$", re.MULTILINE)
_LANES = re.compile(r"TILE_UP_|TILE_LEFT_|get_subblock")
_GUARD = {"cube": re.compile(r"__DAV_(?:\w+_)?CUBE__"), "vector": re.compile(r"__DAV_(?:\w+_)?VEC__")}


def without_comments(text: str) -> str:
    """Return the text with blanks for comments and strings; offsets stay the same."""

    def blank(m: re.Match[str]) -> str:
        return "".join(c if c in "\n\x22" else " " for c in m[0])

    return _COMMENT.sub(blank, text)


def kernels(text: str) -> list[str]:
    """Return the names of the functions marked `__global__`, except templates, which cannot be launched."""
    found = [m["name"] for m in _KERNEL.finditer(without_comments(text)) if not m["template"]]
    return list(dict.fromkeys(found))


def pairs(text: str) -> dict[str, tuple[str, str]]:
    """Return the mixed kernels with a separate function for each side, by name, as `ir.facts.halves` does:
    functions `X_aic` and `X_aiv`, or else the only two functions, if each tests for another kind of core and
    both have the same arguments. In a file without marks they need no mark."""
    bodies = _bodies(text)
    named = [n[:-4] for n in bodies if n.endswith("_aic") and f"{n[:-4]}_aiv" in bodies]
    if named:
        return {n: (f"{n}_aic", f"{n}_aiv") for n in named}
    if kernels(text) and target_of(text) is None:  # without a named target, the author means two kernels
        return {}
    kinds = {kind: [n for n, body in bodies.items() if _asks_for(body) == {kind}] for kind in _GUARD}
    if len(bodies) != 2 or not all(kinds.values()):
        return {}
    (cube,), (vector,) = kinds["cube"], kinds["vector"]
    same = _signature(text, cube) == _signature(text, vector)
    return {cube: (cube, vector)} if same else {}


def _bodies(text: str) -> dict[str, str]:
    """Return the text after the head of every marked function, or, without marks, of every plain one."""
    text = without_comments(text)
    heads = [m for m in _KERNEL.finditer(text) if not m["template"]] or list(_PLAIN.finditer(text))
    ends = [*(m.start() for m in heads), len(text)][1:]
    return {m["name"]: text[m.end() : end] for m, end in zip(heads, ends, strict=True)}


def _asks_for(text: str) -> set[str]:
    return {kind for kind, pattern in _GUARD.items() if pattern.search(text)}


def _head(text: str, name: str) -> re.Match[str] | None:
    """Return the match of the head of a function in a text without comments."""
    for pattern in (_KERNEL, _PLAIN):
        for m in pattern.finditer(text):
            if m["name"] == name and not m.groupdict().get("template"):
                return m
    return None


def target_of(text: str) -> str | None:
    """Return the target that a file names in a line `// target: a5`, as the assembler writes it."""
    m = _TARGET.search(text, 0, 4096)
    return m[1] if m and m[1].lower() in ALIASES else None


def parameters(text: str, kernel: str) -> list[tuple[str, int]]:
    """Return the names and offsets of the arguments of a kernel; an argument without a name is `arg2`."""
    text = without_comments(text)
    out = []
    for n, (start, end) in enumerate(_parts(text, kernel), 1):
        words = list(re.finditer(r"\w+", text[start:end].partition("=")[0]))
        if len(words) < 2:
            if not words or words[0][0] == "void":
                continue
            out.append((f"arg{n}", start + words[0].start()))
        else:
            out.append((words[-1][0], start + words[-1].start()))
    return out


def _parts(text: str, kernel: str) -> list[tuple[int, int]]:
    """Return the begin and end of each parameter of a kernel in a text without comments."""
    m = _head(text, kernel)
    if m is None:
        return []
    parts, depth, start = [], 0, m.end()
    for at in range(m.end(), len(text)):
        c = text[at]
        if c in "(<[{":
            depth += 1
        elif c == ")" and not depth:
            parts.append((start, at))
            break
        elif c in ")>]}":
            depth -= 1
        elif c == "," and not depth:
            parts.append((start, at))
            start = at + 1
    return parts


def _signature(text: str, kernel: str) -> list[str]:
    """Return the types of the arguments of a kernel, as written."""
    text = without_comments(text)
    return [re.sub(r"\w+\s*$", "", text[start:end]).strip() for start, end in _parts(text, kernel)]


def place_of(text: str, kernel: str, parameter: str | None = None) -> tuple[int, int] | None:
    """Return the begin and end of the name of a kernel, or of its parameter."""
    kernel = _described(text, *pairs(text).get(kernel, (kernel,)))
    if parameter is not None:
        for name, at in parameters(text, kernel):
            if name == parameter:
                m = re.compile(r"\w+").match(text, at)
                return at, m.end() if m else at + 1
    m = _head(without_comments(text), kernel)
    return m.span("name") if m is not None else None


def kinds(text: str, folder: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Return the kinds of core that a file, and the files that it includes by a relative name, test for."""
    found = _asks_for(text)
    for name in _INCLUDE.findall(text):
        path = os.path.realpath(os.path.join(folder, name))
        if path in seen or not os.path.isfile(path) or len(seen) > 200:
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            found |= kinds(f.read(), os.path.dirname(path), seen | {path})
    return found


def entries(source: Source, wanted: str | None) -> tuple[list[LaunchEntry], list[Diagnostic]]:
    """Return launchers for the kernels of a file, or for the kernel `wanted`."""
    marked, halves = kernels(source.text), pairs(source.text)
    cores = kinds(source.text, os.path.dirname(os.path.abspath(source.name)))
    alone = [n for n in marked if not any(n in pair for pair in halves.values())]
    if halves and not alone:
        cores = {"cube", "vector"}
    elif cores != {"cube", "vector"}:  # the others run as they are
        halves, alone = {}, marked
    found = [*halves, *alone]
    if wanted is not None and wanted not in (*found, *marked):
        help = did_you_mean(wanted, found) or (
            f"the file has {', '.join(found)}" if found else "mark it __global__; a template is not a kernel"
        )
        return [], [Diagnostic("PTO-E2404", f"no kernel '{wanted}' in '{source.name}'", help=help)]
    if not found:
        help = "mark the function __global__ AICORE void; call a template from such a function"
        if re.search(r"\bkernel_entry\s*\(", source.text):
            help = "kernel_entry is the entry of a task: use pto runtime run, or pto.runtime.kernel in Python"
        return [], [Diagnostic("PTO-E2404", f"no kernel in '{source.name}'", help=help)]
    roles = ("cube", "vector") if cores == {"cube", "vector"} else (next(iter(cores), "mix"),)
    made = []
    for n in [wanted] if wanted is not None else found:
        functions = halves[n] if n in halves else (n,) * len(roles)
        most = _described(source.text, *functions)
        args = tuple(name for name, _ in parameters(source.text, most))
        sides = dict(zip(roles, functions, strict=True))
        made.append(
            LaunchEntry(n, subblocks=_subblocks(source.text)).replace(**sides, args=args, longest=most)
        )
    return made, []


def _described(text: str, *functions: str) -> str:
    """Return the function with most arguments: a launch passes the same words to all cores."""
    return max(functions, key=lambda n: len(parameters(text, n)))


def _subblocks(text: str) -> int:
    """Return the number of vector cores of a mixed kernel. For emitted C++ it is that of the program: one if
    FIFOs split no tile and the code does not use the sub-block."""
    emitted = target_of(text) is not None and "TPipe<" in text
    return SUBBLOCKS if not emitted or _LANES.search(without_comments(text)) else 1


def library(
    source: Source,
    made: list[LaunchEntry],
    profile: Profile,
    checked: bool,
    auto: bool,
    work: str,
    traced: bool = False,
) -> Built:
    """Compile a file with its launchers in a folder."""
    from pathlib import Path

    units, flags = _units(source, made, profile, checked, auto, traced)
    return compile_units(find(), units, [], flags, Path(work), source.text)


def cached(
    source: Source,
    made: list[LaunchEntry],
    profile: Profile,
    checked: bool,
    auto: bool = False,
    traced: bool = False,
) -> Built:
    """Return the same library from the cache, if neither the file nor its includes have changed. A `traced`
    library emits trace events of every call (`engine/traced`)."""
    units, flags = _units(source, made, profile, checked, auto, traced)
    return cached_with_includes(units, flags, source.text)


def _units(
    source: Source, made: list[LaunchEntry], profile: Profile, checked: bool, auto: bool, traced: bool
) -> tuple[list[TranslationUnit], list[str]]:
    body = os.path.abspath(source.name)
    flags = [
        *arch_flags(profile),
        *header_flags(source.text),
        f"-I{os.path.dirname(body)}",
    ]
    flags += ["-DPTO_CHECKED"] * checked + ["-D__PTO_AUTO__"] * auto
    flags += [TRACED] * traced + placed(find()) * (checked or traced)
    described = about(made, profile.name, checked, os.path.basename(body), auto, traced)
    if made[0].mixed:
        units = [
            TranslationUnit(
                f"{kind}.cpp", half(kind, made, body), tuple(core_flags(profile, kind)), apart=True
            )
            for kind in ("cube", "vector")
        ]
        units.append(TranslationUnit("launch.cpp", joined(made, described)))
    else:
        kind = made[0].kind
        units = [
            TranslationUnit("launch.cpp", whole(made, body, described), tuple(core_flags(profile, kind)))
        ]
    return units, flags
