"""Calls: a function specialised for its arguments, kept, and run."""

from __future__ import annotations

from typing import Any

from ..isa.profiles import PROFILES, Profile
from . import arguments
from .lower import Lowered, lowered
from .orchestrate import orchestration
from .serial import Serial

#: Platforms as configurations of the field name them.
_PLATFORMS = {"a2a3sim": "a2a3", "a2a3": "a2a3", "a5sim": "a5", "a5": "a5", "cpu": "cpu"}


def profile_of(config: Any, target: str | None = None) -> Profile:
    from ..isa.profiles import ALIASES

    wanted = target or _PLATFORMS.get(getattr(config, "platform", "a2a3"), "a2a3")
    return PROFILES[ALIASES[wanted]]


class Compiled:
    """A program for certain arguments: its kernels on an engine, and the function that submits them."""

    def __init__(self, done: Lowered) -> None:
        self.lowered = done
        self.program = done.program
        self.profile = done.profile
        entry = done.program.entry
        assert entry is not None
        self.entry = entry
        self.orchestrate = orchestration(entry) if entry.kind == "orchestration" else None
        self._kernels: dict[str | None, dict[str, Any]] = {}

    def kernels(self, engine: str | None) -> dict[str, Any]:
        from ..engine.launch import kernel

        found = self._kernels.get(engine)
        if found is None:
            modules = self.lowered.modules
            found = self._kernels[engine] = {n: kernel(m, n, engine=engine) for n, m in modules.items()}
        return found

    def run(self, values: list[Any], engine: str | None = None, **options: Any) -> list[Any]:
        """Every task, one after the other."""
        reports: list[Any] = []

        def launch(kernel: Any, args: list[Any], said: dict[str, Any]) -> None:
            more = dict(options)
            if said.get("blocks"):
                more["blocks"] = said["blocks"]
            if options:
                reports.append(kernel.run(*args, **more))
            else:
                kernel(*args, **more)

        rt = Serial(launch)
        tensors = [rt.wrap(arguments.as_numpy(v)) for v in values if hasattr(v, "shape") and v.shape != ()]
        symbols = [tensors[p].shape[axis] for p, axis in self.entry.attrs.get("symbols", {}).values()]
        kernels = self.kernels(engine)
        if self.orchestrate is not None:
            self.orchestrate(rt, kernels, *tensors, *symbols)
        else:
            slots = self.entry.attrs.get("slots")
            memory = [rt.tensor([slots], "u8")] if slots else []
            rt.submit(kernels[self.entry.name], *tensors, *memory, *symbols)
        return reports


def _key(types: list[Any], profile: Profile) -> Any:
    return profile.name, tuple(types)


def specialised(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], profile: Profile
) -> tuple[Compiled, list[Any]]:
    """The program for arguments, from the cache where it has been made."""
    given = arguments.bound(function.declared, args, kwargs)
    types = arguments.types_of(function.declared, given)
    key = _key(types, profile)
    found = function._cache.get(key)
    if found is None:
        found = function._cache[key] = Compiled(lowered(function.declared, types, profile))
    return found, list(given.values())


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> None:
    compiled_, values = specialised(function, args, kwargs, profile_of(config))
    compiled_.run(values)


def lower(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> Lowered:
    given = arguments.bound(function.declared, args, kwargs)
    done = lowered(function.declared, arguments.types_of(function.declared, given), profile_of(config))
    _ = done.modules
    return done


def compiled(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> Compiled:
    return specialised(function, args, kwargs, profile_of(config))[0]


def run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    names = set(function.declared.signature.parameters)
    options = {k: kwargs.pop(k) for k in list(kwargs) if k not in names}
    engine, target, config = (options.pop(k, None) for k in ("engine", "target", "config"))
    made, values = specialised(function, args, kwargs, profile_of(config, target))
    return made.run(values, engine, **options)
