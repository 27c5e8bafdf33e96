"""Random structured programs in auto mode, for memory planning.

Every value that is stored is defined on every path, so the outputs do not depend on where tiles lie. Programs
have nested loops (`for`, `while`), branches, switches, regions with blocks, calls, tiles carried by loops and
returned by branches, views, scratch operands, tiles of ragged sizes, and reads of unwritten tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

#: Shapes by class; the last two of a class have the same bytes, so they are views of each other.
SHAPES = (((4, 16), (8, 8)), ((2, 24), (6, 8)), ((1, 8), (1, 8)), ((8, 8), (2, 32)), ((5, 8), (1, 40)))
WINDOW = 8  # rows of a window of an array
COLS = 40
IN_WINDOWS, SITES, TURNS = 8, 48, 4

BINARY = ("tadd", "tsub", "tmax", "tmin", "tpartmax")
UNARY = ("tneg", "tabs", "trelu", "tmov", "tadds", "tmuls")


def tile(shape: tuple[int, int]) -> str:
    return f"!pto.tile_buf<vec, {shape[0]}x{shape[1]}xf32>"


def view(shape: tuple[int, int]) -> str:
    return f"!pto.partition_tensor_view<{shape[0]}x{shape[1]}xf32>"


IN = f"!pto.tensor_view<{IN_WINDOWS * WINDOW}x{COLS}xf32>"
OUT = f"!pto.tensor_view<{SITES * TURNS * WINDOW}x{COLS}xf32>"


class Programs:
    """Writes one program; `text` is the result."""

    def __init__(self, seed: int, size: int = 24, calls: bool = True) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.count = self.sites = 0
        #: Tiles in scope: name -> shape; and those that are written on every path to here.
        self.scope: dict[str, tuple[int, int]] = {}
        self.defined: set[str] = set()
        self.turn = "%c0"
        self.depth = 0
        self.helpers: list[tuple[str, tuple[int, int], bool]] = []
        self.left = size
        self.shapes = self.random.sample(SHAPES, self.random.randint(1, 3))
        heads: list[str] = []
        if calls:
            for n in range(self.random.randint(0, 2)):
                heads.append(self.helper(f"helper{n}"))
        self.left = size
        body = self.function()
        self.text = "\n".join(["module {", *heads, body, "}"]) + "\n"

    # -- functions -------------------------------------------------------------------------------------

    def function(self) -> str:
        self.lines, self.scope, self.defined = [], {}, set()
        while self.left > 0:
            self.statement()
        self.store()
        head = f"func.func @k(%x: {IN}, %y: {OUT}, %n: index, %p: index) attributes {{pto.entry}} {{"
        return "\n".join([head, *constants(), *self.lines, "return", "}"])

    def helper(self, name: str) -> str:
        """A function that adds to a tile of its caller, or makes a tile and returns it."""
        self.lines, self.scope, self.defined = [], {}, set()
        shape = self.random.choice(self.shapes)[0]
        returns = self.random.random() < 0.4
        self.scope["t"] = shape
        self.defined.add("t")
        self.left = self.random.randint(2, 7)
        while self.left > 0:
            self.statement()
        result, type = "", ""
        if returns:
            made = self.pick(shape) or "t"
            result, type = f" %{made} : {tile(shape)}", f" -> {tile(shape)}"
        else:
            source = self.pick(shape)
            if source and source != "t":
                self.emit(
                    f"pto.tadd ins(%t, %{source} : {tile(shape)}, {tile(shape)}) outs(%t : {tile(shape)})"
                )
        self.helpers.append((name, shape, returns))
        head = f"func.func private @{name}(%t: {tile(shape)}, %x: {IN}, %y: {OUT}, %n: index, %p: index){type} {{"
        return "\n".join([head, *constants(), *self.lines, f"return{result}", "}"])

    # -- small things ----------------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def name(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self, shape: tuple[int, int] | None = None, defined: bool = True) -> str | None:
        found = [
            n
            for n, s in self.scope.items()
            if (shape is None or s == shape) and (n in self.defined or not defined)
        ]
        return self.random.choice(found) if found else None

    def alloc(self, shape: tuple[int, int] | None = None) -> str:
        shape = shape or self.random.choice(self.random.choice(self.shapes))
        name = self.name("t")
        self.emit(f"%{name} = pto.alloc_tile : {tile(shape)}")
        self.scope[name] = shape
        return name

    def target(self, shape: tuple[int, int], not_in: tuple[str, ...] = ()) -> str:
        """A tile to write: an old one or a new one."""
        old = [n for n, s in self.scope.items() if s == shape and n not in not_in]
        return self.random.choice(old) if old and self.random.random() < 0.5 else self.alloc(shape)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Open a region: its definitions end with it."""
        scope, defined, turn = dict(self.scope), set(self.defined), self.turn
        self.depth += 1
        yield
        self.depth -= 1
        self.scope, self.turn = scope, turn
        self.after = self.defined & set(scope)
        self.defined = defined

    def body(self, most: int = 5) -> None:
        for _ in range(self.random.randint(1, most)):
            if self.left > 0:
                self.statement()

    # -- statements ------------------------------------------------------------------------------------

    def statement(self) -> None:
        self.left -= 1
        kinds = [self.load] * 5 + [self.compute] * 9 + [self.store] * 3 + [self.view] * 2 + [self.alone]
        if self.depth < 3:
            kinds += [self.loop, self.loop, self.carry, self.carry, self.branch, self.branch, self.choose]
            kinds += [self.until, self.switch, self.blocks, self.section]
        if self.helpers:
            kinds += [self.call]
        self.random.choice(kinds)()

    def load(self) -> None:
        shape = self.random.choice(self.random.choice(self.shapes))
        to, part = self.target(shape), self.name("p")
        at = self.random.randrange(IN_WINDOWS) * WINDOW
        self.emit(
            f"%{part} = pto.partition_view %x, offsets = [%c{at}, %c0], sizes = [%c{shape[0]}, %c{shape[1]}] "
            f": {IN} -> {view(shape)}"
        )
        self.emit(f"pto.tload ins(%{part} : {view(shape)}) outs(%{to} : {tile(shape)})")
        self.defined.add(to)

    def store(self) -> None:
        source = self.pick()
        if source is None or self.sites >= SITES:
            return
        shape, part = self.scope[source], self.name("p")
        at, row, first = self.name("i"), self.name("i"), self.name("k")
        self.emit(f"%{first} = arith.constant {self.sites * TURNS} : index")
        self.sites += 1
        self.emit(f"%{at} = arith.addi %{first}, {self.turn} : index")
        self.emit(f"%{row} = arith.muli %{at}, %c{WINDOW} : index")
        self.emit(
            f"%{part} = pto.partition_view %y, offsets = [%{row}, %c0], sizes = [%c{shape[0]}, %c{shape[1]}] "
            f": {OUT} -> {view(shape)}"
        )
        self.emit(f"pto.tstore ins(%{source} : {tile(shape)}) outs(%{part} : {view(shape)})")

    def compute(self) -> None:
        a = self.pick()
        if a is None:
            return self.load()
        shape = self.scope[a]
        t = tile(shape)
        b = self.pick(shape) or a
        if shape == (8, 8) and self.random.random() < 0.5:
            to = self.target(shape, (a,))
            tmp = self.alloc(shape)
            self.emit(f"pto.ttrans ins(%{a}, %{tmp} : {t}, {t}) outs(%{to} : {t})")
        elif self.random.random() < 0.6:
            name = self.random.choice(BINARY)
            to = self.target(shape)
            self.emit(f"pto.{name} ins(%{a}, %{b} : {t}, {t}) outs(%{to} : {t})")
        else:
            name = self.random.choice(UNARY)
            to = self.target(shape, (a,) if name == "tmov" else ())
            more, type = (", %one", ", f32") if name in ("tadds", "tmuls") else ("", "")
            self.emit(f"pto.{name} ins(%{a}{more} : {t}{type}) outs(%{to} : {t})")
        self.defined.add(to)

    def alone(self) -> None:
        """Emit an unused tile, or one that is read and was never written; the result is not used."""
        shape = self.random.choice(self.shapes)[0]
        t = tile(shape)
        a = self.alloc(shape)
        if self.random.random() < 0.5:
            b = self.alloc(shape)
            self.emit(f"pto.tadd ins(%{a}, %{a} : {t}, {t}) outs(%{b} : {t})")
            del self.scope[b]
        del self.scope[a]

    def view(self) -> None:
        source = self.pick() if self.random.random() < 0.8 else self.pick(defined=False)
        if source is None:
            return
        shape, name = self.scope[source], self.name("w")
        others = [s for pair in SHAPES for s in pair if s[0] * s[1] == shape[0] * shape[1]]
        if shape[0] > 1 and self.random.random() < 0.5:
            rows = self.random.randint(1, shape[0] - 1)
            at = self.random.randint(0, shape[0] - rows)
            part = (rows, shape[1])
            self.emit(
                f"%{name} = pto.subview %{source}[%c{at}, %c0] sizes [{rows}, {shape[1]}] "
                f": {tile(shape)} -> {tile(part)}"
            )
        else:
            part = self.random.choice([shape, *others])
            self.emit(f"%{name} = pto.treshape %{source} : {tile(shape)} -> {tile(part)}")
        self.scope[name] = part
        if source in self.defined:
            self.defined.add(name)

    # -- control flow ----------------------------------------------------------------------------------

    def condition(self) -> str:
        """%n and %p decide, or the loop we are in."""
        name = self.name("b")
        a = self.random.choice(["%n", "%p", self.turn])
        kind = self.random.choice(["eq", "ult", "ne", "uge"])
        self.emit(f"%{name} = arith.cmpi {kind}, {a}, %c{self.random.randint(0, 3)} : index")
        return f"%{name}"

    def bound(self) -> str:
        return self.random.choice(["%n", "%p", "%c0", "%c1", "%c2", "%c3"])

    def loop(self) -> None:
        i = self.name("i")
        self.emit(f"scf.for %{i} = %c0 to {self.bound()} step %c1 {{")
        with self.inside():
            self.turn = f"%{i}"
            self.body()
        self.emit("}")

    def carry(self) -> None:
        """Emit a loop that passes tiles to its next iteration."""
        first = self.pick()
        if first is None:
            return self.loop()
        shape = self.scope[first]
        second = self.pick(shape) or first
        count = self.random.randint(1, 2)
        inits = [first, second][:count]
        args = [self.name("a") for _ in inits]
        results = [self.name("r") for _ in inits]
        i = self.name("i")
        pairs = ", ".join(f"%{a} = %{b}" for a, b in zip(args, inits, strict=True))
        types = ", ".join([tile(shape)] * count)
        names = ", ".join(f"%{r}" for r in results)
        self.emit(
            f"{names} = scf.for %{i} = %c0 to {self.bound()} step %c1 iter_args({pairs}) -> ({types}) {{"
        )
        with self.inside():
            self.turn = f"%{i}"
            for a in args:
                self.scope[a] = shape
                self.defined.add(a)
            self.body()
            given = [self.pick(shape) or args[0] for _ in args]
            if count == 2 and self.random.random() < 0.5:
                given = args[::-1]
            self.emit(f"scf.yield {', '.join(f'%{g}' for g in given)} : {types}")
        self.emit("}")
        for r in results:
            self.scope[r] = shape
            self.defined.add(r)

    def branch(self) -> None:
        c = self.condition()
        self.emit(f"scf.if {c} {{")
        with self.inside():
            self.body(3)
        sure = self.after
        if self.random.random() < 0.6:
            self.emit("} else {")
            with self.inside():
                self.body(3)
            self.defined |= sure & self.after
        self.emit("}")

    def choose(self) -> None:
        """A branch that gives a tile."""
        first = self.pick()
        if first is None:
            return self.branch()
        shape = self.scope[first]
        r, t = self.name("r"), tile(shape)
        c = self.condition()
        self.emit(f"%{r} = scf.if {c} -> ({t}) {{")
        for n in range(2):
            with self.inside():
                self.body(2)
                self.emit(f"scf.yield %{self.pick(shape)} : {t}")
            self.emit("} else {" if n == 0 else "}")
        self.scope[r] = shape
        self.defined.add(r)

    def until(self) -> None:
        """A `while` loop; half of them carry a tile."""
        tile_in = self.pick() if self.random.random() < 0.5 else None
        i, j, go, nxt = self.name("i"), self.name("i"), self.name("b"), self.name("i")
        a, b, r = self.name("a"), self.name("a"), self.name("r")
        shape = self.scope[tile_in] if tile_in else (0, 0)
        t = f", {tile(shape)}" if tile_in else ""
        more = f", %{a} = %{tile_in}" if tile_in else ""
        names = f"%{r}i, %{r}" if tile_in else f"%{r}i"
        self.emit(f"{names} = scf.while (%{i} = %c0{more}) : (index{t}) -> (index{t}) {{")
        with self.inside():
            self.turn = f"%{i}"
            passed = ""
            if tile_in:
                self.scope[a] = shape
                self.defined.add(a)
            self.body(2)
            if tile_in:
                passed = f", %{self.pick(shape)}"
            self.emit(f"%{go} = arith.cmpi ult, %{i}, {self.bound()} : index")
            self.emit(f"scf.condition(%{go}) %{i}{passed} : index{t}")
        sure = self.after
        self.emit("} do {")
        block = f"^bb0(%{j}: index{f', %{b}: {tile(shape)}' if tile_in else ''}):"
        self.emit(block)
        with self.inside():
            self.turn = f"%{j}"
            self.defined |= sure
            if tile_in:
                self.scope[b] = shape
                self.defined.add(b)
            self.body(3)
            self.emit(f"%{nxt} = arith.addi %{j}, %c1 : index")
            passed = f", %{self.pick(shape)}" if tile_in else ""
            self.emit(f"scf.yield %{nxt}{passed} : index{t}")
        self.emit("}")
        self.defined |= sure
        if tile_in:
            self.scope[r] = shape
            self.defined.add(r)

    def switch(self) -> None:
        self.emit(f"scf.index_switch {self.random.choice(['%n', '%p', self.turn])}")
        sure: set[str] | None = None
        cases = [0, 2]
        for case in [*cases, None]:
            self.emit("default {" if case is None else f"case {case} {{")
            with self.inside():
                self.body(2)
                self.emit("scf.yield")
            self.emit("}")
            sure = self.after if sure is None else sure & self.after
        self.defined |= sure or set()

    def blocks(self) -> None:
        """A region with branches between its blocks."""
        c = self.condition()
        n = self.name("bb")
        self.emit("scf.execute_region {")
        with self.inside():
            self.emit(f"cf.cond_br {c}, ^{n}a, ^{n}b")
            self.emit(f"^{n}a:")
            with self.inside():
                self.body(2)
            sure = self.after
            self.emit(f"cf.br ^{n}c")
            self.emit(f"^{n}b:")
            with self.inside():
                self.body(2)
            self.emit(f"cf.br ^{n}c")
            self.emit(f"^{n}c:")
            self.defined |= sure & self.after
            self.body(2)
            self.emit("scf.yield")
        self.emit("}")
        self.defined |= self.after

    def section(self) -> None:
        if any("pto.section" in line for line in self.lines) or self.depth:
            return
        self.emit("pto.section.vector {")
        with self.inside():
            self.body(3)
        self.emit("}")
        self.defined |= self.after

    def call(self) -> None:
        name, shape, returns = self.random.choice(self.helpers)
        tile_in = self.pick(shape)
        if tile_in is None or name == "":
            return self.load()
        args = f"%{tile_in}, %x, %y, %n, %p"
        types = f"{tile(shape)}, {IN}, {OUT}, index, index"
        if returns:
            r = self.name("r")
            self.emit(f"%{r} = func.call @{name}({args}) : ({types}) -> {tile(shape)}")
            self.scope[r] = shape
            self.defined.add(r)
        else:
            self.emit(f"func.call @{name}({args}) : ({types}) -> ()")


def constants() -> list[str]:
    numbers = sorted(
        {*range(9), *(n * WINDOW for n in range(IN_WINDOWS)), *(d for p in SHAPES for s in p for d in s)}
    )
    return [*[f"%c{n} = arith.constant {n} : index" for n in numbers], "%one = arith.constant 2.0 : f32"]
