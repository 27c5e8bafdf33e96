"""Calls: specialise a function for its arguments, cache the program, and run it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...diag import DiagnosticError, render
from ...isa.profiles import Profile
from ..declare import Declared
from ..problems import LanguageWarning
from . import arguments
from .compiled import Compiled, RunResult
from .config import platform_of, profile_of, world_of
from .lower import LoweredProgram, lowered

if TYPE_CHECKING:
    from .prove import ProgramProof

#: Prefix of the files of this package: a warning points at a line of the user.
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")


class _Runnable(Protocol):
    """A function or a program, and its compiled programs (jit.py)."""

    _cache: dict[object, Compiled]
    _quick: dict[object, object]

    @property
    def declared(self) -> Declared: ...


def _key(types: Sequence[object], profile: Profile, world: int) -> tuple[object, ...]:
    return profile.name, world, tuple(types)


def specialised(
    function: _Runnable, args: tuple[object, ...], kwargs: Mapping[str, object], config: object,
    target: str | None = None,
) -> tuple[Compiled, list[object], object]:  # fmt: skip
    """Return the program for the arguments, from the cache if it is there."""
    given = arguments.bound(function.declared, args, kwargs)
    values = list(given.values())
    made, key = _cached(function, arguments.types_of(function.declared, given), config, target, values)
    made.check_assumed(values)
    return made, values, key


def _cached(
    function: _Runnable, types: Sequence[object], config: object, target: str | None = None,
    values: Sequence[object] | None = None,
) -> tuple[Compiled, object]:  # fmt: skip
    profile = profile_of(config, target)
    key = _key(types, profile, world_of(config))
    if function.declared.kind == "host" and key not in function._cache:
        fixed = _key(arguments.with_extents(types, values, world_of(config)), profile, world_of(config))
        key = fixed if fixed in function._cache else key
    found = function._cache.get(key)
    if found is None:
        done = _lowered(function.declared, types, profile, world_of(config), values)
        if done.fixed:  # for these extents only
            assert done.source is not None
            key = _key(done.source[1], profile, world_of(config))
        _warn(done)
        found = function._cache[key] = Compiled(done, platform_of(config))
    folder = getattr(config, "save_kernels_dir", None)
    if folder and found.folder != Path(folder):
        found.save(folder, dumps=bool(getattr(config, "dump_passes", False)))
    return found, key


def _lowered(
    declared: Declared, types: Sequence[object], profile: Profile, world: int, values: Sequence[object] | None
) -> LoweredProgram:
    """Compile a program. If a host's program cannot be compiled for dynamic extents, compile it for the
    extents of the arguments; without arguments, for one extent per rank."""
    try:
        return lowered(declared, types, profile, world=world)
    except DiagnosticError:
        fixed = arguments.with_extents(types, values, world)
        if declared.kind != "host" or fixed == types:
            raise
        try:
            done = lowered(declared, fixed, profile, world=world)
        except DiagnosticError as e:
            problem = e if values is not None else None
        else:
            done.fixed = True
            return done
        if problem is None:
            raise
    raise problem


def _types(function: _Runnable, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Sequence[object]:
    """Return the types of the arguments; for missing arguments, the annotated types of the parameters."""
    if len(args) + len(kwargs) < len(function.declared.signature.parameters):
        return arguments.annotated_types(function.declared, args, kwargs)
    return arguments.types_of(function.declared, arguments.bound(function.declared, args, kwargs))


def call(function: _Runnable, args: tuple[Any, ...], kwargs: dict[str, object], config: object) -> None:
    """Run a function on its arguments. Arguments with the shapes of an earlier call reuse its program at
    once."""
    quick = None
    if not kwargs:
        quick = (
            getattr(config, "platform", None),
            world_of(config),
            *[(a.shape, a.dtype) if arguments.is_array(a) else a for a in args],
        )
        known = None
        with contextlib.suppress(TypeError):  # the arguments contain a list, which `specialised` rejects
            known = function._cache.get(function._quick.get(quick))
        if known is not None:
            known.launch(list(args), config)
            return
    made, values, key = specialised(function, args, kwargs, config)
    if quick is not None and len(values) == len(args):
        function._quick[quick] = key
    made.launch(values, config)


def lower(
    function: _Runnable, args: tuple[object, ...], kwargs: dict[str, object], config: object,
    dump: str | os.PathLike[str] | None = None,
) -> LoweredProgram:  # fmt: skip
    types, profile = _types(function, args, kwargs), profile_of(config)
    done = lowered(function.declared, types, profile, dump, world_of(config))
    _warn(done)
    done.verify()
    if dump is not None:
        done.dump(dump)
    return done


def explain(function: _Runnable, args: tuple[object, ...], kwargs: dict[str, object], config: object) -> str:
    from ..explain import explanation

    types, profile = _types(function, args, kwargs), profile_of(config)
    done = lowered(function.declared, types, profile, world=world_of(config))
    return explanation(done.verify())


def _warn(done: LoweredProgram) -> None:
    """Emit warnings at the line of the user that called or compiled the program."""
    if done.diagnostics:
        import warnings

        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
            level, frame = level + 1, frame.f_back
        warnings.warn(render(done.diagnostics), LanguageWarning, level)


def compiled(
    function: _Runnable, args: tuple[object, ...], kwargs: dict[str, object], config: object
) -> Compiled:
    return _cached(function, _types(function, args, kwargs), config)[0]


def proved(
    function: _Runnable, args: tuple[object, ...], kwargs: dict[str, object], assume: Sequence[str],
    timeout: float,
) -> ProgramProof:  # fmt: skip
    """Return the proofs of the kernels of a function."""
    from .prove import prove_program

    made, _ = _cached(function, _types(function, args, kwargs), None)
    return prove_program(made, assume=assume, timeout=timeout)


def run(function: _Runnable, args: tuple[object, ...], kwargs: dict[str, Any]) -> RunResult:
    names = set(function.declared.signature.parameters)
    options = {k: kwargs.pop(k) for k in list(kwargs) if k not in names}
    engine, target, config = (options.pop(k, None) for k in ("engine", "target", "config"))
    made, values, _ = specialised(function, args, kwargs, config, target)
    return made.run(values, engine, **options)
