"""Structure: symbols and calls, entries, terminators, what regions yield, and SSA dominance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.each import together

import pto
from pto.asm import parse, to_text
from pto.ir.dominance import dominator_tree

Check = Callable[..., Any]


# ------------------------------------------------------------------------------------------- dominance


def test_definition_in_a_dominating_block(annotated: Check) -> None:
    annotated("""
func.func @k(%c: i1) {
  %x = arith.constant 1 : i32
  cf.cond_br %c, ^a, ^b
^a:
  %y = arith.addi %x, %x : i32
  cf.br ^b
^b:
  %z = arith.extsi %x : i32 to i64
  return
}
""")


def test_definition_on_one_path_only(annotated: Check) -> None:
    (found,) = annotated("""
func.func @k(%c: i1) {
  cf.cond_br %c, ^a, ^b
^a:
  %x = arith.constant 1 : i32
  cf.br ^b
^b:
  %z = arith.extsi %x : i32 to i64 //~ PTO-E0203
  return
}
""")
    assert [note for note, _ in found.notes] == ["defined here"]


def test_block_arguments_join_two_paths(annotated: Check) -> None:
    annotated("""
func.func @k(%c: i1, %p: i32, %q: i32) {
  cf.cond_br %c, ^a, ^b
^a:
  cf.br ^join(%p : i32)
^b:
  cf.br ^join(%q : i32)
^join(%x: i32):
  %z = arith.extsi %x : i32 to i64
  return
}
""")


def test_use_before_definition_in_one_block(annotated: Check) -> None:
    annotated("""
func.func @k(%n: index) {
  %a = arith.addi %n, %b : index //~ PTO-E0203
  %b = arith.addi %n, %n : index
  return
}
""")


def test_definition_in_a_loop_header_reaches_the_exit(annotated: Check) -> None:
    annotated("""
func.func @k(%c: i1, %n: i32) {
  cf.br ^head
^head:
  %x = arith.addi %n, %n : i32
  cf.cond_br %c, ^body, ^exit
^body:
  cf.br ^head
^exit:
  %z = arith.extsi %x : i32 to i64
  return
}
""")


def test_branch_argument_must_be_defined_on_every_path(annotated: Check) -> None:
    annotated("""
func.func @k(%c: i1) {
  cf.cond_br %c, ^a, ^b
^a:
  %x = arith.constant 1 : i32
  cf.br ^b
^b:
  cf.br ^end(%x : i32) //~ PTO-E0203
^end(%y: i32):
  return
}
""")


def test_regions_see_what_is_above_them(annotated: Check) -> None:
    annotated("""
func.func @k(%c: i1, %n: index) {
  %x = arith.addi %n, %n : index
  scf.if %c {
    scf.for %i = %n to %x step %n {
      %y = arith.addi %i, %x : index
    }
  }
  return
}
""")


def test_regions_do_not_see_what_is_below_them(annotated: Check) -> None:
    annotated("""
func.func @k(%c: i1, %n: index) {
  scf.if %c {
    %y = arith.addi %n, %x : index //~ PTO-E0203
  }
  %x = arith.addi %n, %n : index
  return
}
""")


@pytest.mark.parametrize("use", ["%i", "%inner"])
def test_names_of_a_region_end_with_it(annotated: Check, use: str) -> None:
    annotated(f"""
func.func @k(%n: index) {{
  scf.for %i = %n to %n step %n {{
    %inner = arith.addi %i, %n : index
  }}
  %z = arith.addi {use}, %n : index //~ PTO-E0201
  return
}}
""")


def test_names_of_sibling_regions_are_independent(annotated: Check) -> None:
    annotated("""
func.func @k(%c: i1, %n: index) {
  scf.if %c {
    %x = arith.addi %n, %n : index
  } else {
    %x = arith.addi %n, %n : index
  }
  return
}
""")


def test_functions_do_not_see_each_other(annotated: Check) -> None:
    annotated("""
module {
  func.func private @a(%n: index) {
    return
  }
  func.func private @b() {
    %z = arith.addi %n, %n : index //~ PTO-E0201
    return
  }
}
""")


def test_immediate_dominators_of_a_diamond() -> None:
    module = parse("""
func.func @k(%c: i1) {
  cf.cond_br %c, ^a, ^b
^a:
  cf.br ^join
^b:
  cf.br ^join
^join:
  cf.cond_br %c, ^join, ^end
^end:
  return
}
""")
    region = module.functions[0].regions[0]
    entry, a, b, join, end = region.blocks
    assert dominator_tree(region) == {a: entry, b: entry, join: entry, end: join}


def test_unreachable_blocks_are_checked_too(annotated: Check) -> None:
    annotated("""
func.func @k(%n: index) {
  %x = arith.addi %n, %n : index
  return
^nowhere:
  %y = arith.addi %x, %n : index
  return
}
""")


# -------------------------------------------------------------------------------- terminators and yields


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("%x = arith.addi %n, %n : index //~ PTO-E0211", "func.return"),
        ("%r = scf.for %i = %n to %n step %n iter_args(%a = %n) -> (index) {\n"
         "%x = arith.addi %a, %n : index //~ PTO-E0211\n}\nreturn", "scf.yield"),
    ],
)  # fmt: skip
def test_missing_terminator(annotated: Check, body: str, wanted: str) -> None:
    (found,) = annotated(f"func.func @k(%n: index) {{\n{body}\n}}\n")
    assert found.expected == wanted


def test_terminator_in_the_middle(annotated: Check) -> None:
    annotated("""
func.func @k(%n: index) {
  scf.for %i = %n to %n step %n {
    scf.yield //~ PTO-E0212
    %x = arith.addi %i, %n : index
  }
  return
}
""")


def test_sections_and_vecscopes_have_no_terminator(annotated: Check) -> None:
    annotated("""
func.func @k() {
  pto.section.vector {
    scf.yield //~ PTO-E0212
  }
  pto.vecscope {
    scf.yield //~ PTO-E0212
  }
  return
}
""", "a5")  # fmt: skip


def test_wrong_terminator(annotated: Check) -> None:
    (found,) = annotated("""
func.func @k(%n: index, %c: i1) {
  scf.while () : () -> () {
    scf.yield //~ PTO-E0213
  } do {
  }
  return
}
""")
    assert (found.expected, found.got) == ("scf.condition", "scf.yield")


def test_while_types(annotated: Check) -> None:
    annotated("""
func.func @k(%n: index, %c: i1, %w: i32) {
  %r = scf.while (%a = %n) : (index) -> i32 {
    scf.condition(%c) %w : i32
  } do {
  ^bb0(%b: i32):
    scf.yield %n : index
  }
  %s = scf.while (%a = %n) : (index) -> i32 {
    scf.condition(%c) %a : index //~ PTO-E0213
  } do {
  ^bb0(%b: i32):
    scf.yield %b : i32 //~ PTO-E0213
  }
  return
}
""")


def test_return_values(annotated: Check) -> None:
    annotated("""
module {
  func.func private @one(%n: index) -> index {
    return %n : index
  }
  func.func private @two(%n: index) -> (index, index) {
    return %n : index //~ PTO-E0213
  }
  func.func private @none(%n: index) {
    return %n : index //~ PTO-E0213
  }
}
""")


def test_branch_arguments(annotated: Check) -> None:
    (found,) = annotated("""
func.func @k(%n: index) {
  cf.br ^a(%n : index) //~ PTO-E0213
^a(%x: i32):
  return
}
""")
    assert (found.expected, found.got) == ("i32", "index")


def test_every_case_of_a_switch_yields(annotated: Check) -> None:
    annotated("""
func.func @k(%n: index, %w: i32) {
  %r = scf.index_switch %n -> index
  case 1 {
    scf.yield %n : index
  }
  default {
    scf.yield %w : i32 //~ PTO-E0213
  }
  return
}
""")


# ------------------------------------------------------------------------------- functions and entries


def test_entry_rules(annotated: Check) -> None:
    annotated("""
module {
  func.func private @helper(%n: index) -> index {
    return %n : index
  }
  func.func @entry(%n: index) -> index attributes {pto.entry} { //~ PTO-E0215
    return %n : index
  }
  func.func private @declared(%n: index) attributes {pto.entry} //~ PTO-E0217
}
""")


def test_the_only_function_is_the_entry(annotated: Check) -> None:
    annotated("""
func.func @k(%n: index) -> index { //~ PTO-E0215
  return %n : index
}
""")


def test_two_unmarked_functions_are_no_entries(annotated: Check) -> None:
    annotated("""
module {
  func.func @a(%n: index) -> index {
    return %n : index
  }
  func.func @b() {
    return
  }
}
""")


@together(
    ("call", "code"),
    [
        ("%r = call @f(%n) : (index) -> index", ""),
        ("%r = call @f(%w) : (i32) -> index", "PTO-E0218"),
        ("call @f(%n) : (index) -> ()", "PTO-E0218"),
        ("%r = call @f(%n) : (index) -> i32", "PTO-E0218"),
        ("%r = call @f(%n) : (index, index) -> index", "PTO-E0218"),
        ("%r = call @f(%n) : (i32) -> index", "PTO-E0207"),
        ("%r = call @ff(%n) : (index) -> index", "PTO-E0204"),
    ],
)
def test_call_signatures(annotated: Check, call: str, code: str) -> None:
    annotated(f"""
module {{
  func.func private @f(%n: index) -> index
  func.func @k(%n: index, %w: i32) attributes {{pto.entry}} {{
    {call} {f"//~ {code}" if code else ""}
    return
  }}
}}
""")


def test_undefined_function_suggests_a_name(annotated: Check) -> None:
    (found,) = annotated("""
module {
  func.func private @softmax(%n: index)
  func.func @k(%n: index) attributes {pto.entry} {
    call @sofmax(%n) : (index) -> () //~ PTO-E0204
    return
  }
}
""")
    assert found.help == "did you mean 'softmax'?"


@pytest.mark.parametrize(
    ("calls", "lines"),
    [
        ({"a": "b", "b": "c"}, 0),
        ({"a": "a"}, 1),
        ({"a": "b", "b": "a"}, 1),
        ({"a": "b", "b": "c", "c": "a"}, 1),
    ],
)
def test_recursion(diagnose: Check, calls: dict[str, str], lines: int) -> None:
    functions = "\n".join(
        f"func.func private @{name}() {{\n"
        + (f"call @{calls[name]}() : () -> ()\n" if name in calls else "")
        + "return\n}"
        for name in "abc"
    )
    found = diagnose(f"module {{\n{functions}\n}}\n")
    assert [d.code for d in found] == ["PTO-E0216"] * lines


def test_function_attributes(annotated: Check) -> None:
    annotated("""
module {
  func.func private @a() attributes {pto.kernel_kind = "cube"} { //~ PTO-E0112
    return
  }
  func.func private @b() attributes {pto.auto_sync_tail_hint = "barier-all"} { //~ PTO-E0112
    return
  }
  func.func private @c() attributes {pto.auto_sync_tail_hint = "mte3-to-s-event0"} {
    return
  }
}
""")


def test_five_structural_errors_at_once(annotated: Check) -> None:
    """Independent errors do not hide one another."""
    annotated("""
module {
  func.func @a(%c: i1, %n: index) attributes {pto.entry} {
    call @missing() : () -> () //~ PTO-E0204
    scf.if %c {
      %y = arith.addi %n, %x : index //~ PTO-E0203
    }
    %x = arith.addi %n, %n : index
    return %n : index //~ PTO-E0213
  }
  func.func @a() { //~ PTO-E0205
    return
  }
  func.func @b() -> index attributes {pto.entry} //~ PTO-E0217
}
""")


LINKED = """
module {{
  module attributes {{pto.backend = "emitc"}} {{
    func.func private @twice({type}) {mark}
    func.func @k(%p: !pto.ptr<f32>) attributes {{pto.aicore}} {{
      call @twice(%p) : (!pto.ptr<f32>) -> ()
      return
    }}
  }}
  module attributes {{pto.backend = "vpto"}} {{
    func.func {seen} @twice(%p: !pto.ptr<f32>) {{ {other}
      %zero = arith.constant 0 : index
      %x = pto.load_scalar %p[%zero] : !pto.ptr<f32> -> f32
      %y = arith.addf %x, %x : f32
      pto.store_scalar %y, %p[%zero] : !pto.ptr<f32>, f32
      return
    }}
  }}
}}
"""


def test_a_function_of_another_module() -> None:
    """A module declares what one beside it defines; the two are one function, which is called."""
    module = parse(LINKED.format(type="!pto.ptr<f32>", mark="", seen="public", other=""))
    assert [f.attr("sym_name") for f in module.functions] == ["k", "twice"]
    assert parse(to_text(module)).function("twice") is not None
    for engine in ("reference", "native", "cpp"):
        x = np.array([3], np.float32)
        pto.kernel(module, "k", engine=engine).run(x)
        assert x[0] == 6, engine


@pytest.mark.parametrize(
    ("type", "seen", "codes"),
    [
        ("!pto.ptr<i32>", "public", ("//~ PTO-E0213", "")),
        ("!pto.ptr<f32>", "private", ("", "//~ PTO-E0205")),
    ],
    ids=["another type", "not for others"],
)
def test_what_another_module_defines_otherwise(
    annotated: Check, type: str, seen: str, codes: tuple[str, str]
) -> None:
    annotated(LINKED.format(type=type, mark=codes[0], seen=seen, other=codes[1]))
