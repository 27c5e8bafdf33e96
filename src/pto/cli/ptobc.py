"""`ptobc`: convert text to bytecode and bytecode to text, and list a bytecode file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from ..diag import Diagnostic, DiagnosticError
from .common import (
    FAILED,
    OK,
    USAGE,
    CommandParser,
    add_diagnostics,
    add_target,
    read_input,
    run,
    show,
    standard_input,
    tell,
    write_output,
)

_EXAMPLES = """\
  ptobc encode k.pto -o k.ptobc            text (any form) to bytecode
  ptobc decode k.ptobc -o k.pto            bytecode to canonical text
  ptobc decode k.ptobc --emit=generic      MLIR generic form on stdout
  ptobc dump k.ptobc                       sections, tables and operations with byte offsets
"""
_ENCODE_EXAMPLES = """\
  ptobc encode k.pto -o k.ptobc
  ptobc encode k.pto -o k.ptobc --debuginfo      keep value names and source lines
  ptobc encode k.pto -o k.ptobc --strict-v0      refuse operations that the v0 reader of PTOAS lacks
  ptoas gen.pto --emit=pto | ptobc encode - -o k.ptobc
"""
_DECODE_EXAMPLES = """\
  ptobc decode k.ptobc -o k.pto
  ptobc decode k.ptobc --emit=ssa
  ptobc decode - < k.ptobc | ptoas --arch a5
"""
_DUMP_EXAMPLES = """\
  ptobc dump k.ptobc
  ptobc dump broken.ptobc            lists the readable part, then the error with its offset
"""


def main(argv: Sequence[str] | None = None) -> int:
    return run("ptobc", _main, argv)


def _parser() -> argparse.ArgumentParser:
    p = CommandParser("ptobc", "Encode, decode or list PTO bytecode (PTO-BC v0).", _EXAMPLES)
    p.add_argument("--version", action="version", version=f"ptobc {__version__}")
    verbs = p.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=CommandParser)

    encode = verbs.add_parser(
        "encode",
        help="write a program as bytecode",
        description="Write a program as bytecode.",
        examples=_ENCODE_EXAMPLES,
    )
    encode.add_argument("input", metavar="IN", help="program text in any form; '-' for standard input")
    encode.add_argument("-o", dest="output", default="-", metavar="OUT", help="output file (default: stdout)")
    add_target(encode, capacity=False)
    encode.add_argument(
        "--strict-v0", action="store_true", help="refuse operations that the v0 reader of PTOAS lacks"
    )
    encode.add_argument("--debuginfo", action="store_true", help="add value names and source locations")
    add_diagnostics(encode)

    decode = verbs.add_parser(
        "decode",
        help="print a bytecode file as text",
        description="Print a bytecode file as text.",
        examples=_DECODE_EXAMPLES,
    )
    decode.add_argument("input", metavar="IN", help="bytecode; '-' for standard input")
    decode.add_argument("-o", dest="output", default="-", metavar="OUT", help="output file (default: stdout)")
    decode.add_argument(
        "--emit", choices=("pto", "ssa", "asm", "generic"), default="pto", help="text form (default: pto)"
    )
    add_diagnostics(decode)

    listing = verbs.add_parser(
        "dump",
        help="list sections, tables and operations",
        description="List sections, tables and operations of a bytecode file, with byte offsets.",
        examples=_DUMP_EXAMPLES,
    )
    listing.add_argument("input", metavar="IN", help="bytecode; '-' for standard input")
    add_diagnostics(listing)
    return p


def _main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    problems: list[Diagnostic] = []
    status = OK
    try:
        status = {"encode": _encode, "decode": _decode, "dump": _dump}[options.verb](options, problems)
    except DiagnosticError as e:
        problems.extend(e.diagnostics)
        status = FAILED
    show(problems, options.diagnostics)
    return status


def _encode(options: argparse.Namespace, problems: list[Diagnostic]) -> int:
    from ..asm import parse_source
    from ..bytecode import to_bytecode

    if options.output == "-" and sys.stdout.isatty():
        print(
            "ptobc encode: cannot write bytecode to a terminal\ngive an output file: -o OUT", file=sys.stderr
        )
        return USAGE
    source, found = read_input(options.input)
    problems.extend(found)
    if source is None:
        return FAILED
    module, found = parse_source(source)
    problems.extend(found)
    if module is None:
        return FAILED
    data = to_bytecode(module, strict=options.strict_v0, debuginfo=options.debuginfo)
    return _write(options.output, data, problems)


def _decode(options: argparse.Namespace, problems: list[Diagnostic]) -> int:
    from ..asm import to_text
    from ..bytecode import from_bytecode

    name, data = _read(options.input)
    text = to_text(from_bytecode(data, name), options.emit)
    return _write(options.output, text.encode("utf-8", "surrogateescape"), problems)


def _dump(options: argparse.Namespace, problems: list[Diagnostic]) -> int:
    from ..bytecode.dump import dump

    name, data = _read(options.input)
    for line in dump(data, name):
        tell(line)
    return OK


def _read(path: str) -> tuple[str, bytes]:
    if path == "-":
        return "<stdin>", standard_input()
    try:
        return path, Path(path).read_bytes()
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise DiagnosticError(
            [Diagnostic("PTO-E0001", f"cannot read '{path}': {why}", help="check the path")]
        ) from None


def _write(path: str, data: bytes, problems: list[Diagnostic]) -> int:
    found = write_output(path, data)
    problems.extend(found)
    return FAILED if found else OK


if __name__ == "__main__":
    sys.exit(main())
