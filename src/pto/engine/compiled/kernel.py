"""A kernel of machine code: its arguments, one launch, and what the launch came to as diagnostics.

An engine that compiles makes the library and says which symbol to call. Only the results and run-time errors
of a launch are seen: sanitizers, schedules and pictures need the reference engine.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from ...diag import Diagnostic, DiagnosticError, Span
from ...ir.core import Operation
from ...ir.facts import may_fail, may_repeat
from ...ir.types import ViewType
from ...verify import verify_flags
from ..binding import Binding, Windows, bound
from ..entry import DEALT, SPMD, Launchable, check_options
from ..memory import DealtPointer, GlobalMemory, Pointer
from ..result import LaunchResult, sound
from . import bounds
from .arguments import LaunchMemory, word
from .library import INTERRUPTED, STUCK, Alone, Library, Outcome
from .quick import outcome, quick

if TYPE_CHECKING:
    from ..ranks import World

_CODE = re.compile(
    r"^(?:\[PTO\]\s*)?\[(?P<code>(?:PTO-E|[A-Z]{2}-)\d{4}|[A-Z]\d{3})\]\s*(?P<text>.*?)"
    r"(?:; fix: (?P<fix>.*?))?(?P<core> \((?:rank|block|AIC|AIV)[^()]*\))?$",
    re.DOTALL,
)


class CompiledKernel(Launchable):
    """A kernel in a shared library. Who makes it calls `_ready`."""

    #: What is wrong with its flags, as far as the text shows: nothing waits for them here.
    findings: list[Diagnostic]

    def _ready(
        self, library: Library, symbol: str, function: str, types: list[Any], program: int = 0
    ) -> None:
        """The library, its symbol to call, and the function whose arguments, of these types, all cores are
        given; where the library executes programs, the address of one."""
        self._program = program
        self._library = library
        self._symbol = symbol
        self._longest = function
        self._types = types
        self._quick = quick(self, library, symbol, program)

    def __call__(self, *args: Any, **options: Any) -> LaunchResult:
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
        """One launch on `blocks` blocks, which `threads` host threads share. With `ranks` (see `World.run`)
        every rank has so many, and `args` are for each of them a list of arguments; with `processes` each
        rank is a process of its own, as it is where another launcher has started them.

        `subblocks` is the number of vector cores of a mixed kernel; `out` receives what the program prints.
        Where the engine can end a launch, `timeout` says after how many seconds it does so, and `max_steps`
        after how many repetitions of loops on one core. Options of other engines are refused, or where no
        engine was named, the launch is another's; `progress`, which every engine takes, has nothing to say
        here.
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
            raise ValueError(f"threads is a whole number from 1 to 256, got {threads!r}")
        self.refuse({**others, "timeout": timeout, "max_steps": max_steps})
        if threads > 1 and ranks is not None and ranks.member is not None and ranks.member.far is not None:
            raise ValueError(f"ranks on several machines have one thread each, got threads={threads}")
        if processes and ranks is None:
            raise ValueError("processes are those of ranks: give ranks too")
        result = LaunchResult(self.engine)
        result.diagnostics += self.findings
        gm = GlobalMemory()
        bindings = bound(args, gm, ranks, ranks.address if ranks is not None else 0, self._binding)
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

    def _result(self, done: Outcome, args: tuple[Any, ...]) -> LaunchResult:
        """What a quick launch came to; only where something went wrong it is known what it was given."""
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

        def call(write: Callable[[str], Any], alone: Alone | None = None) -> Outcome:
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

    def _check_interrupted(self, done: Outcome) -> None:
        if done.status == INTERRUPTED:
            place, _ = self._place(self._marked(done))
            raise KeyboardInterrupt(f"at {place.source.name}:{place.line}" if place is not None else "")

    def _special(self, binding: Binding) -> bytes:
        """By argument, what only the launch knows of a core: see `Library.call`. A program of the virtual
        machine has it for each of its codes, which are two at most."""
        return special_words(binding.values[self._longest]) * (2 if self._program else 1)

    def _marked(self, done: Outcome) -> Outcome:
        """What a launch came to, with the place that the module knows."""
        return done

    def _problem(self, done: Outcome, kept: LaunchMemory, binding: Binding) -> Diagnostic:
        """What a launch said, as a diagnostic at the operation that it ended at."""
        text = done.text
        if done.status == STUCK:
            waits = [line.split("\t", 1) for line in text.splitlines()]
            (who, what), *rest = waits
            where = f" ({who})" if who else ""
            d = Diagnostic(
                "PTO-E2104", f"the program is stuck: waits for {what}{where}", self._place(done)[0]
            )
            d.help = "nothing does what is waited for: add it on every path, before the wait"
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

    def _place(self, done: Outcome) -> tuple[Span | None, str]:
        """The operation that a launch ended at, and its name; the function where that is not known."""
        if done.mark >= 0:
            for f in self.module.functions:
                for op in f.walk():
                    if (may_fail(op) or may_repeat(op)) and self.module.mark(op) == done.mark:
                        return op.loc, op.row.name if op.row else ""
        return self.span(), ""

    def span(self) -> Span | None:
        """The line that begins the function."""
        loc = self.functions[0].loc
        return loc.head if loc is not None else None


def special_words(values: list[Any]) -> bytes:
    return bytes(
        SPMD.index(v) + 1 if isinstance(v, str) else DEALT if isinstance(v, DealtPointer) else 0
        for v in values
    )


def most_arguments(kernel: Launchable) -> Operation:
    """The function with most arguments: all cores are given the same words."""
    return max(kernel.functions, key=lambda f: len(f.regions[0].blocks[0].args))


def flag_findings(kernel: Launchable) -> list[Diagnostic]:
    """Findings about flags as warnings; where the reference engine would always be stuck, an error."""
    found = verify_flags(kernel.module, kernel.profile, kernel.functions)
    stuck = [d for d in found if d.severity == "error" and d.code == "PTO-E0803"]
    if stuck:
        raise DiagnosticError(stuck)
    for d in found:
        d.severity = "warning"
    return found
