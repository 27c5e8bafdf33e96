"""Images of all kernels of a program in the form for files: source locations are numbers of operations, and
all facts for a launch are included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...bytecode import to_bytecode
from ...diag import Diagnostic, DiagnosticError
from ...driver import Lowered
from ...image.container import ImageFile
from ...image.format import Image, ImageFunction
from ...image.generic import Origins
from ...image.lines import lines_of
from ...image.lower import Lowering, lowered_image
from ...image.operands import operands_of
from ...ir.core import Module, Operation, Value
from ...ir.facts import entries, halves
from ...ir.types import MemRefType, PtrType, ScalarType, ViewType
from ...isa.profiles import PROFILES, Profile
from ..entry import Launchable, dealt, find_roles, vector_cores


def kernels(module: Module) -> dict[str, list[Operation]]:
    """Return the functions of a program that can be launched, by name: its entries, and cube and vector
    halves. Without marks, these are all functions that take arrays and numbers and return nothing."""
    functions = {str(f.attr("sym_name")): f for f in module.functions if f.regions and f.regions[0].blocks}
    pairs = halves(functions)
    inside = {id(f) for pair in pairs.values() for f in pair}
    found: dict[str, list[Operation]] = {name: [*pair] for name, pair in pairs.items()}
    others = () if pairs else [f for f in functions.values() if _launchable(f)]
    for f in entries(functions) or others:
        if id(f) not in inside:
            found.setdefault(str(f.attr("sym_name")), [f])
    return found


def _arguments(function: Operation) -> list[Value]:
    return function.regions[0].blocks[0].args


def _launchable(function: Operation) -> bool:
    type = getattr(function.attrs["function_type"], "value", None)
    return not getattr(type, "results", ()) and not any(map(_on_chip, _arguments(function)))


def _on_chip(value: Value) -> bool:
    """Return whether a launch cannot pass a value, because it is neither an array nor a number."""
    return not isinstance(value.type, ScalarType | PtrType | ViewType | MemRefType)


def image_of(
    name: str, module: Module, functions: list[Operation], done: Lowered, origins: Origins | None = None,
    lower: Callable[..., Lowering] | None = None,
) -> Image:  # fmt: skip
    """Return the image of a kernel of a module from the lowered module `done`; source locations are marks of
    the module. `origins` receives the operations of its calls; `lower` makes the lowering of each function.
    """
    of = {str(f.attr("sym_name")): f for f in done.module.functions}
    roles: dict[str, Operation] = {}
    for kind, _, function in find_roles(module, functions):
        roles.setdefault(kind, of[str(function.attr("sym_name"))])
    return lowered_image(name, done.module, done.profile, roles.items(), origins, lower)


def portable(image: Image, module: Module, functions: list[Operation], profile: Profile) -> Image:
    """Return an image in the form for files."""
    numbers: dict[int, int] = {}
    of: dict[int, int] = {}
    for n, op in enumerate(module.walk()):
        numbers.setdefault(module.mark(op), n)
        of[id(op)] = n
    numbers.pop(-1, None)
    codes = tuple(
        code.replace(places=tuple((word, numbers[mark]) for word, mark in code.places if mark in numbers))
        for code in image.codes
    )
    own = PROFILES[profile.name].capacity
    return image.replace(
        codes=codes,
        functions=tuple(_function(f, of[id(f)]) for f in functions),
        dealt=tuple(sorted(dealt(functions))),
        subblocks=vector_cores(module),
        capacity=tuple((loc, n) for loc, n in profile.capacity.items() if n != own[loc]),
    )


def _function(function: Operation, place: int) -> ImageFunction:
    parameters = tuple((a.name, str(a.type)) for a in function.regions[0].blocks[0].args)
    return ImageFunction(str(function.attr("sym_name")), parameters, place)


def images(
    module: Module, done: Lowered, names: Iterable[str] = (), origins: dict[str, Origins] | None = None
) -> list[Image]:
    """Return the images of some kernels of a program, or of all; `origins` receives the operations of their
    calls, by kernel."""
    found = kernels(module)
    chosen = {name: found[name] for name in names} if names else found
    calls: dict[str, Origins] = {name: [] for name in chosen} if origins is None else origins
    made = [
        (image_of(name, module, functions, done, calls.setdefault(name, [])), functions)
        for name, functions in chosen.items()
    ]
    for image, functions in made:
        if reason := only_in_process(image):
            what = f"cannot write @{image.name} to a file: it has {reason}"
            raise DiagnosticError([
                Diagnostic("PTO-E2003", what, functions[0].loc and functions[0].loc.head,
                           help="run the program itself (pto run FILE.pto)")
            ])  # fmt: skip
    return [portable(image, module, functions, done.profile) for image, functions in made]


def only_in_process(image: Image) -> str:
    """Return why an image cannot be written to a file; empty if it can."""
    return "values of a type" if any(operands_of(name) is None for name in image.calls) else ""


def file_of(module: Module, done: Lowered, name: str) -> ImageFile:
    """Return a file with all kernels of a program, and the program."""
    for f in (f for functions in kernels(module).values() for f in functions):
        if tile := next(filter(_on_chip, _arguments(f)), None):
            what = f"cannot launch '@{f.attr('sym_name')}': its argument %{tile.name} is on the chip"
            help = "mark the function that calls it as the entry, or let it load the tile itself"
            raise DiagnosticError([Diagnostic("PTO-E2014", what, f.loc and f.loc.head, help=help)])
    made = images(module, done)
    if not made:
        help = "give it a func.func with a body"
        raise DiagnosticError(
            [Diagnostic("PTO-E2001", "cannot make an image: no function to run", help=help)]
        )
    return _file(module, made, name)


def file_of_kernel(image: Image, kernel: Launchable) -> ImageFile:
    """Return a file with one kernel of a program, whose image has been made."""
    made = portable(image, kernel.module, kernel.functions, kernel.profile)
    return _file(kernel.module, [made], "")


def _file(module: Module, made: Sequence[Image], name: str) -> ImageFile:
    numbers = {number for image in made for code in image.codes for _, number in code.places}
    numbers.update(f.place for image in made for f in image.functions)
    return ImageFile(name, tuple(made), to_bytecode(module, debuginfo=True), lines_of(module, numbers))
