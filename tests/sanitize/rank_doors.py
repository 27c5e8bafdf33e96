"""Whole programs of several ranks with a planted fault: tests/host/checked.cpp, by `pto ranks`."""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path

from tests.made import digest, made_once

from pto import knobs
from pto.cli.main import main
from pto.engine.cpp import compiler

from .doors import DOORS, ROOT, Corpus, Door, Found, of_text
from .kernel_doors import printed

SOURCE = ROOT / "tests/host/checked.cpp"
_FOUND = re.compile(r"// FOUND (.*) (PTO-E\d{4})$")


@cache
def built(source: Path) -> str:
    """A program whose calls are traced, built once."""
    key = digest(compiler.headers_digest(), str(source), source.read_text(encoding="utf-8"))
    words = ["ranks", "-n", "1", "--sanitize", "all", str(source), "-o"]
    with printed() as err:
        made = made_once("ranks", key, "program", lambda part: main([*words, str(part)]))
    assert made.exists(), err.getvalue()
    return str(made)


def by_command(word: str, environment: bool = False) -> Found:
    """`pto ranks`; the ranks are processes of their own."""
    program, words = built(SOURCE), [] if environment else ["--sanitize", "all"]
    with printed() as err, knobs.override(PTO_SANITIZE="all" * environment):
        main(["ranks", "-n", "2", "--timeout", "100", *words, program, "--", word])
    return of_text(err.getvalue(), "error warning")


def expected(word: str) -> Found:
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    found = [(m, number) for number, line in enumerate(lines, 1) if (m := _FOUND.search(line))]
    return {(m[2], number) for m, number in found if word in m[1].split()}


_WHOLE = "takes kernels and graphs; a program with a main starts by itself"
RANKS = Corpus("programs of several ranks", ["race", "early", "zero", "outside", "stuck", "apart"], expected, {
    **dict.fromkeys(DOORS, _WHOLE),
    "PTO_SANITIZE": Door(partial(by_command, environment=True), share=8),
    "pto ranks": Door(by_command, share=2),
})  # fmt: skip
