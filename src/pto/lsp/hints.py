"""Notes in the text: types that it leaves out, planned addresses, and flags that the tools insert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..ir.core import Operation
from ..ir.types import ERROR
from .document import Document


class Hint(NamedTuple):
    offset: int
    text: str
    doc: str
    before: bool = False  # True before the statement, False after it


def hints(document: Document, start: int, end: int) -> list[Hint]:
    """Return the notes between two offsets, in order."""
    found = [*_types(document), *_addresses(document), *_flags(document)]
    return sorted((h for h in found if start <= h.offset <= end), key=lambda h: h.offset)


def _types(document: Document) -> Iterator[Hint]:
    """Yield the types of results that follow from the operands and are not in the text."""
    texts = document.tokens.texts
    index = {start: i for i, start in enumerate(document.tokens.starts)}
    for found in document.names.all:
        value = found.value
        if not found.defines or value is None or value.op is None or value.type is ERROR:
            continue
        row = value.op.row
        if row is None or value.index >= len(row.results) or not row.infer.get(row.results[value.index].name):
            continue
        first, last = index[found.start], value.op
        written = False
        for i in range(first + 1, len(texts) - 1):
            if document.tokens.starts[i] >= last.end:
                break
            written |= texts[i] in (":", "->")
        if not written:
            yield Hint(found.end, f": {value.type}", f"type of {found.name}")


def addresses(document: Document) -> dict[int, str]:
    """Return the planned place of tiles by the offset of their statement."""
    plan = document.lowered.plan if document.lowered is not None else None
    made = ((tile, tile.value.op) for tile in plan.tiles()) if plan is not None else ()
    return {
        op.start: f"{tile.space.loc} {tile.address:#x}..{tile.end:#x}"
        for tile, op in made
        if op is not None and op.source is document.source
    }


def _addresses(document: Document) -> Iterator[Hint]:
    planned = addresses(document)
    for found in document.names.all if planned else ():
        op = found.value.op if found.defines and found.value is not None else None
        if op is not None and op.source is document.source and op.start in planned:
            yield Hint(found.end, f"@ {planned[op.start]}", f"planned address of {found.name}")


def _flags(document: Document) -> Iterator[Hint]:
    """Yield the flags and barriers that the tools insert, beside the statements that they order."""
    done = document.lowered
    if done is None or "insert-sync" not in done.ran:
        return
    own = (
        {(op.start, op.end) for op in document.checked.module.walk() if _orders(op)}
        if document.checked.module
        else set()
    )
    for op in done.module.walk():
        block = op.parent
        if not _orders(op) or block is None or op.source is not document.source or (op.start, op.end) in own:
            continue
        at = block.ops.index(op)
        before = any(
            not _orders(o) and (o.start, o.end) == (op.start, op.end)
            for o in block.ops[at + 1 :]
            if o.source is op.source
        )
        yield Hint(op.start if before else op.end, _flag(op), "inserted by the tools", before)


def _orders(op: Operation) -> bool:
    return op.row is not None and bool(op.row.order)


def _flag(op: Operation) -> str:
    assert op.row is not None
    words = [
        str(op.attr(a.name)).removeprefix("PIPE_").removeprefix("EVENT_")
        for a in op.row.attrs
        if a.name in op.attrs
    ]
    return f"{op.row.name}[{', '.join(words)}]"
