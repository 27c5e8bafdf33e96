"""Random programs of tile instructions with flags and barriers, many of them wrong: tiles at addresses that may
overlap, windows of arrays, parts that were never written."""

from __future__ import annotations

import random

SIZES = ("16x64", "8x64", "16x64xf32, valid=16x50")
ADDRESSES = (0, 0, 1024, 2048, 4096, 4096, 6144, 8192, 12288)
TARGETS = ("a3", "a3", "a5", "cpu")
PAIRS = (("MTE2", "V"), ("V", "MTE3"), ("V", "MTE2"), ("MTE3", "V"), ("MTE3", "MTE2"), ("MTE2", "MTE3"))


def program(seed: int) -> str:
    """A kernel on three arrays of 64x64 f32; most instructions get the flags that they need."""
    rng = random.Random(seed)
    out = [f'module attributes {{pto.target_arch = "{rng.choice(TARGETS)}"}} {{']
    view = "!pto.tensor_view<64x64xf32>"
    out.append(f"func.func @k(%x: {view}, %y: {view}, %z: {view}) attributes {{pto.entry}} {{")
    out += [f"%c{n} = arith.constant {n} : index" for n in (0, 8, 16, 24, 50, 64)]
    out += [
        "%two = arith.constant 2.0 : f32",
        "%block64 = pto.get_block_idx",
        "%block = arith.index_cast %block64 : i64 to index",
        "%own = arith.muli %block, %c16 : index",
    ]
    tiles: list[tuple[str, str, int, int]] = []  # name, type, rows, valid columns
    for n in range(rng.randint(2, 4)):
        size = rng.choice(SIZES)
        type = f"!pto.tile_buf<vec, {size}{'' if 'f32' in size else 'xf32'}>"
        out.append(f"%a{n} = arith.constant {rng.choice(ADDRESSES)} : i64")
        out.append(f"%t{n} = pto.alloc_tile addr = %a{n} : {type}")
        tiles.append((f"%t{n}", type, 8 if size.startswith("8") else 16, 50 if "50" in size else 64))
    body = _body(rng, tiles)
    if rng.random() < 0.3:
        body = ["scf.for %i = %c0 to %c24 step %c8 {", *body, "}"]
    return "\n".join([*out, *body, "return", "}", "}"]) + "\n"


def _body(rng: random.Random, tiles: list[tuple[str, str, int, int]]) -> list[str]:
    body: list[str] = []
    careful = rng.random() < 0.7
    for n in range(rng.randint(2, 8)):
        name, type, rows, cols = rng.choice(tiles)
        kind = rng.choice(("load", "load", "one", "two", "store", "store")) if n else "load"
        if careful and rng.random() < 0.85:
            body.append(f"pto.barrier <PIPE_{rng.choice(('ALL', 'ALL', 'ALL', 'V', 'MTE3'))}>")
        elif rng.random() < 0.6:
            source, target = rng.choice(PAIRS)
            flag = f"[<PIPE_{source}>, <PIPE_{target}>, <EVENT_ID{rng.randint(0, 1)}>]"
            body += [f"pto.set_flag{flag}", f"pto.wait_flag{flag}"][: 1 if rng.random() < 0.06 else 2]
        if kind in ("load", "store"):
            array = rng.choice("xy") if kind == "load" else rng.choice("yz")
            row = rng.choice(("%c0", "%c0", "%c8", "%c16", "%own", "%own"))
            part = f"!pto.partition_tensor_view<{rows}x{cols}xf32>"
            body.append(
                f"%p{n} = pto.partition_view %{array}, offsets = [{row}, %c0], sizes = [%c{rows}, %c{cols}]"
                f" : !pto.tensor_view<64x64xf32> -> {part}"
            )
            load = f"pto.tload ins(%p{n} : {part}) outs({name} : {type})"
            body.append(load if kind == "load" else f"pto.tstore ins({name} : {type}) outs(%p{n} : {part})")
        else:
            like = [t for t in tiles if t[1] == type]
            a, b = rng.choice(like)[0], rng.choice(like)[0]
            ins = f"{a}, {b} : {type}, {type}" if kind == "two" else f"{a}, %two : {type}, f32"
            body.append(f"pto.{'tadd' if kind == 'two' else 'tmuls'} ins({ins}) outs({name} : {type})")
    return body
