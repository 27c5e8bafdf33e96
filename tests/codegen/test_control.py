"""Constants, loops, branches, labels and event ids, as they are written."""

from __future__ import annotations

import re

from ..each import together
from .shapes import body, emit, in_order


def function(text: str, arguments: str = "", attributes: str = "", target: str = "a3", **options: str) -> str:
    return body(emit(f"func.func @k({arguments}){attributes} {{\n{text}\n  return\n}}\n", target, **options))


WHILE = """\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %yes = arith.constant true
  %no = arith.constant false
  %one = arith.constant 1.0 : f32
  %ten = arith.constant 10.0 : f32
  %c32 = arith.constant 32 : index
  %t = pto.alloc_tile valid_row = %c32 valid_col = %c32 : !pto.tile_buf<vec, 32x32xf32, valid=?x?>
  %r:2 = scf.while (%i = %c0, %go = %yes) : (index, i1) -> (index, i1) {
    %below = arith.cmpi slt, %i, %c4 : index
    %on = arith.andi %below, %go : i1
    scf.condition(%on) %i, %go : index, i1
  } do {
  ^bb0(%i: index, %go: i1):
    %even = arith.cmpi eq, %i, %c2 : index
    %value = arith.select %even, %one, %ten : f32
    pto.texpands ins(%value : f32) outs(%t : !pto.tile_buf<vec, 32x32xf32, valid=?x?>)
    %next = arith.addi %i, %c1 : index
    %again = arith.select %even, %no, %go : i1
    scf.yield %next, %again : index, i1
  }"""


def test_a_while_loop_in_a_vector_kernel() -> None:
    """Constants in reverse order of the source after the planned addresses, then guard, mask lines and labels."""
    text = function(WHILE, "", " attributes {pto.kernel_kind = #pto.kernel_kind<vector>}")
    constants = re.findall(r"const (\w+) \w+ = (.*);", text)
    assert constants == [("int64_t", "0"), ("int32_t", "32"), ("float", "10.0f"), ("float", "1.0f"),
                         ("bool", "false"), ("bool", "true"), ("int32_t", "4"), ("int32_t", "2"), ("int32_t", "1"),
                         ("int32_t", "0")]  # fmt: skip
    in_order(
        text, "using T = float;", "#if defined(__DAV_VEC__)", "set_mask_norm();", "set_vector_mask(-1, -1);"
    )
    labels = re.findall(r"^(label\d+):", text, re.MULTILINE)
    head, inside, end = labels
    in_order(text, f"goto {head};", f"{head}:", "if (", f"goto {inside};", "} else {", f"goto {end};", f"{inside}:",
             f"goto {head};", f"{end}:", "#endif // __DAV_VEC__")  # fmt: skip


def test_equal_constants_are_one() -> None:
    text = function(
        """\
  %a = arith.constant 3 : index
  %b = arith.constant 3 : i32
  %c = arith.index_cast %a : index to i32
  %s = arith.addi %b, %c : i32
  pto.store_scalar %s, %p[%a] : !pto.ptr<i32>, i32""",
        "%p: !pto.ptr<i32>",
    )
    assert len(re.findall(r"const int32_t v\d+ = 3;", text)) == 1


def test_literals() -> None:
    numbers = {"10.0 : f32": "10.0f", "-0.25 : f32": "-0.25f", "0.001 : f32": "0.00100000005f", "1.0e-6 : f32":
               "9.99999997E-7f", "1.0e10 : f32": "1.0E+10f", "1.5 : f16": "1.5f", "0.1 : bf16": "0.100097656f",
               "0.1 : f64": "0.1", "-3 : i8": "-3", "200 : i8": "-56", "-9223372036854775808 : i64": "INT64_MIN",
               "0x7F800000 : f32": "__builtin_inff()", "0xFF800000 : f32": "-__builtin_inff()",
               "0x7FC00000 : f32": '__builtin_nanf("")', "-0.0 : f32": "-0.0f"}  # fmt: skip
    for written, literal in numbers.items():
        type = written.rpartition(" ")[2]
        program = f"  %x = arith.constant {written}\n  func.call @use(%x) : ({type}) -> ()\n  return\n}}\n"
        text = emit(f"func.func @k() {{\n{program}func.func private @use(%x: {type})\n")
        assert f" = {literal};" in text, (written, text)


def test_a_loop() -> None:
    text = function(
        """\
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %n step %c2 {
    scf.for %j = %i to %n step %c2 {
      %x = pto.load_scalar %p[%j] : !pto.ptr<f32> -> f32
      %k = arith.addi %i, %j : index
      pto.store_scalar %x, %p[%k] : !pto.ptr<f32>, f32
    }
  }""",
        "%p: !pto.ptr<f32>, %n: index",
    )
    in_order(text, "__gm__ float* %p, int32_t %n)", "for (size_t %i = (size_t) %a; %i < ((size_t) %n); %i += (size_t) %b) {",
             "for (size_t %j = (size_t) ((int32_t) %i); %j < ((size_t) %n); %j += (size_t) %b) {",
             "float %x = %p[%j];", "%p[(int32_t) ((uint32_t) ((int32_t) %i) + (uint32_t) ((int32_t) %j))] = %x;",
             "    };", "  }")  # fmt: skip


def test_bounds_that_may_be_negative_are_compared_as_signed() -> None:
    text = function(
        """\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  scf.for %i = %c0 to %last step %c1 {
    pto.barrier <PIPE_ALL>
  }""",
        "%n: index",
    )
    in_order(text, "for (int32_t %i = %; %i < (int32_t) ((uint32_t) % - (uint32_t) %); %i += %) {")


def test_carried_values() -> None:
    text = function(
        """\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %one) -> (i32, i32) {
    scf.yield %y, %x : i32, i32
  }
  pto.store_scalar %a, %p[%c0] : !pto.ptr<i32>, i32
  pto.store_scalar %b, %p[%c1] : !pto.ptr<i32>, i32""",
        "%p: !pto.ptr<i32>, %n: index",
    )
    in_order(text, "int32_t %x = %;", "int32_t %y = %;", "for (int32_t %i = ", "int32_t %old = %x;", "%x = %y;",
             "%y = %old;", "  }")  # fmt: skip


def test_branches_with_results() -> None:
    text = function(
        """\
  %c0 = arith.constant 0 : index
  %r = scf.if %b -> (i32) {
    scf.yield %x : i32
  } else {
    %y = arith.addi %x, %x : i32
    scf.yield %y : i32
  }
  scf.if %b {
    pto.barrier <PIPE_ALL>
  }
  pto.store_scalar %r, %p[%c0] : !pto.ptr<i32>, i32""",
        "%p: !pto.ptr<i32>, %b: i1, %x: i32",
    )
    in_order(text, "bool %b, int32_t %x)", "int32_t %r;", "if (%b) {", "%r = %x;", "} else {",
             "%r = (int32_t) ((uint32_t) %x + (uint32_t) %x);", "}", "if (%b) {", "pipe_barrier(PIPE_ALL);",
             "  }", "%[%] = %r;")  # fmt: skip
    assert text.count("else") == 1


def test_unsigned_comparisons_cast_and_division_does_not() -> None:
    text = function(
        """\
  %c0 = arith.constant 0 : index
  %u = arith.cmpi ult, %a, %b : i32
  %s = arith.cmpi slt, %a, %b : i32
  %e = arith.andi %u, %s : i1
  %q = arith.divsi %a, %b : i32
  %m = arith.ceildivui %a, %b : i32
  %x = arith.select %e, %q, %m : i32
  pto.store_scalar %x, %p[%c0] : !pto.ptr<i32>, i32""",
        "%p: !pto.ptr<i32>, %a: i32, %b: i32",
    )
    for part in (
        "(uint32_t) v2 < (uint32_t) v3",
        "v2 < v3",
        "(v2 / v3)",
        "(int32_t) ((uint32_t) v2 / (uint32_t) v3 + (uint32_t) ((uint32_t) v2 % (uint32_t) v3 != 0))",
    ):
        assert part in text, text  # fmt: skip


def test_basic_blocks() -> None:
    text = body(
        emit("""\
func.func @k(%p: !pto.ptr<i32>, %b: i1, %x: i32) {
  %c0 = arith.constant 0 : index
  cf.cond_br %b, ^left, ^right(%x : i32)
^left:
  %y = arith.muli %x, %x : i32
  %z = arith.addi %y, %y : i32
  cf.br ^right(%y : i32)
^right(%v: i32):
  pto.store_scalar %v, %p[%c0] : !pto.ptr<i32>, i32
  return
}
""")
    )
    in_order(text, "int32_t %v;", "using T = float;", "if (%b) {", "goto label1;", "} else {", "%v = %x;", "goto label2;",
             "label1:", "{", "%v = (int32_t) ((uint32_t) %x * (uint32_t) %x);", "goto label2;", "}", "label2:", "{",
             "%p[%] = %v;", "}", "return;")  # fmt: skip


# -- events -------------------------------------------------------------------------------------------------

IDS = """\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ids = pto.declare_eventid_array -> !pto.eventid_array<4>
  %more = pto.declare_eventid_array -> !pto.eventid_array<4>
  pto.eventid_array_set %more[%c0], %c1 : !pto.eventid_array<4>
  pto.eventid_array_set %ids[%c0], %c0 : !pto.eventid_array<4>
  %one = pto.eventid_array_get %ids[%c0] : !pto.eventid_array<4>
  pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_MTE3>, %one]
  pto.eventid_array_set %ids[%c0], %c1 : !pto.eventid_array<4>
  %two = pto.eventid_array_get %ids[%c0] : !pto.eventid_array<4>
  pto.wait_flag_dyn[<PIPE_MTE2>, <PIPE_MTE3>, %two]"""


def test_event_ids_are_read_where_the_program_reads_them() -> None:
    text = function(IDS)
    in_order(text, "PTOAS_EventIdArray<4> %ids;", "PTOAS_EventIdArray<4> %more;", "%more[%] = %;", "%ids[%i] = %;",
             "int32_t %one = %ids[%i];", "event_t %e = (event_t) %one;", "set_flag(PIPE_MTE2, PIPE_MTE3, %e);",
             "%ids[%i] = %;", "int32_t %two = %ids[%i];", "event_t %f = (event_t) %two;",
             "wait_flag(PIPE_MTE2, PIPE_MTE3, %f);")  # fmt: skip


def test_events_name_pipes() -> None:
    text = function("""\
  pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, <EVENT_ID2>]
  pto.wait_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, <EVENT_ID2>]
  pto.barrier_sync[<TMATMUL>]""")
    in_order(text, "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID2);", "wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID2);",
             "pipe_barrier(PIPE_M);")  # fmt: skip


def test_signals_between_cores() -> None:
    program = """\
  pto.set_ffts %w : !pto.ptr<i64>
  pto.sync.set <PIPE_FIX>, 3
  pto.sync.set <PIPE_FIX>, %i
  pto.sync.wait <PIPE_FIX>, 3"""
    arguments = "%w: !pto.ptr<i64>, %i: index"
    in_order(function(program, arguments), "__gm__ int64_t* %w, int32_t %i)", "const int32_t %three = 3;",
             "uint64_t %a = (uint64_t) %w;", "set_ffts_base_addr(%a);",
             "uint16_t %m = getFFTSMsg(FFTS_MODE_VAL, %three);", "ffts_cross_core_sync(PIPE_FIX, %m);",
             "uint16_t %n = getFFTSMsg(FFTS_MODE_VAL, %i);", "ffts_cross_core_sync(PIPE_FIX, %n);",
             "wait_flag_dev(3);")  # fmt: skip
    in_order(function(program, arguments, target="a5"), "int32_t %i)", "set_intra_block(PIPE_FIX, 3);",
             "set_intra_block(PIPE_FIX, 19);", "set_intra_block(PIPE_FIX, %i);", "set_intra_block(PIPE_FIX, %i + 16);",
             "wait_intra_block(PIPE_FIX, 3);")  # fmt: skip


def test_core_queries_are_statements() -> None:
    text = function(
        """\
  %c0 = arith.constant 0 : index
  %b = pto.get_block_idx
  %s = pto.get_subblock_idx
  %n = pto.get_block_num
  %m = pto.get_subblock_num
  %x = arith.addi %b, %s : i64
  %y = arith.addi %n, %m : i64
  %z = arith.addi %x, %y : i64
  pto.store_scalar %z, %p[%c0] : !pto.ptr<i64>, i64""",
        "%p: !pto.ptr<i64>",
    )
    in_order(text, "int64_t % = get_block_idx();", "int64_t % = get_subblockid();", "int64_t % = get_block_num();",
             "int64_t % = get_subblockdim();")  # fmt: skip


def test_a_format_string_is_quoted() -> None:
    text = function('  pto.print ins("a\\22b\\5C%d\\0A", %x : i32)', "%x: i32")
    assert r'cce::printf("a\"b\\%d\n", v1);' in text


@together(
    ("format", "type", "printed"),
    [
        ("%d %d %n", "i32", "%d %%d %%n"),
        ("100%, %5.2f%%", "f32", "100%%, %5.2f%%"),
        ("%s|%s", "i32", "%d|%%s"),
        ("%08p", "i32", "%8d"),
        ("%-6.2d", "f32", "%-6f"),
        ("%*d %99999d %d", "i32", "%%*d %%99999d %d"),
        ("%", "i32", "%%"),
        ("??/", "i32", r"?\?/"),
    ],
)
def test_a_printed_scalar_has_one_conversion_that_fits(format: str, type: str, printed: str) -> None:
    text = function(f'  pto.print ins("{format}", %x : {type})', f"%x: {type}")
    assert f'cce::printf("{printed}", v1);' in text


COUNTED_DOWN = """\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%k = %n) -> (index) {
    scf.for %j = %c0 to %k step %c1 {
      pto.store_scalar %one, %p[%c0] : !pto.ptr<i32>, i32
    }
    %m = arith.subi %k, %c1 : index
    scf.yield %m : index
  }
  scf.for %l = %c0 to %n step %c1 {
    pto.store_scalar %one, %p[%c1] : !pto.ptr<i32>, i32
  }"""


def test_only_arguments_are_taken_as_sizes() -> None:
    """A bound that a loop counts down may be negative; with 64 bits, as our engine runs it, any may."""
    text = function(COUNTED_DOWN, "%p: !pto.ptr<i32>, %n: index")
    in_order(text, "for (int32_t %i = ", "for (int32_t %j = ", "for (size_t %l = ")
    text = function(COUNTED_DOWN, "%p: !pto.ptr<i32>, %n: index", index_type="int64_t")
    assert "size_t" not in text
