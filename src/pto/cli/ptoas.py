"""`ptoas`: the assembler. Parse, verify, and print in any text form."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import __version__

if TYPE_CHECKING:
    import argparse

    from ..diag import Diagnostic

_EXAMPLES = """\
  ptoas k.pto                        check k.pto and print it in canonical form
  ptoas k.pto --emit=ssa -o k.ssa    the SSA form; nothing is written if there are errors
  ptoas --arch a5 a.pto b.pto -j 2 -o out/
  cat k.pto | ptoas --emit=generic   MLIR generic form for other MLIR tools
  ptoas k.pto --diagnostics=json     errors for editors and CI
"""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        print(f"ptoas {__version__}")
        return 0
    from .common import run

    return run("ptoas", _main, arguments)


def _parser() -> argparse.ArgumentParser:
    from ..verify import LEVELS
    from .common import Parser, add_capacity, add_diagnostics, add_target

    p = Parser("ptoas", "PTO assembler: parse, verify, and emit a program in any text form.", _EXAMPLES)
    p.add_argument(
        "inputs", nargs="*", metavar="FILE", help="program text; '-' or nothing for standard input"
    )
    p.add_argument(
        "-o",
        dest="output",
        default="-",
        metavar="OUT",
        help="output file, or a folder for several inputs (default: stdout)",
    )
    p.add_argument(
        "--emit",
        choices=("pto", "dps", "ssa", "asm", "generic"),
        default="pto",
        help="text form of the output (default: pto, the destination-style form; dps is the same)",
    )
    add_target(p)
    add_capacity(p)
    p.add_argument(
        "--pto-level",
        choices=LEVELS,
        type=str.lower,
        metavar="LEVEL",
        help="level1, level2: tiles are placed for you; level3: every alloc_tile has addr "
        "(default: as the program is written)",
    )
    p.add_argument(
        "--enable-insert-sync",
        action="store_true",
        help="hold the program to the rules of automatic synchronization",
    )
    p.add_argument("--no-verify", action="store_true", help="parse and print only")
    p.add_argument(
        "-j", dest="jobs", type=int, default=1, metavar="N", help="files in parallel (0: one per core)"
    )
    add_diagnostics(p)
    p.add_argument("--version", action="version", version=f"ptoas {__version__}")
    return p


def _main(arguments: Sequence[str]) -> int:
    from ..diag import has_errors
    from .common import FAILED, OK, USAGE, show, write_output

    parser = _parser()
    options = parser.parse_args(arguments)
    inputs = options.inputs or ["-"]
    if inputs.count("-") > 1:
        parser.error("standard input can be read once")
    folder = options.output != "-" and (len(inputs) > 1 or options.output.endswith(os.sep))
    if folder and os.path.exists(options.output) and not os.path.isdir(options.output):
        print(f"ptoas: with several inputs, -o must be a folder: {options.output}", file=sys.stderr)
        return USAGE
    if folder:
        stems = [_stem(path) for path in inputs]
        twice = next((stem for stem in stems if stems.count(stem) > 1), None)
        if twice is not None:
            print(f"ptoas: two inputs would be written to {twice}{_SUFFIX[options.emit]}", file=sys.stderr)
            return USAGE
    results = _assemble_all(inputs, options)
    found = [d for _, diagnostics in results for d in diagnostics]
    status = OK
    if has_errors(found):
        status = FAILED
    else:
        for path, (text, _) in zip(inputs, results, strict=True):
            assert text is not None
            out = options.output
            if folder:
                os.makedirs(options.output, exist_ok=True)
                out = os.path.join(options.output, _stem(path) + _SUFFIX[options.emit])
            elif len(inputs) > 1:
                text = f"// {path}\n{text}"
            problems = write_output(out, text.encode())
            found.extend(problems)
            if problems:
                status = FAILED
    show(found, options.diagnostics)
    return status


_SUFFIX = {"pto": ".pto", "dps": ".pto", "ssa": ".ssa.pto", "asm": ".pto.s", "generic": ".mlir"}


def _stem(path: str) -> str:
    if path == "-":
        return "stdin"
    name = os.path.basename(path)
    for suffix in (".ssa.pto", ".pto.s", ".pto", ".ptobc", ".mlir", ".s"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def _assemble_all(
    inputs: list[str], options: argparse.Namespace
) -> list[tuple[str | None, list[Diagnostic]]]:
    jobs = options.jobs or os.cpu_count() or 1
    if jobs <= 1 or len(inputs) <= 1:
        return [_assemble(path, options) for path in inputs]
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(min(jobs, len(inputs))) as pool:
        return list(
            pool.map(_assemble, inputs, [options] * len(inputs), chunksize=max(1, len(inputs) // (4 * jobs)))
        )


def _assemble(path: str, options: argparse.Namespace) -> tuple[str | None, list[Diagnostic]]:
    """One input: its text in the wanted form, or what is wrong with it."""
    from ..asm import parse_source, to_text
    from ..diag import has_errors
    from ..ir.attrs import StrAttr
    from .common import read_input, target

    source, problems = read_input(path)
    if source is None:
        return None, problems
    module, problems = parse_source(source)
    if module is None:
        return None, problems
    profile = target(options, module)
    if options.arch is not None:  # the program says what it is for
        module.op.set_attr("pto.target_arch", StrAttr(options.arch))
    if not options.no_verify:
        from ..verify import verify

        problems = problems + verify(
            module, profile, level=options.pto_level, insert_sync=options.enable_insert_sync
        )
        if has_errors(problems):
            return None, problems
    return to_text(module, options.emit), problems


if __name__ == "__main__":
    sys.exit(main())
