"""DMA copies against nested loops over bytes: strides, loop clauses, loop registers, padding, empty counts."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.engine.memory import MemoryFault, Pointer
from pto.engine.reference.core import Core
from pto.engine.reference.grid import Cluster
from pto.engine.reference.instr import IllegalInstruction, Instr
from pto.engine.reference.registry import find
from pto.ir.types import PtrType, ScalarType
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.isa.profiles import profile
from pto.witness.plan import Plan

from .programs import codes, program, run
from .rows import Array, Case, Doubles, every_plan, random_codes

ROWS = (
    "mte_gm_ub", "mte_ub_gm", "mte_ub_ub", "mte_ub_l1", "copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_ubuf_to_ubuf",
    "copy_ubuf_to_cbuf",
    "set_loop_size_outtoub", "set_loop1_stride_outtoub", "set_loop2_stride_outtoub", "set_loop_size_ubtoout",
    "set_loop1_stride_ubtoout", "set_loop2_stride_ubtoout",
)  # fmt: skip

#: Names of the two pointers of each copy.
SIDES = {
    "mte_gm_ub": ("gm_src", "ub_dst"), "mte_ub_gm": ("ub_src", "gm_dst"), "mte_ub_ub": ("ub_src", "ub_dst"),
    "mte_ub_l1": ("ub_src", "l1_dst"), "copy_gm_to_ubuf": ("gm_src", "ub_dst"),
    "copy_ubuf_to_gm": ("ub_src", "gm_dst"), "copy_ubuf_to_ubuf": ("source", "dest"),
    "copy_ubuf_to_cbuf": ("source", "dest"),
}  # fmt: skip
BYTES = {name: pair for name, pair in SIDES.items() if "gm" in "".join(pair)}
BLOCKS = {name: pair for name, pair in SIDES.items() if name not in BYTES}
SIZE = 1 << 14
Loop = tuple[int, int, int]


@cache
def plans_of(name: str) -> list[Plan]:
    return list(every_plan(name, layouts=False))


class Bench:
    """A copy with both pointers into memory full of random bytes."""

    def __init__(self, plan: Plan, source_at: int = 64, target_at: int = 8192) -> None:
        self.case = case = Case(plan)
        self.name = plan.row.name
        self.dtype = ""
        for name, at in zip(SIDES[self.name], (source_at, target_at), strict=True):
            type = plan.operands[name][0]
            assert isinstance(type, PtrType)
            self.dtype = str(type.dtype)
            if type.space == "gm":
                buffer = case.core.gm.add(name, np.zeros(SIZE, np.uint8))
            else:
                buffer = case.core.buffers["mat" if type.space == "l1" else "vec"]
            buffer.data[:SIZE] = case.rng.integers(0, 256, SIZE, np.uint8)
            case.args[name] = Pointer(buffer, at, self.dtype, name)
        self.source, self.target = (case.args[n] for n in SIDES[self.name])

    def registers(self, way: str, outer: Loop, inner: Loop) -> None:
        r = self.case.core.registers
        r[f"loop_size_{way}"] = inner[0], outer[0]
        r[f"loop1_stride_{way}"], r[f"loop2_stride_{way}"] = inner[1:], outer[1:]

    def run(self, **args: Any) -> None:
        self.case.args.update({k: v for k, v in args.items() if v is not None})
        for name in [k for k, v in args.items() if v is None]:
            self.case.args.pop(name, None)
        i = Instr(self.case.op, self.case.args, self.case.core, "MTE2")
        execute = find(self.case.row)
        assert execute is not None
        execute(i)

    def expect(
        self, length: int, loops: list[Loop], pad: bytes = b"", left: int = 0, right: int = 0
    ) -> tuple[Array, Array]:
        """Return the expected content of both memories after the copy; loops are outermost first."""
        source, target = bytearray(self.source.buffer.data), bytearray(self.target.buffer.data)
        same = self.source.buffer is self.target.buffer
        for index in product(*(range(loop[0]) for loop in loops)):
            s = self.source.offset + sum(n * loop[1] for n, loop in zip(index, loops, strict=True))
            d = self.target.offset + sum(n * loop[2] for n, loop in zip(index, loops, strict=True))
            for k in range(length):
                target[d + left + k] = source[s + k]
            if pad:
                end = max(loops[-1][2], left + length + right)
                for k in [*range(left), *range(left + length, end)]:
                    target[d + k] = pad[k % len(pad)]
        whole = np.frombuffer(bytes(target), np.uint8)
        return whole if same else np.frombuffer(bytes(source), np.uint8), whole

    def check(self, expected: tuple[Array, Array]) -> None:
        assert np.array_equal(self.source.buffer.data, expected[0]), f"{self.name} changed its source"
        wrong = np.flatnonzero(self.target.buffer.data != expected[1])
        assert not wrong.size, (
            f"{self.name} {self.dtype}: byte {wrong[0] - self.target.offset} of the destination"
        )


def pad_scalar(dtype: str, at: int) -> tuple[Any, bytes]:
    """A value of a type and the bytes that stand for it."""
    d = DTYPES[dtype]
    values = [1.5, -2.0, float("nan"), 0.0, float("inf")] if d.is_float else [-1, 3, 0, 1 << (d.bits - 2)]
    value = values[at % len(values)]
    code = encoding.encode(d, value) if d.is_float else int(value) % (1 << d.bits)
    if d.bits == 4:
        code |= code << 4
    return value, code.to_bytes(max(8, d.bits) // 8, "little")


#: Length of a burst, then the loops with GM and UB strides, outermost first.
GEOMETRY: list[tuple[int, list[Loop]]] = [
    (64, [(1, 0, 0)]),  # one burst
    (64, [(5, 64, 64)]),  # dense
    (24, [(3, 100, 32)]),  # rows out of a wider matrix
    (7, [(4, 13, 32)]),  # lengths and strides that no element divides
    (1, [(9, 3, 64)]),
    (16, [(2, 512, 256), (3, 48, 64)]),  # one loop
    (16, [(2, 1000, 640), (3, 300, 192), (2, 17, 32)]),  # two
    (16, [(2, 2000, 1280), (2, 1000, 640), (3, 300, 192), (2, 17, 32)]),  # three
    (32, [(3, 0, 64), (2, 32, 192)]),  # the same bytes again and again
    (0, [(3, 64, 64)]),  # empty bursts
    (64, [(0, 64, 64)]),  # no bursts
    (64, [(0, 64, 64), (2, 64, 64)]),  # an empty loop
    (64, [(2, 64, 64), (0, 1, 1), (2, 64, 64)]),
]


def arguments(name: str, length: int, loops: list[Loop]) -> dict[str, Any]:
    """Operands of a copy that takes bytes: the innermost loop is the burst, the others are clauses."""
    count, s, t = loops[-1]
    flat = [n for loop in reversed(loops[:-1]) for n in loop]
    made: dict[str, Any] = {"len_burst": length, "n_burst": count, "src_stride": s, "dst_stride": t}
    return {**made, "loop": flat} if name.startswith("mte") else made


def swapped(loops: list[Loop]) -> list[Loop]:
    """For copies out of UB: the wide strides are those of the destination."""
    return [(n, t, s) for n, s, t in loops]


@pytest.mark.parametrize("name", ["mte_gm_ub", "mte_ub_gm"])
def test_clauses(name: str) -> None:
    for n, plan in enumerate(plans_of(name)):
        for length, nest in GEOMETRY if n < 4 else GEOMETRY[n % 3 :: 3]:
            loops = nest if name == "mte_gm_ub" else swapped(nest)
            bench = Bench(plan)
            expected = bench.expect(length, loops)
            bench.run(**arguments(name, length, loops), pad_value=None, left_padding=None, right_padding=None)
            bench.check(expected)


@pytest.mark.parametrize("name", ["copy_gm_to_ubuf", "copy_ubuf_to_gm"])
def test_registers(name: str) -> None:
    way = "outtoub" if name == "copy_gm_to_ubuf" else "ubtoout"
    other = "ubtoout" if way == "outtoub" else "outtoub"
    for n, plan in enumerate(plans_of(name)):
        for length, nest in GEOMETRY if n < 4 else GEOMETRY[n % 3 :: 3]:
            loops = ([(1, 0, 0)] * 3 + nest)[-3:]
            loops = loops if way == "outtoub" else swapped(loops)
            bench = Bench(plan)
            bench.registers(way, loops[0], loops[1])
            bench.registers(other, (7, 1, 1), (5, 1, 1))  # those of the other direction do not matter
            expected = bench.expect(length, loops)
            bench.run(**arguments(name, length, loops), data_select_bit=0)
            bench.check(expected)


@pytest.mark.parametrize("name", ["copy_gm_to_ubuf", "copy_ubuf_to_gm"])
def test_registers_never_set_are_one_plain_copy(name: str) -> None:
    bench = Bench(plans_of(name)[0])
    expected = bench.expect(48, [(3, 64, 96)])
    bench.run(**arguments(name, 48, [(3, 64, 96)]), data_select_bit=0)
    bench.check(expected)


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_and_gaps(name: str) -> None:
    """Lengths and gaps in units of 32 bytes, a gap from the end of a burst to the start of the next."""
    old = name.startswith("copy")
    for plan in plans_of(name):
        for length, count, s, t in [
            (1, 1, 0, 0),
            (2, 3, 0, 0),
            (2, 3, 1, 4),
            (3, 4, 5, 0),
            (0, 3, 1, 1),
            (4, 0, 1, 1),
        ]:
            bench = Bench(plan)
            expected = bench.expect(32 * length, [(count, 32 * (length + s), 32 * (length + t))])
            gaps = {"src_stride": s, "dst_stride": t} if old else {"src_gap": s, "dst_gap": t}
            bench.run(len_burst=length, n_burst=count, **gaps)
            bench.check(expected)


PADDED = [(64, [(1, 64, 96)]), (24, [(3, 100, 64)]), (0, [(2, 8, 64)]), (32, [(3, 32, 32)]),
          (16, [(2, 500, 512), (3, 48, 64)]), (64, [(0, 64, 128)])]  # fmt: skip


def test_padding() -> None:
    """Rows are filled to the stride of the destination; bytes between rows of an outer loop stay."""
    for n, plan in enumerate(plans_of("mte_gm_ub")):
        for length, loops in PADDED:
            bench = Bench(plan)
            value, pad = pad_scalar(bench.dtype, n + length)
            left = right = 0
            counts: dict[str, Any] = {"left_padding": None, "right_padding": None}
            if "left_padding" in plan.operands:
                counts = {"left_padding": 2 * (n % 3), "right_padding": 4}
                left, right = (v * DTYPES[bench.dtype].bits // 8 for v in counts.values())
            expected = bench.expect(length, loops, pad, left, right)
            bench.run(**arguments("mte_gm_ub", length, loops), pad_value=value, **counts)
            bench.check(expected)


def test_odd_rows_are_padded_in_step_with_their_start() -> None:
    """A burst that ends inside an element: the rest of the row continues the elements of the row."""
    plan = next(p for p in plans_of("mte_gm_ub") if p.isa == "cpu" and "left_padding" not in p.operands)
    bench = Bench(plan)
    pad = encoding.encode(DTYPES["f32"], 1.1).to_bytes(4, "little")
    expected = bench.expect(5, [(3, 7, 18)], pad)
    bench.run(**arguments("mte_gm_ub", 5, [(3, 7, 18)]), pad_value=1.1)
    bench.check(expected)


def test_a_later_row_stays_where_rows_overlap() -> None:
    """Iteration by iteration: padding written later covers data written earlier."""
    plan = next(p for p in plans_of("mte_gm_ub") if "left_padding" not in p.operands)
    bench = Bench(plan)
    loops = [(2, 256, 32), (2, 64, 64)]
    expected = bench.expect(32, loops, b"\0\0\x80\x3f")
    bench.run(**arguments("mte_gm_ub", 32, loops), pad_value=1.0)
    bench.check(expected)


@pytest.mark.parametrize("name", ["mte_gm_ub", "mte_ub_gm"])
def test_the_last_clause_is_the_outermost(name: str) -> None:
    """With overlapping bursts, the order of the loops shows."""
    bench = Bench(plans_of(name)[0])
    loops = [(3, 100, 16), (2, 500, 32), (1, 0, 0)]
    expected = bench.expect(32, loops)
    bench.run(**arguments(name, 32, loops), pad_value=None)
    bench.check(expected)
    turned = Bench(plans_of(name)[0]).expect(32, [loops[1], loops[0], loops[2]])
    assert not np.array_equal(expected[1], turned[1])


def test_rows_of_nothing_but_padding_in_a_shadow_run() -> None:
    plan = next(p for p in plans_of("mte_gm_ub") if "left_padding" not in p.operands)
    bench = Bench(plan)
    bench.case.core.port = Doubles()
    expected = bench.expect(0, [(2, 32, 64)], b"\0\0\x80\x3f")
    bench.run(**arguments("mte_gm_ub", 0, [(2, 32, 64)]), pad_value=1.0)
    bench.check(expected)


def test_the_pad_value_keeps_its_own_bits() -> None:
    """A pad scalar has the width of the elements; its bits are written, whatever its type."""
    plan = next(p for p in plans_of("mte_gm_ub") if p.isa == "cpu" and "left_padding" not in p.operands)
    changed = plan.replace(operands={**plan.operands, "pad_value": (ScalarType("i32"),)})
    bench = Bench(changed)
    expected = bench.expect(8, [(2, 32, 64)], (5).to_bytes(4, "little"))
    bench.run(**arguments("mte_gm_ub", 8, [(2, 32, 64)]), pad_value=5)
    bench.check(expected)


@pytest.mark.parametrize("select", [0, 1])
def test_padding_under_registers(select: int) -> None:
    for plan in plans_of("copy_gm_to_ubuf"):
        for length, nest in PADDED:
            loops = ([(1, 0, 0)] * 3 + nest)[-3:]
            bench = Bench(plan)
            bench.registers("outtoub", loops[0], loops[1])
            expected = bench.expect(length, loops, b"\0" if select else b"")
            bench.run(**arguments("copy_gm_to_ubuf", length, loops), data_select_bit=select)
            bench.check(expected)


@given(data=st.data())
@examples(150)
def test_any_nest(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(BYTES)))
    plans = plans_of(name)
    plan = plans[data.draw(st.integers(0, len(plans) - 1))]
    length = data.draw(st.integers(0, 40))
    depth = data.draw(st.integers(1, 3))
    into_ub = BYTES[name][1] == "ub_dst"
    stride = st.integers(0, 120)
    loops = [(data.draw(st.integers(0, 4)), data.draw(stride), data.draw(stride)) for _ in range(depth)]
    padded = "pad_value" in plan.operands and data.draw(st.booleans())
    if into_ub:
        loops[-1] = (*loops[-1][:2], data.draw(st.sampled_from([64, 96, 128])))
    elif name == "copy_ubuf_to_gm":
        loops[-1] = (loops[-1][0], data.draw(st.sampled_from([0, 32, 96])), loops[-1][2])
    bench = Bench(plan)
    value, pad = pad_scalar(bench.dtype, length)
    extra: dict[str, Any] = {"pad_value": None, "left_padding": None, "right_padding": None}
    if name.startswith("copy"):
        extra = {"data_select_bit": 0}
        three = ([(1, 0, 0)] * 3 + loops)[-3:]
        bench.registers("outtoub" if into_ub else "ubtoout", three[0], three[1])
    elif padded:
        extra["pad_value"] = value
    expected = bench.expect(length, loops, pad if padded and name == "mte_gm_ub" else b"")
    bench.run(**arguments(name, length, loops), **extra)
    bench.check(expected)


@pytest.mark.parametrize("name", SIDES)
def test_in_a_shadow_run_elements_keep_their_values(name: str) -> None:
    """Whole elements move as numbers, so what lies beside them moves along; cut ones move as bytes."""
    for plan in plans_of(name):
        bench = Bench(plan)
        bits = DTYPES[bench.dtype].bits
        count = SIZE * 8 // bits
        made = random_codes(bench.case.rng, bench.dtype, (1, count))
        start = Pointer(bench.source.buffer, 0, bench.dtype).region(1, count)
        start.store(bench.source.buffer.data, made)
        bench.case.core.port = Doubles()
        length = 2 if name in BLOCKS else 16
        args = arguments(name, length, [(3, 64, 64)])
        if name in BLOCKS and name.startswith("mte"):
            args = {"len_burst": length, "n_burst": 3, "src_gap": 0, "dst_gap": 0}
        if name in BLOCKS and name.startswith("copy"):
            args |= {"src_stride": 0, "dst_stride": 0}
        pad = encoding.encode(DTYPES[bench.dtype], 1.0) if DTYPES[bench.dtype].is_float else 1
        pads: dict[str, Any] = {}
        expected = bench.expect(64 if name in BLOCKS else 16, [(3, 64, 64)])
        if name == "mte_gm_ub":
            pads = {
                "pad_value": 1.0 if DTYPES[bench.dtype].is_float else 1,
                "left_padding": None,
                "right_padding": None,
            }
            code = pad | pad << 4 if bits == 4 else pad
            expected = bench.expect(16, [(3, 64, 64)], code.to_bytes(max(8, bits) // 8, "little"))
        bench.run(**args, **pads, data_select_bit=0)
        bench.check(expected)


# --- refusals of a run ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BYTES)
@pytest.mark.parametrize(("field", "value"), [
    ("len_burst", 1 << 21), ("len_burst", -1), ("n_burst", 1 << 21), ("n_burst", -1), ("src_stride", -32),
    ("dst_stride", -32), ("src_stride", 1 << 40), ("dst_stride", 1 << 40),
])  # fmt: skip
def test_fields_are_unsigned_and_have_a_width(name: str, field: str, value: int) -> None:
    bench = Bench(plans_of(name)[0])
    before = bench.expect(0, [(0, 0, 0)])
    with pytest.raises(IllegalInstruction, match=field):
        bench.run(**{**arguments(name, 32, [(1, 32, 32)]), field: value})
    bench.check(before)


@pytest.mark.parametrize("name", BYTES)
def test_bursts_are_shorter_on_a2a3(name: str) -> None:
    """Headers of a5 pack lengths and counts into 21 bits."""
    first = {p.isa: p for p in reversed(plans_of(name))}
    for isa, plan in first.items():
        args = {**arguments(name, 32, [(1, 1 << 17, 1 << 17)]), "n_burst": 0, "len_burst": 1 << 16}
        if isa != "a2a3":
            Bench(plan).run(**args)
            continue
        with pytest.raises(IllegalInstruction, match="expects len_burst to fit 16 bits"):
            Bench(plan).run(**args)


@pytest.mark.parametrize(
    "clause", [(-1, 0, 0), (1 << 21, 0, 0), (1, 1 << 40, 0), (1, 0, 1 << 40), (1, -1, 0)]
)
def test_fields_of_loop_clauses(clause: Loop) -> None:
    for name in ("mte_gm_ub", "mte_ub_gm"):
        bench = Bench(plans_of(name)[0])
        with pytest.raises(IllegalInstruction, match="loop"):
            bench.run(**arguments(name, 32, [clause, (1, 32, 32)]))


@pytest.mark.parametrize("name", BLOCKS)
def test_fields_of_gaps(name: str) -> None:
    s, t = ("src_stride", "dst_stride") if name.startswith("copy") else ("src_gap", "dst_gap")
    for field in ("len_burst", "n_burst", s, t):
        for value in (-1, 1 << 16):
            bench = Bench(plans_of(name)[0])
            with pytest.raises(IllegalInstruction, match=field):
                bench.run(**{"len_burst": 1, "n_burst": 1, s: 0, t: 0, field: value})


@pytest.mark.parametrize("name", SIDES)
def test_on_chip_addresses_are_aligned_on_hardware(name: str) -> None:
    plain = {"len_burst": 1, "n_burst": 1, "src_stride": 32, "dst_stride": 32, "src_gap": 0, "dst_gap": 0}
    for plan in plans_of(name):
        bench = Bench(plan, 64 + 8, 8192 + 8)
        if plan.isa == "cpu":
            bench.run(**plain)
        else:
            with pytest.raises(IllegalInstruction, match="multiple of 32 bytes, got"):
                bench.run(**plain)


def test_rows_of_the_destination_do_not_overlap() -> None:
    for name in ("mte_gm_ub", "copy_gm_to_ubuf"):
        bench = Bench(plans_of(name)[0])
        with pytest.raises(IllegalInstruction, match="at least len_burst, got 32 < 64"):
            bench.run(**arguments(name, 64, [(2, 64, 32)]), data_select_bit=0)


@pytest.mark.parametrize(
    ("name", "strides"), [("copy_gm_to_ubuf", (7, 40)), ("copy_ubuf_to_gm", (40, 7))]
)  # fmt: skip
def test_rows_under_registers_are_aligned_on_hardware(name: str, strides: tuple[int, int]) -> None:
    """Rows in UB start at blocks of 32 bytes; a single one has no stride."""
    for plan in plans_of(name):
        extra = {"data_select_bit": 0} if name == "copy_gm_to_ubuf" else {}
        Bench(plan).run(**arguments(name, 8, [(1, *strides)]), **extra)
        if plan.isa == "cpu":
            Bench(plan).run(**arguments(name, 8, [(2, *strides)]), **extra)
        else:
            with pytest.raises(IllegalInstruction, match="stride to be a multiple of 32 bytes, got 40"):
                Bench(plan).run(**arguments(name, 8, [(2, *strides)]), **extra)


def test_the_reserved_field_is_zero() -> None:
    bench = Bench(plans_of("copy_ubuf_to_gm")[0])
    with pytest.raises(IllegalInstruction, match="expects reserved to be 0, got 1"):
        bench.run(**{**arguments("copy_ubuf_to_gm", 8, [(1, 0, 0)]), "reserved": 1})


def test_padded_rows_are_aligned_on_hardware() -> None:
    for plan in plans_of("mte_gm_ub"):
        bench = Bench(plan)
        args = {
            **arguments("mte_gm_ub", 16, [(2, 64, 40)]),
            "pad_value": 1,
            "left_padding": 0,
            "right_padding": 0,
        }
        if plan.isa == "cpu":
            bench.run(**args)
        else:
            with pytest.raises(IllegalInstruction, match="multiple of 32 bytes, got 40"):
                bench.run(**args)


def test_padding_counts() -> None:
    four = next(p for p in plans_of("mte_gm_ub") if "f4e2m1" in str(p.operands["ub_dst"][0]).lower())
    for plan, count, text in [(four, 3, "whole bytes"), (four, 256, "8 bits"), (four, -1, "8 bits")]:
        with pytest.raises(IllegalInstruction, match=text):
            Bench(plan).run(
                **arguments("mte_gm_ub", 16, [(1, 64, 64)]),
                pad_value=1.0,
                left_padding=count,
                right_padding=0,
            )


@pytest.mark.parametrize("name", BYTES)
def test_outside_of_memory(name: str) -> None:
    size = min(SIZE, profile("cpu").capacity["vec"])
    for source, target, loops in [
        (1 << 30, 0, [(1, 32, 32)]), (0, 1 << 30, [(1, 32, 32)]), (-32, 0, [(1, 32, 32)]), (0, -32, [(1, 32, 32)]),
        (size - 32, 0, [(1 << 15, 1 << 15, 32)]), (0, 0, [(1 << 15, 32, 1 << 15)]),
        (0, 0, [(1 << 20, 1 << 20, 1 << 20), (1 << 15, 32, 32)]),
    ]:  # fmt: skip
        plan = next(p for p in plans_of(name) if p.isa == "cpu")
        bench = Bench(plan, source, target)
        bench.registers("outtoub" if name == "copy_gm_to_ubuf" else "ubtoout", (1, 0, 0), loops[0])
        with pytest.raises(MemoryFault):
            bench.run(**arguments(name, 32, loops), data_select_bit=0, pad_value=None)
    bench = Bench(plans_of(name)[0], 1 << 30, 1 << 30)
    bench.run(**arguments(name, 0, [(3, 0, 0)]), data_select_bit=0, pad_value=None)  # nothing is touched


def test_repetitions_in_place_take_no_time() -> None:
    """A loop without strides copies the same bytes over and over."""
    once, often = (Bench(next(p for p in plans_of("mte_gm_ub") if p.isa == "a5")) for _ in range(2))
    for bench, count in ((once, 1), (often, (1 << 21) - 1)):
        bench.run(**arguments("mte_gm_ub", 64, [(count, 0, 0), (2, 64, 64)]), pad_value=None)
    target = [bench.target.buffer.data for bench in (once, often)]
    assert target[0].any() and (target[0] == target[1]).all()


@pytest.mark.parametrize("way", ["outtoub", "ubtoout"])
def test_registers_have_widths(way: str) -> None:
    wide, narrow = 1 << 40, 1 << 21
    strides = [(wide, 0), (0, narrow)] if way == "outtoub" else [(narrow, 0), (0, wide)]
    bad = {
        "loop_size": [(narrow, 1), (1, narrow), (-1, 1), (1, -1)],
        "loop1_stride": strides,
        "loop2_stride": strides,
    }
    for what, values in bad.items():
        plan = next(every_plan(f"set_{what}_{way}"))
        for pair in values:
            case = Case(plan)
            case.args = dict(zip(case.args, pair, strict=True))
            with pytest.raises(IllegalInstruction, match="bits without a sign"):
                case.run()
            assert not case.core.registers
        case = Case(plan)
        case.args = dict(zip(case.args, [max(0, max(p) - 1) for p in zip(*values, strict=True)], strict=True))
        case.run()
        assert len(case.core.registers) == 1


def test_vector_cores_write_the_l1_of_their_cube_core() -> None:
    bench = Bench(plans_of("mte_ub_l1")[0])
    core = bench.case.core
    cube = Core(core.profile, core.gm, "cube")
    core.kind = "vector"
    core.cluster = Cluster(0)
    core.cluster.cores = [cube, core]
    own = core.buffers["mat"].data.copy()
    bench.run(len_burst=2, n_burst=2, src_gap=1, dst_gap=0)
    assert np.array_equal(core.buffers["mat"].data, own)
    sent = bench.source.buffer.data[bench.source.offset :][:160].reshape(5, 32)[[0, 1, 3, 4]]
    assert np.array_equal(cube.buffers["mat"].data[8192:][:128], sent.ravel())


# --- whole programs ---------------------------------------------------------------------------------------

POINTERS = """
%at = arith.constant 0 : i64
%ub = pto.castptr %at : i64 -> !pto.ptr<i32, ub>
""" + "\n".join(f"%n{n} = arith.constant {n} : i64" for n in (0, 1, 2, 3, 4, 16, 32, 64, 96, 128))
IN = (
    "pto.copy_gm_to_ubuf %x, %ub, %n0, %n2, %n32, %n0, %n0, %off, %n0, %n64, %n32 : "
    "!pto.ptr<i32>, !pto.ptr<i32, ub>, i64, i64, i64, i64, i64, i1, i64, i64, i64"
)
OUT = (
    "pto.copy_ubuf_to_gm %ub, %y, %n0, %n4, %n64, %n0, %n64, %n64 : "
    "!pto.ptr<i32, ub>, !pto.ptr<i32>, i64, i64, i64, i64, i64, i64"
)
BARRIER = "pto.barrier #pto.pipe<PIPE_ALL>"


def whole(body: str) -> str:
    lines = f"{POINTERS}\n%off = arith.constant false\n{body}"
    return program(lines, "%x: !pto.ptr<i32>, %y: !pto.ptr<i32>", arch="a5")


def setting(what: str, first: int, second: int, way: str = "outtoub") -> str:
    return f"pto.set_{what}_{way} %n{first}, %n{second} : i64, i64"


@pytest.mark.parametrize("schedule", [None, *range(8)])
def test_a_copy_takes_the_registers_of_its_issue(schedule: int | None) -> None:
    """They stay until overwritten, and later settings do not reach a copy."""
    x = np.arange(1, 65, dtype=np.int32)
    y = np.zeros(64, np.int32)
    text = whole(f"""
        {setting("loop_size", 2, 1)}
        {setting("loop1_stride", 32, 128)}
        {IN}
        {setting("loop1_stride", 0, 64)}
        {setting("loop_size", 0, 0)}
        {IN}
        {BARRIER}
        {OUT}
        {BARRIER}""")
    result = run(text, x, y, schedule=schedule)
    assert result.ok, result.diagnostics
    expected = np.zeros(64, np.int32)  # rows of 8: two iterations of two rows
    for k, r in product(range(2), range(2)):
        expected[32 * k + 8 * r :][:8] = x[8 * k + 16 * r :][:8]
    assert np.array_equal(y, expected)


def test_registers_stay_until_overwritten() -> None:
    """Two copies under the same settings; the registers of the other direction are others."""
    x = np.arange(1, 65, dtype=np.int32)
    y = np.zeros(64, np.int32)
    text = whole(f"""
        {setting("loop_size", 1, 2)}
        {setting("loop2_stride", 32, 64)}
        {setting("loop_size", 1, 1, "ubtoout")}
        {IN}
        {BARRIER}
        %to = arith.constant 128 : i64
        %ub2 = pto.castptr %to : i64 -> !pto.ptr<i32, ub>
        {IN.replace("%ub,", "%ub2,")}
        {BARRIER}
        {OUT}
        {BARRIER}""")
    result = run(text, x, y)
    assert result.ok, result.diagnostics
    half = np.concatenate([x[8 * k + 16 * r :][:8] for k, r in product(range(2), range(2))])
    assert np.array_equal(y, np.concatenate([half, half]))


GROUPED = """pto.mte_gm_ub %x, %ub, %n0, %n32 nburst(%n2, %n64, %n64) loop(%n2, %n128, %n128) pad(%p) :
!pto.ptr<i32>, !pto.ptr<i32, ub>, i64, i64, i64, i64, i64, loop i64, i64, i64, pad i32
pto.barrier #pto.pipe<PIPE_ALL>
pto.mte_ub_gm %ub, %y, %n64 nburst(%n4, %n64, %n64) : !pto.ptr<i32, ub>, !pto.ptr<i32>, i64, i64, i64, i64
""".replace(":\n", ": ")


def test_grouped_copies_of_a_program() -> None:
    x = np.arange(1, 65, dtype=np.int32)
    y = np.zeros(64, np.int32)
    text = whole("%p = arith.constant -7 : i32\n" + GROUPED)
    result = run(text, x, y, sanitize="all")
    assert result.ok, result.diagnostics
    expected = x.copy().reshape(4, 16)
    expected[:, 8:] = -7
    assert np.array_equal(y.reshape(4, 16), expected)


def test_bytes_that_no_copy_wrote_are_undefined() -> None:
    text = whole(GROUPED.replace(" pad(%p)", "").replace(", pad i32", ""))
    result = run(text, np.zeros(64, np.int32), np.zeros(64, np.int32), sanitize="undef")
    assert codes(result) == ["PTO-E2203"]


def test_too_small_an_array_is_a_diagnostic() -> None:
    text = whole("%p = arith.constant -7 : i32\n" + GROUPED)
    assert codes(run(text, np.zeros(40, np.int32), np.zeros(64, np.int32))) == ["PTO-E2101"]
    assert codes(run(text, np.zeros(64, np.int32), np.zeros(40, np.int32))) == ["PTO-E2101"]
