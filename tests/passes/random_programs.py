"""Random structured programs without synchronisation, placed at random, and their arguments.

Tiles are placed anywhere, on top of each other too: whatever the addresses are, the program means what it
does in program order. Loops may run zero times, branches may lack an else, windows are static, dynamic or
ragged, tiles are selected by parity or swapped by a loop, and scalars are read from and written to tiles
and global memory. Wild programs also have pointers that move, several views of one array, tiles under other
names, tiles that a branch or a while loop hands on, barriers, atomic stores, and calls.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROWS = 64  # of every global array, with COLS columns of f32
COLS = 32

_HEAD = """\
!view = !pto.tensor_view<64x32xf32>
!half = !pto.tensor_view<64x32xf16>
!called = !pto.partition_tensor_view<8x32xf32>
!acc = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
!mat = !pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>
!left = !pto.tile_buf<left, 16x16xf16, blayout={left}, slayout=row_major>
!right = !pto.tile_buf<right, 16x16xf16, slayout=col_major>
"""


@dataclass
class Made:
    """A program and its arguments: f32 arrays, f16 arrays, and numbers."""

    text: str
    isa: str
    seed: int
    arrays: int
    numbers: list[int]

    def arguments(self) -> list[Any]:
        rng = np.random.default_rng(self.seed)
        floats = [rng.integers(-8, 9, (ROWS, COLS)).astype(np.float32) for _ in range(self.arrays)]
        halves = [rng.integers(-2, 3, (ROWS, COLS)).astype(np.float16) for _ in range(2)]
        return [*floats, *halves, *self.numbers]


@dataclass
class Maker:
    """Writes one program."""

    random: random.Random
    isa: str
    size: int  # about how many instructions
    flat: bool = False  # no loops and branches, and whole tiles: whatever is there happens
    placed: bool = True  # with addresses
    wild: bool = False
    lines: list[str] = field(default_factory=list)
    indent: int = 2
    names: int = 0
    left: int = 0
    loops: list[str] = field(default_factory=list)  # counters of the loops around
    vectors: list[tuple[str, str]] = field(default_factory=list)  # tiles in UB: name, type
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)  # bytes they are in, where that is known
    cubes: dict[str, list[str]] = field(default_factory=dict)
    scalars: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    kinds: str = "vector"
    views: list[tuple[str, str, int, int]] = field(default_factory=list)  # of f32: name, type, rows, columns
    pointers: list[str] = field(default_factory=list)  # to numbers that end 512 elements after them

    def name(self, start: str = "v") -> str:
        self.names += 1
        return f"%{start}{self.names}"

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def constant(self, value: int, type: str = "index") -> str:
        name = f"%c{value}_{type}".replace("-", "m")
        text = f"    {name} = arith.constant {value} : {type}"
        if text not in self.head:
            self.head.append(text)
        return name

    # -- tiles -----------------------------------------------------------------------------------------

    def vector_type(self) -> tuple[str, int]:
        r = self.random
        rows, cols = r.choice(((8, 8), (8, 16), (16, 8), (4, 32), (16, 16)))
        if r.random() < 0.15:
            rows, cols = 32, 32
        v_row = rows if self.flat or r.random() < 0.75 else r.randint(1, rows)
        v_col = cols if self.flat or r.random() < 0.75 else r.randint(1, cols)
        valid = f", valid={v_row}x{v_col}" if (v_row, v_col) != (rows, cols) else ""
        return f"!pto.tile_buf<vec, {rows}x{cols}xf32{valid}>", rows * cols * 4

    def place(self, size: int, space: int) -> int:
        return self.random.randrange(0, max(1, space - size) // 32 + 1) * 32

    def address(self, at: int) -> str:
        return f"addr = {self.constant(at, 'i64')} " if self.placed else ""

    def tiles(self) -> None:
        r = self.random
        types = [self.vector_type() for _ in range(r.randint(1, 3))]
        space = r.choice((1024, 4096, 16384)) + max(size for _, size in types)
        for _ in range(r.randint(2, 7)):
            type, size = r.choice(types)
            name = self.name("t")
            place = self.place(size, space)
            self.line(f"{name} = pto.alloc_tile {self.address(place)}: {type}")
            self.vectors.append((name, type))
            if self.placed:
                self.ranges[name] = place, place + size
            if r.random() < 0.2:
                self.subview(name, type)
        if self.kinds != "vector":
            sizes = {"mat": 512, "left": 512, "right": 512, "acc": 1024}
            for loc, count in (("mat", 4), ("left", 2), ("right", 2), ("acc", 2)):
                self.cubes[loc] = []
                for _ in range(r.randint(1, count)):
                    name = self.name(loc)
                    at = self.place(sizes[loc], sizes[loc] * r.randint(1, 4)) // 512 * 512
                    self.line(f"{name} = pto.alloc_tile {self.address(at)}: !{loc}")
                    self.cubes[loc].append(name)

    def subview(self, source: str, type: str) -> None:
        rows, cols = (int(n) for n in type.split()[1].removesuffix(">").removesuffix(",").split("x")[:2])
        if rows < 8 or cols < 16 or "valid" in type:
            return
        r = self.random
        down = r.random() < 0.5
        size = (rows // 2, cols) if down else (rows, cols // 2)
        at = (r.choice((0, rows // 2)), 0) if down else (0, r.choice((0, cols // 2)))
        part = f"!pto.tile_buf<vec, {size[0]}x{size[1]}xf32>"
        name = self.name("s")
        offsets = ", ".join(self.constant(n) for n in at)
        self.line(f"{name} = pto.subview {source}[{offsets}] sizes [{size[0]}, {size[1]}] : {type} -> {part}")
        self.vectors.append((name, part))
        if source in self.ranges:
            self.ranges[name] = self.ranges[source]

    def same(self, type: str, dst: str = "") -> str:
        """A tile of a type; one that does not overlap a part of `dst` where it is for an instruction."""
        low, high = self.ranges.get(dst, (0, 0))
        fit = [
            name
            for name, t in self.vectors
            if t == type
            and (name == dst or not dst or (a := self.ranges.get(name, (0, 0)))[1] <= low or high <= a[0])
        ]
        return self.random.choice(fit)

    # -- global memory ---------------------------------------------------------------------------------

    def window(self, rows: int, cols: int, half: bool = False) -> tuple[str, str]:
        """A window of an array: its name and type."""
        r = self.random
        array = r.choice(("%h0", "%h1")) if half else f"%x{r.randrange(3)}"
        view, height, width = "!half" if half else "!view", ROWS, COLS
        if self.views and not half and r.random() < 0.5:
            array, view, height, width = r.choice(self.views)
        offsets: list[str] = []
        for extent, size in ((height, rows), (width, cols)):
            most = extent - size
            kind = r.random()
            if self.loops and kind < 0.35 and most >= 8:
                step = r.choice([n for n in (1, 2, 4, 8, 16) if n * 2 <= most])
                name = self.name()
                self.line(f"{name} = arith.muli {r.choice(self.loops)}, {self.constant(step)} : index")
                if self.wild and r.random() < 0.4:
                    name = self.turned(name, 2 * step)
                offsets.append(name)
            elif kind < 0.6:
                offsets.append(self.constant(0))
            else:
                offsets.append(self.constant(r.randrange(0, most + 1)))
        elem = "f16" if half else "f32"
        type = f"!pto.partition_tensor_view<{rows}x{cols}x{elem}>"
        name = self.name("w")
        sizes = f"{self.constant(rows)}, {self.constant(cols)}"
        self.line(
            f"{name} = pto.partition_view {array}, offsets = [{', '.join(offsets)}], sizes = [{sizes}] "
            f": {view} -> {type}"
        )
        return name, type

    def turned(self, name: str, most: int) -> str:
        """A number between 0 and `most` counted from the other end."""
        other = self.name()
        self.line(f"{other} = arith.subi {self.constant(most)}, {name} : index")
        return other

    def small(self, most: int) -> str:
        """A number from 0 to `most`, which may change from iteration to iteration."""
        r = self.random
        if r.random() < 0.3:
            return self.constant(r.randrange(most + 1))
        count, scaled = r.choice([*self.loops, "%n0", "%n1"]), self.name()
        self.line(f"{scaled} = arith.muli {count}, {self.constant(most // 3)} : index")
        return self.turned(scaled, most // 3 * 3) if r.random() < 0.3 else scaled

    def view(self) -> None:
        """Another view of an array, of a part of it perhaps."""
        r = self.random
        name, strides = self.name("x"), [COLS, 1]
        pointer, rows = f"%p{r.randrange(3)}", ROWS
        if r.random() < 0.6:
            moved, rows = self.name("p"), 48
            self.line(f"{moved} = pto.addptr {pointer}, {self.small(480)} : !pto.ptr<f32> -> !pto.ptr<f32>")
            pointer = moved
            self.pointers.append(pointer)
        elif r.random() < 0.5:
            rows, strides = 32, [2 * COLS, 1]  # every other row
        type = f"!pto.tensor_view<{rows}x{COLS}xf32>"
        shape = ", ".join(self.constant(n) for n in (rows, COLS))
        apart = ", ".join(self.constant(n) for n in strides)
        self.line(f"{name} = pto.make_tensor_view {pointer}, shape = [{shape}], strides = [{apart}] : {type}")
        self.views.append((name, type, rows, COLS))

    @staticmethod
    def valid(type: str) -> tuple[int, int]:
        text = type.split("valid=")[1] if "valid=" in type else type.split()[1]
        rows, cols = text.removesuffix(">").removesuffix(",").split("x")[:2]
        return int(rows), int(cols)

    # -- instructions ----------------------------------------------------------------------------------

    def instruction(self) -> None:
        r = self.random
        self.left -= 1
        if self.kinds == "cube" or (self.kinds == "mix" and r.random() < 0.5):
            self.cube()
            return
        if self.wild and r.random() < 0.25:
            self.unusual()
            return
        name, type = r.choice(self.vectors)
        kind = r.random()
        if kind < 0.25:
            window, w = self.window(*self.valid(type))
            self.line(f"pto.tload ins({window} : {w}) outs({name} : {type})")
        elif kind < 0.45:
            window, w = self.window(*self.valid(type))
            self.line(f"pto.tstore ins({name} : {type}) outs({window} : {w})")
        elif kind < 0.7:
            a, b = self.same(type, name), self.same(type, name)
            op = r.choice(("tadd", "tmax", "tmin", "tsub"))
            self.line(f"pto.{op} ins({a}, {b} : {type}, {type}) outs({name} : {type})")
        elif kind < 0.88:
            value = self.name("f")
            self.line(f"{value} = arith.constant {r.choice((0.5, 1.0, -1.0))} : f32")
            op = r.choice(("tadds", "tmuls", "tmaxs"))
            self.line(f"pto.{op} ins({self.same(type, name)}, {value} : {type}, f32) outs({name} : {type})")
        elif kind < 0.92:
            value = self.name("g")
            at = self.constant(r.randrange(4))
            self.line(f"{value} = pto.tgetval ins({name}, {at} : {type}, index) outs : f32")
            self.scalars.append(value)
        elif kind < 0.96:
            self.scalar_store(name, type)
        else:
            self.scalar_memory()

    def unusual(self) -> None:
        r = self.random
        kind = r.random()
        name, type = r.choice(self.vectors)
        if kind < 0.35:
            self.view()
        elif kind < 0.5:
            self.renamed(name, type)
        elif kind < 0.6:
            self.chosen(type)
        elif kind < 0.7:
            pipe = r.choice(("MTE3", "ALL", *(["V"] if self.isa == "a3" else [])))
            self.line(f"pto.barrier <PIPE_{pipe}>")
        elif kind < 0.8:
            window, w = self.window(*self.valid(type))
            atomic = "{atomicType = #pto<atomic_type atomic_add>}"
            self.line(f"pto.tstore ins({name} : {type}) outs({window} : {w}) {atomic}")
        elif kind < 0.9:
            value = self.name("g")
            self.line(f"{value} = pto.tgetval ins({name}, {self.small(6)} : {type}, index) outs : f32")
            self.scalars.append(value)
        elif self.placed:
            self.line(f"func.call @{r.choice('fg')}(%p{r.randrange(3)}) : (!pto.ptr<f32>) -> ()")

    def renamed(self, name: str, type: str) -> None:
        """A tile under another name: the same bytes in another shape."""
        if "valid" in type or name.startswith("%s"):
            return
        rows, cols = (int(n) for n in type.split()[1].removesuffix(">").split("x")[:2])
        other = f"!pto.tile_buf<vec, {rows // 2}x{cols * 2}xf32>"
        if cols > 16:
            return
        new = self.name("t")
        self.line(f"{new} = pto.treshape {name} : {type} -> {other}")
        self.vectors.append((new, other))
        if name in self.ranges:
            self.ranges[new] = self.ranges[name]

    def chosen(self, type: str) -> None:
        """One of two tiles, decided when the program runs."""
        new = self.name("t")
        a, b = self.same(type), self.same(type)
        self.line(f"{new} = scf.if {self.condition()} -> ({type}) {{")
        self.line(f"  scf.yield {a} : {type}")
        self.line("} else {")
        self.line(f"  scf.yield {b} : {type}")
        self.line("}")
        self.vectors.append((new, type))
        if a in self.ranges and b in self.ranges:
            (low, high), (first, last) = self.ranges[a], self.ranges[b]
            self.ranges[new] = min(low, first), max(high, last)

    def scalar_store(self, name: str, type: str) -> None:
        value = self.usable()
        at = self.constant(self.random.randrange(4))
        self.line(f"pto.tsetval ins({at}, {value} : index, f32) outs({name} : {type})")

    def usable(self) -> str:
        if self.scalars:
            return self.random.choice(self.scalars)
        value = self.name("f")
        self.line(f"{value} = arith.constant 0.25 : f32")
        return value

    def scalar_memory(self) -> None:
        r = self.random
        at = self.small(255) if self.wild else self.constant(r.randrange(256))
        pointer = f"%p{r.randrange(3)}"
        if self.pointers and r.random() < 0.5:
            pointer = r.choice(self.pointers)
        if r.random() < 0.5:
            value = self.name("g")
            self.line(f"{value} = pto.load_scalar {pointer}[{at}] : !pto.ptr<f32> -> f32")
            self.scalars.append(value)
        else:
            self.line(f"pto.store_scalar {self.usable()}, {pointer}[{at}] : !pto.ptr<f32>, f32")

    def cube(self) -> None:
        r = self.random
        pick = {loc: r.choice(names) for loc, names in self.cubes.items()}
        kind = r.random()
        if kind < 0.2:
            window, w = self.window(16, 16, half=True)
            self.line(f"pto.tload ins({window} : {w}) outs({pick['mat']} : !mat)")
        elif kind < 0.5:
            to = r.choice(("left", "right"))
            self.line(f"pto.tmov ins({pick['mat']} : !mat) outs({pick[to]} : !{to})")
        elif kind < 0.7:
            a, b, c = pick["left"], pick["right"], pick["acc"]
            if r.random() < 0.5:
                self.line(f"pto.tmatmul ins({a}, {b} : !left, !right) outs({c} : !acc)")
            else:
                self.line(f"pto.tmatmul.acc ins({c}, {a}, {b} : !acc, !left, !right) outs({c} : !acc)")
        elif kind < 0.85:
            self.line(f"pto.tmov ins({pick['acc']} : !acc) outs({pick['mat']} : !mat)")
        else:
            window, w = self.window(16, 16)
            self.line(f"pto.tstore ins({pick['acc']} : !acc) outs({window} : {w})")

    # -- control ---------------------------------------------------------------------------------------

    def block(self, depth: int) -> None:
        """Emit some instructions and structures; definitions inside are not used after."""
        saved = (
            list(self.vectors),
            list(self.scalars),
            list(self.loops),
            list(self.views),
            list(self.pointers),
        )
        for _ in range(self.random.randint(1, 6)):
            if self.left <= 0:
                break
            kind = 1.0 if self.flat else self.random.random()
            if depth < 3 and kind < 0.16:
                self.loop(depth)
            elif depth < 3 and kind < 0.26:
                self.branch(depth)
            elif depth < 3 and kind < 0.29:
                self.switch(depth)
            elif depth < 3 and kind < 0.31:
                self.repeat(depth)
            else:
                self.instruction()
        self.vectors, self.scalars, self.loops, self.views, self.pointers = saved

    def loop(self, depth: int) -> None:
        r = self.random
        counter = self.name("i")
        high = r.choice(
            (self.constant(0), self.constant(1), self.constant(2), self.constant(3), "%n0", "%n1")
        )
        swapped = self.swap() if r.random() < 0.15 else None
        head = f"scf.for {counter} = {self.constant(0)} to {high} step {self.constant(1)}"
        saved = list(self.vectors)
        end = ""
        if swapped is not None:
            (a, b), type = swapped
            p, q = self.name("p"), self.name("q")
            self.line(f"{self.name('r')}:2 = {head} iter_args({p} = {a}, {q} = {b}) -> ({type}, {type}) {{")
            self.vectors += [(p, type), (q, type)]
            end = f"scf.yield {q}, {p} : {type}, {type}"
        else:
            self.line(head + " {")
        self.indent += 1
        self.loops.append(counter)
        if self.placed and r.random() < 0.2:
            self.parity(counter)
        self.block(depth + 1)
        self.loops.pop()
        if end:
            self.line(end)
        self.vectors = saved
        self.indent -= 1
        self.line("}")

    def swap(self) -> tuple[tuple[str, str], str] | None:
        name, type = self.random.choice(self.vectors)
        return (name, self.same(type)), type

    def parity(self, counter: str) -> None:
        """A tile whose place alternates."""
        r = self.random
        type, size = self.vector_type()
        rest, wide, at = self.name(), self.name(), self.name()
        self.line(f"{rest} = arith.remsi {counter}, {self.constant(2)} : index")
        self.line(f"{wide} = arith.index_cast {rest} : index to i64")
        apart = self.constant(r.choice((size, size // 2 or 32)) // 32 * 32, "i64")
        self.line(f"{at} = arith.muli {wide}, {apart} : i64")
        name = self.name("t")
        self.line(f"{name} = pto.alloc_tile addr = {at} : {type}")
        self.vectors.append((name, type))

    def condition(self) -> str:
        r = self.random
        name = self.name("b")
        number = r.choice([*self.loops, "%n0", "%n1"])
        kind = r.choice(("eq", "slt", "sgt", "ne"))
        self.line(f"{name} = arith.cmpi {kind}, {number}, {self.constant(r.randrange(3))} : index")
        return name

    def branch(self, depth: int) -> None:
        self.line(f"scf.if {self.condition()} {{")
        self.indented(depth)
        if self.random.random() < 0.5:
            self.line("} else {")
            self.indented(depth)
        self.line("}")

    def switch(self, depth: int) -> None:
        self.line(f"scf.index_switch {self.random.choice([*self.loops, '%n0'])}")
        for case in ("case 0", "case 1", "default"):
            self.line(f"{case} {{")
            self.indented(depth, "scf.yield")
            self.line("}")

    def repeat(self, depth: int) -> None:
        """A while loop; now and then its condition works on tiles too."""
        count, state, more, next = self.name("k"), self.name("k"), self.name("b"), self.name("k")
        high = self.random.choice((self.constant(2), "%n0"))
        self.line(f"{self.name('r')} = scf.while ({state} = {self.constant(0)}) : (index) -> index {{")
        self.indent += 1
        if self.random.random() < 0.4:
            saved = list(self.vectors), list(self.scalars), list(self.views), list(self.pointers)
            self.instruction()
            self.vectors, self.scalars, self.views, self.pointers = saved
        self.line(f"{more} = arith.cmpi slt, {state}, {high} : index")
        self.line(f"scf.condition({more}) {state} : index")
        self.indent -= 1
        self.line("} do {")
        self.line(f"^bb0({count}: index):")
        self.indented(depth)
        self.line(f"  {next} = arith.addi {count}, {self.constant(1)} : index")
        self.line(f"  scf.yield {next} : index")
        self.line("}")

    def indented(self, depth: int, end: str = "") -> None:
        self.indent += 1
        self.block(depth + 1)
        if end:
            self.line(end)
        self.indent -= 1

    # -- the program -----------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Define what cube instructions read."""
        for mat in self.cubes.get("mat", ()):
            window, w = self.window(16, 16, half=True)
            self.line(f"pto.tload ins({window} : {w}) outs({mat} : !mat)")
        for to in ("left", "right"):
            for tile in self.cubes.get(to, ()):
                self.line(
                    f"pto.tmov ins({self.random.choice(self.cubes['mat'])} : !mat) outs({tile} : !{to})"
                )
        for tile in self.cubes.get("acc", ()):
            a, b = self.random.choice(self.cubes["left"]), self.random.choice(self.cubes["right"])
            self.line(f"pto.tmatmul ins({a}, {b} : !left, !right) outs({tile} : !acc)")

    def make(self) -> str:
        r = self.random
        self.left = self.size
        self.kinds = r.choice(("vector", "vector", "mix", "cube"))
        self.tiles()
        for name, type in self.vectors:
            window, w = self.window(*self.valid(type))
            self.line(f"pto.tload ins({window} : {w}) outs({name} : {type})")
        self.prepare()
        while self.left > 0:
            self.block(0)
        body = "\n".join(self.lines)
        one, rows, cols = (self.constant(n) for n in (1, ROWS, COLS))
        views = [
            f"    %{n} = pto.make_tensor_view %{p}, shape = [{rows}, {cols}], strides = [{cols}, {one}] : {t}"
            for n, p, t in (("x0", "p0", "!view"), ("x1", "p1", "!view"), ("x2", "p2", "!view"),
                            ("h0", "q0", "!half"), ("h1", "q1", "!half"))
        ]  # fmt: skip
        args = [*[f"%p{n}: !pto.ptr<f32>" for n in range(3)], "%q0: !pto.ptr<f16>", "%q1: !pto.ptr<f16>",
                "%n0: index", "%n1: index"]  # fmt: skip
        left = "col_major" if self.isa == "a5" else "row_major"
        return "\n".join((
            _HEAD.replace("{left}", left),
            f'module attributes {{pto.target_arch = "{self.isa}"}} {{',
            f"  func.func @k({', '.join(args)}) attributes {{pto.entry}} {{",
            *self.head, *views, body, "    return", "  }",
            *(_CALLED if self.wild and self.placed else ()), "}", "",
        ))  # fmt: skip


#: Functions that wild programs call.
_CALLED = [
    f"""\
  func.func private @{name}(%p: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %c32 = arith.constant 32 : index
    %at = arith.constant {at} : i64
    %f = arith.constant 0.5 : f32
    %t = pto.alloc_tile addr = %at : !pto.tile_buf<vec, 8x32xf32>
    %x = pto.make_tensor_view %p, shape = [%c64, %c32], strides = [%c32, %c1] : !view
    scf.for %i = %c0 to %c2 step %c1 {{
      %w = pto.partition_view %x, offsets = [%i, %c0], sizes = [%c8, %c32] : !view -> !called
      pto.tload ins(%w : !called) outs(%t : !pto.tile_buf<vec, 8x32xf32>)
      pto.tmuls ins(%t, %f : !pto.tile_buf<vec, 8x32xf32>, f32) outs(%t : !pto.tile_buf<vec, 8x32xf32>)
      pto.tstore ins(%t : !pto.tile_buf<vec, 8x32xf32>) outs(%w : !called)
      {more}
    }}
    return
  }}"""
    for name, at, more in (("f", 32768, ""), ("g", 36864, "func.call @f(%p) : (!pto.ptr<f32>) -> ()"))
]


def random_program(
    seed: int, isa: str, size: int = 24, flat: bool = False, placed: bool = True, wild: bool = False
) -> Made:
    r = random.Random(f"{seed} {isa}{' wild' * wild}")
    text = Maker(r, isa, r.randint(3, size), flat, placed, wild).make()
    return Made(text, isa, seed, 3, [r.randrange(4), r.randrange(4)])
