"""The engines: their inputs, their options, how they make kernels, and their checks in `pto doctor`.

A new engine is an entry here and a module with its kernels. `pto run` (choices, help, refusals),
`pto.kernel`, `pto doctor` and the documentation follow from the entry. The modules of an engine are imported
at first use.
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

#: Inputs of a kernel, each with its plural.
INPUTS = {
    "module": "programs",
    "C++": "C++",
    "library": "libraries",
    "image": "images",
    "object": "objects",
}

#: Inputs that contain the program they were made of.
HOLDING = ("image", "object")
#: Options of every launch.
COMMON = ("blocks", "out", "progress")
#: Options without effect on results: an engine may lack them.
ONLY_FASTER = ("threads",)


class Request(Record):
    """Input and options of a kernel. `program` is a module, or the path of C++, a library, images or an
    object."""

    program: Module | str
    entry: str | None = None
    target: str | Profile | None = None
    check: bool = True  # check legality, and do the work that the program leaves to the tools
    insert_sync: bool = False  # flags also for a program with addresses, if the engine heeds flags
    checked: bool = False  # compile run-time checks in
    capacity: Mapping[str, int] = {}  # for C++ and libraries, which name their target themselves
    auto: bool = False  # for C++: tiles without an address have storage of their own


class Engine(Record):
    """One entry. `options` are the launch options that this engine has and some engine lacks, by their names
    in Python; `checked` means that a kernel can be compiled with checks; `subblocks` are vector cores of a
    mixed kernel.
    """

    name: str
    doc: str  # the way of execution, for the help of `pto run --engine`
    made_by: str  # "module:function", called with a `Request`
    takes: tuple[str, ...] = ("module",)
    options: tuple[str, ...] = ("subblocks",)
    compiles: bool = False
    required: bool = False  # True if most tools need this engine
    remembers: str = ""  # "module:function", called with a text, options and a function that makes the kernel
    remark: str = ""  # "module:function": returns a remark for `pto doctor` about a kernel that ran
    #: Replacements for options that it does not have.
    instead: Mapping[str, str] = {}

    def debugged(self, kernel: object, args: Sequence[object], **options: object) -> Any:
        """Return the stops of a launch, for an engine with the option `debug`."""
        return named("pto.engine.debug.session:debugged")(kernel, args, **options)

    def remarks(self) -> str:
        return named(self.remark)() if self.remark else ""


def named(place: str) -> Callable[..., Any]:
    """Return the function of a place, "module:function", whose module is imported now."""
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)


def _debuggable(engine: Engine) -> Engine:
    """Add the option `debug` to an engine with watchers: the debugger is a watcher."""
    return engine.replace(options=(*engine.options, "debug")) if "watchers" in engine.options else engine


#: Launch options of the reference engine, for all inputs.
_WATCHED = (
    "subblocks", "sanitize", "schedule", "shadow", "memory_map", "max_steps", "timeout", "semantics",
    "watchers",
)  # fmt: skip

#: The engines by name. The default for an input is the first engine that takes the input, needs no compiler
#: and has the requested options.
ENGINES: dict[str, Engine] = {
    engine.name: _debuggable(engine)
    for engine in (
        Engine(
            "native",
            "on the virtual machine of the package",
            "pto.engine.native.engine:made",
            takes=("module", "image", "object"),
            options=("subblocks", "threads", "sanitize", "max_steps", "timeout", "ranks", "processes"),
            remembers="pto.engine.native.engine:remembered",
            remark="pto.engine.native.packs:remark",
            instead={"checked": "the virtual machine always checks accesses and indices"},
        ),
        Engine(
            "reference",
            "step by step under watch",
            "pto.engine.reference.kernel:made",
            options=(*_WATCHED, "ranks", "timeline", "dry", "only"),
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
    """Return the options that not every launch has, by their names in Python."""
    return tuple(dict.fromkeys(name for engine in ENGINES.values() for name in engine.options))


def flag(option: str) -> str:
    """Return an option in the spelling of `pto run`."""
    return f"--{option.replace('_', '-')}"


def those_with(option: str) -> str:
    """Return the names of the engines that have an option."""
    return ", ".join(e.name for e in ENGINES.values() if option in e.options)


def those_for(kind: str) -> list[Engine]:
    """Return the engines for a kind of input, or for the program in a file of that kind."""
    able = [e for e in ENGINES.values() if kind in e.takes]
    return able + [e for e in those_for("module") if e not in able] if kind in HOLDING else able


def by_default(kind: str) -> list[Engine]:
    """Return the default engines for a kind of input, the usual one first. Engines that need a compiler are
    included only without alternatives."""
    able = those_for(kind)
    return [e for e in able if not e.compiles] or able


def kind_of(path: object) -> str:
    """Return the kind of a file by name or content: C++, library, image, object; empty for anything else."""
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


def refuse(engine: str, given: Mapping[str, object]) -> None:
    """Raise an error that names the options of a launch that an engine lacks; accept default values."""
    names = lacking(engine, given)
    if names:
        raise DiagnosticError([refusal(engine, names, f"{instead_of(names)} for that")])


def lacking(engine: str, given: Mapping[str, object]) -> list[str]:
    """Return the given options that an engine lacks, except those with their default value."""
    has = (*ENGINES[engine].options, *ONLY_FASTER)
    return [name for name, value in given.items() if name not in has and _asked(value)]


def refusal(engine: str, names: Iterable[str], help: str) -> Diagnostic:
    return Diagnostic("PTO-E2403", f"engine {engine} has no {', '.join(names)}", help=help)


def instead_of(names: Sequence[str]) -> str:
    """Return help that names an engine for options that another lacks."""
    able = [e.name for e in ENGINES.values() if set(names) <= set(e.options)]
    return f"use engine {' or '.join(able)}" if able else "leave some out: no engine has all of them"


def _asked(value: Any) -> bool:
    return value is not None and value is not False and not (hasattr(value, "__len__") and not len(value))
