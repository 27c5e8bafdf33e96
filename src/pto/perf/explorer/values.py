"""Values of operands in a run, within a budget of bytes.

A *snapshot* is a matrix of elements at one time; equal snapshots are stored once. Statistics are stored for
every snapshot, but contents only while the budget lasts. Contents go into chunks that are compressed one by
one, so that a page inflates only the chunk that it shows. Values that are not stored are counted, and the
page shows the count.
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

#: Default budget of compressed contents in bytes; bytes of a chunk before compression.
BUDGET, CHUNK = 8 << 20, 1 << 18
#: Maximum elements of a snapshot (the first rows stay), and maximum operands.
MOST_ELEMENTS, MOST_OPERANDS = 1 << 18, 60_000
#: Element types that the page reads; others are stored as f32.
READ = ("f32", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")

IN, OUT = 0, 1


class Values:
    """Operands of events, by the number of the event in the order of issue."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.spent = 0  # compressed bytes of contents
        #: dtype, rows, columns, kind, chunk (or -1) and offset, statistics, first and last elements
        self.snapshots: list[list[Any]] = []
        self.names: dict[str, int] = {}
        self.scalars: list[str] = []
        self.event: list[int] = []
        self.name: list[int] = []
        self.role: list[int] = []
        self.of: list[int] = []  # number of a snapshot, or -1 - number of a scalar
        self.dropped = 0  # operands that were not stored
        self.chunks: list[str] = []
        self._known: dict[tuple[Any, ...], int] = {}  # digest -> number of the snapshot
        self._kept: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._open = bytearray()

    @property
    def full(self) -> bool:
        return len(self.event) >= MOST_OPERANDS

    @property
    def whole(self) -> int:
        """Number of snapshots with stored contents."""
        return sum(s[4] >= 0 for s in self.snapshots)

    def scalar(self, event: int, name: str, role: int, text: str) -> None:
        self._add(event, name, role, -1 - len(self.scalars))
        self.scalars.append(text)

    def matrix(
        self, event: int, name: str, role: int, codes: Array, dtype: str, kind: str, decode: Decode
    ) -> None:
        """Add an operand by its bits; `decode` returns their values, and `kind` describes the operand."""
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
        """Store contents, and return their chunk and offset, or -1 if the budget is spent."""
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
        """Return the values for the page; `index` maps the number of an event to its position there, or
        -1."""
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
        """Return chunks as markup; the page looks them up by number."""
        self._close()
        return "".join(
            f'<script type="text/plain" id="values-{n}">{text}</script>\n'
            for n, text in enumerate(self.chunks)
        )


def _word(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _statistics(values: Array) -> list[Any]:
    """Return minimum, maximum and mean of the finite elements, and the numbers of NaN, infinite and zero
    elements. The first three are text, because JSON does not represent all numbers exactly."""
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
