"""The one way from a program to one that can be emitted or run: checks, steps, and reports."""

from __future__ import annotations

import pytest
from tests.each import together

import pto
from pto.driver import Options, complete, lowered
from pto.passes import PASSES

TILE = "!pto.tile_buf<vec, 16x64xf32>"
VIEW = "!pto.tensor_view<16x64xf32>"


def program(address: str = "", flags: str = "", body: str = "") -> pto.Module:
    return pto.parse(f"""
func.func @k(%x: {VIEW}, %y: {VIEW}) {{
  %c0 = arith.constant 0 : i64
  %t = pto.alloc_tile{address} : {TILE}
  pto.tload ins(%x : {VIEW}) outs(%t : {TILE})
  {flags}
  {body or f"pto.tadd ins(%t, %t : {TILE}, {TILE}) outs(%t : {TILE})"}
  pto.tstore ins(%t : {TILE}) outs(%y : {VIEW})
  return
}}
""")


ADDRESS = " addr = %c0"
FLAGS = (
    "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n  pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]"
)


def test_all_steps() -> None:
    module = program()
    done = lowered(module, "a3", Options(insert_sync=True), timed=True)
    assert done.ok and done.ran == tuple(p.name for p in PASSES) and not done.manual
    assert list(done.times) == ["verify", *done.ran] and done.plan is not None and done.profile.name == "a2a3"
    assert complete(done.module) == (True, True) and complete(module) == (False, False)
    assert lowered(module, keep=False).module is module


def test_what_is_wrong_ends_it() -> None:
    wrong = f"pto.tadd ins(%t, %x : {TILE}, {VIEW}) outs(%t : {TILE})"
    module = program(body=wrong)
    done = lowered(module, "a5")
    assert not done.ok and not done.ran and done.module is module and not done.times
    with pytest.raises(pto.DiagnosticError):
        done.sound()
    unchecked = Options(check="structure", passes="never")
    assert not lowered(module, "a5", unchecked).ok  # no stage can take a view for a tile
    small = TILE.replace("f32", "i8")
    illegal = program(
        body=f"%s = pto.alloc_tile : {small}\npto.tadd ins(%t, %s : {TILE}, {small}) outs(%t : {TILE})"
    )
    assert not lowered(illegal, "a5").ok and lowered(illegal, "a5", unchecked).ok
    large = program()
    overflow = lowered(large, lowered(large).profile.override({"vec": 64}))
    assert not overflow.ok and "insert-sync" not in overflow.ran


@together(
    ("address", "flags", "insert_sync", "ran", "synchronised"),
    [
        ("", "", False, True, True),
        ("", FLAGS, False, True, False),
        (ADDRESS, "", False, False, False),
        (ADDRESS, "", True, True, True),
        (ADDRESS, FLAGS, True, False, False),
    ],
)
def test_only_what_the_program_leaves_to_the_tools(
    address: str, flags: str, insert_sync: bool, ran: bool, synchronised: bool
) -> None:
    module = program(address, flags)
    wanted = Options(check="none", passes="needed", insert_sync=insert_sync)
    done = lowered(module, "a3", wanted).sound()
    assert bool(done.ran) is ran and (done.module is module) is not ran
    assert ("insert-sync" in done.ran) is synchronised
    assert not lowered(module, "a3", wanted.replace(passes="never")).ran
