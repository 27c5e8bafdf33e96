"""Aligned loads and stores against the formulas of each mode, item by item on plain bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import pto
from pto import DiagnosticError
from pto.asm.type_text import parse_type
from pto.engine.reference.core import RunError
from pto.isa.dtypes import DTYPES
from pto.isa.row import Row
from pto.witness.plan import Plan, _legal_dtypes, violated

from .cases import VectorCase, over, plans_of, shown, width, with_attrs

ROWS = ("vlds", "vldsx2", "vsld", "vsts", "vstsx2", "vsst")

#: A write to memory: byte address and value.
Writes = dict[int, int]


def choices(row: Row, name: str) -> tuple[Any, ...]:
    return next(a.choices for a in row.attrs if a.name == name)


def changed(plan: Plan, **types: str | None) -> Plan | None:
    """The plan with other types of operands and results, absent where None; None where that is not legal."""
    operands, results = dict(plan.operands), dict(plan.results)
    declared = {r.name for r in plan.row.results}
    for name, text in types.items():
        side = results if name in declared else operands
        if text is None:
            side.pop(name, None)
        else:
            side[name] = (parse_type(text),)
    made = plan.replace(operands=operands, results=results)
    return made if not violated(made) and _legal_dtypes(made) else None


def returning(plan: Plan, result: str, pointer: str) -> Plan:
    """The form that returns the advanced pointer."""
    made = changed(plan, **{result: str(plan.operands[pointer][0])})
    assert made is not None
    return made


def items(data: bytes, at: int, width: int) -> Callable[[int], bytes]:
    return lambda n: data[at + n * width : at + (n + 1) * width]


def random_memory(case: VectorCase) -> bytes:
    case.memory[:] = case.rng.integers(0, 256, case.memory.size, np.uint8)
    return case.memory.tobytes()


# -- loads -------------------------------------------------------------------------------------------------


def full(token: str, size: int) -> str:
    """A token that goes by the element width, with the width."""
    return f"{token}_B{8 * size}" if token in ("BRC", "US", "DS") else token


def loaded(token: str, data: bytes, at: int, size: int) -> bytes:
    """The 256 bytes that a mode of vlds gives, from its formula."""
    token = {"UNPK4_B8": "UNPK4", "BLK": "BRC_BLK", "SPLT4CHN_B8": "SPLT4CHN"}.get(token, token)
    token = full(token, size)
    name, _, digits = token.rpartition("_B")
    w = int(digits) // 8 if digits.isdigit() else 1
    item = items(data, at, w)
    out: list[bytes] = []
    if token == "NORM":
        return data[at : at + 256]
    if name == "BRC" and digits.isdigit():
        out = [item(0) for _ in range(256 // w)]
    elif name == "US":
        out = [item(n // 2) for n in range(256 // w)]
    elif name in ("DS", "DINTLV"):
        out = [item(2 * n) for n in range(256 // w)]
    elif name == "UNPK":
        out = [item(n) + bytes(w) for n in range(128 // w)]
    elif token == "UNPK4":
        out = [item(n) + bytes(3) for n in range(64)]
    elif token == "BRC_BLK":
        out = [item(b % 32) for b in range(256)]
    elif name == "E2B":
        out = [item(n * w // 32) for n in range(256 // w)]
    elif token == "SPLT4CHN":
        out = [item(4 * n) for n in range(64)]
    elif name == "SPLT2CHN":
        out = [item(2 * n) for n in range(128 // w)]
    assert out, token
    return b"".join(out).ljust(256, b"\0")


#: What an address is a multiple of, where that is not 32 bytes, and bytes read.
_ALIGN = {"BRC_B8": 1, "BRC_B16": 2, "BRC_B32": 4, "E2B_B16": 16}
_FOOTPRINT = {
    "US_B8": 128, "US_B16": 128, "DS_B8": 511, "DS_B16": 510, "UNPK_B8": 128, "UNPK_B16": 128,
    "UNPK_B32": 128, "UNPK4": 64, "UNPK4_B8": 64, "BRC_BLK": 32, "BLK": 32, "E2B_B16": 16, "E2B_B32": 32,
    "SPLT4CHN": 253, "SPLT4CHN_B8": 253, "SPLT2CHN_B8": 255, "SPLT2CHN_B16": 254, "DINTLV_B32": 508,
    "BRC_B8": 1, "BRC_B16": 2, "BRC_B32": 4,
}  # fmt: skip


def alignment(token: str, size: int) -> int:
    return _ALIGN.get(full(token, size), 32)


@cache
def load_plans() -> list[Plan]:
    """Every mode with every element type; modes that widen, with every source of their width."""
    found: list[Plan] = []
    for plan in plans_of("vlds"):
        for token in choices(plan.row, "dist"):
            made = with_attrs(plan, dist=token)
            if made is not None:
                found.append(made)
            elif token.startswith("UNPK"):
                bits = 32 if "B32" in token else 16 if "B16" in token else 8
                names = [n for n in ("ui8", "i8", "f8E4M3", "i16", "f16", "bf16", "f32", "ui32")
                         if parse_type(n).info.bits == bits]  # type: ignore[attr-defined]  # fmt: skip
                for name in names:
                    other = changed(plan, source=f"!pto.ptr<{name}, ub>")
                    other = other or plan.replace(operands={**plan.operands, "source": (parse_type(f"!pto.ptr<{name}, ub>"),)})  # fmt: skip
                    made = with_attrs(other, dist=token)
                    if made is not None:
                        found.append(made)
    return found


@pytest.mark.parametrize("column", ["cpu", "a2a3", "a5"])
def test_every_mode_of_vlds(column: str) -> None:
    seen: set[str] = set()
    for seed, plan in enumerate(p for p in load_plans() if p.isa == column):
        case = VectorCase(plan, seed)
        data = random_memory(case)
        token = case.op.attr("dist")
        seen.add(token)
        source, size = case.args["source"], width(case.args["r"].dtype)
        step = width(source.dtype)
        align = alignment(token, size)
        case.args["offset"] = int(case.rng.integers(-20, 20)) * max(1, align // step)
        if align < step:  # the base carries what elements cannot
            source.offset += int(case.rng.integers(0, 32)) * align
        at = source.offset + case.args["offset"] * step
        assert case.execute() is None
        assert case.args["r"].buffer.data.tobytes() == loaded(token, data, at, size), shown(plan)
        assert case.memory.tobytes() == data
    assert seen == set(choices(plans_of("vlds")[0].row, "dist"))


@pytest.mark.parametrize("name", ["vlds", "vldsx2", "vsts"])
def test_post_update_accesses_the_base_and_returns_it_advanced(name: str) -> None:
    """A displacement that would not be aligned does no harm: it is not where the access is."""
    for plan in plans_of(name):
        pointer = "dest" if name == "vsts" else "source"
        case = VectorCase(returning(plan, "base", pointer), 3)
        data = random_memory(case)
        at = case.args[pointer]
        if name == "vsts":
            case.fill("value")
        if "mask" in case.args:
            case.on("mask", True)
        case.args["offset"] = 7
        found = case.execute()
        assert (found.offset, found.dtype) == (4096 + 7 * width(at.dtype), at.dtype)
        assert found.buffer is at.buffer
        assert at.offset == 4096
        if name == "vlds":
            assert case.args["r"].buffer.data.tobytes() == data[4096 : 4096 + 256]
        if name == "vsts":
            assert case.memory[4096 : 4096 + 256].tobytes() == case.args["value"].buffer.data.tobytes()


def test_two_loads_of_alternating_items() -> None:
    for seed, plan in enumerate(p for q in plans_of("vldsx2") for p in over(q, dist=choices(q.row, "dist"))):
        case = VectorCase(plan, seed)
        data = random_memory(case)
        token, step = case.op.attr("dist"), width(case.args["source"].dtype)
        case.args["offset"] = int(case.rng.integers(-8, 8)) * 32 // step
        at = 4096 + case.args["offset"] * step
        w = 32 if token == "BDINTLV" else int(token.rpartition("_B")[2]) // 8
        item = items(data, at, w)
        case.execute()
        for n, name in enumerate(("low", "high")):
            want = b"".join(item(2 * k + n) for k in range(256 // w))
            assert case.args[name].buffer.data.tobytes() == want, shown(plan)


def stride_of(token: str) -> tuple[int, int]:
    """Items from one to the next, and bytes of an item."""
    return {
        "STRIDE_S3_B16": (3, 2), "STRIDE_S4_B64": (4, 8), "STRIDE_S8_B32": (8, 4), "STRIDE_S2_B64": (2, 8),
        "STRIDE_VSST_S8_B16": (8, 2),
    }[token]  # fmt: skip


def test_fixed_strides() -> None:
    for name in ("vsld", "vsst"):
        for seed, plan in enumerate(
            p for q in plans_of(name) for p in over(q, stride=choices(q.row, "stride"))
        ):
            case = VectorCase(plan, seed)
            data = random_memory(case)
            k, w = stride_of(case.op.attr("stride"))
            case.args["offset"] = 64
            register = case.args["r" if name == "vsld" else "value"]
            at = 4096 + 64 * width(register.dtype)
            item = items(data, at, w)
            if name == "vsld":
                case.execute()
                want = b"".join(item(k * n) for n in range(256 // w))
                assert register.buffer.data.tobytes() == want, shown(plan)
            else:
                case.fill("value")
                case.execute()
                lane = items(register.buffer.data.tobytes(), 0, w)
                writes: Writes = {}
                for n in range(256 // w):
                    writes.update((at + k * n * w + b, v) for b, v in enumerate(lane(n)))
                assert_written(case, data, writes)


# -- stores ------------------------------------------------------------------------------------------------


def assert_written(case: VectorCase, before: bytes, writes: Writes) -> None:
    """Memory is as it was but for the writes."""
    want = bytearray(before)
    for at, value in writes.items():
        want[at] = value
    assert case.memory.tobytes() == bytes(want), shown(case.plan)


def stored(token: str, register: bytes, image: np.ndarray[Any, Any], at: int, size: int) -> Writes:
    """The bytes that a mode of vsts writes, from its formula."""
    token = token.replace("ONEPT", "1PT")
    if token in ("NORM", "1PT"):
        token += f"_B{8 * min(size, 4)}"
    name, _, digits = token.rpartition("_B")
    w = int(digits) // 8
    lane = items(register, 0, w)
    writes: Writes = {}

    def put(first: int, value: bytes) -> None:
        writes.update((at + first + b, v) for b, v in enumerate(value))

    if name == "NORM":
        for n in range(256 // w):
            if image[n * w]:
                put(n * w, lane(n))
    elif name == "1PT":
        put(0, lane(0))
    elif name in ("PK", "PK4"):
        part = w // (4 if name == "PK4" else 2)
        for n in range(256 // w):
            if image[n * w]:
                put(n * part, lane(n)[:part])
    else:  # MRG2CHN, MRG4CHN: plane c of a block holds the items c of every group
        channels = int(name[3])
        group = channels * w
        for block in range(8):
            for k in range(32 // group):
                if image[32 * block + k * group]:
                    for c in range(channels):
                        put(32 * block + k * group + c * w, lane(block * 32 // w + c * (32 // group) + k))
    return writes


@cache
def store_plans() -> list[Plan]:
    found: list[Plan] = []
    for plan in plans_of("vsts"):
        for token in choices(plan.row, "dist"):
            made = with_attrs(plan, dist=token)
            if "mask" not in plan.operands:
                found += [made] if made is not None else []
                continue
            masks = [plan.replace(operands={**plan.operands, "mask": (parse_type(f"!pto.mask<{g}>"),)})
                     for g in ("b8", "b16", "b32")]  # fmt: skip
            found += [m for mask in masks if (m := with_attrs(mask, dist=token)) is not None]
    return found


@pytest.mark.parametrize("column", ["cpu", "a2a3", "a5"])
def test_every_mode_of_vsts(column: str) -> None:
    """Random masks, all lanes, none, and the first ones, with bits set that no lane looks at."""
    seen: set[tuple[str, bool]] = set()
    for seed, plan in enumerate(p for p in store_plans() if p.isa == column):
        case = VectorCase(plan, seed)
        data = random_memory(case)
        token, dest = case.op.attr("dist"), case.args["dest"]
        size, step = width(case.args["value"].dtype), width(dest.dtype)
        case.fill("value")
        image = np.ones(256, np.uint8)
        if "mask" in case.args:
            kind = seed % 4
            share = (0.5, 1.0, 0.0)[kind] if kind < 3 else 0.5
            image = (case.rng.random(256) < share).astype(np.uint8)
            if kind == 3:
                image = (np.arange(256) < case.rng.integers(1, 256)).astype(np.uint8)
            case.args["mask"].buffer.data[:] = image
        seen.add((token, "mask" in case.args))
        unit = max(1, 32 // step)
        if token.replace("ONEPT", "1PT").startswith("1PT"):
            unit = 1
            dest.offset = 4096 + 4 * seed
        case.args["offset"] = int(case.rng.integers(-9, 9)) * unit
        at = dest.offset + case.args["offset"] * step
        if at % (width_of_point(token, size)):
            case.args["offset"] = 0
            at = dest.offset
        case.execute()
        register = case.args["value"].buffer.data.tobytes()
        assert_written(case, data, stored(token, register, image, at, size))
    tokens = choices(plans_of("vsts")[0].row, "dist")
    assert seen == {(t, masked) for t in tokens for masked in (False, True)}


def width_of_point(token: str, size: int) -> int:
    digits = token.rpartition("_B")[2]
    return min(size, 4) if token == "1PT" else int(digits) // 8 if "PT" in token else 1


@pytest.mark.parametrize("semantics", ["hw", "doc"])
def test_two_stores_as_alternating_items(semantics: str) -> None:
    for seed, plan in enumerate(p for q in plans_of("vstsx2") for p in over(q, dist=choices(q.row, "dist"))):
        case = VectorCase(plan, seed, semantics)
        data = random_memory(case)
        case.fill("low")
        case.fill("high")
        image = (case.rng.random(256) < 0.5).astype(np.uint8)
        case.args["mask"].buffer.data[:] = image
        w = int(case.op.attr("dist").rpartition("_B")[2]) // 8
        case.execute()
        writes: Writes = {}
        for k, name in enumerate(("low", "high")):
            lane = items(case.args[name].buffer.data.tobytes(), 0, w)
            for n in range(256 // w):
                if semantics == "hw" or image[n * w]:
                    writes.update((4096 + (2 * n + k) * w + b, v) for b, v in enumerate(lane(n)))
        assert_written(case, data, writes)


# -- addresses ---------------------------------------------------------------------------------------------


def each_mode() -> Iterator[tuple[str, Plan, int]]:
    """Yield one plan for every mode of every row: the pointer operand, and its alignment."""
    seen: set[tuple[str, Any]] = set()
    plans = [*load_plans(), *store_plans()]
    for name, attr in (("vldsx2", "dist"), ("vsld", "stride"), ("vstsx2", "dist"), ("vsst", "stride")):
        plans += [p for q in plans_of(name) for p in over(q, **{attr: choices(q.row, attr)})]
    for plan in plans:
        token = plan.attrs["dist" if "dist" in plan.attrs else "stride"].value  # type: ignore[attr-defined]
        if plan.isa != "a5" or (plan.row.name, token) in seen:
            continue
        seen.add((plan.row.name, token))
        store = "dest" in plan.operands
        type = plan.operands["value" if "value" in plan.operands else "low"][0] if store else None
        size = DTYPES[str(type.dtype)].bits // 8 if type is not None else 0  # type: ignore[attr-defined]
        if store:
            align = width_of_point(token, size) if "PT" in token else 32
        else:
            r = next(t for n, ts in plan.results.items() for t in ts if n in ("r", "low"))
            align = alignment(token, DTYPES[str(r.dtype)].bits // 8)  # type: ignore[attr-defined]
        yield ("dest" if store else "source"), plan, align


def test_addresses_are_aligned_as_the_mode_asks() -> None:
    """One step of the alignment further is legal, half a step is not."""
    for pointer, plan, align in each_mode():
        for shift, legal in ((align, True), (align // 2, align == 1), (1, align == 1)):
            case = VectorCase(plan)
            if "mask" in case.args:
                case.on("mask", True, 1)
            case.args[pointer].offset += shift
            if legal:
                case.execute()
                continue
            with pytest.raises(RunError) as found:
                case.execute()
            assert f"multiple of {align} bytes, got {4096 + shift}" in str(found.value), shown(plan)


def test_the_footprint_lies_inside_the_buffer() -> None:
    """The last place where a mode fits is legal, the next one is not."""
    for pointer, plan, align in each_mode():
        case = VectorCase(plan)
        if "mask" in case.args:
            case.on("mask", True, 1)
        token = plan.attrs["dist" if "dist" in plan.attrs else "stride"].value  # type: ignore[attr-defined]
        name = plan.row.name
        if "stride" in plan.attrs:
            k, w = stride_of(token)
            size = (256 // w - 1) * k * w + w
        elif name in ("vldsx2", "vstsx2"):
            size = 512
        elif name == "vlds":
            size = _FOOTPRINT.get(full(token, width(case.args["r"].dtype)), 256)
        elif "PT" in token:
            size = align
        else:
            size = {"PK_B16": 128, "PK_B32": 128, "PK_B64": 128, "PK4_B32": 64}.get(token, 256)
        end = case.memory.size
        last = (end - size) // align * align
        case.args[pointer].offset = last
        case.execute()
        for wrong in (last + align, end, -align):
            case.args[pointer].offset = wrong
            with pytest.raises(RunError):
                case.execute()


def test_lanes_that_are_off_may_lie_behind_the_buffer_but_not_the_address() -> None:
    plan = next(p for p in store_plans() if p.isa == "a5" and "mask" in p.operands and "f32" in shown(p))
    case = VectorCase(plan)
    case.fill("value")
    case.args["dest"].offset = case.memory.size - 32
    case.on("mask", np.arange(64) < 8)
    case.execute()
    assert case.memory[-32:].tobytes() == case.args["value"].buffer.data[:32].tobytes()
    case.on("mask", np.arange(64) < 9)
    with pytest.raises(RunError):
        case.execute()
    case.on("mask", False)
    case.execute()
    case.args["dest"].offset = case.memory.size
    with pytest.raises(RunError, match=f"touches bytes {case.memory.size}"):
        case.execute()


# -- whole programs ----------------------------------------------------------------------------------------

_COPY = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @copy(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) {{
    %zero = arith.constant 0 : i64
    %far = arith.constant 4096 : i64
    %one = arith.constant 1 : i64
    %len = arith.constant 1024 : i64
    %at = arith.constant {at} : index
    %ux = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    %uy = pto.castptr %far : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %ux, %zero, %len nburst(%one, %len, %len) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.mte_gm_ub %y, %uy, %zero, %len nburst(%one, %len, %len) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {{
      {body}
    }}
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %uy, %y, %len nburst(%one, %len, %len) : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }}
}}
"""


def run(body: str, at: int = 0, ok: bool = True, **options: Any) -> tuple[Any, Any, Any, str]:
    """Return the arrays before and after a program whose vecscope is `body`, and the diagnostics of the
    run."""
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(256).astype(np.float32) for _ in range(2))
    before = y.copy()
    result = pto.kernel(pto.parse(_COPY.format(body=body, at=at)), engine="reference").run(x, y, **options)
    said = "\n".join(map(str, result.diagnostics))
    assert result.ok == ok, said
    return x, before, y, said


def test_program_with_post_updates() -> None:
    body = """
      %c64 = arith.constant 64 : index
      %x0, %p1 = pto.vlds %ux[%c64] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>, !pto.ptr<f32, ub>
      %x1 = pto.vlds %p1[%c64] {dist = "BRC_B32"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      %m = pto.pset_b32 "PAT_VL3" : !pto.mask<b32>
      %q1 = pto.vsts %x0, %uy[%c64], %m {dist = "NORM_B32"} : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32> -> !pto.ptr<f32, ub>
      pto.vsts %x1, %q1[%at], %m {dist = "1PT_B32"} : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
    """
    x, before, y, _ = run(body, 3)
    want = before.copy()
    want[:3] = x[:3]
    want[67] = x[128]
    assert (y == want).all()


def test_program_with_a_wrong_address_stops_there() -> None:
    body = """
      %v = pto.vlds %ux[%at] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      pto.vsts %v, %uy[%at] : !pto.vreg<64xf32>, !pto.ptr<f32, ub>
    """
    x, _, y, _ = run(body, 8)
    assert (y[8:72] == x[8:72]).all()
    *_, said = run(body, 3, ok=False)
    assert "vlds: expects an effective address that is a multiple of 32 bytes, got 12" in said


def test_global_memory_is_out_of_reach() -> None:
    body = "%v = pto.vlds %x[%at] : !pto.ptr<f32, gm> -> !pto.vreg<64xf32>"
    with pytest.raises(DiagnosticError, match="space"):
        run(body)


#: Ways of registers %a and %b through memory and back.
_WAYS = {
    "vlds": """
      pto.vsts %a, %uy[%at], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
      pto.mem_bar "VST_VLD"
      %c = pto.vlds %uy[%at] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>""",
    "some lanes": """
      %some = pto.pset_b32 "PAT_M3" : !pto.mask<b32>
      pto.vsts %a, %uy[%at], %some : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
      pto.mem_bar "VST_VLD"
      %c = pto.vlds %uy[%at] {dist = "BRC_B32"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>""",
    "vldsx2": """
      pto.vstsx2 %a, %a, %uy[%at], "INTLV_B32", %m : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.ptr<f32, ub>, index, !pto.mask<b32>
      pto.mem_bar "VST_VLD"
      %b, %c = pto.vldsx2 %uy[%at], "BDINTLV" : !pto.ptr<f32, ub>, index -> !pto.vreg<64xf32>, !pto.vreg<64xf32>""",
    "vsldb": """
      %ctl = arith.constant 65536 : i32
      pto.vsstb %a, %uy, %ctl, %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, i32, !pto.mask<b32>
      pto.mem_bar "VST_VLD"
      %c = pto.vsldb %uy, %ctl, %m : !pto.ptr<f32, ub>, i32, !pto.mask<b32> -> !pto.vreg<64xf32>""",
    "vldus": """
      %n = arith.constant 64 : i32
      %c0 = arith.constant 0 : i32
      %e = pto.init_align : !pto.align
      %p = pto.addptr %uy, %three : <f32, ub> -> <f32, ub>
      %f, %q = pto.vstus %e, %n, %a, %p : !pto.align, i32, !pto.vreg<64xf32>, !pto.ptr<f32, ub> -> !pto.align, !pto.ptr<f32, ub>
      pto.vstas %f, %q, %c0 : !pto.align, !pto.ptr<f32, ub>, i32
      pto.mem_bar "VST_VLD"
      %s = pto.vldas %p : !pto.ptr<f32, ub> -> !pto.align
      %c, %t = pto.vldus %p, %s : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align""",
}


@pytest.mark.parametrize("way", list(_WAYS))
def test_float64_twins_follow_values_through_memory(way: str) -> None:
    """A large number is added before and subtracted after: only the twin keeps the lost part."""
    body = """
      %three = arith.constant 3 : index
      %big = arith.constant 1.0e+9 : f32
      %less = arith.constant -1.0e+9 : f32
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %v = pto.vlds %ux[%at] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      %a = pto.vadds %v, %big, %m : !pto.vreg<64xf32>, f32, !pto.mask<b32> -> !pto.vreg<64xf32>
    """
    body += (
        _WAYS[way]
        + """
      %d = pto.vadds %c, %less, %m : !pto.vreg<64xf32>, f32, !pto.mask<b32> -> !pto.vreg<64xf32>
    """
    )
    *_, said = run(body, ok=False, shadow="f64")
    assert "vadds: first departure from the float64 shadow" in said
