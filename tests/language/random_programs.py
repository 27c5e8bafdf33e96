"""Random programs of the language, each beside the same in NumPy.

Both texts are made line by line. All operations are exact or rounded once, so that they agree bit for bit: sums,
products, extrema of elements; carried numbers are dyadic. A program has several regions, tasks of blocks, loops with
carries, swaps, jumps, arms on what only a run can tell, helpers, ragged last rows, tile and tensor level.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

import pto.language as pl

ROWS = 8
DTYPES = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32, "INT16": np.int16}


class Case(NamedTuple):
    """A kernel, the function in NumPy that does the same, and arguments of both."""

    kernel: Any
    numpy: Any
    args: list[Any]
    program: str
    text: str  # of both


class _Text:
    def __init__(self) -> None:
        self.pl: list[str] = []
        self.np: list[str] = []
        self.depth = 1

    def add(self, line: str, other: str | None = None) -> None:
        """A line of the program, and the same in NumPy; none where there is nothing to do."""
        indent = "    " * self.depth
        self.pl.append(indent + line)
        if other != "":
            self.np.append(indent + (line if other is None else other))


class _Maker:
    def __init__(self, seed: int) -> None:
        self.r = Random(seed)
        self.dtype = self.r.choice(["FP32", "FP32", "FP16", "INT32", "INT16"])
        self.cols = self.r.choice([32, 64])
        self.rows = self.r.choice([16, 24, 20, 13])  # the last two leave a ragged tail
        self.dynamic = self.r.random() < 0.4
        self.text = _Text()
        self.count = 0

    # ---- words ----

    def new(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def literal(self) -> str:
        return str(self.r.choice([1, 2, 3, -1] if self.dtype.startswith("INT") else [0.5, 2.0, -1.0, 0.25]))

    @property
    def total(self) -> str:
        return "M" if self.dynamic else str(self.rows)

    # ---- the program ----

    def make(self) -> Case:
        shape = f"[M, {self.cols}]" if self.dynamic else f"[{self.rows}, {self.cols}]"
        tensor = f"pl.Tensor[{shape}, pl.{self.dtype}]"
        outputs = ["c", "d"]
        for _ in range(self.r.randint(1, 2)):
            self.region(outputs)
        for name in outputs:  # every output is written
            self.rows_of(name, "load")
        body_pl, body_np = "\n".join(self.text.pl), "\n".join(self.text.np)
        params = f"a: {tensor}, b: {tensor}, c: pl.Out[{tensor}], d: pl.Out[{tensor}]"
        text = (
            'import pto.language as pl\n\nM = pl.dynamic("M")\n\n\n@pl.jit.inline\ndef mixed(x, y):\n'
            "    if True:\n        z = pl.sub(x, y)\n    return z, pl.maximum(x, y)\n\n\n"
            f"@pl.jit\ndef kernel({params}):\n{body_pl}\n    return c\n"
        )
        numpy = (
            "def mixed(x, y):\n    return x - y, np.maximum(x, y)\n\n\n"
            f"def same(a, b, c, d, np, T):\n    M = {self.rows}\n{body_np}\n"
        )
        names: dict[str, Any] = {"np": np}
        exec(compile(numpy, "<numpy>", "exec"), names)
        rng = np.random.default_rng(self.r.randrange(1 << 30))
        kind = DTYPES[self.dtype]
        if kind in (np.int32, np.int16):
            ins = [rng.integers(-99, 99, (self.rows, self.cols)).astype(kind) for _ in range(2)]
        else:
            ins = [(rng.integers(-64, 64, (self.rows, self.cols)) / 16).astype(kind) for _ in range(2)]
        outs = [np.zeros((self.rows, self.cols), kind) for _ in range(2)]
        return Case(pl.parse(text), names["same"], [*ins, *outs], text, f"{text}\n{numpy}")

    def region(self, outputs: list[str]) -> None:
        """A task per chunk of rows, in one of several ways, which writes to an output what later ones may read."""
        self.rows_of(self.r.choice(outputs), self.r.choice(["load", "load", "window"]))

    def rows_of(self, out: str, level: str) -> None:
        t = self.text
        chunks = -(-self.rows // ROWS)
        way = self.r.choice(["at", "spmd", "orchestrated"])
        start = t.depth
        if way == "at":
            t.add("with pl.at(level=pl.Level.CORE_GROUP):", "if True:")
            t.depth += 1
            loop = self.r.choice(["range", "pipeline", "parallel"])
            t.add(f"for r in pl.{loop}(0, {self.total}, {ROWS}):", f"for r in range(0, M, {ROWS}):")
        elif way == "spmd":
            block = self.new("block")
            t.add(f"for {block} in pl.spmd({chunks}):", f"for {block} in range({chunks}):")
            t.depth += 1
            t.add(f"r = {block} * {ROWS}")
            t.depth -= 1
        else:
            t.add(f"for r in pl.range(0, {self.total}, {ROWS}):", f"for r in range(0, M, {ROWS}):")
            t.depth += 1
            t.add("with pl.at(level=pl.Level.CORE_GROUP):", "if True:")
        t.depth += 1
        ragged = self.rows % ROWS != 0
        n = str(ROWS)
        if ragged or self.dynamic:
            n = "n"
            t.add(f"n = pl.min({ROWS}, {self.total} - r)", f"n = min({ROWS}, M - r)")
        if level == "window" and not (ragged or self.dynamic):
            tiles = [self.window(x) for x in ("a", "b")]
        else:
            level = "load"
            tiles = [self.load(x, n) for x in ("a", "b")]
        self.statements(tiles, self.r.randint(2, 5), 2)
        result = tiles[-1]
        if level == "window":
            t.add(f"{out}[r : r + {ROWS}, :] = {result}", f"{out}[r : r + {ROWS}] = {result}")
        else:
            t.add(f"pl.store({result}, [r, 0], {out})", f"{out}[r : r + {n}] = {result}")
        t.depth = start

    def load(self, tensor: str, n: str) -> str:
        name = self.new("t")
        valid = "" if n == str(ROWS) else f", valid_shape=[{n}, {self.cols}]"
        self.text.add(f"{name} = pl.load({tensor}, [r, 0], [{ROWS}, {self.cols}]{valid})",
                      f"{name} = {tensor}[r : r + {n}].copy()")  # fmt: skip
        return name

    def window(self, tensor: str) -> str:
        name = self.new("w")
        self.text.add(f"{name} = pl.add({tensor}[r : r + {ROWS}, :], 1)" if self.dtype.startswith("INT")
                      else f"{name} = pl.add({tensor}[r : r + {ROWS}, :], 1.0)",
                      f"{name} = {tensor}[r : r + {ROWS}] + T(1)")  # fmt: skip
        return name

    # ---- statements ----

    def statements(self, tiles: list[str], count: int, deep: int) -> None:
        """Statements that end with a new last tile; `tiles` are names that are set."""
        for _ in range(count):
            kinds = [self.binary, self.unary, self.helper, self.in_place, self.swap]
            if deep:
                kinds += [self.arms, self.loop, self.loop, self.jumps, self.while_, self.explicit]
            self.r.choice(kinds)(tiles, deep)
        self.binary(tiles, deep)

    def binary(self, tiles: list[str], deep: int, name: str = "") -> None:
        x, y = self.r.choice(tiles), self.r.choice(tiles)
        word, other = self.r.choice([("add", "{} + {}"), ("sub", "{} - {}"), ("maximum", "np.maximum({}, {})"),
                                     ("minimum", "np.minimum({}, {})")])  # fmt: skip
        name = name or self.new("t")
        self.text.add(f"{name} = pl.{word}({x}, {y})", f"{name} = {other.format(x, y)}")
        tiles.append(name)

    def unary(self, tiles: list[str], deep: int) -> None:
        x, c = self.r.choice(tiles), self.literal()
        word, sign = self.r.choice([("add", "+"), ("mul", "*")])
        name = self.new("t")
        self.text.add(f"{name} = pl.{word}({x}, {c})", f"{name} = {x} {sign} T({c})")
        tiles.append(name)

    def helper(self, tiles: list[str], deep: int) -> None:
        x, y = self.r.choice(tiles), self.r.choice(tiles)
        one, two = self.new("t"), self.new("t")
        self.text.add(f"{one}, {two} = mixed({x}, {y})")
        tiles += [one, two]

    def in_place(self, tiles: list[str], deep: int) -> None:
        x, y = self.r.choice(tiles), self.r.choice(tiles)
        self.text.add(f"{x} += {y}", f"{x} = {x} + {y}")

    def swap(self, tiles: list[str], deep: int) -> None:
        x, y = self.r.choice(tiles), self.r.choice(tiles)
        if x != y:
            self.text.add(f"{x}, {y} = {y}, {x}")

    def condition(self, counter: str) -> str:
        return f"{counter} % 2 == {self.r.randint(0, 1)}"

    def arms(self, tiles: list[str], deep: int) -> None:
        """Both arms set a new name, one of them an old one too."""
        t, name = self.text, self.new("t")
        old = self.r.choice(tiles)
        t.add(f"if {self.condition(f'(r // {ROWS})')}:")
        t.depth += 1
        inner = list(tiles)
        if self.r.random() < 0.5:
            self.statements(inner, 1, deep - 1)
        self.binary(inner, deep, name)
        if self.r.random() < 0.5:
            self.binary(inner, deep, old)
        t.depth -= 1
        t.add("else:")
        t.depth += 1
        self.binary(list(tiles), deep, name)
        t.depth -= 1
        tiles.append(name)

    def loop(self, tiles: list[str], deep: int) -> None:
        """Carries a tile and a number; perhaps no iteration at all."""
        t, i, x = self.text, self.new("i"), self.r.choice(tiles)
        trips = self.r.choice([0, 1, 2, 3])
        s = self.new("s")
        t.add(f"{s} = 1" if self.dtype.startswith("INT") else f"{s} = 0.5")
        bounds = self.r.choice([f"{trips}", f"0, {trips * 2}, 2", f"{trips}, 0, -1"])
        t.add(f"for {i} in pl.range({bounds}):", f"for {i} in range({bounds}):")
        t.depth += 1
        inner = list(tiles)
        if self.r.random() < 0.6:
            self.statements(inner, 1, deep - 1)
        t.add(f"{s} = {s} + {s}")
        self.binary(inner, deep, x)
        t.depth -= 1
        name = self.new("t")
        number = f"pl.cast({s}, pl.{self.dtype})"
        t.add(f"{name} = pl.add({x}, {number})", f"{name} = {x} + T({s})")
        tiles.append(name)

    def jumps(self, tiles: list[str], deep: int) -> None:
        t, i, x = self.text, self.new("i"), self.r.choice(tiles)
        t.add(f"for {i} in pl.range(4):", f"for {i} in range(4):")
        t.depth += 1
        word = self.r.choice(["break", "continue"])
        t.add(f"if {i} == {self.r.randint(0, 3)}:")
        t.depth += 1
        if self.r.random() < 0.5:
            self.binary(list(tiles), deep, x)
        t.add(word)
        t.depth -= 1
        self.binary(list(tiles), deep, x)
        if self.r.random() < 0.4:
            t.add(f"if {i} + r > {self.r.randint(0, 12)}:")
            t.depth += 1
            t.add("break")
            t.depth -= 1
            self.binary(list(tiles), deep, x)
        t.depth -= 1

    def while_(self, tiles: list[str], deep: int) -> None:
        t, k, x = self.text, self.new("k"), self.r.choice(tiles)
        t.add(f"{k} = 0")
        t.add(f"while {k} < {self.r.randint(1, 3)}:")
        t.depth += 1
        self.binary(list(tiles), deep, x)
        t.add(f"{k} = {k} + 1")
        t.depth -= 1

    def explicit(self, tiles: list[str], deep: int) -> None:
        t, x, y, z = self.text, self.new("x"), self.new("y"), self.new("z")
        i, init, trips = self.new("i"), self.r.choice(tiles), self.r.randint(0, 2)
        t.add(f"for {i}, ({x},) in pl.range({trips}, init_values=({init},)):", f"{z} = {init}")
        t.np.append("    " * t.depth + f"for {i} in range({trips}):")
        t.depth += 1
        t.add("pass", f"{x} = {z}")
        self.binary([*tiles, x], deep, y)
        t.add(f"{z} = pl.yield_({y})", f"{z} = {y}")
        t.depth -= 1
        tiles.append(z)


def make(seed: int) -> Case:
    return _Maker(seed).make()
