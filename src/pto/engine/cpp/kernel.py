"""A kernel compiled to machine code by the system's C++ compiler: `pto.kernel(module, engine="cpp")`.

The program is lowered by the passes, emitted as C++, compiled against our headers and called through ctypes.
Arguments are bound as for the reference engine. Only the results and run-time errors of a launch are seen:
sanitizers, schedules and pictures need the reference engine.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

from ...diag import Diagnostic, DiagnosticError, Span, has_errors
from ...ir.core import Module
from ...ir.types import ScalarType, ViewType
from ...isa.profiles import Profile
from ...verify import verify_flags
from ..binding import Binding
from ..elements import encode
from ..entry import SPMD, Launchable, Run
from ..memory import GlobalMemory, Pointer, View
from . import bounds, build, messages
from .compiler import arch_flags
from .launcher import Entry, about, single
from .library import STUCK, Library, Outcome, ViewArgument

_BODY = "kernel.inc"
_CODE = re.compile(r"^(?:\[PTO\]\s*)?\[(?P<code>(?:PTO-E|[A-Z]{2}-)\d{4})\]\s*(?P<text>.*)", re.DOTALL)


class CppKernel(Launchable):
    """A kernel on engine `cpp`; compiled when it is made."""

    def __init__(
        self,
        module: Module,
        entry: str | None,
        target: str | Profile | None,
        check: bool,
        checks: bool = False,
    ) -> None:
        super().__init__(module, entry, target, check)
        #: What is wrong with its flags, as far as the text shows: nothing waits for them here.
        self.findings = self._flags() if check else []
        #: The emitted C++.
        self.source = emitted(module, self.profile)
        #: The shared library, and whether it was built before.
        self.built = self._build(checks)
        try:
            self._library = Library(self.built.path)
        except OSError:  # something else in its place in the cache
            if not self.built.cached:
                raise
            os.unlink(self.built.path)
            self.built = self._build(checks)
            self._library = Library(self.built.path)
        self._symbol = entry_of(self).symbol
        #: The function with most arguments: all cores are given the same words.
        longest = max(self.functions, key=lambda f: len(f.regions[0].blocks[0].args))
        self._longest = str(longest.attr("sym_name"))
        self._types = [a.type for a in longest.regions[0].blocks[0].args]

    def _flags(self) -> list[Diagnostic]:
        """Findings about flags as warnings; where the reference engine would always be stuck, an error."""
        found = verify_flags(self.module, self.profile, self.functions)
        stuck = [d for d in found if d.severity == "error" and d.code == "PTO-E0803"]
        if stuck:
            raise DiagnosticError(stuck)
        for d in found:
            d.severity = "warning"
        return found

    def _build(self, checks: bool) -> build.Built:
        longest = max(self.functions, key=lambda f: len(f.regions[0].blocks[0].args))
        args = longest.regions[0].blocks[0].args
        entry = entry_of(self).replace(
            args=tuple(a.name for a in args), types=tuple(str(a.type) for a in args), subblocks=self.subblocks
        )
        described = about([entry], self.profile.name, checks)
        unit = build.Unit("kernel.cpp", single([entry], _BODY, self.source, described))
        flags = [*arch_flags(self.profile), *(["-DPTO_CHECKED"] if checks else [])]
        built = build.cached([unit], [build.Unit(_BODY, self.source)], flags)
        if not built.ok:  # once more, so that the compiler names lines of the program
            lines = build.Unit(_BODY, emitted(self.module, self.profile, lines=True))
            output = build.cached([unit], [lines], flags).output
            sources = {s.name: s for s in self.module.sources}
            raise DiagnosticError(messages.diagnostics(output, sources, exact=False))
        return built

    def run(
        self,
        *args: Any,
        blocks: int = 1,
        subblocks: int | None = None,
        threads: int = 1,
        out: TextIO | None = None,
        sanitize: str | Sequence[str] = (),
        schedule: int | None = None,
        shadow: str | None = None,
        memory_map: bool = False,
        max_steps: int | None = None,
        progress: Any = None,
    ) -> Run:
        """One launch on `blocks` blocks, which `threads` host threads share.

        `subblocks` is the number of vector cores of a mixed kernel; `out` receives what the program prints.
        The other options are those of the reference engine: they are refused, except `progress`, which has
        nothing to say here.
        """
        from ..launch import check_options

        check_options(blocks, subblocks, None, None, memory_map)
        if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 256:
            raise ValueError(f"threads is a whole number from 1 to 256, got {threads!r}")
        refuse(
            sanitize=sanitize, schedule=schedule, shadow=shadow, memory_map=memory_map, max_steps=max_steps
        )
        result = Run()
        result.diagnostics += self.findings
        gm = GlobalMemory()
        binding = self._binding(gm)
        problems = binding.bind(args)
        if problems:
            raise DiagnosticError(problems)
        kept = _Kept(gm)
        try:
            problem = self._launch(
                binding, kept, blocks, subblocks or self.subblocks, threads, out or sys.stdout
            )
        finally:
            binding.write_back()
        if problem is None:
            problem = kept.changed(self)
        if problem is not None:
            result.diagnostics.append(problem)
        return result

    def _binding(self, gm: GlobalMemory) -> Binding:
        return Binding(self, gm)

    def _launch(
        self, binding: Binding, kept: _Kept, blocks: int, subblocks: int, threads: int, out: TextIO
    ) -> Diagnostic | None:
        values = binding.values[self._longest]
        words = [
            _word(t, v)
            if isinstance(v, int | float | str)
            else kept.view(v)
            if isinstance(t, ViewType)
            else kept.word(v)
            for t, v in zip(self._types, values, strict=True)
        ]
        special = bytes(SPMD.index(v) + 1 if isinstance(v, str) else 0 for v in values)
        done = self._library.call(
            self._symbol, words, blocks, subblocks, threads, special, out.write, kept.arrays
        )
        return self._problem(done, kept, binding) if done.status else None

    def _problem(self, done: Outcome, kept: _Kept, binding: Binding) -> Diagnostic:
        """What a launch said, as a diagnostic at the function, or at the operation that left its array."""
        text = done.text
        if done.status == STUCK:
            waits = [line.split("\t", 1) for line in text.splitlines()]
            (who, what), *rest = waits
            where = f" ({who})" if who else ""
            d = Diagnostic("PTO-E2104", f"the program is stuck: waits for {what}{where}", self.span())
            d.help = "nobody does what is waited for: add it on every path, before the wait"
            d.notes.extend((f"{who}: waits for {what}" if who else f"and {what}", None) for who, what in rest)
            return d
        m = _CODE.match(text)
        code, message = (m["code"], m["text"]) if m else ("PTO-E2102", text)
        if len(done.touched):
            return bounds.problem(self, done, message, kept.spans(binding), self.span())
        return Diagnostic(code, message, self.span())

    def span(self) -> Span | None:
        """The line that begins the function."""
        loc = self.functions[0].loc
        return loc.head if loc is not None else None


def refuse(way_out: str = "use the reference engine for that", **options: Any) -> None:
    """Options that only the reference engine has, as an error that names them."""
    given = [
        name
        for name, value in options.items()
        if value is not None and value is not False and not (hasattr(value, "__len__") and not len(value))
    ]
    if given:
        names = ", ".join(given)
        raise DiagnosticError([
            Diagnostic("PTO-E2403", f"engine cpp has no {names}", help=way_out)
        ])  # fmt: skip


def emitted(module: Module, profile: Profile, lines: bool = False) -> str:
    """The C++ of a program, after the passes; with `lines` it names the lines of the program."""
    from ...codegen.cpp import emit
    from ...passes.pipeline import Options, compile

    ctx, problems = compile(module, profile, Options())
    if has_errors(problems):
        raise DiagnosticError([p for p in problems if p.severity == "error"])
    return emit(ctx.module, profile, line_directives=lines, index_type="int64_t", checked=True)


def entry_of(kernel: Launchable) -> Entry:
    """What the launcher of a kernel calls."""
    from ...codegen.cpp.spelling import identifier

    names = [identifier(str(f.attr("sym_name"))) for f in kernel.functions]
    if len(kernel.roles) > 1:
        return Entry(kernel.name, cube=names[0], vector=names[-1])
    kind = kernel.roles[0][0]
    return Entry(kernel.name).replace(**{kind: names[0]})


class _Kept:
    """The memory a launch sees: arrays themselves, or copies of those that must not change."""

    def __init__(self, gm: GlobalMemory) -> None:
        self.names = {id(b): b.name for b in gm.buffers}
        self.copies: list[tuple[str, Any, Any]] = []
        self._at: dict[int, int] = {}
        #: Address, bytes and name of every array.
        self.arrays: list[tuple[int, int, bytes]] = []
        self._views: list[ViewArgument] = []

    def word(self, value: Pointer | View) -> int:
        """The address of a bound array."""
        data = value.buffer.data
        found = self._at.get(id(value.buffer))
        if found is None:
            if not data.flags.writeable:
                copy = np.array(data)
                self.copies.append((value.buffer.name, data, copy))
                data = copy
            found = self._at[id(value.buffer)] = data.ctypes.data
            self.arrays.append((found, data.size, value.buffer.name.encode()))
        return found + value.offset

    def view(self, value: View) -> int:
        """The address of a description of a bound array."""
        shape, stride = value.dims5
        made = ViewArgument(self.word(value), shape, stride)
        self._views.append(made)
        return ctypes.addressof(made)

    def spans(self, binding: Binding) -> dict[str, list[tuple[str, int, int] | None]]:
        """Name, address and bytes of the array behind each argument, by function."""
        return {
            function: [
                (v.buffer.name, self._at[id(v.buffer)], v.buffer.data.size)
                if isinstance(v, Pointer | View)
                else None
                for v in values
            ]
            for function, values in binding.values.items()
        }

    def changed(self, kernel: CppKernel) -> Diagnostic | None:
        for name, original, copy in self.copies:
            if not np.array_equal(original, copy):
                return Diagnostic(
                    "PTO-E2102", f"writes to {name}, which was given as a read-only array", kernel.span()
                )
        return None


def _word(type: Any, value: int | float | str) -> int:
    """A scalar as a 64-bit word: an integer, or the bits of a float."""
    if isinstance(value, str):
        return 0  # the launch fills it in
    assert isinstance(type, ScalarType)
    if not type.is_float:
        return int(value) & (1 << 64) - 1
    name = str(type)
    if name in ("f32", "f64"):
        return int.from_bytes(struct.pack("<d" if name == "f64" else "<f", value), "little")
    return int(encode(name, np.array([value], np.float64))[0])
