"""Vecscopes: one item of pipe V with the values of its launch, and what orders the accesses inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.each import together

import pto
from pto.engine.sanitize.vecscope import orders

ROWS = ("vecscope", "strict_vecscope", "mem_bar")

KERNEL = """
!v = !pto.vreg<64xf32>
!m = !pto.mask<b32>
!ub = !pto.ptr<f32, ub>
!gm = !pto.ptr<f32>
module attributes {{pto.target_arch = "{arch}"}} {{
  func.func private @twice(%n: index) -> index {{
    %two = arith.constant 2 : index
    %r = arith.muli %n, %two : index
    return %r : index
  }}
  func.func @k(%x: !gm, %y: !gm, %f: f32) attributes {{pto.entry}} {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %vl = arith.constant 64 : index
    %n = arith.constant 256 : index
    %a_at = arith.constant 0 : i64
    %b_at = arith.constant 4096 : i64
    %l2 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %len = arith.constant 1024 : i64
    %a = pto.castptr %a_at : i64 -> !ub
    %b = pto.castptr %b_at : i64 -> !ub
    pto.mte_gm_ub %x, %a, %l2, %len nburst(%i1, %len, %len) : !gm, !ub, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
{body}
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %b, %y, %len nburst(%i1, %len, %len) : !ub, !gm, i64, i64, i64, i64
    return
  }}
}}
"""

ALL = '%all = pto.pset_b32 "PAT_ALL" : !m'


def load(name: str, pointer: str = "%a", at: str = "%i") -> str:
    return f"%{name} = pto.vlds {pointer}[{at}] : !ub -> !v"


def store(name: str, pointer: str = "%b", at: str = "%i") -> str:
    return f'pto.vsts %{name}, {pointer}[{at}], %all {{dist = "NORM_B32"}} : !v, !ub, !m'


def loop(*lines: str) -> str:
    return "\n".join(["scf.for %i = %zero to %n step %vl {", *lines, "}"])


def scope(*lines: str) -> str:
    return "\n".join(["pto.vecscope {", ALL, *lines, "}"])


def kernel(body: str, arch: str = "a5") -> Any:
    return pto.kernel(pto.parse(KERNEL.format(body=body, arch=arch)), engine="reference")


def run(body: str, f: float = 1.5, arch: str = "a5", **options: Any) -> tuple[Any, Any, list[str]]:
    """Return the input, the output, and the codes of the findings."""
    x = np.arange(256, dtype=np.float32)
    y = np.zeros_like(x)
    result = kernel(body, arch).run(x, y, f, **options)
    return x, y, [d.code for d in result.diagnostics]


SCALED = loop(load("v"), "%s = pto.vmuls %v, %f, %all : !v, f32, !m -> !v", store("s"))


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_runs_whenever_the_pipe_gets_to_it(seed: int | None) -> None:
    x, y, found = run(scope(SCALED), schedule=seed)
    assert not found and (y == x * 1.5).all()


@pytest.mark.parametrize("seed", range(12))
def test_keeps_the_values_of_its_launch(seed: int) -> None:
    """The scalar unit launches one interval per iteration and goes on; each has its own counter."""
    body = "\n".join(
        [
            "scf.for %i = %zero to %n step %vl {",
            scope(load("v"), "%s = pto.vadds %v, %f, %all : !v, f32, !m -> !v", store("s")),
            "}",
        ]
    )
    x, y, found = run(body, schedule=seed)
    assert not found and (y == x + 1.5).all()


def test_strict_form_sees_its_arguments_only() -> None:
    lines = [
        "pto.strict_vecscope(%a, %b, %zero, %n, %vl, %f) {",
        "^bb0(%p: !ub, %q: !ub, %from: index, %to: index, %by: index, %by_f: f32):",
        ALL,
        "scf.for %i = %from to %to step %by {",
        load("v", "%p"),
        "%s = pto.vmuls %v, %by_f, %all : !v, f32, !m -> !v",
        store("s", "%q"),
        "}",
        "} : (!ub, !ub, index, index, index, f32) -> ()",
    ]
    x, y, found = run("\n".join(lines), sanitize="all")
    assert not found and (y == x * 1.5).all()


def test_lowered_loop_is_the_same_interval() -> None:
    body = "\n".join(["scf.for %t = %zero to %one step %one {", ALL, SCALED, "} {llvm.loop.aivector_scope}"])
    x, y, found = run(body, sanitize="all")
    assert not found and (y == x * 1.5).all()
    assert run(body, schedule=3)[2] == []


def test_scalar_functions_may_be_called_inside() -> None:
    inner = loop(
        "%half = arith.divui %i, %two : index",
        "%j = func.call @twice(%half) : (index) -> index",
        load("v", at="%j"),
        store("v", at="%j"),
    )
    x, y, found = run(f"%two = arith.constant 2 : index\n{scope(inner)}", sanitize="all")
    assert not found and (y == x).all()


def test_registers_are_carried_and_exchanged_by_loops() -> None:
    """Two carried registers swap places in every iteration: each is a value of its own, not a storage."""
    body = scope(
        load("p", at="%zero"),
        load("q", at="%vl"),
        "%u, %w = scf.for %k = %zero to %n step %vl iter_args(%c = %p, %d = %q) -> (!v, !v) {",
        "%t = pto.vadd %c, %d, %all : !v, !v, !m -> !v",
        "scf.yield %d, %t : !v, !v",
        "}",
        store("u", at="%zero"),
        store("w", at="%vl"),
        "%z = pto.vsub %u, %u, %all : !v, !v, !m -> !v",
        "%c128 = arith.constant 128 : index",
        "%c192 = arith.constant 192 : index",
        store("z", at="%c128"),
        store("z", at="%c192"),
    )
    choices: list[dict[str, Any]] = [{}, {"sanitize": "all"}, {"shadow": "f64"}]
    for options in choices:
        x, y, found = run(body, **options)
        c, d = x[:64], x[64:128]
        for _ in range(4):
            c, d = d, c + d
        assert not found and (y[:64] == c).all() and (y[64:128] == d).all()


@pytest.mark.parametrize("options", [{}, {"sanitize": "all"}, {"schedule": 3}])
def test_register_keeps_what_it_loaded(options: dict[str, Any]) -> None:
    """Overwriting the bytes a register came from does not reach the register."""
    body = scope(
        loop(
            load("v"),
            "%z = pto.vbr %f : f32 -> !v",
            'pto.mem_bar "VLD_VST"',
            store("z", "%a"),
            store("v"),
        )
    )
    x, y, found = run(body, **options)
    assert not found and (y == x).all()


def test_endless_loop_ends_at_the_limit() -> None:
    body = scope(
        "scf.while : () -> () {",
        "%true = arith.constant 1 : i1",
        "scf.condition(%true)",
        "} do {",
        "scf.yield",
        "}",
    )
    assert run(body, max_steps=50_000)[2] == ["PTO-E2106"]


def test_problem_is_reported_where_it_is() -> None:
    text = KERNEL.format(body=scope(loop(load("v", at="%bad"), store("v"))), arch="a5")
    text = text.replace("%zero = arith", "%bad = arith.constant 1 : index\n    %zero = arith")
    x = np.zeros(256, np.float32)
    (found,) = pto.kernel(pto.parse(text), engine="reference").run(x, x.copy(), 1.0).diagnostics
    assert found.code == "PTO-E2102" and "vlds" in found.message and found.span is not None
    assert "pto.vlds" in text.splitlines()[found.span.place[0] - 1]


def test_two_intervals_overlap_where_the_pipe_does() -> None:
    """On A2A3 the ends of vector work overlap: a barrier orders two intervals. A5 keeps the order."""
    first, second = scope(loop(load("v"), store("v"))), scope(loop(load("v", "%b"), store("v")))
    assert run(f"{first}\n{second}", arch="a5", sanitize="all")[2] == []
    assert run(f"{first}\n{second}", arch="a3", sanitize="all")[2] == ["PTO-E2201"]
    assert run(f"{first}\npto.pipe_barrier[PIPE_V]\n{second}", arch="a3", sanitize="all")[2] == []


# -- mem_bar -----------------------------------------------------------------------------------------------

KINDS = (
    "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST",
    "SV_ALL", "ST_VLD", "LD_VST", "ST_VST", "SS_ALL", "ST_LD", "LD_ST", "ST_ST",
)  # fmt: skip

#: Pairs of accesses to the same bytes that need a barrier, as instructions.
PAIRS = {
    ("VST", "VLD"): (store("p", at="%zero"), load("w", "%b", "%zero")),
    ("VLD", "VST"): (load("w", "%b", "%zero"), store("p", at="%zero")),
    ("ST", "VLD"): ("pto.store_scalar %f, %b[%zero] : !ub, f32", load("w", "%b", "%zero")),
    ("VLD", "ST"): (load("w", "%b", "%zero"), "pto.store_scalar %f, %b[%zero] : !ub, f32"),
    ("VST", "LD"): (store("p", at="%zero"), "%w = pto.load_scalar %b[%zero] : !ub -> f32"),
    ("LD", "VST"): ("%w = pto.load_scalar %b[%zero] : !ub -> f32", store("p", at="%zero")),
    ("VST", "ST"): (store("p", at="%zero"), "pto.store_scalar %f, %b[%zero] : !ub, f32"),
    ("ST", "VST"): ("pto.store_scalar %f, %b[%zero] : !ub, f32", store("p", at="%zero")),
}
FILL = scope(loop(load("v"), store("v")))


@together("kind", [None, *KINDS])
@together("pair", PAIRS)
def test_barrier_orders_what_its_name_says(pair: tuple[str, str], kind: str | None) -> None:
    first, second = PAIRS[pair]
    bar = f'pto.mem_bar "{kind}"' if kind else ""
    _, _, found = run(f"{FILL}\n{scope(load('p', at='%zero'), first, bar, second)}", sanitize="race")
    words = {"VV": "V V", "VS": "V S", "SV": "S V", "SS": "S S"}
    unit = " ".join("V" if w.startswith("V") else "S" for w in pair)
    ordered = kind == "_".join(pair) or (
        kind is not None and words.get(kind[:2]) == unit and kind[2:] == "_ALL"
    )
    assert found == ([] if ordered else ["PTO-E2206"])


@pytest.mark.parametrize("body", [
    (store("p", at="%zero"), store("p", at="%zero")),
    (load("w", at="%zero"), load("z", at="%zero")),
    ("pto.store_scalar %f, %b[%zero] : !ub, f32", "%w = pto.load_scalar %b[%zero] : !ub -> f32"),
    (load("w", "%b", "%zero"), store("w", at="%zero")),
    (load("w", "%b", "%zero"), "%e = pto.vexp %w, %all : !v, !m -> !v", store("e", at="%zero")),
    (store("p", at="%zero"), load("w", "%b", "%vl")),
], ids=["stores", "loads", "scalars", "same register", "through a register", "other bytes"])  # fmt: skip
def test_what_needs_no_barrier(body: tuple[str, ...]) -> None:
    assert run(f"{FILL}\n{scope(load('p', at='%zero'), *body)}", sanitize="race")[2] == []


def test_an_instruction_reads_before_it_writes() -> None:
    """A transposition in place needs no barrier against itself; what follows does."""
    place = "%h = pto.castptr %b : !ub -> !pto.ptr<f16, ub>\n%none = arith.constant 0 : i64"
    turn = "pto.vtranspose %h, %h, %none : !pto.ptr<f16, ub>, !pto.ptr<f16, ub>, i64"
    for lines, reports in (([turn], 0), ([turn, turn], 1), ([turn, load("v", "%b", "%zero")], 1)):
        assert len(run(f"{place}\n{FILL}\n{scope(*lines)}", sanitize="race")[2]) == reports


@pytest.mark.parametrize("bar", ["VST_VLD", "VV_ALL", "VLD_VST", "VST_VST", None])
def test_a_value_that_went_through_memory_is_still_ordered(bar: str | None) -> None:
    """load - store elsewhere - barrier - load there - store back: the first load is done long before."""
    there = "%t = pto.addptr %b, %n : !ub -> !ub"
    rest = (
        f'pto.mem_bar "{bar}"' if bar else "",
        load("z", "%t", "%zero"),
        store("z", "%b", "%zero"),
    )
    inside = scope(load("w", "%b", "%zero"), store("w", "%t", "%zero"), *rest)
    found = run(f"{there}\n{FILL}\n{inside}", sanitize="race")[2]
    assert len(found) == {"VST_VLD": 0, "VV_ALL": 0, "VLD_VST": 1}.get(str(bar), 2)
    # stores elsewhere are unrelated to the load
    inside = scope(load("p", at="%zero"), load("w", "%b", "%zero"), store("p", "%t", "%zero"), *rest)
    found = run(f"{there}\n{FILL}\n{inside}", sanitize="race")[2]
    assert len(found) == {"VST_VLD": 1, "VV_ALL": 0, "VLD_VST": 1}.get(str(bar), 2)


def test_program_order_is_enough_on_the_cpu_target() -> None:
    body = scope(loop(load("v"), store("v")), loop(load("w", "%b"), store("w")))
    assert run(body, arch="cpu", sanitize="race")[2] == []
    assert run(body, arch="a5", sanitize="race")[2] == ["PTO-E2206"]


def test_pointers_that_share_bytes_are_told_so_before_any_barrier() -> None:
    """Two of different addresses of which one reaches into the other; not two ways to the same address."""
    y = np.zeros(256, np.float32)
    for address, at, begins in (
        (3072, "%n", "%b begins at 0x1000 and %c at 0xc00, and the bytes used from them overlap: "),
        (4096, "%zero", "put 'pto.mem_bar \"VST_VLD\"'"),
    ):
        place = f"%at = arith.constant {address} : i64\n%c = pto.castptr %at : i64 -> !ub"
        body = scope(load("v", at="%zero"), store("v", at="%zero"), load("w", "%c", at))
        (found,) = kernel(f"{place}\n{FILL}\n{body}").run(y, y.copy(), 1.5, sanitize="race").diagnostics
        assert found.code == "PTO-E2206" and found.help.startswith(begins)


def test_kinds_are_those_of_the_table() -> None:
    row = pto.isa.row("mem_bar")
    assert row is not None and set(row.attrs[0].domain) == set(KINDS)
    assert orders("VV_ALL") == [("VLD", "VLD"), ("VLD", "VST"), ("VST", "VLD"), ("VST", "VST")]
    assert orders("SV_ALL") == [("LD", "VLD"), ("LD", "VST"), ("ST", "VLD"), ("ST", "VST")]
    assert orders("ST_VLD") == [("ST", "VLD")]
