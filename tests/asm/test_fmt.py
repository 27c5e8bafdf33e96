"""`pto fmt`: white space changes, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import chain, product
from pathlib import Path

import pytest
from tests.each import each
from tests.sampling import some

from pto.asm import FORMS, format_source, parse, to_text
from pto.asm.assembly import looks_like
from pto.asm.comments import Gap
from pto.asm.text import _read
from pto.cli.main import main
from pto.diag import Source

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.pto*"))
#: Behind a token, below it, below a blank line.
MARKS = ("//", "\n//", "\n\n\n//")


@cache
def programs() -> tuple[list[Path], list[Path]]:
    """Programs without syntax errors, and those of them in PTO-AS."""
    folders = (ROOT / "tests/fuzz/corpus").glob("*"), EXAMPLES, (ROOT / "tests/golden").glob("*/*.pto")
    read = {path: _read(Source(path.name, path.read_text("utf-8"))) for path in sorted(chain(*folders))}
    good = [path for path, (_, module) in read.items() if module is not None]
    return good, [path for path in good if looks_like(read[path][0])]


def fmt(text: str) -> str:
    out, problems = format_source(Source("k.pto", text))
    assert out is not None, problems
    return out


def comments(text: str) -> list[tuple[int, str, bool]]:
    """Every comment: how many tokens precede it, its text, whether it stands behind one on its line."""
    tokens = _read(Source("k.pto", text))[0].tokens
    found, end = [], 0
    for count, (start, token) in enumerate(zip(tokens.starts, tokens.texts, strict=True)):
        found += [(count, c.text, c.behind) for c in Gap(text, end, start).comments]
        end = start + len(token)
    return found


def check(text: str) -> str:
    """The properties of every run: meaning, comments and the fixpoint."""
    out = fmt(text)
    assert to_text(parse(out), "generic") == to_text(parse(text), "generic")
    assert comments(out) == comments(text)
    assert fmt(out) == out
    assert "\n\n\n" not in out and not any(line != line.rstrip() for line in out.split("\n"))
    return out


def test_meaning_comments_and_fixpoint() -> None:
    files = some(programs()[0], 4, by=lambda p: p.parent)
    each(lambda path: check(path.read_text("utf-8")), files)


def test_the_printer_s_layout_comes_out_of_a_single_line() -> None:
    each(comes_out_of_a_single_line, some(programs()[0], 12, by=lambda p: p.parent))


def comes_out_of_a_single_line(path: Path) -> None:
    module = parse(path.read_text("utf-8"))
    for form in FORMS if module.body.ops else ():
        printed = to_text(module, form)
        assert fmt(printed) == printed
        tokens = _read(Source("k.pto", printed))[0].t
        assert fmt(" ".join(tokens)) == printed


def test_a_comment_may_stand_between_any_two_tokens() -> None:
    good, assembly = programs()
    each(comments_stand_anywhere, some(product(good, MARKS), 24, by=lambda c: (c[0].parent, c[1])))
    each(comments_stand_anywhere, product(assembly, ("\n#",)))


def comments_stand_anywhere(path: Path, mark: str) -> None:
    text = path.read_text("utf-8")
    parser, _ = _read(Source("k.pto", text))
    out = last = ""
    end = 0
    for k, (start, token) in enumerate(zip(parser.tokens.starts, parser.t, strict=True)):
        out += text[end:start]
        if "#" not in (last[:1], token[:1]):  # PTO-AS has a comment where a line begins with #word
            out += f"{mark} c{k}\n"
        last, end = token, start
    check(out)


ODD = """\
// head


!tile=!pto.tile_buf<vec,16x64xf32>   // an alias
!unused = f32
#map=affine_map<(d0) -> (d0 + 1)>
module{ // m
func.func @k(%c : i1, %i:index,   // the condition
  // and more
    %t : !pto.tile_buf<vec,16x64xf32>) { // body

// first
  scf.if %c { // then
  // only comment
  }
  // before else
  else { // only comment
  } // after if
    // below
  scf.index_switch %i case 1 { // one
    scf.yield } case 2 {

     // two
  }
  // before default
  default { // default
  // last


  }
  scf.while () : () -> () { // while
     scf.condition(%c) // condition
  } do { // do
     // in do
  }
  pto.tadd ins(%t, // left
     %t : !tile, !tile) // types
     outs(%t : !tile)     // behind
                          // goes on
  "a.b"() ({
   // first region
   "a.c"() : () -> () // c
   }, { // second region
   // x
   ^bb0:  // label
    "a.d"() : () -> ()
   }) : () -> () // end
  %x=affine.apply #map(%i) loc("k.py":1 :2)
  return // done
  // before the brace

} // f
  // before the last
} // end
// tail


"""

EVEN = """\
// head

!tile = !pto.tile_buf<vec, 16x64xf32>  // an alias
!unused = f32
#map = affine_map<(d0) -> (d0 + 1)>
module {  // m
  func.func @k(%c: i1, %i: index,  // the condition
      // and more
      %t: !tile) {  // body
    // first
    scf.if %c {  // then
      // only comment
    }
    // before else
    else {  // only comment
    }  // after if
    // below
    scf.index_switch %i
    case 1 {  // one
      scf.yield
    }
    case 2 {
      // two
    }
    // before default
    default {  // default
      // last
    }
    scf.while () : () -> () {  // while
      scf.condition(%c)  // condition
    } do {  // do
      // in do
    }
    pto.tadd ins(%t,  // left
        %t : !tile, !tile)  // types
        outs(%t : !tile)  // behind
                          // goes on
    "a.b"() ({
      // first region
      "a.c"() : () -> ()  // c
    }, {  // second region
    // x
    ^bb0:  // label
      "a.d"() : () -> ()
    }) : () -> ()  // end
    %x = affine.apply #map(%i) loc("k.py":1:2)
    return  // done
    // before the brace
  }  // f
  // before the last
}  // end
// tail
"""


def test_comments_in_odd_places() -> None:
    assert check(ODD) == EVEN


def test_assembly_stays_assembly() -> None:
    odd = """\
# head
!tile = !pto.tile_buf<vec, 16x64xf32>


 # module
.module   {pto.target_arch = "a3"} // m
.func @k  // k
.arg %a:!pto.tile_buf<vec, 16x64xf32>
.arg %c:i1
   # constants
.const %c0=0:index // zero
tadd %a,%a , %a : !tile   // add
scf.if %c {
# in if
tadd %a, %a,
# in the statement
%a : !tile }
.end
# tail
"""
    even = """\
# head
!tile = !pto.tile_buf<vec, 16x64xf32>

# module
.module {pto.target_arch = "a3"}  // m
.func @k  // k
.arg %a : !tile
.arg %c : i1
# constants
.const %c0 = 0 : index  // zero
tadd %a, %a, %a : !tile  // add
scf.if %c {
  # in if
  tadd %a, %a,
      # in the statement
      %a : !tile
}
.end
# tail
"""
    assert check(odd) == even


def test_an_alias_is_used_from_its_definition_on() -> None:
    full = "!pto.tile_buf<vec, 16x64xf32>"
    text = (
        f"func.func private @a({full})\n!t = {full}\n!u = {full}\n"
        "func.func private @b(!u)\n"
        f"func.func private @c({full})\n"
    )
    assert check(text) == text.replace(f"@c({full})", "@c(!t)")


def test_an_alias_given_twice_is_used_only_where_it_was_written() -> None:
    first, second = "!pto.ptr<f32>", "!pto.ptr<f16>"
    text = (
        f"!t = {first}\nfunc.func private @a(!t, {first}, {second})\n"
        f"!t = {second}\nfunc.func private @b(!t, {first}, {second})\n"
    )
    assert check(text) == text


def test_types_are_spelled_as_the_printer_spells_them() -> None:
    fields = "loc=vec, dtype=f32, rows=16, cols=64, v_row=16, v_col=64"
    config = "blayout=row_major, slayout=none_box, fractal=512, pad=0"
    text = f"func.func private @a(!pto.tile_buf<{fields}, {config}>)\n"
    assert check(text) == "func.func private @a(!pto.tile_buf<vec, 16x64xf32>)\n"


def test_a_comment_inside_a_type_stays() -> None:
    text = "func.func private @a(!pto.tile_buf<vec,  // place\n    16x64xf32>)\n"
    assert check(text) == text


def test_statements_of_one_line_are_parted_and_semicolons_stay() -> None:
    text = "func.func @k() { %a = arith.constant 1 : i32 %b = arith.constant -2 : i32 return }"
    assert check(text) == (
        "func.func @k() {\n  %a = arith.constant 1 : i32\n  %b = arith.constant -2 : i32\n  return\n}\n"
    )
    assert check(".const %a = 1 : i32; %b = arith.addi %a, %a : i32;") == (
        ".const %a = 1 : i32;\n%b = arith.addi %a, %a : i32;\n"
    )


def test_nothing_stays_nothing() -> None:
    assert fmt("") == fmt("\n\n") == ""
    assert fmt("\n\n// only\n\n") == "// only\n"


# --------------------------------------------------------------------------------------------- the command

UGLY = "func.func @k(){ // here\nreturn }\n"
GOOD = "func.func @k() {  // here\n  return\n}\n"


@pytest.fixture
def ugly(tmp_path: Path) -> Path:
    path = tmp_path / "k.pto"
    path.write_text(UGLY)
    return path


def test_the_examples_are_formatted() -> None:
    assert main(["fmt", "--check", *map(str, EXAMPLES)]) == 0


def test_rewrites_in_place_once(ugly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", str(ugly)]) == 0
    assert ugly.read_text() == GOOD and capsys.readouterr().out == f"{ugly}: rewritten\n"
    assert main(["fmt", str(ugly)]) == 0
    assert ugly.read_text() == GOOD and capsys.readouterr().out == ""


def test_check_changes_nothing(ugly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--check", str(ugly)]) == 1
    assert ugly.read_text() == UGLY
    assert capsys.readouterr() == ("", f"{ugly}: not formatted\n")


def test_diff_can_be_applied(ugly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ugly.write_text(UGLY.rstrip("\n"))
    assert main(["fmt", "--diff", str(ugly)]) == 1
    assert ugly.read_text() == UGLY.rstrip("\n")
    shown = capsys.readouterr().out
    assert "-return }\n\\ No newline at end of file\n" in shown and "+  return\n+}\n" in shown


def _stdin(*arguments: str, text: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pto.cli.main", "fmt", *arguments, "-"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_standard_input() -> None:
    assert _stdin(text=UGLY) == (0, GOOD)
    assert _stdin(text=GOOD) == (0, GOOD)
    assert _stdin("--check", text=UGLY) == (1, "")
    assert _stdin(text="func.func @k( {") == (1, "")


def test_a_broken_file_is_left_alone_and_the_others_are_not(ugly: Path) -> None:
    broken = ugly.with_name("broken.pto")
    broken.write_text("func.func   @k() { retrun }\n")
    assert main(["fmt", str(broken), str(ugly)]) == 1
    assert broken.read_text() == "func.func   @k() { retrun }\n"
    assert ugly.read_text() == GOOD
