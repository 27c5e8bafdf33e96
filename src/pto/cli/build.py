"""`pto build`: compile a kernel to a shared library, for programs that launch it themselves."""

from __future__ import annotations

import os
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence

from ..cache import opened
from ..diag import Diagnostic, DiagnosticError, Source, has_errors
from ..objects.contents import is_object
from ..reading import SUFFIXES
from .common import (
    CommandParser,
    add_auto,
    add_diagnostics,
    add_target,
    ended,
    read_input,
    refuse_auto,
    refuse_output,
    tell,
    write_output,
)

_EXAMPLES = """\
  ptoas k.pto -o k.cpp && pto build k.cpp -o k.so
  pto build k.pto -o k.so --arch a5
  pto build k.cpp -o k.so --entry vec_add --checked
  pto build k.cpp -o k.so --traced && pto run k.so --sanitize all -- @a.npy f32:16x64
  ptoas k.pto -o k.o && pto build k.o -o calls.so && cc main.c k.o $(pto build --flags)

The library has a function `int pto_launch_NAME(pto_launch*)` per kernel; see pto/launch.hpp.
The library of an object has the functions that the object calls, for a machine in C; see pto/object.h.
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto build", "Compile a kernel with the system's C++ compiler and the headers of pto.", _EXAMPLES
    )
    p.add_argument(
        "input",
        nargs="?",
        metavar="FILE",
        help="a program (.pto, .ptobc), C++ with PTO instructions (.cpp), or an object of ptoas (.o, .so)",
    )
    p.add_argument("-o", dest="output", metavar="FILE", help="the library (default: FILE with .so)")
    p.add_argument("--entry", metavar="NAME", help="the kernel (default: the only one; all of a C++ file)")
    p.add_argument("--checked", action="store_true", help="check at run time: bounds, capacity and validity")
    p.add_argument("--traced", action="store_true", help="record all calls, for pto run --sanitize")
    add_auto(p)
    add_target(p)
    p.add_argument(
        "--flags",
        action="store_true",
        help="print the compiler options of C programs that call objects",
    )
    p.add_argument("-q", "--quiet", action="store_true", help="print no summary")
    add_diagnostics(p)
    options = p.parse_args(arguments)
    refuse_output(p, options.output, "a library", ".o .ptobc .cpp .pto")
    if (options.input is None) != options.flags:
        p.error("missing FILE" if options.input is None else "--flags takes no FILE")
    try:
        problems = build(options) if not options.flags else _flags()
    except DiagnosticError as e:
        problems = e.diagnostics
    return ended(problems, options)


def build(options: Namespace) -> list[Diagnostic]:
    if is_object(options.input):
        return _written(_of_calls(options.input), [], options, time.perf_counter())
    source, problems = read_input(options.input, cpp=options.input.endswith(SUFFIXES))
    if source is None:
        return problems
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="pto-build-") as work:
        if source.name.endswith(SUFFIXES):
            path, names, problems = _from_cpp(source, options, work)
        else:
            path, names, problems = _from_program(source, options)
        if path is None:
            return problems
        return _written((path, names), problems, options, started)


def _written(
    made: tuple[str, list[str]], problems: list[Diagnostic], options: Namespace, started: float
) -> list[Diagnostic]:
    """Write the library to the output file, and print its kernels."""
    path, names = made
    stem, suffix = os.path.splitext(options.input if options.input != "-" else "kernel")
    output = options.output or stem + (".so" if suffix != ".so" else ".calls.so")
    with open(opened(path), "rb") as f:
        data = f.read()
    problems = [*problems, *write_output(output, data, executable=True)]
    if has_errors(problems):
        return problems
    if not options.quiet and options.diagnostics == "text" and output != "-":
        took = f"{time.perf_counter() - started:.2f} s"
        tell(f"{output}: {', '.join(names)} ({took})")
    return problems


def _flags() -> list[Diagnostic]:
    """Print compiler options: the folder of the headers, and the library of the machine."""
    from shlex import quote

    from ..engine.cpp.compiler import include_dir
    from ..engine.native.packs import library

    path = library().path
    print(quote(f"-I{include_dir()}"), quote(path), quote(f"-Wl,-rpath,{os.path.dirname(path)}"))
    return []


def _of_calls(path: str) -> tuple[str, list[str]]:
    """Build a library of the calls that an object makes, except those that the virtual machine itself has."""
    from ..engine.native import files, packs

    file = files.read(path)
    for image in file.images:
        files.derive(file, image)  # the calls are C++ and will be compiled
    calls = {call for image in file.images for call in image.calls if not call.startswith("vm.")}
    return packs.built(sorted(calls)), [f"{len(calls)} calls of {', '.join(i.name for i in file.images)}"]


def _from_cpp(
    source: Source, options: Namespace, work: str
) -> tuple[str | None, list[str], list[Diagnostic]]:
    from ..engine.cpp import handwritten, messages
    from ..isa.profiles import resolve

    made, problems = handwritten.entries(source, options.entry)
    if not made:
        return None, [], problems
    target = resolve(options.arch, handwritten.target_of(source.text))
    if options.capacity:
        target = target.override(dict(options.capacity))
    built = handwritten.library(source, made, target, options.checked, options.auto, work, options.traced)
    if not built.ok:
        return None, [], messages.diagnostics(built.output, {os.path.abspath(source.name): source})
    return built.path, [e.name for e in made], []


def _from_program(source: Source, options: Namespace) -> tuple[str | None, list[str], list[Diagnostic]]:
    from ..asm import parse_source
    from ..engine.cpp.kernel import CppKernel
    from .common import target

    refuse_auto(options)
    module, problems = parse_source(source)
    if module is None:
        return None, [], problems
    k = CppKernel(module, options.entry, target(options, module), True, options.checked)
    return k.built.path, [k.name], problems
