"""Checked launches at the speed of the machine: screen, then oracle.

A checked launch runs a checked image (`checked_image`), whose screens may suspect a correct program, but
suspect every program that the sanitizers report. Without a suspicion nothing is wrong. Otherwise the arrays
get their contents back, and the reference engine repeats the launch and makes the findings. So the findings
are always those of the reference engine.
"""

from __future__ import annotations

import ctypes
import io
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.cpp.unit import Unit
from ...diag import DiagnosticError
from ...driver import Options, lowered
from ...image import format as image_format
from ...image.generic import Origins
from ...ir.core import Operation
from ...isa.machine import PIPES
from ...isa.profiles import Profile
from ..reference.kernel import ReferenceKernel
from ..registry import refusal
from ..result import LaunchResult
from ..sanitize import OF_GRAPHS, parse_names
from ..sanitize.clock import ordered
from . import generic, images
from .accesses import SiteAccesses
from .checked_image import CheckedLowering, Unscreened
from .kernel import NativeKernel
from .machine import MachineCode, MachineProgram, library

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..options import LaunchOptions

#: `Check` of screen.hpp.
_CHECKS = {"race": 1, "undef": 2, "oob": 4, "overlap": 8, "sync": 16, "nan": 32}
#: Options with which a launch goes to the reference engine at once.
_ELSEWHERE = ("ranks", "timeout", "max_steps")


#: `Touched` of screen.hpp.
TOUCHED = np.dtype([(name, "<u8") for name in ("low", "rows", "width", "pitch")]
                   + [(name, "<u4") for name in ("site", "block", "write", "reserved")])  # fmt: skip
#: Gets the accesses of a launch to global memory, as `TOUCHED`, with the operations of their sites; returns
#: whether nothing is wrong with them.
Follows = Callable[[Any, Sequence[Operation]], bool]


class CheckedProgram(MachineProgram):
    """A checked image that is ready to run, with the state of its screens."""

    def __init__(
        self,
        image: image_format.Image,
        profile: Profile,
        origins: Origins,
        codes: Sequence[dict[int, SiteAccesses]],
        cores: int,
    ) -> None:
        """`codes` are the instructions of each code, by their words; `cores` are those of a block."""
        self._starts: list[int] = []
        super().__init__(image, profile, origins=origins)
        placed = {
            start + 4 * (at + 1): site
            for start, sites in zip(self._starts, codes, strict=True)
            for at, site in sites.items()
        }
        self._accesses = generic.GenericCalls(self, profile, placed)
        for site in placed.values():
            site.calls = self._accesses
        self.ops = [site.op for site in placed.values()]
        self._raised = generic.raised
        make = library().raw("pto_screen_new")
        make.restype = ctypes.c_void_p
        make.argtypes = (ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_bool,
                         ctypes.c_uint32)  # fmt: skip
        pipes = sum(1 << n for n, pipe in enumerate(PIPES) if ordered(profile.isa, pipe))
        self.screen: int = make(len(placed), pipes, profile.align, profile.behaviour.late_stores, cores)
        self._start = library().raw("pto_screen_start")
        self._start.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_bool)
        self._touched = library().raw("pto_screen_touched")
        self._touched.restype = ctypes.c_void_p
        self._touched.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
        self._stop = library().raw("pto_screen_stop")
        self._stop.restype = ctypes.c_bool
        free = library().raw("pto_screen_free")
        free.argtypes = (ctypes.c_void_p,)
        weakref.finalize(self, free, self.screen).atexit = False

    def _read(self, code: image_format.ImageCode) -> MachineCode:
        made = super()._read(code)
        self._starts.append(made.words)
        return made

    def start(self, names: frozenset[str], keeps: bool) -> None:
        self._start(self.screen, sum(_CHECKS[name] for name in names), keeps)

    def stop(self) -> bool:
        """End a launch; return True if a signal between cores is left."""
        return bool(self._stop())

    def touched(self) -> Any:
        """Return the accesses of the last launch to global memory, as `TOUCHED`."""
        count = ctypes.c_uint64()
        at = self._touched(self.screen, count)
        data = ctypes.string_at(at, count.value * TOUCHED.itemsize) if count.value else b""
        return np.frombuffer(data, TOUCHED)


class CheckedKernel(NativeKernel):
    """The checked image of a kernel on the machine; raises `Unscreened` for a program that the screens cannot
    follow."""

    def __init__(self, of: ReferenceKernel) -> None:
        self.__dict__.update(of.__dict__)
        self.engine, self.others, self.findings = NativeKernel.engine, {}, []
        done = lowered(of.prepared, of.profile, Options(check="none", passes="always")).sound()
        made: list[CheckedLowering] = []

        def lower(unit: Unit, kind: str, calls: dict[str, int]) -> CheckedLowering:
            made.append(CheckedLowering(unit, kind, calls, sum(len(code.sites) for code in made)))
            return made[-1]

        origins: Origins = []
        self.image = images.image_of(of.name, of.module, of.functions, done, origins, lower)
        self._made = self._checked = CheckedProgram(
            self.image, of.profile, origins, [code.sites for code in made], len(of.roles)
        )
        self._launched()
        self.prints = any(op.row is not None and op.row.effect == "io" for op in done.module.walk())
        #: Whether the array of each argument may change.
        changes = [[code.written is None or v in code.written for v in code.entry_arguments] for code in made]
        known = len({len(of_code) for of_code in changes}) == 1  # halves of a kernel may differ
        self._changes = [any(of_all) for of_all in zip(*changes, strict=True)] if known else []

    def changed(self, args: Sequence[object]) -> Iterator[tuple[int, Any]]:
        """Yield the arguments whose arrays may change, with their positions."""
        known = len(args) == len(self._changes)  # else a launch adds arguments, or refuses them
        for n, value in enumerate(args):
            if isinstance(value, np.ndarray) and (not known or self._changes[n]):
                yield n, value

    def screened(
        self, args: Sequence[object], names: frozenset[str], follows: Follows | None, options: Any
    ) -> tuple[LaunchResult, str]:
        """Return the result of a launch, and the suspicion; empty if there is none."""
        left = False
        with generic.launching():
            self._checked.start(names, follows is not None)
            try:
                result = self.run(*args, threads=1, **options)
            finally:
                left = self._checked.stop()
        if result.diagnostics:
            return result, result.diagnostics[0].message
        if left:
            return result, "a semaphore that is left raised"
        touched = follows is None or follows(self._checked.touched(), self._checked.ops)
        return result, "" if touched else "global memory"


class CheckedLaunches:
    """Checked launches of one kernel."""

    def __init__(self, oracle: ReferenceKernel) -> None:
        self._lock = threading.Lock()
        self.reference = oracle
        self._copies: dict[int, Any] = {}
        self.kernel: CheckedKernel | None = None
        #: The reason why the reference engine ran the last launch; empty if the screens decided.
        self.reason = ""
        self._never = ""
        try:
            self.kernel = CheckedKernel(self.reference)
        except Unscreened as why:
            self._never = str(why)
        except DiagnosticError as e:
            self._never = e.diagnostics[0].message

    def run(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        names = parse_names(options.get("sanitize", ())) - {OF_GRAPHS}
        ranks = options.get("ranks")
        if options.get("processes") or (ranks is not None and ranks.member is not None):
            what = "sanitize for ranks in several processes"
            raise DiagnosticError([refusal("native", [what], "leave out one of the two options")])
        with self._lock:
            self.reason = self._never or self._beyond(args, names, options)
            done = None if self.reason else self._screened(args, names, None, options)
        if done is None:
            options.pop("threads", None)
            return self.reference.run(*args, **options)
        return done

    def followed(
        self, args: Sequence[object], follows: Follows, **options: Unpack[LaunchOptions]
    ) -> LaunchResult | None:
        """Return the result of a launch without suspicions whose accesses to global memory `follows` accepts;
        None if there is none. The arrays are then as before."""
        names = parse_names(options.get("sanitize", ())) - {OF_GRAPHS}
        with self._lock:
            self.reason = self._never or self._beyond(args, names, options)
            return None if self.reason else self._screened(args, names, follows, options)

    def _screened(
        self,
        args: Sequence[object],
        names: frozenset[str],
        follows: Follows | None,
        options: LaunchOptions,
    ) -> LaunchResult | None:
        """Return the result of a launch without suspicions; None after restoring the arrays."""
        kernel = self.kernel
        assert kernel is not None
        kept = [(array, self._copy(n, array)) for n, array in kernel.changed(args)]
        given: dict[str, Any] = {n: v for n, v in options.items() if n in ("blocks", "subblocks")}
        out = given["out"] = io.StringIO() if kernel.prints else None
        result, self.reason = kernel.screened(args, names, follows, given)
        if not self.reason:
            result.checked = names
            if out is not None:
                (options.get("out") or sys.stdout).write(out.getvalue())
            return result
        for array, before in kept:
            if array.flags.writeable:
                array[...] = before
        return None

    def _copy(self, position: int, array: Any) -> Any:
        """Return a copy of an array, in the memory of the copy of the last launch if it fits."""
        kept = self._copies.get(position)
        if kept is None or kept.shape != array.shape or kept.dtype != array.dtype:
            kept = self._copies[position] = np.empty_like(array)
        np.copyto(kept, array)
        return kept

    def _beyond(self, args: Sequence[object], names: frozenset[str], options: LaunchOptions) -> str:
        """Return why a launch needs the reference engine; empty if it does not."""
        if not _CHECKS.keys() >= names:
            return "sanitizers without a screen"
        for name in _ELSEWHERE:
            if options.get(name):
                return name
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        if not all(isinstance(a, np.ndarray | int | float | np.generic) for a in args):
            return "other arguments"
        if not all(a.flags.c_contiguous for a in arrays):
            return "arrays with gaps"
        return ""
