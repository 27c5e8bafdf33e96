"""A kernel of machine code: its arguments, one launch, and the diagnostics of the launch.

A compiling engine makes the library and gives the symbol to call. A launch gives only results and run-time
errors: sanitizers, schedules and pictures need the reference engine.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ...diag import Diagnostic, DiagnosticError, Span
from ...ir.assumptions import assumptions_of
from ...ir.core import Operation
from ...ir.facts import may_fail, may_repeat
from ...ir.types import Type, ViewType
from ...verifier import verify_flags
from ..binding import Binding, Windows, bound
from ..entry import DEALT, SPMD, Launchable, check_options
from ..memory import DealtPointer, GlobalMemory, Pointer
from ..result import LaunchResult, sound
from . import bounds
from .arguments import LaunchMemory, word
from .library import INTERRUPTED, STUCK, LaunchOutcome, Library, SeparateRank
from .quick import outcome, quick

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..options import LaunchOptions
    from ..ranks import World

_CODE = re.compile(
    r"^(?:\[PTO\]\s*)?\[(?P<code>(?:PTO-E|[A-Z]{2}-)\d{4}|[A-Z]\d{3})\]\s*(?P<text>.*?)"
    r"(?:; fix: (?P<fix>.*?))?(?P<core> \((?:rank|block|AIC|AIV)[^()]*\))?$",
    re.DOTALL,
)


class CompiledKernel(Launchable):
    """A kernel in a shared library. Subclasses call `_ready` in their constructors."""

    #: Static findings about its flags; flags have no effect in this engine.
    findings: list[Diagnostic]

    def _ready(
        self, library: Library, symbol: str, function: str, types: Sequence[Type], program: int = 0
    ) -> None:
        """Set the library, the symbol to call, and the function whose arguments all cores get; `types` are
        the types of these arguments. `program` is the address of a program, if the library executes programs.
        """
        self._program = program
        self._library = library
        self._symbol = symbol
        self._longest = function
        self._types = types
        # a launch has to check the assumptions of a program
        self._quick = None if assumptions_of(self.functions) else quick(self, library, symbol, program)

    def __call__(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        if self._quick is None or options or self.findings:
            return super().__call__(*args, **options)
        done = self._quick.call(args, 1, 1)
        if done == 0:
            return LaunchResult(self.engine)
        return super().__call__(*args) if done is None else sound(self._result(outcome(done), args))

    def run(
        self,
        *args: Any,
        blocks: int = 1,
        subblocks: int | None = None,
        threads: int = 1,
        out: TextIO | None = None,
        progress: Any = None,
        timeout: float | None = None,
        max_steps: int | None = None,
        ranks: World | None = None,
        processes: bool = False,
        **others: Any,
    ) -> LaunchResult:
        """Run one launch on `blocks` blocks, shared by `threads` host threads. With `ranks` (see `World.run`)
        every rank has that many blocks, and `args` has a list of arguments for each rank. With `processes`,
        or if another launcher started the ranks, each rank is a process.

        `subblocks` is the number of vector cores of a mixed kernel. `out` receives the output of the program.
        If the engine can end a launch, `timeout` limits its seconds, and `max_steps` the loop iterations of a
        core. Options of other engines are refused; if no engine was named, another engine runs the launch.
        All engines accept `progress`; this one ignores it.
        """
        named = (subblocks, out, timeout, max_steps, ranks)
        processes = processes or (ranks is not None and ranks.member is not None)
        if processes:
            others["processes"] = True
        plain = all(value is None for value in named) and not others
        if self._quick is not None and plain:
            if type(blocks) is int and type(threads) is int and blocks >= 1 and 1 <= threads <= 256:
                done = self._quick.call(args, blocks, threads)
                if done is not None:
                    return self._result(outcome(done), args)
        elsewhere = self.other(others)
        if elsewhere is not None:
            return elsewhere.run(
                *args, blocks=blocks, subblocks=subblocks, out=out, progress=progress, timeout=timeout,
                max_steps=max_steps, ranks=ranks, **others,
            )  # fmt: skip
        check_options(blocks, subblocks, None, max_steps, others.get("memory_map", False), timeout)
        if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 256:
            raise ValueError(f"expected a whole number from 1 to 256 for threads, got {threads!r}")
        self.refuse({**others, "timeout": timeout, "max_steps": max_steps})
        if threads > 1 and ranks is not None and ranks.member is not None and ranks.member.far is not None:
            raise ValueError(f"expected one thread for each rank on several machines, got threads={threads}")
        if processes and ranks is None:
            raise ValueError("cannot start processes without ranks: give ranks, too")
        result = LaunchResult(self.engine)
        result.diagnostics += self.findings
        gm = GlobalMemory()
        bindings = bound(args, gm, ranks, ranks.address if ranks is not None else 0, self._binding, blocks)
        kept = LaunchMemory(gm, ranks if processes else None)
        try:
            problem = self._launch(
                bindings, kept, ranks, processes, blocks, subblocks or self.subblocks, threads,
                out or sys.stdout, timeout or 0, max_steps or 0,
            )  # fmt: skip
        finally:
            kept.bring_back()
            for binding in bindings:
                binding.write_back()
        if problem is None:
            problem = kept.changed(self.span())
        if problem is not None:
            result.diagnostics.append(problem)
        return result

    def _result(self, done: LaunchOutcome, args: tuple[object, ...]) -> LaunchResult:
        """Return the result of a quick launch; bind its arguments only for the message of an error."""
        result = LaunchResult(self.engine)
        if self.findings:
            result.diagnostics += self.findings
        if done.status:
            self._check_interrupted(done)
            gm = GlobalMemory()
            binding = self._binding(gm, None, 0)
            binding.bind(args)
            kept = LaunchMemory(gm)
            for value in binding.values[self._longest]:
                if isinstance(value, Pointer):
                    kept.word(value)
            result.diagnostics.append(self._problem(self._marked(done), kept, binding))
        return result

    def _binding(self, gm: GlobalMemory, windows: Windows | None, rank: int) -> Binding:
        return Binding(self, gm, windows, rank)

    def _launch(
        self, bindings: list[Binding], kept: LaunchMemory, ranks: World | None, processes: bool, blocks: int,
        subblocks: int, threads: int, out: TextIO, limit: float, steps: int,
    ) -> Diagnostic | None:  # fmt: skip
        words = [
            word(t, v)
            if isinstance(v, int | float | str)
            else kept.view(v, owner)
            if isinstance(t, ViewType)
            else kept.word(v, owner)
            for owner, binding in enumerate(bindings, 0 if ranks is None else 1)
            for t, v in zip(self._types, binding.values[self._longest], strict=True)
        ]
        special = self._special(bindings[0])

        def call(write: Callable[[str], object], alone: SeparateRank | None = None) -> LaunchOutcome:
            return self._library.call(
                self._symbol, words, blocks, subblocks, threads, special, write, kept.arrays, self._program,
                limit, steps, 0 if ranks is None else len(bindings), alone,
            )  # fmt: skip

        if processes:
            from .processes import joined, launched

            if ranks is not None and ranks.member is not None:
                done = joined(call, ranks, out.write)
                kept.gather(ranks.member)
            else:
                done = launched(call, len(bindings), out.write)
        else:
            done = call(out.write)
        self._check_interrupted(done)
        return self._problem(self._marked(done), kept, bindings[done.rank]) if done.status else None

    def _check_interrupted(self, done: LaunchOutcome) -> None:
        if done.status == INTERRUPTED:
            place, _ = self._place(self._marked(done))
            raise KeyboardInterrupt(f"at {place.source.name}:{place.line}" if place is not None else "")

    def _special(self, binding: Binding) -> bytes:
        """Return for each argument its kind (see `special` of `Library.call`). A program of the virtual
        machine gets them once for each of its codes, of which it has at most two."""
        return special_words(binding.values[self._longest]) * (2 if self._program else 1)

    def _marked(self, done: LaunchOutcome) -> LaunchOutcome:
        """Return the outcome of a launch with a mark of the module."""
        return done

    def _problem(self, done: LaunchOutcome, kept: LaunchMemory, binding: Binding) -> Diagnostic:
        """Return the diagnostic of a failed launch, at the operation where it ended."""
        text = done.text
        if done.status == STUCK:
            waits = [line.split("\t", 1) for line in text.splitlines()]
            (who, what), *rest = waits
            where = f" ({who})" if who else ""
            d = Diagnostic(
                "PTO-E2104", f"the program is stuck: waits for {what}{where}", self._place(done)[0]
            )
            d.help = "no instruction ends this wait: add one on every path, before the wait"
            d.notes.extend((f"{who}: waits for {what}" if who else f"and {what}", None) for who, what in rest)
            return d
        m = _CODE.match(text)
        code, message = (m["code"], m["text"] + (m["core"] or "")) if m else ("PTO-E2102", text)
        if len(done.touched):
            return bounds.problem(self, done, message, kept.spans(binding), self.span())
        place, name = self._place(done)
        if name and not message.lower().startswith(name):
            message = f"{name}: {message}"
        return Diagnostic(code, message, place, help=(m["fix"] or "") if m else "")

    def _place(self, done: LaunchOutcome) -> tuple[Span | None, str]:
        """Return the location and name of the operation where a launch ended; else those of the function."""
        if done.mark >= 0:
            for f in self.module.functions:
                for op in f.walk():
                    if (may_fail(op) or may_repeat(op)) and self.module.mark(op) == done.mark:
                        return op.loc, op.row.name if op.row else ""
        return self.span(), ""

    def span(self) -> Span | None:
        """Return the first line of the function."""
        loc = self.functions[0].loc
        return loc.head if loc is not None else None


def special_words(values: Sequence[object]) -> bytes:
    return bytes(
        SPMD.index(v) + 1 if isinstance(v, str) else DEALT if isinstance(v, DealtPointer) else 0
        for v in values
    )


def most_arguments(kernel: Launchable) -> Operation:
    """Return the function with most arguments: all cores get the same words."""
    return max(kernel.functions, key=lambda f: len(f.regions[0].blocks[0].args))


def flag_findings(kernel: Launchable) -> list[Diagnostic]:
    """Return findings about flags as warnings; raise those that would always block the reference engine."""
    found = verify_flags(kernel.module, kernel.profile, kernel.functions)
    stuck = [d for d in found if d.severity == "error" and d.code == "PTO-E0803"]
    if stuck:
        raise DiagnosticError(stuck)
    for d in found:
        d.severity = "warning"
    return found
