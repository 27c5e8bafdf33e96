"""Kernels of users in C++: `@pl.jit.extern(core_type="aiv", source="scale.cpp")`.

    extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args)

The function declares its parameters, and its body is `...`. Tasks get tensors, then numbers. A kernel of both
kinds of core has a source for each: `core_type="mixed", aic_source=..., aiv_source=...`.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from ...engine.result import LaunchResult
from ...runtime.kernels import Kernel, Pair
from ..graphs.tasks import roles_of
from ..ir import Function
from ..problems import ARGUMENTS, fail

_CORES = {"aic": ("aic",), "aiv": ("aiv",), "mixed": ("aic", "aiv")}


def extern(function: Function, folder: str) -> None:
    """Check a declaration, and find its files relative to the folder of its source."""
    attrs = function.attrs
    core = cores_of(function)
    for side in _CORES[core]:
        given = attrs.get(f"{side}_source") or attrs.get("source")
        if not isinstance(given, str | os.PathLike):
            fail(ARGUMENTS, f"missing source of {function.name} for its {side} cores", function.loc,
                 help=f"source= or {side}_source= is the path of a C++ file")  # fmt: skip
        path = os.path.normpath(os.path.join(folder, os.fspath(given)))
        if not os.path.isfile(path):
            fail(ARGUMENTS, f"cannot find the source of {function.name}: '{path}'", function.loc)
        attrs[f"{side}_source"] = path
    attrs["include_dirs"] = [os.path.join(folder, os.fspath(d)) for d in attrs.get("include_dirs") or ()]


def cores_of(function: Function) -> str:
    """Return the declared kinds of cores of a function."""
    core = function.attrs.setdefault("core_type", "aiv")
    if core not in _CORES:
        fail(
            ARGUMENTS,
            f"core_type of {function.name}",
            function.loc,
            expected="aic, aiv or mixed",
            got=repr(core),
            help="@pl.function(type=pl.FunctionType.AIV, external_source=..)",
        )
    return core


def sources_of(function: Function) -> dict[str, str]:
    """Return the file of each kind of core."""
    attrs = function.attrs
    return {
        side: os.fspath(attrs.get(f"{side}_source") or attrs["source"]) for side in _CORES[attrs["core_type"]]
    }


def extern_kernel(function: Function) -> Kernel:
    """Return the kernel of its tasks on the runtime."""
    folders = function.attrs["include_dirs"]
    made = [
        Kernel(path, roles_of(function), core=core, name=function.name, include_dirs=folders)
        for core, path in sources_of(function).items()
    ]
    lanes = 2 if function.attrs.get("dual_aiv_dispatch") else 1
    return made[0] if len(made) == 1 else Pair(made[0], made[1], function.name, lanes)


class SingleKernel:
    """A kernel in C++ for the sequential runtime: a graph of one task."""

    unseen = True  # its accesses emit no events

    def __init__(self, function: Function) -> None:
        self.kernel = extern_kernel(function)
        self.name = function.name
        self._left = LaunchResult()

    def __call__(self, *args: object, blocks: int = 0) -> None:
        self.run(*args, blocks=blocks)

    def run(
        self, *args: object, blocks: int = 0, sanitize: Collection[str] = (), **_: object
    ) -> LaunchResult:
        from ...runtime import run

        done = run(lambda rt: rt.submit(self.kernel, *args, blocks=blocks), sanitize=tuple(sanitize))
        left = LaunchResult("traced" if sanitize else "")
        left.diagnostics, left.checked, left.unchecked = done.diagnostics, done.checked, done.unchecked
        for d in left.diagnostics:  # the graph is internal: the caller has the location of the submission
            d.notes = [(text, span) for text, span in d.notes if __file__ not in text]
        return left

    def begin(self, *args: Any, **options: Any) -> SingleKernel:
        """Return a launch that is over as soon as it begins."""
        self._left = self.run(*args, **options)
        return self

    moves = 0

    def go(self) -> bool:
        return True

    def end(self) -> LaunchResult:
        return self._left
