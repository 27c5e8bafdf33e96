"""A kernel on the virtual machine: launches of programs with calls that no pack has.

Such calls are slow (`generic`). After they have taken a second, another thread compiles them, if there is a
compiler and PTO_NATIVE_COMPILE allows it; the next launch waits for it. The cache keeps the compiled pack.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...ir.types import Type
from .. import registry
from ..compiled.kernel import CompiledKernel
from ..compiled.library import INTERRUPTED, LaunchOutcome, Library
from ..result import LaunchResult
from .machine import MachineProgram

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..options import LaunchOptions
    from ..reference.kernel import ReferenceKernel


class MachineKernel(CompiledKernel):
    """A kernel whose program is `_made`."""

    engine = "native"
    _made: MachineProgram

    def run(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        if options.get("sanitize"):
            special = {name: value for name, value in options.items() if name not in registry.COMMON}
            if not registry.lacking(self.engine, special):
                return self.screen.run(*args, **options)
        if self._made.generic is None:
            return super().run(*args, **options)
        self._prepare(options)
        from .generic import launching  # most programs do not need it

        with launching():
            return super().run(*args, **options)

    @cached_property
    def screen(self) -> Any:
        """The checked launches of the kernel, a `screened.CheckedLaunches`."""
        return registry.named("pto.engine.native.screened:CheckedLaunches")(self._oracle())

    def _oracle(self) -> ReferenceKernel:
        """Return the kernel on the reference engine."""
        raise NotImplementedError

    def _prepare(self, options: LaunchOptions) -> None:
        """Compile slow calls, and calls that executors cannot perform in a launch with these options."""
        ranks = options.get("ranks")
        member = ranks.member if ranks is not None else None
        apart = bool(options.get("processes")) or member is not None
        if apart and (self._made.updates or (member is not None and member.far is not None)):
            self._made.compile()  # executors do not share updates and windows with other processes
        else:
            self._made.compile_if_slow()
        if self._made.generic is None:  # launches may take the fast path again
            self._ready(self._library, self._symbol, self._longest, self._types, self._program)
        elif self._made.updates and options.get("threads", 1) > 1:
            options["threads"] = 1  # updates of executors are not atomic

    def _ready(
        self, library: Library, symbol: str, function: str, types: Sequence[Type], program: int = 0
    ) -> None:
        super()._ready(library, symbol, function, types, program)
        if self._made.generic is not None:
            self._quick = None  # every launch has to call `_prepare`

    def _check_interrupted(self, done: LaunchOutcome) -> None:
        found = self._made.raised(done)
        if isinstance(found, KeyboardInterrupt):
            done = done._replace(status=INTERRUPTED)
        elif found is not None:
            raise found
        super()._check_interrupted(done)
