"""Diagnostics as people and tools read them: carets, JSON, order, suggestions, everything at once."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.each import together

import pto
from pto.compat.simpler.chip import RunFailed
from pto.diag import (
    Diagnostic,
    DiagnosticError,
    Source,
    Span,
    Unread,
    did_you_mean,
    has_errors,
    render,
    render_json,
    sorted_by_place,
)
from pto.isa.meaning import BadMeaning
from pto.language.ir.text import NothingDefined, NotPython
from pto.language.programs.arguments import WrongArguments
from pto.runtime.failures import RunFailure

Check = Callable[..., Any]


def at(text: str, word: str, **more: Any) -> Diagnostic:
    """A diagnostic that points at the first occurrence of a word."""
    start = text.index(word)
    return Diagnostic("PTO-E0107", "wrong", Span(Source("k.pto", text), start, start + len(word)), **more)


def caret(text: str, word: str) -> tuple[str, str]:
    """The source line and the caret line of the excerpt, without gutters."""
    _, line, carets, *_ = render([at(text, word)]).split("\n")
    assert line[:8].endswith("| ") and carets[:8] == "      | "
    return line[8:], carets[8:]


# ------------------------------------------------------------------------------------------------ carets


def test_the_whole_layout() -> None:
    text = "first\n  %a = bad %b\nlast\n"
    d = at(text, "bad", expected="good", got="bad", help="write good")
    d.notes.append(("because of this", Span(d.span.source, 0, 5) if d.span else None))
    assert render([d]) == (
        "k.pto:2:8: error[PTO-E0107]: wrong\n"
        "    2 |   %a = bad %b\n"
        "      |        ^^^\n"
        "  expected: good\n"
        "  got: bad\n"
        "  k.pto:1:1: note: because of this\n"
        "    1 | first\n"
        "      | ^^^^^\n"
        "  help: write good"
    )


def test_without_a_place() -> None:
    assert render([Diagnostic("PTO-E0001", "cannot read 'x'")]) == "error[PTO-E0001]: cannot read 'x'"


@together(
    ("text", "carets"),
    [
        ("x = bad", "    ^^^"),
        ("\tx = bad", "     ^^^"),
        ("\t\tx\t= bad", "      ^^^"),
        ("größe = bad", "        ^^^"),
        ("宽度 = bad", "       ^^^"),
        ("x = bad\r\ny", "    ^^^"),
        ("a\rx = bad", "       ^^^"),
    ],
)
def test_carets_stand_under_the_word(text: str, carets: str) -> None:
    shown, found = caret(text, "bad")
    assert found == carets
    assert "\t" not in shown and "\r" not in shown, "what a terminal would expand is replaced"


def test_carets_under_a_wide_word() -> None:
    assert caret("x = 宽度 y", "宽度") == ("x = 宽度 y", "    ^^^^")


#: What acts on a terminal or on the order of text, and how it is shown.
ACTING = {
    "\x1b": r"\x1b", "\x07": r"\x07", "\x00": r"\x00", "\x7f": r"\x7f", "\x9b": r"\x9b", "\r": r"\r",
    "\u202e": r"\u202e", "\u2066": r"\u2066", "\u2028": r"\u2028", "\ufeff": r"\ufeff", "\udcff": r"\udcff",
    "\U000e0041": r"\U000e0041",
}  # fmt: skip


@together(("char", "shown"), ACTING.items())
def test_characters_that_act_are_shown_as_escapes(char: str, shown: str) -> None:
    line, found = caret(f"{char}[31mx = bad {char}y", "bad")
    assert line == f"{shown}[31mx = bad {shown}y"
    assert found == " " * line.index("bad") + "^^^"
    named = Source(f"{char}/a\nb.pto", "x = bad")
    d = Diagnostic("E1", f"m{char}\tn\nl", Span(named, 4, 7), expected=char, got=char, help=f"h{char}")
    d.notes.append((f"n{char}", d.span))
    text = render([d])
    assert text.startswith(f"{shown}/a\\nb.pto:1:5: error[E1]: m{shown}\tn\nl\n")  # layout stays
    assert char not in text and text.count(shown) == 7
    told = render_json([d])
    assert char not in told
    told.encode("utf-8")
    (back,) = json.loads(told)
    assert (back["message"], back["file"]) == (d.message, named.name)


def test_wide_text_is_no_escape() -> None:
    text = "宽\u3000größe 😀"
    assert render([Diagnostic("E1", text)]) == f"error[E1]: {text}"
    assert text in render_json([Diagnostic("E1", text)])


@together(
    ("text", "place"),
    [
        ("a\nbad", (2, 1)),
        ("a\nbad\n", (2, 1)),
        ("bad", (1, 1)),
        ("a\r\nbad\r\n", (2, 1)),
        ("\n\n\n  bad", (4, 3)),
    ],
)
def test_place_of_the_last_line(text: str, place: tuple[int, int]) -> None:
    d = at(text, "bad")
    assert d.span is not None and d.span.place == place
    assert render([d]).split("\n")[2].strip("| ") == "^^^"


def test_place_at_the_end_of_the_file() -> None:
    source = Source("k.pto", "module {\n")
    d = Diagnostic("PTO-E0106", "unexpected end", Span(source, 9, 10))
    assert d.span is not None and d.span.place == (2, 1)
    assert render([d]).split("\n")[1:] == ["    2 | ", "      | ^"]


def test_a_span_over_several_lines_is_cut_at_the_first() -> None:
    text = "x = bad\nmore\nend"
    d = Diagnostic("PTO-E0107", "wrong", Span(Source("k.pto", text), 4, len(text)))
    assert render([d]).split("\n")[2] == "      |     ^^^"


@together("column", [0, 1, 39, 40, 41, 500, 5000, 9990, 9997])
def test_a_long_line_is_cut_around_the_place(column: int) -> None:
    text = "a" * column + "BAD" + "z" * (9997 - column)
    shown, carets = caret(text, "BAD")
    assert len(shown) <= 126, "120 characters and two ellipses"
    where = carets.index("^")
    assert shown[where : where + 3] == "BAD" and carets.count("^") == 3
    assert shown.startswith("...") == (column > 40)


def test_line_numbers_beyond_the_gutter() -> None:
    text = "\n" * 123456 + "bad"
    lines = render([at(text, "bad")]).split("\n")
    assert lines[1] == "123457 | bad"
    assert lines[2].index("^") == lines[1].index("bad")


def test_color_is_paint_only() -> None:
    d = at("x = bad", "bad", help="write good")
    painted = render([d], color=True)
    assert "\x1b[1;31merror[PTO-E0107]\x1b[0m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render([d])


# ---------------------------------------------------------------------------------------- order and JSON


def test_order_is_that_of_the_source() -> None:
    a, b = Source("a.pto", "x y z"), Source("b.pto", "x")
    found = [
        Diagnostic("E1", "no place"),
        Diagnostic("E2", "b", Span(b, 0, 1)),
        Diagnostic("E3", "late", Span(a, 4, 5)),
        Diagnostic("E4", "early", Span(a, 0, 1)),
        Diagnostic("E5", "early too", Span(a, 0, 3)),
    ]
    assert [d.code for d in sorted_by_place(found)] == ["E4", "E5", "E3", "E2", "E1"]


def test_json_of_a_full_diagnostic() -> None:
    d = at("x\n  bad\n", "bad", expected="good", got="bad", help="write good", severity="warning")
    d.notes += [("here", d.span), ("nowhere", None)]
    place = {"file": "k.pto", "line": 2, "column": 3, "end_line": 2, "end_column": 6}
    assert json.loads(render_json([d])) == [
        {
            "code": "PTO-E0107", "severity": "warning", "message": "wrong", **place,
            "expected": "good", "got": "bad", "help": "write good",
            "notes": [{"message": "here", **place}, {"message": "nowhere"}],
        }
    ]  # fmt: skip


def test_json_leaves_out_what_is_not_known() -> None:
    assert json.loads(render_json([Diagnostic("PTO-E0001", "größe")])) == [
        {"code": "PTO-E0001", "severity": "error", "message": "größe"}
    ]
    assert json.loads(render_json([])) == []


_KEYS = {"code", "severity", "message", "file", "line", "column", "end_line", "end_column", "expected", "got", "help",
         "notes"}  # fmt: skip


def test_json_schema_of_real_diagnostics(diagnose: Check) -> None:
    found = json.loads(render_json(diagnose(_FIVE)))
    for d in found:
        assert set(d) <= _KEYS
        assert d["severity"] in ("error", "warning", "note") and re.fullmatch(r"[A-Z]+-E?\d{4}", d["code"])
        assert d["file"] == "t.pto"
        assert 1 <= d["line"] <= d["end_line"] and 1 <= d["column"]
        assert (d["line"], d["column"]) < (d["end_line"], d["end_column"])


def test_has_errors() -> None:
    assert has_errors([Diagnostic("E1", "m", severity="warning"), Diagnostic("E2", "m")])
    assert not has_errors([Diagnostic("E1", "m", severity="warning")])


# ------------------------------------------------------------------------------------------- suggestions


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("tad", "did you mean 'tadd' or 'tadds'?"),
        ("tmatmull", "did you mean 'tmatmul'?"),
        ("softmax", ""),
        ("", ""),
    ],
)
def test_did_you_mean(name: str, suggestion: str) -> None:
    assert did_you_mean(name, ["tadd", "tadds", "tmatmul", "trowsum"]) == suggestion


@together(
    ("line", "help"),
    [
        ("pto.tadddd ins(%t)", "did you mean 'pto.tadd' or 'pto.tadds'?"),
        ("%a = pto.alloc_tile : !pto.tile_bff<vec, 16x64xf32>", "did you mean 'tile_buf'?"),
        ("%a = pto.alloc_tile : !pto.tile_buf<veec, 16x64xf32>", "did you mean 'vec'?"),
        ("%a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, vald=8x8>", "did you mean 'valid'?"),
        ("pto.barrier #pto.pipe<PIPE_MTE22>", "did you mean 'PIPE_MTE2' or "),
        ("%a = arith.addi %cnd, %n : index", "did you mean '%cond'"),
    ],
)
def test_names_of_a_program(diagnose: Check, kernel: Check, line: str, help: str) -> None:
    (found,) = diagnose(kernel(line))
    assert found.help.startswith(help)


# ------------------------------------------------------------------------------------- everything at once

_FIVE = """\
module {
  func.func @k(%n: index, %cond: i1) {
    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x12xf16>
    pto.set_flag[PIPE_V, PIPE_V, EVENT_ID0]
    call @missing() : () -> ()
    scf.if %cond {
      %y = arith.addi %n, %late : index
    }
    %late = arith.addi %n, %n : index
    return %n : index
  }
}
"""

_FIVE_SYNTAX = """\
module {
  func.func @k(%n: index) {
    %a = pto.alloc_tile : !pto.tile_buff<vec, 16x64xf32>
    pto.tadddd ins(%a)
    scf.for %i = %n too %n step %n {
      %inside = arith.addi %i, %n : index
    }
    %b = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32> {x = 1, x = 2}
    %c = arith.constant 300 : i8
    return
  }
  func.func private @next(%n: index) {
    return
  }
}
"""


def test_five_errors_of_the_verifier(diagnose: Check) -> None:
    found = diagnose(_FIVE)
    assert sorted((d.span.place[0], d.code) for d in found) == [
        (3, "SA-0006"), (4, "PTO-E0116"), (5, "PTO-E0204"), (7, "PTO-E0203"), (10, "PTO-E0213"),
    ]  # fmt: skip


def test_five_errors_of_the_parser(diagnose: Check) -> None:
    found = diagnose(_FIVE_SYNTAX)
    assert sorted((d.span.place[0], d.code) for d in found) == [
        (3, "PTO-E0109"), (4, "PTO-E0108"), (5, "PTO-E0107"), (8, "PTO-E0107"), (9, "PTO-E0104"),
    ]  # fmt: skip


def test_results_of_a_broken_statement_cause_no_further_errors(diagnose: Check, kernel: Check) -> None:
    text = kernel("%a = pto.get_block_idy\n%b = arith.addi %a, %a : i64\n%c = arith.addi %b, %a : i64")
    assert [d.code for d in diagnose(text)] == ["PTO-E0108"]


def test_the_python_interface_raises_them_all() -> None:
    with pytest.raises(DiagnosticError) as caught:
        pto.parse(_FIVE_SYNTAX)
    assert len(caught.value.diagnostics) == 5
    assert str(caught.value).count("error[") == 5


# ----------------------------------------------------------------------------------------- other processes


def _errors() -> list[Exception]:
    """One of each class that users may catch, with all that an error can hold."""
    text = "first\nbad\n"
    d = at(text, "bad", severity="warning", expected="good", got="bad", help="write good")
    d.notes.append(("because of this", Unread("other.pto").at(3, 4)))
    return [
        DiagnosticError([d, Diagnostic("PTO-E0001", "no place")]), RunFailure(d, 201), RunFailed([d], -5),
        WrongArguments("too many"), BadMeaning("no meaning"), NothingDefined([d]), NotPython([d]),
    ]  # fmt: skip


def _content(error: Any) -> tuple[Any, ...]:
    found = getattr(error, "diagnostics", ())
    texts = [(type(s.source), s.source.text) for d in found for s in (d.span, *dict(d.notes).values()) if s]
    return (
        type(error),
        str(error),
        error.args,
        texts,
        {**vars(error), "diagnostics": [d.as_json() for d in found]},
    )


@together("copied", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
@together("error", _errors())
def test_errors_can_be_copied_and_sent(copied: Callable[[Any], Any], error: Exception) -> None:
    assert _content(copied(error)) == _content(error)


def test_every_class_of_errors_is_tried() -> None:
    found, todo = set[type](), [DiagnosticError]
    while todo:
        found.add(one := todo.pop())
        todo += one.__subclasses__()
    assert found <= set(map(type, _errors()))


def test_an_error_comes_out_of_another_process() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(DiagnosticError) as caught:
        pool.apply_async(pto.parse, (_FIVE_SYNTAX,)).get(600)  # it would hang
    with pytest.raises(DiagnosticError) as here:
        pto.parse(_FIVE_SYNTAX)
    assert _content(caught.value) == _content(here.value)


def test_line_ends_of_windows_change_no_place(diagnose: Check) -> None:
    unix = [(d.code, d.span.place) for d in diagnose(_FIVE)]
    windows = [(d.code, d.span.place) for d in diagnose(_FIVE.replace("\n", "\r\n"))]
    assert unix == windows


def test_no_newline_at_the_end(diagnose: Check) -> None:
    assert [d.code for d in diagnose(_FIVE.rstrip("\n"))] == [d.code for d in diagnose(_FIVE)]


def test_house_style_of_messages(diagnose: Check) -> None:
    """Lower case after the operation's name, no full stop, one line."""
    for d in [*diagnose(_FIVE), *diagnose(_FIVE_SYNTAX)]:
        assert not d.message.endswith(".") and "\n" not in d.message
        assert not d.help.endswith(".")
