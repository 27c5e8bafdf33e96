"""Programs as objects: what `ptoas -o k.o` and `-o k.so` write.

An object holds the program it was made of, as bytecode, and its images are made of that: so the places that
they name are those of whoever reads the bytecode again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...bytecode import from_bytecode, to_bytecode
from ...diag import Diagnostic, DiagnosticError
from ...driver import Options, lowered
from ...image.format import Image
from ...image.lower import lowered_image
from ...ir.core import Module, Operation
from ...ir.facts import entries, halves
from ...isa.profiles import Profile, profile
from ...objects import contents, machine_code
from ...objects.shared import shared
from ..entry import find_entry, find_roles

#: What C takes for the name of a function.
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def emitted(
    module: Module, target: Profile, options: Options, form: str, name: str, triple: str = ""
) -> bytes:
    """A program that was verified, in a form; `name` is that of a shared object. It is for this machine,
    unless a triple says otherwise."""
    program = to_bytecode(module, debuginfo=True)
    again = from_bytecode(program, module.source.name)
    images = images_of(again, target, options)
    sections = contents.sections(images, program)
    source = machine_code.text(images, target, sections, module.source.name, triple, _lines(again).get)
    if form == "llvm":
        return source.encode()
    if form == "native":
        return machine_code.assembly(source, triple).encode()
    data = machine_code.object_file(source, triple)
    return shared(data, name) if form == "so" else data


def _lines(module: Module) -> dict[int, tuple[str, int, int]]:
    """File, line and column of every operation that is written somewhere, by its mark."""
    found = ((module.mark(op), op.loc) for op in module.walk())
    return {mark: (loc.source.name, *loc.place) for mark, loc in found if loc is not None}


def images_of(module: Module, target: Profile, options: Options) -> list[Image]:
    """The images of all kernels of a program."""
    found = [find_entry(module, name) for name in _kernels(module)]
    for name, (first, *_) in found:
        if not _NAME.fullmatch(name):
            raise DiagnosticError([
                Diagnostic("PTO-E2407", f"kernel '@{name}' cannot be a symbol of an object",
                           first.loc and first.loc.head, expected="letters, digits and underscores",
                           help="give the function another name")
            ])  # fmt: skip
    done = lowered(module, target, options.replace(check="structure", passes="always")).sound()
    functions = {str(f.attr("sym_name")): f for f in done.module.functions}
    images = []
    for name, own in found:
        roles: dict[str, Operation] = {}
        for kind, _, function in find_roles(module, own):
            roles.setdefault(kind, functions[str(function.attr("sym_name"))])
        images.append(lowered_image(name, done.module, done.profile, roles.items()))
    return images


def calls_of(found: contents.Contents, name: str) -> list[str]:
    """What the kernels of an object call. It is C++ and will be compiled: so the program in the object has to
    make the same calls, and no text of a file goes to a compiler."""
    module = from_bytecode(found.program, name)
    calls = {call for image in found.images.values() for call in image.calls}
    target = profile(next(iter(found.images.values())).target)
    for options in (Options(), Options(infer_layout=False)):
        if calls <= {call for image in images_of(module, target, options) for call in image.calls}:
            return sorted(calls)
    raise contents.refusal(name, "it calls what its program does not")


def _kernels(module: Module) -> Sequence[str | None]:
    """Names of the kernels of a program: its entries and pairs; None stands for the only one."""
    functions = {str(f.attr("sym_name")): f for f in module.functions if f.regions and f.regions[0].blocks}
    pairs = halves(functions)
    paired = {id(f) for pair in pairs.values() for f in pair}
    marked = [str(f.attr("sym_name")) for f in entries(functions) if id(f) not in paired]
    if len(functions) > 1 and not pairs and not marked:
        raise DiagnosticError([
            Diagnostic("PTO-E2001", "the program has several functions, and none is marked as a kernel",
                       help="write attributes {pto.entry} behind the arguments of those that are")
        ])  # fmt: skip
    return [*pairs, *marked] if len(pairs) + len(marked) > 1 else [None]
