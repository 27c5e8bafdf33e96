"""The drawings of docs/micro.md. Nothing in them is drawn by hand: every row is what an instruction did when the
reference engine executed it on numbered items.

    DRAWINGS   name -> what makes it; a page has it as `<!-- generate: drawing NAME -->`
    execute    runs a few instructions in a vecscope on bytes of the unified buffer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from strips import KEPT, ZERO, Cell, Row, drawing

import pto

Array = np.ndarray[Any, Any]

#: What a program finds in the unified buffer: items it loads at 0, those it stores from OUT on.
SIZE, OUT = 8192, 4096
#: Lanes shown at the beginning and at the end of a register.
HEAD, TAIL = 16, 2

_PROGRAM = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @drawing(%x: !pto.ptr<u8>, %y: !pto.ptr<u8>) attributes {{pto.entry}} {{
    %zero = arith.constant 0 : index
    %l2 = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %size = arith.constant {size} : i64
    %at_out = arith.constant {out} : i64
    %all = pto.castptr %l2 : i64 -> !pto.ptr<u8, ub>
{pointers}
    pto.mte_gm_ub %x, %all, %l2, %size nburst(%one, %size, %size)
      : !pto.ptr<u8>, !pto.ptr<u8, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {{
{body}
    }}
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %all, %y, %size nburst(%one, %size, %size)
      : !pto.ptr<u8, ub>, !pto.ptr<u8>, i64, i64, i64, i64
    return
  }}
}}
"""

TYPES: dict[str, Any] = {
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "i32": np.int32,
    "f16": np.float16, "f32": np.float32,
}  # fmt: skip


def reg(dtype: str) -> str:
    return f"!pto.vreg<{2048 // bits(dtype)}x{dtype}>"


def ptr(dtype: str) -> str:
    return f"!pto.ptr<{dtype}, ub>"


def bits(dtype: str) -> int:
    return int(dtype[1:])


def execute(body: str, items: Array, semantics: str = "hw", fill: int = 0) -> Array:
    """The bytes from OUT on after `body`, which has `%in_T` and `%out_T` for every element type T. They are
    `fill` before."""
    pointers = "\n".join(
        f"    %in_{t} = pto.castptr %l2 : i64 -> {ptr(t)}\n    %out_{t} = pto.castptr %at_out : i64 -> {ptr(t)}"
        for t in TYPES
    )
    memory = np.full(SIZE, fill, np.uint8)
    image = items.view(np.uint8)
    memory[: image.size] = image
    after = np.zeros(SIZE, np.uint8)
    text = _PROGRAM.format(size=SIZE, out=OUT, pointers=pointers, body=body)
    pto.kernel(pto.parse(text))(memory, after, semantics=semantics)
    return after[OUT:]


def numbers(dtype: str, count: int, first: int = 1, high: bool = False) -> Array:
    """first, first + 1, ..; as 8-bit items their low or their high bytes."""
    found = np.arange(first, first + count)
    return (found >> 8 if high else found & 0xFF if dtype == "u8" else found).astype(TYPES[dtype])


def trace(body: str, source: str, result: str, count: int = 512, semantics: str = "hw") -> Array:
    """Numbers of the items of type `source` that became the items of type `result` from OUT on; 0 for a zero, -1
    where nothing was stored. 8-bit items go through in two runs, half of their numbers at a time."""

    def run(high: bool, fill: int) -> Array:
        return execute(body, numbers(source, count, high=high), semantics, fill).view(TYPES[result])

    low, other = run(False, 0), run(False, 0xFF)
    found = low.astype(np.int64)
    if source == "u8":
        found += run(True, 0).astype(np.int64) << 8
    stored = low.view(np.uint8).reshape(low.size, -1) == other.view(np.uint8).reshape(low.size, -1)
    return np.where(stored.all(axis=1), found, -1)


# -- cells -------------------------------------------------------------------------------------------------


def cells(found: Sequence[int] | Array, cycle: int = 8, run: int = 1) -> list[Cell]:
    """Cells with numbers; `cycle` tones in turn, each for `run` numbers."""
    return [
        ZERO if n == 0 else KEPT if n < 0 else Cell(str(n), (int(n) - 1) // run % cycle)
        for n in map(int, found)
    ]


def strip(label: str, found: Array, remark: str = "", **how: Any) -> Row:
    """A row for a whole register or piece of memory: its beginning and its end."""
    space = how.pop("space", False)
    made = cells(found, **how)
    return Row(label, made[:HEAD], made[-TAIL:], remark, space=space)


def lanes(dtype: str) -> str:
    return f"{2048 // bits(dtype)} x {bits(dtype)} bit"


def shown(dtype: str, name: str = "%r", at: int = 0) -> str:
    """The instruction that makes a register visible."""
    return f"      %at{at} = arith.constant {at * 2048 // bits(dtype)} : index\n" + (
        f"      pto.vsts {name}, %out_{dtype}[%at{at}] : {reg(dtype)}, {ptr(dtype)}"
    )


def load(dtype: str, name: str = "%v", at: int = 0) -> str:
    return (
        f"      %from_{name[1:]} = arith.constant {at} : index\n"
        f"      {name} = pto.vlds %in_{dtype}[%from_{name[1:]}] : {ptr(dtype)} -> {reg(dtype)}\n"
    )


# -- loads and stores --------------------------------------------------------------------------------------

#: Modes of vlds with the element types of memory and register.
LOADS = {
    "NORM": ("u32", "u32"), "BRC_B32": ("u32", "u32"), "BRC_BLK": ("u32", "u32"),
    "E2B_B16": ("u16", "u16"), "E2B_B32": ("u32", "u32"), "US_B8": ("u8", "u8"), "US_B16": ("u16", "u16"),
    "DS_B8": ("u8", "u8"), "DS_B16": ("u16", "u16"), "DINTLV_B32": ("u32", "u32"),
    "SPLT2CHN_B8": ("u8", "u8"), "SPLT2CHN_B16": ("u16", "u16"), "SPLT4CHN": ("u8", "u8"),
    "UNPK_B8": ("u8", "u16"), "UNPK_B16": ("u16", "u32"), "UNPK_B32": ("u32", "u64"), "UNPK4": ("u8", "u32"),
}  # fmt: skip


@cache
def loaded(mode: str) -> Array:
    """Which item of memory every lane got; what widens items is seen in items of memory."""
    source, result = LOADS[mode]
    body = (
        f'      %r = pto.vlds %in_{source}[%zero] {{dist = "{mode}"}} : {ptr(source)} -> {reg(result)}\n'
        + shown(result)
    )
    return trace(body, source, source)[: 2048 // bits(source)]


def vlds() -> str:
    rows = [Row("memory", cells(range(1, HEAD + 1)), remark="…", group=0)]
    rows += [
        strip(mode, loaded(mode), lanes(result), space=mode in ("NORM", "BRC_B32", "US_B8", "UNPK_B8"))
        for mode, (_, result) in LOADS.items()
    ]
    return drawing("vlds", "Distribution modes of vlds: which item of memory each lane gets", rows)


#: Modes of vsts with the element types of register and memory.
STORES = {
    "NORM_B32": ("u32", "u32"), "1PT_B32": ("u32", "u32"), "PK_B16": ("u16", "u8"), "PK_B32": ("u32", "u16"),
    "PK_B64": ("u64", "u32"), "PK4_B32": ("u32", "u8"), "MRG2CHN_B8": ("u8", "u8"),
    "MRG2CHN_B16": ("u16", "u16"), "MRG4CHN_B8": ("u8", "u8"),
}  # fmt: skip


@cache
def stored(mode: str, pattern: str = "") -> Array:
    """Which lane every item of 256 bytes of memory got; -1 where nothing was stored."""
    source, result = STORES[mode]
    grain = "b16" if mode in ("PK_B16", "MRG2CHN_B8") else "b32"
    body = load(source) + (
        f'      %m = pto.pset_{grain} "{pattern or "PAT_ALL"}" : !pto.mask<{grain}>\n'
        f'      pto.vsts %v, %out_{result}[%zero], %m {{dist = "{mode}"}} : '
        f"{reg(source)}, {ptr(result)}, !pto.mask<{grain}>"
    )
    return trace(body, source, result)[: 2048 // bits(result)]


def vsts() -> str:
    rows = [
        Row("register", cells(range(1, HEAD + 1)), remark="…"),
        strip("NORM_B32", stored("NORM_B32"), "32-bit items", space=True),
        strip("NORM_B32, PAT_M4", stored("NORM_B32", "PAT_M4"), "32-bit items"),
        strip("1PT_B32", stored("1PT_B32"), "32-bit items"),
    ]
    rows += [
        strip(mode, stored(mode), f"{bits(result)}-bit items", space=mode in ("PK_B16", "MRG2CHN_B8"))
        for mode, (_, result) in list(STORES.items())[2:]
    ]
    return drawing("vsts", "Distribution modes of vsts: 256 bytes of memory after the store", rows)


PAIRS = {"DINTLV_B8": "u8", "DINTLV_B16": "u16", "DINTLV_B32": "u32", "BDINTLV": "u32"}


@cache
def loaded_pair(mode: str) -> tuple[Array, Array]:
    t = PAIRS[mode]
    body = (
        f'      %a, %b = pto.vldsx2 %in_{t}[%zero], "{mode}" : {ptr(t)}, index -> {reg(t)}, {reg(t)}\n'
        f"{shown(t, '%a')}\n{shown(t, '%b', 1)}"
    )
    n = 2048 // bits(t)
    found = trace(body, t, t)
    return found[:n], found[n : 2 * n]


def vldsx2() -> str:
    rows = [Row("memory", cells(range(1, HEAD + 1)), remark="…")]
    for mode in ("DINTLV_B8", "DINTLV_B16", "DINTLV_B32", "BDINTLV"):
        low, high = loaded_pair(mode)
        rows += [
            strip(f"{mode}, low", low, lanes(PAIRS[mode]), space=True),
            strip("high", high),
        ]
    return drawing("vldsx2", "Modes of vldsx2: which items of memory the two registers get", rows)


def both(found: Sequence[int] | Array, count: int) -> list[Cell]:
    """Cells of two registers with `count` lanes each, numbered on: a1, a2, .. and b1, b2, .."""
    return [
        Cell(f"a{n}", 0) if n <= count else Cell(f"b{n - count}", 1) for n in map(int, found)
    ]


@cache
def stored_pair(mode: str) -> Array:
    t = "u" + mode.removeprefix("INTLV_B")
    n = 2048 // bits(t)
    body = load(t, "%a") + load(t, "%b", n) + (
        f'      %m = pto.pset_b{bits(t)} "PAT_ALL" : !pto.mask<b{bits(t)}>\n'
        f'      pto.vstsx2 %a, %b, %out_{t}[%zero], "{mode}", %m : {reg(t)}, {reg(t)}, {ptr(t)}, index, '
        f"!pto.mask<b{bits(t)}>"
    )
    return trace(body, t, t)[: 2 * n]


@cache
def woven(name: str) -> tuple[Array, Array]:
    """vintlv or vdintlv of the lanes 1.. and 65.. of two registers."""
    body = load("u32", "%a") + load("u32", "%b", 64) + (
        f"      %c, %d = pto.{name} %a, %b : {reg('u32')}, {reg('u32')} -> {reg('u32')}, {reg('u32')}\n"
        f"{shown('u32', '%c')}\n{shown('u32', '%d', 1)}"
    )
    found = trace(body, "u32", "u32")
    return found[:64], found[64:128]


def weave() -> str:
    rows = [
        Row("register a", both(range(1, HEAD + 1), 64), both((63, 64), 64), "64 x 32 bit"),
        Row("register b", both(range(65, 65 + HEAD), 64), both((127, 128), 64)),
    ]

    def pair(label: str, found: Array, remark: str, space: bool = False) -> Row:
        n = 64
        return Row(label, both(found[:HEAD], n), both(found[-TAIL:], n), remark, space=space)

    rows.append(pair("vstsx2 INTLV_B32", stored_pair("INTLV_B32"), "memory", True))
    for name in ("vintlv", "vdintlv"):
        low, high = woven(name)
        rows += [pair(f"{name}, low", low, "", True), pair("high", high, "")]
    return drawing("weave", "vstsx2, vintlv and vdintlv: where the lanes of two registers a and b go", rows)


# -- masks -------------------------------------------------------------------------------------------------


@cache
def mask_bits(name: str, pattern: str, semantics: str = "hw") -> Array:
    """The 256 bits of the mask that pset makes."""
    grain = name.rpartition("_")[2]
    body = (
        f'      %m = pto.{name} "{pattern}" : !pto.mask<{grain}>\n'
        f"      pto.psts %m, %out_u8 : !pto.mask<{grain}>, {ptr('u8')}"
    )
    return np.unpackbits(execute(body, numbers("u8", 1), semantics)[:32], bitorder="little")


def masks() -> str:
    count = 20
    rows = [Row("byte", [Cell(str(n)) for n in range(count)], remark="… 255")]
    for size in (1, 2, 4):
        grain = f"b{8 * size}"
        image = mask_bits(f"pset_{grain}", "PAT_VL4")[:count]
        made = [
            Cell(str(bit), n // size if image[n - n % size] else None) for n, bit in enumerate(map(int, image))
        ]
        rows.append(Row(f"{grain}, PAT_VL4", made, remark=f"{256 // size} lanes", space=size == 1))
    return drawing("masks", "Bits of a mask against bytes of a register: the first 4 lanes on", rows)


def dots(on: Sequence[int] | Array) -> list[Cell]:
    return [Cell("", 0) if bit else Cell(" ") for bit in on]


PATTERNS = ("PAT_ALL", "PAT_VL8", "PAT_M3", "PAT_M4", "PAT_H", "PAT_Q", "PAT_ALLF")


def patterns() -> str:
    rows: list[Row] = []
    for pattern in PATTERNS:
        hw, doc = (mask_bits("pset_b32", pattern, s)[::4] for s in ("hw", "doc"))
        same = np.array_equal(hw, doc)
        rows.append(Row(pattern if same else f"{pattern}, hw", dots(hw), group=8))
        if not same:
            rows.append(Row(f"{pattern}, doc", dots(doc), group=8))
    return drawing("patterns", "Patterns of pset_b32: which of 64 lanes are on", rows, cell=8.4)


@cache
def tail(n: int) -> list[tuple[Array, int]]:
    """The masks that plt_b32 gives for n elements, and what it leaves to do."""
    body, left = f"      %n0 = arith.constant {n} : i32\n", "%n0"
    rounds = -(-n // 64)
    for k in range(rounds):
        body += (
            f"      %m{k}, %n{k + 1} = pto.plt_b32 {left} : i32 -> !pto.mask<b32>, i32\n"
            f"      %to{k} = arith.constant {32 * k} : index\n"
            f"      pto.psts %m{k}, %out_u8[%to{k}] : !pto.mask<b32>, {ptr('u8')}, index\n"
            f"      %w{k} = arith.constant {64 + k} : index\n"
            f"      pto.store_scalar %n{k + 1}, %out_i32[%w{k}] : {ptr('i32')}, i32\n"
        )
        left = f"%n{k + 1}"
    after = execute(body, numbers("u8", 1))
    image = np.unpackbits(after[: 32 * rounds], bitorder="little").reshape(rounds, 256)
    rest = after.view(np.int32)[64 : 64 + rounds]
    return [(image[k][::4], int(rest[k])) for k in range(rounds)]


def plt() -> str:
    n = left = 150
    rows: list[Row] = []
    for on, rest in tail(n):
        rows.append(Row(f"plt_b32 of {left}", dots(on), group=8, remark=str(rest)))
        left = rest
    return drawing("plt", f"plt_b32 over {n} elements: the lanes that are on, and the count that is left", rows, cell=8.2)


@cache
def predicated() -> dict[str, Array]:
    """One mask over an addition and over a store."""
    body = load("u32") + (
        '      %m = pto.pset_b32 "PAT_M3" : !pto.mask<b32>\n'
        "      %hundred = arith.constant 100 : ui32\n"
        f"      %r = pto.vadds %v, %hundred, %m : {reg('u32')}, ui32, !pto.mask<b32> -> {reg('u32')}\n"
    )
    last = f"      pto.vsts %v, %out_u32[%zero], %m : {reg('u32')}, {ptr('u32')}, !pto.mask<b32>"
    return {
        "vadds": trace(body + shown("u32"), "u32", "u32")[:64],
        "vsts": trace(body + last, "u32", "u32")[:64],
    }


def predication() -> str:
    found = predicated()
    on = mask_bits("pset_b32", "PAT_M3")[::4]
    more = [Cell(str(n), (n - 101) % 8) if n else ZERO for n in map(int, found["vadds"])]
    marks = [Cell("on", 0) if bit else Cell("off") for bit in on]
    rows = [
        strip("register", np.arange(1, 65)),
        Row("mask, PAT_M3", marks[:HEAD], marks[-TAIL:]),
        Row("vadds 100", more[:HEAD], more[-TAIL:], "a register", space=True),
        strip("vsts", found["vsts"], "memory"),
    ]
    return drawing("predication", "Lanes that are off: 0 in a result, nothing stored in memory", rows)


# -- conversions and reductions ----------------------------------------------------------------------------

CONVERSIONS = {
    ("f32", "f16"): ("EVEN", "ODD"), ("u32", "u8"): ("P0", "P1", "P2", "P3"),
    ("f16", "f32"): ("EVEN", "ODD"), ("u8", "u32"): ("P0", "P1", "P2", "P3"),
}  # fmt: skip


@cache
def converted(source: str, result: str, part: str) -> Array:
    """Which lane of the source every lane of the result came from."""
    grain = f"b{bits(source)}"
    body = load(source) + (
        f'      %m = pto.pset_{grain} "PAT_ALL" : !pto.mask<{grain}>\n'
        f'      %r = pto.vcvt %v, %m {{part = "{part}"}} : {reg(source)}, !pto.mask<{grain}> -> {reg(result)}\n'
        f"{shown(result)}"
    )
    return trace(body, source, result, 2048 // bits(source))[: 2048 // bits(result)]


def vcvt() -> str:
    rows = [Row("register", cells(range(1, HEAD + 1)), remark="…")]
    for (source, result), parts in CONVERSIONS.items():
        for part in parts:
            found = converted(source, result, part)
            first = part == parts[0]
            rows.append(strip(f"{source} to {result}, {part}", found, lanes(result), space=first))
    return drawing("vcvt", "Parts of vcvt: which lane of the source each lane of the result holds", rows)


REDUCTIONS = ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcpadd")


@cache
def reduced(name: str, semantics: str = "hw") -> Array:
    """What a reduction makes of the lanes 1, 2, 3, .."""
    t = "f32" if name == "vcpadd" else "u32"
    body = load(t) + (
        f'      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>\n'
        f"      %r = pto.{name} %v, %m : {reg(t)}, !pto.mask<b32> -> {reg(t)}\n{shown(t)}"
    )
    return execute(body, numbers(t, 64), semantics).view(TYPES[t])[:64].astype(np.int64)


def reductions() -> str:
    rows = [strip("register", np.arange(1, 65), run=8)]
    for name in REDUCTIONS:
        hw, doc = reduced(name), reduced(name, "doc")
        same = np.array_equal(hw, doc)
        for label, found in ((name, hw),) if same else ((f"{name}, hw", hw), (f"{name}, doc", doc)):
            made = [Cell(str(n), _reduced_tone(name, lane, label)) if n else ZERO for lane, n in enumerate(found)]
            remark = "value, lane" if name in ("vcmax", "vcmin") else ""
            if remark:  # the lane is a number, 0 included
                made[1] = Cell(str(found[1]), 7)
            rows.append(Row(label, made[:HEAD], made[-TAIL:], remark, space=label.endswith("hw") or name == "vcadd"))
    return drawing("reductions", "Lanes of the results of reductions of 1, 2, 3, .. 64", rows)


def _reduced_tone(name: str, lane: int, label: str) -> int:
    """The colour of the lanes that a result comes from, where it is one group of them."""
    if name.startswith("vcg"):
        return lane if label.endswith("hw") else lane // 8
    return 7


# -- unaligned streams -------------------------------------------------------------------------------------

#: A stream of 32-bit items from item 5 on: how many every vstus appends.
START, APPENDED = 5, (10, 3, 13)


@cache
def streamed(steps: int, flush: bool = False) -> Array:
    """Numbers of the items in memory after some steps of the stream; -1 where nothing was stored."""
    body = (
        f"      %start = arith.constant {START} : index\n"
        f"      %p0 = pto.addptr %out_u32, %start : {ptr('u32')} -> {ptr('u32')}\n"
        "      %s0 = pto.init_align : !pto.align\n      %none = arith.constant 0 : i32\n"
    )
    first = 0
    for k, count in enumerate(APPENDED[:steps]):
        body += (
            f"      %first{k} = arith.constant {first} : index\n"
            f"      %q{k} = pto.addptr %in_u32, %first{k} : {ptr('u32')} -> {ptr('u32')}\n"
            f"      %load{k} = pto.vldas %q{k} : {ptr('u32')} -> !pto.align\n"
            f"      %v{k}, %after{k} = pto.vldus %q{k}, %load{k} : {ptr('u32')}, !pto.align -> {reg('u32')}, !pto.align\n"
            f"      %c{k} = arith.constant {count} : i32\n"
            f'      %s{k + 1}, %p{k + 1} = pto.vstus %s{k}, %c{k}, %v{k}, %p{k}, "POST_UPDATE" : '
            f"!pto.align, i32, {reg('u32')}, {ptr('u32')} -> !pto.align, {ptr('u32')}\n"
        )
        first += count
    if flush:
        body += f"      pto.vstas %s{steps}, %p{steps}, %none : !pto.align, {ptr('u32')}, i32\n"
    return trace(body, "u32", "u32")[:32]


def stream() -> str:
    rows: list[Row] = []
    done = 0
    for k, count in enumerate(APPENDED):
        found = streamed(k + 1)
        done += count
        missing = sorted(set(range(1, done + 1)) - set(map(int, found)))
        held = f"{missing[0]}..{missing[-1]}" if len(missing) > 1 else "".join(map(str, missing))
        rows.append(Row(f"vstus {count}", cells(found), group=8, remark=held or "-"))
    rows.append(Row("vstas", cells(streamed(len(APPENDED), flush=True)), group=8, remark="-"))
    return drawing("stream", "An unaligned store stream: memory after every step, and the items held back", rows, cell=15.4)


DRAWINGS: dict[str, Callable[[], str]] = {
    "masks": masks, "patterns": patterns, "plt": plt, "predication": predication, "vlds": vlds, "vldsx2": vldsx2,
    "vsts": vsts, "weave": weave, "vcvt": vcvt, "reductions": reductions, "stream": stream,
}  # fmt: skip
