"""The engines: what each takes, what it can do, how it is made and how `pto doctor` looks after it.

A new engine is an entry here and a module with its kernels. `pto run` (its choices, its help and what it
refuses), `pto.kernel`, `pto doctor` and the documentation follow from the entry. Nothing of an engine is
imported before it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError
from ..isa.record import Record
from ..objects.contents import is_object
from ..reading import SUFFIXES, is_image, is_library

if TYPE_CHECKING:
    from ..ir.core import Module
    from ..isa.profiles import Profile

#: What a kernel can be made of, with a word for several of the kind.
INPUTS = {
    "module": "programs",
    "C++": "C++",
    "library": "libraries",
    "image": "images",
    "object": "objects",
}

#: What holds the program that it was made of.
HOLDING = ("image", "object")
#: Options that change no result: an engine that lacks them does without.
ONLY_FASTER = ("threads",)


class Request(Record):
    """What a kernel is made of and how. `program` is a module, or the path of C++, a library, images or an
    object."""

    program: Module | str
    entry: str | None = None
    target: str | Profile | None = None
    check: bool = True  # whether legality is checked, and what the program leaves to the tools done
    insert_sync: bool = False  # flags also for a program with addresses, where the engine heeds flags
    checked: bool = False  # run-time checks compiled in
    capacity: Mapping[str, int] = {}  # for C++ and libraries, which name their target themselves
    auto: bool = False  # for C++: tiles that nobody assigned have storage of their own


class Engine(Record):
    """One entry. `options` are those of a launch that not every engine has, by their names in Python, and
    `checked` where a kernel can be compiled with checks; `subblocks` are vector cores of a mixed kernel."""

    name: str
    doc: str  # how it executes, for the help of `pto run --engine`
    made_by: str  # "module:function", called with a `Request`
    takes: tuple[str, ...] = ("module",)
    options: tuple[str, ...] = ("subblocks",)
    compiles: bool = False
    required: bool = False  # whether the tools are of little use without
    remembers: str = ""  # "module:function": takes a text, options and a function that makes its kernel
    remark: str = ""  # "module:function": what `pto doctor` adds to a kernel that ran
    #: What it does instead of an option that it does not have.
    instead: Mapping[str, str] = {}

    def debugged(self, kernel: object, args: Sequence[Any], **options: Any) -> Any:
        """A launch as its stops, of an engine that has the option `debug`."""
        return named("pto.engine.debug.session:debugged")(kernel, args, **options)

    def remarks(self) -> str:
        return named(self.remark)() if self.remark else ""


def named(place: str) -> Callable[..., Any]:
    """Return the function of a place, "module:function", whose module is imported now."""
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)


def _debuggable(engine: Engine) -> Engine:
    """Who can be watched can be debugged: the debugger is a watcher."""
    return engine.replace(options=(*engine.options, "debug")) if "watchers" in engine.options else engine


#: Options of launches that the reference engine executes, whatever they are made from.
_WATCHED = (
    "subblocks", "sanitize", "schedule", "shadow", "memory_map", "max_steps", "timeout", "semantics",
    "watchers",
)  # fmt: skip

#: By name; of those that take an input and need no compiler, the first that has what is asked for is the one
#: for it, unless another is named.
ENGINES: dict[str, Engine] = {
    engine.name: _debuggable(engine)
    for engine in (
        Engine(
            "native",
            "on the virtual machine of the package",
            "pto.engine.native.engine:made",
            takes=("module", "image", "object"),
            options=("subblocks", "threads", "max_steps", "timeout", "ranks", "processes"),
            remembers="pto.engine.native.engine:remembered",
            remark="pto.engine.native.packs:remark",
            instead={"checked": "the virtual machine always checks accesses and indices"},
        ),
        Engine(
            "reference",
            "step by step under watch",
            "pto.engine.reference.kernel:made",
            options=(*_WATCHED, "ranks", "timeline", "dry"),
            required=True,
            remark="pto.engine.reference.kernel:remark",
            instead={"checked": "the reference engine always checks"},
        ),
        Engine(
            "cpp",
            "compiled by the system's C++ compiler",
            "pto.engine.cpp.engine:made",
            takes=("module", "C++", "library"),
            options=("subblocks", "threads", "checked", "ranks", "processes"),
            compiles=True,
            remark="pto.engine.cpp.engine:remark",
        ),
        Engine(
            "traced",
            "C++ that the reference engine watches",
            "pto.engine.traced.kernel:made",
            takes=("module", "C++", "library"),
            options=(*_WATCHED, "ranks", "timeline"),
            compiles=True,
            instead={"checked": "the reference engine always checks"},
        ),
    )
}


def options() -> tuple[str, ...]:
    """Options that not every launch has, by their names in Python."""
    return tuple(dict.fromkeys(name for engine in ENGINES.values() for name in engine.options))


def flag(option: str) -> str:
    """An option as `pto run` spells it."""
    return f"--{option.replace('_', '-')}"


def those_with(option: str) -> str:
    """Names of the engines that have an option."""
    return ", ".join(e.name for e in ENGINES.values() if option in e.options)


def those_for(kind: str) -> list[Engine]:
    """The engines that take a kind of input, or the program that a file of that kind holds."""
    able = [e for e in ENGINES.values() if kind in e.takes]
    return able + [e for e in those_for("module") if e not in able] if kind in HOLDING else able


def by_default(kind: str) -> list[Engine]:
    """The engines for a kind of input where none is named, the usual one first. A compiler is needed only
    where nothing else will do."""
    able = those_for(kind)
    return [e for e in able if not e.compiles] or able


def kind_of(path: Any) -> str:
    """What a path leads to, by name or content: C++, library, image, object; empty for anything else."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        return ""
    if name.endswith(SUFFIXES):
        return "C++"
    if name == "-":
        return ""
    if is_image(name):
        return "image"
    if not is_library(name):
        return ""
    return "object" if is_object(name) else "library"


def refuse(engine: str, given: Mapping[str, Any]) -> None:
    """Options of a launch that an engine does not have, as an error that names them; those that are left as
    they are pass."""
    names = lacking(engine, given)
    if names:
        raise DiagnosticError([refusal(engine, names, f"{instead_of(names)} for that")])


def lacking(engine: str, given: Mapping[str, Any]) -> list[str]:
    """Those of the given options that an engine does not have, but for those that are left as they are."""
    has = (*ENGINES[engine].options, *ONLY_FASTER)
    return [name for name, value in given.items() if name not in has and _asked(value)]


def refusal(engine: str, names: Iterable[str], help: str) -> Diagnostic:
    return Diagnostic("PTO-E2403", f"engine {engine} has no {', '.join(names)}", help=help)


def instead_of(names: Sequence[str]) -> str:
    """Which engine to use for options that another does not have."""
    able = [e.name for e in ENGINES.values() if set(names) <= set(e.options)]
    return f"use the {' or '.join(able)} engine" if able else "no engine has all of them: leave some out"


def _asked(value: Any) -> bool:
    return value is not None and value is not False and not (hasattr(value, "__len__") and not len(value))
