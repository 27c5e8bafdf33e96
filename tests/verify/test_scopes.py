"""Places of operations: vecscopes, sections and kernel kinds, and linear use of alignment state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[..., Any]

_ARGUMENTS = "%ub: !pto.ptr<f32, ub>, %n: index, %cond: i1, %t: !pto.tile_buf<vec, 16x64xf32>"
_LOAD = "pto.vlds %ub[%n] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>"
_TILE = "!pto.tile_buf<vec, 16x64xf32>"
_ADD = f"pto.tadd ins(%t, %t : {_TILE}, {_TILE}) outs(%t : {_TILE})"
_START = "%s0 = pto.vldas %ub : !pto.ptr<f32, ub> -> !pto.align"


def _stream(value: str, state: str, used: str) -> str:
    types = "!pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align"
    return f"%{value}, %{state} = pto.vldus %ub, %{used} : {types}"


@pytest.fixture
def scoped(annotated: Check, kernel: Check) -> Check:
    """Check the body of an A5 kernel."""

    def run(body: str, attributes: str = "") -> Any:
        more = f"attributes {{{attributes}}} " if attributes else ""
        return annotated(kernel(body, _ARGUMENTS, more), "a5")

    return run


# ------------------------------------------------------------------------------------------- vecscopes


def test_vector_code_inside(scoped: Check) -> None:
    scoped(f"pto.vecscope {{\n%v = {_LOAD}\n}}")


def test_vector_code_in_structured_control_flow_inside(scoped: Check) -> None:
    scoped(f"pto.vecscope {{\nscf.if %cond {{\n%v = {_LOAD}\n}}\n}}")


def test_every_vector_operation_outside_is_reported(scoped: Check) -> None:
    scoped(f'%v = {_LOAD} //~ PTO-E1001\n%m = pto.pset_b32 "PAT_ALL" : !pto.mask //~ PTO-E1001')


def test_scalar_and_pointer_operations_stand_anywhere(scoped: Check) -> None:
    both = "%{0} = pto.addptr %ub, %n : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>"
    scoped(f"{both.format('a')}\npto.vecscope {{\n{both.format('b')}\n}}")


@pytest.mark.parametrize(
    "operation",
    [_ADD, "pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %n]", "pto.barrier #pto.pipe<PIPE_ALL>"],
)
def test_tile_and_flag_operations_inside(scoped: Check, operation: str) -> None:
    (found,) = scoped(f"pto.vecscope {{\n{operation} //~ PTO-E1002\n}}")
    assert found.notes[0][0] == "the vecscope begins here"


def test_tile_operation_deep_inside(scoped: Check) -> None:
    scoped(f"pto.vecscope {{\nscf.if %cond {{\n{_ADD} //~ PTO-E1002\n}}\n}}")


@pytest.mark.parametrize(("inner", "end"), [("pto.vecscope", ""), ("pto.strict_vecscope()", " : () -> ()")])
def test_nesting(scoped: Check, inner: str, end: str) -> None:
    scoped(f"pto.vecscope {{\n{inner} {{ //~ PTO-E1004\n}}{end}\n}}")
    scoped(f"pto.vecscope {{\n}}\n{inner} {{\n}}{end}")


def test_the_carrier_loop_is_a_vecscope(scoped: Check) -> None:
    bounds = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
    loop = "scf.for %i = %c0 to %c1 step %c1 {{\n{0}\n}} {{llvm.loop.aivector_scope}}"
    scoped(bounds + loop.format(f"%v = {_LOAD}"))
    scoped(bounds + loop.format("pto.vecscope { //~ PTO-E1004\n}"))


def test_strict_captures(scoped: Check) -> None:
    scoped(
        "%c = arith.constant 0 : index\n"
        "pto.strict_vecscope(%ub) {\n^bb0(%p: !pto.ptr<f32, ub>):\n"
        "%a = pto.vlds %p[%c] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32> //~ PTO-E1006\n"
        "%b = pto.vlds %p[%n] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32> //~ PTO-E1006\n"
        "} : (!pto.ptr<f32, ub>) -> ()"
    )


def test_strict_sees_its_own_values(scoped: Check) -> None:
    scoped(
        "pto.strict_vecscope(%ub) {\n^bb0(%p: !pto.ptr<f32, ub>):\n%c = arith.constant 0 : index\n"
        "%a = pto.vlds %p[%c] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>\n} : (!pto.ptr<f32, ub>) -> ()"
    )


# --------------------------------------------------------------------------------------------- cores


@pytest.mark.parametrize("kind", ["cube", "vector"])
def test_kernel_kind_and_section(scoped: Check, kind: str) -> None:
    code = "" if kind == "vector" else "//~ PTO-E1003"
    scoped(f"{_ADD} {code}", attributes=f"pto.kernel_kind = #pto.kernel_kind<{kind}>")
    scoped(f"pto.section.{kind} {{\n{_ADD} {code}\n}}")


def test_a_kernel_of_no_kind_runs_anything(scoped: Check) -> None:
    scoped(_ADD)


def test_sections_of_both_cores_side_by_side(scoped: Check) -> None:
    scoped(f"pto.section.cube {{\n}}\npto.section.vector {{\n{_ADD}\n}}")


def test_section_inside_the_other_core(scoped: Check) -> None:
    scoped("pto.section.cube {\npto.section.vector { //~ PTO-E1003 PTO-E1003\n}\n}")


# ----------------------------------------------------------------------------------------- alignment


def test_a_stream_hands_its_state_on(scoped: Check) -> None:
    scoped(f"pto.vecscope {{\n{_START}\n{_stream('a', 's1', 's0')}\n{_stream('b', 's2', 's1')}\n}}")


def test_state_used_twice(scoped: Check) -> None:
    (found,) = scoped(
        f"pto.vecscope {{\n{_START}\n{_stream('a', 's1', 's0')}\n{_stream('b', 's2', 's0')} //~ PTO-E1007\n}}"
    )
    assert found.notes[0][0] == "first used here"


def test_state_used_on_two_paths(scoped: Check) -> None:
    scoped(
        f"pto.vecscope {{\n{_START}\nscf.if %cond {{\n{_stream('a', 's1', 's0')}\n}} else {{\n"
        f"{_stream('b', 's2', 's0')}\n}}\n}}"
    )


def test_state_carried_by_a_loop(scoped: Check) -> None:
    scoped(
        f"pto.vecscope {{\n{_START}\n%r = scf.for %i = %n to %n step %n iter_args(%s = %s0) -> (!pto.align) {{\n"
        f"{_stream('a', 's1', 's')}\nscf.yield %s1 : !pto.align\n}}\n}}"
    )


def test_two_streams_are_independent(scoped: Check) -> None:
    other = _START.replace("%s0", "%q0")
    scoped(f"pto.vecscope {{\n{_START}\n{other}\n{_stream('a', 's1', 's0')}\n{_stream('b', 'q1', 'q0')}\n}}")


def test_load_and_store_streams_do_not_mix(scoped: Check) -> None:
    flush = "pto.vstar %{0}, %ub : !pto.align, !pto.ptr<f32, ub>"
    scoped(
        f"pto.vecscope {{\n%i = pto.init_align : !pto.align\n{_stream('a', 's1', 'i')} //~ PTO-E1008\n"
        f"{_START}\n{flush.format('s0')} //~ PTO-E1008\n}}"
    )
    scoped(f"pto.vecscope {{\n%i = pto.init_align : !pto.align\n{flush.format('i')}\n}}")
