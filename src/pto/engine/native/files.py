"""Kernels of files of images: `pto run k.elf`, `pto.kernel("k.elf")`. No source is needed.

A file is checked when it is read (`image.check`). The names of its calls are C++, but no text of a file
reaches a compiler: a call is looked up in the machine, the pack of the package and the packs of the cache.
For a call that is in none of them, the program in the file is lowered again. Its image has to equal that of
the file. Then the operations of the calls are known, too, and executors may perform the calls (`generic`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ...asm.type_text import parse_type
from ...diag import Diagnostic, DiagnosticError, Source, Span, did_you_mean
from ...image import container
from ...image.container import ImageFile
from ...image.format import Image, ImageFunction, to_bytes
from ...image.generic import Origins
from ...ir.assumptions import ASSUME
from ...ir.attrs import StrAttr
from ...ir.core import Module, Operation, Region
from ...isa.profiles import PROFILES, Profile, profile
from ..binding import Binding
from ..compiled.arguments import LaunchMemory
from ..compiled.kernel import most_arguments
from ..compiled.library import LaunchOutcome
from ..reference.kernel import ReferenceKernel
from . import machine
from .machine_kernel import MachineKernel
from .places import place_of


def read(path: str) -> ImageFile:
    """Read and check a file of images; raise `DiagnosticError` if that fails."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise DiagnosticError([
            Diagnostic("PTO-E0001", f"cannot read '{path}': {why}", help="check the path")
        ]) from None  # fmt: skip
    return container.read(data, path)


def program_of(file: ImageFile) -> Module:
    """Return the program in a file, with the lines of its operations from the file."""
    if not file.program:
        raise DiagnosticError([
            Diagnostic("PTO-E1221", f"missing program in '{file.name}': it has only images",
                       help="give the program itself; ptoas PROGRAM -o FILE.elf puts it into the file")
        ])  # fmt: skip
    from ...bytecode import from_bytecode  # not needed to run a kernel

    module = from_bytecode(file.program, file.name)
    spans = file.lines.spans()
    for number, op in enumerate(module.walk()):
        if number in spans:
            op.loc = spans[number]
    return module


def program_and_target(path: str) -> tuple[Module, Profile]:
    """Return the program in a file, and its target."""
    file = read(path)
    return program_of(file), profile_of(file.images[0])


def of_file(
    path: str,
    entry: str | None,
    target: str | Profile | None,
    capacity: Mapping[str, int],
    kernel: type[ImageKernel] | None = None,
) -> ImageKernel:
    """Return a kernel of a file; `kernel` is its class, if its code is machine code."""
    file = read(path)
    image = _chosen(file, entry)
    wanted = target.name if isinstance(target, Profile) else profile(target).name if target else image.target
    if wanted != image.target or capacity:
        what = f"for {wanted}" if wanted != image.target else "with these capacities"
        raise DiagnosticError([
            Diagnostic("PTO-E2405", f"expected '{path}' to be made {what}, got {image.target}",
                       help="assemble the program again with these options: ptoas PROGRAM -o FILE.elf")
        ])  # fmt: skip
    origins = None if machine.known(image.calls) else derive(file, image)
    if kernel is not None:
        return kernel(file, image, own=True)  # machine code is trusted
    return ImageKernel(file, image, origins)


def _chosen(file: ImageFile, entry: str | None) -> Image:
    known = {image.name: image for image in file.images}
    shown = ", ".join("@" + name for name in known)
    if entry is not None:
        entry = entry.removeprefix("@")
        if entry in known:
            return known[entry]
        help = did_you_mean(entry, known) or f"the file has {shown}"
        raise DiagnosticError([Diagnostic("PTO-E2001", f"no function '@{entry}' to run", help=help)])
    if len(known) == 1:
        return file.images[0]
    raise DiagnosticError([
        Diagnostic("PTO-E2001", "cannot choose one of several functions",
                   help=f"name one with --entry: {shown}")
    ])  # fmt: skip


def derive(file: ImageFile, image: Image) -> Origins:
    """Lower the program in a file again, and return the operations of the calls of an image. Raise
    `DiagnosticError` if the program makes another image, apart from source locations."""
    from ...driver import Options, lowered  # a launch that has all calls needs no lowering
    from . import images

    calls = machine.missing(image.calls) or image.calls
    problem = Diagnostic(
        "PTO-E1225", f"cannot run '{file.name}': this machine has no function for {calls[0][:160]}",
        help="assemble the program again: ptoas PROGRAM -o FILE.elf",
    )  # fmt: skip
    try:
        module = program_of(file)
        done = lowered(module, profile_of(image), Options(flags="off", passes="always")).sound()
        names = [image.name] if image.name in images.kernels(module) else ()
        origins: dict[str, Origins] = {}
        again = images.images(module, done, names, origins)
    except DiagnosticError as e:
        problem.notes += [(f"its program: {d.message}", d.span) for d in e.diagnostics[:3]]
        raise DiagnosticError([problem]) from None
    found = next((origins[other.name] for other in again if _bare(image) == _bare(other)), None)
    if found is None:
        problem.notes.append(
            ("the program in the file makes another image: only calls of that program are compiled", None)
        )
        raise DiagnosticError([problem])
    return found


def _bare(image: Image) -> bytes:
    """Return an image without source locations, which do not affect execution."""
    functions = tuple(f.replace(place=-1) for f in image.functions)
    codes = tuple(code.replace(places=()) for code in image.codes)
    return to_bytes(image.replace(codes=codes, functions=functions))


def profile_of(image: Image) -> Profile:
    return PROFILES[image.target].override(dict(image.capacity))


class ImageKernel(MachineKernel):
    """A kernel from an image in a file. The program in the file is read only to report an error, and for the
    assumptions that launches check."""

    def __init__(
        self, file: ImageFile, image: Image, origins: Origins | None = None, own: bool = False
    ) -> None:
        """`own` means that this package made the image, so that it is trusted and not only checked."""
        self.file = file
        self.image = image
        self.profile = profile_of(image)
        self.checked = True
        self.name = image.name
        self.findings = []
        self._spans = file.lines.spans()
        self.functions = [_stub(f, self._spans.get(f.place)) for f in image.functions]
        if ASSUME.encode() in file.program and self._program_module is not None:
            declared = {str(f.attr("sym_name")): f.attrs.get(ASSUME) for f in self._program_module.functions}
            for f in self.functions:
                if (assumed := declared.get(str(f.attr("sym_name")))) is not None:
                    f.attrs[ASSUME] = assumed
        self.module = _module(file.name, self.functions)
        self.subblocks = image.subblocks
        self.dealt = frozenset(image.dealt)
        lends = own or origins is not None  # with `origins`, the program in the file makes the same image
        self._made = machine.MachineProgram(image, self.profile, self._codes(), origins, lends)
        self._number = -1
        longest = most_arguments(self)
        types = machine.argument_types(longest)
        symbol = str(longest.attr("sym_name"))
        self._ready(machine.library(), "pto_launch_image", symbol, types, self._made.address)

    def _codes(self) -> Sequence[machine.MachineCode]:
        """Return the codes of a kernel in machine code; none for others."""
        return ()

    @cached_property
    def _program_module(self) -> Module | None:
        try:
            return program_of(self.file)
        except DiagnosticError:  # missing or damaged: use only the locations in the file
            return None

    def _oracle(self) -> ReferenceKernel:
        return ReferenceKernel(program_of(self.file), self.name, self.profile, self.checked)

    def _marked(self, done: LaunchOutcome) -> LaunchOutcome:
        self._number = place_of(self.image, done)
        if self._program_module is not None:
            self.module = self._program_module
            for number, op in enumerate(self.module.walk()):
                if number == self._number:
                    return done._replace(mark=self.module.mark(op))
        return done._replace(mark=-1)

    def _problem(self, done: LaunchOutcome, kept: LaunchMemory, binding: Binding) -> Diagnostic:
        found = super()._problem(done, kept, binding)
        if self._program_module is None:
            found.span = self._spans.get(self._number, found.span)
        return found


def _stub(function: ImageFunction, place: Span | None) -> Operation:
    """Return a function without operations, with the name and parameters for callers."""
    made = Operation("func.func", None, [], attrs={"sym_name": StrAttr(function.name)}, loc=place)
    made.regions = [Region(made)]
    block = made.regions[0].add_block()
    for name, text in function.parameters:
        block.add_arg(parse_type(text), name)
    return made


def _module(name: str, functions: Sequence[Operation]) -> Module:
    made = Operation("builtin.module", None, [])
    made.regions = [Region(made)]
    block = made.regions[0].add_block()
    for function in functions:
        block.append(function)
    return Module(made, Source(name, ""))
