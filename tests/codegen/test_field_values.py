"""Numbers as public headers and tests have them, on both engines: whole tiles after an instruction.

A case is an instruction over tiles at addresses of their own. All of their storage is loaded first, and all of
the destination stored afterwards, whatever is valid: unchanged bytes are seen, too. All cases of a
target are one program, which is compiled once.
"""

from __future__ import annotations

import re
import shutil
from typing import Any

import numpy as np
import pytest

import pto
from pto.asm.type_text import parse_type
from pto.engine.memory import array_of
from pto.ir.types import TileBufType

Array = np.ndarray[Any, Any]

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler"
)
ALL = "pto.barrier #pto.pipe<PIPE_ALL>"


class Case:
    """`text` names its tiles as `%x`, their types as `<x>`; `want` is all that tile `d` holds in the end. Of type
    `gm` is a view only."""

    def __init__(self, text: str, want: Array, tiles: dict[str, tuple[str, Array]]) -> None:
        self.text, self.want, self.tiles = text, want, tiles

    def lines(self, number: int) -> tuple[list[str], list[str]]:
        """Parameters, and the lines of the body."""
        params, before, after = [], [], []
        at, text = 0, self.text
        for name, (written, given) in self.tiles.items():
            if written == "gm":
                view = f"!pto.partition_tensor_view<{given.shape[0]}x{given.shape[1]}xf32>"
                params.append(f"%{name}{number}: {view}")
                text = re.sub(rf"%{name}\b", f"%{name}{number}", text).replace(f"<{name}>", view)
                continue
            type = parse_type(f"!pto.tile_buf<{written}>")
            assert isinstance(type, TileBufType) and given.shape == (type.rows, type.cols), written
            whole = f"!pto.tile_buf<{type.loc}, {type.rows}x{type.cols}x{type.elem.text}>"
            view = f"!pto.partition_tensor_view<{type.rows}x{type.cols}x{type.elem.text}>"
            here, all_of_it = f"%{name}{number}", f"%{name}{number}_all"
            params.append(f"{here}_gm: {view}")
            before += [
                f"{here}_at = arith.constant {at} : i64",
                f"{here} = pto.alloc_tile addr = {here}_at : !pto.tile_buf<{written}>",
                f"{all_of_it} = pto.alloc_tile addr = {here}_at : {whole}",
                f"pto.tload ins({here}_gm : {view}) outs({all_of_it} : {whole})",
            ]
            if name == "d":
                after = [f"pto.tstore ins({all_of_it} : {whole}) outs({here}_gm : {view})"]
            text = re.sub(rf"%{name}\b", here, text).replace(f"<{name}>", f"!pto.tile_buf<{written}>")
            at += -(-given.nbytes // 512) * 512
        return params, [*before, ALL, *text.splitlines(), ALL, *after, ALL]

    def arrays(self) -> list[Array]:
        return [given.copy() for _, given in self.tiles.values()]


def check(target: str, cases: list[Case]) -> None:
    """Run the cases on both engines."""
    made = [c.lines(n) for n, c in enumerate(cases)]
    params = ", ".join(p for some, _ in made for p in some)
    lines = "\n".join(f"  {line}" for _, some in made for line in some)
    program = pto.parse(f"func.func @k({params}) {{\n{lines}\n  return\n}}\n")
    for engine in ("reference", "cpp"):
        arrays = [c.arrays() for c in cases]
        pto.kernel(program, engine=engine, target=target)(*(a for some in arrays for a in some))
        for case, some in zip(cases, arrays, strict=True):
            found = some[list(case.tiles).index("d")]
            same = found.view(np.uint8) == case.want.astype(found.dtype, copy=False).view(np.uint8)
            assert same.all(), (engine, target, case.text, found, case.want)


def numbers(rows: int, cols: int, dtype: str = "f32", seed: int = 3) -> Array:
    rng = np.random.default_rng(seed)
    if array_of(dtype).kind in "iu":
        return rng.integers(0, 100, (rows, cols)).astype(array_of(dtype))
    return rng.standard_normal((rows, cols)).astype(array_of(dtype))


def bits(truth: Array) -> Array:
    return np.packbits(truth, axis=1, bitorder="little")


# -- packing of comparisons


def masks(target: str) -> list[Case]:
    """Five of eight rows and 50 of 64 columns; a mask has room for more than these need."""
    x, y, old = numbers(8, 64), numbers(8, 64, seed=4), np.full((8, 32), 0xA5, np.uint8)
    part, room = "vec, 8x64xf32, valid=5x50", "vec, 8x32xui8, valid=5x16"
    rows = old.copy()  # of a row its bits, then zeros as far as dst is valid; the rest stays
    rows[:5, :16] = 0
    rows[:5, :7] = bits(x[:5, :50] > y[:5, :50])
    tcmp = Case(
        "pto.tcmp ins(%a, %b {cmpMode = #pto<cmp gt>} : <a>, <b>) outs(%d : <d>)", rows,
        {"a": (part, x), "b": (part, y), "d": (room, old)},
    )  # fmt: skip
    positive = np.zeros((8, 64), bool)
    positive[:5, :50] = x[:5, :50] > 0
    scalar = old.copy()
    scalar[:5, :16] = 0
    if target == "cpu":  # a stream: eight bytes for each row of storage, through the valid region
        scalar[:5, :16] = np.append(bits(positive), np.zeros(16, np.uint8)).reshape(5, 16)
    else:
        scalar[:5, :8] = bits(positive[:5])
    tcmps = Case(
        "%zero = arith.constant 0.0 : f32\n"
        "pto.tcmps ins(%a, %zero {cmpMode = #pto<cmp gt>} : <a>, f32) outs(%d : <d>)", scalar,
        {"a": (part, x), "d": (room, old)},
    )  # fmt: skip
    mask = np.random.default_rng(5).integers(0, 256, (8, 32)).astype(np.uint8)
    stream = np.unpackbits(mask[:, :16].ravel(), bitorder="little")[:250].reshape(5, 50)
    chosen = np.unpackbits(mask, axis=1, bitorder="little")[:5, :50]
    kept = np.zeros((8, 64), np.float32)
    kept[:5, :50] = np.where(stream if target == "cpu" else chosen, x[:5, :50], y[:5, :50])
    scratch = {"t": ("vec, 1x16xui32", np.zeros((1, 16), np.uint32))}
    tsel = Case(
        "pto.tsel ins(%m, %a, %b, %t : <m>, <a>, <b>, <t>) outs(%d : <d>)", kept,
        {"m": (room, mask), "a": (part, x), "b": (part, y), "d": (part, np.zeros_like(x)), **scratch},
    )  # fmt: skip
    other = np.zeros((8, 64), np.float32)
    other[:5, :50] = np.where(chosen, x[:5, :50], np.float32(7))
    tsels = Case(
        "%seven = arith.constant 7.0 : f32\n"
        "pto.tsels ins(%m, %a, %t, %seven : <m>, <a>, <t>, f32) outs(%d : <d>)", other,
        {"m": (room, mask), "a": (part, x), "d": (part, np.zeros_like(x)), "t": ("vec, 1x64xf32", np.zeros((1, 64), np.float32))},
    )  # fmt: skip
    return [tcmp, tcmps, tsel, tsels]


# -- results of a transfer


def loads(target: str) -> list[Case]:
    """The simulator for the cpu fills a tile with its pad, hardware fills the rest of blocks of 32 bytes."""
    given, old = numbers(5, 50), numbers(8, 64, seed=6)
    end, rows = (64, 8) if target == "cpu" else (56, 5)
    cases = []
    for pad, value in ((0, 0), (3, -np.inf)):
        want = old.copy()
        want[:rows, :end] = value
        want[:5, :50] = given
        tiles = {"g": ("gm", given), "d": (f"vec, 8x64xf32, valid=5x50, pad={pad}", old)}
        cases.append(Case("pto.tload ins(%g : <g>) outs(%d : <d>)", want, tiles))
    return cases


# -- sums


def sums(target: str) -> list[Case]:
    """The columns of eleven rows, as a tree."""
    x = numbers(11, 64, "f16")
    if target == "cpu":
        total = np.zeros(64, np.float16)
        for row in x:
            total = (total + row).astype(np.float16)
    else:
        left = list(x)
        while len(left) > 1:
            pairs = [a + b for a, b in zip(left[::2], left[1::2], strict=False)]
            if len(left) % 2:
                at = 0 if target == "a3" else -1
                pairs[at] = pairs[at] + left[-1]
            left = pairs
        total = left[0]
    tiles = {
        "a": ("vec, 11x64xf16", x), "t": ("vec, 8x64xf16", np.zeros((8, 64), np.float16)),
        "d": ("vec, 1x64xf16", np.zeros((1, 64), np.float16)),
    }  # fmt: skip
    text = "pto.tcolsum ins(%a, %t {isBinary = true} : <a>, <t>) outs(%d : <d>)"
    return [Case(text, total[None, :], tiles)]


# -- narrow and wide elements


def packs(target: str) -> list[Case]:
    """Low bits; the simulator for the cpu widens, too, and keeps the value."""
    x = (numbers(8, 64, "i32") - 50) * 70_000
    tiles = {"a": ("vec, 8x64xi32", x), "d": ("vec, 8x64xi16", np.zeros((8, 64), np.int16))}
    cases = [Case("pto.tpack ins(%a : <a>) outs(%d : <d>)", x.astype(np.int16), tiles)]
    if target == "cpu":
        y = x.astype(np.int16)
        tiles = {"a": ("vec, 8x64xi16", y), "d": ("vec, 8x64xi32", np.zeros((8, 64), np.int32))}
        cases.append(Case("pto.tpack ins(%a : <a>) outs(%d : <d>)", y.astype(np.int32), tiles))
    return cases if target != "a3" else []


# -- gather and scatter


def indexed(target: str) -> list[Case]:
    """Blocks of 32 bytes into elements of another width; scattering by pattern and by index."""
    x = numbers(4, 64)
    blocks = np.random.default_rng(8).integers(0, 32, (4, 8)).astype(np.uint32)
    taken = x.view(np.uint8).reshape(32, 32)[blocks[:, :4]].reshape(4, 128).view(np.float16)
    tiles = {
        "a": ("vec, 4x64xf32", x), "o": ("vec, 4x8xui32", blocks * 32),
        "d": ("vec, 4x64xf16", np.zeros((4, 64), np.float16)),
    }  # fmt: skip
    gathered = Case("pto.tgatherb ins(%a, %o : <a>, <o>) outs(%d : <d>)", taken, tiles)
    old, half = np.full((4, 64), 9, np.float32), x[:, :32].copy()
    odd = np.zeros((4, 64), np.float32) if target != "cpu" else old.copy()
    odd[:3, :60:2] = 0
    odd[:3, 1:60:2] = half[:3, :30]
    tiles = {"a": ("vec, 4x32xf32, valid=3x30", half), "d": ("vec, 4x64xf32, valid=3x60", old)}
    masked = Case(
        'pto.tscatter ins(%a, {maskPattern = #pto.mask_pattern<P1010>} : <a>, "row") outs(%d : <d>)',
        odd,
        tiles,
    )
    at = np.random.default_rng(9).permutation(256)[:128].reshape(4, 32).astype(np.int32)
    spread = old.copy() if target == "cpu" else np.zeros_like(old)
    spread.ravel()[at.ravel()] = half.ravel()
    tiles = {"a": ("vec, 4x32xf32", half), "i": ("vec, 4x32xi32", at), "d": ("vec, 4x64xf32", old)}
    scattered = Case("pto.tscatter ins(%a, %i : <a>, <i>) outs(%d : <d>)", spread, tiles)
    return [gathered, masked, scattered]


@needs_compiler
@pytest.mark.parametrize("target", ["cpu", "a3", "a5"])
def test_numbers_of_the_field(target: str) -> None:
    check(target, [*masks(target), *loads(target), *sums(target), *packs(target), *indexed(target)])
