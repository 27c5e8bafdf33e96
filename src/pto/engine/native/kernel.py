"""A kernel on the virtual machine: `pto.kernel(module, engine="native")`. Nothing is compiled."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from ...diag import Diagnostic
from ...image.calls import as_view
from ...image.format import Image
from ...image.lower import lowered_image
from ...ir.core import Module, Operation
from ...isa.profiles import Profile
from ..binding import Binding
from ..compiled.kernel import CompiledKernel, flag_findings, most_arguments, special_words
from ..compiled.library import Outcome
from ..entry import Launchable
from .machine import Program, library

if TYPE_CHECKING:
    from ..registry import Request


def made(request: Request) -> NativeKernel:
    r = request
    assert isinstance(r.program, Module)
    return NativeKernel(r.program, r.entry, r.target, r.check)


def image_of(kernel: Launchable) -> Image:
    """The image of a kernel that was verified."""
    done = kernel.lowered("always")
    functions = {str(f.attr("sym_name")): f for f in done.module.functions}
    roles: dict[str, Operation] = {}
    for kind, _, function in kernel.roles:
        roles.setdefault(kind, functions[str(function.attr("sym_name"))])
    return lowered_image(kernel.name, done.module, done.profile, roles.items())


class NativeKernel(CompiledKernel):
    """A kernel on engine `native`."""

    engine = "native"

    def __init__(self, module: Module, entry: str | None, target: str | Profile | None, check: bool) -> None:
        super().__init__(module, entry, target, check)
        self.findings: list[Diagnostic] = flag_findings(self) if check else []
        self.image = image_of(self)
        self._made = Program(self.image, self.profile)
        longest = most_arguments(self)
        types = [as_view(a).type for a in longest.regions[0].blocks[0].args]
        self._ready(library(), "pto_launch_image", str(longest.attr("sym_name")), types, self._made.address)

    def _special(self, binding: Binding) -> bytes:
        """Those of every function of the image, one after another: halves of a kernel may differ in them."""
        count = len(binding.values[self._longest])
        functions = {kind: str(f.attr("sym_name")) for kind, _, f in reversed(self.roles)}
        found = [special_words(binding.values[functions[code.kind]]) for code in self.image.codes]
        return b"".join(special.ljust(count, b"\0") for special in found)

    def _marked(self, done: Outcome) -> Outcome:
        """The machine says at which word it was; the program, where that came from."""
        word, code = done.mark & 0xFFFFFFF, done.mark >> 28
        if done.mark < 0 or code >= len(self.image.codes):
            return done._replace(mark=-1)
        places = self.image.codes[code].places
        at = bisect_right(places, (word, 1 << 62)) - 1
        return done._replace(mark=places[at][1] if at >= 0 else -1)
