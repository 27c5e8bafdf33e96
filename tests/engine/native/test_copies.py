"""Copies that engine native elides or defers have no observable effect. Random programs of loads, moves,
products and stores, with tiles on top of each other and results in the place of operands, give the bits of
the reference engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.seeds import seeds

import pto
from pto.engine.entry import Launchable
from pto.engine.native.kernel import image_of

from ..programs import program

SIDE = 64  # of the arrays
FLASH = Path(__file__).parents[3] / "bench" / "flash_attention.pto"


class Written:
    """A program as it is written, by chance."""

    def __init__(self, seed: int, dtype: str) -> None:
        self.random = random.Random(seed)
        self.dtype = dtype
        self.arch = ("a3", "a5")[seed // 2 % 2]
        self.lines = [
            *(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 8, 16, 32, SIDE)),
            *(f"%v{p} = pto.make_tensor_view %{p}, shape = [%c{SIDE}, %c{SIDE}], strides = [%c{SIDE}, %c1] : "
              f"!pto.tensor_view<{SIDE}x{SIDE}x{t}>" for p, t in (("x", dtype), ("y", dtype), ("z", "f32"))),
        ]  # fmt: skip
        self.count = 0

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def tile(self, name: str, at: int, type: str) -> None:
        self.lines += [
            f"%at_{name} = arith.constant {at} : i64",
            f"%{name} = pto.alloc_tile addr = %at_{name} : {type}",
        ]

    def window(self, array: str, rows: int, cols: int) -> tuple[str, str]:
        """A part of an array, and its type."""
        n, dtype = self.fresh(), "f32" if array == "z" else self.dtype
        row, col = (self.random.choice((0, 8, 16, 32)) for _ in "rc")
        type = f"!pto.partition_tensor_view<{rows}x{cols}x{dtype}>"
        self.lines.append(
            f"%p{n} = pto.partition_view %v{array}, offsets = [%c{row}, %c{col}], sizes = [%c{rows}, %c{cols}] : "
            f"!pto.tensor_view<{SIDE}x{SIDE}x{dtype}> -> {type}"
        )
        return f"%p{n}", type

    def steps(self, count: int, step: Callable[[], None], deep: int = 0) -> None:
        """Some steps, one after another, in loops and branches."""
        for _ in range(count):
            kind = self.random.random() if deep < 2 else 1
            if kind < 0.1:
                n = self.fresh()
                self.lines.append(f"scf.for %i{n} = %c0 to %c{self.random.choice((1, 2, 3))} step %c1 {{")
                self.steps(self.random.randint(1, 4), step, deep + 1)
                self.lines.append("}")
            elif kind < 0.2:
                n = self.fresh()
                self.lines += [
                    f"%b{n} = arith.cmpi slt, %n, %c{self.random.choice((1, 2))} : index",
                    f"scf.if %b{n} {{",
                ]
                self.steps(self.random.randint(1, 3), step, deep + 1)
                self.lines.append("} else {")
                self.steps(self.random.randint(0, 3), step, deep + 1)
                self.lines.append("}")
            else:
                step()

    def text(self, kind: str) -> str:
        arguments = f"%x: !pto.ptr<{self.dtype}>, %y: !pto.ptr<{self.dtype}>, %z: !pto.ptr<f32>, %n: index"
        attributes = f"attributes {{pto.entry, pto.kernel_kind = #pto.kernel_kind<{kind}>}}"
        return program("\n".join(self.lines), arguments, attributes, self.arch)


def of_products(seed: int) -> Written:
    """Operands of products, in memory that they share; results go to arrays that operands are loaded from."""
    made = Written(seed, ("f16", "f32")[seed % 2])
    chance, dtype = made.random, made.dtype
    size = 2048 if dtype == "f16" else 4096
    mat = f"!pto.tile_buf<mat, 32x32x{dtype}, blayout=col_major, slayout=row_major>"
    outer = ", blayout=col_major" if made.arch == "a5" else ""
    lefts = [
        f"!pto.tile_buf<left, {n}x{k}x{dtype}{outer}, slayout=row_major>" for n, k in ((32, 32), (16, 32))
    ]
    rights = [f"!pto.tile_buf<right, {k}x{n}x{dtype}, slayout=col_major>" for k, n in ((32, 32), (32, 16))]
    accs = [f"!pto.tile_buf<acc, {m}x{n}xf32, blayout=col_major, slayout=row_major, fractal=1024>"
            for m in (32, 16) for n in (32, 16)]  # fmt: skip
    spread = chance.choice((size, size // 2, 0))  # on top of each other, or not
    for n in range(3):
        made.tile(f"m{n}", n * spread, mat)
        made.tile(f"l{n}", n % 3 * spread, lefts[n % 2])
        made.tile(f"r{n}", n % 3 * spread, rights[(n + 1) % 2])
    for n, acc in enumerate(accs):
        made.tile(f"a{n}", n * 4096, acc)
    stores = ["z", "x", "y"] if dtype == "f32" else ["z"]

    def load(to: int) -> None:
        fewer = [(16, 32), (32, 16)] if made.arch == "a3" else [(16, 32)]  # L1 keeps the rest
        shape = chance.choice([(32, 32), (32, 32), *fewer])
        window, type = made.window(chance.choice("xy"), *shape)
        made.lines.append(f"pto.tload ins({window} : {type}) outs(%m{to} : {mat})")

    def move(side: str, to: int) -> None:
        type, source = (lefts[to % 2] if side == "l" else rights[(to + 1) % 2]), chance.randrange(3)
        low = chance.choice((0, 16)) if "16x" in type or "x16x" in type else 0
        row, col = (low, 0) if side == "l" else (0, low)
        made.lines.append(
            f"pto.textract ins(%m{source}, %c{row}, %c{col} : {mat}, index, index) outs(%{side}{to} : {type})"
        )

    def multiply() -> None:
        left, right = chance.randrange(3), chance.randrange(3)
        a = 2 * (left % 2) + (right + 1) % 2
        types = f"{lefts[left % 2]}, {rights[(right + 1) % 2]}"
        if chance.random() < 0.5:
            made.lines.append(f"pto.tmatmul ins(%l{left}, %r{right} : {types}) outs(%a{a} : {accs[a]})")
        else:
            made.lines.append(
                f"pto.tmatmul.acc ins(%a{a}, %l{left}, %r{right} : {accs[a]}, {types}) outs(%a{a} : {accs[a]})"
            )

    def store() -> None:
        a = chance.randrange(4)
        rows, cols = (32, 16)[a // 2], (32, 16)[a % 2]
        window, type = made.window(chance.choice(stores), rows, cols)
        made.lines.append(f"pto.tstore ins(%a{a} : {accs[a]}) outs({window} : {type})")

    def step() -> None:
        kind = chance.random()
        if kind < 0.25:
            load(chance.randrange(3))
        elif kind < 0.6:
            move(chance.choice("lr"), chance.randrange(3))
        elif kind < 0.85:
            multiply()
        else:
            store()

    for n in range(3):
        load(n)
    for n in range(3):
        move("l", n)
        move("r", n)
    made.steps(18, step)
    for a in range(4):
        rows, cols = (32, 16)[a // 2], (32, 16)[a % 2]
        window, type = made.window("z", rows, cols)
        made.lines.append(f"pto.tstore ins(%a{a} : {accs[a]}) outs({window} : {type})")
    return made


def of_sums(seed: int) -> Written:
    """Tiles that are loaded, added and stored, here and there where they were loaded, or before all is read."""
    made = Written(seed, "f32")
    chance = made.random
    shapes = [(16, SIDE), (8, SIDE), (16, 32)]
    types = [f"!pto.tile_buf<vec, {r}x{c}xf32>" for r, c in shapes]
    names = [f"t{n}" for n in range(18)]
    for n, name in enumerate(names):
        made.tile(name, (n - (n % 6 > 0 and chance.random() < 0.1)) * 4096, types[n // 6])  # some share all

    def window(rows: int, cols: int) -> tuple[str, str]:
        array = chance.choice("xyz")
        if cols < SIDE:
            return made.window(array, rows, cols)
        n, row = made.fresh(), chance.choice((0, 8, 16, 32))
        type = f"!pto.partition_tensor_view<{rows}x{SIDE}xf32>"
        made.lines.append(
            f"%p{n} = pto.partition_view %v{array}, offsets = [%c{row}, %c0], sizes = [%c{rows}, %c{SIDE}] : "
            f"!pto.tensor_view<{SIDE}x{SIDE}xf32> -> {type}"
        )
        return f"%p{n}", type

    def step() -> None:
        shape = chance.randrange(3)
        type = types[shape]
        a, b, c, d = (f"%t{6 * shape + n}" for n in chance.sample(range(6), 4))
        sources = [window(*shapes[shape]) for _ in (a, b)]
        for tile, (source, of) in zip((a, b), sources, strict=True):
            made.lines.append(f"pto.tload ins({source} : {of}) outs({tile} : {type})")
        if chance.random() < 0.5:  # behind their backs
            target, of = chance.choice(sources)
            made.lines.append(f"pto.tstore ins({d} : {type}) outs({target} : {of})")
        out = chance.choice((c, c, c, a))
        made.lines.append(
            f"pto.{chance.choice(('tadd', 'tsub', 'tmax'))} ins({a}, {b} : {type}, {type}) outs({out} : {type})"
        )
        if chance.random() < 0.3:
            made.lines.append(
                f"pto.tmul ins({out}, {chance.choice((a, b))} : {type}, {type}) outs({d} : {type})"
            )
        target, of = window(*shapes[shape])
        made.lines.append(f"pto.tstore ins({chance.choice((out, out, d))} : {type}) outs({target} : {of})")

    made.steps(3, step)
    return made


@pytest.mark.seeded
@pytest.mark.parametrize(
    ("make", "kind", "call"), [(of_products, "cube", "vm.owe"), (of_sums, "vector", "vm.lent")]
)
def test_nobody_can_tell(make: Callable[[int], Written], kind: str, call: str) -> None:
    used = 0
    for seed in seeds(range(24)):
        made = make(seed)
        text = made.text(kind)
        module = pto.parse(text)
        used += call in image_of(Launchable(module, None, None, True)).calls
        results = []
        for engine in ("native", "reference"):
            rng = np.random.default_rng(seed)
            x, y = (rng.integers(-4, 5, (SIDE, SIDE)).astype(f"f{int(made.dtype[1:]) // 8}") for _ in "xy")
            z = rng.standard_normal((SIDE, SIDE)).astype(np.float32)
            result = pto.kernel(module, engine=engine).run(x, y, z, seed % 3)
            assert result.ok, (text, result.diagnostics)
            results.append([a.tobytes() for a in (x, y, z)])
        assert results[0] == results[1], text
    assert used >= 9  # those that this is about


@pytest.mark.parametrize("threads", [1, 2])
def test_entries_stay_in_their_slots(threads: int) -> None:
    """Attention whose scores and sums are read in the slots of FIFOs, which the cube fills meanwhile."""
    module = pto.parse(FLASH)
    assert "vm.lend" in image_of(Launchable(module, None, None, True)).calls
    results = []
    for engine in ("native", "reference"):
        rng = np.random.default_rng(3)
        q, k, v = (rng.standard_normal((256, 128)).astype(np.float16) for _ in "qkv")
        out = np.zeros((256, 128), np.float32)
        slots = [np.zeros((2, 32768), t) for t in (np.float32, np.float16, np.float32)]
        options = {"threads": threads} if engine == "native" else {}
        pto.kernel(module, engine=engine)(q, k, v, out, *slots, 256, 128**-0.5, blocks=2, **options)
        results.append((out.tobytes(), *(s.tobytes() for s in slots)))
    assert results[0] == results[1]
