"""The catalogue of operators, by family, for the documentation and `python -m pto.language`."""

from __future__ import annotations

from collections.abc import Sequence

from ..isa import row as find_row
from ..isa.profiles import ISAS
from ..isa.python import signatures
from ..isa.record import Record
from ..isa.row import Row
from .operators import ALIASES, OPERATORS, Operator

#: Titles of families, in order. The key is the family of a row, or the module of an operator that is written
#: by hand.
TITLES = {
    "memory": "Loads, stores, windows and shapes",
    "shapes": "Loads, stores, windows and shapes",
    "layout-and-rearrangement": "Loads, stores, windows and shapes",
    "elementwise-tile-tile": "Element by element",
    "tile-scalar-and-immediate": "With a number",
    "compute": "Comparisons, waves, counts",
    "casts": "Conversions",
    "quant": "Conversions",
    "reduce-and-expand": "Reductions, and columns and rows for all",
    "cube": "Products",
    "mx": "Products",
    "gather": "By index, by pattern, sorted",
    "irregular-and-complex": "By index, by pattern, sorted",
    "fifo": "Between cores",
    "system": "Order of pipes and cores, arrays",
    "directives": "For the reader of a program",
    "hints": "Without effect on values",
    "micro": "Vector registers",
}


class Entry(Record):
    """An operator. `rows` are the instructions that implement it, `targets` the targets that have them."""

    call: str
    doc: str
    rows: tuple[Row, ...]
    targets: tuple[str, ...]


def families() -> dict[str, list[Entry]]:
    """Return every operator, by the title of its family."""
    found: dict[str, list[tuple[str, Entry]]] = {title: [] for title in TITLES.values()}
    for name, op in OPERATORS.items():
        if name in ALIASES:
            continue
        found.setdefault(_title(op), []).append((op.name, _entry(op)))
    return {
        title: [e for _, e in sorted(entries, key=lambda e: e[0])]
        for title, entries in found.items()
        if entries
    }


def _title(op: Operator) -> str:
    module = op.function.__module__.rpartition(".")[2]
    row = row_of(op)
    key = row.family if module == "rows" and row is not None else module
    return TITLES.get(key, key.capitalize())


def row_of(op: Operator) -> Row | None:
    """Return the instruction with the operator's name."""
    if op.level == "micro":
        return find_row(f"pto.{op.name}")
    found = signatures().get(op.name)
    return found.row if found is not None and op.level in ("", "tile") else None


def _entry(op: Operator) -> Entry:
    row = row_of(op)
    others = [a.rpartition(".")[2] for a, of in ALIASES.items() if OPERATORS[of] is op and "." not in a]
    doc = " ".join(op.doc.split())
    if others:
        doc += f" Also `{'`, `'.join(f'pl.{o}' for o in others)}`."
    words = [p.name if p.default is p.empty else f"{p.name}=" for p in op.signature.parameters.values()]
    return Entry(
        f"{op.full_name}({', '.join(words)})",
        doc,
        () if row is None else (row,),
        ISAS if row is None else row.isas,
    )


def listing(words: Sequence[str] = ()) -> str:
    """Return a listing, by family, of the operators whose name or description has one of the words; without
    words, list all operators.
    """
    from textwrap import fill

    parts: list[str] = []
    for title, entries in families().items():
        found = [
            e for e in entries if not words or any(w.lower() in f"{e.call} {e.doc}".lower() for w in words)
        ]
        if found:
            lines = [
                f"  {e.call}\n{fill(e.doc, 100, initial_indent=' ' * 6, subsequent_indent=' ' * 6)}"
                for e in found
            ]
            parts.append("\n".join([title, *lines]))
    return "\n\n".join(parts)
