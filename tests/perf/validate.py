"""The model of time against every published measurement: `python -m tests.perf.validate [--all] [WORD..]`.

`measurements.csv` has the figures with their evidence, and the vendor's own model where that is known.
Kernels are those of `kernels.py`, timed by dry runs. Without `--all` those of more than a million events are left
out, which take a minute each.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from tests.perf import kernels

import pto
from pto.isa.costs import charge, tile, view
from pto.isa.timing import MACHINES

#: Measured rows that the model need not meet, and why.
EXCUSED = {
    "attention-1-core-1024": "of an older kernel, with at least 25 us of the host",
    "attention-1-core-2048": "of an older kernel, with at least 25 us of the host",
    "attention-1-core-4096": "at least 25 us of the host",
    "attention-1-core-8192": "at least 25 us of the host",
}
#: What takes longer than a test may.
LARGE = ("gemm-6144", "gemm-7680", "conv-6144", "conv-7680", "attention-16384", "attention-32768", "mx-8192")


class Row(NamedTuple):
    id: str
    kind: str
    what: str
    machine: str
    truth: float
    unit: str
    evidence: str
    peer: float | None
    note: str


class Compared(NamedTuple):
    row: Row
    model: float

    @property
    def error(self) -> float:
        return self.model / self.row.truth - 1

    @property
    def peer_error(self) -> float | None:
        return None if self.row.peer is None else self.row.peer / self.row.truth - 1


@cache
def rows() -> tuple[Row, ...]:
    with open(Path(__file__).with_name("measurements.csv"), newline="") as file:
        return tuple(
            Row(r["id"], r["kind"], r["what"], r["machine"], float(r["value"]), r["unit"], r["evidence"],
                float(r["peer"]) if r["peer"] else None, r["note"])
            for r in csv.DictReader(file)
        )  # fmt: skip


def timed(text: str, *args: Any, blocks: int, machine: str) -> Any:
    """The timeline of a program, without its data."""
    kernel = pto.kernel(pto.parse(text), engine="reference")
    return kernel(*args, blocks=blocks, timeline=machine, dry=True).timeline


def _operand(dtype: str, shape: str) -> Any:
    shape, _, padded = shape.partition("/")
    r, c = map(int, shape.split("x"))
    return tile(dtype, r, int(padded) if padded else c, r, c)


def _attention(s0: int, s1: int, machine: str) -> Any:
    head, blocks, slots = 128, s0 // 128, 5
    q, kv = np.zeros((s0, head), np.float16), np.zeros((s1, head), np.float16)
    o = np.zeros((s0, head), np.float32)
    scores = np.zeros(blocks * slots * 128 * 256, np.float32)
    weights = np.zeros(blocks * slots * 128 * 256, np.float16)
    partial = np.zeros(blocks * slots * 128 * head, np.float32)
    text = kernels.attention(s0, s1, head)
    return timed(text, q, kv, kv, o, scores, weights, partial, 1.0, blocks=blocks, machine=machine)


def _product(m: int, k: int, n: int, machine: str, blocks: int, dtype: str = "f16", **how: Any) -> Any:
    import ml_dtypes

    kind = {"f16": np.float16, "f8E4M3FN": ml_dtypes.float8_e4m3fn}[dtype]
    # lines of a feature map go beyond those of the product
    beyond = max(0, how["feature_map"][0] - how["base"][0]) if "feature_map" in how else 0
    a, b, c = np.zeros((m + beyond, k), kind), np.zeros((k, n), kind), np.zeros((m, n), np.float32)
    text = kernels.gemm(m, k, n, dtype=dtype, arch="a5" if machine == "a5" else "a3", **how)
    return timed(text, a, b, c, blocks=blocks, machine=machine)


def model(row: Row) -> float:
    """Return the model's value of a measurement, in its unit."""
    machine = MACHINES[row.machine]
    words = row.what.split()
    match row.kind:
        case "instruction":
            name, dtype, shape = words
            t = _operand(dtype, shape)
            other = tile("f16", t.rows, t.cols) if name == "tcvt" else t
            return charge(name, machine, dst=other, src=t, src0=t, src1=t).cycles
        case "load":
            dims = tuple(map(int, words[1].split("x")))
            size = tile(words[0], 1, 1)
            return charge("tload", machine, src=view(words[0], *dims), dst=size).cycles
        case "copy":
            t = _operand(*words)
            return charge("tmov", machine, src=t, dst=t).cycles
        case "curve":
            t = _operand("f32", words[1])
            return charge(words[0], machine, dst=t, src0=t, src1=t).cycles
        case "convert":
            source, target = _operand(words[0], words[2]), _operand(words[1], words[2])
            return charge("tcvt", machine, src=source, dst=target).cycles
        case "remote":
            size = int(words[1]) * 1024
            return machine.us(charge(words[0], machine, src=view("u8", size), dst=view("u8", size)).cycles)
        case "gemm":
            return _product(*map(int, words), row.machine, 24).us
        case "conv":
            m, k, n = map(int, words)
            how = {"base": (128, 48, 256), "step": 3, "feature_map": (224, 16)}
            return _product(m, k, n, row.machine, 24, **how).us
        case "mx":
            m, k, n = (
                -(-int(size) // base) * base for size, base in zip(words, (256, 128, 256), strict=True)
            )
            down = 4 if m % 512 == 0 and n % 2048 == 0 else 2
            how = {"base": (128, 128, 256), "step": 4, "grid": (down, 32 // down), "dtype": "f8E4M3FN"}
            return _product(m, k, n, row.machine, 32, **how).us
        case "dealt":
            blocks = 24 if row.machine == "a2a3" else 32
            return _product(*map(int, words), row.machine, blocks, grid=None).us
        case "attention":
            return _attention(int(words[0]), int(words[1]), row.machine).us
        case "topk":
            count, k, dtype = int(words[0]), int(words[1]), words[2]
            kind = np.float32 if dtype == "f32" else np.float16
            x, y = np.zeros((count, 1024), kind), np.zeros((count, k), kind)
            at = np.zeros((count, k), np.uint32)
            return timed(kernels.topk(count, k, dtype), x, y, at, blocks=48, machine=row.machine).us
        case _:
            raise ValueError(row.kind)


def compared(every: bool = False, only: Sequence[str] = ()) -> Iterator[Compared]:
    for row in rows():
        if (every or row.id not in LARGE) and (not only or any(word in row.id for word in only)):
            yield Compared(row, model(row))


def main(arguments: Sequence[str]) -> int:
    only = [a for a in arguments if not a.startswith("--")]
    found: list[Compared] = []
    print(
        f"{'measurement':<32}{'evidence':<11}{'truth':>10}{'model':>10}  {'unit':<7}{'error':>7}{'peer':>9}"
    )
    for one in compared("--all" in arguments, only):
        found.append(one)
        row, peer = one.row, "" if one.peer_error is None else f"{one.peer_error:+.1%}"
        why = f"  {EXCUSED[row.id]}" if row.id in EXCUSED else ""
        print(f"{row.id:<32}{row.evidence:<11}{row.truth:>10.6g}{one.model:>10.5g}  {row.unit:<7}"
              f"{one.error:>+7.1%}{peer:>9}{why}", flush=True)  # fmt: skip
    counted = [one for one in found if one.row.id not in EXCUSED]
    errors = [abs(one.error) for one in counted]
    ours = [abs(one.error) for one in counted if one.peer_error is not None]
    peers = [abs(one.peer_error) for one in counted if one.peer_error is not None]
    print(f"{len(errors)} rows: median error {median(errors):.1%}, worst {max(errors):.1%}")
    if peers:
        mean = sum(ours) / len(ours), sum(peers) / len(peers)
        print(f"where the field's model has a figure ({len(peers)} rows): ours {median(ours):.1%} in the median and "
              f"{mean[0]:.1%} in the mean, its {median(peers):.1%} and {mean[1]:.1%}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
