"""Builds shared libraries from C++, at most once per content.

The cache key of a build has its sources, all our headers, the compiler, its flags and the processor.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ... import cache
from ...cache import Built
from ...isa.record import Record
from . import compiler as compilers
from . import precompiled
from .compiler import Compiler
from .launcher import LAUNCH


class TranslationUnit(Record):
    """One translation unit; `apart` keeps its names separate from those of other units."""

    name: str
    text: str
    flags: tuple[str, ...] = ()
    apart: bool = False


def _tools(found: Compiler) -> tuple[str, str, str]:
    """Return the parts of a cache key that every build has."""
    common = compilers.common(found)
    return found.identity, compilers.headers_digest(), common.identity if common else ""


def key_of(found: Compiler, kind: str, *what: str) -> str:
    """Return a cache key for an output of a compiler with our headers."""
    return cache.key(kind, *_tools(found), *found.flags, *what)


def _key(found: Compiler, units: Sequence[TranslationUnit], flags: Sequence[str], *more: str) -> str:
    texts = (part for u in units for part in (u.name, f"{u.flags}{u.apart}", u.text))
    return key_of(found, "units", *flags, *more, *texts)


def cached(units: Sequence[TranslationUnit], files: Sequence[TranslationUnit], flags: Sequence[str]) -> Built:
    """Return the library of units, from the cache or built now. The units include `files` by name."""
    found = compilers.find()

    def build(work: Path) -> Built:
        return compile_units(found, units, files, flags, work, units[0].text)

    return cache.built(_key(found, (*units, *files), flags), "kernel", build)


def cached_pack(units: Sequence[TranslationUnit], flags: Sequence[str], machine: str, headers: str) -> Built:
    """Return the library of units that begin with the directives `headers`, linked with another library,
    which is loaded first."""
    found = compilers.find()

    def build(work: Path) -> Built:
        every = _written(found, units, flags, work)
        return _compile(found, units, every, [machine], work, units[0].text, headers)

    return cache.built(_key(found, units, (*flags, machine)), "pack", build)


def kept_pack(units: Sequence[TranslationUnit], flags: Sequence[str], machine: str) -> Built | None:
    """Return the same library if the cache has it; build nothing."""
    return cache.stored(_key(compilers.find(), units, (*flags, machine)))


def cached_with_includes(units: Sequence[TranslationUnit], flags: Sequence[str], text: str) -> Built:
    """Return the library of units that include files of users; `text` is the text of the first such file."""
    found = compilers.find()

    def build(work: Path) -> Built:
        built = compile_units(found, units, [], [*flags, "-MMD"], work, text)
        return built.replace(files=tuple(included(work))) if built.ok else built

    return cache.built(_key(found, units, flags, text), "kernel", build, cache.Files())


def included(work: Path) -> list[str]:
    """Return the files of users that the units in a folder include, as the compiler lists them (`-MMD`)."""
    ours = (str(work), str(compilers.include_dir()))
    names: set[str] = set()
    for rule in work.glob("*.d"):
        text = rule.read_text(encoding="utf-8", errors="surrogateescape").partition(": ")[2]
        words = re.split(r"(?<!\\)\s+", text.replace("\\\n", " "))
        names.update(w.replace("\\ ", " ").replace("$$", "$") for w in words if w)
    return sorted(n for n in names if not n.startswith(ours) and not precompiled.is_ours(n))


_PLACE = re.compile(r":\d+:\d+: (?:fatal )?error: ")


def at_a_place(output: str) -> bool:
    """Check whether a compiler found an error in a source; other failures are not the fault of the source."""
    return _PLACE.search(output) is not None


def compile_units(
    found: Compiler,
    units: Sequence[TranslationUnit],
    files: Sequence[TranslationUnit],
    flags: Sequence[str],
    work: Path,
    text: str = "",
) -> Built:
    """Compile and link in a folder, several units at the same time. `text` is the first source, which decides
    whether precompiled headers may be used."""
    every = _written(found, (*units, *files), flags, work)
    common = compilers.common(found)
    if common is None:
        return _compile(found, units, every, [], work, text)
    built = _compile(found, units, [*every, compilers.LINKED], [common.path], work, text)
    if built.ok or at_a_place(built.output):
        return built
    # The library is damaged, or options of the user do not fit it: compile the headers without it.
    return _compile(found, units, every, [], work)


def _written(
    found: Compiler, units: Sequence[TranslationUnit], flags: Sequence[str], work: Path
) -> list[str]:
    """Put units into a folder, and return the command that compiles there."""
    for u in units:
        (work / u.name).write_text(u.text, encoding="utf-8")
    return [*found.command, *found.flags, *flags, f"-I{compilers.include_dir()}"]


def _compile(
    found: Compiler,
    units: Sequence[TranslationUnit],
    every: Sequence[str],
    linked: Sequence[str],
    work: Path,
    text: str = "",
    headers: str = LAUNCH,
) -> Built:
    def flags_of(u: TranslationUnit) -> list[str]:
        """Return all flags, with our precompiled headers if the source `text` allows it."""
        flags = [*every[len(found.command) :], *u.flags]
        flags += ["-fno-gnu-unique"] if u.apart and not found.is_clang else []
        if len(units) > 1 and not u.apart:  # the unit that launches the halves of a kernel needs few headers
            return flags
        return [*flags, *precompiled.headers(found, key_of(found, "headers"), flags, text, more=headers)]

    library = work / "kernel.so"
    if len(units) == 1:
        source = str(work / units[0].name)
        rest = ["-shared", source, "-o", str(library), *linked, *_LIBRARIES]
        done = compilers.call([*found.command, *flags_of(units[0]), *rest])
        return _made(library, done.returncode, done.stderr, found)

    def object_of(u: TranslationUnit) -> tuple[bool, str]:
        target = str(work / f"{u.name}.o")
        done = compilers.call([*found.command, *flags_of(u), "-c", str(work / u.name), "-o", target])
        if not os.path.exists(target):
            built = _made(Path(target), done.returncode, done.stderr, found)
            return False, built.output
        if done.returncode == 0 and u.apart:
            return keep_apart(found, target, linked)
        return done.returncode == 0, done.stderr

    with compilers.workers(len(units)) as pool:
        results = list(pool.map(object_of, units))
    output = "".join(text for _, text in results)
    if not all(ok for ok, _ in results):
        return Built("", output)
    objects = [str(work / f"{u.name}.o") for u in units]
    done = compilers.call([*found.command, "-shared", *objects, *linked, "-o", str(library), *_LIBRARIES])
    return _made(library, done.returncode, output + done.stderr, found)


def _made(file: Path, status: int, output: str, found: Compiler) -> Built:
    """Return the result of a compiler; one that reports success without a file has failed, too."""
    if status == 0 and not file.exists():
        output += f"{' '.join(found.command)} reports success, but wrote no {file.name}: is it a compiler?\n"
    return Built(str(file) if status == 0 and file.exists() else "", output)


_LIBRARIES = ("-lpthread",)


def keep_apart(found: Compiler, object: str, linked: Sequence[str]) -> tuple[bool, str]:
    """Give an object file its own copy of the code in the libraries `linked`, and make its hidden names
    local. Return whether that succeeded, and the output of the tools."""
    if linked:
        whole = f"{object}.whole"
        done = compilers.call([*found.command, "-r", "-nostdlib", object, *linked, "-o", whole])
        if done.returncode != 0:
            return False, done.stderr
        os.replace(whole, object)
    tool = shutil.which("objcopy") or shutil.which("llvm-objcopy") or "objcopy"
    done = compilers.call([tool, "--remove-section=.group", "--localize-hidden", object])
    return done.returncode == 0, done.stderr
