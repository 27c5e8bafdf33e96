"""Kernels of published measurements, written as programs in the structure that is described with the figures."""

from __future__ import annotations

from math import prod


def gemm(
    m: int, k: int, n: int, base: tuple[int, int, int] = (128, 64, 256), step: int = 4,
    grid: tuple[int, int] = (4, 6), dtype: str = "f16", arch: str = "a3", double: bool = True,
) -> str:  # fmt: skip
    """C = A * B: every block of the grid walks its part of C in tiles of `base` (M, K, N). Panels of `step`
    inner steps go to L1, double buffered, and from there step by step through L0, double buffered too.
    Without `double` each has one buffer."""
    bm, bk, bn = base
    slots = 2 if double else 1
    panel = bk * step
    rows, cols = m // grid[0], n // grid[1]
    assert m % (grid[0] * bm) == 0 and n % (grid[1] * bn) == 0 and k % panel == 0, (m, k, n)
    size = {"f16": 2, "bf16": 2}.get(dtype, 1)
    a_bytes, b_bytes = bm * panel * size, bn * panel * size
    unroll = slots if (k // panel) % slots == 0 else 1
    lines: list[str] = []
    add = lines.append
    mat = "blayout=col_major, slayout=row_major"
    left = "slayout=row_major" if arch == "a3" else "blayout=col_major, slayout=row_major"
    types = {
        "mata": f"!pto.tile_buf<mat, {bm}x{panel}x{dtype}, {mat}>",
        "matb": f"!pto.tile_buf<mat, {panel}x{bn}x{dtype}, {mat}>",
        "left": f"!pto.tile_buf<left, {bm}x{bk}x{dtype}, {left}>",
        "right": f"!pto.tile_buf<right, {bk}x{bn}x{dtype}, slayout=col_major>",
        "acc": f"!pto.tile_buf<acc, {bm}x{bn}xf32, {mat}, fractal=1024>",
        "va": f"!pto.tensor_view<{m}x{k}x{dtype}>",
        "vb": f"!pto.tensor_view<{k}x{n}x{dtype}>",
        "vc": f"!pto.tensor_view<{m}x{n}xf32>",
        "wa": f"!pto.partition_tensor_view<{bm}x{panel}x{dtype}>",
        "wb": f"!pto.partition_tensor_view<{panel}x{bn}x{dtype}>",
        "wc": f"!pto.partition_tensor_view<{bm}x{bn}xf32>",
    }
    for name, text in types.items():
        add(f"!{name} = {text}")
    add(f'module attributes {{pto.target_arch = "{arch}"}} {{')
    add(f"  func.func @gemm(%a: !pto.ptr<{dtype}>, %b: !pto.ptr<{dtype}>, %c: !pto.ptr<f32>)")
    add("      attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<cube>} {")
    numbers = {0, 1, m, k, n, bm, bk, bn, panel, rows, cols, grid[0], panel * unroll}
    numbers |= {bk * s for s in range(step)} | {panel * u for u in range(unroll)}
    for number in sorted(numbers):
        add(f"    %c{number} = arith.constant {number} : index")
    places = {"0": 0, "l0a1": 32768, "a1": a_bytes, "b0": slots * a_bytes, "b1": slots * a_bytes + b_bytes}
    for name, at in places.items():
        add(f"    %at_{name} = arith.constant {at} : i64")
    add(f"    %va = pto.make_tensor_view %a, shape = [%c{m}, %c{k}], strides = [%c{k}, %c1] : !va")
    add(f"    %vb = pto.make_tensor_view %b, shape = [%c{k}, %c{n}], strides = [%c{n}, %c1] : !vb")
    add(f"    %vc = pto.make_tensor_view %c, shape = [%c{m}, %c{n}], strides = [%c{n}, %c1] : !vc")
    for s in range(slots):
        add(f"    %ma{s} = pto.alloc_tile addr = %at_{'0' if not s else 'a1'} : !mata")
        add(f"    %mb{s} = pto.alloc_tile addr = %at_b{s} : !matb")
        add(f"    %l{s} = pto.alloc_tile addr = %at_{'0' if not s else 'l0a1'} : !left")
        add(f"    %r{s} = pto.alloc_tile addr = %at_{'0' if not s else 'l0a1'} : !right")
    add("    %acc = pto.alloc_tile addr = %at_0 : !acc")

    def flag(what: str, source: str, target: str, id: int, indent: str = "    ") -> None:
        add(f"{indent}pto.{what}_flag[<PIPE_{source}>, <PIPE_{target}>, <EVENT_ID{id}>]")

    for s in range(slots):
        flag("set", "MTE1", "MTE2", s)
        flag("set", "M", "MTE1", s)
    flag("set", "FIX", "M", 0)
    add("    %block64 = pto.get_block_idx")
    add("    %block = arith.index_cast %block64 : i64 to index")
    add(f"    %down = arith.remui %block, %c{grid[0]} : index")
    add(f"    %across = arith.divui %block, %c{grid[0]} : index")
    add(f"    %row0 = arith.muli %down, %c{rows} : index")
    add(f"    %col0 = arith.muli %across, %c{cols} : index")
    add(f"    scf.for %i = %c0 to %c{rows} step %c{bm} {{")
    add("      %row = arith.addi %row0, %i : index")
    add(f"      scf.for %j = %c0 to %c{cols} step %c{bn} {{")
    add("        %col = arith.addi %col0, %j : index")
    flag("wait", "FIX", "M", 0, "        ")
    add(f"        scf.for %p = %c0 to %c{k} step %c{panel * unroll} {{")
    deep = "          "
    add(f"{deep}%first = arith.cmpi eq, %p, %c0 : index")
    l0 = 0
    for u in range(unroll):
        add(f"{deep}%k{u} = arith.addi %p, %c{panel * u} : index")
        add(f"{deep}%pa{u} = pto.partition_view %va, offsets = [%row, %k{u}], sizes = [%c{bm}, %c{panel}]"
            " : !va -> !wa")  # fmt: skip
        add(f"{deep}%pb{u} = pto.partition_view %vb, offsets = [%k{u}, %col], sizes = [%c{panel}, %c{bn}]"
            " : !vb -> !wb")  # fmt: skip
        flag("wait", "MTE1", "MTE2", u, deep)
        add(f"{deep}pto.tload ins(%pa{u} : !wa) outs(%ma{u} : !mata)")
        flag("set", "MTE2", "MTE1", 2, deep)
        add(f"{deep}pto.tload ins(%pb{u} : !wb) outs(%mb{u} : !matb)")
        flag("set", "MTE2", "MTE1", 3, deep)
        for s in range(step):
            flag("wait", "M", "MTE1", l0, deep)
            if not s:
                flag("wait", "MTE2", "MTE1", 2, deep)
            add(f"{deep}pto.textract ins(%ma{u}, %c0, %c{bk * s} : !mata, index, index) outs(%l{l0} : !left)")
            if not s:
                flag("wait", "MTE2", "MTE1", 3, deep)
            add(f"{deep}pto.textract ins(%mb{u}, %c{bk * s}, %c0 : !matb, index, index) outs(%r{l0} : !right)")
            if s == step - 1:
                flag("set", "MTE1", "MTE2", u, deep)
            flag("set", "MTE1", "M", l0, deep)
            flag("wait", "MTE1", "M", l0, deep)
            product = f"pto.tmatmul.acc ins(%acc, %l{l0}, %r{l0} : !acc, !left, !right) outs(%acc : !acc)"
            if not s and not u:
                add(f"{deep}scf.if %first {{")
                add(f"{deep}  pto.tmatmul ins(%l{l0}, %r{l0} : !left, !right) outs(%acc : !acc)")
                add(f"{deep}}} else {{")
                add(f"{deep}  {product}")
                add(f"{deep}}}")
            else:
                add(f"{deep}{product}")
            flag("set", "M", "MTE1", l0, deep)
            l0 = (l0 + 1) % slots
    add("        }")
    flag("set", "M", "FIX", 0, "        ")
    flag("wait", "M", "FIX", 0, "        ")
    add(f"        %pc = pto.partition_view %vc, offsets = [%row, %col], sizes = [%c{bm}, %c{bn}] : !vc -> !wc")
    add("        pto.tstore ins(%acc : !acc) outs(%pc : !wc)")
    flag("set", "FIX", "M", 0, "        ")
    add("      }")
    add("    }")
    for s in range(slots):
        flag("wait", "MTE1", "MTE2", s)
        flag("wait", "M", "MTE1", s)
    flag("wait", "FIX", "M", 0)
    add("    return")
    add("  }")
    add("}")
    return "\n".join(lines) + "\n"


def arrays(*shapes: tuple[int, ...]) -> list[int]:
    return [prod(s) for s in shapes]
