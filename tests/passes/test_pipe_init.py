"""The ends of a FIFO agree on `nosplit`, and buffers hold their slots."""

from __future__ import annotations

import pytest
from tests.each import together

from .running import errors, text
from .test_lower_pipes import ACC, IMPORT, RESERVE, VEC, both

PASSES = ("lower-pipes", "pipe-init")
INIT = (
    "%p = pto.initialize_l2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 8{}}} (%f : i32) -> !pto.pipe"
)


def push(split: int) -> str:
    return f"pto.tpush(%a, %p : {ACC}, !pto.pipe) {{split = {split}}}"


def pop(split: int) -> str:
    return f"pto.tpop(%t, %p : {VEC}, !pto.pipe) {{split = {split}}}"


def program(cube: list[str], vector: list[str], first: str = "", second: str = "") -> str:
    """A pipe with these users, its initialisations saying `first` and `second`."""
    return both(
        "\n".join([f"%f = {IMPORT}", INIT.format(first), f"%a = pto.alloc_tile : {ACC}", *cube]),
        "\n".join([f"%f = {RESERVE}", INIT.format(second), f"%t = pto.declare_tile -> {VEC}", *vector]),
    )


@together(
    ("cube", "vector", "expected"),
    [
        ([push(0)], [pop(0)], "true"),
        ([push(1)], [pop(2)], "false"),
        ([], [pop(0)], "true"),
        ([push(2)], [], "false"),
        ([], [], "false"),
    ],
)
def test_inferred(cube: list[str], vector: list[str], expected: str) -> None:
    """From the users of both ends; without any it is false."""
    found = text(program(cube, vector), *PASSES)
    assert found.count(f"slot_num = 8, nosplit = {expected}}}") == 2


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("first", [True, False])
def test_what_one_end_says_holds_for_both(value: str, first: bool) -> None:
    said = f", nosplit = {value}"
    split = 0 if value == "true" else 1
    found = text(program([push(split)], [], said if first else "", "" if first else said), *PASSES)
    assert found.count(f"nosplit = {value}") == 2


@pytest.mark.parametrize(
    ("cube", "vector", "first", "second", "message"),
    [
        ([push(0), push(1)], [], "", "", "cannot mix 'split = 0' with 'split = 1' or 'split = 2' on the same logical pipe"),
        ([], [pop(2), pop(0)], "", "", "cannot mix 'split = 0'"),
        ([], [pop(1)], ", nosplit = true", "", "explicit 'nosplit = true' conflicts with downstream users that require split = 1 or split = 2"),
        ([push(0)], [], "", ", nosplit = false", "explicit 'nosplit = false' conflicts with downstream users that require split = 0"),
    ],
)  # fmt: skip
def test_refused(cube: list[str], vector: list[str], first: str, second: str, message: str) -> None:
    """Errors that concern both ends; the verifier reports those of one end."""
    (found,) = errors(program(cube, vector, first, second), *PASSES)
    assert found.code == "PTO-E1106" and message in found.message


def test_a_pipe_of_both_directions_is_one_pipe() -> None:
    """Its ends meet in either buffer."""
    init = "%p = pto.initialize_l2l_pipe {dir_mask = 3, slot_size = 1024, slot_num = 4} (%f : i32, %z : i32) -> !pto.pipe"
    source = both(
        f"%f = {IMPORT}\n%z = arith.constant 0 : i32\n{init}",
        f"%f = {RESERVE}\n%z = arith.constant 0 : i32\n{init}\n%t = pto.declare_tile -> {VEC}\n{pop(0)}",
    )
    assert text(source, *PASSES).count("nosplit = true") == 2


def test_pipes_of_two_kernels_do_not_mix() -> None:
    """Without a common buffer it is the kernel, and the id in it, that joins two ends."""
    halves = []
    for name, split in (("x", 0), ("y", 1)):
        for side, user in (("aic", ""), ("aiv", f"pto.tfree_from_aic {{split = {split}}}")):
            kind = "cube" if side == "aic" else "vector"
            halves.append(f"""func.func @{name}_{side}(%gm: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<{kind}>}} {{
              %z = arith.constant 0 : i32
              pto.{side}_initialize_pipe {{dir_mask = 1, slot_size = 1024}} (c2v_consumer_buf = %z : i32)
              {user}
              return
            }}""")
    source = 'module attributes {pto.target_arch = "a5"} {\n' + "\n".join(halves) + "\n}\n"
    found = text(source, *PASSES, "reserve-buffers")
    assert found.count("nosplit = true") == 2 and found.count("nosplit = false") == 2
    assert found.index("nosplit = true") < found.index("@y_aic") < found.index("nosplit = false")


# -- reserved buffers --------------------------------------------------------------------------------------


def test_a_buffer_grows_to_the_slots_on_it() -> None:
    """Tiles are never placed where a FIFO writes, also if the author reserved too little."""
    small = program([], []).replace("size = 8192", "size = 4096")
    assert 'name = "ring", size = 8192' in text(small, *PASSES)
    large = program([], []).replace("size = 8192", "size = 9000")
    assert 'name = "ring", size = 9000' in text(large, *PASSES)


FIXED = """module attributes {{pto.target_arch = "a5"}} {{
func.func @f() attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  %f = pto.reserve_buffer {{name = "r", size = 8192, location = #pto.address_space<vec>, auto = {}, base = {}}} -> i32
  {}
  return
}}
}}
"""
TILE = "%a = arith.constant 0 : i64\n%t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 16x16xf32>"


@together(
    ("auto", "base", "tile", "message"),
    [
        ("false", 256, "", ""),
        ("false", 128, "", "expects 'base' to satisfy the address-space alignment"),
        ("false", 128, TILE, ""),
        ("false", 16, TILE, "expects 'base' to satisfy the address-space alignment"),
        ("false", 262144 - 8192, "", ""),
        ("false", 262144 - 8192 + 256, "", "exceeds available local memory capacity"),
        ("false", 262144 - 8192 + 256, TILE, "exceeds available local memory capacity"),
        ("true", 256, "", "expects 'base' to be absent when 'auto' is true"),
        ("true", 256, TILE, ""),
    ],
)
def test_e1108_a_base_that_the_program_gives(auto: str, base: int, tile: str, message: str) -> None:
    """Beside tiles placed by hand any aligned base is the author's."""
    found = errors(FIXED.format(auto, base, tile), *PASSES)
    if not message:
        assert found == []
        return
    assert [d.code for d in found] == ["PTO-E1108"]
    assert message in found[0].message
