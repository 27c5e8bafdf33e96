"""Time of a program for one choice of parameters. A kernel is timed by the timeline of its launch, a graph of
tasks by a run in virtual time. Choices that are illegal or too large are not timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..diag import DiagnosticError
from ..ir.core import Module
from ..trials import TIMED, Outcome, Point, untimed
from .source import fill, load_python
from .space import refuse


class TunedProgram(NamedTuple):
    """Program to search: its text, path and launch. `arguments` turns the texts of arguments, which may
    contain parameters, into values."""

    text: str
    path: str
    args: tuple[str, ...] = ()
    entry: str | None = None
    target: str | None = None
    blocks: int = 1
    machine: str | None = None
    arguments: Callable[[Sequence[str]], list[Any]] | None = None

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")


def measure(program: TunedProgram, point: Point) -> Outcome:
    """Time one choice. Its errors become part of the outcome."""
    try:
        made, values = _made(program, point)
        return _timed(program, point, made, values)
    except DiagnosticError as e:
        outcome = untimed(point, e)
        if outcome.code == "PTO-E2901":
            raise
        return outcome


#: Kinds of functions that only other functions of the language call.
_PARTS = ("inline", "incore", "extern")


def _made(program: TunedProgram, point: Point) -> tuple[Any, list[Any]]:
    """Return a program or a function of the language, with its arguments."""
    from ..language.programs.jit import JitFunction
    from ..reading import parse

    texts = [fill(a, point, f"argument '{a}'") for a in program.args]
    values = program.arguments(texts) if program.arguments is not None and texts else list(texts)
    if not program.is_python:
        return parse(fill(program.text, point, program.path)), values
    module = load_python(program.text, program.path, point)
    build = getattr(module, "build", None)
    if build is None:
        functions = {n: f for n, f in vars(module).items() if isinstance(f, JitFunction)}
        whole = [n for n, f in functions.items() if f.declared.kind not in _PARTS]
        wanted = [program.entry] if program.entry else whole or list(functions)
        if len(wanted) != 1 or wanted[0] not in functions:
            choices = ", or name a function: " if functions else ""
            choices += " or ".join(f"--entry {n}" for n in whole or functions)
            raise refuse(
                f"cannot choose a program in {program.path}: expected a function build, or one function "
                "of the language",
                f"define build(TILE), which returns a program{choices}",
            )
        found = functions[wanted[0]]
    else:
        found = build(**point)
    if isinstance(found, tuple | list):
        found, values = found[0], list(found[1:])
    elif not values and callable(inputs := getattr(module, "inputs", None)):
        given: Any = inputs()
        values = list(given)
    if not isinstance(found, Module | JitFunction):
        found = parse(found)
    return found, values


def _timed(program: TunedProgram, point: Point, made: Any, values: list[Any]) -> Outcome:
    if not isinstance(made, Module):
        from ..language.programs.arguments import WrongArguments

        try:
            graph = made.compile(*values)
        except WrongArguments as e:
            raise refuse(str(e), "give arguments after '--', or return them from inputs()") from None
        run = graph.execute(values, virtual_time=True, machine=program.machine, record=True)
        return Outcome(point, TIMED, run.stats["virtual_ns"] / 1e3, *_busiest_cores(run.records))
    from ..engine.launch import plain

    launched = plain(made, program.entry, target=program.target)
    options: dict[str, Any] = {"blocks": program.blocks, "timeline": program.machine or True}
    try:
        result: Any = launched.run(*values, **options, dry=True)
    except DiagnosticError:  # its control flow may depend on array values; a full run repeats any other error
        result = launched.run(*values, **options)
    if not result.ok:
        raise DiagnosticError(list(result.diagnostics))
    timeline = result.timeline
    return Outcome(point, TIMED, timeline.us, *_busiest_pipe(timeline), bool(timeline.guessed))


def _busiest_pipe(timeline: Any) -> tuple[str, float]:
    """Return the pipe with the most work, and the share of the time that it works."""
    most = max(timeline.pipes, key=lambda use: use.busy, default=None)
    return (most.pipe, most.busy / timeline.cycles) if most is not None and timeline.cycles else ("", 0.0)


def _busiest_cores(records: Any) -> tuple[str, float]:
    from ..perf.analysis import Analysis

    analysis = Analysis(records)
    shares = [(analysis.utilisation(n), name) for n, name in enumerate(("AIC", "AIV"))]
    share, name = max(shares)
    return name, share
