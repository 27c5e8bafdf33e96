"""Tiles that overwrite each other, found in the text where their addresses are constants."""

from __future__ import annotations

import pytest
from tests.each import each
from tests.passes.memory_programs import Programs
from tests.passes.plan_checks import launch, plan
from tests.sanitize.corpus import NAMES, PROGRAMS, found_at, load

import pto
from pto.diag import Diagnostic
from pto.verifier import verify

CODE = "PTO-E2210"

#: What only a run sees: calls are not followed, of an `if` only what both branches do, and nothing within an
#: instruction.
AT_RUN_TIME = ("overlap_called", "overlap_in_a_branch", "overlap_own_source", "overlap_rows_behind")


def found(module: pto.Module) -> list[Diagnostic]:
    return [d for d in verify(module, overlaps="error") if d.code == CODE]


def test_what_a_run_finds_is_found_in_the_text() -> None:
    def check(name: str) -> None:
        program = load(f"{name}.bad")
        wanted = [(c.code, c.line, c.others) for c in program.checks if c.code == CODE]
        assert len(wanted) == 1 and name.startswith("overlap_")
        got = found(pto.parse(PROGRAMS / f"{name}.bad.pto"))
        assert [found_at(d) for d in got] == ([] if name in AT_RUN_TIME else wanted)

    names = [n for n in NAMES if any(c.code == CODE for c in load(f"{n}.bad").checks)]
    assert len(names) >= 12
    each(check, names)


def test_correct_programs_are_left_alone() -> None:
    def check(name: str) -> None:
        assert found(pto.parse(PROGRAMS / name)) == []

    each(check, [p.name for p in sorted(PROGRAMS.iterdir()) if p.name.endswith(".good.pto")])


def test_the_message_says_who_shares_what() -> None:
    (d,) = found(pto.parse(PROGRAMS / "overlap_l1.bad.pto"))
    assert d.message == (
        "tmov: reads %a1 after %b0 has overwritten part of it: they share bytes 0x100-0x1ff of L1"
    )
    assert [text for text, _ in d.notes] == ["tload writes %a1", "tload writes %b0 over it"]
    assert d.help.startswith(
        "%a1 takes 0x0-0x1ff and %b0 takes 0x100-0x2ff: give one of them another address"
    )


def test_it_is_as_severe_as_asked_for() -> None:
    module = pto.parse(PROGRAMS / "overlap_half.bad.pto")
    for severity, count in (("error", 1), ("warning", 1), ("off", 0)):
        said = [d.severity for d in verify(module, overlaps=severity) if d.code == CODE]
        assert said == [severity] * count


PROGRAM = """!t = !pto.tile_buf<vec, 8x64xf32>
!h = !pto.tile_buf<vec, 8x64xf32, valid=8x32>
!i = !pto.tile_buf<vec, 8x64xi32>
!v = !pto.partition_tensor_view<8x64xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !v, %y: !v, %n: index) attributes {pto.entry} {
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 1024 : i64
    %a2 = arith.constant 2048 : i64
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2 : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = pto.alloc_tile addr = %a0 : !t
    BODY
    return
  }
}
"""
LOAD, STORE = "pto.tload ins(%x : !v) outs(%t : !t)", "pto.tstore ins(%t : !t) outs(%y : !v)"
FILL = "pto.texpands ins(%one : f32) outs(%u : !t)"
U = "%u = pto.alloc_tile addr = %a1 : !t"


@pytest.mark.parametrize(
    "lines, count",
    [
        ([U, LOAD, FILL, STORE], 1),
        ([U, FILL, LOAD, STORE], 0),  # the first is written last
        ([U, LOAD, STORE, FILL], 0),  # they take turns
        ([U, LOAD, FILL, LOAD, STORE], 0),  # and again
        # another valid region, or another type, on the same bytes: another way to see the same tile
        (["%u = pto.alloc_tile addr = %a0 : !h", LOAD, FILL.replace("!t", "!h"), STORE], 0),
        (
            ["%u = pto.alloc_tile addr = %a0 : !i", LOAD, "pto.texpands ins(%two : i32) outs(%u : !i)", STORE],
            0,
        ),
        (["%u = pto.alloc_tile addr = %a0 : !t", LOAD, FILL, STORE], 1),
        # the state at the end of a loop meets its beginning
        ([U, LOAD, "scf.for %i = %c0 to %n step %c1 {", STORE, FILL, "}"], 1),
        ([U, "scf.for %i = %c0 to %n step %c1 {", LOAD, STORE, FILL, "}"], 0),
        # in the second turn of a loop a branch may not be taken
        (
            [U, LOAD, "scf.for %i = %c0 to %n step %c1 {", "%z = arith.cmpi eq, %i, %c0 : index", "scf.if %z {",
             STORE, "}", FILL, "}"],
            0,
        ),
        # a tile whose address only a run knows may be any
        ([U, "%w = pto.alloc_tile addr = %a2 : !t", "pto.tassign %u, %a2 : !t, i64", LOAD, FILL, STORE], 0),
        ([U, "pto.tassign %u, %a1 : !t, i64", LOAD, FILL, STORE], 1),
    ],
)  # fmt: skip
def test_orders_and_aliases(lines: list[str], count: int) -> None:
    assert len(found(pto.parse(PROGRAM.replace("BODY", "\n    ".join(lines))))) == count


def test_planned_programs_share_bytes_and_have_nothing_to_report() -> None:
    def check(seed: int) -> None:
        module = plan(pto.parse(Programs(seed, 16).text)).module
        assert found(module) == []
        _, said = launch(module, 3, 1, sanitize="overlap")
        assert [d for d in said if d.code == CODE] == []

    each(check, list(range(40)))
