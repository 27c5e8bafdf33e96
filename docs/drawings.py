"""The drawings of docs/micro-reference.md. Every row is the result of an instruction on
numbered items, executed by the reference engine (docs/traces.py).

    DRAWINGS   name -> its function; a page has it as `<!-- generate: drawing NAME -->`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import traces
from strips import KEPT, ZERO, Cell, Row, drawing
from traces import Array, bits

#: Lanes shown at the beginning and at the end of a register.
HEAD, TAIL = 16, 2


def cells(found: Sequence[int] | Array, run: int = 1) -> list[Cell]:
    """Cells with numbers; the tones change after `run` of them."""
    return [ZERO if n == 0 else KEPT if n < 0 else Cell(str(n), (n - 1) // run) for n in map(int, found)]


def strip(label: str, found: Array, remark: str = "", space: bool = False, run: int = 1) -> Row:
    """A row for a whole register or piece of memory: its beginning and its end."""
    made = cells(found, run)
    return Row(label, made[:HEAD], made[-TAIL:], remark, space=space)


def lanes(dtype: str) -> str:
    return f"{2048 // bits(dtype)} x {bits(dtype)} bit"


def vlds() -> str:
    rows = [Row("memory", cells(range(1, HEAD + 1)), remark="…")]
    rows += [
        strip(mode, traces.loaded(mode), lanes(result), space=mode in ("NORM", "BRC_B32", "US_B8", "UNPK_B8"))
        for mode, (_, result) in traces.LOADS.items()
    ]
    return drawing("vlds", "Distribution modes of vlds: which item of memory each lane gets", rows)


def vsts() -> str:
    rows = [
        Row("register", cells(range(1, HEAD + 1)), remark="…"),
        strip("NORM_B32", traces.stored("NORM_B32"), "32-bit items", space=True),
        strip("NORM_B32, PAT_M4", traces.stored("NORM_B32", "PAT_M4"), "32-bit items"),
        strip("1PT_B32", traces.stored("1PT_B32"), "32-bit items"),
    ]
    rows += [
        strip(mode, traces.stored(mode), f"{bits(result)}-bit items", space=mode in ("PK_B16", "MRG2CHN_B8"))
        for mode, (_, result) in list(traces.STORES.items())[2:]
    ]
    return drawing("vsts", "Distribution modes of vsts: 256 bytes of memory after the store", rows)


def vldsx2() -> str:
    rows = [Row("memory", cells(range(1, HEAD + 1)), remark="…")]
    for mode in ("DINTLV_B8", "DINTLV_B16", "DINTLV_B32", "BDINTLV"):
        low, high = traces.loaded_pair(mode)
        rows += [
            strip(f"{mode}, low", low, lanes(traces.PAIRS[mode]), space=True),
            strip("high", high),
        ]
    return drawing("vldsx2", "Modes of vldsx2: which items of memory the two registers get", rows)


def both(found: Sequence[int] | Array, count: int) -> list[Cell]:
    """Cells of two registers with `count` lanes each, numbered on: a1, a2, .. and b1, b2, .."""
    return [Cell(f"a{n}", 0) if n <= count else Cell(f"b{n - count}", 1) for n in map(int, found)]


def weave() -> str:
    rows = [
        Row("register a", both(range(1, HEAD + 1), 64), both((63, 64), 64), "64 x 32 bit"),
        Row("register b", both(range(65, 65 + HEAD), 64), both((127, 128), 64)),
    ]

    def pair(label: str, found: Array, remark: str, space: bool = False) -> Row:
        n = 64
        return Row(label, both(found[:HEAD], n), both(found[-TAIL:], n), remark, space=space)

    rows.append(pair("vstsx2 INTLV_B32", traces.stored_pair("INTLV_B32"), "memory", True))
    for name in ("vintlv", "vdintlv"):
        low, high = traces.woven(name)
        rows += [pair(f"{name}, low", low, "", True), pair("high", high, "")]
    return drawing("weave", "vstsx2, vintlv and vdintlv: where the lanes of two registers a and b go", rows)


def masks() -> str:
    count = 20
    rows = [Row("byte", [Cell(str(n)) for n in range(count)], remark="… 255")]
    for size in (1, 2, 4):
        grain = f"b{8 * size}"
        image = traces.mask_bits(f"pset_{grain}", "PAT_VL4")[:count]
        made = [
            Cell(str(bit), n // size if image[n - n % size] else None)
            for n, bit in enumerate(map(int, image))
        ]
        rows.append(Row(f"{grain}, PAT_VL4", made, remark=f"{256 // size} lanes", space=size == 1))
    return drawing("masks", "Bits of a mask against bytes of a register: the first 4 lanes on", rows)


def dots(on: Sequence[int] | Array) -> list[Cell]:
    return [Cell("", 0) if bit else Cell(" ") for bit in on]


PATTERNS = ("PAT_ALL", "PAT_VL8", "PAT_M3", "PAT_M4", "PAT_H", "PAT_Q", "PAT_ALLF")


def patterns() -> str:
    rows: list[Row] = []
    for pattern in PATTERNS:
        hw, doc = (traces.mask_bits("pset_b32", pattern, s)[::4] for s in ("hw", "doc"))
        same = np.array_equal(hw, doc)
        rows.append(Row(pattern if same else f"{pattern}, hw", dots(hw), group=8))
        if not same:
            rows.append(Row(f"{pattern}, doc", dots(doc), group=8))
    return drawing("patterns", "Patterns of pset_b32: which of 64 lanes are on", rows, cell=8.4)


def plt() -> str:
    n = left = 150
    rows: list[Row] = []
    for on, rest in traces.tail(n):
        rows.append(Row(f"plt_b32 of {left}", dots(on), group=8, remark=str(rest)))
        left = rest
    return drawing(
        "plt", f"plt_b32 over {n} elements: the lanes that are on, and the count that is left", rows, cell=8.2
    )


def predication() -> str:
    found = traces.predicated()
    on = traces.mask_bits("pset_b32", "PAT_M3")[::4]
    more = [Cell(str(n), (n - 101) % 8) if n else ZERO for n in map(int, found["vadds"])]
    marks = [Cell("on", 0) if bit else Cell("off") for bit in on]
    rows = [
        strip("register", np.arange(1, 65)),
        Row("mask, PAT_M3", marks[:HEAD], marks[-TAIL:]),
        Row("vadds 100", more[:HEAD], more[-TAIL:], "a register", space=True),
        strip("vsts", found["vsts"], "memory"),
    ]
    return drawing("predication", "Lanes that are off: 0 in a result, nothing stored in memory", rows)


def vcvt() -> str:
    rows = [Row("register", cells(range(1, HEAD + 1)), remark="…")]
    for (source, result), parts in traces.CONVERSIONS.items():
        for part in parts:
            found = traces.converted(source, result, part)
            first = part == parts[0]
            rows.append(strip(f"{source} to {result}, {part}", found, lanes(result), space=first))
    return drawing("vcvt", "Parts of vcvt: which lane of the source each lane of the result holds", rows)


REDUCTIONS = ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcpadd")


def reductions() -> str:
    rows = [strip("register", np.arange(1, 65), run=8)]
    for name in REDUCTIONS:
        hw, doc = traces.reduced(name), traces.reduced(name, "doc")
        same = np.array_equal(hw, doc)
        for label, found in ((name, hw),) if same else ((f"{name}, hw", hw), (f"{name}, doc", doc)):
            made = [
                Cell(str(n), _reduced_tone(name, lane, label)) if n else ZERO for lane, n in enumerate(found)
            ]
            remark = "value, lane" if name in ("vcmax", "vcmin") else ""
            if remark:  # the lane is a number, 0 included
                made[1] = Cell(str(found[1]), 7)
            rows.append(
                Row(label, made[:HEAD], made[-TAIL:], remark, space=label.endswith("hw") or name == "vcadd")
            )
    return drawing("reductions", "Lanes of the results of reductions of 1, 2, 3, .. 64", rows)


def _reduced_tone(name: str, lane: int, label: str) -> int:
    """The colour of the lanes that a result comes from, where it is one group of them."""
    if name.startswith("vcg"):
        return lane if label.endswith("hw") else lane // 8
    return 7


def stream() -> str:
    rows: list[Row] = []
    done = 0
    for k, count in enumerate(traces.APPENDED):
        found = traces.streamed(k + 1)
        done += count
        missing = sorted(set(range(1, done + 1)) - set(map(int, found)))
        held = f"{missing[0]}..{missing[-1]}" if len(missing) > 1 else "".join(map(str, missing))
        rows.append(Row(f"vstus {count}", cells(found), group=8, remark=held or "-"))
    rows.append(Row("vstas", cells(traces.streamed(len(traces.APPENDED), flush=True)), group=8, remark="-"))
    return drawing(
        "stream",
        "An unaligned store stream: memory after every step, and the items held back",
        rows,
        cell=15.4,
    )


DRAWINGS: dict[str, Callable[[], str]] = {
    "masks": masks, "patterns": patterns, "plt": plt, "predication": predication, "vlds": vlds,
    "vldsx2": vldsx2, "vsts": vsts, "weave": weave, "vcvt": vcvt, "reductions": reductions, "stream": stream,
}  # fmt: skip
