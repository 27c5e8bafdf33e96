"""The virtual machine: its functions, and images that are prepared to run (native/vm/vm.hpp)."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from ... import knobs
from ...diag import DiagnosticError
from ...image import format as image_format
from ...image.format import Image
from ...image.generic import Origins, updates_memory
from ...ir.core import Operation
from ...ir.types import MemRefType, Type, ViewType
from ...isa.machine import MEMORIES
from ...isa.profiles import ISAS, Profile
from ..compiled.library import LaunchOutcome
from .packs import compiled, kept, library, of_package

if TYPE_CHECKING:
    from .generic import GenericCalls

#: Calls without a function are compiled after they have taken this many seconds.
ENOUGH = 1.0


class MachineCode(ctypes.Structure):
    """`pto_code`."""

    _fields_ = (
        ("words", ctypes.c_void_p),
        ("frame", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("frame_size", ctypes.c_uint32),
        ("argc", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("run", ctypes.c_void_p),
    )


class _Target(ctypes.Structure):
    """`pto_target`."""

    _fields_ = (
        ("isa", ctypes.c_uint8),
        ("left_by_columns", ctypes.c_uint8),
        ("capacity", ctypes.c_uint64 * len(MEMORIES)),
    )


class _Program(ctypes.Structure):
    """`pto_program`."""

    _fields_ = (
        ("target", _Target),
        ("functions", ctypes.c_void_p),
        ("codes", ctypes.c_void_p),
        ("code_count", ctypes.c_uint32),
        ("kinds", ctypes.c_void_p),
    )


@cache
def kind(name: str) -> int:
    """Return the kind of a call: CALL, or the number of an operation that the machine itself performs."""
    return library().raw("pto_vm_kind")(name.encode())


@cache
def _own(name: str) -> int:
    function = library().raw("pto_vm_own")
    function.restype = ctypes.c_void_p
    return function(name.encode()) or 0


#: Calls that make tiles borrow memory, and their replacements without borrowing, which no image can name.
_STAYS = {"vm.lent": "vm.lent!", "vm.lend": "vm.lend!"}
_found: dict[str, int] = {}


def missing(calls: Sequence[str]) -> list[str]:
    """Return the functions that neither the machine nor the pack of the package has, and that this process
    has not compiled yet, in order."""
    left: list[str] = []
    for name in calls:
        if name in _found:
            continue
        pack = of_package()
        address = _own(name) or (pack.find(name) if pack is not None else 0)
        if address:
            _found[name] = address
        else:
            left.append(name)
    return sorted(left)


def known(calls: Sequence[str]) -> bool:
    """Return whether all functions exist, also in packs of the cache; compile nothing."""
    left = missing(calls)
    pack = kept(left) if left else None
    if pack is not None:
        _found.update((name, pack.find(name)) for name in left)
    return not left or pack is not None


def functions(calls: Sequence[str]) -> list[int]:
    """Return the addresses of functions: in the machine, the pack of the package, or a pack compiled now."""
    left = missing(calls)
    if left:
        made = compiled(left)
        _found.update((name, made.find(name)) for name in left)
    return [_found[name] for name in calls]


def without_function(image: Image) -> frozenset[int]:
    """Return the numbers of the calls of an image that no pack has and that need not be compiled now."""
    if knobs.get("PTO_NATIVE_COMPILE") == "always" or known(image.calls):
        return frozenset()
    return frozenset(image.calls.index(name) for name in missing(image.calls))


def argument_types(function: Operation) -> list[Type]:
    """Return the types of the arguments of a launch: a memref is passed as a view, as the frame has it."""
    types = (a.type for a in function.regions[0].blocks[0].args)
    return [ViewType(t.elem, t.dims) if isinstance(t, MemRefType) else t for t in types]


class MachineProgram:
    """An image with the functions of its calls. It keeps the memory alive that the machine reads.

    Calls that no pack has are compiled, or, if the operations of the calls are given, performed by executors
    (`generic`).
    """

    def __init__(
        self,
        image: Image,
        profile: Profile,
        made: Sequence[MachineCode] = (),
        origins: Origins | None = None,
        lends: bool = True,
    ) -> None:
        """`made` are its codes if they are machine code, `origins` the operations of its calls. With `lends`,
        a tile may borrow the memory of its source if the image says that the tile is only read."""
        self._calls, self._lends = image.calls, lends
        self.generic: GenericCalls | None = None
        self._compilation: threading.Thread | None = None
        self._raised: Callable[[str], BaseException | None] | None = None
        #: A call without a function may update global memory, which others may update at the same time.
        self.updates = False
        kinds = (ctypes.c_uint8 * (image_format.CALL + len(image.calls)))(
            *range(image_format.CALL), *map(kind, image.calls)
        )
        self._kept: list[object] = [kinds]
        codes = (MachineCode * len(image.codes))(*(made or map(self._read, image.codes)))
        self._kept.append(codes)
        wanted = without_function(image) if origins is not None else frozenset[int]()
        if wanted and origins is not None:
            self._perform(wanted, image, profile, origins, [code.words for code in codes])
        if self.generic is None:
            found = functions(image.calls)
        else:
            rest = iter(functions([name for n, name in enumerate(image.calls) if n not in wanted]))
            found = [self.generic.function if n in wanted else next(rest) for n in range(len(image.calls))]
        self._functions = (ctypes.c_void_p * max(1, len(found)))(*self._for_loans(found))
        program = self._program = _Program()
        program.target.isa = ISAS.index(profile.isa)
        program.target.left_by_columns = profile.left_blayout == "col_major"
        program.target.capacity[:] = [profile.capacity[loc] for loc in MEMORIES]
        program.functions = ctypes.addressof(self._functions)
        program.codes, program.code_count = ctypes.addressof(codes), len(image.codes)
        program.kinds = ctypes.addressof(kinds)

    def _for_loans(self, found: Sequence[int]) -> Sequence[int]:
        """Replace the calls that lend memory if the program does not lend."""
        if self._lends:
            return found
        return [_own(_STAYS[n]) if n in _STAYS else at for n, at in zip(self._calls, found, strict=True)]

    def _read(self, code: image_format.ImageCode) -> MachineCode:
        """Return a code in the form for the machine."""
        words = (ctypes.c_uint32 * len(code.words))(*code.words)
        frame = ctypes.create_string_buffer(code.frame, len(code.frame) or 1)
        arguments = (ctypes.c_uint32 * max(1, 2 * len(code.arguments)))(
            *(n for a in code.arguments for n in a)
        )
        self._kept += [words, frame, arguments]
        return MachineCode(
            ctypes.addressof(words), ctypes.addressof(frame), ctypes.addressof(arguments), len(code.frame),
            len(code.arguments), image_format.KINDS.index(code.kind),
        )  # fmt: skip

    def _perform(
        self,
        wanted: Set[int],
        image: Image,
        profile: Profile,
        origins: Origins,
        starts: Sequence[int],
    ) -> None:
        """Let executors perform calls, by their numbers, if they can perform all of them; `starts` are the
        addresses of the words of each code."""
        from .generic import GenericCalls, Unreadable, raised  # most programs do without these

        chosen = {
            (start + 4 * (at + 1), number): origin
            for start, code, calls in zip(starts, image.codes, origins, strict=True)
            for at, origin in calls.items()
            if (number := image_format.call_of(code.words[at])) in wanted
        }
        if {number for _, number in chosen} != wanted:
            return
        try:
            performed = {at: o for (at, _), o in chosen.items()}
            self.generic = GenericCalls(self, profile, performed, self._compile_aside, ENOUGH)
        except Unreadable:
            return
        self._raised = raised
        self.updates = any(updates_memory(origin.op, image.calls) for origin in chosen.values())

    def compile(self) -> None:
        """Compile the calls that no pack has; raise `DiagnosticError` if that fails."""
        if self.generic is not None:
            if self._compilation is not None:
                self._compilation.join()
            self._functions[:] = self._for_loans(functions(self._calls))
            self.generic = None

    def _compile_aside(self) -> None:
        """Compile the calls that no pack has in another thread. The launch under way calls the functions as
        soon as they exist: the machine reads their addresses at every call."""
        if knobs.get("PTO_NATIVE_COMPILE") != "auto":
            return

        def work() -> None:
            with suppress(DiagnosticError):  # executors go on; the next launch reports it
                self._functions[:] = self._for_loans(functions(self._calls))

        self._compilation = threading.Thread(target=work, name="pto-compile")
        self._compilation.start()

    def compile_if_slow(self) -> None:
        """Compile the calls that no pack has, if they have taken long and there is a compiler."""
        found = self.generic
        if found is None or found.spent < ENOUGH or knobs.get("PTO_NATIVE_COMPILE") != "auto":
            return
        try:
            self.compile()
        except DiagnosticError as e:
            if any(d.code != "PTO-E2401" for d in e.diagnostics):
                raise
            found.spent = float("-inf")  # without a compiler, do not try again

    def raised(self, done: LaunchOutcome) -> BaseException | None:
        """Return the exception of a call that ended a launch."""
        return self._raised(done.text) if self._raised is not None else None

    @property
    def address(self) -> int:
        return ctypes.addressof(self._program)
