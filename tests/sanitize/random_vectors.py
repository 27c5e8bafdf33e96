"""Random kernels of vector registers, many of them wrong: vectors at addresses that may overlap, barriers that are
missing or of the wrong kind, flags that are left out, parts that were never written."""

from __future__ import annotations

import random
from typing import Final

_V, _M, _UB = "!pto.vreg<64xf32>", "!pto.mask<b32>", "!pto.ptr<f32, ub>"
_DMA: Final = "nburst(%one, %len, %len)"
_BARRIERS = (
    "VST_VLD",
    "VST_VLD",
    "VLD_VST",
    "VV_ALL",
    "VV_ALL",
    "VST_VST",
    "VS_ALL",
    "SV_ALL",
    "ST_VLD",
    "VST_LD",
)
_BEGIN = """
module attributes {pto.target_arch = "a5"} {
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
%none = arith.constant 0 : i32
%tail = arith.constant 50 : i32
%count = arith.constant 20 : i32
%l2 = arith.constant 0 : i64
%one = arith.constant 1 : i64
%len = arith.constant 1024 : i64
%two = arith.constant 2.0 : f32
%low = arith.constant -1.0 : f32
"""


def program(seed: int) -> str:
    """A kernel on two arrays of 1024 f32."""
    rng = random.Random(seed)
    out = [_BEGIN.strip(), *(f"%c{n} = arith.constant {n} : index" for n in (0, 3, 8, 64, 128, 192, 256))]
    pointers: list[str] = []
    for n in range(rng.randint(2, 3)):
        out.append(f"%a{n} = arith.constant {rng.choice((0, 256, 1024, 1024, 2048, 4096))} : i64")
        if rng.random() < 0.2:
            out.append(f"%t{n} = pto.alloc_tile addr = %a{n} : !pto.tile_buf<vec, 4x64xf32>")
            out.append(f"%p{n} = pto.tile_buf_addr %t{n} : !pto.tile_buf<vec, 4x64xf32> -> {_UB}")
        else:
            out.append(f"%p{n} = pto.castptr %a{n} : i64 -> {_UB}")
        pointers.append(f"%p{n}")
    out.append(f"%q = pto.addptr {pointers[0]}, %c64 : {_UB} -> {_UB}")
    for p in pointers:
        if rng.random() < 0.8:
            out.append(
                f"pto.mte_gm_ub %x, {p}, %l2, %len {_DMA} : !pto.ptr<f32>, {_UB}, i64, i64, i64, i64, i64"
            )
    pointers.append("%q")
    out += _order(rng, "MTE2", "V")
    for _ in range(rng.randint(1, 2)):
        out += ["pto.vecscope {", *_scope(rng, pointers), "}"]
    out += _order(rng, "V", "MTE3")
    out.append(
        f"pto.mte_ub_gm {rng.choice(pointers)}, %y, %len {_DMA} : {_UB}, !pto.ptr<f32>, i64, i64, i64, i64"
    )
    return "\n".join([*out, "return", "}", "}"]) + "\n"


def _order(rng: random.Random, source: str, target: str) -> list[str]:
    flag = f'["PIPE_{source}", "PIPE_{target}", "EVENT_ID0"]'
    both = [f"pto.set_flag{flag}", f"pto.wait_flag{flag}"]
    return rng.choice(
        (["pto.barrier <PIPE_ALL>"], ["pto.barrier <PIPE_ALL>"], both, both, both, [], both[:1])
    )


def _scope(rng: random.Random, pointers: list[str]) -> list[str]:
    out = [
        f'%all = pto.pset_b32 "PAT_ALL" : {_M}',
        f"%some, %rest = pto.plt_b32 {rng.choice(('%tail', '%count'))} : i32 -> {_M}, i32",
        f"%v0 = pto.vbr %two : f32 -> {_V}",
        f"%v1 = pto.vbr %low : f32 -> {_V}",
        "%ci = pto.vci %none : i32 -> !pto.vreg<64xi32>",
        "%off = pto.vbitcast %ci : !pto.vreg<64xi32> -> !pto.vreg<64xui32>",
    ]
    values = ["%v0", "%v1"]
    body: list[str] = []
    loop = rng.random() < 0.5
    for n in range(rng.randint(3, 9)):
        name, p = f"%w{n}", rng.choice(pointers)
        at = rng.choice(("%c0", "%c64", "%c128", "%c192", "%c256", *("%i",) * (6 if loop else 0)))
        mask = rng.choice(("%all", "%all", "%some"))
        a, b = rng.choice(values), rng.choice(values[-2:])
        kind = rng.choice(("load", "load", "load", "store", "store", "two", "two", "select", "barrier", "barrier",
                           "scalar", "set", "broadcast", "unaligned", "stream", "gather"))  # fmt: skip
        makes = True
        if kind == "load":
            body.append(f"{name} = pto.vlds {p}[{at}] : {_UB} -> {_V}")
        elif kind == "broadcast":
            body.append(f'{name} = pto.vlds {p}[{at}] {{dist = "BRC_B32"}} : {_UB} -> {_V}')
        elif kind == "two":
            body.append(
                f"{name} = pto.{rng.choice(('vadd', 'vmax'))} {a}, {b}, {mask} : {_V}, {_V}, {_M} -> {_V}"
            )
        elif kind == "select":
            body.append(f"{name} = pto.vsel {a}, {b}, {mask} : {_V}, {_V}, {_M} -> {_V}")
        elif kind == "gather":
            body.append(f"{name} = pto.vgather2 {p}, %off, {mask} : {_UB}, !pto.vreg<64xui32>, {_M} -> {_V}")
        elif kind == "unaligned":
            body += [f"%u{n} = pto.addptr {p}, %c3 : {_UB} -> {_UB}", f"%s{n} = pto.vldas %u{n} : {_UB} -> !pto.align",
                     f"{name}, %z{n} = pto.vldus %u{n}, %s{n} : {_UB}, !pto.align -> {_V}, !pto.align"]  # fmt: skip
        elif kind == "scalar":
            body += [
                f"%f{n} = pto.load_scalar {p}[{at}] : {_UB} -> f32",
                f"{name} = pto.vbr %f{n} : f32 -> {_V}",
            ]
        else:
            makes = False
            if kind == "store":
                body.append(f'pto.vsts {b}, {p}[{at}], {mask} {{dist = "NORM_B32"}} : {_V}, {_UB}, {_M}')
            elif kind == "set":
                body.append(f"pto.store_scalar %two, {p}[{at}] : {_UB}, f32")
            elif kind == "barrier":
                body.append(f'pto.mem_bar "{rng.choice(_BARRIERS)}"')
            else:
                body += [
                    f"%e{n} = pto.init_align : !pto.align",
                    f'%g{n}, %h{n} = pto.vstus %e{n}, %count, {b}, {p}, "POST_UPDATE" : !pto.align, i32, {_V}, {_UB}'
                    f" -> !pto.align, {_UB}",
                    f"pto.vstas %g{n}, %h{n}, %none : !pto.align, {_UB}, i32",
                ]
        values += [name] if makes else []
    if loop:
        body = ["scf.for %i = %c0 to %c192 step %c64 {", *body, "}"]
    return [*out, *body]
