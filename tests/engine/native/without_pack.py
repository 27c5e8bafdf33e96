"""Kernels of engine native that call no function of a pack, but those that only compiled functions perform.

k = generic_kernel(pto.parse(text))
k.performed             # the names of the calls that executors perform
compile_calls(modules)  # the calls of many programs in one go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from pto import knobs
from pto.engine.entry import Launchable
from pto.engine.native import machine
from pto.engine.native.frames import Unreadable
from pto.engine.native.generic import GenericCall
from pto.engine.native.kernel import NativeKernel, image_of
from pto.image.format import Image, call_of
from pto.image.generic import Origins
from pto.ir.core import Module
from pto.isa.profiles import Profile

_missing = machine.missing


def performable(image: Image, origins: Origins, profile: Profile) -> set[str]:
    """The calls of an image that executors can perform."""
    found: set[int] = set()
    compiled: set[int] = set()
    calls: Any = SimpleNamespace(profile=profile)
    for code, of in zip(image.codes, origins, strict=True):
        for at, origin in of.items():
            number = call_of(code.words[at])
            found.add(number)
            try:
                GenericCall(origin, calls)
            except Unreadable:
                compiled.add(number)
    return {image.calls[number] for number in found - compiled}


@contextmanager
def hidden(names: set[str]) -> Iterator[None]:
    """No pack has these calls."""

    def missing(calls: Sequence[str]) -> list[str]:
        return sorted({*_missing(calls), *(names & {*calls})})

    before = machine.missing, machine.known
    machine.missing, machine.known = missing, lambda calls: not missing(calls)
    try:
        with knobs.override(PTO_NATIVE_COMPILE="auto"):
            yield
    finally:
        machine.missing, machine.known = before


def generic_program(image: Image, profile: Profile, origins: Origins) -> machine.MachineProgram:
    """A program whose calls executors perform, as far as they can."""
    with hidden(performable(image, origins, profile)):
        made = machine.MachineProgram(image, profile, origins=origins)
    assert made.generic is not None
    return made


class GenericKernel(NativeKernel):
    """A kernel whose calls executors perform, as far as they can; `of`: those with a text in their names."""

    of = ""
    performed: set[str]

    def _program(self, origins: Origins) -> machine.MachineProgram:
        names = performable(self.image, origins, self.profile)
        self.performed = {name for name in names if self.of in name}
        with hidden(self.performed):
            made = super()._program(origins)
        assert not self.performed or made.generic is not None
        return made


def generic_kernel(
    module: Module, entry: str | None = None, check: bool = True, of: str = ""
) -> GenericKernel:
    return type("GenericKernel", (GenericKernel,), {"of": of})(module, entry, None, check)


def compile_calls(modules: Iterable[Module]) -> None:
    """Compile what no pack has of the calls of programs: each program alone would start a compiler."""
    images = (image_of(Launchable(module, None, None, False)) for module in modules)
    machine.functions(list(dict.fromkeys(call for image in images for call in image.calls)))
