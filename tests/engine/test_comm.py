"""Communication against loops over indices in plain Python: copies, collectives, signals, groups."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto import isa
from pto.engine import elements
from pto.engine.memory import MemoryFault, View
from pto.engine.reference.handles import HANDLERS, Group
from pto.engine.reference.instr import IllegalInstruction, Instr
from pto.engine.reference.registry import find
from pto.ir.attrs import EnumAttr
from pto.ir.types import ViewType
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from .moving import attribute
from .programs import CONSTANTS, codes, program, run
from .rows import Array, Case, Doubles, assert_codes, every_plan, mixed_codes, random_codes

ROWS = (
    "tput", "tget", "tput_async", "tget_async", "build_async_session", "wait_async_event", "test_async_event", "tnotify",
    "ttest", "make_group", "tbroadcast", "treduce", "comm.tgather", "comm.tscatter",
)  # fmt: skip

Dims = tuple[int, ...]


@cache
def plans_of(name: str) -> list[Plan]:
    return list(every_plan(name, layouts=False))


def dtype_of(plan: Plan) -> str:
    found = plan.operands["dst" if "dst" in plan.operands else "src"][0]
    return str(found.dtype)  # type: ignore[attr-defined]


# --- views and their elements -----------------------------------------------------------------------------


def spread(dims: Dims, gaps: Dims) -> Dims:
    """Return strides with room between: `gaps` is the free room of every dimension beyond the one inside
    it."""
    strides: list[int] = []
    step = 1
    for d, gap in zip(reversed(dims), reversed(gaps), strict=True):
        step += gap
        strides.insert(0, step)
        step *= max(d, 1)
    return tuple(strides)


def make(case: Case, name: str, dims: Dims, strides: Dims | None, dtype: str, any_bits: bool = True) -> View:
    """A view a few elements into an array of its own, full of random elements."""
    strides = strides or spread(dims, (0,) * len(dims))
    extent = 1 + sum((d - 1) * s for d, s in zip(dims, strides, strict=True)) if 0 not in dims else 1
    bits = DTYPES[dtype].bits
    buffer = case.core.gm.add(name, np.zeros((extent + 16) * bits // 8 + 8, np.uint8))
    view = View(buffer, 8 * max(8, bits) // 8, dims, strides, dtype, None, name)
    buffer.data[:] = case.rng.integers(0, 256, buffer.data.size, np.uint8)
    if not any_bits:
        for index in indices(dims):
            put(view, index, int(random_codes(case.rng, dtype, (1, 1))[0, 0]))
    return view


def indices(dims: Dims) -> list[Dims]:
    return list(product(*(range(d) for d in dims)))


def _bit(view: View, index: Dims) -> int:
    at = sum(n * s for n, s in zip(index, view.strides, strict=True))
    return view.offset * 8 + at * DTYPES[view.dtype].bits


def get(view: View, index: Dims, memory: Array | None = None) -> int:
    """The code of one element, out of the bytes."""
    data = view.buffer.data if memory is None else memory
    at, bits = _bit(view, index), DTYPES[view.dtype].bits
    if bits == 4:
        return int(data[at // 8]) >> (at % 8) & 0xF
    return int.from_bytes(data[at // 8 : at // 8 + bits // 8].tobytes(), "little")


def put(view: View, index: Dims, code: int, memory: Array | None = None) -> None:
    data = view.buffer.data if memory is None else memory
    at, bits = _bit(view, index), DTYPES[view.dtype].bits
    if bits == 4:
        data[at // 8] = data[at // 8] & (0xF0 if at % 8 == 0 else 0x0F) | code << (at % 8)
    else:
        data[at // 8 : at // 8 + bits // 8] = np.frombuffer(code.to_bytes(bits // 8, "little"), np.uint8)


class Memory:
    """Expected contents of arrays: the initial values, and the writes of a test."""

    def __init__(self, *views: View) -> None:
        self.views = views
        self.copies = {id(v.buffer): v.buffer.data.copy() for v in views}

    def put(self, view: View, index: Dims, code: int) -> None:
        put(view, index, code, self.copies[id(view.buffer)])

    def check(self, what: object = "") -> None:
        for view in self.views:
            want, got = self.copies[id(view.buffer)], view.buffer.data
            bad = np.flatnonzero(want != got)
            assert not bad.size, f"{what}: byte {bad[0]} of {view.name} ({view.dtype})"


def execute(case: Case) -> Any:
    found = find(case.row)
    assert found is not None
    with np.errstate(all="ignore"):
        return found(Instr(case.op, case.args, case.core, "ALL"))


#: Extents, and the free room of each dimension in source and destination.
SHAPES: list[tuple[Dims, Dims, Dims]] = [
    ((5,), (0,), (2,)),
    ((3, 4), (0, 0), (0, 0)),
    ((4, 6), (3, 0), (1, 0)),
    ((2, 3, 4), (1, 2, 0), (0, 0, 1)),
    ((2, 1, 3, 2), (0, 0, 0, 0), (1, 1, 1, 0)),
    ((2, 2, 1, 3, 4), (4, 0, 2, 1, 0), (0, 3, 0, 0, 1)),
    ((1, 1, 1, 4, 3), (0, 0, 0, 0, 2), (0, 0, 0, 0, 0)),
    ((0, 4), (0, 0), (0, 0)),
    ((4, 0), (0, 0), (0, 0)),
    ((2, 0, 3, 4, 5), (0,) * 5, (0,) * 5),
]


# --- from one rank to another -----------------------------------------------------------------------------


def check_copy(plan: Plan, dims: Dims, source_gaps: Dims, target_gaps: Dims) -> None:
    case = Case(plan)
    dtype = dtype_of(plan)
    src = make(case, "src", dims, spread(dims, source_gaps), dtype)
    dst = make(case, "dst", dims, spread(dims, target_gaps), dtype)
    case.args |= {"src": src, "dst": dst}
    memory = Memory(src, dst)
    for index in indices(dims):
        memory.put(dst, index, get(src, index))
    execute(case)
    memory.check(f"{plan.row.name} {dims}")


@pytest.mark.parametrize("name", ["tput", "tget"])
def test_copies(name: str) -> None:
    for n, plan in enumerate(plans_of(name)):
        for shape in SHAPES if n < 2 else [SHAPES[n % len(SHAPES)], SHAPES[(3 * n + 1) % 7]]:
            check_copy(plan, *shape)


@given(dims=st.lists(st.integers(0, 3), min_size=1, max_size=5), data=st.data())
@examples(60)
def test_copies_of_any_shape(dims: list[int], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["tput", "tget"]))
    plans = plans_of(name)
    gaps = st.tuples(*[st.integers(0, 3)] * len(dims))
    check_copy(
        plans[data.draw(st.integers(0, len(plans) - 1))], tuple(dims), data.draw(gaps), data.draw(gaps)
    )


def test_a_copy_may_run_backwards_and_repeat_its_source() -> None:
    for strides in [(-6, 1), (0, 1), (6, -1), (-6, -1), (0, 0)]:
        case = Case(plans_of("tput")[0])
        src = make(case, "src", (4, 6), None, "f32")
        low = sum((d - 1) * s for d, s in zip(src.dims, strides, strict=True) if s < 0)
        src = View(src.buffer, src.offset - 4 * low, src.dims, strides, "f32", None, "src")
        dst = make(case, "dst", (4, 6), None, "f32")
        case.args |= {"src": src, "dst": dst}
        memory = Memory(src, dst)
        for index in indices((4, 6)):
            memory.put(dst, index, get(src, index))
        execute(case)
        memory.check(strides)


def test_tput_fills_a_corner_of_a_larger_tensor() -> None:
    """Every index of the source; extents of lower rank have ones in front."""
    for source, target in [((2, 3), (4, 5)), ((3,), (2, 2, 4)), ((2, 1, 3), (2, 4, 3)), ((1, 1, 2), (2,))]:
        case = Case(plans_of("tput")[0])
        src, dst = make(case, "src", source, None, "f32"), make(case, "dst", target, None, "f32")
        case.args |= {"src": src, "dst": dst}
        memory = Memory(src, dst)
        for index in indices((1,) * (5 - len(source)) + source):
            lead = index[: 5 - len(target)]
            assert not any(lead)
            memory.put(dst, index[5 - len(target) :], get(src, index[5 - len(source) :]))
        execute(case)
        memory.check(source)


@pytest.mark.parametrize("name", ["tput", "tget"])
@pytest.mark.parametrize(("source", "target"), [((4, 6), (3, 6)), ((4, 6), (4, 5)), ((2, 4, 6), (8, 6)),
                                                ((1, 1, 1, 1, 1, 2), (2,)), ((2,), (1, 1, 1, 1, 1, 2))])  # fmt: skip
def test_what_does_not_fit_is_refused(name: str, source: Dims, target: Dims) -> None:
    case = Case(plans_of(name)[0])
    case.args |= {
        "src": make(case, "src", source, None, "f32"),
        "dst": make(case, "dst", target, None, "f32"),
    }
    memory = Memory(case.args["src"], case.args["dst"])
    with pytest.raises(IllegalInstruction, match=r"expects %(src|dst) to"):
        execute(case)
    memory.check()


def test_tget_wants_equal_extents() -> None:
    case = Case(plans_of("tget")[0])
    case.args |= {
        "src": make(case, "src", (2, 3), None, "f32"),
        "dst": make(case, "dst", (4, 3), None, "f32"),
    }
    with pytest.raises(IllegalInstruction, match=r"hold 1x1x1x2x3 elements, but it has 1x1x1x4x3"):
        execute(case)


def test_outside_of_an_array() -> None:
    for name in ("tput", "tget", "tput_async", "tget_async"):
        for short in ("src", "dst"):
            case = Case(plans_of(name)[0])
            case.args |= {
                "src": make(case, "src", (1, 6), None, "f32"),
                "dst": make(case, "dst", (1, 6), None, "f32"),
            }
            case.args[short].offset = case.args[short].buffer.data.size - 8
            with pytest.raises(MemoryFault):
                execute(case)


def added(dtype: str, a: int, b: int) -> int:
    """The code of a sum: exact, rounded once; integers wrap."""
    d = DTYPES[dtype]
    if not d.is_float:
        return (a + b) % (1 << d.bits)
    x, y = encoding.decode(d, a), encoding.decode(d, b)
    if any(isinstance(v, float) for v in (x, y)):  # a special value, or a negative zero
        return encoding.encode(d, float(x) + float(y))
    total = x + y
    return encoding.encode(d, total if total or not (a & b) >> (d.bits - 1) else -0.0)


def test_atomic_add() -> None:
    """dst + src in the element type, rounded once."""
    for plan in plans_of("tput"):
        dtype = dtype_of(plan)
        if plan.isa != "cpu" and dtype not in ("f32", "f16", "bf16", "i32", "i16", "i8"):
            continue
        case = Case(plan)
        case.op.attrs = {**case.op.attrs, "atomicType": EnumAttr("atomic_type", "atomic_add")}
        src, dst = make(case, "src", (3, 7), (9, 1), dtype), make(case, "dst", (3, 7), None, dtype)
        fill = mixed_codes(case.rng, dtype, (3, 14))
        for n, index in enumerate(indices((3, 7))):
            put(src, index, int(fill.flat[2 * n]))
            put(dst, index, int(fill.flat[2 * n + 1]))
        case.args |= {"src": src, "dst": dst}
        want = [[added(dtype, get(dst, (r, c)), get(src, (r, c))) for c in range(7)] for r in range(3)]
        memory = Memory(src)
        execute(case)
        memory.check()
        got = [[get(dst, (r, c)) for c in range(7)] for r in range(3)]
        kind = elements.code_dtype(dtype)
        assert_codes(dtype, np.array(got, kind), np.array(want, kind), plan.isa)


@pytest.mark.parametrize("name", ["tput_async", "tget_async"])
def test_asynchronous_copies_are_complete_at_once(name: str) -> None:
    for n, plan in enumerate(plans_of(name)):
        dtype = dtype_of(plan)
        for dims, target in [((12,), (12,)), ((1, 1, 7), (1, 1, 7)), ((0,), (0,)), ((5,), (9,))][n % 2 :: 2]:
            case = Case(plan)
            src, dst = make(case, "src", dims, None, dtype), make(case, "dst", target, None, dtype)
            case.args |= {"src": src, "dst": dst, "session": "session"}
            memory = Memory(src, dst)
            for index in indices(dims):
                memory.put(dst, index, get(src, index))
            assert execute(case) == 0
            memory.check(name)
        case.args |= {
            "src": make(case, "src", (9,), None, dtype),
            "dst": make(case, "dst", (5,), None, dtype),
        }
        with pytest.raises(IllegalInstruction, match="expects %dst to hold"):
            execute(case)


def test_sessions_and_events() -> None:
    """Handle 0 has nothing pending: waiting and testing give true."""
    for plan in plans_of("build_async_session"):
        assert execute(Case(plan)) is not None
    for name in ("wait_async_event", "test_async_event"):
        for plan in plans_of(name):
            case = Case(plan)
            case.args |= {"event": 0, "session": "session"}
            assert execute(case) == 1


# --- collectives ------------------------------------------------------------------------------------------

COLLECTIVE = ("tbroadcast", "treduce", "comm.tgather", "comm.tscatter")
LOCAL = {"tbroadcast": "src", "treduce": "dst", "comm.tgather": "dst", "comm.tscatter": "src"}


def build(
    plan: Plan, local: Dims, member: Dims, ranks: int, root: int, gaps: bool, any_bits: bool = True
) -> Case:
    """A collective over `ranks` members; a form with a group value gets one."""
    case = Case(plan, seed=ranks + root)
    dtype = str(plan.operands[LOCAL[plan.row.name]][0].dtype)  # type: ignore[attr-defined]
    strides = spread(member, (2,) * len(member)) if gaps else None
    members = [make(case, f"member{n}", member, strides, dtype, any_bits) for n in range(ranks)]
    whole = spread(local, (1,) * len(local)) if gaps else None
    case.args[LOCAL[plan.row.name]] = make(case, "local", local, whole, dtype, any_bits)
    if "pg" in plan.operands:
        case.args["pg"] = Group(members, root)
    else:
        case.args["group"] = members
        attribute(case, "root", root)
    return case


def parts(case: Case) -> tuple[View, list[View]]:
    members = case.args["pg"].tensors if case.args.get("pg") is not None else case.args["group"]
    return case.args[LOCAL[case.row.name]], members


def settings_of(n: int) -> tuple[int, int, bool]:
    ranks = (2, 1, 3, 5)[n % 4]
    return ranks, n % ranks, n % 3 == 1


MEMBERS: list[Dims] = [
    (3, 4),
    (2, 5),
    (2, 2, 3),
    (2, 1, 2, 1, 3),
    (1, 4),
    (0, 4),
    (3, 0),
    (6,),
    (2, 2, 1, 2, 2),
]


def test_broadcast() -> None:
    for n, plan in enumerate(plans_of("tbroadcast")):
        dims = MEMBERS[n % len(MEMBERS)]
        case = build(plan, dims, tuple(d + n % 2 for d in dims), *settings_of(n))
        src, members = parts(case)
        memory = Memory(src, *members)
        for member, index in product(members, indices(dims)):
            memory.put(member, index, get(src, index))
        execute(case)
        memory.check(dims)


def stacked(member: Dims, ranks: int, more: int) -> Dims:
    """Extents of a tensor that holds the rows of all members, and some more."""
    rows = (member if len(member) > 1 else (1, *member))[-2]
    return (*member[:-2], rows * ranks + more, member[-1])


def moved(index: Dims, rank: int, member: Dims) -> Dims:
    """The index in the stacked tensor."""
    if len(member) == 1:
        return rank, index[0]
    return (*index[:-2], index[-2] + rank * member[-2], index[-1])


@pytest.mark.parametrize("name", ["comm.tgather", "comm.tscatter"])
def test_stacking_and_splitting(name: str) -> None:
    for n, plan in enumerate(plans_of(name)):
        member = MEMBERS[n % len(MEMBERS)]
        ranks, root, gaps = settings_of(n)
        case = build(plan, stacked(member, ranks, n % 2 * 3), member, ranks, root, gaps)
        local, members = parts(case)
        memory = Memory(local, *members)
        for (rank, view), index in product(enumerate(members), indices(member)):
            at = moved(index, rank, member)
            if name == "comm.tgather":
                memory.put(local, at, get(view, index))
            else:
                memory.put(view, index, get(local, at))
        execute(case)
        memory.check(member)


def reduced(how: str, dtype: str, chain: list[int]) -> int:
    """Left to right, as tadd, tmax and tmin do it."""
    acc, *others = chain
    for code in others:
        x, y = (encoding.decode(DTYPES[dtype], c) for c in (acc, code))
        if how == "Sum":
            acc = added(dtype, acc, code)
        elif how == "Max":
            acc = code if x < y else acc
        else:
            acc = code if y < x else acc
    return acc


def check_reduce(plan: Plan, how: str, member: Dims, ranks: int, root: int, gaps: bool) -> None:
    case = build(plan, member, member, ranks, root, gaps)
    case.op.attrs = {**case.op.attrs, "reduceOp": EnumAttr("reduce_op", how)}
    dst, members = parts(case)
    order = [members[root], *members[:root], *members[root + 1 :]]
    want = [reduced(how, dst.dtype, [get(m, index) for m in order]) for index in indices(member)]
    memory = Memory(dst, *members)
    execute(case)
    got = [get(dst, index) for index in indices(member)]
    kind = elements.code_dtype(dst.dtype)
    assert_codes(dst.dtype, np.array([got], kind), np.array([want], kind), (how, plan.isa, ranks, root))
    for index, code in zip(indices(member), got, strict=True):
        memory.put(dst, index, code)
    memory.check(how)


@pytest.mark.parametrize("how", ["Sum", "Max", "Min"])
def test_reduce(how: str) -> None:
    for n, plan in enumerate(plans_of("treduce")):
        check_reduce(plan, how, MEMBERS[n % len(MEMBERS)], *settings_of(n))


@given(
    n=st.integers(0, 80), how=st.sampled_from(["Sum", "Max", "Min"]), ranks=st.integers(1, 5), data=st.data()
)
@examples(60)
def test_reduce_in_the_order_of_ranks_from_any_root(
    n: int, how: str, ranks: int, data: st.DataObject
) -> None:
    plans = plans_of("treduce")
    root = data.draw(st.integers(0, ranks - 1))
    check_reduce(plans[n % len(plans)], how, (4, 3), ranks, root, data.draw(st.booleans()))


def test_the_order_of_a_sum_shows() -> None:
    """(big + -big) + small is small, (big + small) + -big is zero: the root comes first, then ranks 0, 1, .."""
    plan = next(p for p in plans_of("treduce") if dtype_of(p) == "f32" and "pg" not in p.operands)
    values = [1.0, 2.0**60, -(2.0**60)]
    for root, want in [(0, 0.0), (1, 0.0), (2, 0.0)]:
        case = build(plan, (1, 1), (1, 1), 3, root, False)
        dst, members = parts(case)
        for member, value in zip(members, values, strict=True):
            put(member, (0, 0), encoding.encode(DTYPES["f32"], value))
        execute(case)
        assert encoding.decode(DTYPES["f32"], get(dst, (0, 0))) == want
    case = build(plan, (1, 1), (1, 1), 3, 1, False)
    dst, members = parts(case)
    for member, value in zip(members, (-(2.0**60), 2.0**60, 1.0), strict=True):
        put(member, (0, 0), encoding.encode(DTYPES["f32"], value))
    execute(case)
    assert encoding.decode(DTYPES["f32"], get(dst, (0, 0))) == 1.0


@pytest.mark.parametrize("how", ["Max", "Min"])
def test_zeros_of_either_sign_are_equal(how: str) -> None:
    """So the one that came first stays, as tmax and tmin have it."""
    plan = next(p for p in plans_of("treduce") if dtype_of(p) == "f32" and "pg" not in p.operands)
    for root in (0, 1):
        case = build(plan, (1, 1), (1, 1), 2, root, False)
        case.op.attrs = {**case.op.attrs, "reduceOp": EnumAttr("reduce_op", how)}
        dst, members = parts(case)
        zeros = (0, 1 << 31)
        for member, code in zip(members, zeros, strict=True):
            put(member, (0, 0), code)
        execute(case)
        assert get(dst, (0, 0)) == zeros[root]


@pytest.mark.parametrize("name", COLLECTIVE)
def test_roots_outside_the_group(name: str) -> None:
    for plan in plans_of(name)[::7]:
        for root in (3, -1):
            case = build(plan, (6, 4), (2, 4), 3, 0, False)
            if "pg" in plan.operands:
                case.args["pg"].root = root
            else:
                attribute(case, "root", root)
            with pytest.raises(IllegalInstruction, match=f"root is {root}, but the group has 3 members"):
                execute(case)


@pytest.mark.parametrize("name", COLLECTIVE)
def test_two_roots(name: str) -> None:
    """A group value brings its root; an attribute may only repeat it."""
    plan = next(p for p in plans_of(name) if "pg" in p.operands)
    local = (2, 4) if name in ("tbroadcast", "treduce") else (6, 4)
    case = build(plan, local, (2, 4), 3, 2, False)
    attribute(case, "root", 2)
    execute(case)
    attribute(case, "root", 1)
    with pytest.raises(IllegalInstruction, match="root is 1, but the group was made with root 2"):
        execute(case)


def test_the_root_of_a_group_value_is_the_first_operand() -> None:
    """A NaN of the first operand of a maximum stays, one of the others is dropped."""
    plan = next(p for p in plans_of("treduce") if dtype_of(p) == "f32" and "pg" in p.operands)
    for root in range(3):
        case = build(plan, (1, 1), (1, 1), 3, root, False)
        case.op.attrs = {**case.op.attrs, "reduceOp": EnumAttr("reduce_op", "Max")}
        dst, members = parts(case)
        for n, member in enumerate(members):
            put(member, (0, 0), encoding.encode(DTYPES["f32"], float("nan") if n == 1 else float(n)))
        execute(case)
        got = encoding.decode(DTYPES["f32"], get(dst, (0, 0)))
        assert got != got if root == 1 else got == 2


@pytest.mark.parametrize("name", COLLECTIVE)
@pytest.mark.parametrize("change", ["shape", "strides", "type", "local", "local type", "rank"])
def test_tensors_that_do_not_belong_together(name: str, change: str) -> None:
    plan = plans_of(name)[0]
    local = (2, 4) if name in ("tbroadcast", "treduce") else (6, 4)
    case = build(plan, local, (2, 4), 3, 0, False)
    _, members = parts(case)
    if change == "shape":
        members[1] = make(case, "other", (2, 3), None, "f32")
    elif change == "strides":
        members[1] = make(case, "other", (2, 4), (9, 1), "f32")
    elif change == "type":
        members[2] = make(case, "other", (2, 4), None, "i32")
    elif change == "local type":
        case.args[LOCAL[name]] = make(case, "other", local, None, "i32")
    elif change == "rank":
        case.args[LOCAL[name]] = make(case, "other", (1, 1, 1, 1, *local), None, "f32")
    else:
        bad = (3, 4) if name in ("tbroadcast", "treduce") else (5, 4)
        case.args[LOCAL[name]] = make(case, "other", bad, None, "f32")
    memory = Memory(parts(case)[0], *parts(case)[1])
    with pytest.raises(IllegalInstruction, match="expects"):
        execute(case)
    memory.check()


def test_strides_of_single_indices_do_not_matter() -> None:
    case = build(plans_of("tbroadcast")[0], (1, 4), (1, 4), 2, 0, False)
    src, members = parts(case)
    members[1] = make(case, "other", (1, 4), (99, 1), "f32")
    execute(case)
    assert [get(members[1], (0, n)) for n in range(4)] == [get(src, (0, n)) for n in range(4)]


@pytest.mark.parametrize("name", ["tput", "tget", *COLLECTIVE])
def test_in_a_shadow_run(name: str) -> None:
    """Floats arrive as float64 and are written as such."""
    for plan in plans_of(name)[::3]:
        case = Case(plan)
        if name in COLLECTIVE:
            local = (3, 4) if name in ("tbroadcast", "treduce") else (6, 4)
            case = build(plan, local, (3, 4), 2, 1, True, any_bits=False)
        else:
            dtype = dtype_of(plan)
            case.args |= {n: make(case, n, (3, 4), None, dtype, False) for n in ("src", "dst")}
        views = [v for v in (*case.args.values(), *(case.args.get("group") or [])) if isinstance(v, View)]
        views += case.args["pg"].tensors if case.args.get("pg") is not None else []
        before = [v.buffer.data.copy() for v in views]
        execute(case)
        plain = [v.buffer.data.copy() for v in views]
        for view, data in zip(views, before, strict=True):
            view.buffer.data[:] = data
        case.core.port = Doubles()
        execute(case)
        if name != "treduce" or len(parts(case)[1]) == 2:  # one rounding either way
            for view, data in zip(views, plain, strict=True):
                assert np.array_equal(view.buffer.data, data), (name, view.dtype)


def test_groups() -> None:
    row = isa.row("make_group")
    assert row is not None
    for plan in plans_of("make_group"):
        case = Case(plan)
        tensors = [make(case, f"t{n}", (2, 2), None, "f32") for n in range(3)]
        attribute(case, "root", 2)
        group = HANDLERS["make_group"](case.core, case.op, {"tensors": tensors})
        assert list(group.tensors) == tensors and group.root == 2
        assert isinstance(plan.operands["tensors"][0], ViewType)


# --- signals ----------------------------------------------------------------------------------------------


def signed(code: int) -> int:
    return code - (1 << 32) if code >> 31 else code


@given(
    old=st.integers(0, 2**32 - 1), value=st.integers(-(2**31), 2**31 - 1), add=st.booleans(),
    dims=st.sampled_from([(1,), (1, 1), (2, 3), (2, 1, 1, 2, 2)]),
)  # fmt: skip
@examples(60)
def test_notify_writes_the_first_element(old: int, value: int, add: bool, dims: Dims) -> None:
    case = Case(plans_of("tnotify")[0])
    signal = make(case, "signal", dims, spread(dims, (1,) * len(dims)), "i32")
    first = (0,) * len(dims)
    put(signal, first, old)
    case.args |= {"signal": signal, "value": value}
    case.op.attrs = {**case.op.attrs, "notifyOp": EnumAttr("notify_op", "AtomicAdd" if add else "Set")}
    memory = Memory(signal)
    memory.put(signal, first, ((old if add else 0) + value) % (1 << 32))
    execute(case)
    memory.check()


def test_a_signal_without_elements() -> None:
    case = Case(plans_of("tnotify")[0])
    case.args |= {"signal": make(case, "signal", (0, 4), None, "i32"), "value": 1}
    memory = Memory(case.args["signal"])
    with pytest.raises(IllegalInstruction, match="to have an element, got 0x4"):
        execute(case)
    memory.check()


COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
}  # fmt: skip


@pytest.mark.parametrize("how", COMPARE)
@given(data=st.data(), dims=st.lists(st.integers(0, 3), min_size=1, max_size=5))
@examples(40)
def test_ttest_compares_every_element(how: str, data: st.DataObject, dims: list[int]) -> None:
    number = st.one_of(st.integers(-2, 2), st.sampled_from([-(2**31), 2**31 - 1]))
    shape = tuple(dims)
    case = Case(plans_of("ttest")[0])
    signal = make(
        case, "signal", shape, spread(shape, data.draw(st.tuples(*[st.integers(0, 2)] * len(shape)))), "i32"
    )
    wanted, usual = data.draw(number), data.draw(number)
    for index in indices(shape):
        put(signal, index, (data.draw(number) if data.draw(st.integers(0, 9)) == 0 else usual) % (1 << 32))
    case.args |= {"signal": signal, "cmpValue": wanted}
    case.op.attrs = {**case.op.attrs, "cmp": EnumAttr("wait_cmp", how)}
    memory = Memory(signal)
    want = all(COMPARE[how](signed(get(signal, index)), wanted) for index in indices(shape))
    assert execute(case) == int(want)
    memory.check()


# --- whole programs ---------------------------------------------------------------------------------------


def view(name: str, pointer: str, rows: int, cols: int, type: str, at: int = 0) -> str:
    """A dense view `%NAME` of a pointer argument, `at` rows down."""
    return f"""%{name}_a = arith.constant {at} : index
    %{name}_r = arith.constant {rows} : index
    %{name}_e = arith.constant {rows + at} : index
    %{name}_c = arith.constant {cols} : index
    %{name}_v = pto.make_tensor_view %{pointer}, shape = [%{name}_e, %{name}_c], strides = [%{name}_c, %c1] : !pto.tensor_view<?x?x{type}>
    %{name} = pto.partition_view %{name}_v, offsets = [%{name}_a, %c0], sizes = [%{name}_r, %{name}_c] : !pto.tensor_view<?x?x{type}> -> !pto.partition_tensor_view<{rows}x{cols}x{type}>"""


V = "!pto.partition_tensor_view<2x8xf32>"
LINE = "!pto.partition_tensor_view<1x16xf32>"


def test_a_program_of_all_collectives() -> None:
    """Three ranks in one array: scatter, reduce, gather, broadcast, with a group value and its root."""
    tall = "!pto.partition_tensor_view<6x8xf32>"
    members = "\n".join(view(f"m{n}", "ranks", 2, 8, "f32", 2 * n) for n in range(3))
    body = f"""{CONSTANTS}
    {view("whole", "x", 6, 8, "f32")}
    {view("sum", "y", 2, 8, "f32")}
    {view("all", "z", 6, 8, "f32")}
    {members}
    %g = pto.make_group(%m0, %m1, %m2 : {V}, {V}, {V}) {{root = 1 : i32}} -> !pto.group<3>
    pto.comm.tscatter %g, %whole : (!pto.group<3>, {tall})
    pto.treduce %g, %sum {{op = #pto.reduce_op<Max>}} : (!pto.group<3>, {V})
    pto.comm.tgather %g, %all : (!pto.group<3>, {tall})
    pto.tbroadcast %g, %sum : (!pto.group<3>, {V})"""
    x = np.random.default_rng(3).standard_normal((6, 8)).astype(np.float32)
    ranks, y, z = np.zeros((6, 8), np.float32), np.zeros((2, 8), np.float32), np.zeros((6, 8), np.float32)
    arguments = ", ".join(f"%{n}: !pto.ptr<f32>" for n in ("x", "ranks", "y", "z"))
    for sanitize in ("", "all"):
        result = run(program(body, arguments), x, ranks, y, z, sanitize=sanitize)
        assert result.ok, result.diagnostics
        assert np.array_equal(z, x)
        assert np.array_equal(y, x.reshape(3, 2, 8).max(axis=0))
        assert np.array_equal(ranks.reshape(3, 2, 8), np.stack([y] * 3))


def test_a_program_of_copies_and_events() -> None:
    body = f"""{CONSTANTS}
    {view("a", "x", 2, 8, "f32")}
    {view("b", "y", 2, 8, "f32")}
    {view("c", "x", 1, 16, "f32")}
    {view("d", "z", 1, 16, "f32")}
    %t = pto.alloc_tile : !pto.tile_buf<vec, 1x256xi8>
    %s = pto.build_async_session(%t, %w : !pto.tile_buf<vec, 1x256xi8>, !pto.ptr<i8>) -> !pto.async_session
    pto.tput %b, %a : ({V}, {V})
    pto.tput %b, %a {{atomicType = #pto.atomic_type<atomic_add>}} : ({V}, {V})
    %e = pto.tput_async(%d, %c, %s : {LINE}, {LINE}, !pto.async_session) -> !pto.async_event
    %ok = pto.wait_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1
    %too = pto.test_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1
    %both = arith.andi %ok, %too : i1
    %n = arith.extui %both : i1 to i32
    pto.store_scalar %n, %f[%c0] : !pto.ptr<i32>, i32"""
    arguments = "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<f32>, %w: !pto.ptr<i8>, %f: !pto.ptr<i32>"
    x = np.arange(16, dtype=np.float32)
    y, z, w, f = (
        np.zeros(16, np.float32),
        np.zeros(16, np.float32),
        np.zeros(8, np.int8),
        np.zeros(1, np.int32),
    )
    result = run(program(body, arguments), x, y, z, w, f)
    assert result.ok, result.diagnostics
    assert np.array_equal(y, 2 * x) and np.array_equal(z, x) and f[0] == 1


def test_wrong_shapes_of_a_run_are_diagnostics() -> None:
    """Extents that are known at run time only."""
    body = f"""{CONSTANTS}
    %a = pto.make_tensor_view %x, shape = [%n, %c4], strides = [%c4, %c1] : !pto.tensor_view<?x?xf32>
    %b = pto.make_tensor_view %y, shape = [%c2, %c4], strides = [%c4, %c1] : !pto.tensor_view<?x?xf32>
    pto.tput %b, %a : (!pto.tensor_view<?x?xf32>, !pto.tensor_view<?x?xf32>)"""
    text = program(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index")
    for rows, want in [(2, []), (1, []), (0, []), (3, ["PTO-E2102"])]:
        y = np.zeros(8, np.float32)
        assert codes(run(text, np.ones(12, np.float32), y, rows)) == want
        assert y.sum() == (4 * rows if not want else 0)


def test_signals_of_a_program() -> None:
    signal = "!pto.partition_tensor_view<1x2xi32>"
    body = f"""{CONSTANTS}
    {view("s", "x", 1, 2, "i32")}
    %v = arith.constant -3 : i32
    pto.tnotify(%s, %v : {signal}, i32) {{notifyOp = #pto.notify_op<AtomicAdd>}}
    %r = pto.ttest(%s, %v : {signal}, i32) {{cmp = #pto.wait_cmp<ge>}} -> i1
    %n = arith.extui %r : i1 to i32
    pto.store_scalar %n, %y[%c0] : !pto.ptr<i32>, i32"""
    for x, want in [([0, 0], 1), ([-1, 5], 0), ([1, -4], 0), ([2, -3], 1)]:
        out, memory = np.full(1, -1, np.int32), np.array(x, np.int32)
        result = run(program(body, "%x: !pto.ptr<i32>, %y: !pto.ptr<i32>"), memory, out)
        assert result.ok, result.diagnostics
        assert out[0] == want and memory.tolist() == [x[0] - 3, x[1]]


@pytest.mark.parametrize("what", ["twait", "ttest"])
def test_a_signal_outside_of_its_array_is_a_diagnostic(what: str) -> None:
    signal = "!pto.partition_tensor_view<1x9xi32>"
    result = "%r = " if what == "ttest" else ""
    after = " -> i1" if what == "ttest" else ""
    body = f"""{CONSTANTS}
    {view("s", "x", 1, 9, "i32")}
    %v = arith.constant 0 : i32
    {result}pto.{what}(%s, %v : {signal}, i32) {{cmp = #pto.wait_cmp<eq>}}{after}"""
    assert codes(run(program(body, "%x: !pto.ptr<i32>"), np.zeros(4, np.int32))) == ["PTO-E2101"]
