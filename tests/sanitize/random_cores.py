"""Random kernels of a cube core and vector cores that pass arrays to each other, many of them wrong: signals that are
missing, on another pipe or too late, grid barriers of some cores only."""

from __future__ import annotations

import random

_BEGIN = """
!mat = !pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>
!left = !pto.tile_buf<left, 16x16xf16, slayout=row_major>
!right = !pto.tile_buf<right, 16x16xf16, slayout=col_major>
!acc = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
!part16 = !pto.partition_tensor_view<16x16xf16>
!part = !pto.partition_tensor_view<16x16xf32>
!whole = !pto.tensor_view<64x16xf32>
!vec = !pto.tile_buf<vec, 16x16xf32>

module attributes {pto.target_arch = "TARGET"} {
  func.func @k(%x: !part16, %p: !whole, %q: !whole) attributes {pto.entry} {
    %at = arith.constant 0 : i64
    %two = arith.constant 2.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %block64 = pto.get_block_idx
    %sub64 = pto.get_subblock_idx
    %block = arith.index_cast %block64 : i64 to index
    %sub = arith.index_cast %sub64 : i64 to index
    %mine = arith.muli %block, %c32 : index
    %lane = arith.muli %sub, %c16 : index
    %own = arith.addi %mine, %lane : index
"""
_CUBE = """
      %a = pto.alloc_tile addr = %at : !mat
      %l = pto.alloc_tile addr = %at : !left
      %r = pto.alloc_tile addr = %at : !right
      %c = pto.alloc_tile addr = %at : !acc
      pto.tload ins(%x : !part16) outs(%a : !mat)
      pto.barrier <PIPE_ALL>
      pto.tmov ins(%a : !mat) outs(%l : !left)
      pto.tmov ins(%a : !mat) outs(%r : !right)
      pto.barrier <PIPE_ALL>
      pto.tmatmul ins(%l, %r : !left, !right) outs(%c : !acc)
      pto.set_flag[<PIPE_M>, <PIPE_FIX>, <EVENT_ID0>]
      pto.wait_flag[<PIPE_M>, <PIPE_FIX>, <EVENT_ID0>]
"""
_ROWS = ("%c0", "%c16", "%mine")


def program(seed: int) -> str:
    """A kernel on a 16x16 f16 array and two 64x16 f32 arrays, for up to two blocks."""
    rng = random.Random(seed)
    number = iter(range(100))
    rounds = [
        rng.choice(("to vector", "to vector", "to cube", "grid", "none")) for _ in range(rng.randint(1, 4))
    ]
    cube, vector = list[str](), list[str]()
    for n, kind in enumerate(rounds):
        cube += _stores(rng, "%c", "!acc", next(number)) if rng.random() < 0.7 else []
        vector += _vector(rng, next(number))
        sides = [cube, vector] if kind == "to vector" else [vector, cube]
        pipes = ("FIX", "MTE2") if kind == "to vector" else ("MTE3", "FIX")
        if kind == "grid":
            who = rng.choice(("mix", "mix", "mix", "aiv_only"))
            line = f"pto.syncall {{core_type = #pto.sync_core_type<{who}>}}"
            cube += [line] if who == "mix" else []
            vector.append(line)
        elif kind != "none":
            wrong = rng.random() < 0.15
            sides[0].append(
                f"pto.sync.set <PIPE_{'MTE2' if wrong and kind != 'to vector' else pipes[0]}>, {n}"
            )
            sides[1].append(f"pto.sync.wait <PIPE_{rng.choice(('V', 'MTE3')) if wrong else pipes[1]}>, {n}")
            if rng.random() < 0.06:
                sides[rng.randrange(2)].pop()
    cube += _stores(rng, "%c", "!acc", next(number))
    vector += _vector(rng, next(number))
    if rng.random() < 0.3:
        cube, vector = (["scf.for %i = %c0 to %c2 step %c1 {", *side, "}"] for side in (cube, vector))
    head = _BEGIN.strip().replace("TARGET", rng.choice(("a3", "a5")))
    vectors = ["%t = pto.alloc_tile addr = %at : !vec", *vector]
    sections = ["pto.section.cube {", _CUBE.strip(), *cube, "}", "pto.section.vector {", *vectors, "}"]
    return "\n".join([head, *sections, "return", "}", "}"]) + "\n"


def _part(rng: random.Random, n: int, usual: str) -> list[str]:
    array, row = rng.choice((*usual * 12, "p", "q")), rng.choice((*(("%own",) * 12), *_ROWS))
    return [
        f"%w{n} = pto.partition_view %{array}, offsets = [{row}, %c0], sizes = [%c16, %c16] : !whole -> !part"
    ]


def _stores(rng: random.Random, tile: str, type: str, n: int) -> list[str]:
    return [
        *_part(rng, n, "p" if type == "!acc" else "q"),
        f"pto.tstore ins({tile} : {type}) outs(%w{n} : !part)",
    ]


def _vector(rng: random.Random, n: int) -> list[str]:
    order = ["pto.barrier <PIPE_ALL>"] if rng.random() < 0.9 else []
    kind = rng.choice(("load", "load", "fill", "store", "store"))
    if kind == "fill":
        return [*order, "pto.texpands ins(%two : f32) outs(%t : !vec)"]
    if kind == "store":
        return [*order, *_stores(rng, "%t", "!vec", n)]
    return [*order, *_part(rng, n, "qqp"), f"pto.tload ins(%w{n} : !part) outs(%t : !vec)"]
