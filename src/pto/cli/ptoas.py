"""`ptoas`: the assembler. It parses and verifies a program, runs the passes, and writes C++, an image,
machine code, or a text form."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import __version__

if TYPE_CHECKING:
    import argparse

    from ..diag import Diagnostic, Source
    from ..driver import Lowered
    from ..ir.core import Module
    from ..isa.profiles import Profile

_EXAMPLES = """\
  ptoas k.pto -o k.cpp               C++ with PTO intrinsics; tiles without addresses get them
  ptoas k.pto --enable-insert-sync   the same, with flags and barriers for every hazard
  ptoas k.pto --emit=pto             check k.pto and print it in canonical form
  ptoas k.pto --emit=pto --lowered   the program after the passes, as the C++ has it
  ptoas k.pto --emit=ssa -o k.ssa    the SSA form; nothing is written if there are errors
  ptoas --target a3 k.pto -o k.elf   an image: pto run executes it, pto objdump prints it
  pto objdump k.elf > k.txt; ptoas k.txt -o k2.elf
  ptoas --arch a5 a.pto b.pto -j 2 -o out/
  cat k.pto | ptoas --emit=generic   MLIR generic form for other MLIR tools
  ptoas k.pto --target=cpu -o k.so   machine code for pto run and C programs; k.o for a linker
  ptoas k.pto --emit=llvm            the same as LLVM IR; --emit=native for assembly of this machine
  ptoas k.pto --explain-memory=m.html -o k.cpp
  ptoas k.pto --diagnostics=json     errors for editors and CI
"""


def command() -> NoReturn:
    """Run the installed command: `main`, then end the process without destroying every object."""
    os._exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    import gc

    from .common import run

    gc.set_threshold(100_000)  # a program lives until it is written, so a collection would find no garbage
    return run("ptoas", _main, argv)


def _parser() -> argparse.ArgumentParser:
    from ..verifier import LEVELS
    from .common import CommandParser, add_diagnostics, add_target
    from .outputs import FORMS

    p = CommandParser(
        "ptoas",
        "Assemble a PTO program to C++ with PTO intrinsics, to an image, to machine code, or to any "
        "text form.",
        _EXAMPLES,
    )
    p.add_argument(
        "inputs",
        nargs="*",
        metavar="FILE",
        help="program text, or output of pto objdump; '-' or no FILE for standard input",
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
        choices=tuple(FORMS),
        help="form of the output (default: by the suffix of -o, or cpp): cpp; elf (an image); a text form of "
        "the unlowered program: pto (destination style; dps is the same), ssa (.ssa.pto), asm (.pto.s), "
        "generic (.mlir); or machine code of the CPU: obj (.o), so (.so), native (assembly, .s), llvm (IR, "
        ".ll)",
    )
    p.add_argument(
        "--lowered", action="store_true", help="with a text form: print the program after the passes"
    )
    add_target(p)
    p.add_argument(
        "--pto-level",
        choices=LEVELS,
        type=lambda text: f"level{text}" if text in ("1", "2", "3") else text.lower(),
        metavar="LEVEL",
        help="level1, level2: ptoas places tiles; level3: every alloc_tile has addr "
        "(default: the level of the program text)",
    )
    p.add_argument(
        "--enable-insert-sync",
        action="store_true",
        help="insert flags and barriers for every hazard, except in functions that contain flags",
    )
    p.add_argument(
        "--disable-infer-layout",
        action="store_true",
        help="use layout nd for views without a layout, instead of the layout of their strides",
    )
    p.add_argument(
        "--index-type",
        choices=("int32_t", "int64_t"),
        default="int32_t",
        help="C++ type of index values (default: int32_t)",
    )
    p.add_argument(
        "--line-directives",
        action="store_true",
        help="write #line into the C++, so that its errors name lines of FILE",
    )
    p.add_argument(
        "--emit-addptr-trace", action="store_true", help="write a comment for every addptr into the C++"
    )
    p.add_argument(
        "--print-after",
        action="append",
        default=[],
        metavar="PASS",
        type=_pass_name,
        help="print the program on stderr after a pass, or after every pass ('all')",
    )
    p.add_argument("--print-after-all", action="store_true", help="the same as --print-after=all")
    p.add_argument("--time-passes", action="store_true", help="print the time of each step on stderr")
    p.add_argument(
        "--explain-memory",
        nargs="?",
        const="-",
        metavar="HTML",
        help="print addresses and lifetimes of tiles on stderr, or draw them in an HTML file",
    )
    p.add_argument("--no-verify", action="store_true", help="check only the structure of the program")
    p.add_argument(
        "-j",
        dest="jobs",
        type=int,
        default=1,
        metavar="N",
        help="assemble N files in parallel (0: one per core)",
    )
    add_diagnostics(p)
    p.add_argument("--version", action="version", version=f"ptoas {__version__}")
    return p


def _main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--version"]:  # without the declaration of all options, which takes longer
        print(f"ptoas {__version__}")
        return 0
    from ..diag import DiagnosticError, has_errors, visible
    from .common import FAILED, OK, USAGE, refuse_output, say, show, write_output
    from .outputs import FORMS, decided

    parser = _parser()
    options = parser.parse_args(arguments)
    inputs = options.inputs or ["-"]
    folder = options.output != "-" and (len(inputs) > 1 or options.output.endswith(os.sep))
    try:
        options.emit = decided(options.emit, "" if folder else options.output, options.arch)
    except DiagnosticError as e:
        show(e.diagnostics, options.diagnostics)
        return FAILED
    refuse_output(parser, options.output, FORMS[options.emit].doc, ".ptobc")
    if inputs.count("-") > 1:
        parser.error("cannot read standard input twice")
    if len(inputs) > 1 and options.emit == "elf" and options.output == "-":
        parser.error("cannot write several images to standard output; write them to a folder: -o FOLDER/")
    if folder and os.path.exists(options.output) and not os.path.isdir(options.output):
        say(f"ptoas: expected a folder after -o for several inputs, got {visible(options.output)}\n")
        return USAGE
    if folder:
        stems = [_stem(path) for path in inputs]
        twice = next((stem for stem in stems if stems.count(stem) > 1), None)
        if twice is not None:
            say(f"ptoas: two inputs would be written to {visible(twice)}{FORMS[options.emit].suffix}\n")
            return USAGE
    if options.explain_memory not in (None, "-") and len(inputs) > 1:
        parser.error("--explain-memory=FILE takes one input")
    results = _assemble_all(inputs, options)
    found = _ignored(options) + [d for result in results for d in result.problems]
    for result in results:
        say(visible(result.aside, layout=True))
    status = OK
    if has_errors(found):
        status = FAILED
    else:
        for path, result in zip(inputs, results, strict=True):
            data, out = result.data, options.output
            if folder:
                os.makedirs(options.output, exist_ok=True)
                out = os.path.join(options.output, _stem(path) + FORMS[options.emit].suffix)
            elif len(inputs) > 1:
                data = f"// {path}\n".encode() + data
            problems = write_output(out, data, executable=options.emit == "so")
            found.extend(problems)
            if problems:
                status = FAILED
    show(found, options.diagnostics)
    return status


def _stem(path: str) -> str:
    if path == "-":
        return "stdin"
    name = os.path.basename(path)
    for suffix in (".ssa.pto", ".pto.s", ".pto", ".ptobc", ".mlir", ".s"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def _pass_name(text: str) -> str:
    import argparse

    from ..passes import PASSES

    names = [p.name for p in PASSES]
    if text != "all" and text not in names:
        raise argparse.ArgumentTypeError(f"unknown pass '{text}', expected all or one of {', '.join(names)}")
    return text


class _Result:
    """The result of one input: its output, its diagnostics, and further text for stderr."""

    def __init__(self, problems: list[Diagnostic]) -> None:
        self.data = b""
        self.problems = problems
        self.aside = ""
        self.lowered = False  # True after the verifier

    def packed(self) -> bytes:
        """Encode the result for the parent process."""
        from .. import diag, wire

        return wire.framed(wire.pack("bss", self.data, diag.to_json(self.problems), self.aside))

    @staticmethod
    def unpacked(data: bytes) -> Iterator[_Result]:
        """Decode the results of a child process."""
        import io

        from .. import diag, wire

        stream = io.BytesIO(data)
        while stream.tell() < len(data):
            content, problems, aside = wire.unpack("bss", wire.receive(stream.read, len(data)))
            result = _Result(diag.from_json(problems))
            result.data, result.aside = content, aside
            yield result


def _assemble_all(inputs: list[str], options: argparse.Namespace) -> list[_Result]:
    jobs = options.jobs or os.cpu_count() or 1
    if jobs <= 1 or len(inputs) <= 1:
        return [_assemble(path, options) for path in inputs]
    # The longest inputs go first, each to the process with the least work.
    sizes = [_size(path) for path in inputs]
    order = sorted(range(len(inputs)), key=lambda i: -sizes[i])
    found: dict[int, _Result] = {}
    if 4 * jobs * sizes[order[-1]] <= sum(sizes):
        # A short input goes before all others, so that the processes inherit its imports and caches.
        shortest = order.pop()
        found[shortest] = _assemble(inputs[shortest], options)
    shares: list[list[int]] = [[] for _ in range(min(jobs, len(order)))]
    loads = [0] * len(shares)
    for i in order:
        least = loads.index(min(loads))
        shares[least].append(i)
        loads[least] += sizes[i]
    children = [(_forked([inputs[i] for i in share], options), share) for share in shares[1:]]
    try:
        found.update((i, _assemble(inputs[i], options)) for i in shares[0])
        while children:
            (pid, pipe), share = children[0]
            with os.fdopen(pipe, "rb") as results:
                data = results.read()
            status = os.waitpid(pid, 0)[1]
            children.pop(0)
            if status == 0:
                found.update(zip(share, _Result.unpacked(data), strict=True))
            else:  # this process repeats the inputs, to report the error
                found.update((i, _assemble(inputs[i], options)) for i in share)
    except KeyboardInterrupt:
        import signal

        for (pid, _), _ in children:
            os.kill(pid, signal.SIGKILL)
        raise
    return [found[i] for i in range(len(inputs))]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:  # standard input, or a missing file, which is reported when it is read
        return 0


def _forked(paths: list[str], options: argparse.Namespace) -> tuple[int, int]:
    """Start a process that assembles some inputs. Return its id and the pipe of its results."""
    results, way = os.pipe()
    pid = os.fork()
    if pid:
        os.close(way)
        return pid, results
    status = 1
    try:
        os.close(results)
        with os.fdopen(way, "wb") as f:
            f.write(b"".join(_assemble(path, options).packed() for path in paths))
        status = 0
    finally:
        os._exit(status)


def _assemble(path: str, options: argparse.Namespace) -> _Result:
    """Assemble one input: return its output in the wanted form, or its problems."""
    from ..asm import parse_source
    from ..checking import no_function
    from ..ir.attrs import StrAttr
    from .common import read_input, target

    source, problems = read_input(path)
    if source is None:
        return _Result(problems)
    if options.time_passes:  # imports at first use do not belong to the time of a step
        from .. import driver  # noqa: F401
        from ..codegen import cpp  # noqa: F401

        if options.emit == "elf":
            from ..engine.native import images  # noqa: F401
    if source.text.startswith("pto.image "):
        return _listing(source, options)
    clock = _Clock()
    module, problems = parse_source(source)
    result = _Result(problems)
    if module is None:
        return result
    clock.lap("parse")
    profile = target(options, module)
    result.problems += no_function(source.name, module)
    if options.arch is not None:  # record the target in the program
        module.op.set_attr("pto.target_arch", StrAttr(options.arch))
    _lower(module, profile, options, result, clock)
    if options.time_passes and result.lowered:
        result.aside += clock.table(path)
    return result


def _listing(source: Source, options: argparse.Namespace) -> _Result:
    """Assemble a listing of images to the file that it describes."""
    from ..diag import Diagnostic, DiagnosticError
    from ..image import container, listing

    result = _Result([])
    if options.emit != "elf":
        help = "ptoas LISTING -o FILE.elf assembles it"
        what = f"cannot write {options.emit}: '{source.name}' is a listing of images"
        return _Result([Diagnostic("PTO-E0004", what, help=help)])
    try:
        result.data = container.to_bytes(listing.assembled(source))
    except DiagnosticError as e:
        result.problems += e.diagnostics
    return result


#: Options that affect only C++, with their defaults.
_OF_CPP = {
    "enable_insert_sync": False,
    "index_type": "int32_t",
    "line_directives": False,
    "emit_addptr_trace": False,
}


def _ignored(options: argparse.Namespace) -> list[Diagnostic]:
    """Return warnings for options without an effect."""
    from .outputs import FORMS

    if FORMS[options.emit].image or FORMS[options.emit].machine:
        names = [
            name for name, usual in {**_OF_CPP, "lowered": False}.items() if getattr(options, name) != usual
        ]
        help = "leave them out; they affect only C++ and text forms"
        shown = ", ".join("--" + name.replace("_", "-") for name in names)
        what = FORMS[options.emit].doc
        return [_warning("PTO-E0003", f"{shown}: no effect on {what}", help)] if names else []
    if not options.lowered or options.emit != "cpp":
        return []
    help = "--emit=pto --lowered prints the program after the passes"
    return [_warning("PTO-E0003", "--lowered has no effect on C++", help)]


def _is_made(emit: str) -> bool:
    """Return True if a form is generated from the program in manual form."""
    from .outputs import FORMS

    return emit == "cpp" or FORMS[emit].machine or FORMS[emit].image


def _leaves_pipes(module: Module) -> bool:
    """Return True if a program uses tiles and has no synchronization."""
    from ..driver import complete

    return not complete(module)[1] and any(op.name == "pto.alloc_tile" for op in module.walk())


def _unordered() -> Diagnostic:
    from ..diag import Diagnostic

    what = "no flags were inserted: nothing orders the pipes of this C++"
    help = "add --enable-insert-sync, or write set_flag and wait_flag"
    return Diagnostic("PTO-E0810", what, severity="note", help=help)


def _warning(code: str, message: str, help: str) -> Diagnostic:
    from ..diag import Diagnostic

    return Diagnostic(code, message, severity="warning", help=help)


def _wants_passes(options: argparse.Namespace) -> bool:
    asked = options.print_after or options.print_after_all or options.time_passes or options.explain_memory
    return bool(_is_made(options.emit) or options.lowered or asked)


#: Condition of each pass that does not always run.
_WHEN = {
    "auto": "the pass runs for programs whose tiles have no addresses",
    "sync": "add --enable-insert-sync",
    "layout": "leave out --disable-infer-layout",
}


def _lower(
    module: Module, profile: str | Profile | None, options: argparse.Namespace, result: _Result, clock: _Clock
) -> None:
    """Check the program, run the passes, and store the output."""
    from ..asm import to_text
    from ..diag import DiagnosticError, has_errors
    from ..driver import Options, lowered
    from ..passes import PASSES, Pass
    from .outputs import FORMS

    shown = {"all"} if options.print_after_all else set(options.print_after)

    def after(done: Pass, program: Module) -> None:
        if shown & {"all", done.name}:
            result.aside += f"// after {done.name}\n{to_text(program, 'pto')}"

    in_order = FORMS[options.emit].image or FORMS[options.emit].machine
    as_written = options.emit != "cpp" and (not options.lowered or in_order)
    made = Options(
        level=options.pto_level or "",
        insert_sync=options.enable_insert_sync and not in_order,
        infer_layout=not options.disable_infer_layout,
        check="structure" if options.no_verify else "all",
        passes="always" if _wants_passes(options) else "never",
    )
    done = lowered(
        module, profile, made, after=after if shown else None, timed=options.time_passes,
        keep=as_written or in_order,
    )  # fmt: skip
    result.problems += done.diagnostics
    if not done.ok and not done.ran:
        return
    result.lowered = True
    clock.times.update(done.times)
    clock.restart()
    if options.explain_memory is not None:
        result.problems += _explain(done.plan, options.explain_memory, result)
    if has_errors(result.problems):
        return
    for name in sorted(shown - {"all", *done.ran}):
        when = next(p.when for p in PASSES if p.name == name)
        what = f"cannot print the program after {name}: the pass did not run"
        result.problems.append(_warning("PTO-E0003", what, _WHEN[when]))
    if options.emit == "cpp" and not done.manual and not made.insert_sync and _leaves_pipes(done.module):
        result.problems.append(_unordered())
    if not _is_made(options.emit):
        result.data = to_text(module if as_written else done.module, options.emit).encode()
        return
    try:
        if in_order:
            result.data = _image(module, done, options)
        else:
            from ..codegen.flow import emitted

            result.data = emitted(
                done, index_type=options.index_type, line_directives=options.line_directives,
                addptr_trace=options.emit_addptr_trace,
            ).encode()  # fmt: skip
    except DiagnosticError as e:
        result.problems += e.diagnostics
    clock.lap("emit")


def _image(module: Module, done: Lowered, options: argparse.Namespace) -> bytes:
    """Return an image of a program as a file, or as machine code."""
    from ..engine.native.images import file_of
    from ..image.container import to_bytes
    from .outputs import FORMS

    if FORMS[options.emit].image:
        return to_bytes(file_of(module, done, ""))
    from ..engine.native import objects

    out = options.output
    name = os.path.basename(out) if out.endswith(".so") else _stem(module.source.name) + ".so"
    return objects.emitted(file_of(module, done, module.source.name), options.emit, name)


def _explain(plan: Any, where: str, result: _Result) -> list[Diagnostic]:
    """Write the map of on-chip memory, as text on stderr or as an HTML page."""
    if plan is None:
        result.aside += "no memory plan: the program gives its tiles addresses\n"
        return []
    from ..passes import explain_memory
    from .common import write_output

    if where == "-":
        result.aside += explain_memory.text(plan).rstrip() + "\n"
        return []
    return write_output(where, explain_memory.html(plan).encode())


class _Clock:
    """Seconds of each step."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.restart()

    def restart(self) -> None:
        self._start = time.perf_counter()

    def lap(self, step: str) -> None:
        self.times[step] = time.perf_counter() - self._start
        self.restart()

    def table(self, path: str) -> str:
        total = sum(self.times.values())
        rows = [*self.times.items(), ("total", total)]
        lines = [f"{seconds * 1e3:10.3f} ms {seconds / (total or 1):6.1%}  {step}" for step, seconds in rows]
        return f"{path}:\n" + "".join(line + "\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
