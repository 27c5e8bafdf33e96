"""`pto objdump`: print images as text."""

from __future__ import annotations

from collections.abc import Sequence

from ..diag import Diagnostic, DiagnosticError, did_you_mean
from ..image import listing
from .common import FAILED, OK, CommandParser, add_diagnostics, show, write_output

_EXAMPLES = """\
  pto objdump k.elf                      print calls, constants and instructions, with their source lines
  pto objdump k.elf --entry vec_add      print one kernel
  pto objdump k.elf -o k.txt && ptoas k.txt -o k2.elf
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto objdump",
        "Print the images of a file: output of ptoas, or any ELF file with a section .pto.",
        _EXAMPLES,
    )
    p.add_argument("input", metavar="FILE", help="a file of images (.elf)")
    p.add_argument("-o", dest="output", default="-", metavar="OUT", help="output file (default: stdout)")
    p.add_argument("--entry", metavar="NAME", help="print this kernel only")
    add_diagnostics(p)
    options = p.parse_args(arguments)
    problems = _print(options.input, options.entry, options.output)
    show(problems, options.diagnostics)
    return FAILED if problems else OK


def _print(path: str, entry: str | None, output: str) -> list[Diagnostic]:
    from ..engine.native.files import read

    try:
        file = read(path)
    except DiagnosticError as e:
        return e.diagnostics
    if entry is not None:
        known = {image.name: image for image in file.images}
        name = entry.removeprefix("@")
        if name not in known:
            help = did_you_mean(name, known) or f"the file has {', '.join('@' + n for n in known)}"
            return [Diagnostic("PTO-E2001", f"no kernel '@{name}' in '{path}'", help=help)]
        file = file.replace(images=(known[name],))
    return write_output(output, listing.text_of(file).encode())
