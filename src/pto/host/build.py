"""Build a program from its sources. The result is cached by content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .. import cache
from ..cache import Built
from ..diag import DiagnosticError, Source
from ..engine.compiled.group import library
from ..engine.cpp import compiler as compilers
from ..engine.cpp import messages
from ..engine.cpp.build import at_a_place, included, keep_apart, key_of
from ..isa.profiles import Profile
from .rewrite import INCLUDE, mixed_kernels, sources_of, units

#: Sides of mixed kernels, in the order of PTO_HOST_SIDE in pto_host.hpp, which counts from 1.
_SIDES = ("cube", "vector")


def compile_flags(profile: Profile, side: str = "") -> list[str]:
    """Return flags for sources, in addition to those of every compilation. A launch has one core per block,
    which is both a cube and a vector core; `side` compiles one side of mixed kernels."""
    include = compilers.include_dir()
    kind = [f"-DPTO_HOST_SIDE={_SIDES.index(side) + 1}"] if side else ["-D__DAV_CUBE__", "-D__DAV_VEC__"]
    return [
        *compilers.arch_flags(profile), *compilers.core_flags(profile, side), *kind,
        f"-I{include}", f"-I{include / 'host'}",
    ]  # fmt: skip


def link_flags() -> list[str]:
    path = library()
    return [f"-L{path.parent}", "-lpto_host", f"-Wl,-rpath,{path.parent}", "-lpthread", "-ldl"]


def header_flags(source: Source, flags: Sequence[str]) -> list[str]:
    """Return flags that leave out the headers of pto that no source or included file uses."""
    if any(f.startswith("-I") for f in flags):
        return []
    files = [file for _, file in sources_of(source)]
    names = {file.name for file in files}
    ours = compilers.include_dir() / "host"

    def unread(text: str, folder: str) -> str:
        """Return the text without the includes of files that were read, and of headers of pto."""
        return INCLUDE.sub(
            lambda m: (
                ""
                if os.path.realpath(os.path.join(folder, m[1])) in names or (ours / m[1]).is_file()
                else m[0]
            ),
            text,
        )

    texts = [unread(f.text, os.path.dirname(f.name)) for f in files]
    return compilers.header_flags("\n".join((*flags, *texts)))


def program(
    sources: Sequence[Source], profile: Profile, flags: Sequence[str], objects: Sequence[str] = (),
    traced: bool = False,
) -> Built:  # fmt: skip
    """Build the program of sources and objects, or return it from the cache; raise `DiagnosticError` with the
    messages of the compiler. With `traced`, every call is recorded (native/host/trace.hpp), and addresses are
    the same in every run."""
    found = compilers.find()
    texts = [text for s in sources for text in (os.path.abspath(s.name), s.text)]
    own: list[str] = []
    if traced:
        own = [compilers.TRACED, f'-DPTO_HOST_TARGET="{profile.name}"', *compilers.placed(found), "-no-pie"]
    every = [*own, *flags]
    times = [f"{path} {os.stat(path).st_mtime_ns}" for path in (str(library()), *objects)]
    name = key_of(found, "program", *compile_flags(profile), *every, *texts, *times)

    def build(work: Path) -> Built:
        return _compiled(found, sources, profile, every, work, objects)

    built = cache.built(name, "program", build, cache.Files())
    if not built.ok:
        shown = {os.path.abspath(s.name): s for s in sources}
        raise DiagnosticError(messages.diagnostics(built.output, shown))
    return built


def _compiled(
    found: compilers.Compiler, sources: Sequence[Source], profile: Profile, flags: Sequence[str], work: Path,
    objects: Sequence[str],
) -> Built:  # fmt: skip
    common = compilers.common(found)
    if common is None:
        return _linked(found, sources, profile, flags, work, objects, [])
    built = _linked(found, sources, profile, [*flags, compilers.LINKED], work, objects, [common.path])
    if built.ok or at_a_place(built.output):
        return built
    # without the library of common code, which is damaged
    return _linked(found, sources, profile, flags, work, objects, [])


def _linked(
    found: compilers.Compiler, sources: Sequence[Source], profile: Profile, flags: Sequence[str], work: Path,
    given: Sequence[str], common: Sequence[str],
) -> Built:  # fmt: skip
    """Compile the sources, and link them with the objects of the user and the libraries `common`."""
    mixed = mixed_kernels([file for s in sources for _, file in sources_of(s)])
    texts = [list(units(s, mixed)) for s in sources]

    def object_of(made: tuple[str, int]) -> tuple[str, str]:
        side, number = made
        place = work / f"{number}{side}"
        names = []
        for name, text in texts[number]:
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            names.append(path)
        folder = os.path.dirname(os.path.abspath(sources[number].name))
        target = work / f"{number}{side}.o"
        own = [f"-DPTO_HOST_UNIT={number}", "-MMD", "-iquote", folder, "-c", str(names[0]), "-o", str(target)]
        own += header_flags(sources[number], flags)
        if not side:
            own.append("-fvisibility=default")
        elif not found.is_clang:
            own.append("-fno-gnu-unique")
        done = compilers.call([*found.command, *found.flags, *compile_flags(profile, side), *flags, *own])
        ok, said = done.returncode == 0, done.stderr
        if side and ok:
            ok, said = keep_apart(found, str(target), common)
        return (str(target) if ok else ""), said

    parts = [(side, n) for side in ("", *(_SIDES if mixed else ())) for n in range(len(sources))]
    with compilers.workers(max(1, min(len(parts), os.cpu_count() or 1))) as pool:
        made = list(pool.map(object_of, parts))
    output = "".join(text for _, text in made)
    if not all(path for path, _ in made):
        return Built("", output)
    target = work / "program"
    objects = [*(path for path, _ in made), *given]
    libraries = [f for f in flags if f.startswith(("-l", "-L", "-Wl,", "-no-pie"))]
    done = compilers.call([*found.command, *objects, *common, "-o", str(target), *libraries, *link_flags()])
    if done.returncode != 0 or not target.exists():
        return Built("", output + done.stderr)
    return Built(str(target), output, files=tuple(included(work)))
