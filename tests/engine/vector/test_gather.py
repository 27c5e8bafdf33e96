"""Gather, scatter and block accesses, request by request on plain bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.engine.reference.core import RunError
from pto.witness.plan import Plan

from .cases import VectorCase, plans_of, shown, width
from .test_memory import Writes, assert_written, changed, items, random_memory

ROWS = ("vgather2", "vgatherb", "vgather2_bc", "vscatter", "vsldb", "vsstb")

Array = np.ndarray[Any, Any]


def counted(plan: Plan) -> Plan:
    """The form with a number of requests in place of the mask."""
    made = changed(plan, mask="index")
    assert made is not None
    return made


def signed(plan: Plan) -> Plan | None:
    """The form whose offsets are of a signed type; they are read without a sign all the same."""
    return changed(plan, offsets=str(plan.operands["offsets"][0]).replace("xui", "xi"))


def requested(case: VectorCase, count: int, size: int) -> Array:
    """Turn random requests on; which ones."""
    if hasattr(case.args["mask"], "lanes"):
        image = (case.rng.random(256) < case.rng.choice([0.0, 0.5, 1.0])).astype(np.uint8)
        case.args["mask"].buffer.data[:] = image
        return image[::size][:count] != 0
    first = int(case.rng.integers(0, count + 1))
    case.args["mask"] = first
    return np.arange(count) < first


def forms(name: str) -> list[Plan]:
    plans = list(plans_of(name))
    if name != "vgather2_bc":
        plans += [counted(p) for p in plans_of(name)]
    bytes_of = (
        [
            changed(p, source="!pto.ptr<i8, ub>")
            for p in plans_of(name)
            if "ptr<ui8" in str(p.operands["source"][0])
        ]
        if name == "vgather2"
        else []
    )
    return plans + [made for made in (*map(signed, plans_of(name)), *bytes_of) if made is not None]


@pytest.mark.parametrize("name", ["vgather2", "vgather2_bc"])
def test_gather(name: str) -> None:
    """Offsets of lanes that are off point far outside."""
    for seed, plan in enumerate(forms(name)):
        case = VectorCase(plan, seed)
        data = random_memory(case)
        source, r, offsets = (case.args[n] for n in ("source", "r", "offsets"))
        step, size = width(source.dtype), width(r.dtype)
        source.offset = 4096 + step
        count = min(r.lanes, offsets.lanes)
        on = requested(case, count, size)
        top = 1 << 8 * width(offsets.dtype)
        at = case.rng.integers(0, min(top, 2000), offsets.lanes)
        at[:count][~on] = top - 1
        case.set("offsets", at.astype(np.uint64))
        if on.any() and top == 1 << 16 and step <= 2:  # an offset that a sign would turn
            at[int(np.flatnonzero(on)[0])] = 0xFFF0
            case.set("offsets", at.astype(np.uint64))
        case.execute()
        want = bytearray(256)
        item = items(data, source.offset, step)
        for n in np.flatnonzero(on):
            want[n * size : (n + 1) * size] = item(int(at[n])).ljust(size, b"\0")
        assert r.buffer.data.tobytes() == bytes(want), shown(plan)
        assert case.memory.tobytes() == data


def scattered(case: VectorCase, distinct: bool) -> tuple[bytes, Array, Array]:
    """Fill a scatter: memory before, requests that are on, their offsets."""
    data = random_memory(case)
    case.fill("value")
    dest, offsets = case.args["dest"], case.args["offsets"]
    dest.offset = 4096 + width(dest.dtype)
    on = requested(case, offsets.lanes, max(2, width(dest.dtype)))
    if distinct:
        at = case.rng.permutation(1000)[: offsets.lanes]
        at[~on] = (1 << 8 * width(offsets.dtype)) - 1
    else:
        at = case.rng.integers(0, 40, offsets.lanes)
    case.set("offsets", at.astype(np.uint64))
    return data, on, at


def scatter(case: VectorCase, on: Array, at: Array) -> Writes:
    """The lowest lane wins."""
    size = width(case.args["dest"].dtype)
    lane = items(case.args["value"].buffer.data.tobytes(), 0, size)
    writes: Writes = {}
    for n in reversed(np.flatnonzero(on)):
        first = case.args["dest"].offset + int(at[n]) * size
        writes.update((first + b, v) for b, v in enumerate(lane(int(n) * (2 if size == 1 else 1))))
    return writes


@pytest.mark.parametrize("distinct", [True, False])
def test_scatter(distinct: bool) -> None:
    """Equal offsets: legal on a5, where the lowest lane wins, an error elsewhere."""
    repeated = 0
    for seed, plan in enumerate(forms("vscatter")):
        case = VectorCase(plan, seed)
        before, on, at = scattered(case, distinct)
        if plan.isa == "a5" or len(set(at[on])) == on.sum():
            case.execute()
            assert_written(case, before, scatter(case, on, at))
            continue
        with pytest.raises(RunError) as found:
            case.execute()
        assert "expects offsets that differ, got" in str(found.value)
        first, second = (int(w) for w in str(found.value).rpartition("lanes ")[2].split(" and "))
        assert at[first] == at[second] and on[first] and on[second] and first < second
        assert case.memory.tobytes() == before
        repeated += 1
    assert bool(repeated) is not distinct


@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_what_was_scattered_is_gathered(seed: int) -> None:
    out = VectorCase(next(p for p in plans_of("vscatter", "a5") if "f32" in shown(p)), seed)
    _, on, at = scattered(out, True)
    out.execute()
    back = VectorCase(next(p for p in plans_of("vgather2", "a5") if "f32" in shown(p)), seed)
    back.memory[:] = out.memory
    back.args["source"].offset = out.args["dest"].offset
    back.set("offsets", at.astype(np.uint64))
    if hasattr(out.args["mask"], "lanes"):
        back.args["mask"].buffer.data[:] = out.args["mask"].buffer.data
    back.execute()
    assert (back.get("r") == np.where(on, out.get("value"), 0)).all()


def test_gather_of_blocks() -> None:
    for seed, plan in enumerate(forms("vgatherb")):
        case = VectorCase(plan, seed)
        data = random_memory(case)
        on = requested(case, 8, 4)
        at = case.rng.integers(0, 2**32, 64)  # those that are off, or behind the eighth, may be anything
        at[:8][on] = case.rng.integers(0, 500, int(on.sum())) * 32
        case.set("offsets", at.astype(np.uint64))
        case.execute()
        want = b"".join(
            data[4096 + int(at[n]) : 4096 + int(at[n]) + 32] if on[n] else bytes(32) for n in range(8)
        )
        assert case.args["r"].buffer.data.tobytes() == want, shown(plan)


# -- strided blocks ----------------------------------------------------------------------------------------


def block_plans(name: str) -> list[Plan]:
    """Both spellings of the control word, with and without the advanced pointer."""
    found: list[Plan] = []
    pointer = "source" if name == "vsldb" else "dest"
    for plan in plans_of(name):
        for apart in (None, "i16"):
            for base in (None, str(plan.operands[pointer][0])):
                types = {"repeat_stride": apart, "base": base, "ctl": apart or "i32"}
                made = changed(plan, **types)
                assert made is not None
                found.append(made)
    return found


@pytest.mark.parametrize("name", ["vsldb", "vsstb"])
def test_strided_blocks(name: str) -> None:
    for seed, plan in enumerate(block_plans(name)):
        case = VectorCase(plan, seed)
        data = random_memory(case)
        load = name == "vsldb"
        pointer = case.args["source" if load else "dest"]
        step, repeat = (int(n) for n in case.rng.integers(0, 40, 2))
        case.args["ctl"] = step if "repeat_stride" in case.args else step << 16 | repeat
        if "repeat_stride" in case.args:
            case.args["repeat_stride"] = repeat
        image = (case.rng.random(256) < (0.5, 1.0, 0.0)[seed % 3]).astype(np.uint8)
        case.args["mask"].buffer.data[:] = image
        if not load:
            case.fill("value")
        found = case.execute()
        returns = bool(plan.results.get("base"))
        if returns:
            assert (found.offset, found.dtype) == (4096 + 32 * repeat, pointer.dtype)
        else:
            assert found is None
        start = 4096 + (0 if returns else 32 * repeat)
        if load:
            want = b"".join(
                data[start + 32 * step * n :][:32] if image[32 * n] else bytes(32) for n in range(8)
            )
            assert case.args["r"].buffer.data.tobytes() == want, shown(plan)
            assert case.memory.tobytes() == data
            continue
        block = items(case.args["value"].buffer.data.tobytes(), 0, 32)
        writes: Writes = {}
        for n in range(8):
            if image[32 * n]:
                writes.update((start + 32 * step * n + b, v) for b, v in enumerate(block(n)))
        assert_written(case, data, writes)


@pytest.mark.parametrize("name", ["vsldb", "vsstb"])
def test_blocks_that_are_off_may_lie_anywhere(name: str) -> None:
    plan = next(p for p in plans_of(name, "a5") if "f32" in shown(p))
    case = VectorCase(plan)
    pointer = case.args["source" if name == "vsldb" else "dest"]
    pointer.offset = case.memory.size - 64
    case.args["ctl"] = 1 << 16
    case.on("mask", np.arange(64) < 16)  # blocks 0 and 1
    case.execute()
    case.on("mask", np.arange(64) < 17)
    with pytest.raises(RunError):
        case.execute()
    for outside in (-32, case.memory.size + 32):
        pointer.offset = outside
        case.on("mask", False)
        case.execute()
        case.on("mask", True)
        with pytest.raises(RunError):
            case.execute()


# -- illegal programs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
def test_addresses_are_aligned(name: str) -> None:
    for plan in plans_of(name):
        case = VectorCase(plan)
        pointer = case.args["dest" if "dest" in case.args else "source"]
        align = width(pointer.dtype) if name in ("vgather2", "vgather2_bc", "vscatter") else 32
        if align == 1:
            continue
        pointer.offset += align // 2
        with pytest.raises(RunError, match=f"multiple of {align} bytes, got {pointer.offset}"):
            case.execute()


def test_active_requests_lie_inside_the_buffer() -> None:
    for name, operand in (("vgather2", "source"), ("vgather2_bc", "source"), ("vscatter", "dest"), ("vgatherb", "source")):  # fmt: skip
        plan = next(p for p in plans_of(name, "a5") if "f32" in shown(p))
        case = VectorCase(plan)
        unit = 1 if name == "vgatherb" else 4
        end = (case.memory.size - case.args[operand].offset) // unit
        step = 32 if name == "vgatherb" else 1
        case.set("offsets", np.array([*(step * n for n in range(63)), end - step]))
        case.on("mask", np.arange(64) == 63)
        if name == "vgatherb":
            case.set("offsets", np.array([end - step] * 64))
            case.on("mask", np.arange(64) == 7)
        case.execute()
        case.set("offsets", np.array([end] * 64))
        with pytest.raises(RunError):
            case.execute()
        for outside in (-32, case.memory.size + 32):
            case.args[operand].offset = outside
            case.set("offsets", np.arange(64) * 32)
            case.on("mask", True)
            with pytest.raises(RunError):
                case.execute()
            case.on("mask", False)
            case.execute()


def test_offsets_of_blocks_are_multiples_of_32() -> None:
    for plan in plans_of("vgatherb", "a5"):
        case = VectorCase(plan)
        case.on("mask", np.arange(64) < 3)
        case.set("offsets", np.array([0, 64, 48, 5] + [7] * 60))
        with pytest.raises(RunError, match="multiples of 32 bytes, got 48"):
            case.execute()


@pytest.mark.parametrize("name", ["vgather2", "vgatherb", "vscatter"])
def test_a_number_of_requests_is_in_range(name: str) -> None:
    plan = counted(next(p for p in plans_of(name, "a5") if "f32" in shown(p)))
    top = 8 if name == "vgatherb" else 64
    for wrong in (-1, top + 1):
        case = VectorCase(plan)
        case.set("offsets", np.arange(64) * 32)
        case.args["mask"] = wrong
        with pytest.raises(RunError, match=f"in 0..{top}, got {wrong}"):
            case.execute()
