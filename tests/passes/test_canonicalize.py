"""Equal values once, known ones as constants, unused ones not at all; nothing else changes."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from tests.counting import calls
from tests.engine.programs import program
from tests.sampling import some
from tests.seeds import seeds

import pto

from .running import result, runs_alike, text

PASS = "canonicalize"


def lines(body: str, arguments: str = "%out: !pto.ptr<i64>, %i: index, %j: i32", **options: str) -> list[str]:
    found = text(program(body, arguments, **options), PASS).splitlines()
    return [line.strip() for line in found[2:-3]]


def used(*values: str) -> str:
    """Uses of values of type index."""
    return "\n".join(f"pto.set_flag_dyn[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, %{v}]" for v in values)


def test_equal_constants() -> None:
    found = lines(
        f"%a = arith.constant 3 : index\n%b = arith.constant 3 : index\n%c = arith.constant 4 : index\n{used('a', 'b', 'c')}"
    )
    assert [line for line in found if "constant" in line] == [
        "%a = arith.constant 3 : index",
        "%c = arith.constant 4 : index",
    ]
    assert sum("%a]" in line for line in found) == 2


def test_constants_of_another_type_or_sign_are_others() -> None:
    found = lines("""%a = arith.constant 3 : i32
    %b = arith.constant 3 : i64
    %c = arith.constant 0.0 : f32
    %d = arith.constant -0.0 : f32
    pto.print ins("%d", %a : i32)
    pto.print ins("%d", %b : i64)
    pto.print ins("%f", %c : f32)
    pto.print ins("%f", %d : f32)""")
    assert sum("constant" in line for line in found) == 4


def test_equal_values() -> None:
    found = lines(f"""%c = arith.constant 3 : index
    %a = arith.addi %i, %c : index
    %b = arith.addi %i, %c : index
    %d = arith.addi %c, %i : index
    %e = arith.muli %b, %c : index
    %f = arith.muli %a, %c : index
    {used("a", "b", "d", "e", "f")}""")
    assert sum("addi" in line for line in found) == 2 and sum("muli" in line for line in found) == 1


def test_inner_code_uses_outer_values_only() -> None:
    """Values of a branch are not visible after it, nor on the other branch."""
    found = lines(f"""%t = arith.cmpi eq, %i, %i : index
    %c = arith.constant 3 : index
    scf.if %t {{
      %c1 = arith.constant 3 : index
      %a = arith.addi %i, %c1 : index
      {used("a")}
    }} else {{
      %b = arith.addi %i, %c : index
      {used("b")}
    }}
    %d = arith.addi %i, %c : index
    {used("d", "c")}""")
    assert sum("constant 3" in line for line in found) == 1
    assert sum("addi" in line for line in found) == 3


def test_a_first_block_is_known_in_all_others() -> None:
    found = lines(f"""%t = arith.cmpi eq, %i, %i : index
    %c = arith.constant 3 : index
    cf.cond_br %t, ^a, ^b
    ^a:
    %c1 = arith.constant 3 : index
    %x = arith.constant 5 : index
    {used("c1", "x")}
    cf.br ^b
    ^b:
    %c2 = arith.constant 3 : index
    %y = arith.constant 5 : index
    {used("c2", "y")}""")
    assert sum("constant 3" in line for line in found) == 1
    assert sum("constant 5" in line for line in found) == 2


def test_uses_before_their_definition_in_the_text() -> None:
    """Blocks may stand in any order."""
    source = program(f"""%t = arith.cmpi eq, %i, %i : index
    %c = arith.constant 3 : index
    cf.br ^b
    ^a:
    {used("d")}
    cf.br ^c
    ^b:
    %d = arith.constant 3 : index
    cf.br ^a
    ^c:""", "%out: !pto.ptr<i64>, %i: index")  # fmt: skip
    assert text(source, PASS).count("constant") == 1


def test_known_results() -> None:
    found = lines(
        """%a = arith.constant 3 : index
    %b = arith.constant 4 : index
    %s = arith.addi %a, %b : index
    %p = arith.muli %s, %b : index
    %w = arith.index_cast %p : index to i32
    %t = arith.cmpi slt, %a, %b : index
    %x = arith.select %t, %i, %b : index
    %z = arith.constant 0 : index
    %y = arith.addi %x, %z : index
    pto.print ins("%d", %w : i32)
    """
        + used("y")
    )
    assert found == ["%w = arith.constant 28 : i32", 'pto.print ins("%d", %w : i32)',
                     "pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %i]"]  # fmt: skip


def test_unused_values_go_with_all_that_only_they_used() -> None:
    found = lines("""%a = arith.constant 3 : index
    %b = arith.addi %i, %a : index
    %c = pto.get_block_idx
    %p = pto.addptr %out, %b : !pto.ptr<i64> -> !pto.ptr<i64>
    %v = pto.make_tensor_view %p, shape = [%a, %a], strides = [%a, %a] : !pto.tensor_view<?x?xi64>""")
    assert found == []


def test_what_has_an_effect_stays() -> None:
    body = """%t = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>
    %u = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>
    %a = pto.declare_eventid_array -> !pto.eventid_array<2>
    %b = pto.declare_eventid_array -> !pto.eventid_array<2>
    %c0 = arith.constant 0 : index
    %x = pto.load_scalar %out[%c0] : !pto.ptr<i64> -> i64
    %y = pto.load_scalar %out[%c0] : !pto.ptr<i64> -> i64
    %r = pto.treshape %t : !pto.tile_buf<vec, 8x8xf32> -> !pto.tile_buf<vec, 4x16xf32>
    %s = pto.treshape %t : !pto.tile_buf<vec, 8x8xf32> -> !pto.tile_buf<vec, 4x16xf32>
    pto.barrier #pto.pipe<PIPE_V>
    pto.barrier #pto.pipe<PIPE_V>"""
    found = lines(body)
    for name, count in (
        ("alloc_tile", 2),
        ("declare_eventid_array", 2),
        ("load_scalar", 2),
        ("treshape", 2),
        ("barrier", 2),
    ):
        assert sum(name in line for line in found) == count, name


def test_reads_of_an_array_of_event_ids_stay_apart() -> None:
    """A value read before a change is not the one read after it."""
    found = lines(f"""%c0 = arith.constant 0 : index
    %a = pto.declare_eventid_array -> !pto.eventid_array<2>
    pto.eventid_array_set %a[%c0], %c0 : !pto.eventid_array<2>
    %x = pto.eventid_array_get %a[%c0] : !pto.eventid_array<2>
    pto.eventid_array_set %a[%c0], %i : !pto.eventid_array<2>
    %y = pto.eventid_array_get %a[%c0] : !pto.eventid_array<2>
    {used("x", "y")}""")
    assert sum("eventid_array_get" in line for line in found) == 2


def test_views_that_are_pointed_elsewhere_stay_apart() -> None:
    """Two equal views that are bound to slots of a FIFO are two."""
    source = """module attributes {pto.target_arch = "a3"} {
func.func @f(%gm: !pto.ptr<f32>) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
  %c16 = arith.constant 16 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i32
  %p = pto.initialize_l2g2l_pipe {dir_mask = 2, slot_size = 1024, slot_num = 4, flag_base = 0} (%gm : !pto.ptr<f32>, %z : i32) -> !pto.pipe
  %a = pto.make_tensor_view %gm, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
  %b = pto.make_tensor_view %gm, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
  %c = pto.make_tensor_view %gm, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
  %d = pto.make_tensor_view %gm, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
  pto.talloc(%a, %p : !pto.tensor_view<16x16xf32>, !pto.pipe) {split = 0}
  pto.talloc(%b, %p : !pto.tensor_view<16x16xf32>, !pto.pipe) {split = 0}
  %x = pto.tensor_view_addr %c : !pto.tensor_view<16x16xf32> -> !pto.ptr<f32>
  %y = pto.tensor_view_addr %d : !pto.tensor_view<16x16xf32> -> !pto.ptr<f32>
  %v = pto.load_scalar %x[%c1] : !pto.ptr<f32> -> f32
  %w = pto.load_scalar %y[%c1] : !pto.ptr<f32> -> f32
  return
}
}
"""
    found = text(source, PASS)
    assert found.count("make_tensor_view") == 3 and found.count("tensor_view_addr") == 1


def test_a_strict_vecscope_sees_what_it_is_given_only() -> None:
    source = """module attributes {pto.target_arch = "a5"} {
func.func @f(%p: !pto.ptr<f32, ub>) {
  %c0 = arith.constant 0 : index
  %q = pto.addptr %p, %c0 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
  pto.strict_vecscope(%q) {
  ^bb0(%x: !pto.ptr<f32, ub>):
    %z = arith.constant 0 : index
    %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
    %v = pto.vlds %x[%z] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
    pto.vsts %v, %x[%z], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
  } : (!pto.ptr<f32, ub>) -> ()
  return
}
}
"""
    assert text(source, PASS).count("constant 0 : index") == 2


# -- results -----------------------------------------------------------------------------------------------

_OPS = ("addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "shli", "divsi", "remsi")


def _random_body(rng: random.Random) -> str:
    """Integer code over constants and two arguments, which stores all that it computes."""
    names: dict[str, list[str]] = {"i8": [], "i32": [], "i64": []}
    out: list[str] = []
    count = 0

    def fresh() -> str:
        nonlocal count
        count += 1
        return f"%v{count}"

    for type, bits in (("i8", 8), ("i32", 32), ("i64", 64)):
        for _ in range(3):
            n = rng.choice([0, 1, -1, 2, rng.randrange(-(1 << bits - 1), 1 << bits - 1)])
            names[type].append(fresh())
            out.append(f"{names[type][-1]} = arith.constant {n} : {type}")
    names["i64"].append("%x")
    for _ in range(30):
        type = rng.choice(list(names))
        a, b = (rng.choice(names[type]) for _ in range(2))
        made = fresh()
        kind = rng.random()
        if kind < 0.6:
            op = rng.choice(_OPS[:8])
            out.append(f"{made} = arith.{op} {a}, {b} : {type}")
        elif kind < 0.75:
            test = fresh()
            word = rng.choice(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "uge"])
            out += [
                f"{test} = arith.cmpi {word}, {a}, {b} : {type}",
                f"{made} = arith.select {test}, {a}, {b} : {type}",
            ]
        elif type == "i64":
            out.append(f"{made} = arith.extsi {rng.choice(names['i8'])} : i8 to i64")
        elif type == "i8":
            out.append(f"{made} = arith.trunci {rng.choice(names['i32'])} : i32 to i8")
        else:
            out.append(f"{made} = arith.extsi {rng.choice(names['i8'])} : i8 to i32")
        names[type].append(made)
    stored: list[str] = []
    for at, (type, value) in enumerate((t, v) for t in names for v in names[t]):
        wide = value
        if type != "i64":
            wide = fresh()
            stored.append(f"{wide} = arith.extsi {value} : {type} to i64")
        place = fresh()
        stored += [
            f"{place} = arith.constant {at} : index",
            f"pto.store_scalar {wide}, %out[{place}] : !pto.ptr<i64>, i64",
        ]
    return "\n".join(out + stored)


@pytest.mark.seeded
@pytest.mark.parametrize("usual", some(range(12), 4))
def test_random_integer_code_computes_the_same(usual: int) -> None:
    (seed,) = seeds([usual])
    source = program(_random_body(random.Random(seed)), "%out: !pto.ptr<i64>, %x: i64")
    for x in (1, -7):
        module = runs_alike(source, [np.full(64, -1, np.int64), x], PASS)
    before = sum(1 for _ in pto.parse(source).walk())
    assert sum(1 for _ in module.walk()) < before


@pytest.mark.seeded
def test_twice_is_once() -> None:
    for seed in seeds(some(range(10), 3)):
        once = text(program(_random_body(random.Random(seed)), "%out: !pto.ptr<i64>, %x: i64"), PASS)
        assert text(once, PASS) == once


def test_names_are_kept() -> None:
    found = lines("%size = arith.constant 3 : index\n" + used("size"))
    assert found[0] == "%size = arith.constant 3 : index"
    assert not re.search(r"%\d", "\n".join(found))


def test_work_grows_with_the_program() -> None:
    """Four times the code is four times the work, not sixteen."""

    def work(n: int) -> int:
        body = "\n".join(
            f"%c{k} = arith.constant {k % 7} : index\n%d{k} = arith.addi %i, %c{k} : index" for k in range(n)
        )
        module = pto.parse(program(body, "%i: index"))
        return calls(result, module, PASS)

    assert work(1200) < 5 * work(300)
