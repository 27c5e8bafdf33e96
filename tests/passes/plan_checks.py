"""Planning programs in tests, and an independent check of the result.

`replay` runs a planned program on random paths with names of storages only: it notes the last writer of each
byte, and reports a read of a storage whose content was overwritten. It shares nothing with liveness: values
are bound one by one, as an interpreter does.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

import pto
from pto.ir.clone import clone
from pto.ir.core import Block, Module, Operation, Region, Value, constant_of
from pto.isa.profiles import Profile, profile
from pto.passes import Options, plan_memory
from pto.passes.pipeline import PassContext

from .memory_programs import COLS, IN_WINDOWS, SITES, TURNS, WINDOW

A3 = profile("a3")


def plan(module: Module, target: Profile = A3) -> PassContext:
    """A copy of the program with addresses; `plan` and `diagnostics` are those of memory planning."""
    ctx = PassContext(clone(module), target, Options())
    plan_memory.run(ctx)
    return ctx


def addresses(ctx: PassContext) -> dict[str, int]:
    """Name of tile -> address, from the program itself."""
    found: dict[str, int] = {}
    for op in ctx.module.walk():
        at = (
            op.get("addr")
            if op.name == "pto.alloc_tile"
            else op.operands[0]
            if op.name == "pto.pointer_cast"
            else None
        )
        if at is not None:
            number = constant_of(at)
            assert isinstance(number, int)
            found[op.results[0].name] = number
    return found


def launch(module: Module, n: int, p: int, target: Profile = A3, sanitize: Any = ()) -> tuple[Any, list[Any]]:
    """Return the stores of a program of `memory_programs`, and the findings of the sanitizers."""
    x = np.random.default_rng(5).integers(-9, 10, (IN_WINDOWS * WINDOW, COLS)).astype(np.float32)
    y = np.full((SITES * TURNS * WINDOW, COLS), -77, np.float32)
    run = pto.kernel(module, "k", target=target, engine="reference").run(x, y, n, p, sanitize=sanitize)
    return y, run.diagnostics


class Clobbered(AssertionError):
    """Content was overwritten by another tile before its last use."""


class _Store:
    """Storage of an allocation, at its address."""

    def __init__(self, name: str, low: int, size: int) -> None:
        self.name = name
        self.low, self.high = low, low + size
        self.written = False
        self.lost = ""  # who wrote over its content


class Replay:
    def __init__(self, module: Module, seed: int) -> None:
        self.random = Random(seed)
        self.functions = {str(f.attr("sym_name")): f for f in module.functions}
        self.stores: dict[Operation, _Store] = {}
        self.budget = 4000

    def run(self, name: str = "k") -> None:
        self.function(self.functions[name], [])

    def function(self, function: Operation, args: list[Any]) -> list[Any]:
        blocks = function.regions[0].blocks
        values: dict[Value, Any] = dict(zip(blocks[0].args, args, strict=False))
        return self.region(function.regions[0], values)[1]

    def region(self, region: Region, values: dict[Value, Any]) -> tuple[str, list[Any]]:
        """Run the blocks of a region; return the terminator and its operands."""
        block: Block = region.blocks[0]
        while True:
            for op in block.ops:
                self.budget -= 1
                if op.successors:
                    chosen = self.random.choice(op.successors)
                    given = [values.get(v) for v in chosen.args]
                    values.update(zip(chosen.block.args, given, strict=True))
                    block = chosen.block
                    break
                if op.name in ("scf.yield", "scf.condition", "func.return"):
                    passed = op.operands[1:] if op.name == "scf.condition" else op.operands
                    return op.name, [values.get(v) for v in passed]
                self.operation(op, values)
            else:
                return "", []

    def operation(self, op: Operation, values: dict[Value, Any]) -> None:
        turns = self.random.choice((0, 1, 1, 2, 3)) if self.budget > 0 else 0
        if op.name == "scf.for":
            body = op.regions[0].blocks[0]
            carried = [values.get(v) for v in op.operands[3:]]
            for _ in range(turns):
                values.update(zip(body.args[1:], carried, strict=True))
                carried = self.region(op.regions[0], values)[1]
            values.update(zip(op.results, carried, strict=True))
        elif op.name == "scf.while":
            carried = [values.get(v) for v in op.operands]
            for turn in range(turns + 1):
                values.update(zip(op.regions[0].blocks[0].args, carried, strict=True))
                carried = self.region(op.regions[0], values)[1]
                if turn < turns:
                    values.update(zip(op.regions[1].blocks[0].args, carried, strict=True))
                    carried = self.region(op.regions[1], values)[1]
            values.update(zip(op.results, carried, strict=True))
        elif op.name in ("scf.if", "scf.index_switch", "scf.execute_region"):
            if op.name == "scf.if" and (not op.regions[1].blocks):
                chosen = self.random.choice([op.regions[0], None])
            else:
                chosen = self.random.choice(list(op.regions))
            if chosen is not None:
                values.update(zip(op.results, self.region(chosen, values)[1], strict=False))
        elif op.regions:
            self.region(op.regions[0], values)
        elif op.name == "func.call":
            given = [values.get(v) for v in op.operands]
            results = self.function(self.functions[str(op.attr("callee"))], given)
            values.update(zip(op.results, results, strict=True))
        elif op.name == "pto.alloc_tile":
            self.allocate(op, values)
        elif op.name in ("pto.subview", "pto.treshape", "pto.bitcast"):
            source = values[op.operands[0]]
            values[op.results[0]] = (source[0], source[1] and op.name != "pto.subview")
        elif op.row is not None and op.row.effect == "memory":
            self.touch(op, values)

    def allocate(self, op: Operation, values: dict[Value, Any]) -> None:
        store = self.stores.get(op)
        if store is None:
            low = constant_of(op.get("addr"))
            assert isinstance(low, int)
            store = self.stores[op] = _Store(op.results[0].name, low, op.results[0].type.size)  # type: ignore[attr-defined]
        values[op.results[0]] = (store, True)

    def touch(self, op: Operation, values: dict[Value, Any]) -> None:
        named = [(o, values[v]) for o, v in op.named() if values.get(v) is not None]
        for declared, (store, _) in named:
            if declared.role in ("in", "inout") and store.written and store.lost:
                raise Clobbered(f"%{store.name} is read by {op.name}, but %{store.lost} lies on its bytes")
        for declared, (store, whole) in named:
            if declared.role == "in":
                continue
            for other in self.stores.values():
                if other is not store and other.low < store.high and store.low < other.high and other.written:
                    other.lost = other.lost or store.name
            if whole or not store.written:
                store.lost = ""
            store.written = True


def first_fit(sizes: list[int], spans: list[tuple[int, int]]) -> int:
    """The top that plain first fit needs: each tile, in the order given, at the lowest place that is free."""
    placed: list[tuple[int, int, tuple[int, int]]] = []
    for size, (first, last) in zip(sizes, spans, strict=True):
        busy = sorted((a, b) for a, b, (f, g) in placed if f <= last and first <= g)
        at = 0
        for a, b in busy:
            if at + size <= a:
                break
            at = max(at, b)
        placed.append((at, at + size, (first, last)))
    return max((b for _, b, _ in placed), default=0)


# -- short programs ----------------------------------------------------------------------------------------

TILE, WIN = "!pto.tile_buf<vec, 8x64xf32>", "!pto.partition_tensor_view<8x64xf32>"
BYTES = 8 * 64 * 4


def program(body: str, more: str = "", args: str = "") -> Module:
    """A function `@k` of tiles of 2048 bytes: `alloc a b`, `load a`, `store a`, `add a b c` (c = a + b),
    `mov a b` (b = a), anything else as it is written; TILE stands for the type."""
    lines: list[str] = []
    for line in body.strip().splitlines():
        word, *names = line.split() or [""]
        if word == "alloc":
            lines += [f"%{n} = pto.alloc_tile : {TILE}" for n in names]
        elif word == "load":
            lines.append(f"pto.tload ins(%in : {WIN}) outs(%{names[0]} : {TILE})")
        elif word == "store":
            lines.append(f"pto.tstore ins(%{names[0]} : {TILE}) outs(%out : {WIN})")
        elif word == "add":
            a, b, c = names
            lines.append(f"pto.tadd ins(%{a}, %{b} : {TILE}, {TILE}) outs(%{c} : {TILE})")
        elif word == "mov":
            lines.append(f"pto.tmov ins(%{names[0]} : {TILE}) outs(%{names[1]} : {TILE})")
        else:
            lines.append(line.replace("TILE", TILE))
    head = f"func.func @k(%in: {WIN}, %out: {WIN}, %n: index, %yes: i1{args}) {{"
    numbers = [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 8, 64)]
    return pto.parse(
        "\n".join(["module {", more.replace("TILE", TILE), head, *numbers, *lines, "return", "}", "}"])
    )
