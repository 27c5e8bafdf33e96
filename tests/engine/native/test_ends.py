"""Failed launches of engine native: they report the line of the program, and the process goes on."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pto
from pto.engine.compiled import library
from pto.engine.native import machine

from ..programs import CONSTANTS, program

#: What ends a launch: the code, the line of the body that is named, and the body.
ENDS = {
    "a bad address": ("PTO-E2101", "pto.load_scalar", """%far = arith.constant 1000000000000 : index
        %v = pto.load_scalar %out[%far] : !pto.ptr<i64> -> i64
        pto.store_scalar %v, %out[%c0] : !pto.ptr<i64>, i64"""),
    "a division": ("PTO-E2102", "arith.divsi", """%d = arith.subi %n, %n : index
        %q = arith.divsi %n, %d : index
        %v = pto.load_scalar %out[%q] : !pto.ptr<i64> -> i64"""),
    "a division of a map": ("PTO-E2102", "affine.apply", """%d = arith.subi %n, %n : index
        %q = affine.apply affine_map<(d0)[s0] -> (d0 floordiv s0)>(%n)[%d]
        %v = pto.load_scalar %out[%q] : !pto.ptr<i64> -> i64"""),
    "a window of a tile": ("PTO-E2101", "pto.subview", """%t = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
        %far = arith.muli %n, %n : index
        %w = pto.subview %t[%far, %c0] sizes [4, 64] : !pto.tile_buf<vec, 8x64xf32> -> !pto.tile_buf<vec, 4x64xf32>
        %v = arith.constant 1.5 : f32
        pto.texpands ins(%v : f32) outs(%w : !pto.tile_buf<vec, 4x64xf32>)"""),
    "a trap": ("PTO-E2105", "pto.trap", """%v = pto.load_scalar %out[%c0] : !pto.ptr<i64> -> i64
        pto.store_scalar %v, %out[%c0] : !pto.ptr<i64>, i64
        pto.trap"""),
    "a valid region": ("PTO-E2102", "pto.set_validshape", """%t = pto.alloc_tile valid_row = %c1 valid_col = %c1 : !pto.tile_buf<vec, 16x16xf32, valid=?x?>
        pto.set_validshape %t, %c1, %n : !pto.tile_buf<vec, 16x16xf32, valid=?x?>"""),
    "an index of an array": ("PTO-E2102", "pto.local_array_set", """%a = pto.declare_local_array -> !pto.local_array<3x2xi64>
        %v = arith.constant 1 : i64
        pto.local_array_set %a[%c1, %n], %v : !pto.local_array<3x2xi64>, i64"""),
    "an index of a memref": ("PTO-E2102", "memref.load", """%m = memref.alloc() : memref<4x16xf32, #pto.address_space<vec>>
        %v = memref.load %m[%c1, %n] : memref<4x16xf32, #pto.address_space<vec>>"""),
    "a step": ("PTO-E2102", "scf.for", """%s = arith.subi %n, %n : index
        scf.for %i = %c0 to %n step %s {
        }"""),
    "an endless loop": ("PTO-E2106", "scf.while", """%t = arith.constant true
        scf.while : () -> () {
          scf.condition(%t)
        } do {
          scf.yield
        }"""),
    "a loop that is too long": ("PTO-E2106", "scf.for", """scf.for %i = %c0 to %big step %c1 {
        }"""),
    "a nest of loops": ("PTO-E2105", "pto.trap", "\n".join((
        *(f"scf.for %i{k} = %c0 to %c1 step %c1 {{" for k in range(90)), "pto.trap", *["}"] * 90))),
    "many values": ("PTO-E2105", "pto.trap", "\n".join((
        "%v0 = arith.constant 1 : i64", *(f"%v{k + 1} = arith.addi %v{k}, %v{k // 2} : i64" for k in range(3000)),
        "pto.trap"))),
}  # fmt: skip


def made(name: str) -> tuple[str, str, str]:
    code, line, body = ENDS[name]
    big = "%big = arith.constant 1000000000000 : index\n"
    return code, line, program(CONSTANTS + "\n" + big + body, "%out: !pto.ptr<i64>, %n: index")


@pytest.fixture(scope="module", autouse=True)
def ready() -> None:
    """Compile the calls of all programs here in one go."""
    from pto.engine.entry import Launchable
    from pto.engine.native.kernel import image_of

    asked = {
        c: None
        for name in ENDS
        for c in image_of(Launchable(pto.parse(made(name)[2]), None, None, True)).calls
    }
    machine.functions(list(asked))


@pytest.mark.parametrize("name", ENDS)
def test_what_ends_a_launch_names_its_line(name: str) -> None:
    code, line, text = made(name)
    k = pto.kernel(pto.parse(text), engine="native")
    out = np.zeros(4, np.int64)
    for options in ({}, {"blocks": 3, "threads": 2}):
        (found,) = k.run(out, 100, max_steps=50_000, **options).diagnostics
        assert found.code == code and found.span is not None, found
        assert line in text.splitlines()[found.span.line - 1], found
        assert found.message.startswith(line.removeprefix("pto."))
        assert ("(block " in found.message) == bool(options) or code == "PTO-E2101"


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_limit_of_time_ends_an_endless_loop(engine: str) -> None:
    _, _, text = made("an endless loop")
    (found,) = (
        pto.kernel(pto.parse(text), engine=engine).run(np.zeros(4, np.int64), 1, timeout=0.05).diagnostics
    )
    assert found.code == "PTO-E2106" and found.message == "scf.while: still running after 0.05 s"


@pytest.mark.parametrize("timeout", [0, -1, True, "1", float("nan"), float("inf")])
def test_a_limit_of_time_is_a_number(timeout: Any) -> None:
    k = pto.kernel(pto.parse(program("")), engine="native")
    with pytest.raises(ValueError, match="expected a number of seconds above 0 for timeout"):
        k.run(np.zeros(1, np.int64), timeout=timeout)


class Begun:
    """Output stream of a kernel that signals that it has begun."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def write(self, text: str) -> None:
        self.event.set()


def test_an_interrupt_ends_a_launch() -> None:
    """Ctrl-C, as often as it takes: a launch begins to listen after some milliseconds."""
    text = endless()
    interrupt(pto.kernel(pto.parse(text), engine="native"), text)


def endless() -> str:
    """Return a program that prints when its endless loop begins."""
    _, _, text = made("an endless loop")
    return text.replace("scf.while :", 'pto.print ins("on", %t : i1)\n  scf.while :')


def interrupt(k: Any, text: str, lines: tuple[str, ...] = ("scf.while",)) -> None:
    """Ctrl-C ends a launch of a kernel of an endless loop, and names one of its lines; the next launch is as ever."""
    begun, over = Begun(), threading.Event()
    raised: list[int] = []

    def once(number: int, frame: FrameType | None) -> None:
        printing = False  # where nothing may be raised
        while frame is not None:
            code = frame.f_code
            printing |= code.co_filename == library.__file__ and code.co_name != "call"
            frame = frame.f_back
        if not printing and not raised:
            raised.append(number)
            raise KeyboardInterrupt

    def press() -> None:
        begun.event.wait(60)
        while not over.wait(0.01):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, once)
    keys = threading.Thread(target=press)
    keys.start()
    try:
        with pytest.raises(KeyboardInterrupt, match=r"at <text>:\d+") as e:
            k.run(np.zeros(4, np.int64), 1, blocks=2, threads=2, out=begun)
    finally:
        over.set()
        keys.join()
        signal.signal(signal.SIGINT, before)
    named = text.splitlines()[int(str(e.value).rpartition(":")[2]) - 1]
    assert any(line in named for line in lines), named
    assert k.run(np.zeros(4, np.int64), 1, max_steps=10, out=begun).diagnostics


def test_functions_that_call_each_other_stay_small() -> None:
    """Each calls the next twice: in place of their calls they would be 2**40 copies. A chain may be long."""
    double = "".join(
        f"func.func private @d{n}(%x: i64) -> i64 {{\n  %y = func.call @d{n + 1}(%x) : (i64) -> i64\n"
        f"  %z = func.call @d{n + 1}(%y) : (i64) -> i64\n  return %z : i64\n}}\n" for n in range(8)
    )  # fmt: skip
    long = "".join(
        f"func.func private @c{n}(%x: i64) -> i64 {{\n  %y = func.call @c{n + 1}(%x) : (i64) -> i64\n"
        "  return %y : i64\n}\n" for n in range(300)
    )  # fmt: skip
    big = "\n".join(f"  %a{n + 1} = arith.addi %a{n}, %one : i64" for n in range(250))
    text = f"""module {{
{double}{long}func.func private @d8(%a0: i64) -> i64 {{
  %one = arith.constant 1 : i64
{big}
  return %a250 : i64
}}
func.func private @c300(%x: i64) -> i64 {{
  %y = func.call @d0(%x) : (i64) -> i64
  return %y : i64
}}
func.func @k(%out: !pto.ptr<i64>) attributes {{pto.entry}} {{
  %c0 = arith.constant 0 : index
  %x = pto.load_scalar %out[%c0] : !pto.ptr<i64> -> i64
  %a = func.call @c0(%x) : (i64) -> i64
  %b = func.call @d1(%a) : (i64) -> i64
  pto.store_scalar %b, %out[%c0] : !pto.ptr<i64>, i64
  return
}}
}}
"""
    k = pto.kernel(pto.parse(text), engine="native")
    out = np.array([5], np.int64)
    k(out)
    assert out[0] == 5 + 250 * (2**8 + 2**7)
    assert len(k.image.codes[0].words) < 50_000  # type: ignore[attr-defined]


def test_a_function_changes_the_tiles_of_its_caller() -> None:
    """Also one that is too long to be put in place of its call."""
    tile = "!pto.tile_buf<vec, 8x16xf32, valid=?x?>"
    filler = "\n".join(f"  %f{n + 1} = arith.addi %f{n}, %c1 : index" for n in range(250))
    text = f"""module attributes {{pto.target_arch = "a3"}} {{
func.func private @grow(%t: {tile}, %a: !pto.local_array<2xi64>, %f0: index) -> index {{
  %c1 = arith.constant 1 : index
  %v = arith.constant 77 : i64
{filler}
  pto.local_array_set %a[%c1], %v : !pto.local_array<2xi64>, i64
  return %f250 : index
}}
func.func @k(%out: !pto.ptr<i64>) attributes {{pto.entry}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = pto.alloc_tile valid_row = %c1 valid_col = %c1 : {tile}
  %a = pto.declare_local_array -> !pto.local_array<2xi64>
  %n = func.call @grow(%t, %a, %c0) : ({tile}, !pto.local_array<2xi64>, index) -> index
  %m = func.call @grow(%t, %a, %n) : ({tile}, !pto.local_array<2xi64>, index) -> index
  %w = arith.index_cast %m : index to i64
  %v = pto.local_array_get %a[%c1] : !pto.local_array<2xi64> -> i64
  pto.store_scalar %w, %out[%c0] : !pto.ptr<i64>, i64
  pto.store_scalar %v, %out[%c1] : !pto.ptr<i64>, i64
  return
}}
}}
"""
    out = np.zeros(2, np.int64)
    pto.kernel(pto.parse(text), engine="native")(out)
    assert out.tolist() == [500, 77]
