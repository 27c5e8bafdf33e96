"""Sync insertion: the flags that existing builds expect, and a check by runs that none is missing, few
needless. Programs run on the reference engine: its race checker is independent of the placement of flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.sampling import EVERY
from tests.seeds import seeds

import pto
from pto.ir.clone import clone
from pto.ir.core import Module
from pto.ir.facts import module_profile
from pto.passes import Options, PassContext, compile, insert_sync
from pto.passes.insert_sync import SyncReport
from pto.passes.sync.check import HazardCheck, Unbalanced
from pto.passes.sync.emit import FlagEmitter, add_tails
from pto.passes.sync.events import Events
from pto.passes.sync.flags import Barrier, Flag, Wait
from pto.passes.sync.hazards import Hazards
from pto.passes.sync.linear import CoreProgram
from pto.passes.sync.place import Placement
from pto.passes.sync.regions import Places
from pto.verifier import verify

from .random_programs import Made, random_program


def inserted(source: str | Module, target: str | None = None, ids: int = 8) -> tuple[Module, SyncReport]:
    module = pto.parse(source) if isinstance(source, str) else source
    ctx = PassContext(clone(module), module_profile(module, target), Options(insert_sync=True))
    report = insert_sync.run(ctx, ids)
    assert not report.repaired and not report.given_up
    problems = [d for d in verify(ctx.module, ctx.profile, flags="error") if d.severity == "error"]
    assert not problems, (problems, pto.to_text(ctx.module))
    return ctx.module, report


def lines(source: str, target: str | None = None, ids: int = 8) -> list[str]:
    """The program as short lines: `set M FIX 0`, `wait M FIX 0`, `barrier V`, `tail`, `tload`, `for`, `}`."""
    found: list[str] = []
    for line in pto.to_text(inserted(source, target, ids)[0]).splitlines():
        line = line.strip()
        flag = re.match(r"pto\.(set|wait)_flag\[<PIPE_(\w+)>, <PIPE_(\w+)>, <EVENT_ID(\d)>\]", line)
        if flag:
            found.append(" ".join(flag.groups()))
        elif line.startswith("pto.barrier"):
            found.append("tail" if "auto_tail" in line else f"barrier {line.split('PIPE_')[1].split('>')[0]}")
        elif op := re.match(r"(?:%\S+ = )?(?:pto|scf|func)\.(\w+(?:\.acc)?)", line):
            if op[1] not in ("alloc_tile", "make_tensor_view", "partition_view", "subview", "func", "yield"):
                found.append(op[1])
        elif line.startswith("call "):
            found.append("call")
        elif line.startswith("}"):
            found.append("else" if "else" in line else "}")
    return found


def flags(source: str, target: str | None = None) -> list[str]:
    return [n for n in lines(source, target) if n.startswith(("set", "wait", "barrier"))]


# -- programs written short --------------------------------------------------------------------------------

_TYPES = """\
!tile = !pto.tile_buf<vec, 16x16xf32>
!big = !pto.tile_buf<vec, 32x32xf32>
!side = !pto.tile_buf<vec, 32x16xf32>
!ws = !pto.partition_tensor_view<32x16xf32>
!mat = !pto.tile_buf<mat, 32x32xf16, blayout=col_major, slayout=row_major>
!left = !pto.tile_buf<left, 32x32xf16, slayout=row_major>
!right = !pto.tile_buf<right, 32x32xf16, slayout=col_major>
!acc = !pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>
!view = !pto.tensor_view<64x64xf32>
!half = !pto.tensor_view<64x64xf16>
!w = !pto.partition_tensor_view<16x16xf32>
!wb = !pto.partition_tensor_view<32x32xf32>
!wh = !pto.partition_tensor_view<32x32xf16>
"""
_HEAD = """\
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 1024 : i64
    %a2 = arith.constant 2048 : i64
    %a3 = arith.constant 3072 : i64
    %a4 = arith.constant 4096 : i64
    %a8 = arith.constant 8192 : i64
    %half1 = arith.constant 0.5 : f32
    %vx = pto.make_tensor_view %x, shape = [%c64, %c64], strides = [%c64, %c1] : !view
    %vy = pto.make_tensor_view %y, shape = [%c64, %c64], strides = [%c64, %c1] : !view
    %vh = pto.make_tensor_view %h, shape = [%c64, %c64], strides = [%c64, %c1] : !half
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !w
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !w
    %pz = pto.partition_view %vy, offsets = [%c32, %c0], sizes = [%c16, %c16] : !view -> !w
    %ph = pto.partition_view %vh, offsets = [%c0, %c0], sizes = [%c32, %c32] : !half -> !wh
    %pb = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c32, %c32] : !view -> !wb
"""
_SHORT = {
    "load": "tload", "store": "tstore", "mov": "tmov", "add": "tadd", "mul": "tmuls", "mm": "tmatmul",
    "acc": "tmatmul.acc",
}  # fmt: skip


def program(body: str, arch: str = "a3", attributes: str = "pto.entry") -> str:
    """A kernel of `%x`, `%y` (f32), `%h` (f16) and `%n`.

    Tiles: `t NAME TYPE ADDRESS`; instructions: `add a, b -> c`; the rest is passed on as it is.
    """
    left = "!left = !pto.tile_buf<left, 32x32xf16, blayout=col_major, slayout=row_major>"
    types = re.sub(r"!left = .*", left, _TYPES) if arch == "a5" else _TYPES
    kinds = {"x": "w", "y": "w", "z": "w", "h": "wh", "b": "wb"}
    names: dict[str, str] = {f"p{k}": v for k, v in kinds.items()}
    out: list[str] = []
    for line in body.strip().splitlines():
        text = line.strip()
        if tile := re.match(r"t (\w+) (\w+)(?: (\w+))?$", text):
            name, type, at = tile.groups()
            names[name] = type
            out.append(f"%{name} = pto.alloc_tile {f'addr = %{at} ' if at else ''}: !{type}")
        elif op := re.match(r"(\w+) ([\w, ]+) -> (\w+)$", text):
            ins = [n.strip() for n in op[2].split(",")]
            shown = [f"%{n}" for n in ins] + (["%half1"] if op[1] == "mul" else [])
            typed = [f"!{names[n]}" for n in ins] + (["f32"] if op[1] == "mul" else [])
            dst = f"%{op[3]} : !{names[op[3]]}"
            out.append(f"pto.{_SHORT[op[1]]} ins({', '.join(shown)} : {', '.join(typed)}) outs({dst})")
        else:
            out.append(text)
    return (
        f'{types}module attributes {{pto.target_arch = "{arch}"}} {{\n'
        f"  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %h: !pto.ptr<f16>, %n: index) "
        f"attributes {{{attributes}}} {{\n{_HEAD}" + "\n".join(out) + "\n    return\n  }\n}\n"
    )


def arguments(n: int = 3) -> list[Any]:
    rng = np.random.default_rng(n)
    floats = [rng.integers(-8, 9, (64, 64)).astype(np.float32) for _ in range(2)]
    return [*floats, rng.integers(-2, 3, (64, 64)).astype(np.float16), n]


def prove(
    source: str | Made, ids: int = 8, schedules: int = 3 if EVERY else 1, counts: tuple[int, ...] = (0, 1, 3)
) -> Module:
    """Insert, and run: no race, no flag left, the results of program order whatever the pipes do."""
    text = source.text if isinstance(source, Made) else source
    module, _ = inserted(text, ids=ids)
    before, after = (
        pto.kernel(pto.parse(text), engine="reference"),
        pto.kernel(pto.parse(pto.to_text(module)), engine="reference"),
    )
    for count in counts if isinstance(source, str) else (0,):
        make = source.arguments if isinstance(source, Made) else lambda count=count: arguments(count)
        want = make()
        before.run(*want)
        for schedule in (None, *range(1, schedules + 1)):
            got = make()
            run = after.run(*got, sanitize=() if schedule else "race,sync,oob", schedule=schedule)
            assert not run.diagnostics, (str(run.diagnostics[0]), pto.to_text(module))
            for a, b in zip(want, got, strict=True):
                if isinstance(a, np.ndarray):
                    assert np.array_equal(a, b, equal_nan=True), (schedule, pto.to_text(module))
    return module


# -- what existing builds expect ---------------------------------------------------------------------------


def test_copy_through_one_tile() -> None:
    found = lines(program("t a tile a0\nload px -> a\nstore a -> py", "a5"))
    assert found == ["tload", "set MTE2 MTE3 0", "wait MTE2 MTE3 0", "tstore", "tail", "}", "}"]


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_cube_chain(arch: str) -> None:
    """acc -> mat moves run on FIX, mat -> left on MTE1; nothing touches MTE3 or V."""
    body = """
        t m mat a0
        t k mat a4
        t l left a0
        t r right a0
        t c acc a0
        load ph -> m
        mov m -> l
        mov m -> r
        mm l, r -> c
        mov c -> k
        mov k -> l
    """
    found = flags(program(body, arch))
    assert found == [
        "set MTE2 MTE1 0", "wait MTE2 MTE1 0", "set MTE1 M 0", "wait MTE1 M 0", "set M FIX 0", "wait M FIX 0",
        "set FIX MTE1 0", "wait FIX MTE1 0",
    ]  # fmt: skip
    prove(program(body, arch))


def test_insert_into_vec_runs_on_v() -> None:
    body = """
        t a tile a0
        t b big a4
        load px -> a
        pto.tinsert ins(%a, %c0, %c0 : !tile, index, index) outs(%b : !big)
    """
    assert flags(program(body, "a5")) == ["set MTE2 V 0", "wait MTE2 V 0"]


def test_insert_into_mat_runs_on_fix() -> None:
    """Readers of the result wait for FIX, and none for MTE3."""
    body = """
        t m mat a0
        t k mat a4
        t l left a0
        t r right a0
        t c acc a0
        load ph -> m
        mov m -> l
        mov m -> r
        mm l, r -> c
        pto.tinsert ins(%c, %c0, %c0 : !acc, index, index) outs(%k : !mat)
    """
    for arch in ("a3", "a5"):
        found = flags(program(body, arch))
        assert found[-2:] == ["set M FIX 0", "wait M FIX 0"] and not [n for n in found if "MTE3" in n]
        read = flags(program(body + "mov k -> l", arch))
        assert read[-2:] == ["set FIX MTE1 0", "wait FIX MTE1 0"]


def test_extract_into_scaling_runs_on_mte1() -> None:
    mat = "!pto.tile_buf<mat, 32x32xf16, slayout=col_major>"
    scale = "!pto.tile_buf<scaling, 16x16xf16, slayout=row_major>"
    body = f"""
        %m = pto.alloc_tile addr = %a0 : {mat}
        %f = pto.alloc_tile addr = %a0 : {scale}
        pto.tload ins(%ph : !wh) outs(%m : {mat})
        pto.textract ins(%m, %c0, %c0 : {mat}, index, index) outs(%f : {scale})
    """
    assert flags(program(body, "a5")) == ["set MTE2 MTE1 0", "wait MTE2 MTE1 0"]


def test_moves_from_acc_to_vec_run_on_fix() -> None:
    body = """
        t l left a0
        t r right a0
        t c acc a0
        t v big a0
        mm l, r -> c
        pto.tmov ins(%c : !acc) outs(%v : !big) {accToVecMode = #pto.acc_to_vec_mode<dual_mode_split_m>}
    """
    assert flags(program(body, "a5")) == ["set M FIX 0", "wait M FIX 0"]


_CUBE_TILES = """
    t m0 mat a0
    t m1 mat a2
    t l left a0
    t r right a0
    t c acc a0
"""


def test_a_loop_with_branches_carries_one_flag() -> None:
    body = f"""{_CUBE_TILES}
        mov m0 -> l
        mov m1 -> r
        mm l, r -> c
        mov c -> m0
        scf.for %i = %c0 to %c2 step %c1 {{
          mov m0 -> l
          mm l, r -> c
          %first = arith.cmpi eq, %i, %c0 : index
          scf.if %first {{
            mov c -> m0
          }} else {{
            mov c -> m0
            mov m1 -> r
          }}
        }}
    """
    found = lines(program(body))
    start, end = found.index("for"), len(found) - 1 - found[::-1].index("tail")
    carried = [n for n in found[:start] if n.startswith("set M MTE1")]
    assert len(carried) == 1 and found.count(carried[0]) == 2
    wait = carried[0].replace("set", "wait")
    assert start < found.index(wait) < found.index("if") < found.index("else")
    assert wait in found[found.index("else") : end]
    prove(program(body))


def test_nested_loops_keep_their_flags_apart() -> None:
    body = f"""{_CUBE_TILES}
        mov m0 -> l
        mov m1 -> r
        mm l, r -> c
        mov c -> m0
        scf.for %o = %c0 to %c2 step %c1 {{
          mov m0 -> l
          mm l, r -> c
          mov c -> m0
          scf.for %i = %c0 to %c2 step %c1 {{
            mov m0 -> l
            mm l, r -> c
            mov c -> m0
          }}
        }}
    """
    seen = [n for n in lines(program(body)) if n == "for" or "M MTE1" in n]
    outer, inner = seen[0].split()[-1], seen[1].split()[-1]
    assert outer != inner
    assert seen == [
        f"set M MTE1 {outer}", f"set M MTE1 {inner}", "for", f"wait M MTE1 {outer}", "for",
        f"wait M MTE1 {inner}", f"set M MTE1 {inner}", f"set M MTE1 {outer}", f"wait M MTE1 {outer}",
        f"wait M MTE1 {inner}",
    ]  # fmt: skip
    prove(program(body))


def _doubling(m: str, k: str) -> str:
    """Newton-like steps on tiles m and k that a branch leaves out the last time."""
    return f"""
        scf.for %i{m} = %c0 to %n step %c1 {{
          mov {m} -> l
          mov one -> r
          mm l, r -> c
          mov {k} -> r
          acc c, l, r -> c
          %next{m} = arith.addi %i{m}, %c1 : index
          %more{m} = arith.cmpi slt, %next{m}, %n : index
          scf.if %more{m} {{
            mov c -> {m}
            mov {k} -> l
            mm l, r -> c
            mov c -> {k}
          }}
        }}
    """


def test_ids_run_out_between_m_and_mte1() -> None:
    """Two loops that each carry two flags, between straight code that uses up the ids of M -> MTE1."""
    tiles = "".join(
        f"%b{i} = arith.constant {2048 * i} : i64\nt {n} mat b{i}\n"
        for i, n in enumerate(("u", "v", "w", "p", "q", "s", "one", "z"))
    )
    body = f"""
        {tiles}
        t l left a0
        t r right a0
        t c acc a0
        load ph -> s
        mov s -> l
        mov s -> r
        mm l, r -> c
        mov c -> one
        mov c -> u
        mov c -> w
        load ph -> v
        mov v -> l
        mov s -> r
        mm l, r -> c
        mov c -> v
        {_doubling("u", "v")}
        mov c -> u
        store c -> pb
        load ph -> p
        mov p -> l
        mov s -> r
        mm l, r -> c
        mov c -> p
        {_doubling("w", "p")}
        mov c -> w
        store c -> pb
        load ph -> q
        mov w -> l
        mov q -> r
        mm l, r -> c
        store c -> pb
    """
    found = lines(program(body))
    loops = [n for n, text in enumerate(found) if text == "for"]
    first, second = loops
    assert found[first - 2 : first + 3] == [
        "set M MTE1 2", "set M MTE1 3", "for", "wait M MTE1 2", "wait M MTE1 3",
    ]  # fmt: skip
    drain = found.index("wait M MTE1 2", first + 3)
    assert found[drain : drain + 3] == ["wait M MTE1 2", "wait M MTE1 3", "wait M FIX 4"]
    assert found[second - 2 : second + 3] == [
        "set M MTE1 0", "set M MTE1 1", "for", "wait M MTE1 0", "wait M MTE1 1",
    ]  # fmt: skip
    drain = next(n for n in range(second + 3, len(found)) if found[n] == "wait M MTE1 0")
    assert found[drain : drain + 3] == ["wait M MTE1 0", "wait M MTE1 1", "wait M FIX 0"]
    prove(program(body))


# -- hazards -----------------------------------------------------------------------------------------------


def test_every_kind_of_hazard_once() -> None:
    body = """
        t a tile a0
        t b tile a1
        load px -> a
        add a, a -> b
        store b -> py
        load px -> b
    """
    assert flags(program(body)) == [
        "set MTE2 V 0", "wait MTE2 V 0", "set V MTE3 0", "wait V MTE3 0", "set MTE3 MTE2 0",
        "wait MTE3 MTE2 0",
    ]  # fmt: skip


def test_bytes_count_and_not_names() -> None:
    """Tiles that overlap by some bytes are one hazard, tiles side by side are none."""
    body = "t a tile a0\nt b tile {}\nload px -> a\nload px -> b\nadd a, a -> a\nstore a -> py\nload px -> b"
    assert "set V MTE2 0" not in flags(program(body.format("a1")))
    near = program(body.format("near")).replace("%half1 =", "%near = arith.constant 992 : i64\n%half1 =")
    assert "set MTE3 MTE2 0" in flags(near)
    prove(near)


@pytest.mark.parametrize(
    "address",
    [
        # 65536 + 32768, not 65536 - 32768
        """%word = arith.constant -32768 : i16
        %wide = arith.extui %word : i16 to i64
        %base = arith.constant 65536 : i64
        %at = arith.addi %base, %wide : i64""",
        # 65536 * 65537 wraps to 65536
        """%rows = arith.constant 65536 : i32
        %more = arith.constant 65537 : i32
        %wrapped = arith.muli %rows, %more : i32
        %half = arith.constant 32768 : i32
        %sum = arith.addi %wrapped, %half : i32
        %at = arith.extsi %sum : i32 to i64""",
        # the largest index and one more
        """%most = arith.constant 18446744073709551615 : index
        %c98305 = arith.constant 98305 : index
        %sum = arith.addi %most, %c98305 : index
        %at = arith.index_cast %sum : index to i64""",
    ],
)
def test_addresses_wrap_as_in_a_run(address: str) -> None:
    """Two names for the bytes at 98304: one has to wait for the other."""
    head = f"%same = arith.constant 98304 : i64\n{address}\n%half1 ="
    body = "t a tile at\nt b tile same\nt c tile a0\nload px -> a\nadd b, b -> c\nstore c -> py"
    text = program(body).replace("%half1 =", head)
    assert "set MTE2 V 0" in flags(text)
    prove(text)


@pytest.mark.parametrize("count", ["%c3", "%n"])
def test_products_that_wrap_in_a_loop_may_meet(count: str) -> None:
    """Slots are 2**30 bytes apart, four of which wrap to none: every iteration uses the same one."""
    body = f"""
        scf.for %i = %c0 to {count} step %c1 {{
        %i32 = arith.index_cast %i : index to i32
        %gib = arith.constant 1073741824 : i32
        %far = arith.muli %i32, %gib : i32
        %four = arith.constant 4 : i32
        %none = arith.muli %far, %four : i32
        %at = arith.extsi %none : i32 to i64
        t a tile at
        load px -> a
        store a -> py
        }}"""
    assert "set MTE3 MTE2 0" in flags(program(body))
    prove(program(body))


def test_tiles_without_addresses_are_told_apart_by_what_allocates_them() -> None:
    found = flags(program("t a tile\nt b tile\nload px -> a\nload px -> b\nstore a -> py\nload px -> b"))
    assert found == ["set MTE2 MTE3 0", "wait MTE2 MTE3 0"]


def test_halves_of_a_tile_are_apart() -> None:
    body = """
        t b big a0
        %l = pto.subview %b[%c0, %c0] sizes [32, 16] : !big -> !side
        %r = pto.subview %b[%c0, %c16] sizes [32, 16] : !big -> !side
        %wl = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c32, %c16] : !view -> !ws
        pto.tload ins(%wl : !ws) outs(%l : !side)
        pto.tmuls ins(%r, %half1 : !side, f32) outs(%r : !side)
    """
    assert flags(program(body)) == []
    prove(program(body))
    assert flags(program(body.replace("%c0, %c16] sizes", "%c0, %c0] sizes"))) == [
        "set MTE2 V 0",
        "wait MTE2 V 0",
    ]


def test_dependent_vector_instructions_need_a_barrier_on_a3_only() -> None:
    body = "t a tile a0\nt b tile a1\nload px -> a\nadd a, a -> b\nadd b, b -> a\nstore a -> py"
    assert "barrier V" in flags(program(body, "a3"))
    assert not [n for n in flags(program(body, "a5")) if n.startswith("barrier")]
    prove(program(body, "a3"))


def test_a_long_chain_of_vector_instructions_needs_none() -> None:
    """16 repeats and the same bytes; not where the second writes them too."""
    body = "t a big a0\nt b big a4\nt c big a8\nload pb -> a\nadd a, a -> b\nadd b, b -> {}\nstore b -> pb"
    assert "barrier V" not in flags(program(body.format("c")))
    assert "barrier V" in flags(program(body.format("b")))
    prove(program(body.format("c")))


def test_a_barrier_leaves_loops_it_is_not_for() -> None:
    body = """
        t a tile a0
        t b tile a1
        t d tile a2
        load px -> a
        mul a -> b
        scf.for %i = %c0 to %n step %c1 {
          add b, b -> d
          store d -> py
        }
    """
    found = lines(program(body))
    assert found.index("barrier V") < found.index("for")
    assert found.count("barrier V") == 1
    prove(program(body))


def test_windows_that_move_with_the_loop_do_not_meet() -> None:
    """A store per iteration: none needs to wait for the last one, unless the windows overlap."""
    body = """
        t a tile a0
        load px -> a
        scf.for %i = %c0 to %n step %c1 {{
          %r = arith.muli %i, %c{} : index
          %o = pto.partition_view %vy, offsets = [%r, %c0], sizes = [%c16, %c16] : !view -> !w
          pto.tstore ins(%a : !tile) outs(%o : !w)
        }}
    """
    assert "barrier MTE3" not in flags(program(body.format(16)))
    assert "barrier MTE3" in flags(program(body.format(3)))
    prove(program(body.format(16)))
    prove(program(body.format(3)))


def test_offsets_that_are_kept_from_being_negative() -> None:
    """`max(16 * block + 16 * i, 0)` is the number itself; that of an argument may be 0 twice."""
    body = """
        t a tile a0
        load px -> a
        %block = pto.get_block_idx
        %start = arith.index_cast %block : i64 to index
        scf.for %i = %c0 to %n step %c1 {
          %at = arith.addi %start, %i : index
          %row = arith.muli %at, %c16 : index
          %r = arith.maxsi %row, %c0 : index
          %o = pto.partition_view %vy, offsets = [%r, %c0], sizes = [%c16, %c16] : !view -> !w
          pto.tstore ins(%a : !tile) outs(%o : !w)
        }
    """
    assert "barrier MTE3" not in flags(program(body))
    prove(program(body))
    assert "barrier MTE3" in flags(program(body.replace("addi %start", "subi %start")))
    assert "barrier MTE3" in flags(program(body.replace("addi %start", "addi %n")))


def test_equal_computations_are_equal() -> None:
    """Two windows at `n / 2` and `n / 2 + 16`, computed twice: they never meet."""
    body = """
        t a tile a0
        load px -> a
        %h1 = arith.divsi %n, %c2 : index
        %o1 = pto.partition_view %vy, offsets = [%h1, %c0], sizes = [%c16, %c16] : !view -> !w
        pto.tstore ins(%a : !tile) outs(%o1 : !w)
        %h2 = arith.divsi %n, %c2 : index
        %k = arith.addi %h2, %c{} : index
        %o2 = pto.partition_view %vy, offsets = [%k, %c0], sizes = [%c16, %c16] : !view -> !w
        pto.tstore ins(%a : !tile) outs(%o2 : !w)
    """
    assert "barrier MTE3" not in flags(program(body.format(16)))
    assert "barrier MTE3" in flags(program(body.format(3)))
    prove(program(body.format(16)))


def test_views_that_move_with_the_loop_may_meet() -> None:
    """The pointer goes up by as much as the window goes down: every iteration writes the same rows."""
    body = """
        t a tile a0
        load px -> a
        scf.for %i = %c0 to %n step %c1 {
          %row = arith.muli %i, %c16 : index
          %shift = arith.muli %row, %c64 : index
          %p = pto.addptr %y, %shift : !pto.ptr<f32> -> !pto.ptr<f32>
          %v = pto.make_tensor_view %p, shape = [%c64, %c64], strides = [%c64, %c1] : !view
          %back = arith.subi %c2, %i : index
          %r = arith.muli %back, %c16 : index
          %o = pto.partition_view %v, offsets = [%r, %c0], sizes = [%c16, %c16] : !view -> !w
          pto.tstore ins(%a : !tile) outs(%o : !w)
        }
    """
    assert "barrier MTE3" in flags(program(body))
    prove(program(body), counts=(3,))


def test_a_pointer_moved_by_an_unknown_number_may_be_anywhere() -> None:
    """`%y + n * 512` with n = 1 or 3 is where the second store of `%y` goes."""
    body = """
        t a tile a0
        load px -> a
        %shift = arith.muli %n, %c512 : index
        %p = pto.addptr %y, %shift : !pto.ptr<f32> -> !pto.ptr<f32>
        %v = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : !part
        %o = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c16] : !part -> !w
        %q = pto.partition_view %vy, offsets = [%c16, %c0], sizes = [%c16, %c16] : !view -> !w
        pto.tstore ins(%a : !tile) outs(%o : !w)
        pto.tstore ins(%a : !tile) outs(%q : !w)
    """
    text = "!part = !pto.tensor_view<16x64xf32>\n" + program(body)
    text = text.replace("%half1 =", "%c512 = arith.constant 512 : index\n    %half1 =")
    assert "barrier MTE3" in flags(text)
    prove(text)


def test_tiles_that_a_while_loop_hands_on() -> None:
    """Whichever of the two it ends with is stored: neither load may come too late."""
    body = """
        t a tile a0
        t b tile a1
        load px -> a
        mul a -> b
        %r:2 = scf.while (%u = %a, %k = %c0) : (!tile, index) -> (!tile, index) {
          %m = arith.cmpi slt, %k, %n : index
          scf.condition(%m) %u, %k : !tile, index
        } do {
        ^bb0(%u: !tile, %k: index):
          %next = arith.addi %k, %c1 : index
          scf.yield %b, %next : !tile, index
        }
        pto.tstore ins(%r#0 : !tile) outs(%py : !w)
    """
    assert "set V MTE3 0" in flags(program(body))
    prove(program(body))


def test_views_that_a_loop_hands_round_may_meet() -> None:
    """The same name is another view in the next iteration."""
    body = """
        t a tile a0
        load px -> a
        %vz = pto.make_tensor_view %y, shape = [%c64, %c64], strides = [%c64, %c1] : !view
        %vq = pto.make_tensor_view %y, shape = [%c64, %c64], strides = [%c32, %c1] : !view
        %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%u = %vz, %v = %vq) -> (!view, !view) {
          %k = arith.muli %i, %c16 : index
          %o = pto.partition_view %u, offsets = [%k, %c0], sizes = [%c16, %c16] : !view -> !w
          pto.tstore ins(%a : !tile) outs(%o : !w)
          scf.yield %v, %u : !view, !view
        }
    """
    assert "barrier MTE3" in flags(program(body))
    prove(program(body))


def test_planned_programs() -> None:
    """Tiles that planning lets share bytes."""
    for seed in range(4):
        made = random_program(seed, ("a3", "a5")[seed % 2], 30, placed=False)
        module = pto.parse(made.text)
        profile = module_profile(module)
        profile = profile.override({"vec": 16384})
        plain, problems = compile(module, profile, Options())
        assert not problems
        prove(Made(pto.to_text(plain.module), made.isa, made.seed, made.arrays, made.numbers), schedules=2)


def test_scalar_reads_and_writes() -> None:
    body = """
        t a tile a0
        load px -> a
        %v = pto.tgetval ins(%a, %c3 : !tile, index) outs : f32
        pto.tsetval ins(%c2, %v : index, f32) outs(%a : !tile)
        store a -> py
        %s = pto.load_scalar %y[%c0] : !pto.ptr<f32> -> f32
        pto.tsetval ins(%c1, %s : index, f32) outs(%a : !tile)
        store a -> pz
    """
    assert flags(program(body))[:4] == ["set MTE2 S 0", "wait MTE2 S 0", "set S MTE3 0", "wait S MTE3 0"]
    prove(program(body))


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_two_buffers_by_parity(arch: str) -> None:
    """Selected by a remainder, by `arith.select`, and handed round by the loop."""
    parity = """
        scf.for %i = %c0 to %n step %c1 {
          %odd = arith.remsi %i, %c2 : index
          %wide = arith.index_cast %odd : index to i64
          %at = arith.muli %wide, %a1 : i64
          %t = pto.alloc_tile addr = %at : !tile
          pto.tload ins(%px : !w) outs(%t : !tile)
          pto.tadd ins(%t, %t : !tile, !tile) outs(%t : !tile)
          pto.tstore ins(%t : !tile) outs(%py : !w)
        }
    """
    select = parity.replace(
        "%at = arith.muli %wide, %a1 : i64",
        "%is = arith.cmpi eq, %odd, %c0 : index\n%at = arith.select %is, %a0, %a1 : i64",
    )
    handed = """
        %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %p, %u = %q) -> (!tile, !tile) {
          pto.tload ins(%px : !w) outs(%t : !tile)
          pto.tadd ins(%t, %u : !tile, !tile) outs(%u : !tile)
          pto.tstore ins(%u : !tile) outs(%py : !w)
          scf.yield %u, %t : !tile, !tile
        }
    """
    for body in (parity, select, handed):
        prove(program(f"t p tile a0\nt q tile a1\nload px -> p\nload px -> q\n{body}", arch))


def test_the_next_tile_is_loaded_while_this_one_is_used() -> None:
    """Slots `i % 2` and `(i + 1) % 2`: the computation of an iteration does not wait for its load."""
    body = """
        t p tile a0
        t d tile a2
        load px -> p
        scf.for %i = %c0 to %n step %c1 {
          %j = arith.addi %i, %c1 : index
          %even = arith.remsi %i, %c2 : index
          %odd = arith.remsi %j, %c2 : index
          %e = arith.index_cast %even : index to i64
          %o = arith.index_cast %odd : index to i64
          %at = arith.muli %e, %a1 : i64
          %next = arith.muli %o, %a1 : i64
          %this = pto.alloc_tile addr = %at : !tile
          %that = pto.alloc_tile addr = %next : !tile
          pto.tload ins(%px : !w) outs(%that : !tile)
          pto.tadd ins(%this, %this : !tile, !tile) outs(%d : !tile)
          pto.tstore ins(%d : !tile) outs(%py : !w)
        }
    """
    found = lines(program(body))
    inside = found[found.index("for") :]
    load = inside.index("tload")
    assert [n for n in inside[:load] if n.startswith("wait MTE2 V")]
    assert not [n for n in inside[load : inside.index("tadd")] if n.startswith("wait MTE2 V")]
    prove(program(body))


def test_unrolled_buffers_work_side_by_side() -> None:
    """Each buffer has flags of its own: the second load does not wait for the first buffer's store."""
    body = """
        t a tile a0
        t b tile a1
        scf.for %i = %c0 to %n step %c1 {
          load px -> a
          load px -> b
          mul a -> a
          store a -> py
          mul b -> b
          store b -> pz
        }
    """
    found = lines(program(body))
    inside = found[found.index("for") :]
    loads = [n for n, text in enumerate(inside) if text == "tload"]
    between = inside[loads[0] : loads[1]]
    assert len([n for n in between if n.startswith("wait MTE3 MTE2")]) == 1
    prove(program(body))


# -- structure ---------------------------------------------------------------------------------------------


def test_flags_leave_branches_and_loops_that_may_not_run() -> None:
    body = """
        t a tile a0
        load px -> a
        %b = arith.cmpi sgt, %n, %c1 : index
        scf.if %b {
          mul a -> a
        }
        store a -> py
    """
    assert lines(program(body))[:9] == [
        "tload", "set MTE2 V 0", "wait MTE2 V 0", "if", "tmuls", "}", "set V MTE3 0", "wait V MTE3 0",
        "tstore",
    ]  # fmt: skip
    prove(program(body))
    prove(program(body.replace("scf.if %b", "scf.for %i = %c0 to %n step %c1")))


def test_what_one_side_of_a_branch_learns_the_other_does_not_know() -> None:
    """Inside, MTE3 waits for V, which is ordered after the first load; without the branch MTE3 is not."""
    body = """
        t a tile a0
        t d tile a1
        t e tile a2
        load px -> a
        load px -> e
        mul a -> d
        %b = arith.cmpi sgt, %n, %c1 : index
        scf.if %b {
          mul e -> e
          store e -> pz
        }
        store a -> py
    """
    prove(program(body))


def test_switch_and_while() -> None:
    prove(program("""
        t a tile a0
        load px -> a
        scf.index_switch %n
        case 0 {
          mul a -> a
          scf.yield
        }
        case 1 {
          store a -> pz
          scf.yield
        }
        default {
          load px -> a
          scf.yield
        }
        %r = scf.while (%k = %c0) : (index) -> index {
          mul a -> a
          %b = arith.cmpi slt, %k, %n : index
          scf.condition(%b) %k : index
        } do {
        ^bb0(%k: index):
          store a -> py
          %next = arith.addi %k, %c1 : index
          scf.yield %next : index
        }
        store a -> pz
    """))  # fmt: skip


def test_blocks_that_branch_start_with_a_barrier() -> None:
    body = """
        t a tile a0
        load px -> a
        %b = arith.cmpi sgt, %n, %c1 : index
        cf.cond_br %b, ^one, ^two
      ^one:
        mul a -> a
        cf.br ^two
      ^two:
        store a -> py
        mul a -> a
    """
    found = lines(program(body))
    assert found.count("barrier ALL") == 2 and found[-3:] == ["tail", "}", "}"]
    prove(program(body))


def test_sections_have_their_own_flags() -> None:
    body = """
        pto.section.cube {
          t m mat a0
          t l left a0
          load ph -> m
          scf.for %i = %c0 to %n step %c1 {
            mov m -> l
            load ph -> m
          }
        }
        pto.section.vector {
          t a tile a0
          load px -> a
          mul a -> a
        }
    """
    module = prove(program(body))
    text = pto.to_text(module)
    assert text.index("PIPE_MTE1") < text.index("section.vector") < text.index("<PIPE_V>")
    assert "PIPE_MTE1" not in text[text.index("section.vector") :]


def test_a_loop_around_sections_is_primed_in_a_section() -> None:
    body = """
        scf.for %i = %c0 to %n step %c1 {
          pto.section.vector {
            t a tile a0
            load px -> a
            mul a -> a
          }
          pto.section.cube {
            t m mat a0
            load ph -> m
          }
        }
    """
    text = pto.to_text(prove(program(body)))
    assert (
        text.index("pto.section.vector")
        < text.index("pto.set_flag[<PIPE_V>, <PIPE_MTE2>")
        < text.index("scf.for")
    )


_FIFO = """\
!mat = !pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>
!left = !pto.tile_buf<left, 16x16xf16, blayout=LEFT, slayout=row_major>
!right = !pto.tile_buf<right, 16x16xf16, slayout=col_major>
!acc = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
!vec = !pto.tile_buf<vec, 16x16xf32>
!v16 = !pto.tensor_view<64x16xf16>
!v32 = !pto.tensor_view<64x16xf32>
!w16 = !pto.partition_tensor_view<16x16xf16>
!w32 = !pto.partition_tensor_view<16x16xf32>

module attributes {pto.target_arch = "ARCH"} {
  func.func @k_aic(%a: !v16, %y: !v32, %slots: !pto.ptr<f32>, %n: index)
      attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %at = arith.constant 0 : i64
    %fifo = pto.import_reserved_buffer {name = "f", peer_func = @k_aiv} -> i32
    pto.aic_initialize_pipe {dir_mask = 1, slot_size = 1024} (GMc2v_consumer_buf = %fifo : i32)
    %m = pto.alloc_tile addr = %at : !mat
    %l = pto.alloc_tile addr = %at : !left
    %r = pto.alloc_tile addr = %at : !right
    %acc = pto.alloc_tile addr = %at : !acc
    scf.for %i = %c0 to %n step %c1 {
      %row = arith.muli %i, %c16 : index
      %p = pto.partition_view %a, offsets = [%row, %c0], sizes = [%c16, %c16] : !v16 -> !w16
      pto.tload ins(%p : !w16) outs(%m : !mat)
      pto.tmov ins(%m : !mat) outs(%l : !left)
      pto.tmov ins(%m : !mat) outs(%r : !right)
      pto.tmatmul ins(%l, %r : !left, !right) outs(%acc : !acc)
      pto.tpush_to_aiv(%acc : !acc) {split = 0}
    }
    return
  }
  func.func @k_aiv(%a: !v16, %y: !v32, %slots: !pto.ptr<f32>, %n: index)
      attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %fifo = pto.reserve_buffer {name = "f", size = 8192, location = <vec>, auto = false, base = 4096} -> i32
    pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 1024} (GMc2v_consumer_buf = %fifo : i32)
    %at = arith.constant 0 : i64
    %e = pto.alloc_tile addr = %at : !vec
    scf.for %i = %c0 to %n step %c1 {
      %row = arith.muli %i, %c16 : index
      %p = pto.partition_view %y, offsets = [%row, %c0], sizes = [%c16, %c16] : !v32 -> !w32
      %t = pto.tpop_from_aic {split = 0} -> !vec
      USE
    }
    return
  }
}
"""
_USES = {
    "computes": """pto.tadd ins(%t, %t : !vec, !vec) outs(%e : !vec)
      pto.tfree_from_aic {split = 0}
      pto.tstore ins(%e : !vec) outs(%p : !w32)""",
    "stores": """pto.tstore ins(%t : !vec) outs(%p : !w32)
      pto.tfree_from_aic {split = 0}""",
}


@pytest.mark.parametrize("use", _USES)
@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_fifos(arch: str, use: str) -> None:
    """Cube and vector core hand tiles over more often than there are slots."""
    gm = "gm_slot_buffer = %slots : !pto.ptr<f32>, " if arch == "a3" else ""
    text = _FIFO.replace("ARCH", arch).replace("LEFT", "row_major" if arch == "a3" else "col_major")
    text = text.replace("GM", gm).replace("USE", _USES[use])
    module, _ = inserted(text)
    kernel = pto.kernel(module, "k", engine="reference")
    rng = np.random.default_rng(1)
    a = rng.integers(-2, 3, (64, 16)).astype(np.float16)
    want = np.concatenate([m @ m for m in a.astype(np.float32).reshape(4, 16, 16)])
    for schedule in (None, 1, 2, 3):
        y, slots = np.zeros((64, 16), np.float32), np.zeros(8 * 256, np.float32)
        run = kernel.run(a, y, slots, 4, sanitize=() if schedule else "race,sync", schedule=schedule)
        assert not run.diagnostics, (str(run.diagnostics[0]), pto.to_text(module))
        assert np.array_equal(y, want * (2 if use == "computes" else 1)), schedule
    found = pto.to_text(module)
    if arch == "a5":  # the slot is given back by V: not before MTE3 has read it
        wait = re.search(r"wait_flag\[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID\d>\]\s+pto.tfree", found)
        assert (wait is not None) == (use == "stores")
        assert "PIPE_S" not in found  # the scalar unit pops, and stalls until the tile is there
    else:  # the pop is a copy by MTE2
        assert "<PIPE_MTE2>, <PIPE_" in found[found.index("tpop") :]


def test_calls_are_drained() -> None:
    body = """
        t a tile a0
        load px -> a
        func.call @f(%y) : (!pto.ptr<f32>) -> ()
        store a -> py
        func.call @g() : () -> ()
    """
    helper = """
  func.func private @f(%y: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    pto.store_scalar %one, %y[%c0] : !pto.ptr<f32>, f32
    %v = pto.load_scalar %y[%c0] : !pto.ptr<f32> -> f32
    return
  }
  func.func private @g() {
    return
  }
}
"""
    text = program(body).rstrip()[:-1] + helper
    found = lines(text)
    call = "func.call @f(%y) : (!pto.ptr<f32>) -> ()"
    repeated = f"t a tile a0\nscf.for %i = %c0 to %n step %c1 {{\n{call}\nload px -> a\n}}"
    again = program(repeated).rstrip()[:-1] + helper
    assert lines(again)[:3] == ["for", "barrier ALL", "call"]  # the load of the iteration before
    prove(again)
    assert found[:5] == ["tload", "barrier ALL", "call", "tstore", "call"]  # @g does nothing
    prove(text)


_WORKER = """
  func.func private @worker(%y: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %at = arith.constant 8192 : i64
    %half = arith.constant 0.5 : f32
    %a = pto.alloc_tile addr = %at : !tile
    %v = pto.make_tensor_view %y, shape = [%c64, %c64], strides = [%c64, %c1] : !view
    %p = pto.partition_view %v, offsets = [%c0, %c16], sizes = [%c16, %c16] : !view -> !w
    scf.for %i = %c0 to %c2 step %c1 {
      pto.tload ins(%p : !w) outs(%a : !tile)
      pto.tmuls ins(%a, %half : !tile, f32) outs(%a : !tile)
      pto.tstore ins(%a : !tile) outs(%p : !w)
    }
    return
  }
}
"""


def test_functions_and_their_callers_have_different_flags() -> None:
    """A flag that is set around a call is none of those that the function itself sets."""
    call = "func.call @worker(%y) : (!pto.ptr<f32>) -> ()"
    around = f"""
        t a tile a0
        load px -> a
        %b = arith.cmpi sgt, %n, %c1 : index
        scf.if %b {{
          {call}
        }}
        mul a -> a
        store a -> pz
    """
    carried = f"""
        t a tile a0
        {call}
        scf.for %i = %c0 to %n step %c1 {{
          load px -> a
          mul a -> a
          store a -> pz
        }}
    """
    for body in (around, carried):
        text = program(body).rstrip()[:-1] + _WORKER
        prove(text)
        prove(text, ids=2)
        prove(text, ids=1)  # none is left: barriers
    # of a function that is only declared nothing is known
    declared = program(around.replace("@worker", "@other")).rstrip()[:-1]
    text = declared + "  func.func private @other(!pto.ptr<f32>)\n}\n"
    assert lines(text)[:8] == [
        "tload", "set MTE2 V 0", "wait MTE2 V 0", "if", "barrier ALL", "call", "barrier ALL", "}",
    ]  # fmt: skip


def test_what_is_synchronised_already_is_left_alone() -> None:
    body = "t a tile a0\nload px -> a\nstore a -> py"
    by_hand = program(
        "t a tile a0\nload px -> a\npto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID3>]\n"
        "pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID3>]\nstore a -> py"
    )
    assert lines(by_hand) == ["tload", "set MTE2 MTE3 3", "wait MTE2 MTE3 3", "tstore", "}", "}"]
    assert lines(program("t a tile a0\nload px -> a")) == ["tload", "}", "}"]  # a single instruction
    barrier = program(body.replace("store", "pto.barrier <PIPE_ALL>\nstore"))
    assert flags(barrier) == ["barrier ALL"]


def test_tail_hints() -> None:
    body = "t a tile a0\nload px -> a\nstore a -> py"
    for hint, tail in (("default", "barrier-all"), ("barrier-all", "barrier-all"), ("mte3-to-s-event0",) * 2):
        text = program(body, attributes=f'pto.entry, pto.auto_sync_tail_hint = "{hint}"')
        assert f'pto.barrier <PIPE_ALL> {{pto.auto_tail = "{tail}"}}' in pto.to_text(inserted(text)[0])


def test_inserted_operations_point_at_what_they_serve() -> None:
    text = program("t a tile a0\nload px -> a\nstore a -> py")
    module, _ = inserted(text)
    where = {op.name: text[op.start : op.end] for op in module.walk() if "flag" in op.name}
    assert "tload" in where["pto.set_flag"] and "tstore" in where["pto.wait_flag"]


# -- event ids ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [1, 2, 3])
def test_few_ids_are_enough(ids: int) -> None:
    """Flags are merged, narrowed, or become barriers where they would be waited for."""
    spilled = 0
    for seed in range(4 if EVERY else 2):
        made = random_program(seed, "a3", 30)
        spilled += inserted(made.text, ids=ids)[1].spilled
        prove(made, ids)
    assert spilled or ids > 1


def test_flags_of_one_loop_share_an_id_if_they_must() -> None:
    """Two buffers, one id from V to MTE2: the loads of the next iteration wait for both computations."""
    body = """
        t a tile a0
        t b tile a1
        scf.for %i = %c0 to %n step %c1 {
          load px -> a
          load px -> b
          mul a -> a
          mul b -> b
        }
    """
    found = lines(program(body), ids=1)
    inside = found[found.index("for") : found.index("}")]
    assert [n for n in inside if "V MTE2" in n] == ["wait V MTE2 0", "set V MTE2 0"]
    assert inside.index("wait V MTE2 0") < inside.index("tload") and inside[-1] == "set V MTE2 0"
    prove(program(body), ids=1)


def test_reserved_ids_are_not_used() -> None:
    """Nine flags at once from MTE2 to V: seven ids, so some wait earlier than they have to."""
    body = "".join(f"%b{i} = arith.constant {1024 * i} : i64\nt d{i} tile b{i}\n" for i in range(9))
    body += "".join(f"load px -> d{i}\n" for i in range(9)) + "".join(f"mul d{i} -> d{i}\n" for i in range(9))
    used = {n.split()[-1] for n in flags(program(body)) if n.startswith("set MTE2 V")}
    assert used == set("0123456")
    prove(program(body), counts=(1,))


# -- random programs ---------------------------------------------------------------------------------------


@pytest.mark.seeded
@pytest.mark.parametrize("isa", ["a3", "a5"])
@pytest.mark.parametrize("usual", [range(8), range(8, 16)] if EVERY else [range(4)])
def test_random_programs(isa: str, usual: range) -> None:
    for seed in seeds(usual):
        prove(random_program(seed, isa), schedules=5 if EVERY else 2)


@pytest.mark.seeded
@pytest.mark.parametrize("isa", ["a3", "a5"])
def test_wild_programs(isa: str) -> None:
    for seed in seeds(range(12 if EVERY else 4)):
        prove(random_program(seed, isa, wild=True))


def test_a_flag_that_one_side_of_a_branch_does_not_touch() -> None:
    """The inner loop's flag from MTE3 to MTE2 may have been set before the product of the other side."""
    body = """
        t a tile a0
        load px -> a
        scf.for %i = %c0 to %n step %c1 {
          %b = arith.cmpi slt, %i, %c2 : index
          scf.if %b {
            mul a -> a
          } else {
            scf.for %j = %c0 to %c3 step %c1 {
              load px -> a
              store a -> py
            }
          }
        }
    """
    for arch in ("a3", "a5"):
        assert "wait V MTE2 0" in flags(program(body, arch))
        prove(program(body, arch))


def test_flags_of_an_inner_loop_say_nothing_of_the_same_iteration() -> None:
    """An inner loop's flag is set on both sides of a branch and waited for in front of it: the other
    instructions of the branch are not ordered after the one that sets it."""
    body = """
        t m mat a0
        t k mat a4
        t c acc a0
        t l left a0
        t r right a0
        load ph -> m
        mov m -> l
        mov m -> r
        mm l, r -> c
        scf.for %i = %c0 to %c2 step %c1 {
          scf.for %j = %c0 to %c2 step %c1 {
            %b = arith.cmpi eq, %i, %c2 : index
            scf.if %b {
              load ph -> m
            } else {
              mov c -> k
              load ph -> k
              mov c -> m
            }
          }
          load ph -> m
        }
    """
    prove(program(body))
    inserted(random_program(6028, "a5", 60).text)


def _parts(module: Module) -> tuple[CoreProgram, Hazards, Placement]:
    function = module.functions[0]
    profile = module_profile(module)
    steps = CoreProgram(function, "", profile)
    hazards = Hazards(steps, Places(function, profile))
    placement = Placement(steps, hazards)
    placement.run()
    Events(steps, placement.flags).run()
    return steps, hazards, placement


def _all_but_one(module: Module) -> Iterator[tuple[Module, str]]:
    """The program with each flag or barrier left out once."""
    number = 0
    while True:
        copy = clone(module)
        steps, hazards, placement = _parts(copy)
        check = HazardCheck(steps, hazards, placement.flags.all)
        assert not check.run()
        insert_sync.keep_needed(steps, check)
        barriers = [
            (s.before, i)
            for s in insert_sync.all_steps(steps.root)
            for i in s.before
            if isinstance(i, Barrier)
        ]
        if number < len(placement.flags.all):
            flag = placement.flags.all[number]
            placement.flags.drop(flag)
            said = f"{steps.pipes[flag.src]} -> {steps.pipes[flag.dst]}"
        elif number - len(placement.flags.all) < len(barriers):
            where, barrier = barriers[number - len(placement.flags.all)]
            where.remove(barrier)
            said = f"barrier {steps.pipes[barrier.pipe]}"
        else:
            return
        assert HazardCheck(steps, hazards, placement.flags.all).run(), said
        FlagEmitter(steps, placement.flags.all).run()
        add_tails(copy.functions[0])
        yield copy, said
        number += 1


def test_every_flag_is_needed() -> None:
    """Without any single flag or barrier of straight programs the race checker finds a race."""
    needed = needless = 0
    for seed in range(8):
        made = random_program(seed, ("a3", "a5")[seed % 2], 12, flat=True)
        for module, _ in _all_but_one(pto.parse(made.text)):
            run = pto.kernel(module, engine="reference").run(*made.arguments(), sanitize="race")
            needed, needless = needed + bool(run.diagnostics), needless + (not run.diagnostics)
    assert needed > 50 and needless <= 1


def test_the_check_sees_what_is_missing() -> None:
    """A flag left out is found, one that is set twice is an error of ours."""
    module = pto.parse(random_program(3, "a3", 30).text)
    steps, hazards, placement = _parts(module)
    flags = placement.flags
    assert not HazardCheck(steps, hazards, flags.all).run()
    for flag in list(flags.all):
        if flag.loop is None:
            flag.wait_at.before.append(Wait(flag))
            with pytest.raises(Unbalanced):
                HazardCheck(steps, hazards, flags.all).run()
            flag.wait_at.before.pop()
    first, second = _overlapping(flags.all)
    first.id = second.id
    with pytest.raises(Unbalanced):
        HazardCheck(steps, hazards, flags.all).run()


def test_mistakes_of_ours_cost_time_and_not_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags that are lost or share an id: the check puts barriers in their place."""
    made = random_program(3, "a3", 30)
    module = pto.parse(made.text)

    def run() -> SyncReport:
        ctx = PassContext(clone(module), module_profile(module), Options(insert_sync=True))
        report = insert_sync.run(ctx)
        want, got = made.arguments(), made.arguments()
        pto.kernel(module, engine="reference").run(*want)
        assert not pto.kernel(ctx.module, engine="reference").run(*got, sanitize="race,sync").diagnostics
        assert all(np.array_equal(a, b) for a, b in zip(want, got, strict=True))
        return report

    place = Placement.run

    def forget(self: Placement) -> None:
        place(self)
        for flag in self.flags.all[::3]:
            self.flags.drop(flag)

    with monkeypatch.context() as m:
        m.setattr(Placement, "run", forget)
        assert run().repaired > 0

    def confuse(self: Events) -> None:
        for flag in self.flags.all:
            flag.id = 0

    monkeypatch.setattr(Events, "run", confuse)
    assert run().given_up == 1


def _overlapping(flags: list[Flag]) -> tuple[Flag, Flag]:
    for a in flags:
        for b in flags:
            if a is not b and (a.src, a.dst) == (b.src, b.dst) and a.loop is b.loop is None:
                if a.set_at.end <= b.set_at.end < a.wait_at.begin:
                    return a, b
    raise AssertionError("no two flags of the same pipes overlap")
