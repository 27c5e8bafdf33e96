"""Options about the time of a kernel on the machine, and the outputs of these options."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError, visible
from .common import CommandParser, read_input, tell, write_output

if TYPE_CHECKING:
    from ..engine.entry import Launchable
    from ..engine.operand_values import Keeper
    from ..perf.explorer.kernel import Cpp, Recorded
    from ..perf.memory_map import MemoryMap
    from ..perf.timeline.timeline import Timeline


def add_timing(p: CommandParser) -> None:
    p.add_argument(
        "--time", action="store_true", dest="show_time",
        help="print the time on the machine by the cost model, and what the kernel waits for",
    )  # fmt: skip
    p.add_argument(
        "--timeline", type=_page_or_json, metavar="FILE", dest="timeline_file",
        help="write a timeline of all instructions on the machine: a page (.html), or .json for Perfetto",
    )  # fmt: skip
    p.add_argument(
        "--view", metavar="FILE",
        help="write the page of --timeline, with values of operands, memory map and emitted C++",
    )  # fmt: skip
    p.add_argument(
        "--values", type=_size, metavar="SIZE",
        help="compressed size of the values that --view records: 64M, 512K, 0 for none (default: 8M)",
    )  # fmt: skip
    p.add_argument(
        "--compare", type=_dataset, metavar="FILE",
        help="compare with an earlier timeline (.json); the page shows both",
    )  # fmt: skip
    p.add_argument(
        "--apply", metavar="FILE", dest="apply_to",
        help="apply advice that moves lines (barriers, waits), write the program to FILE, and time it",
    )  # fmt: skip
    p.add_argument(
        "--machine", type=_machine, metavar="M",
        help="machine: its name (pto cost show), or a file of parameters (.toml)",
    )  # fmt: skip
    p.add_argument(
        "--dry", action="store_true",
        help="compute no tiles: fast timing of large kernels; arrays keep their contents",
    )  # fmt: skip


def _page_or_json(text: str) -> str:
    if not text.endswith((".html", ".htm", ".json")):
        raise ArgumentTypeError(f"'{text}': expected a name that ends in .html, or .json for Perfetto")
    return text


def _machine(text: str) -> Any:
    from ..isa.timing import machine

    try:
        return machine(text)
    except ValueError as e:
        raise ArgumentTypeError(str(e)) from None


def _dataset(text: str) -> Any:
    from ..perf.explorer.page import loaded

    try:
        return loaded(text)
    except ValueError as e:
        raise ArgumentTypeError(str(e)) from None


def _size(text: str) -> int:
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not digits.isdigit() or unit not in ("", "K", "M", "G"):
        raise ArgumentTypeError(f"'{text}': expected a size such as 64M or 512K")
    return int(digits) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]


def timing_asked(options: Namespace) -> Any:
    """Return the launch option `timeline`: False, True, or the named machine."""
    pages = options.timeline_file, options.view, options.machine, options.apply_to, options.compare
    wanted = options.show_time or any(p is not None for p in pages)
    return (options.machine or True) if wanted else False


def map_is_page(options: Namespace) -> bool:
    """Return True if the memory map is written as a page, which needs times."""
    return options.memory_map is not None and options.memory_map.endswith((".html", ".htm"))


def map_asked(options: Namespace) -> bool:
    return options.memory_map is not None or (options.view is not None and not options.dry)


def keeper(options: Namespace) -> Keeper | None:
    """Return a recorder of values for the page, or None without a page or in a dry run."""
    if options.view is None or options.dry or options.values == 0:
        return None
    from ..engine.operand_values import Keeper

    return Keeper(options.values)


def write_timing(timeline: Timeline, options: Namespace, name: str, recorded: Recorded) -> list[Diagnostic]:
    """Write the files and the report of a timeline."""
    found: list[Diagnostic] = []
    if options.view is not None:
        from ..perf.explorer.kernel import html

        found += write_output(options.view, html(timeline, name, options.compare, recorded).encode())
    if options.timeline_file is not None:
        from ..perf.timeline.export import written

        found += write_output(
            options.timeline_file, written(timeline, options.timeline_file, name, options.compare)
        )
    if options.show_time or (
        options.timeline_file is None and options.view is None and not map_is_page(options)
    ):
        tell(timeline.text())
        if options.compare is not None:
            other, before = options.compare["name"], float(options.compare["total"])
            tell(f"\ncompared with {before:.2f} us of {other}: ratio {timeline.us / before:.2f}")
    return found


def cpp_of(kernel: Launchable) -> Cpp | None:
    """Return the C++ that is emitted for a program; None for a kernel of a C++ file."""
    from ..codegen.flow import placed_cpp
    from ..ir.core import Module
    from ..perf.explorer.kernel import Cpp

    module = getattr(kernel, "module", None)
    if not isinstance(module, Module):
        return None
    try:
        text, places = placed_cpp(module, kernel.profile)
    except DiagnosticError as e:
        return Cpp(problem="\n".join(d.message for d in e.diagnostics[:8]))
    return Cpp(text, [(p.source.name, p.line) if p is not None else None for p in places])


def write_map(
    map: MemoryMap, timeline: Timeline | None, options: Namespace, kernel: Launchable
) -> list[Diagnostic]:
    """Write the memory map: as a page with the times of the machine if there are any, or as text."""
    if not map_is_page(options):
        return write_output(options.memory_map, (visible(map.text(), layout=True) + "\n").encode())
    if timeline is None:
        from ..perf.explorer.memory import html as without_times

        return write_output(options.memory_map, without_times(map, kernel.name).encode())
    from ..perf.explorer.kernel import Recorded, html

    recorded = Recorded(memory=map, cpp=cpp_of(kernel))
    return write_output(options.memory_map, html(timeline, kernel.name, None, recorded, "memory").encode())


def apply_advice(
    timeline: Timeline, options: Namespace, timed: Callable[[str], Timeline | None]
) -> list[Diagnostic]:
    """Write the program with the advice that moves lines. Time the result with `timed`, and compare its gain
    with the promised gain."""
    from ..perf.timeline.apply import followed

    source, problems = read_input(options.input, cpp=True)
    if source is None:
        return problems
    edited = followed(timeline, source.text, source.name)
    us = timeline.machine.us
    for advice in edited.left:
        tell(f"left to you: {advice.text}: {us(advice.gain):.2f} us less")
    if not edited.done:
        tell("no advice can be applied by moving lines; nothing was written")
        return []
    problems = write_output(options.apply_to, edited.text.encode())
    again = None if problems else timed(options.apply_to)
    if again is None:
        return problems
    for advice in edited.done:
        tell(f"applied: {advice.text}")
    tell(
        f"{options.apply_to}: {again.us:.2f} us, predicted {us(edited.cycles):.2f} us, "
        f"before {timeline.us:.2f} us"
    )
    return []
