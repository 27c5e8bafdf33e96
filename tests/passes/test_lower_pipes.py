"""Frontend FIFO instructions become handles: the output, refusals, and that data still arrives."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from tests.each import together
from tests.engine.test_fifo import ALL, cube_to_vector, data, vector_to_cube, without_synchronisation
from tests.sampling import some

import pto

from .running import errors, result, runs_alike, text

PIPES = ("kernel-kind", "lower-pipes", "pipe-init", "reserve-buffers")
ACC = "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"
VEC = "!pto.tile_buf<vec, 16x16xf32>"
OPEN = "!pto.tile_buf<vec, 16x16xf32, valid=?x?>"
MAT = "!pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>"


def lines(source: str, *passes: str, **options: Any) -> list[str]:
    return [line.strip() for line in text(source, *(passes or ("lower-pipes",)), **options).splitlines()]


def both(cube: str, vector: str, arch: str = "a5", more: str = "") -> str:
    """A module with the two halves of a kernel."""
    where = "%gm: !pto.ptr<f32>, %n: index"
    return f"""module attributes {{pto.target_arch = "{arch}"}} {{
func.func @k_aic({where}) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
{cube}
  return
}}
func.func @k_aiv({where}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{vector}
  return
}}
{more}}}
"""


def ring(name: str, function: str, size: int = 8192, loc: str = "vec") -> tuple[str, str]:
    """(reserve, import) of a buffer of a function."""
    reserve = f'pto.reserve_buffer {{name = "{name}", size = {size}, location = #pto.address_space<{loc}>, auto = true}} -> i32'
    return reserve, f'pto.import_reserved_buffer {{name = "{name}", peer_func = @{function}}} -> i32'


RESERVE, IMPORT = ring("ring", "k_aiv")
GM = "gm_slot_buffer = %gm : !pto.ptr<f32>, "


@together(
    ("arch", "mask", "expected"),
    [
        ("a5", 1, "%pipe = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 8} (%f : i32) -> !pto.pipe"),
        ("a3", 1, "%pipe = pto.initialize_l2g2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 8, local_slot_num = 8} (%gm : !pto.ptr<f32>, %f : i32) -> !pto.pipe"),
        ("a5", 3, "%pipe = pto.initialize_l2l_pipe {dir_mask = 3, slot_size = 1024, slot_num = 4} (%f : i32, %b : i32) -> !pto.pipe"),
        ("a3", 3, "%pipe = pto.initialize_l2g2l_pipe {dir_mask = 3, slot_size = 1024, slot_num = 4, local_slot_num = 4} (%gm : !pto.ptr<f32>, %f : i32, %b : i32) -> !pto.pipe"),
        ("a5", 2, "%pipe = pto.initialize_l2l_pipe {dir_mask = 2, slot_size = 1024, slot_num = 8} (%b : i32) -> !pto.pipe"),
    ],
)  # fmt: skip
def test_initialisations(arch: str, mask: int, expected: str) -> None:
    """Slots: 8, or 4 where a pipe has both directions; A5 keeps them on chip also where memory is given."""
    back, taken = ring("back", "k_aic", 4096, "mat")
    init = f"_initialize_pipe {{dir_mask = {mask}, slot_size = 1024}} ({GM}c2v_consumer_buf = %f : i32, v2c_consumer_buf = %b : i32)"
    found = lines(
        both(
            f"%f = {IMPORT}\n%b = {back}\npto.aic{init}", f"%f = {RESERVE}\n%b = {taken}\npto.aiv{init}", arch
        )
    )
    assert found.count(expected) == 2


def test_what_a_program_says_of_its_slots_stays() -> None:
    init = f"_initialize_pipe {{dir_mask = 1, slot_size = 512, slot_num = 2, local_slot_num = 1, nosplit = true}} ({GM}c2v_consumer_buf = %f : i32)"
    found = lines(both(f"%f = {IMPORT}\npto.aic{init}", f"%f = {RESERVE}\npto.aiv{init}", "a3"))
    assert "%pipe = pto.initialize_l2g2l_pipe {dir_mask = 1, slot_size = 512, slot_num = 2, local_slot_num = 1, nosplit = true} (%gm : !pto.ptr<f32>, %f : i32) -> !pto.pipe" in found  # fmt: skip


def test_users() -> None:
    """Pops declare their tile, with the valid region they were given."""
    init = "_initialize_pipe {dir_mask = 1, slot_size = 1024} (c2v_consumer_buf = %f : i32)"
    found = lines(
        both(
            f"%f = {IMPORT}\npto.aic{init}\n%a = pto.alloc_tile : {ACC}\npto.tpush_to_aiv(%a : {ACC}) {{split = 0}}",
            f"""%f = {RESERVE}\npto.aiv{init}
            %t = pto.tpop_from_aic {{split = 0}} -> {VEC}
            %u = pto.tpop_from_aic(%n, %n) {{split = 0}} -> {OPEN}
            %w = pto.tpop_from_aic {{split = 0}} -> {OPEN}
            pto.tneg ins(%u : {OPEN}) outs(%w : {OPEN})
            pto.tfree_from_aic {{split = 0}}""",
        )
    )
    assert f"pto.tpush(%a, %pipe : {ACC}, !pto.pipe) {{split = 0}}" in found
    at = found.index(f"%t = pto.declare_tile -> {VEC}")
    assert found[at : at + 8] == [
        f"%t = pto.declare_tile -> {VEC}",
        f"pto.tpop(%t, %pipe : {VEC}, !pto.pipe) {{split = 0}}",
        f"%u = pto.declare_tile -> {OPEN}",
        f"pto.set_validshape %u, %n, %n : {OPEN}",
        f"pto.tpop(%u, %pipe : {OPEN}, !pto.pipe) {{split = 0}}",
        f"%w = pto.declare_tile -> {OPEN}",
        f"pto.tpop(%w, %pipe : {OPEN}, !pto.pipe) {{split = 0}}",
        f"pto.tneg ins(%u : {OPEN}) outs(%w : {OPEN})",
    ]
    assert "pto.tfree(%pipe : !pto.pipe) {split = 0}" in found
    assert not any("_from_" in line or "_to_" in line for line in found)


def test_a_pipe_of_each_id() -> None:
    inits, users = [], []
    for number in (3, 7):
        reserve, taken = ring(f"ring{number}", "k_aiv", 1024 * number)
        init = f"_initialize_pipe {{id = {number}, dir_mask = 1, slot_size = {128 * number}}} (c2v_consumer_buf = %f{number} : i32)"
        inits.append((f"%f{number} = {taken}\npto.aic{init}", f"%f{number} = {reserve}\npto.aiv{init}"))
        users.append(f"%t{number} = pto.tpop_from_aic {{id = {number}, split = 1}} -> {VEC}")
    found = lines(both("\n".join(a for a, _ in inits), "\n".join([b for _, b in inits] + users)))
    assert f"pto.tpop(%t3, %pipe3 : {VEC}, !pto.pipe) {{split = 1}}" in found
    assert f"pto.tpop(%t7, %pipe7 : {VEC}, !pto.pipe) {{split = 1}}" in found


def test_names_in_use_are_left_alone() -> None:
    init = "_initialize_pipe {dir_mask = 1, slot_size = 1024} (c2v_consumer_buf = %pipe : i32)"
    result(
        both(
            f"%pipe = {IMPORT}\npto.aic{init}",
            f"%pipe = {RESERVE}\npto.aiv{init}\npto.tfree_from_aic {{split = 1}}",
        )
    )


# -- refusals ----------------------------------------------------------------------------------------------


def test_frontend_instructions_stand_in_kernels_of_their_kind() -> None:
    plain = """module attributes {pto.target_arch = "a5"} {
func.func @f() {
  %f = arith.constant 0 : i32
  pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 1024} (c2v_consumer_buf = %f : i32)
  pto.tfree_from_aic {split = 0}
  return
}
}
"""
    found = errors(plain, "lower-pipes")
    assert [d.code for d in found] == ["PTO-E1003"] * 2
    assert "must be inside a vector kernel function" in found[0].message
    inside = plain.replace("%f = arith", "pto.section.vector {\n  %f = arith").replace(
        "  return", "  }\n  return"
    )
    assert errors(inside, "lower-pipes") == []


def test_the_initialisation_comes_first_on_every_path() -> None:
    """Standing before a user in the text is not enough."""
    source = (
        both(
            "",
            f"""%c = arith.constant true
        scf.if %c {{
          %f = {RESERVE.replace("auto = true", "auto = false, base = 0")}
          pto.aiv_initialize_pipe {{dir_mask = 1, slot_size = 1024}} (c2v_consumer_buf = %f : i32)
        }}
        pto.tfree_from_aic {{split = 0}}""",
        )
        .replace("c2v_consumer_buf = %f", "c2v_consumer_buf = %z")
        .replace("%c = arith", "%z = arith.constant 0 : i32\n%c = arith")
    )
    (found,) = errors(source, "lower-pipes")
    assert found.code == "PTO-E1104" and "requires a dominating frontend initialize_pipe op" in found.message
    assert found.notes[0][0] == "initialized here"


def test_blocks_that_branch() -> None:
    """A block sees what its dominators initialise, and no other."""

    def branching(first: str, second: str) -> str:
        init = "pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 1024} (c2v_consumer_buf = %z : i32)"
        parts = {"init": init, "free": "pto.tfree_from_aic {split = 0}", "": ""}
        return both("", f"""%z = arith.constant 0 : i32
        %c = arith.constant true
        {parts[first] if first == "init0" else ""}
        cf.cond_br %c, ^a, ^b
        ^a:
        {parts[first]}
        cf.br ^b
        ^b:
        {parts[second]}
        """)  # fmt: skip

    (found,) = errors(branching("init", "free"), "lower-pipes")
    assert found.code == "PTO-E1104"
    straight = branching("init", "free").replace("cf.cond_br %c, ^a, ^b", "cf.br ^a")
    assert errors(straight, "lower-pipes") == []


def test_a_pipe_on_chip_needs_its_buffer() -> None:
    source = both(
        "",
        "%f = arith.constant 0 : i32\npto.aiv_initialize_pipe {dir_mask = 1, slot_size = 1024} (v2c_consumer_buf = %f : i32)",
    )
    (found,) = errors(source, "lower-pipes")
    assert found.code == "PTO-E1107" and "c2v_consumer_buf" in found.message


# -- results -----------------------------------------------------------------------------------------------


@together(
    ("arch", "split", "count"),
    some([(a, s, c) for c in (3, 9) for s in (0, 1, 2) for a in ("a3", "a5")], 2, by=itemgetter(1)),
)
def test_products_arrive_as_before(arch: str, split: int, count: int) -> None:
    x, eye, out, gm = data(count)
    module = runs_alike(cube_to_vector(arch, count, 4, split), [x, eye, out, gm], sanitize="all")
    kernel = pto.kernel(module, engine="reference")
    for seed in range(4):
        out[:] = 0
        assert kernel.run(x, eye, out, gm.copy(), schedule=seed).ok
        assert np.array_equal(out, x.astype(np.float32))


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("split", [0, 1])
def test_halves_meet_as_before(arch: str, split: int) -> None:
    x = np.random.default_rng(4).integers(-99, 99, (16 * 7, 16)).astype(np.float16)
    args = [x, np.zeros_like(x), np.zeros(4096, np.float16)]
    runs_alike(vector_to_cube(arch, 7, split), args, check_input=False, sanitize="all")


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_programs_to_be_planned(arch: str) -> None:
    """The same program in auto mode: no address, no synchronisation, the buffer placed by us."""
    source = without_synchronisation(cube_to_vector(arch, 5, 4, 1)).replace(
        "auto = false, base = 0", "auto = true"
    )
    for address in ("%a0", "%a1"):
        source = source.replace(f"alloc_tile addr = {address} :", "alloc_tile :")
    assert ALL not in source
    x, eye, out, gm = data(5)
    module = runs_alike(source, [x, eye, out, gm])
    found = pto.to_text(module)
    assert "reserve_buffer" not in found and "import_reserved_buffer" not in found
    assert found.count("flag_base = 0, nosplit = false}") == 2


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_the_ends_may_number_a_pipe_differently(arch: str) -> None:
    """They meet in the buffer."""
    source = cube_to_vector(arch, 3, 4, 1)
    source = source.replace("aic_initialize_pipe {dir", "aic_initialize_pipe {id = 5, dir").replace(
        f"%acc : {ACC}) {{split", f"%acc : {ACC}) {{id = 5, split"
    )
    assert source.count("id = 5") == 2
    x, eye, out, gm = data(3)
    module = runs_alike(source, [x, eye, out, gm], sanitize="all")
    assert pto.kernel(module, engine="reference").run(x, eye, out, gm).ok
    assert np.array_equal(out, x.astype(np.float32))


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_the_second_lane_of_an_unsplit_pipe_has_no_say(arch: str) -> None:
    """Both vector cores push, with different data; the cube core gets that of the first."""
    half = vector_to_cube(arch, 5, 0).partition("@k_aiv(")
    source = half[0] + half[1] + half[2].replace("offsets = [%row, %c0]", "offsets = [%mine, %c0]", 1)
    x = np.arange(88 * 16, dtype=np.float16).reshape(88, 16)
    args = [x, np.zeros((80, 16), np.float16), np.zeros(4096, np.float16)]
    module = runs_alike(source, args, check_input=False, sanitize="all")
    assert "nosplit = true" in pto.to_text(module)
    kernel = pto.kernel(module, check=False, engine="reference")
    assert kernel.subblocks == 2 and kernel.run(*args).ok
    assert np.array_equal(args[1], x[:80])
    for seed in range(5):
        args[1][:] = 0
        assert kernel.run(*args, schedule=seed).ok
        assert np.array_equal(args[1], x[:80])
