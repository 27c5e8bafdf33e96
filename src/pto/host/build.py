"""From the sources of a program to the program, at most once per content."""

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
from ..engine.cpp.build import included, key_of
from ..isa.profiles import Profile
from .rewrite import units


def compile_flags(profile: Profile) -> list[str]:
    """What sources are compiled with, but for what the compiler itself takes. Both kinds of core are there: a
    launch has one core per block, which does all there is to do."""
    include = compilers.include_dir()
    return [
        *compilers.arch_flags(profile), *compilers.core_flags(profile), "-D__DAV_CUBE__", "-D__DAV_VEC__",
        f"-I{include}", f"-I{include / 'host'}",
    ]  # fmt: skip


def link_flags() -> list[str]:
    path = library()
    return [f"-L{path.parent}", "-lpto_host", f"-Wl,-rpath,{path.parent}", "-lpthread", "-ldl"]


def program(sources: Sequence[Source], profile: Profile, flags: Sequence[str]) -> Built:
    """The program of sources, from the cache or built now; raises with what the compiler says."""
    found = compilers.find()
    texts = [text for s in sources for text in (os.path.abspath(s.name), s.text)]
    every = [*compile_flags(profile), *flags]
    name = key_of(found, "program", *every, *texts, str(library().stat().st_mtime_ns))

    def build(work: Path) -> Built:
        return _compiled(found, sources, every, work)

    built = cache.built(name, "program", build, cache.Files())
    if not built.ok:
        shown = {os.path.abspath(s.name): s for s in sources}
        raise DiagnosticError(messages.diagnostics(built.output, shown))
    return built


def _compiled(
    found: compilers.Compiler, sources: Sequence[Source], flags: Sequence[str], work: Path
) -> Built:
    def object_of(numbered: tuple[int, Source]) -> tuple[str, str]:
        number, source = numbered
        place = work / str(number)
        names = []
        for name, text in units(source):
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            names.append(path)
        folder = os.path.dirname(os.path.abspath(source.name))
        target = work / f"{number}.o"
        own = ["-MMD", "-fvisibility=default", "-iquote", folder, "-c", str(names[0]), "-o", str(target)]
        done = compilers.call([*found.command, *found.flags, *flags, *own])
        return (str(target) if done.returncode == 0 else ""), done.stderr

    with compilers.workers(max(1, min(len(sources), os.cpu_count() or 1))) as pool:
        made = list(pool.map(object_of, enumerate(sources)))
    output = "".join(text for _, text in made)
    if not all(path for path, _ in made):
        return Built("", output)
    target = work / "program"
    objects = [path for path, _ in made]
    libraries = [f for f in flags if f.startswith(("-l", "-L", "-Wl,"))]
    done = compilers.call([*found.command, *objects, "-o", str(target), *libraries, *link_flags()])
    if done.returncode != 0 or not target.exists():
        return Built("", output + done.stderr)
    return Built(str(target), output, files=tuple(included(work)))
