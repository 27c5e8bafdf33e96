"""Programs of the corpus as the C++ that is emitted for them, on engine `traced`: many in one translation unit.

`python -m tests.sanitize.emitted NAME..` shows where reports of a program and of its C++ differ.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.made import folder, held

import pto
from pto.cache import Built
from pto.diag import DiagnosticError, render
from pto.driver import Lowered
from pto.engine.cpp import build, compiler
from pto.engine.cpp.compiler import TRACED, VERIFIED, arch_flags, header_flags, placed
from pto.engine.cpp.kernel import entry_of
from pto.engine.cpp.launcher import single
from pto.engine.traced.kernel import TracedProgram

from .corpus import found_at, load

#: Programs in one unit.
TOGETHER = 40

_SIDE = re.compile(r"\b(cube|vector|mix)_side\b")


class _Made(Exception):
    """The C++ of a program."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel


class _Emitting(TracedProgram):
    def _build(self, lowered: Lowered, checks: bool) -> Built:
        raise _Made(self)


class Emitted(TracedProgram):
    """A program of the corpus in a library that holds several."""

    library = Built("", "")
    symbol = ""

    def _build(self, lowered: Lowered, checks: bool) -> Built:
        return self.library

    def _ready(self, library: Any, symbol: str, function: str, types: list[Any], program: int = 0) -> None:
        super()._ready(library, self.symbol, function, types, program)


def _unit(names: Sequence[str], flags: Sequence[str], made: dict[str, Any]) -> Built:
    """The library of some programs with the same flags."""
    units: list[str] = []
    files: list[build.TranslationUnit] = []
    for name in names:
        k = made[name]
        plain = name.replace(".", "_")
        entry = entry_of(k).replace(name=plain)
        text = single([entry], f"{plain}.inc", k.source)
        units.append(_SIDE.sub(lambda m, plain=plain: f"{plain}_{m[1]}", text))
        files.append(build.TranslationUnit(f"{plain}.inc", k.source))
    text = "\n".join(units)
    key = sha256(
        "".join([compiler.headers_digest(), *flags, text, *(f.text for f in files)]).encode()
    ).hexdigest()
    with held("emitted", key):
        place = folder("emitted", key)
        done = place / "kernel.so"
        if not done.exists():
            work = place / f"work{os.getpid()}"
            work.mkdir(exist_ok=True)
            built = build.compile_units(
                compiler.find(), [build.TranslationUnit("kernel.cpp", text)], files, flags, work, text
            )
            assert built.ok, built.output[:4000]
            Path(built.path).rename(done)
    return Built(str(done), "")


@cache
def libraries(names: tuple[str, ...]) -> dict[str, Built | str]:
    """Libraries by program; for one that has no C++, why."""
    made: dict[str, Any] = {}
    found: dict[str, Built | str] = {}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        try:
            _Emitting(pto.parse(load(name).text), None, None, True)
        except _Made as e:
            made[name] = e.kernel
            k = e.kernel
            flags = [*arch_flags(k.profile), *header_flags(k.source), VERIFIED, TRACED]
            flags += placed(compiler.find())
            groups.setdefault(tuple(flags), []).append(name)
        except DiagnosticError as e:
            found[name] = e.diagnostics[0].message
    for flags, some in groups.items():
        for at in range(0, len(some), TOGETHER):
            part = some[at : at + TOGETHER]
            built = _unit(part, flags, made)
            found.update(dict.fromkeys(part, built))
    return found


def kernel(name: str, built: Built) -> Emitted:
    kind = type("Emitted", (Emitted,), {"library": built, "symbol": f"pto_launch_{name.replace('.', '_')}"})
    return kind(pto.parse(load(name).text), None, None, True)


def difference(name: str, built: Built) -> str:
    """Return the differences between the reports of a program and of its C++; empty if there are none."""
    program = load(name)
    mine, _ = program.launch(kernel(name, built), sanitize="all")
    other, _ = program.run(sanitize="all")
    reports = [
        Counter(found_at(d)[:2] for d in result.diagnostics if d.severity == "error")
        for result in (mine, other)
    ]
    if reports[0] == reports[1]:
        return ""
    return f"C++:\n{render(mine.diagnostics)}\nprogram:\n{render(other.diagnostics)}"


def main(names: Sequence[str]) -> int:
    from .corpus import NAMES

    wanted = tuple(names) or tuple(f"{n}.{kind}" for n in NAMES for kind in ("bad", "good"))
    found = libraries(wanted)
    differ = []
    for name, built in found.items():
        if isinstance(built, str):
            print(f"{name}: no C++: {built}")
            continue
        try:
            text = difference(name, built)
        except Exception as e:
            text = f"{type(e).__name__}: {e}"
            if names:
                raise
        if text:
            differ.append(name)
            print(f"== {name}\n{text}", flush=True)
    print(f"{len(found) - len(differ)} of {len(found)} agree; differ: {' '.join(differ)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
