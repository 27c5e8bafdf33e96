"""Options of tools that tell how long a kernel takes on the machine, and what they write."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic
from .common import Parser, read_input, write_output

if TYPE_CHECKING:
    from ..perf.timeline.timeline import Timeline


def add_timing(p: Parser) -> None:
    p.add_argument(
        "--time", action="store_true", dest="show_time",
        help="how long it takes on the machine by its model, and what it waits for",
    )  # fmt: skip
    p.add_argument(
        "--timeline", "--view", metavar="FILE", dest="timeline_file",
        help="every instruction on the time axis of the machine: a page (.html), or .json for Perfetto",
    )  # fmt: skip
    p.add_argument(
        "--compare", type=_dataset, metavar="FILE",
        help="show a timeline that was written as .json beside this one",
    )  # fmt: skip
    p.add_argument(
        "--apply", metavar="FILE", dest="apply_to",
        help="write the program with the advice that moved lines can follow (barriers, waits), and time it",
    )  # fmt: skip
    p.add_argument(
        "--machine", type=_machine, metavar="M",
        help="the machine to time: its name (pto cost show), or a file of parameters (.toml)",
    )  # fmt: skip
    p.add_argument(
        "--dry", action="store_true",
        help="issue everything and compute no tile: times large kernels quickly, arrays keep what they hold",
    )  # fmt: skip


def _machine(text: str) -> Any:
    from ..isa.timing import machine

    try:
        return machine(text)
    except ValueError as e:
        raise ArgumentTypeError(str(e)) from None


def _dataset(text: str) -> Any:
    from ..perf.timeline.page import loaded

    try:
        return loaded(text)
    except ValueError as e:
        raise ArgumentTypeError(str(e)) from None


def timing_asked(options: Namespace) -> Any:
    """The option `timeline` of a launch: False, True, or the machine that is named."""
    wanted = options.show_time or options.machine is not None
    wanted = wanted or options.timeline_file is not None or options.apply_to is not None
    return (options.machine or True) if wanted else False


def write_timing(timeline: Timeline, options: Namespace, name: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if options.timeline_file is not None:
        from ..perf.timeline.export import written

        found = write_output(
            options.timeline_file, written(timeline, options.timeline_file, name, options.compare)
        )
    if options.show_time or options.timeline_file is None:
        print(timeline.text())
    return found


def apply_advice(
    timeline: Timeline, options: Namespace, timed: Callable[[str], Timeline | None]
) -> list[Diagnostic]:
    """Write the program with what lines can follow, and hold what it takes (`timed`, of a file) against what
    was promised."""
    from ..perf.timeline.apply import followed

    source, problems = read_input(options.input, cpp=True)
    if source is None:
        return problems
    edited = followed(timeline, source.text, source.name)
    us = timeline.machine.us
    for advice in edited.left:
        print(f"left to you: {advice.text}: {us(advice.gain):.2f} us less")
    if not edited.done:
        print("there is no advice that moving lines could follow: nothing was written")
        return []
    problems = write_output(options.apply_to, edited.text.encode())
    again = None if problems else timed(options.apply_to)
    if again is None:
        return problems
    for advice in edited.done:
        print(f"applied: {advice.text}")
    print(
        f"{options.apply_to}: {again.us:.2f} us, {us(edited.cycles):.2f} were promised; "
        f"{timeline.us:.2f} us without"
    )
    return []
