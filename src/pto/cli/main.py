"""`pto VERB`: one module per verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from .. import __version__

#: verb -> one line; the module is pto.cli.VERB.
VERBS = {
    "run": "execute a kernel exactly, on arrays from files; sanitizers, schedules, pictures",
    "debug": "stop a kernel, look at its tiles, step through it and back; for editors, too",
    "build": "compile a kernel to a shared library with the system's C++ compiler",
    "record": "run a C++ kernel once, and write down what it did as a program",
    "objdump": "print an image as text, with its source lines; ptoas assembles it again",
    "runtime": "run graphs of kernels: folders with kernel_config.py and golden.py",
    "ranks": "run whole C++ programs as ranks: device runtime, communication, kernels and launches",
    "python": "run Python programs that import pypto, as they are; whole folders of them, with a report",
    "tune": "search compile-time parameters of a kernel: what is legal and fits, ranked by the cost model",
    "check": "verify programs: legality, structure, flags, tile memory; no execution",
    "fix": "insert the flags and barriers that sanitizers suggest",
    "fmt": "lay programs out; form, aliases and comments are kept",
    "cost": "what instructions cost on the machine; fit that to measurements",
    "isa": "what the instruction table knows",
    "explain": "what a diagnostic code means and how to fix it",
    "examples": "list the examples that come with pto, and copy them",
    "doctor": "what works on this machine",
    "cache": "what was compiled and is kept: how much, where; empty it",
}


def main(argv: Sequence[str] | None = None) -> int:
    from .common import run

    verb, *rest = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    if verb not in VERBS:
        return run("pto", _other, argv)
    return run(f"pto {verb}", lambda given: import_module(f"pto.cli.{verb}").main(given), argv, rest, True)


def _other(arguments: Sequence[str]) -> int:
    """What is no verb."""
    word = arguments[0] if arguments else "--help"
    if word in ("-h", "--help", "help"):
        print(usage())
        return 0
    if word == "--version":
        print(f"pto {__version__}")
        return 0
    from difflib import get_close_matches

    from ..diag import did_you_mean, visible

    hint = did_you_mean(word, get_close_matches(word, VERBS, n=1))  # the nearest alone: verbs are short
    said = f"unknown verb '{visible(word)}'{'; ' + hint if hint else ''}"
    print(f"pto: {said}\ntry 'pto --help'", file=sys.stderr)
    return 2


def usage() -> str:
    lines = ["usage: pto VERB [options]", "", "The PTO stack without an NPU. Verbs:", ""]
    lines += [f"  {verb:<9} {doc}" for verb, doc in VERBS.items()]
    lines += [
        "",
        "pto VERB --help tells more. The assembler is `ptoas`, the bytecode tool `ptobc`.",
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
