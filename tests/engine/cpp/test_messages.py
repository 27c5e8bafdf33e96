"""Compiler output as diagnostics: g++ and clang, errors in the program and in headers it uses."""

from __future__ import annotations

import pytest

from pto.diag import Source
from pto.engine.cpp.messages import diagnostics

PROGRAM = Source(
    "k.pto", "func.func @k() {\n  %t = pto.alloc_tile : !t\n  pto.tadd ins(%t, %t) outs(%t)\n}\n"
)
CPP = Source("/w/k.cpp", "void k() {\n  TADD(a, bb, a);\n}\n")

GCC_TEMPLATE = """\
In file included from /inc/pto/pto-inst.hpp:7,
                 from /w/launch.cpp:1:
/inc/pto/ops/elementwise.hpp: In instantiation of 'void pto::TADD(A&, B&) [with A = int]':
k.pto:3:7:   required from here
/inc/pto/ops/elementwise.hpp:40:17: error: static assertion failed: [PTO][SA-0134] TADD: src1 has another type; fix: convert it
   40 |   static_assert(std::is_same_v<A, B>,
      |                 ~~~~~^~~~~~~~~~~~~~~
/inc/pto/ops/elementwise.hpp:40:17: note: 'std::is_same_v<A, B>' evaluates to false
"""


def test_a_failed_assertion_of_ours_is_shown_where_the_program_asked() -> None:
    (d,) = diagnostics(GCC_TEMPLATE, {"k.pto": PROGRAM}, exact=False)
    assert (d.code, d.message, d.help) == ("SA-0134", "TADD: src1 has another type", "convert it")
    assert d.span is not None and d.span.place == (3, 3)
    assert PROGRAM.text[d.span.start : d.span.end] == "pto.tadd ins(%t, %t) outs(%t)"
    assert d.notes == []


@pytest.mark.parametrize("alias", [True, False])
def test_a_tile_is_refused_at_its_type(alias: bool) -> None:
    """Not at the variable, as in messages of the compiler."""
    type = "Tile<TileType::Vec, float, 4, 5>"
    lines = [f"using T = {type};", "void k() {", "  T t;" if alias else f"  {type} t;", "}"]
    source = Source("/w/k.cpp", "\n".join(lines[not alias :]))
    said = f"/w/k.cpp:{len(lines) - (not alias)}:1: error: call of overloaded 'Tile(const int&)' is ambiguous\n"  # what follows from it
    said += f"/w/k.cpp:{2 + alias}:{5 if alias else 36}:   required from here\n"
    said += "/inc/pto/core/tile.hpp:9:1: error: static assertion failed: [PTO][SA-0006] Tile: a row; fix: pad"
    (d,) = diagnostics(said, {"/w/k.cpp": source})
    assert d.span is not None and source.text[d.span.start : d.span.end] == type
    assert d.span.line == (1 if alias else 2)
    notes = [span.line for _, span in d.notes if span is not None]
    assert notes == ([3] if alias else [])


def test_what_follows_from_an_assertion_of_ours_is_left_out() -> None:
    text = (
        GCC_TEMPLATE
        + "/inc/pto/core/tile.hpp:9:1: error: call of overloaded 'GetValidRow()' is ambiguous\n"
        + "k.pto:3:9: error: no matching function\n"
        + "k.pto:2:9: error: 'tt' was not declared\n"
    )
    first, second = diagnostics(text, {"k.pto": PROGRAM}, exact=False)
    assert first.code == "SA-0134" and second.message == "C++: 'tt' was not declared"
    alone = diagnostics(text.replace("[PTO][SA-0134]", ""), {"k.pto": PROGRAM}, exact=False)
    assert len(alone) == 4


def test_clang_says_it_the_other_way_round() -> None:
    text = """\
/inc/pto/ops/elementwise.hpp:40:17: error: static assertion failed due to requirement 'std::is_same_v<A, B>': [PTO][SA-0134] TADD: src1 has another type; fix: convert it
  static_assert(std::is_same_v<A, B>,
                ^~~~~~~~~~~~~~~~~~~~
k.pto:3:7: note: in instantiation of function template specialization 'pto::TADD<int>' requested here
  TADD(v1, v2);
  ^
1 error generated.
"""
    (d,) = diagnostics(text, {"k.pto": PROGRAM}, exact=False)
    assert (d.code, d.message) == ("SA-0134", "TADD: src1 has another type")
    assert d.span is not None and d.span.place == (3, 3)


def test_columns_count_in_hand_written_code() -> None:
    text = "/w/k.cpp:2:11: error: 'bb' was not declared in this scope\n/w/k.cpp:1:1: note: here\n"
    (d,) = diagnostics(text, {"/w/k.cpp": CPP})
    assert (d.code, d.message) == ("PTO-E2402", "C++: 'bb' was not declared in this scope")
    assert d.span is not None and d.span.place == (2, 11)
    assert CPP.text[d.span.start : d.span.end] == "bb"
    assert d.notes[0][0] == "here" and d.notes[0][1] is not None


def test_instructions_that_the_headers_do_not_have() -> None:
    """A misspelt one, and a row whose header was not made yet."""
    text = "k.pto:2:1: error: '{}' was not declared in this scope\n"
    for name, help in (
        ("TADDD", "did you mean 'TADD'"),
        ("TADD", "headers are older than the instruction table"),
    ):
        (d,) = diagnostics(text.format(name), {"k.pto": PROGRAM}, exact=False)
        assert help in d.help


def test_warnings_are_left_out_and_their_context_is_not_kept() -> None:
    text = (
        "k.pto:3:1:   required from here\n/inc/a.hpp:1:1: warning: odd\n"
        "/inc/b.hpp:9:1: error: boom\nk.pto:2:1: error: bang\n"
    )
    first, second = diagnostics(text, {"k.pto": PROGRAM}, exact=False)
    assert first.message == "C++: boom" and first.span is None
    assert first.notes == [("at /inc/b.hpp:9", None)]
    assert second.span is not None and second.span.place == (2, 3)


def test_an_error_in_an_included_file_points_to_the_include() -> None:
    text = "In file included from /w/k.cpp:1:\nother.hpp:3:1: error: boom\n"
    (d,) = diagnostics(text, {"/w/k.cpp": CPP})
    assert d.span is not None and d.span.place[0] == 1


def test_output_without_an_error_line_is_kept() -> None:
    (d,) = diagnostics("/usr/bin/ld: cannot find -lx\ncollect2: error: ld returned 1 exit status\n", {})
    assert d.code == "PTO-E2402"
    assert d.notes[0][0] == "/usr/bin/ld: cannot find -lx"


def test_a_flood_is_cut() -> None:
    text = "".join(f"k.pto:{n % 4 + 1}:1: error: number {n}\n" for n in range(100))
    found = diagnostics(text, {"k.pto": PROGRAM})
    assert len(found) == 21 and found[-1].message == "and 80 more errors"


def test_a_line_that_the_program_does_not_have() -> None:
    (d,) = diagnostics("k.pto:99:1: error: boom\n", {"k.pto": PROGRAM})
    assert d.span is None
