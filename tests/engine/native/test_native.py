"""Engine native: the bits of the reference engine on the examples, control flow, tiles of every layout; its
refusals, and the reported line if a launch ends early.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto.diag import DiagnosticError
from pto.driver import lowered
from pto.engine.entry import Launchable
from pto.engine.native import images, machine
from pto.engine.native.kernel import NativeKernel, image_of
from pto.image.calls import key
from pto.image.every_call import calls, usual
from pto.image.format import CALL, NAMES, Image, ImageCode, to_bytes
from pto.image.generic import always_compiled
from pto.isa import row, rows

from ...image.programs import CONVOLUTION, TWO, VALUES
from ..kernels import EXAMPLES, KERNELS

Array = np.ndarray[Any, Any]


def numbers(*shape: int) -> Array:
    return (np.random.default_rng(7).standard_normal(shape) * 3).astype(np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


ANY = np.random.default_rng(3).integers(0, 2**32, 256, np.uint64).astype(np.uint32).view(np.float32)
SCORES = np.random.default_rng(4).integers(-50, 50, (2, 512)).astype(np.float32)

#: Control flow of every kind around scalar arithmetic: loops that carry, conditions, blocks, functions.
FLOW = """
module {
  func.func private @twice(%x: i32) -> i32 {
    %two = arith.constant 2 : i32
    %y = arith.muli %x, %two : i32
    return %y : i32
  }
  func.func @k(%out: !pto.ptr<i32>, %n: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %hundred = arith.constant 100 : i32
    %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%p = %zero, %q = %one) -> (i32, i32) {
      %sum = arith.addi %p, %q : i32
      scf.yield %q, %sum : i32, i32
    }
    pto.store_scalar %a, %out[%c0] : !pto.ptr<i32>, i32
    %w = scf.while (%x = %b) : (i32) -> i32 {
      %more = arith.cmpi slt, %x, %hundred : i32
      scf.condition(%more) %x : i32
    } do {
    ^bb0(%x: i32):
      %y = func.call @twice(%x) : (i32) -> i32
      scf.yield %y : i32
    }
    pto.store_scalar %w, %out[%c1] : !pto.ptr<i32>, i32
    %odd = arith.remsi %a, %hundred : i32
    %big = arith.cmpi sgt, %odd, %one : i32
    %s = scf.if %big -> (i32) {
      scf.yield %w : i32
    } else {
      scf.yield %zero : i32
    }
    %t = arith.select %big, %s, %a : i32
    pto.store_scalar %t, %out[%c2] : !pto.ptr<i32>, i32
    return
  }
}
"""

#: Tiles that have their columns side by side, alone and beside others; a column that is the result of a reduction.
COLUMNS = """
!rows = !pto.tile_buf<vec, 16x8xf32>
!cols = !pto.tile_buf<vec, 16x8xf32, blayout=col_major>
!part = !pto.tile_buf<vec, 16x8xf32, valid=?x?, blayout=col_major>
!one = !pto.tile_buf<vec, 16x1xf32, blayout=col_major>
!wide = !pto.tile_buf<vec, 16x16xf32, blayout=col_major>
!view = !pto.partition_tensor_view<16x8xf32>
module attributes {pto.target_arch = "cpu"} {
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %minus = arith.constant -2.0 : f32
    %vx = pto.make_tensor_view %x, shape = [%c16, %c8], strides = [%c8, %c1] : !pto.tensor_view<16x8xf32>
    %vy = pto.make_tensor_view %y, shape = [%c16, %c8], strides = [%c8, %c1] : !pto.tensor_view<16x8xf32>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c8] : !pto.tensor_view<16x8xf32> -> !view
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c8] : !pto.tensor_view<16x8xf32> -> !view
    %a = pto.alloc_tile : !rows
    %b = pto.alloc_tile : !cols
    %c = pto.alloc_tile : !rows
    %m = pto.alloc_tile : !one
    %p = pto.alloc_tile valid_row = %c8 valid_col = %c5 : !part
    pto.tload ins(%px : !view) outs(%a : !rows)
    pto.texp ins(%a : !rows) outs(%b : !cols)
    pto.tadd ins(%b, %b : !cols, !cols) outs(%b : !cols)
    pto.tmul ins(%a, %b : !rows, !cols) outs(%c : !rows)
    pto.texpands ins(%minus : f32) outs(%p : !part)
    pto.tneg ins(%p : !part) outs(%p : !part)
    pto.trowmax ins(%c, %a : !rows, !rows) outs(%m : !one)
    pto.trowexpandsub ins(%c, %m : !rows, !one) outs(%c : !rows)
    pto.tadd ins(%c, %b : !rows, !cols) outs(%c : !rows)
    %w = pto.alloc_tile : !wide
    %w0 = pto.subview %w[%c0, %c0] sizes [16, 8] : !wide -> !cols
    %w1 = pto.subview %w[%c0, %c8] sizes [16, 8] : !wide -> !cols
    pto.tinterleave ins(%c, %b : !rows, !cols) outs(%w0, %w1 : !cols, !cols)
    pto.tadd ins(%w0, %w1 : !cols, !cols) outs(%c : !rows)
    pto.tstore ins(%c : !rows) outs(%py : !view)
    return
  }
}
"""

_HALF_CALLS = {
    "tadd": "%a, %b : !t, !t", "tsub": "%a, %b : !t, !t", "tmul": "%a, %b : !t, !t", "tdiv": "%a, %b : !t, !t",
    "tmax": "%a, %b : !t, !t", "tmin": "%a, %b : !t, !t", "tadds": "%a, %s : !t, f16", "tmuls": "%a, %s : !t, f16",
    "tmaxs": "%a, %s : !t, f16", "tdivs": "%a, %s : !t, f16",
}  # fmt: skip
_HALF_BODY = "".join(
    f"""
    %o{n} = arith.constant {n} : index
    %p{n} = pto.partition_view %v2, offsets = [%o{n}, %c0, %c0], sizes = [%c1, %c128, %c509] : !out -> !outs
    pto.{name} ins({ins}) outs(%c : !t)
    pto.tstore ins(%c : !t) outs(%p{n} : !outs)"""
    for n, (name, ins) in enumerate(_HALF_CALLS.items())
)
#: Arithmetic of f16 that a machine may have of its own, on all codes, in rows that fill no vectors.
HALVES = f"""
!t = !pto.tile_buf<vec, 128x512xf16, valid=128x509>
!in = !pto.tensor_view<128x509xf16>
!window = !pto.partition_tensor_view<128x509xf16>
!out = !pto.tensor_view<{len(_HALF_CALLS)}x128x509xf16>
!outs = !pto.partition_tensor_view<1x128x509xf16>
module attributes {{pto.target_arch = "cpu"}} {{
  func.func @k(%x: !pto.ptr<f16>, %y: !pto.ptr<f16>, %z: !pto.ptr<f16>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %c509 = arith.constant 509 : index
    %count = arith.constant {len(_HALF_CALLS)} : index
    %whole = arith.constant {128 * 509} : index
    %s = arith.constant 3.0e-5 : f16
    %v0 = pto.make_tensor_view %x, shape = [%c128, %c509], strides = [%c509, %c1] : !in
    %v1 = pto.make_tensor_view %y, shape = [%c128, %c509], strides = [%c509, %c1] : !in
    %v2 = pto.make_tensor_view %z, shape = [%count, %c128, %c509], strides = [%whole, %c509, %c1] : !out
    %w0 = pto.partition_view %v0, offsets = [%c0, %c0], sizes = [%c128, %c509] : !in -> !window
    %w1 = pto.partition_view %v1, offsets = [%c0, %c0], sizes = [%c128, %c509] : !in -> !window
    %a = pto.alloc_tile : !t
    %b = pto.alloc_tile : !t
    %c = pto.alloc_tile : !t
    pto.tload ins(%w0 : !window) outs(%a : !t)
    pto.tload ins(%w1 : !window) outs(%b : !t){_HALF_BODY}
    return
  }}
}}
"""
CODES = np.random.default_rng(5).permutation(np.arange(65536, dtype=np.uint16)).view(np.float16)


#: Windows of a tile, padded outside the loaded part: elements beside them stay.
WINDOWS = """
!all = !pto.tile_buf<vec, 16x16xf32>
!half = !pto.tile_buf<vec, 16x8xf32>
!part = !pto.tile_buf<vec, 8x8xf32, valid=?x?>
!view = !pto.partition_tensor_view<16x16xf32>
module attributes {pto.target_arch = "cpu"} {
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %vx = pto.make_tensor_view %x, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
    %vy = pto.make_tensor_view %y, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> !view
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> !view
    %left = pto.partition_view %vx, offsets = [%c0, %c3], sizes = [%c16, %c8] : !pto.tensor_view<16x16xf32> -> !pto.partition_tensor_view<16x8xf32>
    %few = pto.partition_view %vx, offsets = [%c0, %c1], sizes = [%c3, %c3] : !pto.tensor_view<16x16xf32> -> !pto.partition_tensor_view<?x?xf32>
    %t = pto.alloc_tile : !all
    pto.tload ins(%px : !view) outs(%t : !all)
    %w = pto.subview %t[%c0, %c0] sizes [16, 8] : !all -> !half
    pto.tload ins(%left : !pto.partition_tensor_view<16x8xf32>) outs(%w : !half)
    %v = pto.subview %t[%c8, %c8] sizes [8, 8] valid [%c3, %c3] : !all -> !part
    pto.tload ins(%few : !pto.partition_tensor_view<?x?xf32>) outs(%v : !part)
    pto.tstore ins(%t : !all) outs(%py : !view)
    return
  }
}
"""


def _kernels() -> dict[str, tuple[Any, str | None, tuple[Any, ...], int]]:
    """Programs by name, with entry, arguments and blocks."""
    found: dict[str, Any] = {}
    for name, case in KERNELS.items():
        found[name] = case.path, case.entry, tuple(case.make(np.random.default_rng(1))[0]), case.blocks
    micro = {
        "chain": (*numbers(3, 200), zeros(200), 200),
        "row_sum": (numbers(3, 130), zeros(3), 3, 130),
        "softmax": (numbers(3, 130), zeros(3, 130), 3, 130),
        "layer_norm": (numbers(3, 130), zeros(3, 130), 3, 130, 1e-3),
        "to_bf16": (ANY, zeros(256, dtype=ml_dtypes.bfloat16), 256),
        "unaligned_copy": (numbers(512), numbers(512), 512, 13, 7, 201),
        "topk": (SCORES, zeros(2, 64), zeros(2, 64, dtype=np.int32), 2),
        "mixed": (numbers(16, 64), zeros(16, 64)),
        "gemm": (
            numbers(64, 192).astype(np.float16),
            numbers(192, 64).astype(np.float16),
            zeros(64, 64),
            192,
        ),
    }
    for name, args in micro.items():
        found[f"micro {name}"] = EXAMPLES / "micro" / f"{name}.pto", None, args, 1
    found["control flow"] = FLOW, None, (zeros(3, dtype=np.int32), 20), 1
    found["values"] = VALUES, None, (numbers(7, 16), zeros(4, 16), zeros(2, dtype=np.int32)), 1
    found["windows"] = WINDOWS, None, (numbers(16, 16), zeros(16, 16)), 1
    found["halves"] = (
        HALVES,
        None,
        (CODES[: 128 * 509], CODES[-128 * 509 :], zeros(10, 128, 509, dtype=np.float16)),
        1,
    )
    found["columns"] = COLUMNS, None, (numbers(16, 8), zeros(16, 8)), 1
    found["count"] = TWO, "count", (zeros(1, dtype=np.int32), 7), 1
    found["turn"] = TWO, "turn", (numbers(16, 8),), 1
    return found


CASES = _kernels()


@cache
def ready() -> None:
    """Compile the calls of all programs here in one go."""
    asked: dict[str, None] = {}
    for program, entry, _, _ in CASES.values():
        asked.update(dict.fromkeys(image_of(Launchable(pto.parse(program), entry, None, True)).calls))
    machine.functions(list(asked))


@pytest.mark.parametrize("name", CASES)
def test_as_on_the_reference_engine(name: str) -> None:
    ready()
    program, entry, given, blocks = CASES[name]
    sets = [[a.copy() if isinstance(a, np.ndarray) else a for a in given] for _ in range(2)]
    module = pto.parse(program)
    pto.kernel(module, entry, engine="native")(*sets[0], blocks=blocks, threads=2)
    pto.kernel(module, entry, engine="reference")(*sets[1], blocks=blocks)
    for mine, theirs in zip(*sets, strict=True):
        if isinstance(mine, np.ndarray):
            assert mine.tobytes() == theirs.tobytes()


def test_an_image_is_whole() -> None:
    """Instructions follow one another, and jumps lead to some of them; the same program has the same image."""
    ready()
    for program, entry, _, _ in CASES.values():
        image = NativeKernel(pto.parse(program), entry, None, True).image
        assert to_bytes(image) == to_bytes(image_of(Launchable(pto.parse(program), entry, None, True)))
        assert len(set(map(key, image.calls))) == len(image.calls)
        for code in image.codes:
            _check(code, len(image.calls))


def _check(code: ImageCode, calls: int) -> None:
    starts = []
    at = 0
    while at < len(code.words):
        starts.append(at)
        opcode = code.words[at] & 0xFFFFFF
        assert opcode in NAMES or CALL <= opcode < CALL + calls
        at += code.words[at] >> 24
    assert at == len(code.words)
    places = {"jump": 1, "unless": 2, "enter": 4, "next": 5, "equal": 4}
    for start in starts:
        name = NAMES.get(code.words[start] & 0xFFFFFF, "")
        if name in places:
            assert code.words[start + places[name]] in starts
    assert all(at in starts for at, _ in code.places)


def test_the_calls_of_instructions_are_those_of_programs() -> None:
    """A pack of the calls of all instructions has the calls of the examples, vector registers included."""
    names = (
        "tadd",
        "texp",
        "trowmax",
        "trowexpandsub",
        "tmatmul",
        "vadd",
        "vlds",
        "vldsx2",
        "arith.addi",
        "arith.cmpi",
    )
    known = calls([found for name in names if (found := row(name)) is not None])
    made = {"TADD", "TEXP", "TROWMAX", "TROWEXPANDSUB", "TMATMUL", "vadd", "vlds"}
    asked = {
        c
        for case in CASES.values()
        for c in _image(case).calls
        if c.split("; ")[-1].partition("(")[0] in made
    }
    assert len(asked) >= 8 and asked <= known.keys()


def _image(case: tuple[Any, ...]) -> Image:
    return image_of(Launchable(pto.parse(case[0]), case[1], None, True))


def test_the_usual_calls_are_those_of_all_examples() -> None:
    """A set-up for the demo compiles these only."""
    found = usual(EXAMPLES)
    always = {*calls([r for r in rows() if always_compiled(r)])}
    assert always < {*found} and 100 < len({*found} - always) < 300
    needed: dict[str, str] = {}
    for path in sorted(EXAMPLES.rglob("*.pto")):
        try:
            done = lowered(pto.parse(path))
        except DiagnosticError:
            continue
        for name, functions in images.kernels(done.module).items():
            for call in images.image_of(name, done.module, functions, done).calls:
                needed.setdefault(call, path.name)
    own = [name for name in needed if name.startswith("vm.") or machine.kind(name) != CALL]
    missing = [(name, needed[name]) for name in needed if name not in found and name not in own]
    assert len(missing) <= len(needed) // 100, missing  # executors perform those few, slower
    assert len(needed) - len(own) > 100


def test_what_ends_a_launch_names_its_line() -> None:
    program, entry, given, _ = CASES["columns"]
    ready()
    x, y = (a.copy() for a in given)
    (found,) = pto.kernel(pto.parse(program), entry, engine="native").run(x, y[:4]).diagnostics
    assert found.code == "PTO-E2101" and found.message.startswith("tstore")
    assert found.span is not None and "pto.tstore" in program.splitlines()[found.span.line - 1]


def test_the_short_way_of_a_launch_is_that_of_plain_arguments_only() -> None:
    """Arrays with gaps, read-only ones, numbers that are not int: the long way. Both end with the same
    text."""
    ready()
    loop = "%i = %c0 to %n step %c1"
    text = COLUMNS.replace("%y: !pto.ptr<f32>)", "%y: !pto.ptr<f32>, %n: index)")
    text = text.replace("    pto.tstore", f"    scf.for {loop} {{\n    pto.tstore").replace(
        "    return", "    }\n    return"
    )
    kernel = pto.kernel(pto.parse(text), engine="native")
    (x,) = CASES["columns"][2][:1]
    plain, spread, fixed = x.copy(), np.repeat(x, 2, axis=1)[:, ::2], x.copy()
    fixed.flags.writeable = False
    want = zeros(16, 8)
    kernel(plain, want, 1)
    assert want.any()
    for given in (plain, spread, fixed):
        for count in (1, np.int64(1), True):
            got = zeros(16, 16)[:, ::2] if given is spread else zeros(16, 8)
            kernel(given, got, count)
            assert np.array_equal(got, want)
    untouched = zeros(16, 8)
    kernel(plain, untouched, 0)
    assert not untouched.any()
    wrong = (
        (plain, want),
        (plain, want, 2**64),
        (plain, want, 1.0),
        (plain.astype(np.float64), want, 1),
        (plain, 3, 1),
    )
    for args in wrong:
        with pytest.raises(pto.DiagnosticError):
            kernel(*args)
    short, long = (kernel.run(plain, want[:4].copy(), 1, **o).diagnostics for o in ({}, {"out": sys.stdout}))
    assert [str(d) for d in short] == [str(d) for d in long] and len(short) == 1


def test_convolution_tiles() -> None:
    x, w = (np.arange(256) / 8).astype(np.float16), (np.arange(256) % 7 - 3).astype(np.float16)
    found = [zeros(16, 16), zeros(16, 16)]
    for engine, y in zip(("native", "reference"), found, strict=True):
        pto.kernel(pto.parse(CONVOLUTION), engine=engine, check=False)(x, w, y)
    assert found[0].any() and found[0].tobytes() == found[1].tobytes()


def test_arithmetic_that_the_machine_does_itself() -> None:
    """Its numbers are tested with all others, in tests/engine/test_integers.py."""
    known = calls([r for r in rows() if r.dialect == "arith"])
    assert sum(machine.kind(name) != CALL for name in known) == 45


def test_what_has_no_call_is_refused() -> None:
    text = """
func.func private @elsewhere(i32)
func.func @k(%n: i32) attributes {pto.entry} {
  func.call @elsewhere(%n) : (i32) -> ()
  return
}
"""
    with pytest.raises(pto.DiagnosticError) as e:
        pto.kernel(pto.parse(text), engine="native")
    assert [d.code for d in e.value.diagnostics] == ["PTO-E2003"]


def test_without_a_compiler_the_call_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_CXX", "/bin/false")
    with pytest.raises(pto.DiagnosticError) as e:
        machine.functions(["int64_t& a0; a0 = 123456789;"])
    (found,) = e.value.diagnostics
    assert found.code == "PTO-E2401" and "a0 = 123456789" in found.notes[-1][0]
