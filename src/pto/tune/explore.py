"""Search a space: time all choices of a program."""

from __future__ import annotations

import os
from functools import partial

from ..trials import Outcome, Progress, digest_of, times
from .measure import TunedProgram, measure
from .source import check_named, fill, named, parameters
from .space import Space


def search(
    program: TunedProgram,
    space: Space,
    results: str | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Return the outcomes of all choices of a space, as `times` does."""
    _check(program, space)
    return times(partial(measure, program), space.points, _digest(program), results, jobs, progress)


def _check(program: TunedProgram, space: Space) -> None:
    """Check that the program uses every parameter, and that every used parameter has a value."""
    names = set(parameters(program.text, program.path))
    for argument in program.args:
        names |= named(argument)
    check_named(names, space.params, program.path)
    if not program.is_python and space.points:
        fill(program.text, space.points[0], program.path)


def _digest(program: TunedProgram) -> str:
    parts = [program.text, *program.args, program.entry, program.target, program.blocks]
    if program.machine and os.path.exists(program.machine):
        with open(program.machine, encoding="utf-8") as file:
            parts.append(file.read())
    else:
        parts.append(program.machine)
    return digest_of(parts)
