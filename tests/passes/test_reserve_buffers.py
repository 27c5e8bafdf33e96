"""Reserved buffers get addresses nothing else uses, and FIFOs of one kernel flags of their own."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from tests.engine.test_fifo import cube_to_vector, data
from tests.seeds import seeds

import pto
from pto.isa.profiles import profile
from pto.passes.reserve_buffers import first_hole

from .running import errors, result, runs_alike, text
from .test_lower_pipes import both, ring

PASSES = ("kernel-kind", "lower-pipes", "pipe-init", "reserve-buffers")
UB = profile("a5").capacity["vec"]


def reserve(size: int, name: str = "r", loc: str = "vec") -> str:
    return f'pto.reserve_buffer {{name = "{name}", size = {size}, location = #pto.address_space<{loc}>, auto = true}} -> i32'


def function(body: str, name: str = "f", kind: str = "vector") -> str:
    return f"func.func @{name}() attributes {{pto.kernel_kind = #pto.kernel_kind<{kind}>}} {{\n{body}\nreturn\n}}\n"


def module(*functions: str) -> str:
    return 'module attributes {pto.target_arch = "a5"} {\n' + "".join(functions) + "}\n"


def tile(name: str, address: int, size: int, loc: str = "vec") -> str:
    return (
        f"%a_{name} = arith.constant {address} : i64\n"
        f"%{name} = pto.alloc_tile addr = %a_{name} : !pto.tile_buf<{loc}, {size // 32}x8xf32>"
    )


def base_of(source: str, value: str = "r", *passes: str) -> int:
    """The constant that a reserved buffer became."""
    found = re.search(rf"%{value} = arith.constant (\d+) : i32", text(source, *(passes or PASSES)))
    assert found is not None
    return int(found[1])


# -- addresses ---------------------------------------------------------------------------------------------


def test_the_first_hole_by_trying_every_address() -> None:
    rng = random.Random(0)
    for _ in range(400):
        capacity = 256 * rng.randrange(1, 24)
        taken = [
            (low, low + rng.randrange(1, 900))
            for low in (rng.randrange(0, capacity) for _ in range(rng.randrange(5)))
        ]
        size = rng.randrange(1, 1500)
        free = [
            at
            for at in range(0, capacity - size + 1, 256)
            if all(at + size <= low or high <= at for low, high in taken)
        ]
        assert first_hole(taken, size, capacity) == (free[0] if free else None)


def test_beside_tiles_placed_by_hand() -> None:
    body = f"{tile('a', 0, 1024)}\n{tile('b', 4096, 1024)}\n%r = {reserve(2048)}\n%s = {reserve(8192, 's')}"
    assert base_of(module(function(body))) == 1024
    assert base_of(module(function(body)), "s") == 5120
    assert base_of(module(function(f"{tile('a', 32, 224)}\n%r = {reserve(300)}"))) == 256
    assert base_of(module(function(f"%r = {reserve(300)}"))) == 0


def test_other_buffers_and_other_functions_do_not_matter() -> None:
    body = f"{tile('m', 0, 1024, 'mat')}\n%r = {reserve(2048)}"
    other = function(tile("x", 0, 1024), "g")
    assert base_of(module(function(body), other)) == 0


def test_functions_on_the_same_core_share_its_memory() -> None:
    call = "func.call @g() : () -> ()"
    body = f"{call}\n%r = {reserve(2048)}"
    callee = function(tile("x", 0, 1024), "g")
    assert base_of(module(function(body), callee)) == 1024
    assert base_of(module(function(body), function(tile("x", 0, 1024), "g", "cube"))) == 0
    deep = function("func.call @h() : () -> ()", "g")
    assert base_of(module(function(body), deep, function(tile("x", 0, 1024), "h"))) == 1024
    top = function(f"{tile('x', 0, 1024)}\nfunc.call @f() : () -> ()", "top")
    assert base_of(module(top, function(f"%r = {reserve(2048)}"))) == 1024


def test_fixed_ones_are_avoided_also_where_they_come_later() -> None:
    fixed = reserve(1024, "s").replace("auto = true", "auto = false, base = 0")
    assert base_of(module(function(f"%r = {reserve(2048)}\n%s = {fixed}"))) == 1024


def test_e1108_no_room() -> None:
    body = f"{tile('a', 256, UB - 512)}\n%r = {reserve(512)}"
    (found,) = errors(module(function(body)), *PASSES)
    assert found.code == "PTO-E1108"
    assert "failed to allocate local memory hole for reserve_buffer" in found.message
    assert f"512 of {UB} bytes free, the largest piece 256" in found.got
    assert base_of(module(function(f"{tile('a', 256, UB - 512)}\n%r = {reserve(256)}"))) == 0


def test_an_address_that_only_the_run_knows() -> None:
    source = module(function(f"%i = pto.get_block_idx\n%t = pto.alloc_tile addr = %i : !pto.tile_buf<vec, 8x8xf32>\n%r = {reserve(512)}"))  # fmt: skip
    (found,) = errors(source, *PASSES)
    assert found.code == "PTO-E1108"
    assert "expects 'base' to be resolved before address materialization" in found.message
    assert found.notes[0][0] == "the tile"


def test_imports_are_the_same_number() -> None:
    source = module(
        function('%q = pto.import_reserved_buffer {name = "r", peer_func = @f} -> i32', "g", "cube"),
        function(f"{tile('a', 0, 8192)}\n%r = {reserve(2048)}"),
    )
    found = text(source, *PASSES)
    assert "%q = arith.constant 8192 : i32" in found and "%r = arith.constant 8192 : i32" in found
    assert "reserve" not in found


@pytest.mark.seeded
@pytest.mark.parametrize("usual", range(12))
def test_planned_tiles_stay_clear(usual: int) -> None:
    """Whatever is planned: no tile of a function lies on a reserved buffer of it."""
    (seed,) = seeds([usual])
    rng = random.Random(seed)
    lines: list[str] = []
    sizes: dict[str, int] = {}
    for n in range(rng.randrange(1, 14)):
        if rng.random() < 0.3:
            size = rng.randrange(1, 40) * 1000
            sizes[f"r{n}"] = size
            lines.append(f"%r{n} = {reserve(size, f'r{n}')}")
        else:
            rows = rng.choice([8, 64, 256, 512])
            kind = f"!pto.tile_buf<vec, {rows}x16xf32>"
            lines += [
                f"%t{n} = pto.alloc_tile : {kind}",
                f"pto.texp ins(%t{n} : {kind}) outs(%t{n} : {kind})",
            ]
    ctx = result(module(function("\n".join(lines))))
    numbers = {op.result: op.attrs["value"].value for op in ctx.walk() if op.name == "arith.constant"}
    taken = [(v.name, at, at + sizes[v.name]) for v, at in numbers.items() if v.name in sizes]
    for op in ctx.walk():
        address = op.get("addr") if op.name == "pto.alloc_tile" else None
        if address is not None:
            taken.append((op.result.name, numbers[address], numbers[address] + op.result.type.size))  # type: ignore[attr-defined]
    buffers = [t for t in taken if t[0].startswith("r")]
    assert all(low % 256 == 0 and high <= UB for _, low, high in buffers)
    for name, low, high in buffers:
        for other, a, b in taken:
            assert other == name or high <= a or b <= low, (name, other)


# -- flags -------------------------------------------------------------------------------------------------


def pipes(count: int, mask: int = 1, said: dict[int, str] | None = None) -> str:
    """Two halves with `count` FIFOs."""
    cube, vector = [], []
    for n in range(count):
        more = (said or {}).get(n, "")
        init = f"%p{n} = pto.initialize_l2l_pipe {{dir_mask = {mask}, slot_size = 64, slot_num = 4{more}}} (%f{n} : i32{f', %f{n} : i32' if mask == 3 else ''}) -> !pto.pipe"
        mine, theirs = ring(f"r{n}", "k_aiv", 256)
        cube += [f"%f{n} = {theirs}", init]
        vector += [f"%f{n} = {mine}", init]
    return both("\n".join(cube), "\n".join(vector))


def bases(source: str) -> list[int]:
    """Flag bases in the order of the text."""
    return [int(n) for n in re.findall(r"flag_base = (\d+)", text(source, *PASSES))]


def test_one_pipe_has_the_first_flags() -> None:
    assert bases(pipes(1)) == [0, 0]


def test_pipes_of_one_kernel_do_not_meet() -> None:
    """Two flags per direction."""
    assert bases(pipes(8)) == [*range(0, 16, 2)] * 2
    assert bases(pipes(4, mask=3)) == [0, 4, 8, 12] * 2


def test_e1109_more_pipes_than_flags() -> None:
    (found,) = errors(pipes(9), *PASSES)
    assert found.code == "PTO-E1109" and "cannot allocate flags" in found.message
    assert "18 for 9 FIFOs" in found.got
    assert [d.code for d in errors(pipes(5, mask=3), *PASSES)] == ["PTO-E1109"]


def test_given_flags_are_kept_and_avoided() -> None:
    """Flags 1 and 2 leave 0 alone and 3 alone: the others start at 4."""
    assert bases(pipes(3, said={1: ", flag_base = 1"})) == [4, 1, 6] * 2


def test_one_end_says_it_for_both() -> None:
    source = pipes(1)
    at = source.rindex("slot_num = 4")
    assert bases(source[:at] + source[at:].replace("slot_num = 4", "slot_num = 4, flag_base = 6", 1)) == [
        6,
        6,
    ]


def test_kernels_have_flags_of_their_own() -> None:
    """Two kernels of a module both start at 0; two pairs that one entry calls do not meet."""
    first, second = pipes(1), pipes(1).replace("@k_", "@other_")
    inner = second[second.index("{\n") + 2 :].rstrip().removesuffix("}")
    together = first.rstrip().removesuffix("}") + inner + "}\n"
    assert bases(together) == [0, 0, 0, 0]
    names = ("k_aic", "k_aiv", "other_aic", "other_aiv")
    calls = "\n".join(f"func.call @{n}(%gm, %n) : (!pto.ptr<f32>, index) -> ()" for n in names)
    entry = (
        f"func.func @entry(%gm: !pto.ptr<f32>, %n: index) attributes {{pto.entry}} {{\n{calls}\nreturn\n}}\n"
    )
    assert bases(together.rstrip().removesuffix("}") + entry + "}\n") == [0, 0, 2, 2]


def test_frontend_ids_come_in_order() -> None:
    """The pipe with the lowest id has the first flags, wherever it stands."""
    parts: dict[str, list[str]] = {"aic": [], "aiv": []}
    for number in (7, 3):
        mine, theirs = ring(f"r{number}", "k_aiv", 4096)
        for side, buffer in (("aic", theirs), ("aiv", mine)):
            parts[side] += [
                f"%f{number} = {buffer}",
                f"pto.{side}_initialize_pipe {{id = {number}, dir_mask = 1, slot_size = 64}} (c2v_consumer_buf = %f{number} : i32)",
            ]
    found = text(both("\n".join(parts["aic"]), "\n".join(parts["aiv"])), *PASSES)
    assert re.findall(r"%pipe(\d) = .*flag_base = (\d+)", found) == [("7", "2"), ("3", "0")] * 2


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_two_rings_between_the_same_cores(arch: str) -> None:
    """Products go through the two FIFOs alternately, and every one arrives at its destination."""
    count = 6
    source = cube_to_vector(arch, count, 4, 1)
    for side in ("aic", "aiv"):
        at = source.index(f"pto.{side}_initialize_pipe")
        line = source[at : source.index("\n", at)]
        second = (
            line.replace("{dir_mask", "{id = 1, dir_mask").replace("%buf", "%buf1").replace("%gm", "%gm1")
        )
        buffer = source[source.rindex("%buf = ", 0, at) : source.rindex("\n", 0, at)].strip()
        buffer = (
            buffer.replace("%buf", "%buf1").replace('"ring"', '"ring1"').replace("base = 0", "base = 8192")
        )
        memory = "%c2048 = arith.constant 2048 : index\n    %gm1 = pto.addptr %gm, %c2048 : !pto.ptr<f32> -> !pto.ptr<f32>"
        source = source.replace(line, f"{line}\n    {buffer}\n    {memory}\n    {second}")
    for op in ("tpush_to_aiv", "tpop_from_aic", "tfree_from_aic"):
        source = _alternating(source, op)
    x, eye, out, gm = data(count)
    module = runs_alike(source, [x, eye, out, gm], sanitize="all")
    out[:] = 0
    assert pto.kernel(module, engine="reference").run(x, eye, out, gm.copy()).ok
    assert np.array_equal(out, x.astype(np.float32))


def _alternating(source: str, op: str) -> str:
    """Use pipe 0 in the first three rounds and pipe 1 afterwards."""
    lines: list[str] = []
    for line in source.split("\n"):
        if f"pto.{op}" not in line:
            lines.append(line)
            continue
        other = line.replace("{split", "{id = 1, split")
        test = "%late = arith.cmpi sge, %i, %c3 : index"
        if " = pto." in line:
            name, _, rest = line.strip().partition(" = ")
            type = rest.rpartition("-> ")[2]
            lines += [
                test.replace("%late", "%latep"),
                f"{name} = scf.if %latep -> ({type}) {{",
                f"%a1 = {other.strip().partition(' = ')[2]}", f"scf.yield %a1 : {type}", "} else {",
                f"%a2 = {rest}", f"scf.yield %a2 : {type}", "}",
            ]  # fmt: skip
        else:
            lines += [
                test.replace("%late", f"%late{op}"),
                f"scf.if %late{op} {{",
                other,
                "} else {",
                line,
                "}",
            ]
    return "\n".join(lines)
