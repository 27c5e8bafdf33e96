"""Programs with an error and their mended twins: `pto explain` shows them, the golden tests run them.

A file is named CODE_what.SUFFIX, its twin CODE_what_ok.SUFFIX, or as a line `// TWIN: FILE` says. Comments
are `//`, or `#` in Python, shell and text. Lines `// RUN: COMMAND` come first; `%s` in a command is the file.
A line `//--- NAME` begins another file. Expectations of tests are last, from `// STDOUT:` or `// STDERR:`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from importlib import import_module
from pathlib import Path

from .. import knobs
from ..diag import DiagnosticError
from ..isa.record import Record

#: Codes without a program: what it would need.
WITHOUT = {
    "PTO-E0006": "a Python without pygls",
    "PTO-E0007": "a bug of pto",
    "PTO-E1215": "a file that was made to fill the memory",
    "PTO-E2017": "an editor with a wrong launch configuration",
    "PTO-E2406": "a Python without llvmlite",
    "PTO-E2423": "a process of another user",
    "PTO-E2424": "a disk that damages files",
    "PTO-E2440": "a Python without z3",
    "PTO-E2608": "a damaged installation",
    "PTO-E2609": "an error of the runtime that has no code of its own",
    "PTO-E2629": "a bug of pto",
}

_TOOLS = {"ptoas": "ptoas", "ptobc": "ptobc", "pto": "main"}
_RUN = re.compile(r"^(?://|#) RUN: (.*)$", re.M)
_TWIN = re.compile(r"^(?://|#) TWIN: (.*)$", re.M)
_HEAD = re.compile(r"\A(?:(?://|#) .*\n)*")
_EXPECTATIONS = re.compile(r"^(?://|#) STD(?:OUT|ERR)(?: \d+)?:\n", re.M)
_FILE = re.compile(r"^(?://|#)--- (\S+)\n", re.M)


class ErrorProgram(Record):
    """Files of a folder, and the commands that are run there."""

    files: dict[str, str]
    commands: tuple[str, ...]

    @property
    def text(self) -> str:
        named = (f"--- {name}\n{text}" for name, text in self.files.items())
        return "".join(self.files.values() if len(self.files) == 1 else named)

    @property
    def command(self) -> str:
        return "\n$ ".join(self.commands)

    def write(self, folder: str | Path = ".") -> None:
        for name, text in self.files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def read(text: str, name: str) -> ErrorProgram:
    """Read a text; `name` is the file `%s`. Its lines keep their numbers."""
    text = _EXPECTATIONS.split(text, maxsplit=1)[0]
    first, *others = _FILE.split(text)
    files = dict(zip(others[::2], others[1::2], strict=True)) or {name: first}
    return ErrorProgram(files, tuple(c.replace("%s", name) for c in _RUN.findall(first)))


def perform(command: str) -> int:
    """Run a command in this process: a tool or a Python script, after assignments NAME=VALUE of the
    environment."""
    words = shlex.split(command)
    assigned = {}
    while re.match(r"[A-Z_]+=", words[0]):
        name, _, assigned[name] = words.pop(0).partition("=")
    tool, *arguments = words
    with knobs.environment(assigned):
        if tool == "python":
            return _script(arguments)
        if words[:2] == ["pto", "python"]:  # changes the modules of its process
            call = [sys.executable, "-m", "pto.cli.main", *arguments]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
            sys.stdout.write(done.stdout)
            sys.stderr.write(done.stderr)
            return done.returncode
        try:
            return import_module(f"pto.cli.{_TOOLS[tool]}").main(arguments)
        except SystemExit as e:
            return e.code if isinstance(e.code, int) else 1


def _script(arguments: list[str]) -> int:
    """Run a script, and print an error of pto without a traceback, which has paths of this machine."""
    import runpy

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_: print(message, file=sys.stderr)
        before, sys.argv = sys.argv, arguments
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        except DiagnosticError as e:
            print(e, file=sys.stderr)
            return 1
        except SystemExit as e:
            return e.code if isinstance(e.code, int) else int(e.code is not None)
        finally:
            sys.argv = before
    return 0


def example(code: str) -> dict[str, str]:
    """Return a program with an error, the command that reports it, the output, and the change that mends it;
    the reason if there is none, and nothing for codes of the vendor stack. The programs are tests: their
    folders, or a copy in the package."""
    for wrong, right in _pairs(code):
        lines = [f"  {line}" for line in [*unified_diff(wrong.text.splitlines(), right.text.splitlines(),
                                                        lineterm="", n=1)][2:]]  # fmt: skip
        lines += [f"$ {right.command}"] * (right.command != wrong.command)
        output = _output(wrong) if wrong.commands and lines else ""
        if code in output:
            return {
                "program": wrong.text.rstrip("\n"), "command": wrong.command, "output": output.rstrip(),
                "change": "\n".join(lines),
            }  # fmt: skip
    return {"no_program": f"needs {WITHOUT[code]}"} if code in WITHOUT else {}


def twin(wrong: Path) -> Path:
    """Return the mended program."""
    named = _TWIN.search(wrong.read_text(encoding="utf-8"))
    return wrong.with_name(named[1] if named is not None else f"{wrong.stem}_ok{wrong.suffix}")


def _pairs(code: str) -> Iterator[tuple[ErrorProgram, ErrorProgram]]:
    """Yield programs with an error, and the mended programs."""
    package = Path(__file__).parents[1]
    tests = package.parent.parent / "tests"
    copy = package / "errors"
    for wrong in sorted((copy if copy.exists() else tests / "golden/errors").glob(f"{code}_*")):
        right = twin(wrong)
        if right.exists():
            yield _shown(wrong), _shown(right)
    for wrong in sorted((copy if copy.exists() else tests / "sanitize/programs").glob("*.bad.pto")):
        if code in wrong.read_text(encoding="utf-8").partition("\n!")[0]:
            command = _launch(wrong, code)
            good = wrong.with_name(wrong.name.replace(".bad.", ".good."))
            if command:
                yield _shown(wrong, command), _shown(good, command)


def _shown(path: Path, command: str = "") -> ErrorProgram:
    """Return a program as `k.SUFFIX` without the comments at its head."""
    found = read(path.read_text(encoding="utf-8"), f"k{path.suffix}")
    files = {name: _HEAD.sub("", text) for name, text in found.files.items()}
    return ErrorProgram(files, (command,) if command else found.commands)


def _launch(path: Path, code: str) -> str:
    """Return the command for a program of the sanitizers; empty if `pto run` lacks one of its options."""
    text = path.read_text(encoding="utf-8")
    words = _RUN.findall(text)[0].split()
    options = [w for w in words if "=" in w]
    if any(not o.startswith(("blocks=", "ranks=", "subblocks=")) for o in options):
        return ""
    check = re.search(rf"^// CHECK: (\w+) {code}", text, re.M)
    watched = f" --sanitize {check[1]}" if check is not None and check[1] != "run" else ""
    launch = "".join(f" --{o.replace('=', ' ')}" for o in options)
    return f"pto run k.pto -q{watched}{launch} -- {' '.join(w for w in words if w not in options)}"


def _output(wrong: ErrorProgram) -> str:
    """Return the messages of the commands, in another process and an empty folder."""
    with tempfile.TemporaryDirectory(prefix="pto-explain-") as folder:
        wrong.write(folder)
        done = subprocess.run(
            [sys.executable, "-m", "pto.cli.error_programs", *wrong.commands], cwd=folder,
            stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False,
        )  # fmt: skip
    return done.stderr if "[" in done.stderr else done.stdout + done.stderr


def main(commands: Sequence[str]) -> int:
    return max(map(perform, commands))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
