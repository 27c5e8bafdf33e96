"""Options of tools that tell how long a kernel takes on the machine, and what they write."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic
from .common import Parser, write_output

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
    wanted = options.show_time or options.timeline_file is not None or options.machine is not None
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
