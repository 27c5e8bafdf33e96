"""Traces of vector instructions: numbered items go in, and their positions in the result show the effect.

The programs are ordinary text and run on the reference engine. Results are arrays of item numbers:
0 for a zero, -1 where nothing was stored. docs/drawings.py makes pictures of them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import pto

Array = np.ndarray[Any, Any]

#: Contents of the unified buffer: items to load from 0 on, stored items from OUT on.
SIZE, OUT = 8192, 4096

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
        f"    %in_{t} = pto.castptr %l2 : i64 -> {ptr(t)}\n"
        f"    %out_{t} = pto.castptr %at_out : i64 -> {ptr(t)}"
        for t in TYPES
    )
    memory = np.full(SIZE, fill, np.uint8)
    image = items.view(np.uint8)
    memory[: image.size] = image
    after = np.zeros(SIZE, np.uint8)
    text = _PROGRAM.format(size=SIZE, out=OUT, pointers=pointers, body=body)
    pto.kernel(pto.parse(text), engine="reference")(memory, after, semantics=semantics)
    return after[OUT:]


def numbers(dtype: str, count: int, first: int = 1, high: bool = False) -> Array:
    """first, first + 1, ..; as 8-bit items their low or their high bytes."""
    found = np.arange(first, first + count)
    return (found >> 8 if high else found & 0xFF if dtype == "u8" else found).astype(TYPES[dtype])


def trace(body: str, source: str, result: str, count: int = 512, semantics: str = "hw") -> Array:
    """Numbers of the items of type `source` that became the items of type `result` from OUT on; 0 for a zero,
    -1 where nothing was stored. 8-bit items go through in two runs, half of their numbers at a time."""

    def run(high: bool, fill: int) -> Array:
        return execute(body, numbers(source, count, high=high), semantics, fill).view(TYPES[result])

    low, other = run(False, 0), run(False, 0xFF)
    found = low.astype(np.int64)
    if source == "u8":
        found += run(True, 0).astype(np.int64) << 8
    stored = low.view(np.uint8).reshape(low.size, -1) == other.view(np.uint8).reshape(low.size, -1)
    return np.where(stored.all(axis=1), found, -1)


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
    """Return the item of memory in every lane; widening modes are shown in items of memory."""
    source, result = LOADS[mode]
    body = (
        f'      %r = pto.vlds %in_{source}[%zero] {{dist = "{mode}"}} : {ptr(source)} -> {reg(result)}\n'
        + shown(result)
    )
    return trace(body, source, source)[: 2048 // bits(source)]


#: Modes of vsts with the element types of register and memory.
STORES = {
    "NORM_B32": ("u32", "u32"), "1PT_B32": ("u32", "u32"), "PK_B16": ("u16", "u8"), "PK_B32": ("u32", "u16"),
    "PK_B64": ("u64", "u32"), "PK4_B32": ("u32", "u8"), "MRG2CHN_B8": ("u8", "u8"),
    "MRG2CHN_B16": ("u16", "u16"), "MRG4CHN_B8": ("u8", "u8"),
}  # fmt: skip


@cache
def stored(mode: str, pattern: str = "") -> Array:
    """Return the lane in every item of 256 bytes of memory; -1 for unchanged items."""
    source, result = STORES[mode]
    grain = "b16" if mode in ("PK_B16", "MRG2CHN_B8") else "b32"
    body = load(source) + (
        f'      %m = pto.pset_{grain} "{pattern or "PAT_ALL"}" : !pto.mask<{grain}>\n'
        f'      pto.vsts %v, %out_{result}[%zero], %m {{dist = "{mode}"}} : '
        f"{reg(source)}, {ptr(result)}, !pto.mask<{grain}>"
    )
    return trace(body, source, result)[: 2048 // bits(result)]


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


@cache
def stored_pair(mode: str) -> Array:
    t = "u" + mode.removeprefix("INTLV_B")
    n = 2048 // bits(t)
    body = (
        load(t, "%a")
        + load(t, "%b", n)
        + (
            f'      %m = pto.pset_b{bits(t)} "PAT_ALL" : !pto.mask<b{bits(t)}>\n'
            f'      pto.vstsx2 %a, %b, %out_{t}[%zero], "{mode}", %m : {reg(t)}, {reg(t)}, {ptr(t)}, index, '
            f"!pto.mask<b{bits(t)}>"
        )
    )
    return trace(body, t, t)[: 2 * n]


@cache
def woven(name: str) -> tuple[Array, Array]:
    """vintlv or vdintlv of the lanes 1.. and 65.. of two registers."""
    body = (
        load("u32", "%a")
        + load("u32", "%b", 64)
        + (
            f"      %c, %d = pto.{name} %a, %b : {reg('u32')}, {reg('u32')} -> {reg('u32')}, {reg('u32')}\n"
            f"{shown('u32', '%c')}\n{shown('u32', '%d', 1)}"
        )
    )
    found = trace(body, "u32", "u32")
    return found[:64], found[64:128]


@cache
def mask_bits(name: str, pattern: str, semantics: str = "hw") -> Array:
    """The 256 bits of the mask that pset makes."""
    grain = name.rpartition("_")[2]
    body = (
        f'      %m = pto.{name} "{pattern}" : !pto.mask<{grain}>\n'
        f"      pto.psts %m, %out_u8 : !pto.mask<{grain}>, {ptr('u8')}"
    )
    return np.unpackbits(execute(body, numbers("u8", 1), semantics)[:32], bitorder="little")


@cache
def tail(n: int) -> list[tuple[Array, int]]:
    """Return the masks of plt_b32 for n elements, with the remaining counts."""
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


CONVERSIONS = {
    ("f32", "f16"): ("EVEN", "ODD"), ("u32", "u8"): ("P0", "P1", "P2", "P3"),
    ("f16", "f32"): ("EVEN", "ODD"), ("u8", "u32"): ("P0", "P1", "P2", "P3"),
}  # fmt: skip


@cache
def converted(source: str, result: str, part: str) -> Array:
    """Return the source lane of every lane of the result."""
    grain = f"b{bits(source)}"
    body = load(source) + (
        f'      %m = pto.pset_{grain} "PAT_ALL" : !pto.mask<{grain}>\n'
        f'      %r = pto.vcvt %v, %m {{part = "{part}"}} : {reg(source)}, !pto.mask<{grain}> -> '
        f"{reg(result)}\n"
        f"{shown(result)}"
    )
    return trace(body, source, result, 2048 // bits(source))[: 2048 // bits(result)]


@cache
def reduced(name: str, semantics: str = "hw") -> Array:
    """Return the result of a reduction of the lanes 1, 2, 3, .."""
    t = "f32" if name == "vcpadd" else "u32"
    body = load(t) + (
        f'      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>\n'
        f"      %r = pto.{name} %v, %m : {reg(t)}, !pto.mask<b32> -> {reg(t)}\n{shown(t)}"
    )
    return execute(body, numbers(t, 64), semantics).view(TYPES[t])[:64].astype(np.int64)


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
            f"      %v{k}, %after{k} = pto.vldus %q{k}, %load{k} : {ptr('u32')}, !pto.align -> "
            f"{reg('u32')}, !pto.align\n"
            f"      %c{k} = arith.constant {count} : i32\n"
            f'      %s{k + 1}, %p{k + 1} = pto.vstus %s{k}, %c{k}, %v{k}, %p{k}, "POST_UPDATE" : '
            f"!pto.align, i32, {reg('u32')}, {ptr('u32')} -> !pto.align, {ptr('u32')}\n"
        )
        first += count
    if flush:
        body += f"      pto.vstas %s{steps}, %p{steps}, %none : !pto.align, {ptr('u32')}, i32\n"
    return trace(body, "u32", "u32")[:32]
