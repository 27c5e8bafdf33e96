"""`pto tune`: search over compile-time parameters of a kernel, ranked by the cost model."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError, visible
from .common import FAILED, OK, CommandParser, add_diagnostics, add_target, show
from .terminal import Screen

if TYPE_CHECKING:
    from ..trials import Outcome

_EXAMPLES = """\
  pto tune k.pto --param ROWS=16..256*2 --param COLS=64,128 -- f32:1024x128 f32:1024x128
  pto tune k.py --param TILE=64,128,256 --param STAGES=1..4 --where 'TILE * STAGES <= 512' --plot tune.html
  pto tune k.pto --param ROWS=32,64,128 --write best.pto -- f32:1024x128 f32:1024x128

In a program, ${ROWS} is the value of a parameter, ${ROWS * 4} the value of an expression, and ${ROWS=64} sets
the value outside a search. Arguments can contain them, too (f32:${ROWS}x128).
A Python file has build(ROWS, COLS), which returns a program (or a program and its arguments), or constants of
those names and a pl.jit function.

values:
  64,128,256           numbers or words
  1..4, 0..64+16       numbers from the first to the last, in steps
  16..256*2            numbers from the first to the last, each twice the previous

Results are kept in FILE.tune.jsonl; an interrupted search continues from there.
"""


def main(arguments: Sequence[str]) -> int:
    about = "Search over compile-time parameters: legal choices that fit in memory, ranked by the cost model."
    p = CommandParser("pto tune", about, _EXAMPLES)
    add = p.add_argument
    add("input", metavar="FILE", help="program text (.pto) with ${NAME} in it, or a Python file (.py)")
    add("args", nargs="*", metavar="ARG", help="arguments of the kernel, after '--', as for pto run")
    add("--param", action="append", default=[], metavar="NAME=VALUES", help="a parameter and its values")
    add(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="skip choices that do not satisfy this condition",
    )
    add("--entry", metavar="NAME", help="function to time (default: the only entry)")
    add_target(p, capacity=False)
    add("--blocks", type=_count, default=1, metavar="N", help="blocks of the launch (default: 1)")
    add("--machine", metavar="M", help="machine: its name (pto cost show), or a file of parameters (.toml)")
    add("-j", "--jobs", type=_count, default=0, metavar="N", help="processes (default: one per processor)")
    add("--results", metavar="FILE", help="file for the results (default: FILE.tune.jsonl)")
    add("--fresh", action="store_true", help="discard earlier results")
    add("--top", type=_count, default=10, metavar="N", help="number of choices in the table (default: 10)")
    add("--plot", metavar="FILE", help="draw the results: .svg, or a page (.html)")
    add("--write", metavar="FILE", help="write the best program (.pto)")
    add("-q", "--quiet", action="store_true", help="print no progress")
    add_diagnostics(p)
    options = p.parse_launch(arguments)
    problems: list[Diagnostic] = []
    try:
        _run(options, problems)
    except DiagnosticError as e:
        problems += e.diagnostics
    show(problems, options.diagnostics)
    return FAILED if any(d.severity == "error" for d in problems) else OK


def _count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 1 << 20:
        raise ArgumentTypeError(f"'{text}': expected a number from 1")
    return int(text)


def _run(o: Any, problems: list[Diagnostic]) -> None:
    from ..reading import read
    from ..trials import TIMED
    from ..tune import picture
    from ..tune.explore import search
    from ..tune.measure import TunedProgram
    from ..tune.source import fill, listing
    from ..tune.space import Space, refuse

    source, found = read(o.input)
    if source is None:
        raise DiagnosticError(found)
    if not o.param:
        known = listing(source.text, o.input)
        raise refuse("missing parameters to search", f"--param NAME=16,32,64{known and '; '}{known}")
    space = Space.parse(o.param, o.where)
    if o.write and o.input.endswith(".py"):
        raise refuse(
            "cannot use --write with a Python file, which has no program text to fill in",
            "call build with the best values",
        )
    program = TunedProgram(
        source.text, o.input, tuple(o.args), o.entry, o.arch, o.blocks, o.machine, _arguments
    )
    results = o.results or f"{os.path.splitext(os.path.basename(o.input))[0]}.tune.jsonl"
    if o.fresh and os.path.exists(results):
        os.remove(results)
    bar = _Bar(not o.quiet and sys.stderr.isatty())
    try:
        outcomes = search(program, space, results, o.jobs or os.cpu_count() or 1, bar.step)
    finally:
        bar.end()
    print("\n".join(_result_lines(outcomes, space.left_out, o.top)))
    if o.plot:
        picture.write(o.plot, os.path.basename(o.input), space, outcomes)
    best = outcomes[0] if outcomes else None
    if best is None or best.status != TIMED:
        why = f": {best.code} {best.why}" if best is not None else ""
        problems.append(Diagnostic("PTO-E2902", f"no choice of parameters can be timed{why}"))
    elif o.write:
        from .common import write_output

        problems += write_output(o.write, fill(source.text, best.params, o.input).encode())


def _arguments(texts: Sequence[str]) -> list[Any]:
    """Return the values of the arguments of a launch."""
    from .arguments import Argument

    found = [Argument(text) for text in texts]
    wrong = [a.problem for a in found if a.problem is not None]
    if wrong:
        raise DiagnosticError(wrong)
    return [a.values[0] for a in found]


def _result_lines(outcomes: Sequence[Outcome], left_out: int, top: int) -> list[str]:
    """Return the lines of the table, and the number of skipped choices by reason."""
    from ..trials import TIMED

    timed = [o for o in outcomes if o.status == TIMED]
    lines: list[str] = []
    if timed:
        guesses = any(o.guessed for o in timed)
        head = (*timed[0].params, "us", "x best", "busiest", *(["evidence"] if guesses else []))
        rows = [
            (*map(str, o.params.values()), f"{o.us:.2f}", f"{o.us / timed[0].us:.2f}" if timed[0].us else "-",
             f"{o.busy} {o.share:.0%}", *([("some guesses" if o.guessed else "-")] if guesses else []))
            for o in timed[:top]
        ]  # fmt: skip
        lines += Screen().table(head, rows, indent=0)
        if len(timed) > top:
            lines.append(f"... and {len(timed) - top} more")
    reasons: dict[tuple[str, str], int] = {}
    for o in outcomes[len(timed) :]:
        reasons[o.status, o.code] = reasons.get((o.status, o.code), 0) + 1
    words = [f"{n} {status} ({code})" for (status, code), n in reasons.items()]
    words += [f"{left_out} by --where"] if left_out else []
    lines.append(
        f"{len(timed)} of {len(outcomes) + left_out} timed"
        + (f"; left out: {', '.join(words)}" if words else "")
    )
    return lines


class _Bar:
    """A line on a terminal that shows the progress of the search."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def step(self, done: int, total: int, outcome: Outcome, best: Outcome | None) -> None:
        if not self._shown:
            return
        full = 24 * done // max(total, 1)
        words = (
            ""
            if best is None
            else f"best {best.us:.2f} us, " + visible(" ".join(f"{k}={v}" for k, v in best.params.items()))
        )
        print(
            f"\r\x1b[K[{'#' * full}{'.' * (24 - full)}] {done}/{total} {words}",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
