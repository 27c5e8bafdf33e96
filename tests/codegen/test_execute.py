"""Scalar code and control flow have the same results in C++ and in the reference engine.

Random structured programs of scalar operations store their results in an array; the emitted C++ is compiled
with a header that has only the qualifiers, called, and compared.
"""

from __future__ import annotations

import ctypes
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.made import compiled
from tests.sampling import EVERY
from tests.seeds import seeds

import pto
from pto.engine.entry import Launchable
from pto.engine.native import machine
from pto.engine.native.kernel import image_of

COMPILER = shutil.which("g++") or shutil.which("clang++")

HEADER = """\
#include <cmath>
#include <cstddef>
#include <cstdint>
#define AICORE
#define __global__ extern "C"
#define __gm__
#define set_flag(...)
#define wait_flag(...)
#define pipe_barrier(...)
namespace pto {}
"""

INTS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
WRAPPING = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
DIVIDING = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
SHIFTING = ("shli", "shrsi", "shrui")
CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")
FLOATS = ("addf", "subf", "mulf", "maximumf", "minimumf")  # maxnumf and minnumf leave the sign of zero open


class Program:
    """One random function; `values` are what may be used where the text now ends."""

    def __init__(self, seed: int, name: str) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.stored = 0
        self.outside: list[int] = []
        self.values: list[tuple[str, str]] = [("%a", "i32"), ("%b", "i32"), ("%n", "index"), ("%x", "f32"),
                                              ("%y", "f32"), ("%l", "i64")]  # fmt: skip
        self.statements(14, 3)
        for value, type in self.values[-12:]:
            self.store(value, type)
        body = "\n".join(self.lines)
        self.text = (
            f"func.func @{name}(%out: !pto.ptr<i64>, %a: i32, %b: i32, %n: index, %l: i64, %x: f32, %y: f32) {{\n"
            f"{body}\n  return\n}}\n"
        )

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def add(self, type: str, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        self.values.append((name, type))
        return name

    def pick(self, *types: str) -> tuple[str, str]:
        found = [v for v in self.values if v[1] in types]
        if found and self.random.random() < 0.85:
            return self.random.choice(found[-8:])
        type = self.random.choice(types)
        return self.number(type), type

    def of(self, type: str) -> str:
        return self.pick(type)[0]

    def number(self, type: str) -> str:
        if type == "f32":
            return self.add(
                "f32", f"arith.constant {self.random.choice((0.0, -0.0, 1.5, -2.25, 1e10, 3e-7))} : f32"
            )
        if type == "i1":
            return self.add("i1", f"arith.constant {self.random.choice(('true', 'false'))}")
        bits = min(INTS[type], 32)
        extremes = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1, -1, 0, 1, 7)
        return self.add(type, f"arith.constant {self.random.choice(extremes)} : {type}")

    def statements(self, count: int, depth: int) -> None:
        for _ in range(count):
            choices = [self.binary, self.binary, self.divide, self.shift, self.compare, self.convert, self.select,
                       self.float, self.float_compare, self.math]  # fmt: skip
            if depth:
                choices += [self.loop, self.branch, self.while_loop, self.region, self.switch]
            make = self.random.choice(choices)
            make(depth - 1) if make in choices[10:] else make()  # type: ignore[call-arg]

    def binary(self) -> None:
        type = self.random.choice((*INTS, "i1"))
        op = self.random.choice(WRAPPING[:6] if type == "i1" else WRAPPING)
        self.add(type, f"arith.{op} {self.of(type)}, {self.of(type)} : {type}")

    def divide(self) -> None:
        type = self.random.choice(tuple(INTS))
        seven, one = self.fresh(), self.fresh()
        self.lines += [f"  {seven} = arith.constant 7 : {type}", f"  {one} = arith.constant 1 : {type}"]
        low = self.add(type, f"arith.andi {self.of(type)}, {seven} : {type}")
        by = self.add(type, f"arith.addi {low}, {one} : {type}")
        self.add(type, f"arith.{self.random.choice(DIVIDING)} {self.of(type)}, {by} : {type}")

    def shift(self) -> None:
        type = self.random.choice(tuple(INTS))
        mask = self.fresh()
        self.lines.append(f"  {mask} = arith.constant {INTS[type] - 1} : {type}")
        by = self.add(type, f"arith.andi {self.of(type)}, {mask} : {type}")
        self.add(type, f"arith.{self.random.choice(SHIFTING)} {self.of(type)}, {by} : {type}")

    def compare(self) -> None:
        type = self.random.choice((*INTS, "i1"))
        self.add("i1", f"arith.cmpi {self.random.choice(CMPI)}, {self.of(type)}, {self.of(type)} : {type}")

    def float(self) -> None:
        self.add("f32", f"arith.{self.random.choice(FLOATS)} {self.of('f32')}, {self.of('f32')} : f32")

    def math(self) -> None:
        op = self.random.choice(
            ("math.absf", "math.floor", "math.ceil", "math.trunc", "arith.negf", "math.round")
        )
        self.add("f32", f"{op} {self.of('f32')} : f32")

    def float_compare(self) -> None:
        self.add("i1", f"arith.cmpf {self.random.choice(CMPF)}, {self.of('f32')}, {self.of('f32')} : f32")

    def convert(self) -> None:
        small, big = self.random.choice(
            (("i1", "i8"), ("i1", "i64"), ("i8", "i32"), ("i16", "i64"), ("i32", "i64"))
        )
        how = self.random.choice(
            ("extsi", "extui", "trunci", "index_cast", "index_castui", "sitofp", "uitofp", "bits")
        )
        if how == "trunci":
            self.add(small, f"arith.trunci {self.of(big)} : {big} to {small}")
        elif how.startswith("ext"):
            self.add(big, f"arith.{how} {self.of(small)} : {small} to {big}")
        elif how.startswith("index"):
            source, result = self.random.choice(
                (("i32", "index"), ("index", "i32"), ("i64", "index"), ("index", "i8"))
            )
            self.add(result, f"arith.{how} {self.of(source)} : {source} to {result}")
        elif how == "bits":
            self.add("i32", f"arith.bitcast {self.no_nan(self.of('f32'))} : f32 to i32")
        else:
            self.add("f32", f"arith.{how} {self.of(small)} : {small} to f32")

    def no_nan(self, value: str) -> str:
        """The sign of a NaN is the machine's choice: a number instead."""
        nan, zero, number = (self.fresh() for _ in range(3))
        self.lines += [f"  {nan} = arith.cmpf uno, {value}, {value} : f32", f"  {zero} = arith.constant 0.5 : f32",
                       f"  {number} = arith.select {nan}, {zero}, {value} : f32"]  # fmt: skip
        return number

    def select(self) -> None:
        type = self.random.choice((*INTS, "f32"))
        self.add(type, f"arith.select {self.of('i1')}, {self.of(type)}, {self.of(type)} : {type}")

    @contextmanager
    def scope(self, *more: tuple[str, str]) -> Iterator[None]:
        """Open a region: its definitions end with it."""
        before = list(self.values)
        self.values += more
        self.outside.append(len(before))
        yield
        self.outside.pop()
        self.values = before

    def yielded(self, type: str) -> str:
        """A value the region made, if it made one of the type."""
        found = [name for name, t in self.values[self.outside[-1] :] if t == type]
        return found[-1] if found else self.of(type)

    def loop(self, depth: int) -> None:
        low, high, step = (self.fresh() for _ in range(3))
        bounds = self.random.choice(((0, 3, 1), (-2, 2, 2), (1, 7, 3), (3, 3, 1), (2, -1, 1)))
        type = self.random.choice(("index", "i32"))
        for name, number in zip((low, high, step), bounds, strict=True):
            self.lines.append(f"  {name} = arith.constant {number} : {type}")
        if self.random.random() < 0.3:
            self.plain_loop(low, high, step, depth, type)
            return
        iv, first, second, result = (self.fresh() for _ in range(4))
        init = self.of("i32"), self.of("i32")
        self.lines.append(
            f"  {result}:2 = scf.for {iv} = {low} to {high} step {step} iter_args({first} = {init[0]}, "
            f"{second} = {init[1]}) -> (i32, i32){'' if type == 'index' else ' : ' + type} {{"
        )
        with self.scope((iv, type), (first, "i32"), (second, "i32")):
            self.statements(3, depth)
            swap = (second, first) if self.random.random() < 0.3 else (self.yielded("i32"), first)
            self.lines += [f"  scf.yield {swap[0]}, {swap[1]} : i32, i32", "  }"]
        self.values += [(f"{result}#0", "i32"), (f"{result}#1", "i32")]

    def plain_loop(self, low: str, high: str, step: str, depth: int, type: str) -> None:
        """A loop that leaves its trace in memory."""
        iv = self.fresh()
        kind = "" if type == "index" else f" : {type}"
        self.lines.append(f"  scf.for {iv} = {low} to {high} step {step}{kind} {{")
        with self.scope((iv, type)):
            self.statements(2, depth)
            self.store(*self.pick("i32", "index", "i8"), at=15)
        self.lines.append("  }")

    def branch(self, depth: int) -> None:
        condition, result = self.of("i1"), self.fresh()
        self.lines.append(f"  {result}:2 = scf.if {condition} -> (i32, f32) {{")
        for word in ("  } else {", "  }"):
            with self.scope():
                self.statements(2, depth)
                values = self.yielded("i32"), self.yielded("f32")
                self.lines += [f"  scf.yield {values[0]}, {values[1]} : i32, f32", word]
        self.values += [(f"{result}#0", "i32"), (f"{result}#1", "f32")]

    def while_loop(self, depth: int) -> None:
        zero, one, limit, result, count, kept, go = (self.fresh() for _ in range(7))
        self.lines += [f"  {zero} = arith.constant 0 : i32", f"  {one} = arith.constant 1 : i32",
                       f"  {limit} = arith.constant {self.random.randrange(4)} : i32"]  # fmt: skip
        init = self.of("i32")
        self.lines.append(
            f"  {result}:2 = scf.while ({count} = {zero}, {kept} = {init}) : (i32, i32) -> (i32, i32) {{"
        )
        with self.scope((kept, "i32")):
            self.statements(2, 0)
            passed = self.yielded("i32") if self.random.random() < 0.5 else kept
            self.lines += [f"  {go} = arith.cmpi slt, {count}, {limit} : i32",
                           f"  scf.condition({go}) {count}, {passed} : i32, i32", "  } do {"]  # fmt: skip
        c, k, again = (self.fresh() for _ in range(3))
        self.lines.append(f"  ^bb0({c}: i32, {k}: i32):")
        with self.scope((k, "i32"), (c, "i32")):
            self.statements(2, depth)
            passed = self.yielded("i32")
            self.lines += [f"  {again} = arith.addi {c}, {one} : i32",
                           f"  scf.yield {again}, {passed} : i32, i32", "  }"]  # fmt: skip
        self.values += [(f"{result}#0", "i32"), (f"{result}#1", "i32")]

    def region(self, depth: int) -> None:
        """Basic blocks: a diamond whose branches pass their values on, and one value crosses a block."""
        condition, one = self.of("i1"), self.of("i32")
        result, argument, crossing, joined, summed = (self.fresh() for _ in range(5))
        at = self.count
        self.lines += [f"  {result} = scf.execute_region -> i32 {{", f"    cf.br ^h{at}", f"  ^h{at}:",
                       f"    {crossing} = arith.subi {one}, {one} : i32",
                       f"    cf.cond_br {condition}, ^l{at}({one} : i32), ^r{at}",
                       f"  ^l{at}({argument}: i32):"]  # fmt: skip
        with self.scope((crossing, "i32"), (argument, "i32")):
            self.statements(2, depth)
            self.lines.append(f"    cf.br ^j{at}({self.yielded('i32')} : i32)")
        self.lines.append(f"  ^r{at}:")
        with self.scope((crossing, "i32")):
            self.statements(2, 0)
            self.lines.append(f"    cf.br ^j{at}({self.yielded('i32')} : i32)")
        self.lines += [f"  ^j{at}({joined}: i32):", f"    {summed} = arith.addi {joined}, {crossing} : i32",
                       f"    scf.yield {summed} : i32", "  }"]  # fmt: skip
        self.values.append((result, "i32"))

    def switch(self, depth: int) -> None:
        which, result = self.of("index"), self.fresh()
        self.lines.append(f"  {result} = scf.index_switch {which} -> i32")
        for label in ("case 0", "case 7", "default"):
            self.lines.append(f"  {label} {{")
            with self.scope():
                self.statements(1, min(depth, 0))
                self.lines += [f"    scf.yield {self.yielded('i32')} : i32", "  }"]
        self.values.append((result, "i32"))

    def store(self, value: str, type: str, at: int = -1) -> None:
        wide, place = self.fresh(), self.fresh()
        if type == "f32":
            bits, number = self.fresh(), self.no_nan(value)
            self.lines.append(f"  {bits} = arith.bitcast {number} : f32 to i32")
            value, type = bits, "i32"
        if type == "index":
            self.lines.append(f"  {wide} = arith.index_cast {value} : index to i64")
        elif type != "i64":
            self.lines.append(f"  {wide} = arith.extsi {value} : {type} to i64")
        self.lines.append(f"  {place} = arith.constant {at if at >= 0 else self.stored} : index")
        self.stored += at < 0
        stored = wide if type != "i64" else value
        self.lines.append(f"  pto.store_scalar {stored}, %out[{place}] : !pto.ptr<i64>, i64")


def _build(folder: Path, text: str) -> ctypes.CDLL:
    library = folder / "k.so"
    assert COMPILER is not None
    command = [
        COMPILER,
        "-std=c++20",
        "-O1",
        "-w",
        "-ffp-contract=off",
        "-fsanitize=undefined",
        "-fsanitize-undefined-trap-on-error",
        "-shared",
        "-fPIC",
    ]
    done = compiled(command, text.replace('#include "pto/pto-inst.hpp"', HEADER), library)
    assert done.returncode == 0, done.stderr[:3000]
    return ctypes.CDLL(str(library))


INPUTS = [
    (0, 0, 0, 0, 0.0, 0.0),
    (-1, 5, 7, -3, 1.5, float("nan")),
    (2**31 - 1, -(2**31), 3, 2**62, -0.0, 0.0),
    (123456789, -7, 100, -(2**63), float("inf"), -1e-3),
]


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.seeded
@pytest.mark.parametrize("first", [0, 40] if EVERY else [0])
def test_random_programs(first: int, tmp_path: Path) -> None:
    programs = [
        Program(seed, f"k{i}") for i, seed in enumerate(seeds(range(first, first + (40 if EVERY else 20))))
    ]
    text = "".join(p.text for p in programs)
    cpp = pto.emit_cpp(pto.parse(text), index_type="int64_t").replace(
        "\nAICORE void", '\nextern "C" AICORE void'
    )
    library = _build(tmp_path, cpp)
    modules = [pto.parse(program.text) for program in programs]
    asked = [image_of(Launchable(module, None, None, True)).calls for module in modules]
    machine.functions(list(dict.fromkeys(c for calls in asked for c in calls)))
    for program, module in zip(programs, modules, strict=True):
        kernel, native = (pto.kernel(module, engine=engine) for engine in ("reference", "native"))
        call = getattr(library, program.text.partition("@")[2].partition("(")[0])
        for a, b, n, wide, x, y in INPUTS:
            want, got = np.zeros(16, np.int64), np.zeros(16, np.int64)
            kernel(want, a, b, n, wide, x, y)
            call(
                got.ctypes.data_as(ctypes.c_void_p), ctypes.c_int32(a), ctypes.c_int32(b), ctypes.c_int64(n),
                ctypes.c_int64(wide), ctypes.c_float(x), ctypes.c_float(y),
            )  # fmt: skip
            assert (want == got).all(), f"{program.text}\nwant {want}\n got {got}"
            got[:] = 0
            native(got, a, b, n, wide, x, y)
            assert (want == got).all(), f"{program.text}\nwant {want}\n got {got} on engine native"
