"""The file: prologue, order and prefixes of functions, entries, guards, the synchronization tail, `#line`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pto

from .shapes import body, emit, has, in_order

HELPER = """\
func.func @k(%x: i32) attributes {pto.entry} {
  %r = func.call @helper(%x) : (i32) -> i32
  func.call @sink(%r) : (i32) -> ()
  return
}
func.func private @helper(%x: i32) -> i32 {
  %two = arith.constant 2 : i32
  %y = arith.muli %x, %two : i32
  return %y : i32
}
func.func private @sink(%x: i32)
"""


def test_prologue_in_its_order() -> None:
    text = emit("func.func @k() {\n  return\n}\n")
    assert text.startswith('#include "pto/pto-inst.hpp"\nusing namespace pto;\n')
    in_order(
        text,
        "enum class PTOAutoSyncTailMode : int {",
        "kBarrierAll = 0,",
        "kSetWaitMte3ToSEvent0 = 1,",
        "static AICORE inline void ptoas_auto_sync_tail(",
        "set_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);",
        "wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);",
        "pipe_barrier(PIPE_ALL);",
        "__global__ AICORE void k() {\n  using T = float;\n  return;\n}",
    )
    for unused in ("PTOAS_EventIdArray", "PTOAS__TRANDOM", "ptoas_bitcast"):
        assert unused not in text


def test_helpers_stand_where_they_are_used() -> None:
    text = emit(
        """\
func.func @k(%p: !pto.ptr<i32>, %x: f32, %t: !pto.tile_buf<vec, 16x64xi32>, %key: i32) {
  %c0 = arith.constant 0 : index
  %ids = pto.declare_eventid_array -> !pto.eventid_array<4>
  pto.eventid_array_set %ids[%c0], %c0 : !pto.eventid_array<4>
  pto.trandom ins(%key, %key, %key, %key, %key, %key {rounds = 7} : i32, i32, i32, i32, i32, i32)
    outs(%t : !pto.tile_buf<vec, 16x64xi32>)
  %bits = arith.bitcast %x : f32 to i32
  pto.store_scalar %bits, %p[%c0] : !pto.ptr<i32>, i32
  return
}
""",
        "a5",
    )
    in_order(text, "struct PTOAS_EventIdArray", "void PTOAS__TRANDOM(", "enum class PTOAutoSyncTailMode",
             "To ptoas_bitcast(From", "PTOAS_EventIdArray<4> %;", "PTOAS__TRANDOM<7>(%, %, %, %, %, %, %);",
             "ptoas_bitcast<int32_t>(%)")  # fmt: skip


def test_callees_come_first_with_their_prefixes() -> None:
    text = emit(HELPER)
    in_order(
        text,
        "static AICORE int32_t helper(int32_t %) {",
        "return (int32_t) ((uint32_t) % * (uint32_t) %);",
        "__global__ AICORE void k(int32_t %x) {",
        "int32_t %r = helper(%x);",
        "sink(%r);",
    )
    assert has(text, "extern void sink(int32_t %);")
    assert text.index("extern void sink") < text.index("__global__")


def test_several_functions_without_an_entry() -> None:
    text = emit("func.func @k() {\n  return\n}\nfunc.func @other() {\n  return\n}\n")
    assert "__global__" not in text and "\nAICORE void k() {" in text and "\nAICORE void other() {" in text


def test_a_declaration_does_not_count_as_a_second_function() -> None:
    text = emit("func.func private @elsewhere(%x: i32)\nfunc.func private @k() {\n  return\n}\n")
    assert "__global__ AICORE void k() {" in text and has(text, "extern void elsewhere(int32_t %);")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("func.func @k() -> i32 attributes {pto.entry} {\n  %x = arith.constant 1 : i32\n  return %x : i32\n}\n"
         "func.func @o() {\n  return\n}\n", "return"),
        ("func.func @k() -> i32 {\n  %x = arith.constant 1 : i32\n  return %x : i32\n}\n", "return"),
        ("func.func @k() {\n  func.call @k() : () -> ()\n  return\n}\n", "recursive function calls"),
        ("func.func private @k() attributes {pto.entry}\n", "definition"),
    ],
)  # fmt: skip
def test_entries_that_are_refused(program: str, message: str) -> None:
    with pytest.raises(pto.DiagnosticError, match=message):
        emit(program)


def test_cube_and_vector_functions_are_guarded() -> None:
    text = emit("""\
func.func @cube() attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
  pto.barrier <PIPE_M>
  return
}
func.func @vector() attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
  pto.barrier <PIPE_V>
  return
}
""")
    assert (
        body(text, "cube")
        == """\
AICORE void cube() {
  using T = float;

  #if defined(__DAV_CUBE__)
  pipe_barrier(PIPE_M);
  #endif // __DAV_CUBE__

  return;
}"""
    )
    assert (
        body(text, "vector")
        == """\
AICORE void vector() {
  using T = float;

  #if defined(__DAV_VEC__)
  set_mask_norm();
  set_vector_mask(-1, -1);
  pipe_barrier(PIPE_V);
  #endif // __DAV_VEC__

  return;
}"""
    )


def test_sections_are_guarded_in_place() -> None:
    text = body(
        emit("""\
func.func @k() {
  pto.section.cube {
    pto.barrier <PIPE_M>
  }
  pto.section.vector {
    pto.barrier <PIPE_V>
  }
  return
}
""")
    )
    in_order(text, "#if defined(__DAV_CUBE__)", "pipe_barrier(PIPE_M);", "#endif // __DAV_CUBE__",
             "#if defined(__DAV_VEC__)", "set_mask_norm();", "set_vector_mask(-1, -1);", "pipe_barrier(PIPE_V);",
             "#endif // __DAV_VEC__", "return;")  # fmt: skip


def test_a5_has_no_vector_barrier() -> None:
    program = "func.func @k() {\n  pto.barrier <PIPE_V>\n  pto.barrier_sync[<TVEC>]\n  pto.barrier <PIPE_MTE3>\n  return\n}\n"
    assert body(emit(program, "a5")).count("pipe_barrier") == 1
    assert body(emit(program, "a3")).count("pipe_barrier") == 3


@pytest.mark.parametrize(
    ("hint", "mode"),
    [("barrier-all", "kBarrierAll"), ("default", "kBarrierAll"), ("mte3-to-s-event0", "kSetWaitMte3ToSEvent0"),
     ("setwait_mte3_to_s_event0", "kSetWaitMte3ToSEvent0")],
)  # fmt: skip
def test_the_tail_stands_after_the_guard(hint: str, mode: str) -> None:
    text = body(
        emit(f"""\
func.func @k() attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  pto.barrier <PIPE_MTE3>
  pto.barrier <PIPE_ALL> {{pto.auto_tail = "{hint}"}}
  return
}}
""")
    )
    assert text.endswith(
        f"#endif // __DAV_VEC__\n\n  ptoas_auto_sync_tail(PTOAutoSyncTailMode::{mode});\n  return;\n}}"
    )
    assert "pipe_barrier(PIPE_ALL)" not in text


def test_variables_are_numbered_as_they_appear() -> None:
    text = body(emit(HELPER), "k")
    numbers = [int(n) for n in re.findall(r"\bv(\d+)\b", text)]
    assert list(dict.fromkeys(numbers)) == list(range(1, max(numbers) + 1))


def test_lines_of_the_source() -> None:
    """Every statement is attributed to the line of its operation, counted as a C++ compiler counts."""
    program = """\
func.func @k(%p: !pto.ptr<i32>, %n: index) {
  %one = arith.constant 1 : index

  %x = pto.load_scalar %p[%n] : !pto.ptr<i32> -> i32
  pto.store_scalar %x, %p[%one] : !pto.ptr<i32>, i32
  pto.barrier <PIPE_ALL>

  pto.barrier <PIPE_MTE3>
  return
}
"""
    text = emit(program, line_directives=True)
    lines: dict[str, int] = {}
    at = 0
    for line in text.split("\n"):
        m = re.fullmatch(r'#line (\d+) "<text>"', line)
        if m:
            at = int(m[1])
            continue
        lines.setdefault(line.strip(), at)
        at += 1
    found = {what: next(n for t, n in lines.items() if what in t and n) for what in
             ("void k(", "= 1;", "[v2];", "] = ", "pipe_barrier(PIPE_MTE3)", "return;")}  # fmt: skip
    assert found == {
        "void k(": 1,
        "= 1;": 2,
        "[v2];": 4,
        "] = ": 5,
        "pipe_barrier(PIPE_MTE3)": 8,
        "return;": 9,
    }


def test_a_file_name_is_quoted_in_line_directives(tmp_path) -> None:
    path = tmp_path / 'a "b".pto'
    path.write_text("func.func @k() {\n  pto.trap\n  return\n}\n")
    text = pto.emit_cpp(pto.parse(path), line_directives=True)
    assert '\\"b\\".pto"' in text


def test_pointer_sums_may_be_traced() -> None:
    program = """\
func.func @k(%p: !pto.ptr<f32>, %n: index) {
  %q = pto.addptr %p, %n : !pto.ptr<f32> -> !pto.ptr<f32>
  %x = pto.load_scalar %q[%n] : !pto.ptr<f32> -> f32
  pto.store_scalar %x, %p[%n] : !pto.ptr<f32>, f32
  return
}
"""
    in_order(
        emit(program, addptr_trace=True), "__gm__ float* %q = %p + %n;", "/* ADDPTR_TRACE: %q = %p + %n */;"
    )
    assert "ADDPTR_TRACE" not in emit(program)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(pto.DiagnosticError) as e:
        emit("""\
func.func @k(%p: !pto.ptr<f32, ub>, %n: i64) {
  pto.vsort32 %p, %p, %n : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, i64
  pto.vsort32 %p, %p, %n : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, i64
  return
}
""")
    assert [d.code for d in e.value.diagnostics] == ["PTO-E1301", "PTO-E1301"]


def test_names_that_are_no_identifiers() -> None:
    text = emit('func.func @"a-b"() {\n  return\n}\nfunc.func @int() {\n  return\n}\n')
    assert "void a_b() {" in text and "void f_int() {" in text


def test_names_and_lines_of_the_program(tmp_path: Path) -> None:
    """Variables have the names of their values, unless such a name means something else in C++."""
    names = {
        "acc": "acc", "a.b": "a_b", "N": "N", "EOF": "EOF_", "linux": "linux_", "int": "int_", "T": "T_",
        "TADD": "TADD_", "element": "element", "v7": "v1", "_x": "v2", "0": "v3", "f": "f_",
    }  # fmt: skip
    arguments = ", ".join(f"%{name}: i32" for name in names)
    path = tmp_path / "a\n#error\\.pto"
    text = f"func.func @f({arguments}) {{\n  %a_b = arith.addi %acc, %N : i32\n  %y = arith.muli %a_b, %a_b : i32\n"
    text += '  pto.print ins("%d", %y : i32)\n  return\n}\n'
    path.write_text(text)
    lines = pto.emit_cpp(pto.parse(path)).splitlines()
    (head,) = [line for line in lines if "void f(" in line]
    assert re.findall(r"int32_t (\w+)", head) == list(names.values())
    assert head.endswith("  // a\\n#error\\.pto:1"), head
    assert any(line.startswith("  int32_t a_b_ = ") and line.endswith(".pto:2") for line in lines), lines


def test_names_that_become_the_same() -> None:
    with pytest.raises(pto.DiagnosticError) as e:
        emit('func.func @"a-b"() {\n  return\n}\nfunc.func @a_b() {\n  return\n}\n')
    assert [d.code for d in e.value.diagnostics] == ["PTO-E1304"]


def test_names_are_identifiers_of_our_own() -> None:
    """No name ends a declaration, is one of the C library, or is spelled in letters that compilers differ on."""
    for name, spelled in (
        ("exit", "f_exit"), ("fork", "f_fork"), ('"a; b()"', "a__b__"), ('"é²"', "__"), ('""', "f_"), ('"1\\0A"', "f_1_"),
    ):  # fmt: skip
        text = emit(
            f"func.func private @{name}(%x: i32)\nfunc.func @k(%x: i32) attributes {{pto.entry}} {{\n"
            f"  func.call @{name}(%x) : (i32) -> ()\n  return\n}}\n"
        )
        assert f"extern void {spelled}(int32_t v1);" in text and f"  {spelled}(v1);" in text, name
