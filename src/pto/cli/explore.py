"""`pto explore`: a page of a program with its stages, C++ and image, its timeline, memory and findings."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..diag import Diagnostic, DiagnosticError, Source
from .common import (
    CommandParser,
    add_diagnostics,
    add_target,
    block_count,
    ended,
    read_input,
    say,
    target,
    write_output,
)

_EXAMPLES = """\
  pto explore k.pto                         serve the page, for edits; the address is printed
  pto explore k.pto -o k.html               write the page to a file
  pto explore k.pto -- @a.npy f32:16x64 12  launch with these arguments (pto run --help)
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto explore",
        "Show a program in a browser: beside the source, the program after each pass, its C++ and its "
        "image; below, the findings, timeline and memory of a launch. Lines that belong together are linked. "
        "Without arguments, the launch uses arrays of zeros if all views have constant shapes.",
        _EXAMPLES,
    )
    p.add_argument("input", metavar="FILE", help="program text ('-' for standard input)")
    p.add_argument("-o", dest="output", metavar="HTML", help="write one page that needs no server")
    p.add_argument(
        "--port", type=_port, default=0, help="port of the server on 127.0.0.1 (default: a free one)"
    )
    p.add_argument("--open", action="store_true", help="open the page in the browser of the system")
    p.add_argument("--entry", metavar="NAME", help="function to launch (default: the only entry)")
    p.add_argument(
        "--blocks", type=block_count, default=1, metavar="N", help="blocks of the launch (default: 1)"
    )
    add_target(p)
    add_diagnostics(p)
    options = p.parse_launch(arguments)
    try:
        problems = _explore(options)
    except DiagnosticError as e:
        problems = e.diagnostics
    return ended(problems, options)


def _explore(options: Namespace) -> list[Diagnostic]:
    from ..explore import page as pages
    from ..explore.launch import LaunchPlan
    from ..explore.server import PageServer
    from ..explore.stages import Stages, stages

    source, problems = read_input(options.input)
    if source is None:
        return problems
    name = source.name
    plan = LaunchPlan(_values(options.args) if options.args else None, options.entry, options.blocks)
    if plan.arguments is not None:
        plan.arguments()  # problems of arguments do not depend on the text

    @lru_cache(2)
    def seen(text: str) -> Stages:
        return stages(Source(name, text), lambda module: target(options, module))

    def staged(text: str) -> dict[str, Any]:
        return pages.staged(seen(text), name)

    def launched(text: str) -> dict[str, Any]:
        return pages.launched(Source(name, text), seen(text), plan)

    title = os.path.basename(name)
    data = {**staged(source.text), "launch": launched(source.text)}
    if options.output is not None:
        return write_output(options.output, pages.page(title, data).encode())
    page = pages.page(title, data, served=True)
    try:
        server = PageServer(options.port, lambda: page, {"stages": staged, "launch": launched})
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        return [
            Diagnostic("PTO-E0001", f"cannot listen on 127.0.0.1:{options.port}: {why}", help="use --port 0")
        ]
    with server:
        say(f"{server.url}\n")
        if options.open:
            import webbrowser

            webbrowser.open(server.url)
        server.serve_forever()
    return []


def _values(words: Sequence[str]) -> Any:
    """Return a function that makes the arguments of a launch."""
    from .arguments import Argument

    def make() -> list[Any]:
        given = [Argument(word) for word in words]
        if broken := [a.problem for a in given if a.problem is not None]:
            raise DiagnosticError(broken)
        return [a.values[0] for a in given]

    return make


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise ArgumentTypeError(f"'{text}': expected a port from 0 to 65535, or 0 for any")
    return int(text)
