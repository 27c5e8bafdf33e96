"""Loads and stores of masks against integers made from the bytes of memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto import isa
from pto.engine.memory import MemoryFault, Pointer
from pto.engine.reference.instr import IllegalInstruction
from pto.engine.registers import WIDTH, Align
from pto.witness.plan import Plan

from .cases import VectorCase, plans_of, with_attrs
from .masks import GRANULARITIES, at, found, image_of, lanes_of, set_image, some_image, typed

ROWS = ("plds", "pld", "pldi", "psts", "pst", "psti", "pstu")

LOADS = ("NORM", "US", "DS")
STORES = ("NORM", "PK")
#: Bytes that a mode moves, and the unit of a subscript of pldi and psti.
SIZE = {"NORM": 32, "US": 16, "DS": 64, "PK": 16}
UNIT = {"NORM": 32, "US": 16, "DS": 32, "PK": 16}


def loaded(memory: int, dist: str) -> int:
    """Return the image of bytes, bit by bit according to the table."""
    source = {"NORM": lambda b: b, "US": lambda b: b // 2, "DS": lambda b: 2 * b}[dist]
    return sum((memory >> source(b) & 1) << b for b in range(WIDTH))


def stored(image: int, dist: str) -> int:
    if dist == "NORM":
        return image
    return sum((image >> 2 * j & 1) << j for j in range(128))


def placed(name: str, way: str, column: str = "a5", dtype: str = "") -> Plan:
    """An instance of a row that finds its address in one `way`: at the pointer, at an offset, with the offset
    added afterwards, or by an immediate."""
    row = isa.row(name)
    assert row is not None
    pointer = "source" if row.operands[0].name == "source" else "dest"
    plan = plans_of(name, column)[0]
    given = f"!pto.ptr<{dtype}, ub>" if dtype else str(plan.operands[pointer][0])
    types: dict[str, str] = {pointer: given}
    if name[-1] in "si":
        types["offset"] = "index" if way in ("offset", "update") else ""
        types["base"] = given if way == "update" else ""
    if name in ("pldi", "psti"):
        types["imm"] = "i32" if way == "imm" else ""
    if way in ("offset", "update") and name in ("pldi", "psti"):
        plan = plan.replace(constants={("offset", 0): 1})
    return typed(plan, **types)


WAYS = [
    ("pld", "areg"), ("pst", "areg"), ("plds", "here"), ("plds", "offset"), ("plds", "update"),
    ("psts", "here"), ("psts", "offset"), ("psts", "update"), ("pldi", "imm"), ("pldi", "offset"),
    ("pldi", "update"), ("psti", "imm"), ("psti", "offset"), ("psti", "update"),
]  # fmt: skip


def displaced(case: VectorCase, way: str, dist: str, steps: int) -> tuple[int, int | None]:
    """Move the access by `steps`: the byte it happens at, and the base that comes back."""
    name = case.row.name
    base = case.base
    if way == "here":
        return base, None
    if way == "areg" or way == "imm":
        case.args[way] = steps
        return base + 8 * steps, None
    unit = UNIT[dist] if name in ("pldi", "psti") else 1
    count = steps if unit > 1 else 8 * steps
    case.args["offset"] = count
    return (base, base + count * unit) if way == "update" else (base + count * unit, None)


@pytest.mark.parametrize(("name", "way"), [w for w in WAYS if w[0].startswith("pld")])
@pytest.mark.parametrize("dist", LOADS)
def test_load(name: str, way: str, dist: str) -> None:
    for column in ("cpu", "a2a3", "a5"):
        for steps in (0, 1, 3, 100):
            plan = with_attrs(placed(name, way, column), dist=dist)
            assert plan is not None
            case = VectorCase(plan, steps)
            case.memory[:] = case.rng.integers(0, 256, case.memory.size)
            place, moved = displaced(case, way, dist, steps)
            result = case.execute()
            memory = int.from_bytes(case.memory[place : place + SIZE[dist]].tobytes(), "little")
            assert found(case, "mask") == loaded(memory, dist)
            check_base(result, moved, case)


@pytest.mark.parametrize(("name", "way"), [w for w in WAYS if w[0].startswith("pst")])
@pytest.mark.parametrize("dist", STORES)
def test_store(name: str, way: str, dist: str) -> None:
    for column in ("cpu", "a2a3", "a5"):
        for steps in (0, 1, 3, 100):
            plan = with_attrs(placed(name, way, column), dist=dist)
            assert plan is not None
            case = VectorCase(plan, steps)
            case.memory[:] = case.rng.integers(0, 256, case.memory.size)
            image = some_image(case, "mask")
            place, moved = displaced(case, way, dist, steps)
            want = case.memory.copy()
            want[place : place + SIZE[dist]] = list(stored(image, dist).to_bytes(SIZE[dist], "little"))
            result = case.execute()
            assert (case.memory == want).all()
            check_base(result, moved, case)


def check_base(result: Any, moved: int | None, case: VectorCase) -> None:
    if moved is not None:
        pointer = case.args["source" if "source" in case.args else "dest"]
        assert isinstance(result, Pointer)
        assert (result.offset, result.dtype, result.buffer) == (moved, pointer.dtype, pointer.buffer)


@pytest.mark.parametrize("gran", GRANULARITIES)
@pytest.mark.parametrize("semantics", ["hw", "doc"])
@examples(16)
@given(image=st.integers(0, 2**WIDTH - 1))
def test_both_semantics_keep_the_image(gran: str, semantics: str, image: int) -> None:
    """Whatever the granularity, 32 bytes are saved and restored."""
    store = VectorCase(at("psts", gran), semantics=semantics)
    set_image(store, "mask", image)
    store.execute()
    assert store.memory[store.base : store.base + 32].tobytes() == image.to_bytes(32, "little")
    load = VectorCase(at("plds", gran), semantics=semantics)
    load.memory[:] = store.memory
    load.execute()
    assert found(load, "mask") == image


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "ui16", "i64"])
@pytest.mark.parametrize("name", ["plds", "psts"])
def test_offsets_of_plds_and_psts_are_bytes(name: str, dtype: str) -> None:
    """The element type of the pointer does not scale them."""
    case = VectorCase(placed(name, "offset", dtype=dtype), 1)
    case.memory[:] = 0
    case.args["offset"] = 40
    if name == "psts":
        set_image(case, "mask", 1 << 255 | 1)
        case.execute()
        assert case.memory.nonzero()[0].tolist() == [case.base + 40, case.base + 71]
    else:
        case.memory[case.base + 40] = 0x12
        case.execute()
        assert found(case, "mask") == 0x12


@pytest.mark.parametrize("name", ["pld", "pst"])
def test_register_offsets_may_be_negative(name: str) -> None:
    case = VectorCase(placed(name, "areg"), 2)
    case.memory[:] = 0
    case.args["areg"] = -3
    if name == "pst":
        set_image(case, "mask", 1)
        case.execute()
        assert case.memory[case.base - 24] == 1
    else:
        case.memory[case.base - 24] = 1
        case.execute()
        assert found(case, "mask") == 1


@pytest.mark.parametrize(
    ("name", "way"), [("plds", "offset"), ("psts", "offset"), ("plds", "here"), ("psts", "here")]
)
@pytest.mark.parametrize("wrong", [1, 2, 4, 7])
def test_addresses_are_words(name: str, way: str, wrong: int) -> None:
    case = VectorCase(placed(name, way))
    if way == "offset":
        case.args["offset"] = 16 + wrong
    else:
        pointer = case.args["source" if name == "plds" else "dest"]
        pointer.offset += wrong
    before = case.memory.copy()
    place = case.base + (16 if way == "offset" else 0) + wrong
    with pytest.raises(IllegalInstruction, match=f"multiple of 8 bytes, got {place}"):
        case.run()
    assert (case.memory == before).all()


@pytest.mark.parametrize(("name", "dist"), [("plds", d) for d in LOADS] + [("psts", d) for d in STORES])
def test_the_end_of_the_buffer(name: str, dist: str) -> None:
    """The last place that fits, and the one after it."""
    for over in (0, 8):
        case = VectorCase(with_attrs(placed(name, "here"), dist=dist))  # type: ignore[arg-type]
        pointer = case.args["source" if name == "plds" else "dest"]
        pointer.offset = case.memory.size - SIZE[dist] + over
        if over:
            with pytest.raises(MemoryFault):
                case.run()
        else:
            case.execute()


# -- streams of dense lanes --------------------------------------------------------------------------------


@pytest.mark.parametrize("gran", ["b16", "b32"])
@examples(30)
@given(seed=st.integers(0, 2**32), start=st.integers(0, 70), count=st.integers(1, 9))
def test_stream_of_masks(gran: str, seed: int, start: int, count: int) -> None:
    """Every append puts lane bits behind the last: whole blocks in memory, the rest in the state."""
    plan = next(p for p in plans_of("pstu", "a5") if str(p.operands["mask"][0]) == f"!pto.mask<{gran}>")
    size = {"b16": 16, "b32": 8}[gran]
    case = VectorCase(plan, seed)
    case.memory[:] = 0xA5
    begin = case.base + start
    case.args["base"] = case.args["base"].at(begin)
    want = b""
    for _ in range(count):
        lanes = lanes_of(some_image(case, "mask"), gran)
        want += sum(lane << k for k, lane in enumerate(lanes)).to_bytes(size, "little")
        base = case.execute()
        assert (base.offset, base.dtype) == (begin + len(want), case.args["base"].dtype)
        case.args |= {"base": base, "align": case.args["align_out"], "align_out": Align("next")}
    memory = case.memory
    end = begin + len(want)
    cut = max(begin, end // 32 * 32)
    assert memory[begin:cut].tobytes() == want[: cut - begin]
    assert (memory[:begin] == 0xA5).all()
    assert (memory[cut:] == 0xA5).all()
    state = case.args["align"]
    assert state.pending == end - cut
    assert state.buffer.data[: end - cut].tobytes() == want[cut - begin :]


# -- identities of the model -------------------------------------------------------------------------------


@examples(20)
@given(image=st.integers(0, 2**WIDTH - 1))
def test_dense_bits_of_halves(image: int) -> None:
    """PK saves a mask of halves as 128 dense bits, US brings it back (with both bits of each lane)."""
    lanes = lanes_of(image, "b16")
    store = VectorCase(with_attrs(at("psts", "b16"), dist="PK"))  # type: ignore[arg-type]
    set_image(store, "mask", image)
    store.execute()
    dense = int.from_bytes(store.memory[store.base : store.base + 16].tobytes(), "little")
    assert dense == sum(lane << n for n, lane in enumerate(lanes))
    load = VectorCase(with_attrs(at("plds", "b16"), dist="US"))  # type: ignore[arg-type]
    load.memory[:] = store.memory
    load.execute()
    assert lanes_of(found(load, "mask"), "b16") == lanes
    # the masks of the two halves as words, both ways
    for part, want in (("LOWER", lanes[:64]), ("HIGHER", lanes[64:])):
        plan = typed(plans_of("punpack", "a5")[0], src="!pto.mask<b16>", dst="!pto.mask<b32>")
        spread = VectorCase(with_attrs(plan, part=part))  # type: ignore[arg-type]
        set_image(spread, "src", found(load, "mask"))
        spread.execute()
        assert lanes_of(found(spread, "dst"), "b32") == want
    mix = VectorCase(plans_of("pintlv_b16", "a5")[0])
    set_image(mix, "src0", found(load, "mask"))
    set_image(mix, "src1", found(load, "mask"))
    mix.execute()
    assert lanes_of(found(mix, "low"), "b32") == lanes[:64]
    assert lanes_of(found(mix, "high"), "b32") == lanes[64:]


@examples(20)
@given(image=st.integers(0, 2**WIDTH - 1))
def test_dense_bits_of_words(image: int) -> None:
    """Packed twice and stored, the first 8 bytes have one bit per word."""
    lanes = lanes_of(image, "b32")
    value = image_of(lanes, "b32")
    for _ in range(2):
        pack = VectorCase(with_attrs(plans_of("ppack", "a5")[0], part="LOWER"))  # type: ignore[arg-type]
        set_image(pack, "src", value)
        pack.execute()
        value = found(pack, "dst")
    store = VectorCase(at("psts", "b8"))
    set_image(store, "mask", value)
    store.execute()
    assert int.from_bytes(store.memory[store.base : store.base + 8].tobytes(), "little") == sum(
        lane << n for n, lane in enumerate(lanes)
    )
