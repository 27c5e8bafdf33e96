"""What the tools share: inputs, outputs in one step, standard streams, diagnostics, exit status.

Exit status: 0 ok, 1 diagnostics, 2 usage, 70 our bug (with a reproducer file), 130 interrupted.
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
from ..diag import Diagnostic, DiagnosticError, Source, did_you_mean, render, render_json, visible
from ..files import write_whole

if TYPE_CHECKING:
    from ..ir.core import Module
    from ..isa.profiles import Profile

OK, FAILED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 70, 130


class _Checker(argparse.HelpFormatter):
    """What arguments are checked with as they are declared: it does not ask for the terminal's width, which
    would cost a tool that starts more than all its options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


# Our texts are English, and so are those of argparse: to look for a translation takes a program's time.
setattr(argparse, "_", str)  # noqa: B010


class Parser(argparse.ArgumentParser):
    """Usage errors on stderr with exit status 2, examples kept as written."""

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
        """As always; what nobody knows is an error of the verb that was given."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser: argparse.ArgumentParser = self
            for action in self._actions:
                if isinstance(action, argparse._SubParsersAction):
                    parser = action.choices.get(getattr(options, action.dest), self)
            hint = did_you_mean(unknown[0].partition("=")[0], parser._option_string_actions)
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{'; ' + hint if hint else ''}")
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {visible(message)}\ntry '{self.prog} --help'\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a help text or an error. argparse would drop what cannot be written."""
        (file or sys.stderr).write(message)


def add_target(parser: argparse.ArgumentParser) -> None:
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


def no_function(name: str, module: Module) -> list[Diagnostic]:
    """A warning where a program has nothing to run."""
    if module.functions:
        return []
    help = "put its instructions into a func.func"
    return [Diagnostic("PTO-E0219", f"{name}: the program has no function", severity="warning", help=help)]


def add_sanitize(p: argparse.ArgumentParser, help: str) -> None:
    """Add --sanitize; PTO_SANITIZE is its default."""
    from ..engine.sanitize import NAMES, WARN

    usual = knobs.get("PTO_SANITIZE")
    p.add_argument(
        "--sanitize", type=_sanitizers, default="" if usual == WARN else usual, metavar="LIST",
        help=f"{help}: {', '.join(NAMES)} or all, separated by commas (default: PTO_SANITIZE)",
    )  # fmt: skip


def _sanitizers(text: str) -> frozenset[str]:
    from ..engine.sanitize import parse_names

    try:
        return parse_names(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def add_auto(p: argparse.ArgumentParser) -> None:
    help = "C++ only: auto mode, tiles without TASSIGN have storage of their own (-D__PTO_AUTO__)"
    p.add_argument("--auto", action="store_true", help=help)


def refuse_auto(options: argparse.Namespace) -> None:
    """Auto mode is no option of programs."""
    if options.auto:
        from ..engine.launch import AUTO_OF_PROGRAMS

        problem = Diagnostic(
            "PTO-E2403", "--auto is an option of C++", help=f"leave it out: {AUTO_OF_PROGRAMS}"
        )
        raise DiagnosticError([problem])


def add_capacity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--capacity",
        action="append",
        default=[],
        metavar="LOC=BYTES",
        type=_capacity,
        help="another size of an on-chip buffer, e.g. vec=65536 (several allowed)",
    )


def _capacity(text: str) -> tuple[str, int]:
    from ..isa.profiles import LOCATIONS

    loc, _, size = text.partition("=")
    if loc not in LOCATIONS:
        raise argparse.ArgumentTypeError(f"unknown location '{loc}', expected one of {', '.join(LOCATIONS)}")
    if not size.isdigit() or len(size) > 15:
        raise argparse.ArgumentTypeError(f"'{size}' is not a number of bytes")
    return loc, int(size)


def target(options: argparse.Namespace, module: Module) -> str | Profile | None:
    """The target the options ask for, with the capacities they change; None leaves it to the program."""
    if not options.capacity:
        return options.arch
    from ..ir.facts import module_profile

    return module_profile(module, options.arch).override(dict(options.capacity))


def profile_list() -> str:
    """Every profile, each with its other names, as the help of options says it."""
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
    """A named file, or standard input for `-`; C++ is refused, unless `cpp` says otherwise."""
    from ..reading import decode, foreign, read

    try:
        source, problems = decode("<stdin>", standard_input()) if path == "-" else read(path)
    except DiagnosticError as e:
        return None, e.diagnostics
    if source is not None and not cpp and (other := foreign(source)):
        return None, [other]
    return source, problems


def standard_input() -> bytes:
    """Read all of standard input; raise `DiagnosticError` where it cannot be read."""
    try:
        return sys.stdin.buffer.read()
    except OSError as e:
        problem = Diagnostic("PTO-E0001", f"cannot read standard input: {_reason(e)}")
        raise DiagnosticError([problem]) from None


#: Who writes files of a kind.
_MAKERS = {
    ".so": "pto build FILE -o {} makes a library",
    ".o": "ptoas FILE -o {} makes an object",
    ".ptobc": "ptobc encode FILE -o {} writes bytecode",
    ".elf": "ptoas FILE -o {} writes an image",
    ".cpp": "ptoas FILE -o {} writes C++",
    ".pto": "ptoas FILE --emit=pto -o {} writes the program",
}


def refuse_output(parser: argparse.ArgumentParser, path: str | None, what: str, kinds: str) -> None:
    """End with a usage error where a file would not be what its name says; `kinds` are names of others."""
    suffix = os.path.splitext(path or "")[1]
    if suffix in kinds.split():
        parser.error(f"-o {path}: this writes {what}; {_MAKERS[suffix].format(path)}")


def write_output(path: str, data: bytes, executable: bool = False) -> list[Diagnostic]:
    """Write a file in one step: readers see the old content or the new, never a part."""
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


def rank_count(text: str) -> int:
    from ..isa.machine import MOST_RANKS

    if not text.isdigit() or not 0 < int(text) <= MOST_RANKS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of ranks (1 to {MOST_RANKS})")
    return int(text)


def seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number of seconds")
    return found


def show(diagnostics: Sequence[Diagnostic], form: str) -> None:
    """Diagnostics on stderr; JSON is one array per call, also when empty."""
    if form == "json":
        say(render_json(diagnostics) + "\n")
    elif diagnostics:
        say(render(diagnostics, color=_color()) + "\n")


def say(text: str) -> None:
    """Print text on stderr."""
    sys.stderr.write(text)
    sys.stderr.flush()


def tell(text: str) -> None:
    """Print lines about programs and files, whose names may hold control characters."""
    print(visible(text, layout=True))


def _color() -> bool:
    choice = knobs.get("PTO_COLOR")
    if choice != "auto":
        return choice == "always"
    return not knobs.get("NO_COLOR") and sys.stderr.isatty()


# -- a tool as a process -----------------------------------------------------------------------------------


class _Output(io.FileIO):
    """Standard output, which notes the number of the error where it could not be written."""

    problem = 0

    def write(self, data: Any) -> int:
        """Write all of the data, also to a pipe that is full and does not block."""
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
    """Standard error: where it cannot be written, the text is lost and the exit status stays as it is."""

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError:
            return len(data)


_output: _Output | None = None  # of a tool that is the whole process


def _open_streams() -> None:
    """Open the standard streams of a process, also those that it was started without."""
    global _output
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # A file that is opened later would have this number. To use this one fails, as for a closed one.
            taken = os.open(os.devnull, os.O_RDONLY if number else os.O_WRONLY)
            os.set_inheritable(taken, True)
    sys.stdin = sys.stdin or open(0, closefd=False)
    _output = _Output(1, "wb", closefd=False)
    sys.stdout = _stream(_output, sys.stdout, "<stdout>")
    sys.stderr = _stream(_Errors(2, "wb", closefd=False), sys.stderr, "<stderr>")


def _stream(raw: io.FileIO, given: Any, name: str) -> io.TextIOWrapper:
    """A stream for text as Python has opened it, if it has, on another file."""
    raw.name = name  # type: ignore[misc]
    errors = "backslashreplace" if name == "<stderr>" else "strict"
    encoding, errors = (given.encoding, given.errors) if given is not None else ("utf-8", errors)
    lines = name == "<stderr>" or raw.isatty()
    unbuffered = given is not None and given.write_through  # python -u
    file: Any = raw if unbuffered else io.BufferedWriter(raw)
    return io.TextIOWrapper(file, encoding, errors, None, lines, unbuffered)


def unwritten(e: BaseException) -> bool:
    """Tell whether an exception is that standard output could not be written."""
    return isinstance(e, OSError) and _output is not None and e.errno == _output.problem


def _discard(e: OSError) -> Diagnostic:
    """Write no more to standard output; the diagnostic that says why."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    return Diagnostic("PTO-E0002", f"cannot write to standard output: {_reason(e)}")


Body = Callable[[Sequence[str]], int]
#: What the user can mend, and we cannot: a file system that is full, a quota or limit that is reached.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def run(
    tool: str,
    body: Body,
    argv: Sequence[str] | None,
    arguments: Sequence[str] | None = None,
    executes: bool = False,
) -> int:
    """Run the body of a tool with `arguments` (default: all that the tool was given), and return its exit
    status. Where `argv` is None, the tool is the whole process, and owns its streams; if it `executes` code
    of the user's, also its signals. An exception is our bug: say so, write a reproducer, exit 70."""
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
    """The exit status of a body. Some libraries make another exception of a KeyboardInterrupt."""
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
    """The exit status of a body, once all that it printed has been written."""
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
    print(f"{tool}: internal error, this is a bug of ours{where}", file=sys.stderr)
    return BUG


def difference(path: str, old: str, new: str) -> Iterator[str]:
    """Yield a unified difference that `patch` reads."""
    import difflib

    # `splitlines` would also split at rarer separators, which may stand in comments.
    before, after = (list(io.StringIO(text, newline="\n")) for text in (old, new))
    for line in difflib.unified_diff(before, after, path, path):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
