"""Programs with one bug each, and their correct twins.

A file begins with comments that say what is wrong with it and what has to be found:

    // RUN: f32:8x64 i32:4 3 blocks=2        arguments as arrays (DTYPE:DIMS) or scalars, options of the launch;
                                             with ranks=N also window:DTYPE:DIMS, context and rank
    // CHECK: race PTO-E2201 RAW at 17 with 15
                                             sanitizer, code, words of the message, the line it points at, and
                                             the lines its notes point at; one comment per report. `run` in place
                                             of a sanitizer: the program cannot go on, whatever is checked
    // FUZZ: hidden: why                     no schedule of this engine shows the race; else one of 200 has to

A twin, `NAME.good.pto` beside `NAME.bad.pto`, has the same arguments and nothing to report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import pto
from pto.diag import Diagnostic
from pto.engine.entry import Launchable
from pto.engine.memory import array_of
from pto.engine.reference.kernel import ReferenceKernel
from pto.engine.result import LaunchResult

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(p.name.removesuffix(".bad.pto") for p in PROGRAMS.glob("*.bad.pto"))

_CHECK = re.compile(r"(\w+) (PTO-E\d{4}|SA-\d{4})((?: [^ ]+)*?) at (\d+)(?: with ([\d, ]+))?$")
_ARRAY = re.compile(r"([a-z]\w*):(\d+(?:x\d+)*)$")


@dataclass(frozen=True)
class Check:
    """A report that a program must give."""

    sanitizer: str
    code: str
    words: str
    line: int
    others: frozenset[int]

    def fits(self, d: Diagnostic) -> bool:
        return found_at(d) == (self.code, self.line, self.others) and self.words in d.message


def found_at(d: Diagnostic) -> tuple[str, int, frozenset[int]]:
    """Code, line, and the lines of the notes of a report."""
    others = frozenset(span.place[0] for _, span in d.notes if span is not None)
    return d.code, d.span.place[0] if d.span is not None else 0, others


@dataclass
class Program:
    name: str
    text: str
    arguments: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    fuzz: str = ""

    @property
    def races(self) -> bool:
        return any(c.sanitizer == "race" for c in self.checks)

    @property
    def kernel(self) -> ReferenceKernel:
        return _kernel(self.name)

    def values(self) -> list[Any]:
        """Fresh arguments, the same every time; integers are small, floats of moderate size."""
        rng = np.random.default_rng(7)
        return [_value(text, rng) for text in self.arguments]

    def run(self, **options: Any) -> tuple[LaunchResult, list[bytes]]:
        """One launch, and what all arrays hold afterwards."""
        return self.launch(self.kernel, **options)

    def launch(self, kernel: Launchable, **options: Any) -> tuple[LaunchResult, list[bytes]]:
        """The same with another kernel that takes what this one does."""
        if "ranks" in self.options:
            return self._launch_ranks(kernel, **options)
        values = self.values()
        result = kernel.run(*values, **self.options, **options)
        return result, [v.tobytes() for v in values if isinstance(v, np.ndarray)]

    def _launch_ranks(self, kernel: Launchable, **options: Any) -> tuple[LaunchResult, list[bytes]]:
        world = pto.ranks(self.options["ranks"], window_bytes=1 << 16)
        rng = np.random.default_rng(7)
        columns: list[list[Any]] = []
        for text in self.arguments:
            if m := re.match(r"window:(\w+):(.+)", text):
                columns.append([world.window([int(n) for n in m[2].split("x")], m[1])] * world.ranks)
            elif text == "context":
                columns.append([world.context] * world.ranks)
            else:
                columns.append([n if text == "rank" else _value(text, rng) for n in range(world.ranks)])
        rest = {name: value for name, value in self.options.items() if name != "ranks"}
        result = world.run(kernel, list(zip(*columns, strict=True)), **rest, **options)
        arrays = [v for column in columns for v in column if isinstance(v, np.ndarray)]
        arrays += [w[n] for w in world.windows for n in range(world.ranks)]
        return result, [array.tobytes() for array in arrays]


def _value(text: str, rng: np.random.Generator) -> Any:
    m = _ARRAY.match(text)
    if m is None:
        return float(text) if "." in text else int(text)
    kind, shape = array_of(m[1]), [int(n) for n in m[2].split("x")]
    if kind.kind in "iu":
        return rng.integers(0, 4, shape).astype(kind)
    return (rng.integers(-8, 9, shape) / 4).astype(kind)


@cache
def load(name: str) -> Program:
    """`NAME.bad` or `NAME.good`."""
    text = (PROGRAMS / f"{name}.pto").read_text(encoding="utf-8")
    program = Program(name, text)
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        word, _, rest = line.removeprefix("// ").partition(": ")
        if word == "RUN":
            for part in rest.split():
                key, _, value = part.partition("=")
                if value:
                    program.options[key] = int(value)
                else:
                    program.arguments.append(part)
        elif word == "CHECK":
            m = _CHECK.match(rest)
            assert m is not None, f"{name}: malformed comment: {line}"
            others = frozenset(int(n) for n in (m[5] or "").split(",") if n.strip())
            program.checks.append(Check(m[1], m[2], m[3].strip(), int(m[4]), others))
        elif word == "FUZZ":
            program.fuzz = rest
    return program


@cache
def _kernel(name: str) -> ReferenceKernel:
    return pto.kernel(pto.parse(PROGRAMS / f"{name}.pto"), engine="reference")
