"""A built kernel: a shared library and the C interface of native/include/pto/launch.hpp."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...cache import Built, opened
from ...isa.machine import SUBBLOCKS

_ERROR_SIZE = 8192


class LaunchRecord(ctypes.Structure):
    """`pto_launch` of launch.hpp."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("argc", ctypes.c_int32),
        ("args", ctypes.c_void_p),
        ("special", ctypes.c_char_p),
        ("blocks", ctypes.c_int32),
        ("subblocks", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("print", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("error_size", ctypes.c_uint64),
        ("arrays", ctypes.c_void_p),
        ("array_count", ctypes.c_int32),
        ("mark", ctypes.c_int32),
        ("touched", ctypes.c_uint64 * 2),
        ("program", ctypes.c_void_p),
        ("limit", ctypes.c_uint64),
        ("steps", ctypes.c_uint64),
        ("ranks", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("idle", ctypes.c_void_p),
        ("alone", ctypes.c_int32),
        ("far", ctypes.c_void_p),
    )


class Tracer(ctypes.Structure):
    """`pto_tracer` of launch.h: the receiver of trace events, and the return addresses of a failed core."""

    _fields_ = (("told", ctypes.c_void_p), ("frames", ctypes.c_uint64 * 12))


class ArrayArgument(ctypes.Structure):
    """`pto_array` of launch.hpp: a piece of global memory."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("owner", ctypes.c_int32),
    )


class ViewArgument(ctypes.Structure):
    """`pto_view` of launch.hpp: an argument that is a GlobalTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * 5),
        ("stride", ctypes.c_int64 * 5),
    )


_PRINT = ctypes.CFUNCTYPE(None, ctypes.c_char_p)

#: The status of a launch.
DONE, FAILED, STUCK, INTERRUPTED = 0, 1, 2, 3


class LaunchOutcome(NamedTuple):
    """The status of a launch, and its message."""

    status: int
    text: str
    #: The mark of the failed core, which identifies an operation of the source; -1 for none.
    mark: int = -1
    #: The addresses of an access outside the arrays of the launch; empty for none.
    touched: range = range(0)
    #: The rank of the failed core.
    rank: int = 0


class SeparateRank(NamedTuple):
    """A rank with the other ranks in other processes, and the address of the function that returns whether
    those can still end a wait."""

    rank: int
    idle: int
    #: The access to windows on other machines (`pto_far` of launch.h), if there are any.
    far: int = 0


class _Link(ctypes.Structure):
    """The beginning of `link_map`, which debuggers read: the address of a library, and its file name."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_void_p))


_names = itertools.count(1)
#: Time and size of the loaded files, by device and inode.
_loaded: dict[tuple[int, int], tuple[int, int]] = {}


@contextlib.contextmanager
def name_to_load(path: str, check: Callable[[bytes], object] | None = None) -> Iterator[str]:
    """Provide a name for dlopen that denotes the present file at a path, and never another file. `check`
    raises for contents that must not be loaded, because loading a library runs its constructors.

    dlopen returns the same library for a name that it has seen before, and numbers of descriptors are reused.
    So every name has a different spelling: `/` and `/.` are the digits of a counter.
    """
    file = opened(path)
    try:
        status = os.fstat(file)
        stamp = status.st_mtime_ns, status.st_size
        changed = _loaded.setdefault((status.st_dev, status.st_ino), stamp) != stamp
        if check is not None or changed:
            with open(file, "rb", closefd=False) as f:
                data = f.read()
            if check is not None:
                check(data)
            if changed:  # for an overwritten file, dlopen would return the library that it has loaded
                with open(os.memfd_create("pto-library"), "wb") as f:
                    f.write(data)
                    f.flush()
                    os.dup2(f.fileno(), file, inheritable=False)
        digits = f"{next(_names):b}".replace("0", "/").replace("1", "/.")
        yield f"/proc/{os.getpid()}/fd{digits}/{file}"
    finally:
        os.close(file)


def load(path: str, check: Callable[[bytes], object] | None = None) -> ctypes.CDLL:
    """Load a library (see `name_to_load`); raise OSError if that fails."""
    with name_to_load(path, check) as name:
        try:
            found = ctypes.CDLL(name)
        except OSError as e:
            raise OSError(str(e).removeprefix(f"{name}: ")) from None
        link = _Link.from_address(found._handle)
        if ctypes.string_at(link.name) == name.encode():  # not loaded before
            copy = ctypes.CDLL(None).strdup
            copy.restype = ctypes.c_void_p
            link.name = copy(os.fsencode(path))  # for debuggers, because the descriptor will be closed
        return found


class Library:
    """The entry points of a shared library, by their symbols (`launcher.Entry`)."""

    def __init__(self, path: str, check: Callable[[bytes], object] | None = None) -> None:
        self.path = os.path.abspath(path)
        self._loaded = load(self.path, check)

    def text(self, symbol: str) -> str | None:
        """Return the text of a function without arguments; None if there is no such function."""
        try:
            function = getattr(self._loaded, symbol)
        except AttributeError:
            return None
        function.restype = ctypes.c_char_p
        return function().decode("utf-8", "replace")

    def raw(self, symbol: str) -> Any:
        """Return a function as a ctypes object."""
        return getattr(self._loaded, symbol)

    def call(
        self,
        symbol: str,
        words: Sequence[int],
        blocks: int = 1,
        subblocks: int = SUBBLOCKS,
        threads: int = 1,
        special: bytes | None = None,
        write: Callable[[str], object] | None = None,
        arrays: Sequence[tuple[int, int, bytes, int]] | None = None,
        program: int = 0,
        limit: float = 0,
        steps: int = 0,
        ranks: int = 0,
        alone: SeparateRank | None = None,
    ) -> LaunchOutcome:
        """Call an entry point with 64-bit words; with `ranks`, the words of all ranks, rank by rank. One rank
        may be `alone` in this process.

        `special` has a byte per word: 1, 2 and 3 mean the block, the number of blocks and the sub-block of
        the core, 0 the word itself. `write` receives the output of the kernel. `arrays` are address, size,
        name and owner (see launch.h) of all arrays: an access outside of them fails. `program` is the address
        of a program for a library that is a virtual machine. Such a library ends a launch after `limit`
        seconds, after `steps` loop iterations of a core, and on an interrupt.
        """
        function = getattr(self._loaded, symbol)
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        array = (ctypes.c_uint64 * max(1, len(words)))(*words)
        launch = LaunchRecord()
        launch.size = ctypes.sizeof(LaunchRecord)
        launch.argc, launch.ranks = len(words) // max(1, ranks), ranks
        launch.args = ctypes.addressof(array)
        launch.special = special
        launch.blocks, launch.subblocks, launch.threads = blocks, subblocks, threads
        printer = None
        if write is not None:
            printer = _PRINT(lambda text: _write(write, text))
            launch.print = ctypes.cast(printer, ctypes.c_void_p)
        launch.error, launch.error_size = ctypes.addressof(error), _ERROR_SIZE
        launch.mark = -1
        launch.program = program
        launch.limit, launch.steps = round(limit * 1e9), steps
        if alone is not None:
            launch.alone, launch.rank, launch.idle, launch.far = 1, *alone
        table = (ArrayArgument * max(1, len(arrays or ())))(*arrays or ())
        if arrays is not None:
            launch.arrays, launch.array_count = ctypes.addressof(table), len(arrays)
        try:
            status = int(function(ctypes.byref(launch)))
        except KeyboardInterrupt:  # raised after the function returned: the mark is known
            if not launch.status:
                raise
            status = INTERRUPTED
        text = error.value.decode("utf-8", "replace")
        return LaunchOutcome(status, text, launch.mark, range(*launch.touched), launch.rank)


def loaded(build: Callable[[], Built]) -> tuple[Built, Library]:
    """Build and load a library. If the cache was cleared between the two, build again."""
    built = build()
    try:
        return built, Library(built.path)
    except OSError:
        if not built.cached:
            raise
    built = build()
    return built, Library(built.path)


def _write(write: Callable[[str], object], text: bytes) -> None:
    write(text.decode("utf-8", "replace"))
