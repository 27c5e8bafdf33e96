"""`pto record`: what a C++ kernel does in one launch, as a program."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from ..asm import to_text
from ..diag import Diagnostic, DiagnosticError, has_errors
from ..engine import making, registry
from ..engine.traced.record import MOST
from ..reading import SUFFIXES
from .arguments import Argument
from .common import FAILED, OK, Parser, add_capacity, add_diagnostics, add_target, show, write_output

_EXAMPLES = """\
  pto record k.cpp -- @a.npy f32:16x64 > k.pto
  pto record k.cpp --blocks 2 -o k.pto -- @a.npy @b.npy f32:16x64 4
  pto run k.pto --sanitize all -- @a.npy @b.npy f32:16x64 4

arguments are those of pto run. Loops are unrolled, branches are those that were taken: the program does the
same as the kernel for the same numbers, and traps where it is given others. Operations say where in the C++
they come from, with loc(..).
"""


def main(arguments: Sequence[str]) -> int:
    p = Parser(
        "pto record",
        "Run a C++ kernel once, and write down what it did as a program without control flow.",
        _EXAMPLES,
    )
    add = p.add_argument
    add("input", metavar="FILE", help="C++ source, or a library of pto build --traced")
    add("args", nargs="*", metavar="-- ARG", help="arguments of the kernel, as for pto run")
    add("-o", "--output", metavar="FILE", help="write the program there (default: standard output)")
    add("--entry", metavar="NAME", help="kernel of several in the file")
    add("--blocks", type=int, default=1, metavar="N", help="blocks of the launch, each a part (default: 1)")
    add("--subblocks", type=int, choices=(1, 2), help="vector cores of a mixed kernel")
    add("--limit", type=int, default=MOST, metavar="N", help=f"operations at most (default: {MOST})")
    add_target(p)
    add_capacity(p)
    add_diagnostics(p)
    given = list(arguments)
    at = given.index("--") if "--" in given else len(given)
    options = p.parse_args(given[:at])
    options.args += given[at + 1 :]
    problems = record(options)
    show(problems, options.diagnostics)
    return FAILED if has_errors(problems) else OK


def _about(options: Namespace, name: str, args: Sequence[Any], values: Sequence[Argument]) -> str:
    """Comments: what was recorded, and with which numbers."""
    blocks = f"{options.blocks} block{'' if options.blocks == 1 else 's'}"
    said = f"// What {name} of {os.path.basename(options.input)} did in one launch of {blocks}.\n"
    fixed = [
        f"{p.name} = {a.values[0]}"
        for p, a in zip(args, values, strict=False)
        if isinstance(a.values[0], int | float)
    ]
    if fixed:
        said += f"// Numbers are part of it, and others are refused: {', '.join(fixed)}.\n"
    return said + "// Where C++ branches on what arrays hold, it went the way of those that it was given.\n"


def record(options: Namespace) -> list[Diagnostic]:
    if not options.input.endswith((*SUFFIXES, ".so")):
        help = "give a C++ file; a program is one already: ptoas --emit=pto shows what passes make of it"
        return [Diagnostic("PTO-E2018", f"'{options.input}' is no C++", help=help)]
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
