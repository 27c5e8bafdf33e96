"""Common parts of the tools: inputs, atomic outputs, standard streams, diagnostics, exit status.

Exit status: 0 ok, 1 diagnostics, 2 usage, 70 a bug of pto (with a reproducer file), 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import __version__, knobs
from ..diag import Diagnostic, DiagnosticError, Source, did_you_mean, has_errors, render, render_json, visible
from ..files import write_whole

if TYPE_CHECKING:
    from ..ir.core import Module
    from ..isa.profiles import Profile

OK, FAILED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 70, 130


class _Checker(argparse.HelpFormatter):
    """Formatter that checks arguments as they are declared. It does not look up the width of the terminal,
    which takes longer than the declaration of all options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


# Texts are English, here and in argparse. A search for translations would take more time than the tool.
setattr(argparse, "_", str)  # noqa: B010


class CommandParser(argparse.ArgumentParser):
    """Argument parser that reports usage errors on stderr with exit status 2, and prints examples
    unchanged."""

    def __init__(self, prog: str, description: str, examples: str, color: bool = False) -> None:
        super().__init__(
            prog=prog, description=description, epilog="examples:\n" + examples,
            formatter_class=_Checker, allow_abbrev=False,
        )  # fmt: skip
        self.color = color  # from Python 3.14 on, argparse colors help, and subparsers get this argument

    def format_help(self) -> str:
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_help()

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """Parse arguments; an unknown option is an error of its verb."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser: argparse.ArgumentParser = self
            for action in self._actions:
                if isinstance(action, argparse._SubParsersAction):
                    parser = action.choices.get(getattr(options, action.dest), self)
            hint = did_you_mean(unknown[0].partition("=")[0], parser._option_string_actions)
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{'; ' + hint if hint else ''}")
        return options

    def parse_launch(self, given: Sequence[str]) -> Any:
        """Parse arguments; those after `--` are arguments of the kernel, `args`."""
        at = given.index("--") if "--" in given else len(given)
        options = self.parse_args(given[:at])
        options.args = [*getattr(options, "args", ()), *given[at + 1 :]]
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {visible(message)}\ntry '{self.prog} --help'\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a help text or an error. argparse would ignore errors of the output stream."""
        (file or sys.stderr).write(message)


def add_target(parser: argparse.ArgumentParser, capacity: bool = True) -> None:
    """Add --arch, and --capacity for tools that use it."""
    from ..isa.profiles import DEFAULT

    parser.add_argument(
        "--arch",
        "--pto-arch",
        "--target",
        dest="arch",
        metavar="PROFILE",
        type=profile_name,
        help=f"target profile: {profile_list()} (default: the module's pto.target_arch, else {DEFAULT})",
    )
    if capacity:
        parser.add_argument(
            "--capacity",
            action="append",
            default=[],
            metavar="LOC=BYTES",
            type=_capacity,
            help="set the size of an on-chip buffer, e.g. vec=65536 (repeatable)",
        )


def add_sanitize(p: argparse.ArgumentParser, help: str) -> None:
    """Add --sanitize; PTO_SANITIZE is its default."""
    from ..engine.sanitize import NAMES, WARN

    usual = knobs.get("PTO_SANITIZE")
    p.add_argument(
        "--sanitize", type=_sanitizers, default="" if usual == WARN else usual, metavar="LIST",
        help=f"{help}: {', '.join(NAMES)} or all, separated by commas (default: PTO_SANITIZE)",
    )  # fmt: skip


def add_depth(p: argparse.ArgumentParser) -> None:
    """Add the options for the amount of checking of a graph; the knobs give their defaults."""
    p.add_argument(
        "--sample",
        type=_sample,
        default=knobs.get("PTO_SAMPLE"),
        metavar="N",
        help="blocks of each kind that sanitizers check, or all (default: PTO_SAMPLE, %(default)s)",
    )
    p.add_argument(
        "--strict-undef",
        action="store_true",
        help="undef: also report undefined data in tensors between tasks that has no effect "
        "(default: PTO_STRICT_UNDEF)",
    )


def _sample(text: str) -> str:
    from ..engine.sanitize import parse_sample

    try:
        parse_sample(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None
    return text


def _sanitizers(text: str) -> frozenset[str]:
    from ..engine.sanitize import parse_names

    try:
        return parse_names(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def add_auto(p: argparse.ArgumentParser) -> None:
    help = "C++ only: auto mode, which gives each tile without TASSIGN its own storage (-D__PTO_AUTO__)"
    p.add_argument("--auto", action="store_true", help=help)


def refuse_auto(options: argparse.Namespace) -> None:
    """Refuse auto mode for programs."""
    if options.auto:
        from ..engine.launch import AUTO_OF_PROGRAMS

        problem = Diagnostic(
            "PTO-E2403", "--auto is an option of C++", help=f"leave it out: {AUTO_OF_PROGRAMS}"
        )
        raise DiagnosticError([problem])


def _capacity(text: str) -> tuple[str, int]:
    from ..isa.profiles import LOCATIONS

    loc, _, size = text.partition("=")
    if loc not in LOCATIONS:
        raise argparse.ArgumentTypeError(f"unknown location '{loc}', expected one of {', '.join(LOCATIONS)}")
    if not size.isdigit() or len(size) > 15:
        raise argparse.ArgumentTypeError(f"'{size}': expected a number of bytes")
    return loc, int(size)


def target(options: argparse.Namespace, module: Module) -> str | Profile | None:
    """Return the target of the options, with their capacities; None if the program decides."""
    if not options.capacity:
        return options.arch
    from ..ir.facts import module_profile

    return module_profile(module, options.arch).override(dict(options.capacity))


def profile_list() -> str:
    """List every profile with its other names, for the help of options."""
    from ..isa.profiles import PROFILES

    named = ((p.name, ", ".join(p.aliases)) for p in PROFILES.values())
    return ", ".join(f"{name} ({others})" if others else name for name, others in named)


def profile_name(text: str) -> str:
    from ..isa.profiles import ALIASES

    if text.lower() not in ALIASES:
        raise argparse.ArgumentTypeError(f"unknown profile '{text}', expected one of {', '.join(ALIASES)}")
    return ALIASES[text.lower()]


def add_diagnostics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--diagnostics",
        choices=("text", "json"),
        default="text",
        help="form of diagnostics on stderr (default: text)",
    )


def read_input(path: str, cpp: bool = False) -> tuple[Source | None, list[Diagnostic]]:
    """Read a file, or standard input for `-`. C++ is refused, except with `cpp`."""
    from ..reading import decode, foreign, read

    try:
        source, problems = decode("<stdin>", standard_input()) if path == "-" else read(path)
    except DiagnosticError as e:
        return None, e.diagnostics
    if source is not None and not cpp and (other := foreign(source)):
        return None, [other]
    return source, problems


def standard_input() -> bytes:
    """Read all of standard input; raise `DiagnosticError` if it cannot be read."""
    try:
        return sys.stdin.buffer.read()
    except OSError as e:
        problem = Diagnostic("PTO-E0001", f"cannot read standard input: {_reason(e)}")
        raise DiagnosticError([problem]) from None


#: Suffix of a file -> the command that writes such a file.
_MAKERS = {
    ".so": "pto build FILE -o {} makes a library",
    ".o": "ptoas FILE -o {} makes an object",
    ".ptobc": "ptobc encode FILE -o {} writes bytecode",
    ".elf": "ptoas FILE -o {} writes an image",
    ".cpp": "ptoas FILE -o {} writes C++",
    ".pto": "ptoas FILE --emit=pto -o {} writes the program",
}


def refuse_output(parser: argparse.ArgumentParser, path: str | None, what: str, kinds: str) -> None:
    """End with a usage error if the suffix of an output file contradicts its content; `kinds` are the
    suffixes of other contents."""
    suffix = os.path.splitext(path or "")[1]
    if suffix in kinds.split():
        parser.error(f"-o {path}: this writes {what}; {_MAKERS[suffix].format(path)}")


def write_output(path: str, data: bytes, executable: bool = False) -> list[Diagnostic]:
    """Write a file atomically: readers see either the old content or the new content."""
    try:
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        else:
            write_whole(path, data, executable)
    except OSError as e:
        if path == "-":
            return [_discard(e)]
        return [Diagnostic("PTO-E0002", f"cannot write '{path}': {_reason(e)}", help="nothing was written")]
    return []


def _reason(e: OSError) -> str:
    return (e.strerror or str(e)).lower()


def block_count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 1 << 16:
        raise argparse.ArgumentTypeError(f"'{text}': expected a number of blocks from 1 to 65536")
    return int(text)


def rank_count(text: str) -> int:
    from ..isa.machine import MOST_RANKS

    if not text.isdigit() or not 0 < int(text) <= MOST_RANKS:
        raise argparse.ArgumentTypeError(f"'{text}': expected a number of ranks from 1 to {MOST_RANKS}")
    return int(text)


def seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}': expected a positive number of seconds")
    return found


def show(diagnostics: Sequence[Diagnostic], form: str) -> None:
    """Print diagnostics on stderr. With JSON, each call prints one array, which may be empty."""
    if form == "json":
        say(render_json(diagnostics) + "\n")
    elif diagnostics:
        say(render(diagnostics, color=_color()) + "\n")


def ended(diagnostics: Sequence[Diagnostic], options: argparse.Namespace) -> int:
    """Print the diagnostics of a tool, and return its exit status."""
    show(diagnostics, options.diagnostics)
    return FAILED if has_errors(diagnostics) else OK


def say(text: str) -> None:
    """Print text on stderr."""
    sys.stderr.write(text)
    sys.stderr.flush()


def tell(text: str) -> None:
    """Print lines about programs and files; control characters in their names are escaped."""
    print(visible(text, layout=True))


def _color() -> bool:
    choice = knobs.get("PTO_COLOR")
    if choice != "auto":
        return choice == "always"
    return not knobs.get("NO_COLOR") and sys.stderr.isatty()


# -- a tool as a process -----------------------------------------------------------------------------------


class _Output(io.FileIO):
    """Standard output that records the number of its last error."""

    problem = 0

    def write(self, data: Any) -> int:
        """Write all of the data, also to a full pipe that does not block."""
        left = memoryview(data).cast("B")
        try:
            while left:
                if (count := super().write(left)) is None:
                    import select

                    select.select((), (self,), ())
                left = left[count or 0 :]
        except OSError as e:
            self.problem = e.errno
            raise
        return memoryview(data).nbytes


class _Errors(io.FileIO):
    """Standard error. If writing fails, the text is lost and the exit status does not change."""

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError:
            return len(data)


_output: _Output | None = None  # of a tool that is the whole process


def _open_streams() -> None:
    """Open the standard streams of a process, including those that were closed when it started."""
    global _output
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise a file that is opened later would get the number of this stream. Access to this file
            # fails, as for a closed one.
            taken = os.open(os.devnull, os.O_RDONLY if number else os.O_WRONLY)
            os.set_inheritable(taken, True)
    sys.stdin = sys.stdin or open(0, closefd=False)
    _output = _Output(1, "wb", closefd=False)
    sys.stdout = _stream(_output, sys.stdout, "<stdout>")
    sys.stderr = _stream(_Errors(2, "wb", closefd=False), sys.stderr, "<stderr>")


def _stream(raw: io.FileIO, given: Any, name: str) -> io.TextIOWrapper:
    """Return a text stream on another file, with the settings of Python's own stream if there is one."""
    raw.name = name  # type: ignore[misc]
    errors = "backslashreplace" if name == "<stderr>" else "strict"
    encoding, errors = (given.encoding, given.errors) if given is not None else ("utf-8", errors)
    lines = name == "<stderr>" or raw.isatty()
    unbuffered = given is not None and given.write_through  # python -u
    file: Any = raw if unbuffered else io.BufferedWriter(raw)
    return io.TextIOWrapper(file, encoding, errors, None, lines, unbuffered)


def unwritten(e: BaseException) -> bool:
    """Return True if an exception means that standard output could not be written."""
    return isinstance(e, OSError) and _output is not None and e.errno == _output.problem


def _discard(e: OSError) -> Diagnostic:
    """Discard all further standard output, and return a diagnostic with the reason."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    return Diagnostic("PTO-E0002", f"cannot write to standard output: {_reason(e)}")


Body = Callable[[Sequence[str]], int]
#: Errors that the user can mend: a full file system, or a quota or limit that is reached.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def run(
    tool: str,
    body: Body,
    argv: Sequence[str] | None,
    arguments: Sequence[str] | None = None,
    executes: bool = False,
) -> int:
    """Run the body of a tool with `arguments` (default: all arguments of the tool), and return its exit
    status. If `argv` is None, the tool is the whole process and owns its streams; if it also `executes` user
    code, it owns its signals. Report any exception as a bug of pto: write a reproducer and return 70."""
    given = list(sys.argv[1:] if argv is None else argv) if arguments is None else list(arguments)
    if argv is None:
        _open_streams()
        if executes:
            from .interrupt import EndOnSignal

            with EndOnSignal(tool, INTERRUPTED) as ending:
                try:
                    return _called(tool, body, given, lambda: ending.signalled)
                except KeyboardInterrupt as e:
                    ending.leave(str(e))
    try:
        return _called(tool, body, given)
    except KeyboardInterrupt as e:
        say(f"{tool}: interrupted {e}".rstrip() + "\n")
        return INTERRUPTED


def _called(
    tool: str, body: Body, arguments: list[str], interrupted: Callable[[], bool] = lambda: False
) -> int:
    """Return the exit status of a body. Some libraries convert a KeyboardInterrupt to another exception."""
    try:
        status = _flushed(body, arguments)
    except Exception as e:
        if interrupted():
            raise KeyboardInterrupt from None
        if not isinstance(e, OSError) or not (unwritten(e) or e.errno in _NO_SPACE):
            return _bug(tool, arguments)
        what = f"'{e.filename}'" if e.filename else "a file"
        full = Diagnostic("PTO-E0002", f"cannot write {what}: {_reason(e)}")
        show([_discard(e) if unwritten(e) else full], "text")
        return FAILED
    sys.stderr.flush()
    return status


def _flushed(body: Body, arguments: list[str]) -> int:
    """Return the exit status of a body after all of its output has been written."""
    try:
        status = body(arguments)
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _bug(tool: str, arguments: list[str]) -> int:
    import tempfile
    import traceback

    folder = knobs.get("PTO_REPRODUCER_DIR") or "."
    text = [
        f"{tool} {__version__}, Python {sys.version.split()[0]}",
        f"command: {tool} {' '.join(arguments)}",
        traceback.format_exc(),
    ]
    for path in arguments:
        if os.path.isfile(path):
            with open(path, "rb") as f:
                text.append(f"---- {path}\n{f.read(1 << 20).decode('utf-8', 'replace')}")
    try:
        handle, name = tempfile.mkstemp(prefix=f"{tool.replace(' ', '-')}-bug-", suffix=".txt", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            f.write("\n".join(text))
        where = f"; a reproducer is in {name}"
    except OSError:
        where = ""
    print(f"{tool}: internal error, this is a bug of pto{where}", file=sys.stderr)
    return BUG


def difference(path: str, old: str, new: str) -> Iterator[str]:
    """Yield a unified difference that `patch` reads."""
    import difflib

    # `splitlines` would also split at rarer separators, which may stand in comments.
    before, after = (list(io.StringIO(text, newline="\n")) for text in (old, new))
    for line in difflib.unified_diff(before, after, path, path):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
