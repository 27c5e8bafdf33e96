"""Control flow: loops, branches, calls, blocks and switches give the result of the same Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from .programs import CONSTANTS, codes, numbers, program, run

ROWS = (
    "scf.for", "scf.if", "scf.while", "scf.execute_region", "scf.index_switch", "scf.condition", "scf.yield",
    "cf.br", "cf.cond_br", "cf.switch", "func.func", "func.call", "func.return", "builtin.module",
    "load_scalar", "store_scalar", "addptr", "castptr", "builtin.unrealized_conversion_cast",
    "get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num", "section.cube", "section.vector",
    "declare_eventid_array", "eventid_array_get", "eventid_array_set", "trap", "print",
)  # fmt: skip


def put(value: str, at: str = "%c0", type: str = "index") -> str:
    name = value.strip("%").replace("#", "_")
    return (
        f"%{name}_i = arith.index_cast {value} : {type} to i64\n"
        f"pto.store_scalar %{name}_i, %out[{at}] : !pto.ptr<i64>, i64"
    )


@given(low=st.integers(-5, 5), high=st.integers(-5, 12), step=st.integers(1, 4))
@examples(40)
def test_a_loop_carries_values(low: int, high: int, step: int) -> None:
    body = f"""{CONSTANTS}
    %lb = arith.constant {low} : index
    %ub = arith.constant {high} : index
    %st = arith.constant {step} : index
    %a, %b = scf.for %i = %lb to %ub step %st iter_args(%x = %c0, %y = %c1) -> (index, index) {{
      %s = arith.addi %x, %i : index
      scf.yield %y, %s : index, index
    }}
    {put("%a")}
    {put("%b", "%c1")}"""
    x, y = 0, 1
    for i in range(low, high, step):
        x, y = y, x + i
    assert numbers(body)[:2] == [x, y]


def test_a_step_that_is_not_positive_is_reported() -> None:
    text = program(f"{CONSTANTS}\nscf.for %i = %c0 to %c4 step %s {{\n}}", "%s: index")
    assert codes(run(text, 0)) == ["PTO-E2102"]
    assert run(text, 1).ok


@pytest.mark.parametrize("n", range(4))
def test_branches_and_switches(n: int) -> None:
    body = f"""{CONSTANTS}
    %n = arith.constant {n} : index
    %small = arith.cmpi slt, %n, %c2 : index
    %r = scf.if %small -> (index) {{
      %t = arith.addi %n, %c10 : index
      scf.yield %t : index
    }} else {{
      scf.yield %c5 : index
    }}
    {put("%r")}
    scf.if %small {{
      pto.store_scalar %r_i, %out[%c1] : !pto.ptr<i64>, i64
    }}
    %w = scf.index_switch %n -> index
    case 1 {{
      scf.yield %c10 : index
    }}
    case 3 {{
      scf.yield %c3 : index
    }}
    default {{
      scf.yield %c0 : index
    }}
    {put("%w", "%c2")}
    %e = scf.execute_region -> index {{
      %q = arith.muli %n, %c3 : index
      scf.yield %q : index
    }}
    {put("%e", "%c3")}"""
    r = n + 10 if n < 2 else 5
    assert numbers(body) == [r, r if n < 2 else -1, {1: 10, 3: 3}.get(n, 0), 3 * n]


@pytest.mark.parametrize("n", [0, 1, 7, 27])
def test_while_counts_collatz_steps(n: int) -> None:
    body = f"""{CONSTANTS}
    %n = arith.constant {n} : index
    %v, %k = scf.while (%x = %n, %i = %c0) : (index, index) -> (index, index) {{
      %go = arith.cmpi sgt, %x, %c1 : index
      scf.condition(%go) %x, %i : index, index
    }} do {{
    ^bb0(%x: index, %i: index):
      %odd = arith.remsi %x, %c2 : index
      %is = arith.cmpi eq, %odd, %c1 : index
      %h = arith.divsi %x, %c2 : index
      %t = arith.muli %x, %c3 : index
      %u = arith.addi %t, %c1 : index
      %nx = arith.select %is, %u, %h : index
      %ni = arith.addi %i, %c1 : index
      scf.yield %nx, %ni : index, index
    }}
    {put("%k")}"""
    x, steps = n, 0
    while x > 1:
        x, steps = (3 * x + 1 if x % 2 else x // 2), steps + 1
    assert numbers(body)[0] == steps


def test_blocks_pass_arguments() -> None:
    """Swapping two block arguments is one step, not two."""
    body = f"""{CONSTANTS}
    cf.br ^loop(%c0, %c1, %c0 : index, index, index)
    ^loop(%a: index, %b: index, %i: index):
    %more = arith.cmpi slt, %i, %c5 : index
    %next = arith.addi %i, %c1 : index
    cf.cond_br %more, ^loop(%b, %a, %next : index, index, index), ^done(%a : index)
    ^done(%r: index):
    {put("%r")}"""
    assert numbers(body)[0] == 1


@pytest.mark.parametrize(("n", "expected"), [(0, 100), (1, 5), (2, 10), (9, 100)])
def test_switch_between_blocks(n: int, expected: int) -> None:
    body = f"""{CONSTANTS}
    %c100 = arith.constant 100 : index
    %f = arith.constant {n} : i32
    cf.switch %f : i32, [
      default: ^d(%c100 : index),
      1: ^d(%c5 : index),
      2: ^e
    ]
    ^e:
    cf.br ^d(%c10 : index)
    ^d(%r: index):
    {put("%r")}"""
    assert numbers(body)[0] == expected


def test_calls_nest_and_return_values() -> None:
    text = """module {
func.func private @square(%x: index) -> index {
  %r = arith.muli %x, %x : index
  return %r : index
}
func.func private @sum(%a: index, %b: index) -> (index, index) {
  %p = func.call @square(%a) : (index) -> index
  %q = func.call @square(%b) : (index) -> index
  %s = arith.addi %p, %q : index
  return %s, %p : index, index
}
func.func @k(%out: !pto.ptr<i64>) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c3 step %c1 {
    %s:2 = func.call @sum(%i, %c3) : (index, index) -> (index, index)
    %v = arith.addi %s#0, %s#1 : index
    %w = arith.index_cast %v : index to i64
    pto.store_scalar %w, %out[%i] : !pto.ptr<i64>, i64
  }
  return
}
}
"""
    out = np.zeros(3, np.int64)
    assert run(text, out).ok
    assert out.tolist() == [9, 11, 17]


def test_block_queries() -> None:
    body = """%b = pto.get_block_idx
    %n = pto.get_block_num
    %s = pto.get_subblock_num
    %i = arith.index_cast %b : i64 to index
    %t = arith.muli %n, %s : i64
    %u = arith.addi %t, %b : i64
    pto.store_scalar %u, %out[%i] : !pto.ptr<i64>, i64"""
    assert numbers(body, 5, blocks=4) == [4, 5, 6, 7, -1]


def test_sections_run_on_their_cores() -> None:
    """The cube core and both vector cores of every block, each in its own section."""
    text = program(
        f"""{CONSTANTS}
    %blk = pto.get_block_idx
    %b = arith.index_cast %blk : i64 to index
    %at = arith.muli %b, %c3 : index
    pto.section.cube {{
      %one = arith.constant 1 : i64
      pto.store_scalar %one, %out[%at] : !pto.ptr<i64>, i64
    }}
    pto.section.vector {{
      %s = pto.get_subblock_idx
      %n = pto.get_subblock_num
      %x = arith.index_cast %s : i64 to index
      %y = arith.addi %at, %x : index
      %z = arith.addi %y, %c1 : index
      %ten = arith.constant 10 : i64
      %v = arith.addi %ten, %n : i64
      pto.store_scalar %v, %out[%z] : !pto.ptr<i64>, i64
    }}"""
    )
    out = np.zeros(6, np.int64)
    assert run(text, out, blocks=2).ok
    assert out.tolist() == [1, 12, 12, 1, 12, 12]
    out[:] = 0
    assert run(text, out, blocks=2, subblocks=1).ok
    assert out.tolist() == [1, 11, 0, 1, 11, 0]


def test_pointers_count_in_elements() -> None:
    text = program(
        f"""{CONSTANTS}
    %p = pto.addptr %in, %c3 : !pto.ptr<f16> -> !pto.ptr<f16>
    %h = pto.load_scalar %p[%c2] : !pto.ptr<f16> -> f16
    %raw = pto.castptr %p : !pto.ptr<f16> -> !pto.ptr<ui16>
    %bits = pto.load_scalar %raw[%c0] : !pto.ptr<ui16> -> ui16
    %f = arith.extf %h : f16 to f32
    %i = arith.fptosi %f : f32 to i64
    pto.store_scalar %i, %out[%c0] : !pto.ptr<i64>, i64""",
        "%in: !pto.ptr<f16>, %out: !pto.ptr<i64>",
    )
    data = np.arange(8, dtype=np.float16)
    out = np.zeros(1, np.int64)
    result = run(text, data, out)
    assert result.ok, result.diagnostics
    assert out[0] == 5


def test_access_behind_an_array_is_reported() -> None:
    result = run(
        program("%c = arith.constant 4 : index\n%v = pto.load_scalar %out[%c] : !pto.ptr<i64> -> i64"),
        np.zeros(4, np.int64),
    )
    (problem,) = result.diagnostics
    assert problem.code == "PTO-E2101"
    assert "%out" in problem.message and "32 bytes" in problem.message


def test_event_id_arrays() -> None:
    body = f"""{CONSTANTS}
    %ids = pto.declare_eventid_array -> !pto.eventid_array<2>
    pto.eventid_array_set %ids[%c1], %c5 : !pto.eventid_array<2>
    %e = pto.eventid_array_get %ids[%c1] : !pto.eventid_array<2>
    {put("%e")}"""
    assert numbers(body)[0] == 5
    unset = f"""{CONSTANTS}
    %ids = pto.declare_eventid_array -> !pto.eventid_array<2>
    %e = pto.eventid_array_get %ids[%c0] : !pto.eventid_array<2>
    {put("%e")}"""
    assert codes(run(program(unset), np.zeros(4, np.int64))) == ["PTO-E2102"]


def test_trap_ends_the_program() -> None:
    assert codes(run(program("pto.trap"), np.zeros(4, np.int64))) == ["PTO-E2105"]


def test_print_uses_its_format() -> None:
    import io

    out = io.StringIO()
    body = """%x = arith.constant 1.5 : f32
    %n = arith.constant 42 : i32
    pto.print ins("x=%.2f ", %x : f32)
    pto.print ins("n=%d\\0A", %n : i32)"""
    assert run(program(body), np.zeros(1, np.int64), out=out).ok
    assert out.getvalue() == "x=1.50 n=42\n"


def test_an_endless_loop_meets_the_limit() -> None:
    body = """%t = arith.constant true
    scf.while : () -> () {
      scf.condition(%t)
    } do {
      scf.yield
    }"""
    result = run(program(body), np.zeros(1, np.int64), max_steps=10_000)
    assert codes(result) == ["PTO-E2106"]


def test_chains_of_calls_may_be_long() -> None:
    count = 3000
    functions = "".join(
        f"func.func @f{n}() {{\n  func.call @f{n + 1}() : () -> ()\n  return\n}}\n" for n in range(count)
    )
    text = f"""module attributes {{pto.target_arch = "a3"}} {{
{functions}func.func @f{count}() {{
  pto.trap
  return
}}
func.func @k() attributes {{pto.entry}} {{
  func.call @f0() : () -> ()
  return
}}
}}
"""
    assert codes(run(text)) == ["PTO-E2105"]


@pytest.mark.parametrize(("section", "found"), [("cube", []), ("vector", ["PTO-E2102"])])
def test_results_of_the_other_kind_of_core(section: str, found: list[str]) -> None:
    """A function of the cube core gives nothing on vector cores: using it there is an error."""
    other = "vector" if section == "cube" else "cube"
    text = f"""module attributes {{pto.target_arch = "a3"}} {{
func.func @place() -> index attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
  %c2 = arith.constant 2 : index
  return %c2 : index
}}
func.func @k(%out: !pto.ptr<i64>) attributes {{pto.entry}} {{
  %at = func.call @place() : () -> index
  pto.section.{section} {{
    %v = arith.constant 5 : i64
    pto.store_scalar %v, %out[%at] : !pto.ptr<i64>, i64
  }}
  pto.section.{other} {{
  }}
  return
}}
}}
"""
    out = np.zeros(4, np.int64)
    assert codes(run(text, out)) == found
    assert out.tolist() == ([0, 0, 5, 0] if not found else [0, 0, 0, 0])
