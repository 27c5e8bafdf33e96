"""`pto.kernel`: a function of a program that can be called with arrays.

    k = pto.kernel("k.pto", "vec_add")                # or a module, see pto.parse
    k(a, b, out, blocks=24)                           # NumPy arrays; raises pto.DiagnosticError
    k.run(a, b, out, sanitize="all").diagnostics      # findings of sanitizers, without raising
    k = pto.kernel("k.pto", engine="reference")       # on this engine, and no other
    k = pto.kernel("k.pto", engine="cpp")             # compiled by the system's C++ compiler
    k = pto.kernel("k.cpp", "softmax", target="a5")   # C++ written by hand
    k = pto.kernel("k.so")                            # of pto build, or machine code of ptoas

Arrays are used in place.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from ..ir.core import Module
from ..isa.profiles import Profile
from ..reading import parse
from . import journal, making, registry
from .entry import Launchable
from .registry import ENGINES
from .result import LaunchResult, sound
from .sanitize import OF_GRAPHS, asked

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import LaunchOptions

#: Help for programs instead of an option for auto mode.
AUTO_OF_PROGRAMS = "a program whose tiles have no addresses is in auto mode"


def kernel(
    module: Module | str | os.PathLike[str], entry: str | None = None, engine: str | None = None,
    target: str | Profile | None = None, check: bool = True, insert_sync: bool = False, checked: bool = False,
    auto: bool = False,
) -> Launchable:  # fmt: skip
    """Return a kernel of a module, of a program (its path or text, as for `pto.parse`), or of the C++ file,
    library or image at a path; `entry` may be left out if there is only one. `engine` is one of
    `engine.registry`; without it, a launch goes to the first that runs the program and has the options of the
    launch: native, else reference. The result names the engine.

    A program whose tiles have no addresses is planned and synchronized first; a program with addresses runs
    as written, unless `insert_sync` adds flags. `check=False` skips legality and planning. `checked` compiles
    run-time checks of bounds, capacity and validity into a kernel of an engine that compiles. `auto` is auto
    mode for C++: tiles have storage of their own, and need no TASSIGN. Launches without `sanitize=` have the
    sanitizers of PTO_SANITIZE.
    """
    made = plain(
        module, entry, engine, target, check=check, insert_sync=insert_sync, checked=checked, auto=auto
    )
    names = asked() - {OF_GRAPHS}
    return cast(Launchable, Watched(made, names)) if names else made


def plain(
    module: Module | str | os.PathLike[str], entry: str | None = None, engine: str | None = None,
    target: str | Profile | None = None, *, check: bool = True, insert_sync: bool = False,
    checked: bool = False, auto: bool = False,
) -> Launchable:  # fmt: skip
    """Return the same kernel, but ignore PTO_SANITIZE."""
    if engine not in (None, *ENGINES):
        raise ValueError(f"unknown engine {engine!r}; expected one of {', '.join(ENGINES)}")
    kind = "module" if isinstance(module, Module) else registry.kind_of(module)
    if not kind:
        if not isinstance(module, str | os.PathLike):
            own = "; call it, or its `run`" if hasattr(module, "interpret") else ""
            raise TypeError(
                "expected a module, a program as a path or text, or the path of C++, a library or an "
                f"image, got {type(module).__name__}{own}"
            )
        module, kind = parse(module), "module"
    able = registry.those_for(kind)
    if engine is not None and ENGINES[engine] not in able:
        what = {"module": "programs"}.get(kind, "C++ and libraries")
        names = ", ".join(repr(e.name) for e in able)
        raise ValueError(f"{what} run on engine {names} only")
    engines = [ENGINES[engine]] if engine is not None else registry.by_default(kind)
    if checked:
        fit = [e for e in engines if "checked" in e.options]
        if not fit:
            why = next((f": {e.instead['checked']}" for e in engines if "checked" in e.instead), "")
            raise ValueError(f"checked=True is for engine {registry.those_with('checked')!r}{why}")
        engines = fit
    if auto and kind == "module":
        raise ValueError(f"auto=True is for C++: {AUTO_OF_PROGRAMS}")
    program = module if isinstance(module, Module) else os.fspath(module)
    request = registry.Request(program, entry, target, check, insert_sync, checked, auto=auto)
    return making.first(engines, lambda e: making.make(e, request if kind in e.takes else _embedded(request)))


class Watched:
    """A kernel whose launches have the sanitizers of PTO_SANITIZE by default."""

    def __init__(self, kernel: Launchable, names: frozenset[str]) -> None:
        self._kernel = kernel
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __repr__(self) -> str:
        return repr(self._kernel)

    def run(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        if "sanitize" in options:
            return self._kernel.run(*args, **options)
        options["sanitize"] = self._names
        result = self._kernel.run(*args, **options)
        journal.note("finding", self._kernel.name, tuple(result.diagnostics))
        return result

    def __call__(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        return sound(self.run(*args, **options))


def _embedded(request: registry.Request) -> registry.Request:
    """Return the request for the program in a file."""
    from .native.files import program_and_target

    module, usual = program_and_target(str(request.program))
    return request.replace(program=module, target=request.target or usual)
