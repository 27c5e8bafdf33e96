"""Every communication instruction as a program of ranks, and its results in NumPy.

A case is one instruction on one element type, a number of ranks, a root, and a shape that staging tiles do not
divide. All programs are of one form: signals that every rank is ready, the instruction, signals that it is
done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pto
from pto.engine.memory import array_of
from pto.engine.ranks import World
from pto.isa.dtypes import DTYPES

#: Rows and columns of a staging tile.
TILE = (4, 64)
#: Whole tiles, less than one, tails below and beside.
SHAPES = ((4, 64), (1, 5), (9, 64), (7, 130))
COUNTS = range(1, 9)
COPIES = ("tput", "tput add", "tget", "tput_async", "tget_async")
COLLECTIVES = ("tbroadcast", "treduce Sum", "treduce Max", "treduce Min", "comm.tgather", "comm.tscatter")
SIGNALS = tuple(f"{how} {cmp}" for how in ("twait", "ttest") for cmp in ("eq", "ne", "gt", "ge", "lt", "le"))
INSTRUCTIONS = (*COPIES, *COLLECTIVES, *SIGNALS)
#: Element types of windows: what NumPy has arithmetic for.
TYPES = ("f32", "f16", "bf16", "i32", "i16", "i8", "u32", "u16", "u8", "i64", "u64")
ADDED = ("f32", "f16", "bf16", "i32", "i16", "i8")


def types_of(instruction: str) -> tuple[str, ...]:
    if instruction in SIGNALS:
        return ("i32",)
    return ADDED if instruction == "tput add" else TYPES


@dataclass(frozen=True)
class Case:
    instruction: str
    dtype: str
    ranks: int
    root: int
    shape: tuple[int, int]

    @property
    def text(self) -> str:
        """The program: windows of data and of two signals, the context, an array of the rank's own."""
        rows, cols = self.shape
        view = f"!pto.tensor_view<{rows}x{cols}x{self.dtype}>"
        lines = [_HEAD.format(dtype=self.dtype, rows=rows, cols=cols, all=rows * self.ranks, n=self.ranks,
                              root=self.root, high=TILE[0], wide=TILE[1])]  # fmt: skip
        for rank in range(self.ranks):
            lines.append(_PEER.format(r=rank, slot=4 + rank, view=view, dtype=self.dtype,
                                      bytes=DTYPES[self.dtype].bits // 8))  # fmt: skip
        lines.append(_round("ready", self.ranks))
        lines.append("\n".join(self._body(view)))
        lines.append("pto.barrier #pto.pipe<PIPE_ALL>")
        lines.append(_round("done", self.ranks))
        return "\n".join([*lines, "return\n}\n}"])

    @property
    def _tile(self) -> str:
        return f"!pto.tile_buf<vec, {TILE[0]}x{TILE[1]}x{self.dtype}, valid=?x?>"

    def _body(self, view: str) -> Iterator[str]:
        name, _, how = self.instruction.partition(" ")
        to = self.root if how == "add" else None
        if name in ("tput", "tget"):
            ends = "%there, %own" if name == "tput" else "%own, %there"
            attr = " {atomicType = #pto<atomic_type atomic_add>}" if how == "add" else ""
            yield from self._peer(view, to)
            yield f"pto.{name}({ends}, buf(%t) : {view}, {view}, {self._tile}){attr}"
        elif name in ("tput_async", "tget_async"):
            flat = f"!pto.tensor_view<{self.shape[0] * self.shape[1]}x{self.dtype}>"
            ends = "%far, %flat" if name == "tput_async" else "%flat, %far"
            yield from self._peer(view, None)
            for made, of in (("flat", "y"), ("far", "next")):
                yield f"%{made} = pto.make_tensor_view %{of}, shape = [%elements], strides = [%c1] : {flat}"
            yield "%scratch = pto.alloc_tile : !pto.tile_buf<vec, 1x256xi8>"
            yield "%session = pto.build_async_session(%scratch, %ws : !pto.tile_buf<vec, 1x256xi8>, !pto.ptr<i8>) -> !pto.async_session"
            yield f"%e = pto.{name}({ends}, %session : {flat}, {flat}, !pto.async_session) -> !pto.async_event"
            yield "%ok = pto.wait_async_event(%e, %session : !pto.async_event, !pto.async_session) -> i1"
        elif name in ("twait", "ttest"):
            yield from self._signals(name, how)
        else:
            yield from self._collective(name, how, view)

    def _peer(self, view: str, to: int | None) -> Iterator[str]:
        """The window of the next rank, or of one."""
        if to is not None:
            yield f"%next = pto.addptr %win, %far{to} : !pto.ptr<{self.dtype}> -> !pto.ptr<{self.dtype}>"
        else:
            yield _NEXT.format(dtype=self.dtype, bytes=DTYPES[self.dtype].bits // 8)
        for made, of in (("there", "next"), ("own", "y")):
            yield f"%{made} = pto.make_tensor_view %{of}, shape = [%rows, %cols], strides = [%cols, %c1] : {view}"
        yield f"%t = pto.alloc_tile valid_row = %high valid_col = %wide : {self._tile}"

    def _signals(self, name: str, cmp: str) -> Iterator[str]:
        """A value that holds is in the first word of the window of every rank; of `ttest` the answer is kept."""
        word = "!pto.tensor_view<1x1xi32>"
        yield _NEXT.format(dtype="i32", bytes=4)
        yield f"%s = pto.make_tensor_view %next, shape = [%c1, %c1], strides = [%c1, %c1] : {word}"
        yield f"%m = pto.make_tensor_view %win, shape = [%c1, %c1], strides = [%c1, %c1] : {word}"
        yield f"%v = arith.constant {HELD} : i32"
        yield f"pto.tnotify(%s, %v : {word}, i32) {{notifyOp = #pto<notify_op Set>}}"
        yield _round("sent", self.ranks)
        yield f"%w = arith.constant {BOUND[cmp]} : i32"
        if name == "twait":
            yield f"pto.twait(%m, %w : {word}, i32) {{cmp = #pto<wait_cmp {cmp}>}}"
            yield "pto.store_scalar %v, %y[%c0] : !pto.ptr<i32>, i32"
        else:
            for n, bound in enumerate((BOUND[cmp], MISSED[cmp])):
                yield f"%w{n} = arith.constant {bound} : i32"
                yield f"%h{n} = pto.ttest(%m, %w{n} : {word}, i32) {{cmp = #pto<wait_cmp {cmp}>}} -> i1"
                yield f"%i{n} = arith.extui %h{n} : i1 to i32"
                yield f"pto.store_scalar %i{n}, %y[%c{n}] : !pto.ptr<i32>, i32"

    def _collective(self, name: str, op: str, view: str) -> Iterator[str]:
        whole = f"!pto.tensor_view<{self.shape[0] * self.ranks}x{self.shape[1]}x{self.dtype}>"
        stacked = name in ("comm.tgather", "comm.tscatter")
        local = whole if stacked else view
        yield "scf.if %is_root {"
        extent = "%all" if stacked else "%rows"
        yield f"%local = pto.make_tensor_view %y, shape = [{extent}, %cols], strides = [%cols, %c1] : {local}"
        yield f"%t = pto.alloc_tile valid_row = %high valid_col = %wide : {self._tile}"
        yield f"%u = pto.alloc_tile valid_row = %high valid_col = %wide : {self._tile}"
        members = ", ".join(f"%m{rank}" for rank in range(self.ranks))
        acc, of_acc, also = (
            ("%t, ", f"{self._tile}, ", f", reduceOp = #pto<reduce_op {op}>") if op else ("",) * 3
        )
        types = ", ".join([view] * self.ranks)
        yield f"pto.{name}(%local, {acc}recv(%u), group({members}) : {local}, {of_acc}{self._tile}, {types}) {{root = {self.root}{also}}}"
        yield "}"

    def data(self) -> tuple[Any, Any]:
        """Windows and arrays of all ranks before the launch, by rank."""
        rng = np.random.default_rng([self.ranks, self.root, *self.shape, *self.instruction.encode()])
        stacked = self.instruction in ("comm.tgather", "comm.tscatter")
        size = (self.ranks, self.ranks if stacked else 1, *self.shape)
        low = 0 if self.dtype.startswith("u") else -9
        exact = self.instruction == "tput add"  # who comes first is not said
        kind = array_of(self.dtype)

        def some(shape: tuple[int, ...]) -> Any:
            whole = rng.integers(low, 10, shape)
            broken = self.dtype in ("f32", "f16", "bf16") and not exact
            return (whole + rng.integers(0, 256, shape) / 256 if broken else whole).astype(kind)

        return some((self.ranks, *self.shape)), some(size)

    def run(self, kernel: Any, world: World | None = None, **options: Any) -> tuple[Any, Any]:
        """Windows and arrays of all ranks after a launch."""
        before, arrays = self.data()
        world = world or pto.ranks(self.ranks, window_bytes=1 << 16)
        window = world.window(self.shape, self.dtype)
        signals = [world.window(1, "i32") for _ in range(3)]
        for rank in range(self.ranks):
            window[rank][:] = before[rank]
        y = [np.ascontiguousarray(a) for a in arrays]
        scratch = [np.zeros(4096, np.int8) for _ in y]
        given = [[world.context, window, *signals, a, w] for a, w in zip(y, scratch, strict=True)]
        result = world.run(kernel, given, **options)
        assert result.diagnostics == [], (self, [d.message for d in result.diagnostics])
        return np.stack([window[rank] for rank in range(self.ranks)]), np.stack(y)

    def expected(self) -> tuple[Any, Any]:
        """The same, of plain arrays."""
        held, y = self.data()
        name, _, how = self.instruction.partition(" ")
        if name in ("tput", "tput_async") and not how:
            held = np.roll(y[:, 0], 1, 0)
        elif how == "add":
            total = held[self.root].astype(np.float64) + y[:, 0].astype(np.float64).sum(0)
            held[self.root] = total.astype(held.dtype)
        elif name in ("tget", "tget_async"):
            y[:, 0] = np.roll(held, -1, 0)
        elif name in ("twait", "ttest"):
            held[:, 0, 0] = HELD
            answers = (HELD,) if name == "twait" else (1, 0)
            y.reshape(self.ranks, -1)[:, : len(answers)] = answers
        elif name == "tbroadcast":
            held[:] = y[self.root, 0]
        elif name == "comm.tscatter":
            held = y[self.root].copy()
        elif name == "comm.tgather":
            y[self.root] = held
        else:
            total = held[self.root]
            for rank in range(self.ranks):
                if rank != self.root:
                    total = _REDUCE[how](total, held[rank]).astype(held.dtype)
            y[self.root, 0] = total
        return held, y


#: A value of a signal, and for every comparison one with which it holds, and one with which it does not.
HELD = 5
BOUND = {"eq": 5, "ne": 4, "gt": 4, "ge": 5, "lt": 6, "le": 5}
MISSED = {"eq": 4, "ne": 5, "gt": 5, "ge": 6, "lt": 5, "le": 4}
_REDUCE: dict[str, Any] = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum}

_HEAD = """
module attributes {{pto.target_arch = "cpu"}} {{
func.func @k(%ctx: !pto.ptr<i64>, %win: !pto.ptr<{dtype}>, %ready: !pto.ptr<i32>, %done: !pto.ptr<i32>, %sent: !pto.ptr<i32>, %y: !pto.ptr<{dtype}>, %ws: !pto.ptr<i8>) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%rows = arith.constant {rows} : index
%cols = arith.constant {cols} : index
%all = arith.constant {all} : index
%high = arith.constant {high} : index
%wide = arith.constant {wide} : index
%elements = arith.muli %rows, %cols : index
%one = arith.constant 1 : i32
%n = arith.constant {n} : i32
%ranks = arith.constant {n} : index
%root = arith.constant {root} : index
%first = arith.constant 4 : index
%both = pto.load_scalar %ctx[%c2] : !pto.ptr<i64> -> i64
%low = arith.trunci %both : i64 to i32
%rank = arith.index_cast %low : i32 to index
%is_root = arith.cmpi eq, %rank, %root : index
%own_slot = arith.addi %rank, %first : index
%here = pto.load_scalar %ctx[%own_slot] : !pto.ptr<i64> -> i64
"""
_PEER = """
%slot{r} = arith.constant {slot} : index
%at{r} = pto.load_scalar %ctx[%slot{r}] : !pto.ptr<i64> -> i64
%bytes{r} = arith.subi %at{r}, %here : i64
%size{r} = arith.constant {bytes} : i64
%four{r} = arith.constant 4 : i64
%count{r} = arith.divsi %bytes{r}, %size{r} : i64
%words{r} = arith.divsi %bytes{r}, %four{r} : i64
%far{r} = arith.index_cast %count{r} : i64 to index
%farw{r} = arith.index_cast %words{r} : i64 to index
%p{r} = pto.addptr %win, %far{r} : !pto.ptr<{dtype}> -> !pto.ptr<{dtype}>
%m{r} = pto.make_tensor_view %p{r}, shape = [%rows, %cols], strides = [%cols, %c1] : {view}
"""
_NEXT = """
%after = arith.addi %rank, %c1 : index
%to = arith.remui %after, %ranks : index
%to_slot = arith.addi %to, %first : index
%to_at = pto.load_scalar %ctx[%to_slot] : !pto.ptr<i64> -> i64
%to_bytes = arith.subi %to_at, %here : i64
%each = arith.constant {bytes} : i64
%to_count = arith.divsi %to_bytes, %each : i64
%to_far = arith.index_cast %to_count : i64 to index
%next = pto.addptr %win, %to_far : !pto.ptr<{dtype}> -> !pto.ptr<{dtype}>
"""


def _round(signal: str, ranks: int) -> str:
    """Emit signals of every rank to every rank, and a wait for all."""
    word = "!pto.tensor_view<1x1xi32>"
    lines = []
    for rank in range(ranks):
        lines += [
            f"%{signal}_p{rank} = pto.addptr %{signal}, %farw{rank} : !pto.ptr<i32> -> !pto.ptr<i32>",
            f"%{signal}_v{rank} = pto.make_tensor_view %{signal}_p{rank}, shape = [%c1, %c1], strides = [%c1, %c1] : {word}",
            f"pto.tnotify(%{signal}_v{rank}, %one : {word}, i32) {{notifyOp = #pto<notify_op AtomicAdd>}}",
        ]
    lines += [
        f"%{signal}_own = pto.make_tensor_view %{signal}, shape = [%c1, %c1], strides = [%c1, %c1] : {word}",
        f"pto.twait(%{signal}_own, %n : {word}, i32) {{cmp = #pto<wait_cmp ge>}}",
    ]
    return "\n".join(lines)


def cases(every: bool = False) -> Iterator[Case]:
    """All, or so many that each instruction meets each type, and each number of ranks, root and shape is met."""
    turn = 0
    for instruction in INSTRUCTIONS:
        for dtype in types_of(instruction):
            for ranks in COUNTS if every else (COUNTS[turn % 8],):
                roots = sorted({0, ranks // 2, ranks - 1}) if every else (turn // 24 % ranks,)
                for root in roots:
                    for shape in SHAPES if every else (SHAPES[turn % 4],):
                        yield Case(instruction, dtype, ranks, root, shape)
            turn += 3
