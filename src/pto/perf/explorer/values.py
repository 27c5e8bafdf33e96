"""Values of operands as a run had them, within a budget of bytes.

A *snapshot* is a matrix of elements at one moment; equal ones are one. Statistics are kept of each, contents
only while the budget lasts: they go into chunks that are compressed one by one, so that a page inflates the
chunk that it shows. What was not kept is counted, and the page says so.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np

from .page import packed

Array = np.ndarray[Any, Any]
Decode = Callable[[Array], Array]

#: Bytes of contents, compressed, where nobody says how many; bytes of a chunk before it is compressed.
BUDGET, CHUNK = 8 << 20, 1 << 18
#: Elements of a snapshot (its first rows where it has more), and operands that are kept at all.
MOST_ELEMENTS, MOST_OPERANDS = 1 << 18, 60_000
#: Element types that the page reads; others are kept as f32.
READ = ("f32", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")

IN, OUT = 0, 1


class Values:
    """Operands of events, by number of the event in the order of issue."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.spent = 0  # bytes of contents, compressed
        #: dtype, rows, columns, what it is, chunk (or -1) and offset, statistics, first and last elements
        self.snapshots: list[list[Any]] = []
        self.names: dict[str, int] = {}
        self.scalars: list[str] = []
        self.event: list[int] = []
        self.name: list[int] = []
        self.role: list[int] = []
        self.of: list[int] = []  # a snapshot, or -1 - number of a scalar
        self.dropped = 0  # operands of which nothing was kept
        self.chunks: list[str] = []
        self._known: dict[tuple[Any, ...], int] = {}  # snapshots, and contents, by what they are
        self._kept: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._open = bytearray()

    @property
    def full(self) -> bool:
        return len(self.event) >= MOST_OPERANDS

    @property
    def whole(self) -> int:
        """Snapshots whose contents were kept."""
        return sum(s[4] >= 0 for s in self.snapshots)

    def scalar(self, event: int, name: str, role: int, text: str) -> None:
        self._add(event, name, role, -1 - len(self.scalars))
        self.scalars.append(text)

    def matrix(
        self, event: int, name: str, role: int, codes: Array, dtype: str, kind: str, decode: Decode
    ) -> None:
        """An operand by its bits; `decode` gives their values, `kind` says in words what it is."""
        raw = np.ascontiguousarray(codes).tobytes()
        content = dtype, codes.shape, blake2b(raw, digest_size=16).digest()
        known = self._known.get((kind, *content))
        if known is None:
            known = self._known[(kind, *content)] = len(self.snapshots)
            values = decode(codes)
            where = self._kept.get(content)
            if where is None:
                if dtype not in READ:
                    raw = np.ascontiguousarray(values, np.float32).tobytes()
                where = self._kept[content] = self._keep(raw)
            flat = values.reshape(-1)
            ends = [", ".join(_word(v) for v in part.tolist()) for part in (flat[:4], flat[-4:])]
            self.snapshots.append([dtype, *codes.shape, kind, *where, _statistics(values), *ends])
        self._add(event, name, role, known)

    def _add(self, event: int, name: str, role: int, of: int) -> None:
        self.event.append(event)
        self.name.append(self.names.setdefault(name, len(self.names)))
        self.role.append(role)
        self.of.append(of)

    def _keep(self, raw: bytes) -> tuple[int, int]:
        """Where contents went: a chunk and an offset, or -1 where the budget is spent."""
        if self.spent + len(self._open) + len(raw) > self.budget:
            self._close()
            if self.spent + len(raw) > self.budget:
                return -1, 0
        found = len(self.chunks), len(self._open)
        self._open += raw
        if len(self._open) >= CHUNK:
            self._close()
        return found

    def _close(self) -> None:
        if self._open:
            small = zlib.compress(bytes(self._open), 6)
            self.spent += len(small)
            self.chunks.append(base64.b64encode(small).decode())
            self._open = bytearray()

    def dataset(self, index: Array) -> dict[str, Any]:
        """For the page; `index` has by number of an event its place there, or -1."""
        self._close()
        at = index[np.asarray(self.event, np.int64)] if self.event else np.zeros(0, np.int64)
        order = np.argsort(at, kind="stable")
        order = order[at[order] >= 0]
        columns = {"event": at, "name": self.name, "role": self.role, "of": self.of}
        return {
            "names": [name.split("\0", 1) for name in self.names],
            "scalars": self.scalars, "snapshots": self.snapshots,
            "columns": {name: packed(np.asarray(c, np.int64)[order]) for name, c in columns.items()},
            "budget": self.budget, "spent": self.spent, "whole": self.whole, "dropped": self.dropped,
        }  # fmt: skip

    def parts(self) -> str:
        """Chunks as markup: the page looks them up by number."""
        self._close()
        return "".join(
            f'<script type="text/plain" id="values-{n}">{text}</script>\n'
            for n, text in enumerate(self.chunks)
        )


def _word(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _statistics(values: Array) -> list[Any]:
    """Least, greatest and mean of what is finite; how many are NaN, infinite, zero. As text where a number
    would not survive JSON."""
    if not values.size:
        return ["", "", "", 0, 0, 0]
    nan = inf = 0
    found = values
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        count = int(np.count_nonzero(finite))
        if count != values.size:
            nan = int(np.count_nonzero(np.isnan(values)))
            inf = values.size - count - nan
            found = values[finite]
    zeros = values.size - int(np.count_nonzero(values))
    if not found.size:
        return ["", "", "", nan, inf, zeros]
    low, high = found.min().item(), found.max().item()
    return [_word(low), _word(high), f"{found.mean(dtype=np.float64):.6g}", nan, inf, zeros]
