"""Cross-core FIFOs: the agreement between a function and its peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[..., Any]

ACC = "!pto.tile_buf<acc, 16x64xf32, blayout=col_major, slayout=row_major, fractal=1024>"
HALF = "!pto.tile_buf<vec, 8x64xf32>"
RESERVE = (
    'pto.reserve_buffer {name = "fifo", size = 32768, location = #pto.address_space<vec>, auto = true} -> i32'
)
IMPORT = 'pto.import_reserved_buffer {name = "fifo", peer_func = @vector} -> i32'
AIC = "pto.aic_initialize_pipe {dir_mask = 1, slot_size = 4096} (c2v_consumer_buf = %f : i32)"
AIV = "pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 4096} (c2v_consumer_buf = %f : i32)"
PUSH = f"pto.tpush_to_aiv(%acc : {ACC}) {{split = 1}}"
POP = f"%t = pto.tpop_from_aic {{split = 1}} -> {HALF}"
FREE = "pto.tfree_from_aic {split = 1}"


def program(cube: list[str], vector: list[str]) -> str:
    """A cube kernel that pushes and a vector kernel that pops."""
    lines = [
        "module {",
        f"func.func @cube(%acc: {ACC}) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{",
    ]
    lines += [*cube, "return", "}"]
    lines += [
        "func.func @vector() attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {",
        *vector,
        "return",
        "}",
    ]
    return "\n".join([*lines, "}", ""])


CUBE = [f"%f = {IMPORT}", AIC, PUSH]
VECTOR = [f"%f = {RESERVE}", AIV, POP, FREE]


def test_a_complete_pipe(annotated: Check) -> None:
    annotated(program(CUBE, VECTOR), "a5")


def test_a2a3_needs_slots_in_global_memory(annotated: Check) -> None:
    found = annotated(
        program([CUBE[0], AIC + " //~ PTO-E0116", PUSH], [VECTOR[0], AIV + " //~ PTO-E0116", POP, FREE]), "a3"
    )
    assert "gm_slot_buffer" in found[0].message


def test_users_need_an_initialisation(annotated: Check) -> None:
    annotated(program([], [POP + " //~ PTO-E1104", FREE]), "a5")


def test_one_initialisation_per_function(annotated: Check) -> None:
    free = "%f = arith.constant 0 : i32"
    annotated(program([], [free, AIV, AIV + " //~ PTO-E1101"]), "a5")
    annotated(program([free, AIC, AIV + " //~ PTO-E1003 PTO-E1101"], []), "a5")


@pytest.mark.parametrize(("mask", "code"), [(1, ""), (3, ""), (2, " //~ PTO-E1105")])
def test_direction_of_the_users(annotated: Check, mask: int, code: str) -> None:
    buffers = {1: "c2v_consumer_buf = %f : i32", 2: "v2c_consumer_buf = %f : i32"}
    named = ", ".join(text for bit, text in buffers.items() if mask & bit)
    init = f"pto.aiv_initialize_pipe {{dir_mask = {mask}, slot_size = 4096}} ({named})"
    found = annotated(program([], ["%f = arith.constant 0 : i32", init, FREE + code]), "a5")
    if code:
        assert found[0].help == "set dir_mask = 3"


def test_user_on_the_wrong_side(annotated: Check) -> None:
    annotated(program(["%f = arith.constant 0 : i32", AIC, FREE + " //~ PTO-E1003 PTO-E1105"], []), "a5")


def test_reserved_names(annotated: Check) -> None:
    annotated(program(CUBE, [VECTOR[0], f"%again = {RESERVE} //~ PTO-E1102", AIV, POP, FREE]), "a5")
    other = VECTOR[0].replace("%f", "%other").replace("fifo", "spare")
    annotated(program(CUBE, [VECTOR[0], other, AIV, POP, FREE]), "a5")


def test_imports(annotated: Check) -> None:
    missing = CUBE[0].replace("fifo", "ffo")
    annotated(program([missing + " //~ PTO-E1103"], [VECTOR[0]]), "a5")
    unknown = CUBE[0].replace("@vector", "@vektor")
    (found,) = annotated(program([unknown + " //~ PTO-E0204"], [VECTOR[0]]), "a5")
    assert "@vektor" in found.message


def test_both_ends_are_initialised(annotated: Check) -> None:
    annotated(program([CUBE[0], AIC + " //~ PTO-E1107", PUSH], [VECTOR[0]]), "a5")


def test_split_modes_of_one_end(annotated: Check) -> None:
    whole = PUSH.replace("split = 1", "split = 0")
    annotated(program([*CUBE, whole + " //~ PTO-E1106"], VECTOR), "a5")


def test_split_modes_of_the_two_ends(annotated: Check) -> None:
    whole = [line.replace("split = 1", "split = 0") for line in VECTOR]
    whole[1] += " //~ PTO-E1106"
    (found,) = annotated(program(CUBE, whole), "a5")
    assert found.notes[0][0] == "the other end"


def test_explicit_nosplit(annotated: Check) -> None:
    def with_nosplit(line: str, value: str) -> str:
        return line.replace("slot_size = 4096", f"slot_size = 4096, nosplit = {value}")

    annotated(
        program(
            [CUBE[0], with_nosplit(AIC, "false"), PUSH], [VECTOR[0], with_nosplit(AIV, "false"), POP, FREE]
        ),
        "a5",
    )
    annotated(program([CUBE[0], with_nosplit(AIC, "true") + " //~ PTO-E1106", PUSH], VECTOR), "a5")


def test_fixed_buffer_only_in_manual_mode(annotated: Check) -> None:
    fixed = RESERVE.replace("auto = true", "auto = false, base = 0")
    planned = "%t0 = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>"
    annotated(program([], [f"%f = {fixed}"]), "a5")
    (found,) = annotated(program([], [planned, f"%f = {fixed} //~ PTO-E0905"]), "a5")
    assert found.notes[0][0] == "this tile has no address"
    placed = "%a = arith.constant 65536 : i64\n%t0 = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 16x64xf32>"
    annotated(program([], [placed, f"%f = {fixed}"]), "a5")


def test_raw_pipe_without_flags_needs_reserved_buffers(annotated: Check) -> None:
    init = "%p = pto.initialize_l2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 8{0}}} (%f : i32) -> !pto.pipe"
    constant = "%f = arith.constant 0 : i32"
    annotated(program([], [constant, init.format(", flag_base = 0")]), "a5")
    annotated(program([], [constant, init.format("") + " //~ PTO-E1107"]), "a5")


def test_a_pipe_of_each_id(annotated: Check) -> None:
    """Ids keep the pipes of a function apart: their users, directions and splits."""

    def numbered(line: str, number: int) -> str:
        return line.replace("{", f"{{id = {number}, ", 1) if "pto.t" in line or "initialize" in line else line

    init = "pto.aiv_initialize_pipe {{id = {}, dir_mask = {}, slot_size = 4096}} ({}_consumer_buf = %f : i32)"
    free = "%f = arith.constant 0 : i32"
    whole = numbered(FREE, 4).replace("split = 1", "split = 0")
    good = [free, init.format(1, 1, "c2v"), init.format(4, 1, "c2v"), numbered(FREE, 1), whole]
    annotated(program([], good), "a5")
    annotated(program([], [*good[:2], init.format(1, 1, "c2v") + " //~ PTO-E1101"]), "a5")
    annotated(program([], [*good[:2], numbered(FREE, 4) + " //~ PTO-E1104"]), "a5")
    annotated(program([], [*good[:2], init.format(4, 2, "v2c"), numbered(FREE, 4) + " //~ PTO-E1105"]), "a5")
    early = [free, init.format(1, 1, "c2v"), numbered(FREE, 4) + " //~ PTO-E1104", init.format(4, 1, "c2v")]
    annotated(program([], early), "a5")
