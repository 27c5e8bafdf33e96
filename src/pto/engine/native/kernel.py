"""A kernel on the virtual machine: `pto.kernel(module, engine="native")`. Nothing is compiled."""

from __future__ import annotations

from ...diag import Diagnostic
from ...image.format import Image
from ...image.generic import Origins
from ...ir.core import Module
from ...isa.profiles import Profile
from ..binding import Binding
from ..compiled.kernel import flag_findings, most_arguments, special_words
from ..compiled.library import LaunchOutcome
from ..entry import Launchable
from ..reference.kernel import ReferenceKernel
from . import images
from .machine import MachineProgram, argument_types, library
from .machine_kernel import MachineKernel
from .places import place_of


def image_of(kernel: Launchable, origins: Origins | None = None) -> Image:
    """Return the image of a verified kernel; `origins` receives the operations of its calls."""
    return images.image_of(kernel.name, kernel.module, kernel.functions, kernel.lowered("always"), origins)


class NativeKernel(MachineKernel):
    """A kernel on engine `native`."""

    def __init__(
        self,
        module: Module,
        entry: str | None,
        target: str | Profile | None,
        check: bool,
        insert_sync: bool = False,
    ) -> None:
        super().__init__(module, entry, target, check)
        self._insert_sync = insert_sync
        self.findings: list[Diagnostic] = flag_findings(self) if check else []
        origins: Origins = []
        self.image = image_of(self, origins)
        self._made = self._program(origins)
        self._launched()

    def _oracle(self) -> ReferenceKernel:
        return ReferenceKernel(self.module, self.name, self.profile, self.checked, self._insert_sync)

    def _program(self, origins: Origins) -> MachineProgram:
        """Make the image ready to run."""
        return MachineProgram(self.image, self.profile, origins=origins)

    def _launched(self) -> None:
        """Let launches call the machine with the program that was made."""
        longest = most_arguments(self)
        types = argument_types(longest)
        self._ready(library(), "pto_launch_image", str(longest.attr("sym_name")), types, self._made.address)

    def _special(self, binding: Binding) -> bytes:
        """Return the kinds of arguments of every function of the image: halves of a kernel may differ."""
        count = len(binding.values[self._longest])
        functions = {kind: str(f.attr("sym_name")) for kind, _, f in reversed(self.roles)}
        found = [special_words(binding.values[functions[code.kind]]) for code in self.image.codes]
        return b"".join(special.ljust(count, b"\0") for special in found)

    def _marked(self, done: LaunchOutcome) -> LaunchOutcome:
        """Replace the word at which the machine ended by the source location of its instruction."""
        return done._replace(mark=place_of(self.image, done))
