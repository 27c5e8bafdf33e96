"""`pto record`: record one launch of a C++ kernel as a program."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from ..asm import to_text
from ..diag import Diagnostic, DiagnosticError
from ..engine import making, registry
from ..engine.traced.record import MOST
from ..reading import SUFFIXES
from .arguments import Argument
from .common import (
    CommandParser,
    add_diagnostics,
    add_target,
    block_count,
    ended,
    write_output,
)

_EXAMPLES = """\
  pto record k.cpp -- @a.npy f32:16x64 > k.pto
  pto record k.cpp --blocks 2 -o k.pto -- @a.npy @b.npy f32:16x64 4
  pto run k.pto --sanitize all -- @a.npy @b.npy f32:16x64 4

Arguments are those of pto run. Loops are unrolled, and only branches taken are recorded: for the same
numbers the program does the same as the kernel, for other numbers it traps. Operations have their source
lines in the C++, as loc(..).
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto record",
        "Run a C++ kernel once, and record its operations as a program without control flow.",
        _EXAMPLES,
    )
    add = p.add_argument
    add("input", metavar="FILE", help="C++ source, or a library of pto build --traced")
    add("args", nargs="*", metavar="-- ARG", help="arguments of the kernel, as for pto run")
    add("-o", "--output", metavar="FILE", help="write the program to FILE (default: standard output)")
    add("--entry", metavar="NAME", help="the kernel (default: the only one in the file)")
    add(
        "--blocks",
        type=block_count,
        default=1,
        metavar="N",
        help="blocks of the launch; each becomes a part of the program (default: 1)",
    )
    add("--subblocks", type=int, choices=(1, 2), help="vector cores of a mixed kernel")
    add(
        "--limit", type=int, default=MOST, metavar="N", help=f"maximum number of operations (default: {MOST})"
    )
    add_target(p)
    add_diagnostics(p)
    options = p.parse_launch(arguments)
    problems = record(options)
    return ended(problems, options)


def _about(options: Namespace, name: str, args: Sequence[Any], values: Sequence[Argument]) -> str:
    """Return a comment about the recorded kernel, with the numbers of the launch."""
    blocks = f"{options.blocks} block{'' if options.blocks == 1 else 's'}"
    said = f"// Recorded from one launch of {name} of {os.path.basename(options.input)} with {blocks}.\n"
    fixed = [
        f"{p.name} = {a.values[0]}"
        for p, a in zip(args, values, strict=False)
        if isinstance(a.values[0], int | float)
    ]
    if fixed:
        said += f"// Valid only for these numbers: {', '.join(fixed)}.\n"
    return said + "// Branches that depend on contents of arrays are recorded as taken in this launch.\n"


def record(options: Namespace) -> list[Diagnostic]:
    if not options.input.endswith((*SUFFIXES, ".so")):
        help = "give a C++ file; for a program, ptoas --emit=pto --lowered prints the result of the passes"
        return [Diagnostic("PTO-E2018", f"expected a C++ file or library, got '{options.input}'", help=help)]
    values = [Argument(text) for text in options.args]
    broken = [a.problem for a in values if a.problem is not None]
    if broken:
        return broken
    request = registry.Request(options.input, options.entry, options.arch, capacity=dict(options.capacity))
    try:
        kernel = making.make(registry.ENGINES["traced"], request)
        module = kernel.record(  # type: ignore[attr-defined]
            *(a.values[0] for a in values), blocks=options.blocks, subblocks=options.subblocks,
            limit=options.limit,
        )  # fmt: skip
    except DiagnosticError as e:
        return e.diagnostics
    text = _about(options, kernel.name, kernel.args, values) + to_text(module, locations=True)
    if options.output is not None:
        return write_output(options.output, text.encode())
    sys.stdout.write(text)
    return []
