"""`pto VERB`: run the module of a verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from .. import __version__

#: Verb -> its description; the module is pto.cli.VERB.
VERBS = {
    "run": "execute a kernel on arrays from files, with sanitizers, schedules and timelines",
    "debug": "stop a kernel, inspect its tiles, and step forward and back; also for editors",
    "build": "compile a kernel to a shared library with the system's C++ compiler",
    "record": "run a C++ kernel once and record its operations as a program",
    "objdump": "print an image as text that ptoas assembles again, with source lines",
    "runtime": "run a graph of kernels: a folder with kernel_config.py and golden.py",
    "ranks": "run whole C++ programs as ranks, with device runtime, communication and kernels",
    "python": "run unmodified Python programs that import pypto or simpler; folders of them, with a report",
    "tune": "search compile-time parameters of a kernel, ranked by the cost model",
    "check": "verify programs without a run: legality, structure, flags, tile memory",
    "prove": "prove for all values of parameters that bounds, flags and races are right, or show values "
    "that fail",
    "fix": "insert the flags and barriers that sanitizers suggest",
    "fmt": "format programs; the form, aliases and comments stay",
    "lsp": "serve editors: diagnostics, pages, completion (Language Server Protocol)",
    "explore": "show a program in a browser: passes, C++, image, timeline, memory; edit and see",
    "cost": "show what instructions cost on a machine; fit the cost model to measurements",
    "isa": "print instructions of the instruction table",
    "explain": "explain a diagnostic code and how to fix the problem",
    "examples": "list or copy the examples that come with pto",
    "completion": "print a script that completes pto in bash, zsh or fish",
    "doctor": "check what works on this machine",
    "cache": "show, prune or clear the cache of compiled code",
}


def main(argv: Sequence[str] | None = None) -> int:
    from .common import run

    verb, *rest = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    if verb not in VERBS:
        return run("pto", _other, argv)
    return run(f"pto {verb}", lambda given: import_module(f"pto.cli.{verb}").main(given), argv, rest, True)


def _other(arguments: Sequence[str]) -> int:
    """Handle `--help`, `--version` and unknown verbs."""
    word = arguments[0] if arguments else "--help"
    if word in ("-h", "--help", "help"):
        print(usage())
        return 0
    if word == "--version":
        print(f"pto {__version__}")
        return 0
    from difflib import get_close_matches

    from ..diag import did_you_mean, visible

    # only the nearest verb, because verbs are short
    hint = did_you_mean(word, get_close_matches(word, VERBS, n=1))
    said = f"unknown verb '{visible(word)}'{'; ' + hint if hint else ''}"
    print(f"pto: {said}\ntry 'pto --help'", file=sys.stderr)
    return 2


def usage() -> str:
    lines = ["usage: pto VERB [options]", "", "The PTO stack without an NPU. Verbs:", ""]
    lines += [f"  {verb:<10} {doc}" for verb, doc in VERBS.items()]
    lines += [
        "",
        "pto VERB --help describes a verb. The assembler is `ptoas`, the bytecode tool `ptobc`.",
        "",
        "examples:",
    ]
    lines += [
        "  pto run k.pto --sanitize all -- @a.npy f32:16x64=out.npy",
        "  pto check k.pto",
        "  pto runtime run examples/runtime/vector_dag",
        "  pto python hello_world.py",
        "  pto isa tadd",
        "  pto explain SA-0353",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
