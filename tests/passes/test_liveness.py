"""Live ranges of tiles: steps counted by hand on small programs."""

from __future__ import annotations

from tests.each import together

from pto.ir.core import Module
from pto.isa.profiles import profile
from pto.passes.aliases import Aliases
from pto.passes.liveness import Liveness, joined
from pto.passes.plan_memory import components

from .plan_checks import A3, BYTES, TILE, plan, program

LOOP = "scf.for %i = %c0 to %n step %c1 {"


def spans(
    module: Module, kinds: dict[str, str] | None = None, target: str = "a3", least: bool = False
) -> dict[str, str]:
    """Name -> steps, as text: '0-2 5'."""
    out: dict[str, str] = {}
    for functions, callees in components(module):
        aliases = Aliases(functions, callees, profile(target))
        Liveness(aliases, kinds, least)
        for s in aliases.storages:
            runs = [f"{a}-{b}" if b > a else str(a) for a, b in joined([*s.spans, *s.below])]
            out[s.value.name] = " ".join(runs)
    return out


def test_from_first_write_to_last_read() -> None:
    found = spans(program("alloc a b c\nload a\nload b\nadd a b c\nstore c\nstore a"))
    assert found == {"a": "0-4", "b": "1-2", "c": "2-3"}


def test_a_write_that_replaces_all_ends_what_was_there() -> None:
    assert spans(program("alloc a b\nload a\nstore a\nload b\nstore b\nload a\nstore a"))["a"] == "0-1 4-5"


def test_a_write_that_nobody_reads_still_takes_its_step() -> None:
    assert spans(program("alloc a\nload a\nload a\nstore a"))["a"] == "0-2"
    assert spans(program("alloc a b\nload a\nload b\nstore b")) == {"a": "0", "b": "1-2"}


def test_writing_a_part_keeps_the_rest() -> None:
    part = "!pto.tile_buf<vec, 4x64xf32>"
    body = f"""alloc a b
load a
load b
store b
%w = pto.subview %a[%c0, %c0] sizes [4, 64] : TILE -> {part}
pto.tadds ins(%w, %f : {part}, f32) outs(%w : {part})
store a"""
    module = program("%f = arith.constant 1.0 : f32\n" + body)
    assert spans(module)["a"] == "0-4"
    # Written without being read: the other rows are those of the load.
    module = program(
        "%f = arith.constant 1.0 : f32\n"
        + body.replace("tadds ins(%w, %f : " + part + ", f32)", "texpands ins(%f : f32)")
    )
    assert spans(module)["a"] == "0-4"


def test_a_valid_region_that_changes_keeps_what_is_outside() -> None:
    dyn = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>"
    body = f"""%a = pto.alloc_tile valid_row = %c8 valid_col = %c64 : {dyn}
%f = arith.constant 1.0 : f32
alloc b
pto.texpands ins(%f : f32) outs(%a : {dyn})
SET
load b
store b
pto.texpands ins(%f : f32) outs(%a : {dyn})
pto.tmov ins(%a : {dyn}) outs(%b : TILE)"""
    assert spans(program(body.replace("SET", "")))["a"] == "0 3-4"
    changed = body.replace("SET", f"pto.set_validshape %a, %c4, %c64 : {dyn}")
    assert spans(program(changed))["a"] == "0-4"


def test_a_view_sees_more_than_the_valid_region() -> None:
    part = "!pto.tile_buf<vec, 8x64xf32, valid=8x32>"
    body = f"""%a = pto.alloc_tile : {part}
alloc b
%f = arith.constant 1.0 : f32
%w = pto.treshape %a : {part} -> TILE
pto.texpands ins(%f : f32) outs(%w : TILE)
load b
store b
pto.texpands ins(%f : f32) outs(%a : {part})
mov w b"""
    assert spans(program(body))["a"] == "0-4"


def test_a_load_of_unknown_extent_may_leave_something() -> None:
    wide = "!pto.tensor_view<?x64xf32>"
    window = "!pto.partition_tensor_view<?x64xf32>"

    def body(size: str) -> str:
        return f"""alloc a b
load a
store a
load b
store b
%p = pto.partition_view %g, offsets = [%c0, %c0], sizes = [{size}, %c64] : {wide} -> {window}
pto.tload ins(%p : {window}) outs(%a : TILE)
store a"""

    assert spans(program(body("%n"), args=f", %g: {wide}"))["a"] == "0-5"
    assert spans(program(body("%c8"), args=f", %g: {wide}"))["a"] == "0-1 4-5"
    assert spans(program(body("%c4"), args=f", %g: {wide}"))["a"] == "0-5"


def test_never_written_and_never_used() -> None:
    found = spans(program("alloc a b c d\nload b\nadd a b c\nstore c\nadd a c b"))
    assert found == {"a": "1 3", "b": "0-1 3", "c": "1-3", "d": ""}
    assert spans(program("alloc a b c\nload b\nadd a b c\nstore c"), least=True)["a"] == ""


def test_dead_between_turns() -> None:
    found = spans(program(f"alloc a b\n{LOOP}\nload a\nstore a\nload b\nstore b\n}}"))
    assert found == {"a": "0-1", "b": "2-3"}


def test_read_before_written_is_carried_around() -> None:
    found = spans(program(f"alloc a b\nload a\n{LOOP}\nload b\nadd a b b\nstore b\nload a\n}}"))
    assert found["a"] == "0-2 4"  # at step 3, the store of b, the next value of a is still to come
    found = spans(program(f"alloc a b\nload a\n{LOOP}\nstore a\nload b\nstore b\nload a\n}}"))
    assert found == {"a": "0-1 4", "b": "2-3"}


def test_used_after_the_loop() -> None:
    assert spans(program(f"alloc a b\nload a\n{LOOP}\nload b\nstore b\n}}\nstore a"))["a"] == "0-3"


def test_written_in_a_loop_that_may_not_run() -> None:
    """Whoever comes to step 1 comes to step 3, which replaces it; who does not needs the first value."""
    found = spans(program(f"alloc a b\nload a\n{LOOP}\nload b\nstore b\nload a\n}}\nstore a"))
    assert found["a"] == "0 3-4"
    found = spans(program(f"alloc a b\nload a\nload b\nstore b\n{LOOP}\nload a\n}}\nstore a"))
    assert found["a"] == "0-4"


def test_an_allocation_in_a_loop_is_new_each_turn() -> None:
    # Only a part is written, so without the allocation in the loop the old content would live on.
    part = "!pto.tile_buf<vec, 4x64xf32>"
    body = f"""%w = pto.subview %a[%c0, %c0] sizes [4, 64] : TILE -> {part}
load b
store b
pto.texpands ins(%f : f32) outs(%w : {part})
store a"""
    inside = program(f"%f = arith.constant 1.0 : f32\nalloc b\n{LOOP}\nalloc a\n{body}\n}}")
    outside = program(f"%f = arith.constant 1.0 : f32\nalloc b a\n{LOOP}\n{body}\n}}")
    assert spans(inside)["a"] == "2-3"
    assert spans(outside)["a"] == "0-3"


def test_loop_hands_tiles_on() -> None:
    found = spans(
        program("""alloc a s
load a
%r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a) -> (TILE) {
load s
store t
alloc b
load b
scf.yield %b : TILE
}
store r""")
    )
    assert found == {"a": "0-4", "s": "1", "b": "1-4"}


def test_a_tile_of_the_turn_before_outlives_its_allocation() -> None:
    """The loop comes to the allocation of b while t, which is b of the last iteration, is still to be
    read."""
    found = spans(
        program("""alloc a s
load a
%r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a) -> (TILE) {
alloc b
load s
store s
store t
load b
scf.yield %b : TILE
}""")
    )
    assert found["b"] == "1-4"


def test_swapping_tiles() -> None:
    found = spans(
        program("""alloc a b s
load a
load b
%r, %q = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a, %u = %b) -> (TILE, TILE) {
load s
add s t t
scf.yield %u, %t : TILE, TILE
}
store r""")
    )
    assert found == {"a": "0-4", "b": "1-4", "s": "2-3"}


def test_branches() -> None:
    found = spans(
        program("""alloc a b d
load a
scf.if %yes {
load b
store b
} else {
load d
store d
}
store a""")
    )
    assert found == {"a": "0-5", "b": "1-2", "d": "3-4"}
    found = spans(program("alloc a\nscf.if %yes {\nload a\n}\nstore a"))
    assert found == {"a": "0-1"}


def test_a_branch_that_replaces_on_one_side_only() -> None:
    found = spans(program("alloc a b\nload a\nload b\nstore b\nscf.if %yes {\nload a\n}\nstore a"))
    assert found["a"] == "0-4"
    found = spans(
        program("alloc a b\nload a\nload b\nstore b\nscf.if %yes {\nload a\n} else {\nload a\n}\nstore a")
    )
    assert found["a"] == "0 3-5"


def test_a_branch_gives_a_tile() -> None:
    found = spans(
        program("""%r = scf.if %yes -> (TILE) {
alloc a
load a
scf.yield %a : TILE
} else {
alloc b
load b
scf.yield %b : TILE
}
alloc s
load s
store s
store r""")
    )
    assert found == {"a": "0 2-4", "b": "1-4", "s": "2-3"}


def test_while() -> None:
    found = spans(
        program("""alloc a s
load a
%r = scf.while (%t = %a) : (TILE) -> TILE {
load s
store s
scf.condition(%yes) %t : TILE
} do {
^bb0(%u: TILE):
alloc b
load b
store u
scf.yield %b : TILE
}
store r""")
    )
    assert found == {"a": "0-5", "s": "1-2", "b": "1-5"}


def test_switch_and_region() -> None:
    found = spans(
        program("""alloc a b
load a
scf.index_switch %n
case 1 {
load b
store b
scf.yield
}
default {
scf.yield
}
scf.execute_region {
store a
scf.yield
}""")
    )
    assert found == {"a": "0-3", "b": "1-2"}


def test_blocks() -> None:
    """A loop made of branches: a write at its end is read at its start."""
    found = spans(
        program("""alloc a b
load a
scf.execute_region {
cf.br ^head
^head:
store a
load b
store b
load a
cf.cond_br %yes, ^head, ^out
^out:
scf.yield
}""")
    )
    assert found == {"a": "0-1 4", "b": "2-3"}


def test_pointers_keep_their_tile() -> None:
    found = spans(
        program("""alloc a b
load a
%p = pto.tile_buf_addr %a : TILE -> !pto.ptr<f32, ub>
load b
store b
%q = pto.addptr %p, %c1 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
%v = pto.load_scalar %q[%c0] : !pto.ptr<f32, ub> -> f32""")
    )
    assert found == {"a": "0-3", "b": "1-2"}


def test_views_keep_their_tile() -> None:
    found = spans(
        program("""alloc a b
load a
%w = pto.treshape %a : TILE -> !pto.tile_buf<vec, 16x32xf32>
load b
store b
%d = pto.alloc_tile : !pto.tile_buf<vec, 16x32xf32>
pto.tmov ins(%w : !pto.tile_buf<vec, 16x32xf32>) outs(%d : !pto.tile_buf<vec, 16x32xf32>)""")
    )
    assert found == {"a": "0-3", "b": "1-2", "d": "3"}


def test_calls() -> None:
    """A callee's steps come first; tiles that the caller keeps, or passes, are occupied at all of them."""
    helper = """func.func private @f(%t: TILE, %in: !pto.partition_tensor_view<8x64xf32>) {
%h = pto.alloc_tile : TILE
pto.tload ins(%in : !pto.partition_tensor_view<8x64xf32>) outs(%h : TILE)
pto.tadd ins(%h, %h : TILE, TILE) outs(%t : TILE)
return
}"""
    found = spans(
        program(
            """alloc a b d
load a
load b
load d
store d
func.call @f(%b, %in) : (TILE, !pto.partition_tensor_view<8x64xf32>) -> ()
store a
store b""",
            helper,
        )
    )
    assert found == {"h": "0-1", "a": "0-7", "b": "0-1 3-8", "d": "4-5"}


def test_a_callee_returns_its_tile() -> None:
    helper = """func.func private @f(%in: !pto.partition_tensor_view<8x64xf32>) -> TILE {
%h = pto.alloc_tile : TILE
pto.tload ins(%in : !pto.partition_tensor_view<8x64xf32>) outs(%h : TILE)
return %h : TILE
}"""
    found = spans(
        program(
            """alloc a
%r = func.call @f(%in) : (!pto.partition_tensor_view<8x64xf32>) -> TILE
load a
store a
store r""",
            helper,
        )
    )
    assert found == {"h": "0-4", "a": "2-3"}


def test_what_both_kinds_of_core_touch_lives_throughout() -> None:
    text = """alloc a b v
pto.section.vector {
load v
store v
}
pto.section.cube {
load a
}
pto.section.vector {
store a
load b
store b
}"""
    assert spans(program(text)) == {"a": "0-5", "b": "4-5", "v": "0-1"}


def test_quantisation_vector_stays() -> None:
    text = """%q = pto.alloc_tile : !pto.tile_buf<scaling, 1x64xui64>
alloc a
pto.set_quant_vector(%q : !pto.tile_buf<scaling, 1x64xui64>) {id = 0}
load a
store a"""
    assert spans(program(text))["q"] in ("0", "0-2")  # nothing is known to have written it
    wide = "!pto.partition_tensor_view<1x64xui64>"
    mat = "!pto.tile_buf<mat, 1x64xui64, blayout=row_major, slayout=none_box>"
    text = f"""%q = pto.alloc_tile : !pto.tile_buf<scaling, 1x64xui64>
%m = pto.alloc_tile : {mat}
alloc a
pto.tload ins(%g : {wide}) outs(%m : {mat})
pto.tmov ins(%m : {mat}) outs(%q : !pto.tile_buf<scaling, 1x64xui64>)
pto.set_quant_vector(%q : !pto.tile_buf<scaling, 1x64xui64>) {{id = 0}}
load a
store a"""
    assert spans(program(text, args=f", %g: {wide}"))["q"] == "1-4"


def test_scratch_that_the_target_does_not_use() -> None:
    line = (
        f"pto.trowmax ins(%a, %t : {TILE}, {TILE}) outs(%r : !pto.tile_buf<vec, 8x1xf32, blayout=col_major>)"
    )
    module = program(
        f"alloc a t\n%r = pto.alloc_tile : !pto.tile_buf<vec, 8x1xf32, blayout=col_major>\nload a\n{line}"
    )
    for target, least, expected in (("a3", True, "1"), ("a5", False, "1"), ("a5", True, "")):
        assert spans(module, target=target, least=least)["t"] == expected, (target, least)


def test_needed_after_a_step() -> None:
    module = program("alloc a b\nload a\nmov a b\nstore b\nstore a")
    ((functions, callees),) = components(module)
    live = Liveness(Aliases(functions, callees, A3))
    names = [{s.value.name for s in live.aliases.members(mask)} for mask in live.after]
    assert names == [{"a"}, {"a", "b"}, {"a"}, set()]


@together(
    ("given", "expected"),
    [([], []), ([(1, 2)], [(1, 2)]), ([(4, 5), (1, 2)], [(1, 2), (4, 5)]), ([(1, 2), (3, 4)], [(1, 4)]),
     ([(1, 9), (2, 3)], [(1, 9)])],
)  # fmt: skip
def test_joined(given: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    assert joined(given) == expected


def test_one_size() -> None:
    assert plan(program("alloc a\nload a\nstore a")).plan.functions["k"].spaces["vec"].peak == BYTES  # type: ignore[union-attr]
