"""`pto ranks`: run whole programs as ranks that access each other's windows."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..cache import opened
from ..diag import Diagnostic, DiagnosticError, has_errors, visible
from ..reading import SUFFIXES, read
from .common import (
    FAILED,
    OK,
    CommandParser,
    add_diagnostics,
    add_sanitize,
    add_target,
    rank_count,
    say,
    seconds,
    show,
    write_output,
)

if TYPE_CHECKING:
    from ..host.checks import RankChecks
    from ..host.launch import RanksOutcome
    from ..isa.profiles import Profile

#: Suffixes of compiled parts of a program.
_OBJECTS = (".o", ".a", ".so")
_EXAMPLES = """\
  pto ranks -n 4 main.cpp kernel.cpp -- --size 1024   build the program, and start four processes
  pto ranks -n 2 ./program                            start a program that is built
  pto ranks main.cpp kernel.o -o program              build only; kernel.o has no <<<..>>>
  pto ranks -n 2 --sanitize all main.cpp              also check the kernels

A program is written as for devices: it calls the device runtime (acl/acl.h), its communication library
(hccl/hccl.h) and MPI, and launches its kernels with <<<blocks, nullptr, stream>>>.
Every printed line names its rank. If ranks deadlock, or a rank is killed, pto ranks reports this and ends
the other ranks.
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto ranks",
        "Run a program as several processes (ranks) whose kernels access each other's memory.",
        _EXAMPLES,
    )
    add = p.add_argument
    add("-n", dest="ranks", type=rank_count, metavar="N", help="number of ranks (default: 1)")
    add(
        "-o",
        dest="output",
        metavar="FILE",
        help="write the built program to FILE, and do not start it",
    )
    add("-I", dest="include", action="append", default=[], metavar="DIR", help="folder of include files")
    add(
        "-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]", help="macro for the sources"
    )
    add("-L", dest="folders", action="append", default=[], metavar="DIR", help="folder of libraries")
    add("-l", dest="link", action="append", default=[], metavar="LIBRARY", help="library to link")
    add(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="end all ranks after that time, and report what they were doing",
    )
    add_sanitize(p, "check kernels")
    add("--flags", action="store_true", help="print the compiler options for such a program")
    add_target(p, capacity=False)
    add_diagnostics(p)
    add("input", nargs="*", metavar="FILE", help="C++ sources and objects, or a program")
    words = list(arguments)
    own = words[words.index("--") + 1 :] if "--" in words else []
    options = p.parse_args(words[: len(words) - len(own) - ("--" in words)])
    if bool(options.input) == options.flags:
        p.error("--flags takes no FILE" if options.flags else "missing FILE")
    try:
        return _run(options, own)
    except DiagnosticError as e:
        show(e.diagnostics, options.diagnostics)
        return FAILED if has_errors(e.diagnostics) else OK


def _run(options: Namespace, own: list[str]) -> int:
    from ..isa.profiles import DEFAULT, profile

    target = profile(options.arch or DEFAULT)
    if options.flags:
        from ..host import build

        print(" ".join(["-std=c++20", *build.compile_flags(target), *build.link_flags()]))
        return OK
    parts = [name for name in options.input if name.endswith((*SUFFIXES, *_OBJECTS))]
    if parts and len(parts) != len(options.input):
        raise DiagnosticError([
            Diagnostic("PTO-E2421", "expected C++ sources and objects, or one executable program, got both",
                       help="put arguments of the program after --")
        ])  # fmt: skip
    program = _built(options, parts, target) if parts else _startable(options.input)
    if program is None:
        return OK
    from ..host import launch

    command = [program, *own]
    if options.sanitize:
        done, problems, verdict = _checked(options, command)
    else:
        done, problems, verdict = launch.run(command, options.ranks, options.timeout), [], ""
    problems = [*(Diagnostic("PTO-E2422", text) for text in done.reports), *problems]
    show(problems, options.diagnostics)
    if options.diagnostics == "text":
        say(verdict)
    worst = next((s for s in done.statuses if s), OK)
    return FAILED if has_errors(problems) else worst


def _checked(options: Namespace, command: list[str]) -> tuple[RanksOutcome, list[Diagnostic], str]:
    """Run a program and check its ranks. Return the outcome, the findings, and the verdict as text."""
    from ..host import launch
    from ..host.checks import RankChecks
    from ..host.meeting import placed
    from ..host.trace import HostProgram

    if placed(os.environ) is not None:
        raise DiagnosticError([
            Diagnostic("PTO-E2403", "--sanitize needs all ranks, but another launcher has started this one",
                       help="start them with pto ranks -n N, without another launcher")
        ])  # fmt: skip
    program = HostProgram(command[0])
    with contextlib.ExitStack() as files:
        traces = [files.enter_context(tempfile.TemporaryFile()).fileno() for _ in range(options.ranks or 1)]
        done = launch.run(command, options.ranks, options.timeout, traces=traces)
        checks = RankChecks(program, options.sanitize, traces)
        problems = checks.run()
    return done, problems, _verdict(checks, len(traces), problems)


def _verdict(checks: RankChecks, ranks: int, problems: Sequence[Diagnostic]) -> str:
    found = f"{len(problems)} finding{'s'[: len(problems) != 1]}" if problems else "nothing found"
    names = ", ".join(sorted(checks.names))
    lines = [
        f"checked: {checks.launches} launch{'es'[: 2 * (checks.launches != 1)]} of "
        f"{ranks} rank{'s'[: ranks != 1]} for {names}: {found}"
        if checks.launches and names
        else "checked: nothing" + ", since no kernel was launched" * (not checks.launches)
    ]
    return "".join(f"{line}\n" for line in [*lines, *(f"not checked: {what}" for what in checks.unchecked)])


def _built(options: Namespace, names: list[str], target: Profile) -> str | None:
    from ..host import build

    sources = []
    objects = [os.path.abspath(name) for name in names if name.endswith(_OBJECTS)]
    missing = next((name for name in objects if not os.path.isfile(name)), None)
    if missing is not None:
        raise DiagnosticError([Diagnostic("PTO-E0001", f"cannot read '{visible(missing)}': no such file")])
    for name in names:
        if name.endswith(_OBJECTS):
            continue
        source, problems = read(name)
        if source is None:
            raise DiagnosticError(problems)
        sources.append(source)
    flags = [f"-I{d}" for d in options.include] + [f"-D{d}" for d in options.define]
    flags += [f"-L{d}" for d in options.folders] + [f"-l{name}" for name in options.link]
    begin = time.monotonic()
    made = build.program(sources, target, flags, objects, traced=bool(options.sanitize))
    if options.output is None:
        return made.path
    with open(opened(made.path), "rb") as f:
        problems = write_output(options.output, f.read(), executable=True)
    if problems:
        raise DiagnosticError(problems)
    took = time.monotonic() - begin
    print(f"{options.output}: {len(sources)} sources, {took:.1f} s", file=sys.stderr)
    return None


def _startable(names: list[str]) -> str:
    name, *more = names
    if more:
        raise DiagnosticError([
            Diagnostic("PTO-E2421", f"expected one program, got {len(names)} files",
                       help="put arguments of the program after --")
        ])  # fmt: skip
    found = shutil.which(name) or (name if os.path.isfile(name) and os.access(name, os.X_OK) else None)
    if found is None:
        why = "it cannot be executed" if os.path.exists(name) else "no such file"
        raise DiagnosticError([
            Diagnostic("PTO-E0001", f"cannot start '{name}': {why}",
                       help="give C++ sources or an executable program")
        ])  # fmt: skip
    return os.path.abspath(found)
