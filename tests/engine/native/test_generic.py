"""Calls that no pack has, performed by executors: the results and the messages of compiled calls. Every row is compared
in tests/engine/cpp (test_rows, test_vector_rows, test_pointer_rows); here are programs, and how launches end."""

from __future__ import annotations

import io
import re
import sys
from itertools import islice
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.each import each
from tests.sampling import EVERY, some

import pto
from pto import knobs, runtime
from pto.cli import ptoas
from pto.cli.main import main
from pto.engine.entry import Launchable
from pto.engine.memory import array_of
from pto.engine.native import generic, machine, packs
from pto.engine.native.frames import Unreadable
from pto.engine.native.generic import GenericCall
from pto.engine.native.generic_core import SPACES
from pto.engine.native.images import kernels
from pto.image.every_call import calls
from pto.image.generic import CallOrigin, always_compiled
from pto.image.lower import is_call
from pto.ir.types import ConvTileType, MemRefType, PtrType, ScalarType, ViewType
from pto.isa import profile, row, rows
from pto.isa.row import Row
from pto.witness.plan import plans
from pto.witness.programs import build

from ..kernels import EXAMPLES
from ..programs import CONSTANTS, program
from ..rank_cases import Case as RankCase
from ..rank_cases import cases as rank_cases
from ..test_fifo import QUANTISED, cube_to_vector, data, odd_halves, odd_products, quantised, vector_to_cube
from .test_ends import ENDS, interrupt
from .test_ends import made as ending
from .test_native import CASES, ready
from .without_pack import compile_calls, generic_kernel, hidden

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.skipif(packs.of_package() is None, reason="set up without a pack")


_ADDRESS = re.compile("0x[0-9a-f]{6,}")


def _apart(array: Array) -> Array:
    """Return a copy with memory of its own after it: an access beyond its end is an error wherever it
    lies."""
    room = np.zeros(array.nbytes + (1 << 20), np.uint8)
    made = room[: array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def copied(args: Any) -> list[Any]:
    return [_apart(a) if isinstance(a, np.ndarray) else a for a in args]


def told(k: Launchable, args: Any, **options: Any) -> tuple[list[Any], list[bytes], str]:
    """Return the diagnostics, the arrays and the output of a launch."""
    out, mine = io.StringIO(), copied(args)
    found = k.run(*mine, out=out, **options).diagnostics
    said = [
        (d.code, _ADDRESS.sub("0x..", d.message), d.help, d.expected, d.got, d.span and d.span.place)
        for d in found
    ]
    return said, [a.tobytes() for a in mine if isinstance(a, np.ndarray)], out.getvalue()


def alike(
    program: Any, entry: str | None, args: Any, check: bool = True, **options: Any
) -> tuple[list[Any], list[bytes], str]:
    module = pto.parse(program)
    want = told(pto.kernel(module, entry, engine="native", check=check), args, **options)
    assert told(generic_kernel(module, entry, check=check), args, **options) == want
    return want


# -- which calls ---------------------------------------------------------------------------------------------


def _origins(row: Row) -> list[CallOrigin]:
    """Calls of an instruction, at no place in particular."""
    found: list[CallOrigin] = []
    for isa in row.isas:
        for plan in islice(plans(row, isa), None if EVERY else 1):
            for op in build(plan).walk():
                values = (*op.operands, *op.results)
                # A group that the program does not make itself does not describe its tensors: there is no
                # call.
                odd = any(
                    isinstance(v.type, MemRefType | ConvTileType) or (v.type.kind == "group" and v.op is None)
                    for v in values
                )
                if op.row is row and not odd:
                    made = CallOrigin(op, tuple(op.operands), (0,) * len(op.operands), (0,) * len(op.results))
                    found.append(made)
    return found


def test_every_call_is_compiled_or_performed() -> None:
    """Every call that a pack may lack has an executor; `always_compiled` names the rest."""
    of: Any = SimpleNamespace(profile=profile("a5"))

    def check(row: Row) -> None:
        for origin in _origins(row):
            try:
                GenericCall(origin, of)
            except Unreadable:
                assert always_compiled(row), origin.op.name
                break
            assert not always_compiled(row)

    each(check, _with_calls())


def _with_calls() -> list[Row]:
    """Instructions that become calls of the library; those of memrefs become others, slots of tiles none."""
    gone = ("memref.", "alloc_multi_tile", "multi_tile_get", "scf.")
    return [r for r in rows() if is_call(r) and not r.name.startswith(gone)]


def test_few_calls_are_always_compiled() -> None:
    """And most of them are small: flags, registers, divisions."""
    chosen = [r for r in _with_calls() if always_compiled(r)]
    assert {"sync.set", "set_ctrl", "arith.divsi", "timg2col", "tput_async"} <= {r.name for r in chosen}
    others = ("tadd", "tload", "vlds", "mad", "vsqz", "tput", "tpush", "tpop")
    assert not any(always_compiled(r) for r in map(row, others) if r is not None)
    assert not EVERY or 300 < len(calls(chosen)) < 400


# -- programs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_programs(name: str) -> None:
    ready()
    program, entry, given, blocks = CASES[name]
    alike(program, entry, given, blocks=blocks, threads=2)


_HALVES = """
!t = !pto.tile_buf<vec, 16x32xf32>
!m = !pto.tile_buf<mat, 32x32xf16, blayout=col_major, slayout=row_major>
!l = !pto.tile_buf<left, 32x32xf16, blayout=col_major, slayout=row_major>
!r = !pto.tile_buf<right, 32x32xf16, slayout=col_major>
!a = !pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>
!w = !pto.tile_buf<mat, 32x32xf32, blayout=col_major, slayout=row_major>
!view = !pto.tensor_view<32x32xf16>
module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !view, %far: index) attributes {pto.entry} {
    func.call @cube(%x) : (!view) -> ()
    func.call @vector(%far) : (index) -> ()
    return
  }
  func.func private @cube(%x: !view) attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
    %at_0 = arith.constant 0 : i64
    %at_far = arith.constant 131072 : i64
    %size = arith.constant 32 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0 : i64
    %m = pto.alloc_tile addr = %at_0 : !m
    %l = pto.alloc_tile addr = %at_0 : !l
    %r = pto.alloc_tile addr = %at_0 : !r
    %a = pto.alloc_tile addr = %at_0 : !a
    %t = pto.alloc_tile addr = %at_far : !t
    pto.tload ins(%x : !view) outs(%m : !m)
    pto.tmov ins(%m : !m) outs(%l : !l)
    pto.tmov ins(%m : !m) outs(%r : !r)
    pto.tmatmul ins(%l, %r : !l, !r) outs(%a : !a)
    CUBE
    return
  }
  func.func private @vector(%far: index) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c0 = arith.constant 0 : index
    %at_0 = arith.constant 0 : i64
    %at_far = arith.constant 131072 : i64
    %size = arith.constant 32 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0 : i64
    %number = arith.constant 1.0 : f32
    %t = pto.alloc_tile addr = %at_0 : !t
    %w = pto.alloc_tile addr = %at_far : !w
    pto.tadds ins(%t, %number : !t, f32) outs(%t : !t)
    VECTOR
    return
  }
}
"""
#: What writes memory that no tile of its core has: the memory of another core, or more than the tile it was given.
_FAR_WRITES = {
    "a tile to vector cores": (
        "pto.tmov ins(%a : !a) outs(%t : !t) {accToVecMode = #pto<acc_to_vec_mode dual_mode_split_m>}", ""
    ),
    "a copy to a vector core": (
        """%l0c = pto.castptr %at_0 : i64 -> !pto.ptr<f32, l0c>
        %ub = pto.castptr %at_far : i64 -> !pto.ptr<f32, ub>
        pto.mte_l0c_ub %l0c, %ub, %size, %size, %size, %size, dst_mode(%one), nz2nd : !pto.ptr<f32, l0c>, \
!pto.ptr<f32, ub>, i64, i64, i64, i64, i64""", ""
    ),
    "a tile to the cube core": (
        "", "pto.tinsert ins(%t, %c0, %c0 : !t, index, index) outs(%w : !w)"
    ),
    "a copy to the cube core": (
        "",
        """%ub = pto.castptr %at_0 : i64 -> !pto.ptr<f32, ub>
        %l1 = pto.castptr %at_far : i64 -> !pto.ptr<f32, l1>
        pto.mte_ub_l1 %ub, %l1, %size nburst(%one, %none, %none) : !pto.ptr<f32, ub>, !pto.ptr<f32, l1>, i64, i64, \
i64, i64""",
    ),
    "a window": (
        "",
        """%p = pto.subview %t[%far, %c0] sizes [8, 32] : !t -> !pto.tile_buf<vec, 8x32xf32>
        pto.tadds ins(%p, %number : !pto.tile_buf<vec, 8x32xf32>, f32) outs(%p : !pto.tile_buf<vec, 8x32xf32>)""",
    ),
    "a vector": (
        "",
        """%p = pto.tile_buf_addr %t : !t -> !pto.ptr<f32, ub>
        pto.vecscope {
          %v = pto.vlds %p[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
          pto.vsts %v, %p[%far] : !pto.vreg<64xf32>, !pto.ptr<f32, ub>
        }""",
    ),
}  # fmt: skip


def _found_by_a_launch(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """The memories of the cores of a new launch that hold something, and where: before the first call of a core."""
    found: set[tuple[str, int]] = set()
    seen: set[tuple[int, ...]] = set()

    def core(self: generic.GenericCalls, words: tuple[int, ...]) -> Any:
        made = take(self, words)
        spaces = words[2 : 2 + SPACES]
        if spaces not in seen:
            seen.add(spaces)
            found.update(
                (b.space, int(b.data.nonzero()[0][0])) for b in made.buffers.values() if b.data.any()
            )
        return made

    take = generic.GenericCalls.core
    k = generic_kernel(pto.parse(_HALVES.replace("CUBE", "").replace("VECTOR", "")))
    with monkeypatch.context() as changed:
        changed.setattr(generic.GenericCalls, "core", core)
        k(np.ones((32, 32), np.float16), 0)
    assert len(seen) == 3
    return found


def test_cores_begin_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of a thread have the memory of those before: whatever wrote there, and wherever, is gone."""

    def check(name: str) -> None:
        cube, vector = _FAR_WRITES[name]
        module = pto.parse(_HALVES.replace("CUBE", cube).replace("VECTOR", vector))
        for k in (pto.kernel(module, engine="native"), generic_kernel(module)):
            k(np.ones((32, 32), np.float16), 256, threads=1)
            assert not _found_by_a_launch(monkeypatch)

    each(check, _FAR_WRITES)

    def check_programs(name: str) -> None:
        program, entry, given, blocks = CASES[name]
        pto.kernel(pto.parse(program), entry, engine="native")(*copied(given), blocks=blocks, threads=1)
        assert not _found_by_a_launch(monkeypatch)

    ready()
    each(check_programs, CASES)


def _arguments(kernel: Launchable) -> list[Any]:
    rng = np.random.default_rng(11)
    found: list[Any] = []
    for arg in kernel.args:
        if isinstance(arg.type, ScalarType):
            found.append(1.5 if arg.type.is_float else 16)
            continue
        assert isinstance(arg.type, PtrType | ViewType)
        dtype = array_of(str(arg.type.dtype))
        shape = [d or 16 for d in arg.type.dims] if isinstance(arg.type, ViewType) else 1 << 15
        found.append(rng.integers(0, 5, shape).astype(np.int8).astype(dtype))
    return found


#: Programs of ranks, those that the verifier refuses, and a template.
_ELSEWHERE = ("ranks/", "10_wrong", "15_overlap", "tune/")
PROGRAMS = sorted(
    str(p.relative_to(EXAMPLES))
    for p in EXAMPLES.rglob("*.pto")
    if not str(p.relative_to(EXAMPLES)).startswith(_ELSEWHERE)
)


def test_examples() -> None:
    """With any arguments: what goes wrong does so at the same line, with the same words."""
    performed: set[str] = set()

    def check(name: str) -> None:
        module = pto.parse(EXAMPLES / name)
        for entry in kernels(module):
            want = pto.kernel(module, entry, engine="native")
            mine = generic_kernel(module, entry)
            performed.update(mine.performed)
            args = _arguments(want)
            assert told(mine, args) == told(want, args)

    each(check, PROGRAMS)
    assert len(PROGRAMS) > 25 and len(performed) > 100


def _fifos() -> dict[str, tuple[str, Any, int]]:
    """Programs of cores that wait for each other, their arguments, and which of these they fill."""
    found: dict[str, tuple[str, Any, int]] = {}
    halves = np.random.default_rng(4).integers(-99, 99, (7 * 16, 16)).astype(np.float16)
    back = halves, np.zeros_like(halves), np.zeros(4096, np.float16)
    for arch in ("a3", "a5"):
        for split in range(3):
            found[f"to vector {arch} {split}"] = cube_to_vector(arch, 11, 4, split), data(11), 2
        for split in range(2):
            found[f"to cube {arch} {split}"] = vector_to_cube(arch, 7, split), back, 1
        for split in (3, 4):
            found[f"odd halves {arch} {split}"] = odd_halves(arch, split), back, 1
    for split in (3, 4):
        found[f"odd products {split}"] = odd_products(split), data(3), 2
    for mode in QUANTISED:
        for relu in (False, True):
            found[f"{mode} {relu}"] = quantised(mode, relu, 0), data(3), 2
    found["stuck"] = cube_to_vector("a5", 5, 4, 1, free=False), data(5), 2
    found["no push"] = cube_to_vector("a5", 2, 4, 1, pops=3), data(3), 2
    return found


def test_fifos_between_cores() -> None:
    """The machine waits for entries, executors move the elements, of both sides or of one. On a5 each block has FIFOs of
    its own."""
    programs = _fifos()
    modules = {name: pto.parse(text) for name, (text, _, _) in programs.items()}
    compile_calls(modules.values())
    sides = some(programs, 3, by=lambda name: name[:8])  # of which one side is performed, the other compiled
    codes: set[str] = set()

    def check(name: str) -> None:
        text, args, out = programs[name]
        module = modules[name]
        want = told(pto.kernel(module, engine="native", check=False), args)
        assert want[0] or any(want[1][out])
        codes.update(code for code, *_ in want[0])
        for of in ("", "TPUSH<", "TPOP<") if name in sides else ("",):
            k = generic_kernel(module, check=False, of=of)
            assert k.performed and told(k, args) == want
        if "a5" in name:
            alike(text, None, args, False, blocks=3, threads=2)

    each(check, programs)
    assert codes == {"PTO-E2104", "PTO-E2102"}  # stuck, and a tile of f32 for an entry of i8


_RAGGED = """
!row = !pto.tile_buf<vec, 16x64xTYPE, valid=?x?>
!col = !pto.tile_buf<vec, 64x64xTYPE, valid=?x?, blayout=col_major>
!view = !pto.partition_tensor_view<?x?xTYPE>
module attributes {pto.target_arch = "cpu"} {
  func.func @k(%x: !pto.ptr<TYPE>, %y: !pto.ptr<TYPE>, %r: index, %c: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %vx = pto.make_tensor_view %x, shape = [%r, %c], strides = [%c64, %c1] : !pto.tensor_view<?x?xTYPE>
    %vy = pto.make_tensor_view %y, shape = [%r, %c], strides = [%c64, %c1] : !pto.tensor_view<?x?xTYPE>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%r, %c] : !pto.tensor_view<?x?xTYPE> -> !view
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%r, %c] : !pto.tensor_view<?x?xTYPE> -> !view
    %a = pto.alloc_tile valid_row = %r valid_col = %c : !row
    %b = pto.alloc_tile valid_row = %r valid_col = %c : !col
    pto.tload ins(%px : !view) outs(%a : !row)
    BODY
    pto.tstore ins(%a : !row) outs(%py : !view)
    return
  }
}
"""


def test_ragged_and_empty_tiles_by_rows_and_columns() -> None:
    body = (
        "pto.tadd ins(%a, %a : !row, !row) outs(%b : !col)\npto.tadd ins(%a, %b : !row, !col) outs(%a : !row)"
    )

    def check(type: str, rows: int, cols: int) -> None:
        text = _RAGGED.replace("TYPE", type).replace("BODY", body)
        x = np.random.default_rng(rows).integers(-9, 9, (16, 64)).astype(array_of(type))
        said, _, _ = alike(text, None, (x, np.zeros_like(x), rows, cols))
        assert not said

    sizes = [(16, 64), (5, 37), (1, 1), (0, 64), (16, 0)]
    each(check, [(t, *s) for t in ("f32", "f16", "i16", "i8", "bf16") for s in sizes])


_NIBBLES = """
!four = !pto.tile_buf<vec, 16x64xTYPE>
!wide = !pto.tile_buf<vec, 16x64xbf16>
!fours = !pto.tensor_view<16x64xTYPE>
!wides = !pto.tensor_view<16x64xbf16>
module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<TYPE>, %y: !pto.ptr<TYPE>, %z: !pto.ptr<bf16>) attributes {pto.entry} {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %vx = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !fours
    %vy = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : !fours
    %vz = pto.make_tensor_view %z, shape = [%c16, %c64], strides = [%c64, %c1] : !wides
    %a = pto.alloc_tile : !four
    %w = pto.alloc_tile : !wide
    pto.tload ins(%vx : !fours) outs(%a : !four)
    pto.tstore ins(%a : !four) outs(%vy : !fours)
    pto.tcvt ins(%a : !four) outs(%w : !wide)
    pto.tstore ins(%w : !wide) outs(%vz : !wides)
    return
  }
}
"""


@pytest.mark.parametrize("type", ["f4E2M1FN", "f4E1M2FN"])
def test_elements_of_four_bits(type: str) -> None:
    x = np.random.default_rng(2).integers(0, 256, 512, np.uint8)
    args = x, np.zeros_like(x), np.zeros(1024, ml_dtypes.bfloat16)
    said, arrays, _ = alike(_NIBBLES.replace("TYPE", type), None, args)
    assert not said and arrays[1] == x.tobytes() and any(arrays[2])


def test_updates_of_several_blocks_are_not_lost() -> None:
    """NumPy adds without locks: such a launch has one thread."""
    text = """
!t = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.tensor_view<16x64xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !view, %y: !view) attributes {pto.entry} {
    %t = pto.alloc_tile : !t
    pto.tload ins(%x : !view) outs(%t : !t)
    pto.tstore ins(%t : !t) outs(%y : !view) {atomicType = #pto<atomic_type atomic_add>}
    return
  }
}
"""
    k = generic_kernel(pto.parse(text))
    y = np.zeros((16, 64), np.float32)
    k(np.ones((16, 64), np.float32), y, blocks=200, threads=8)
    assert k._made.updates and (y == 200).all()


def test_ranks() -> None:
    """In one process and in several, which NumPy cannot update at the same time: those calls are compiled."""
    met: set[str] = set()

    def check(case: RankCase) -> None:
        k = generic_kernel(pto.parse(case.text))
        apart = (
            [True] if case.instruction in ("tput add", "treduce Sum") and case.instruction not in met else []
        )
        met.add(case.instruction)
        for processes in (False, *apart):
            for got, want in zip(case.run(k, None, processes=processes), case.expected(), strict=True):
                assert got.tobytes() == want.tobytes()

    each(check, some((c for c in rank_cases(EVERY) if c.ranks < 4), 2, by=lambda c: c.instruction))
    assert {"tput add", "treduce Sum"} <= met


def test_tasks() -> None:
    """On the threads of the task runtime, with and without a seed."""
    module = pto.parse(EXAMPLES / "01_vec_add.pto")
    with hidden(generic_kernel(module).performed):
        add = runtime.kernel(EXAMPLES / "01_vec_add.pto", "in in out")
        a, b = (np.full((64, 128), n, np.float32) for n in (1, 2))
        for seed in (None, 3):
            out = [np.zeros_like(a) for _ in range(9)]
            runtime.run(lambda rt, out=out: [rt.submit(add, a, b, c) for c in out], seed=seed)
            assert all((c == 3).all() for c in out)
        with pytest.raises(pto.DiagnosticError, match=r"touches bytes 0\.\.32768 of %c, which has 64 bytes"):
            runtime.run(lambda rt: rt.submit(add, a, b, np.zeros((4, 4), np.float32)))


# -- how launches end ----------------------------------------------------------------------------------------


def test_what_ends_a_launch() -> None:
    def check(name: str) -> None:
        _, _, text = ending(name)
        alike(text, None, (np.zeros(4, np.int64), 100), max_steps=50_000)

    each(check, ENDS)


def test_accesses_outside_arrays() -> None:
    """Every array of every program a third as long."""
    ready()
    found: set[str] = set()

    def check(name: str) -> None:
        program, entry, given, blocks = CASES[name]
        module = pto.parse(program)
        native, mine = pto.kernel(module, entry, engine="native"), generic_kernel(module, entry)
        for n, array in enumerate(given):
            if isinstance(array, np.ndarray) and array.size > 1:
                args = [*given[:n], array.reshape(-1)[: array.size // 3], *given[n + 1 :]]
                want = told(native, args, blocks=blocks, threads=1)  # else either core may be first
                assert told(mine, args, blocks=blocks, threads=1) == want
                found.update(code for code, *_ in want[0])

    views = ("micro mixed", "values", "turn")  # whose sizes the launch checks
    bursts = "micro gemm"  # compiled functions name the burst that is outside, executors all bytes of a copy
    each(check, [name for name in CASES if name not in (*views, bursts)])
    assert found == {"PTO-E2101"}


_LOOP = """
%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
%go = arith.constant true
pto.print ins("on", %go : i1)
scf.while : () -> () {
  scf.condition(%go)
} do {
  pto.tadd ins(%t, %t : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 16x64xf32>) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
  scf.yield
}
"""


def _endless() -> str:
    return program(CONSTANTS + _LOOP, "%out: !pto.ptr<i64>, %n: index")


def test_a_limit_of_time_ends_a_loop_of_calls() -> None:
    k = generic_kernel(pto.parse(_endless()))
    for options in ({}, {"blocks": 3, "threads": 2}):
        (found,) = k.run(np.zeros(4, np.int64), 1, timeout=0.1, out=io.StringIO(), **options).diagnostics
        assert found.code == "PTO-E2106" and "still running after 0.1 s" in found.message


def test_an_interrupt_ends_a_loop_of_calls() -> None:
    interrupt(
        generic_kernel(pto.parse(_endless())),
        _endless(),
        ("scf.while", "pto.tadd", "pto.print", "alloc_tile"),
    )


def test_what_an_executor_raises_is_raised_by_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exceptions that are not the program's fault, in every thread; the next launch works as ever."""
    k = generic_kernel(pto.parse(EXAMPLES / "01_vec_add.pto"))
    a = np.ones((64, 128), np.float32)

    class Odd(Exception): ...

    def fails(*_: Any) -> None:
        raise Odd("an executor")

    with monkeypatch.context() as changed:
        changed.setattr(GenericCall, "_outside", fails)
        with pytest.raises(Odd, match="an executor"):
            k.run(a, a, a[:4].copy(), blocks=4, threads=2)
    out = np.zeros_like(a)
    k(a, a, out)
    assert (out == 2).all()


def test_what_the_handler_of_a_signal_raises_is_raised_by_the_launch() -> None:
    """Handlers run before the first line of the function that the machine calls: as the tracer does here."""
    k = generic_kernel(pto.parse(EXAMPLES / "01_vec_add.pto"))
    a = np.ones((64, 128), np.float32)

    def handle(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code is generic._perform.__code__:
            raise TimeoutError("by a signal")

    before = sys.gettrace()
    sys.settrace(handle)
    try:
        with pytest.raises(TimeoutError, match="by a signal"):
            k.run(a, a, a.copy())
    finally:
        sys.settrace(before)
    assert k.run(a, a, a.copy()).ok


# -- when calls are compiled ---------------------------------------------------------------------------------


def test_calls_that_are_slow_are_compiled_before_the_next_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    k = generic_kernel(pto.parse(EXAMPLES / "01_vec_add.pto"))
    a = np.ones((64, 128), np.float32)
    asked: list[str] = []
    functions = machine.functions
    monkeypatch.setattr(machine, "functions", lambda names: asked.extend(names) or functions(names))

    def launch() -> bool:
        """Return True if a launch had all functions."""
        out = np.zeros_like(a)
        k(a, a, out)
        assert (out == 2).all()
        return k._made.generic is None

    with knobs.override(PTO_NATIVE_COMPILE="auto"):
        assert not launch() and not asked
        assert k._made.generic is not None and k._made.generic.spent > 0
        k._made.generic.spent = machine.ENOUGH + 1
        with knobs.override(PTO_NATIVE_COMPILE="never"):
            assert not launch()
        with monkeypatch.context() as without:
            without.setattr(machine, "functions", _no_compiler)
            assert not launch()
        k._made.generic.spent = machine.ENOUGH + 1
        assert launch() and k.performed <= {*asked}
    assert k._quick is not None  # the short way is there again


def test_calls_that_are_slow_are_compiled_during_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch may be long: it calls the functions as soon as they exist."""
    monkeypatch.setattr(machine, "ENOUGH", 1e-9)
    k = generic_kernel(pto.parse(STEPS), of="TADD")
    made, performed = k._made, 0
    perform = GenericCall.perform

    def counted(*args: Any) -> bytes:
        nonlocal performed
        performed += 1
        if made._compilation is not None:
            made._compilation.join()
        return perform(*args)

    monkeypatch.setattr(GenericCall, "perform", counted)
    x = np.zeros((16, 64), np.float32)
    with knobs.override(PTO_NATIVE_COMPILE="auto"):
        k(x)
    assert (x == 100).all() and 1 <= performed <= 2  # the second call may be under way


STEPS = """
!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.tensor_view<16x64xf32>

func.func @steps(%x: !view) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %one = arith.constant 1.0 : f32
  %t = pto.alloc_tile : !tile
  %ones = pto.alloc_tile : !tile
  pto.tload ins(%x : !view) outs(%t : !tile)
  pto.texpands ins(%one : f32) outs(%ones : !tile)
  scf.for %i = %c0 to %c100 step %c1 {
    pto.tadd ins(%t, %ones : !tile, !tile) outs(%t : !tile)
  }
  pto.tstore ins(%t : !tile) outs(%x : !view)
  return
}
"""


def _no_compiler(names: Any) -> Any:
    raise pto.DiagnosticError([pto.Diagnostic("PTO-E2401", "no C++ compiler")])


def test_programs_run_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Modules, a text that is run again, and a file of images; on engine native."""
    path, elf = EXAMPLES / "03_softmax_rows.pto", tmp_path / "k.elf"
    monkeypatch.setenv("PTO_CXX", "/bin/false")
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path))
    assert ptoas.main([str(path), "-o", str(elf)]) == 0
    names = generic_kernel(pto.parse(path)).performed
    with hidden(names):
        assert pto.kernel(pto.parse(path)).engine == "native"
        left = []
        for source in (path, path, elf):
            out = tmp_path / "y.npy"
            assert main(["run", str(source), "--", "f32:64x128", f"f32:64x128={out}"]) == 0
            assert "engine native" in capfd.readouterr().out
            left.append(np.load(out).tobytes())
    assert len({*left}) == 1 and any(left[0])
