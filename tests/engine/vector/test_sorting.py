"""Rows from buffer to buffer against Python's own sort and a merge that looks at one head at a time."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

import pto
from pto.engine.memory import Pointer
from pto.engine.reference.core import RunError
from pto.isa.encoding import decode
from pto.witness.plan import Plan

from ..rows import Doubles, random_codes, special_codes
from .cases import VectorCase, plans_of, shown, width

ROWS = ("vtranspose", "vsort32", "vbitsort", "vmrgsort4", "get_vms4_sr")

DEST, SRC, INDICES = 0, 65536, 131072
FILL = 0xA5
TILE_PROGRAM = Path(__file__).parents[3] / "examples" / "kernels" / "topk.pto"
Record = tuple[int, int]  # code of the score, index


def placed(plan: Plan, seed: int = 0, **offsets: int) -> VectorCase:
    """A case whose pointers are apart; the whole buffer is filled with a pattern."""
    case = VectorCase(plan, seed)
    for name, offset in {"dest": DEST, "src": SRC, "indices": INDICES, **offsets}.items():
        if name in case.args:
            at = case.args[name]
            case.args[name] = Pointer(at.buffer, offset, at.dtype, name)
    case.memory[:] = FILL
    return case


def put(case: VectorCase, name: str, data: bytes) -> None:
    at = case.args[name].offset
    case.memory[at : at + len(data)] = np.frombuffer(data, np.uint8)


def check(case: VectorCase, want: bytes) -> None:
    """Run it: dest holds the bytes, and nothing else has changed."""
    before = case.memory.copy()
    at = case.args["dest"].offset
    before[at : at + len(want)] = np.frombuffer(want, np.uint8)
    case.execute()
    assert (case.memory == before).all(), shown(case.plan)


def packed(dtype: str, codes: list[int]) -> bytes:
    return b"".join(c.to_bytes(width(dtype), "little") for c in codes)


def score(dtype: str, code: int) -> float:
    """Return the sort key of a score: NaN comes with the smallest."""
    value = float(decode(dtype, code))
    return -math.inf if math.isnan(value) else value


def some_codes(case: VectorCase, dtype: str, count: int, few: bool = False) -> list[int]:
    """Any codes; with `few`, only special ones, so that many are equal."""
    special = case.rng.choice(np.array(special_codes(dtype), np.uint64), count)
    codes = random_codes(case.rng, dtype, (1, count), True)[0].astype(np.uint64)
    return np.where((case.rng.random(count) < 0.3) | few, special, codes).tolist()


def as_bytes(dtype: str, records: list[Record]) -> bytes:
    return b"".join(packed(dtype, [c]).ljust(4, b"\0") + struct.pack("<I", n) for c, n in records)


# -- transpose ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", plans_of("vtranspose"), ids=shown)
def test_transpose(plan: Plan) -> None:
    case = placed(plan)
    dtype = case.args["src"].dtype
    codes = some_codes(case, dtype, 256)
    put(case, "src", packed(dtype, codes))
    check(case, packed(dtype, [codes[16 * i + j] for j in range(16) for i in range(16)]))


@pytest.mark.parametrize("name", ["dest", "src"])
def test_transpose_wants_whole_blocks(name: str) -> None:
    case = placed(plans_of("vtranspose", "a5")[0], **{name: 4112})
    with pytest.raises(RunError, match=r"vtranspose: expects .* multiple of 32 bytes, got 4112"):
        case.execute()


def test_only_the_plain_transpose() -> None:
    case = placed(plans_of("vtranspose", "a5")[0])
    case.args["config"] = 3
    with pytest.raises(RunError, match=r"expects config to be 0, .* got 3"):
        case.execute()


# -- sorts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", plans_of("vsort32"), ids=shown)
@pytest.mark.parametrize(("config", "groups"), [(0, 1), (1, 1), (5, 5), (255, 255), (0x1203, 3)])
def test_sort_values(plan: Plan, config: int, groups: int) -> None:
    case = placed(plan, groups)
    dtype = case.args["src"].dtype
    codes = some_codes(case, dtype, 32 * groups, few=config == 5)
    put(case, "src", packed(dtype, codes))
    case.args["config"] = config
    want = [
        c for g in range(groups) for c in sorted(codes[32 * g : 32 * g + 32], key=lambda c: -score(dtype, c))
    ]
    check(case, packed(dtype, want))


@examples(60)
@given(st.sampled_from(plans_of("vbitsort")), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_sort_records(plan: Plan, groups: int, few: bool, seed: int) -> None:
    """Equal scores stay in the order of the input, whatever their indices."""
    case = placed(plan, seed)
    dtype = case.args["src"].dtype
    codes = some_codes(case, dtype, 32 * groups, few)
    indices = case.rng.integers(0, 2**32, 32 * groups).tolist()
    put(case, "src", packed(dtype, codes))
    put(case, "indices", packed("u32", indices))
    case.args["repeat_times"] = groups
    pairs = list(zip(codes, indices, strict=True))
    want = [
        p
        for g in range(groups)
        for p in sorted(pairs[32 * g : 32 * g + 32], key=lambda p: -score(dtype, p[0]))
    ]
    check(case, as_bytes(dtype, want))


def test_every_type_of_records() -> None:
    found = {
        (case.args["src"].dtype, case.args["dest"].dtype) for case in map(VectorCase, plans_of("vbitsort"))
    }
    assert found == {("f32", "f32"), ("f16", "f16"), ("f32", "u32"), ("f16", "u32")}


def test_no_group_is_an_error() -> None:
    case = placed(plans_of("vbitsort", "a5")[0])
    case.args["repeat_times"] = 0
    with pytest.raises(RunError, match="vbitsort: expects repeat_times to be at least 1, got 0"):
        case.execute()
    for groups in (1 << 20, 1 << 40):  # neither takes the memory of the machine
        case.args["repeat_times"] = groups
        with pytest.raises(RunError, match=r"vbitsort: (touches bytes|reaches for)"):
            case.execute()


# -- merge -------------------------------------------------------------------------------------------------


def sorted_list(case: VectorCase, dtype: str, count: int, few: bool) -> list[Record]:
    codes = some_codes(case, dtype, count, few)
    pairs = zip(codes, case.rng.integers(0, 2**32, count).tolist(), strict=True)
    return sorted(pairs, key=lambda p: -score(dtype, p[0]))


def merged(dtype: str, lists: list[list[Record]], exhausted: bool) -> tuple[list[Record], list[int]]:
    """The records in the order in which the greatest head leaves its list, and how many left each."""
    heads = [0] * len(lists)
    out: list[Record] = []
    while open_ := [k for k, n in enumerate(heads) if n < len(lists[k])]:
        best = max(open_, key=lambda k: (score(dtype, lists[k][heads[k]][0]), -k))
        out.append(lists[best][heads[best]])
        heads[best] += 1
        if exhausted and heads[best] == len(lists[best]):
            break
    return out, heads + [0] * (4 - len(heads))


def merge_case(plan: Plan, seed: int, lists: int) -> VectorCase:
    return placed(plan, seed, **{f"src{k}": SRC + 16384 * k for k in range(4)})


def merge_status(case: VectorCase) -> list[int]:
    status = VectorCase(plans_of("get_vms4_sr", "a5")[0])
    status.core = case.core
    return [n % 65536 for n in status.execute()]


VALID = {2: 0b0011, 3: 0b0111, 4: 0b1111}


@examples(80)
@given(
    st.sampled_from(plans_of("vmrgsort4")), st.lists(st.integers(0, 40), min_size=2, max_size=4),
    st.booleans(), st.booleans(), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_merge(plan: Plan, lengths: list[int], exhausted: bool, few: bool, seed: int) -> None:
    case = merge_case(plan, seed, len(lengths))
    dtype = case.args["dest"].dtype
    lists = [sorted_list(case, dtype, n, few) for n in lengths]
    for k, records in enumerate(lists):
        put(case, f"src{k}", as_bytes(dtype, records))
    # the length of a list that is not valid means nothing
    case.args["count"] = sum(n << 16 * k for k, n in enumerate([*lengths, *[9] * (4 - len(lengths))]))
    case.args["config"] = 1 | VALID[len(lengths)] << 8 | exhausted << 12
    before = merge_status(case)
    want, counts = merged(dtype, lists, exhausted)
    check(case, as_bytes(dtype, want))
    assert merge_status(case) == (counts if exhausted else before)


@examples(30)
@given(
    st.sampled_from(plans_of("vmrgsort4")), st.integers(0, 12), st.integers(2, 6), st.booleans(),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_repeated_merges(plan: Plan, length: int, repeat: int, few: bool, seed: int) -> None:
    case = placed(plan, seed, **{f"src{k}": SRC + 8 * length * k for k in range(4)})
    dtype = case.args["dest"].dtype
    groups = [[sorted_list(case, dtype, length, few) for _ in range(4)] for _ in range(repeat)]
    put(case, "src0", b"".join(as_bytes(dtype, records) for lists in groups for records in lists))
    case.args["count"] = sum(length << 16 * k for k in range(4))
    case.args["config"] = repeat | 0b1111 << 8
    check(case, b"".join(as_bytes(dtype, merged(dtype, lists, False)[0]) for lists in groups))


def test_counts_have_no_sign() -> None:
    case = merge_case(plans_of("vmrgsort4", "cpu")[0], 0, 2)
    put(case, "src0", as_bytes("f32", [(0x3F800000 - n, n) for n in range(2000)]))
    put(case, "src1", as_bytes("f32", [(0, 7)]))
    case.args["count"] = 2000 | 1 << 16 | -1 << 32  # all ones for the lists that take no part
    case.args["config"] = 0x1301
    case.execute()
    assert merge_status(case) == [2000, 0, 0, 0]
    case.core.special_register("VMS4_SR", "u16", 4).buffer.data[:] = 0xFF
    status = VectorCase(plans_of("get_vms4_sr", "a5")[0])
    status.core = case.core
    assert status.execute() == (-1, -1, -1, -1)  # 65535 as an i16


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (0xF00, {}, "repeat the merge at least once, got 0xf00"),
        (0x501, {}, "two, three or four lists, got 0x501"),
        (0x101, {}, "two, three or four lists, got 0x101"),
        (0x702, {}, "four lists and no early stop, got 0x702"),
        (0x1F02, {}, "four lists and no early stop, got 0x1f02"),
        (0xF02, {"count": 0x0002000200020003}, r"equal length, got \[3, 2, 2, 2\]"),
        (0xF02, {"src2": SRC + 40}, "adjacent lists at .* got"),
    ],
)
def test_illegal_merges(config: int, change: dict[str, int], message: str) -> None:
    at = {f"src{k}": SRC + 16 * k for k in range(4)}
    case = placed(plans_of("vmrgsort4", "a5")[0], **{**at, **{k: v for k, v in change.items() if k in at}})
    case.args["count"] = change.get("count", 0x0002000200020002)
    case.args["config"] = config
    with pytest.raises(RunError, match=message):
        case.execute()


def test_an_unsorted_list_merges_record_by_record() -> None:
    case = merge_case(plans_of("vmrgsort4", "a5")[0], 0, 2)
    lists = [
        [(struct.unpack("<I", struct.pack("<f", v))[0], n) for n, v in enumerate(values)]
        for values in ([1, 5, 3], [4, 2, 6])
    ]
    for k, records in enumerate(lists):
        put(case, f"src{k}", as_bytes("f32", records))
    case.args["count"], case.args["config"] = 3 | 3 << 16, 0x301
    check(case, as_bytes("f32", merged("f32", lists, False)[0]))


@pytest.mark.parametrize("name", ["vtranspose", "vsort32", "vbitsort", "vmrgsort4"])
def test_shadows_move_along(name: str) -> None:
    """A run in float64 writes the same bytes."""
    for plan in plans_of(name, "a5"):
        results: list[bytes] = []
        for port in (None, Doubles()):
            case = placed(plan, 3, **{f"src{k}": SRC + 256 * k for k in range(4)})
            if port is not None:
                case.core.port = port
            source = "src0" if name == "vmrgsort4" else "src"
            dtype = case.args[source].dtype
            values = np.sort(case.rng.standard_normal(256).astype(np.float32))[::-1]
            bits = values.view(np.uint32) if width(dtype) == 4 else values.astype(np.float16).view(np.uint16)
            codes: list[int] = bits.tolist()
            if name == "vmrgsort4":
                put(case, source, as_bytes(dtype, [(c, n) for n, c in enumerate(codes[:128])]))
                case.args["count"], case.args["config"] = 0x0020002000200020, 0xF01
            else:
                put(case, source, packed(dtype, codes))
            if name == "vbitsort":
                put(case, "indices", packed("u32", list(range(32))))
            case.execute()
            results.append(case.memory[:1024].tobytes())
        assert results[0] == results[1], shown(plan)


# -- programs ----------------------------------------------------------------------------------------------

_TOP = """
module attributes {pto.target_arch = "a5"} {
  func.func @top(%gx: !pto.ptr<f32, gm>, %gi: !pto.ptr<ui32, gm>, %gy: !pto.ptr<f32, gm>) {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %at_i = arith.constant 8192 : i64
    %at_ping = arith.constant 16384 : i64
    %at_pong = arith.constant 32768 : i64
    %len = arith.constant 8192 : i64
    %out = arith.constant 512 : i64
    %c0 = arith.constant 0 : index
    %groups = arith.constant 64 : index
    %x = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    %i = pto.castptr %at_i : i64 -> !pto.ptr<ui32, ub>
    %ping = pto.castptr %at_ping : i64 -> !pto.ptr<f32, ub>
    %pong = pto.castptr %at_pong : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %gx, %x, %zero, %len nburst(%one, %len, %len) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.mte_gm_ub %gi, %i, %zero, %len nburst(%one, %len, %len) : !pto.ptr<ui32, gm>, !pto.ptr<ui32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vbitsort %ping, %x, %i, %groups : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, !pto.ptr<ui32, ub>, index
@merges@
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %pong, %gy, %out nburst(%one, %out, %out) : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }
}
"""


def top_program() -> str:
    """The 64 greatest of 2048: lists of 32 are merged four by four, three times, between two buffers."""
    merges: list[str] = []
    for n, (source, target) in enumerate((("ping", "pong"), ("pong", "ping"), ("ping", "pong"))):
        length, repeat = 32 << 2 * n, 16 >> 2 * n
        p = "!pto.ptr<f32, ub>"
        merges += [
            "pto.barrier #pto.pipe<PIPE_V>",
            f"%count{n} = arith.constant {sum(length << 16 * k for k in range(4))} : i64",
            f"%config{n} = arith.constant {0xF00 | repeat} : i64",
            *(f"%l{n}{k} = arith.constant {2 * length * k} : index" for k in range(4)),
            *(f"%s{n}{k} = pto.addptr %{source}, %l{n}{k} : {p} -> {p}" for k in range(4)),
            f"pto.vmrgsort4 %{target}, %s{n}0, %s{n}1, %s{n}2, %s{n}3, %count{n}, %config{n} : {', '.join([p] * 5)}, i64, i64",
        ]  # fmt: skip
    return _TOP.replace("@merges@", "\n".join(f"    {line}" for line in merges))


@pytest.mark.parametrize("seed", range(3))
def test_top_of_a_row_is_that_of_the_tile_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((1, 2048)).astype(np.float32)
    if seed:
        x = np.round(x * 2)  # many are equal
    records = np.zeros(128, np.float32)
    result = pto.kernel(pto.parse(top_program()), engine="reference").run(
        x[0], np.arange(2048, dtype=np.uint32), records, sanitize="all"
    )
    assert result.ok and not result.diagnostics, result.diagnostics
    values, columns = np.zeros((1, 64), np.float32), np.zeros((1, 64), np.uint32)
    assert (
        pto.kernel(pto.parse(TILE_PROGRAM.read_text()), engine="reference")
        .run(x, values, columns, 1, 2048)
        .ok
    )
    assert (records[::2] == values[0]).all()
    assert (records.view(np.uint32)[1::2] == columns[0]).all()


_STATUS = """
module attributes {pto.target_arch = "a5"} {
  func.func @status(%gx: !pto.ptr<f32, gm>, %gy: !pto.ptr<f32, gm>, %gn: !pto.ptr<i16, gm>, %count: i64, %config: i64) {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %len = arith.constant 256 : i64
    %at = arith.constant 4096 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %x = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    %y = pto.castptr %at : i64 -> !pto.ptr<f32, ub>
    %x1 = pto.addptr %x, %c16 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
    %x2 = pto.addptr %x, %c32 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
    %x3 = pto.addptr %x, %c48 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %gx, %x, %zero, %len nburst(%one, %len, %len) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.mte_gm_ub %gy, %y, %zero, %len nburst(%one, %len, %len) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vmrgsort4 %y, %x, %x1, %x2, %x3, %count, %config : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, i64, i64
    pto.set_flag["PIPE_V", "PIPE_S", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_S", "EVENT_ID0"]
    %n0, %n1, %n2, %n3 = pto.get_vms4_sr : i16, i16, i16, i16
    pto.store_scalar %n0, %gn[%c0] : !pto.ptr<i16, gm>, i16
    pto.store_scalar %n1, %gn[%c1] : !pto.ptr<i16, gm>, i16
    pto.store_scalar %n2, %gn[%c2] : !pto.ptr<i16, gm>, i16
    pto.store_scalar %n3, %gn[%c3] : !pto.ptr<i16, gm>, i16
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %y, %gy, %len nburst(%one, %len, %len) : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }
}
"""


def run_merge(count: int, config: int, **options: Any) -> tuple[Any, Any, Any]:
    """Four lists of eight records whose scores fall from 40, 30, 20 and 10."""
    x = np.array([[10 * (4 - k) - n for n in range(8)] for k in range(4)], np.float32)
    records = np.zeros((32, 2), np.float32)
    records[:, 0] = x.ravel()
    records[:, 1] = np.arange(32, dtype=np.uint32).view(np.float32)
    y, counts = np.full((32, 2), -1, np.float32), np.full(4, -1, np.int16)
    result = pto.kernel(pto.parse(_STATUS), engine="reference").run(
        records.ravel(), y.ravel(), counts, count, config, **options
    )
    return y, counts, result


def test_program_that_stops_early() -> None:
    y, counts, result = run_merge(0x0008000800080008, 0x1F01, sanitize="all")
    assert result.ok and not result.diagnostics, result.diagnostics
    assert y[:8, 0].tolist() == [40 - n for n in range(8)]
    assert (y[8:] == -1).all()
    assert counts.tolist() == [8, 0, 0, 0]


def test_status_is_read_too_early() -> None:
    """The counts are written by pipe V: the scalar unit waits for it."""
    flags = [line for line in _STATUS.splitlines() if '"PIPE_V", "PIPE_S"' in line]
    text = _STATUS
    for line in flags:
        text = text.replace(line + "\n", "")
    records, y, counts = np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(4, np.int16)
    result = pto.kernel(pto.parse(text), engine="reference").run(
        records, y, counts, 0x0008000800080008, 0x1F01, sanitize="race"
    )
    assert [d.code for d in result.diagnostics] == ["PTO-E2201"]
    assert "get_vms4_sr" in result.diagnostics[0].message and "VMS4_SR" in result.diagnostics[0].message


def test_program_with_a_wrong_control_word() -> None:
    *_, result = run_merge(0x0008000800080008, 0x0501)
    (found,) = result.diagnostics
    assert "vmrgsort4: expects config to name two, three or four lists, got 0x501" in str(found)


def test_status_of_no_merge_is_undefined() -> None:
    """Without an early stop nothing fills the register that the program reads."""
    *_, result = run_merge(0x0008000800080008, 0x0F01, sanitize="undef")
    said = "\n".join(map(str, result.diagnostics))
    assert all(f"it reads %n{k}, which is undefined" in said for k in range(4)), said
