"""Kernels of published measurements, written as programs in the structure that is described with the figures."""

from __future__ import annotations


def gemm(
    m: int, k: int, n: int, base: tuple[int, int, int] = (128, 64, 256), step: int = 4,
    grid: tuple[int, int] | None = (4, 6), dtype: str = "f16", arch: str = "a3", double: bool = True,
    feature_map: tuple[int, int] | None = None,
) -> str:  # fmt: skip
    """C = A * B: every block of the grid walks its part of C in tiles of `base` (M, K, N). Panels of `step`
    inner steps go to L1, double buffered, and from there step by step through L0, double buffered too.
    Without `double` each has one buffer. Without a grid, blocks take tiles of C in turns.

    A convolution is the same on the cube. What it loads for a panel of the left operand is a `feature_map` of so
    many pixels and channels, which reads of L1 spread; these count as extracts."""
    bm, bk, bn = base
    slots = 2 if double else 1
    panel = bk * step
    down, across = grid or (1, 1)
    rows, cols = m // down, n // across
    assert m % (down * bm) == 0 and n % (across * bn) == 0 and k % panel == 0, (m, k, n)
    pixels, channels = feature_map or (bm, panel)
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
        "loaded": f"!pto.tile_buf<mat, {pixels}x{channels}x{dtype}, {mat}>",
        "wa": f"!pto.partition_tensor_view<{pixels}x{channels}x{dtype}>",
        "wb": f"!pto.partition_tensor_view<{panel}x{bn}x{dtype}>",
        "wc": f"!pto.partition_tensor_view<{bm}x{bn}xf32>",
    }
    for name, text in types.items():
        add(f"!{name} = {text}")
    add(f'module attributes {{pto.target_arch = "{arch}"}} {{')
    add(f"  func.func @gemm(%a: !pto.ptr<{dtype}>, %b: !pto.ptr<{dtype}>, %c: !pto.ptr<f32>)")
    add("      attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<cube>} {")
    tiles = (m // bm) * (n // bn)
    numbers = {0, 1, m, k, n, bm, bk, bn, panel, rows, cols, down, panel * unroll, pixels, channels, tiles}
    numbers |= {n // bn}
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
        add(f"    %la{s} = pto.alloc_tile addr = %at_{'0' if not s else 'a1'} : !loaded")
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
    if grid is not None:
        add(f"    %down = arith.remui %block, %c{down} : index")
        add(f"    %across = arith.divui %block, %c{down} : index")
        add(f"    %row0 = arith.muli %down, %c{rows} : index")
        add(f"    %col0 = arith.muli %across, %c{cols} : index")
        add(f"    scf.for %i = %c0 to %c{rows} step %c{bm} {{")
        add("      %row = arith.addi %row0, %i : index")
        add(f"      scf.for %j = %c0 to %c{cols} step %c{bn} {{")
        add("        %col = arith.addi %col0, %j : index")
    else:
        add("    %blocks64 = pto.get_block_num")
        add("    %blocks = arith.index_cast %blocks64 : i64 to index")
        add(f"    scf.for %t = %block to %c{tiles} step %blocks {{")
        add(f"      %ti = arith.divui %t, %c{n // bn} : index")
        add(f"      %tj = arith.remui %t, %c{n // bn} : index")
        add(f"      %row = arith.muli %ti, %c{bm} : index")
        add(f"      %col = arith.muli %tj, %c{bn} : index")
    flag("wait", "FIX", "M", 0, "        ")
    add(f"        scf.for %p = %c0 to %c{k} step %c{panel * unroll} {{")
    deep = "          "
    add(f"{deep}%first = arith.cmpi eq, %p, %c0 : index")
    l0 = 0
    for u in range(unroll):
        add(f"{deep}%k{u} = arith.addi %p, %c{panel * u} : index")
        add(f"{deep}%pa{u} = pto.partition_view %va, offsets = [%row, %k{u}], sizes = [%c{pixels}, "
            f"%c{channels}] : !va -> !wa")  # fmt: skip
        add(f"{deep}%pb{u} = pto.partition_view %vb, offsets = [%k{u}, %col], sizes = [%c{panel}, %c{bn}]"
            " : !vb -> !wb")  # fmt: skip
        flag("wait", "MTE1", "MTE2", u, deep)
        add(f"{deep}pto.tload ins(%pa{u} : !wa) outs(%la{u} : !loaded)")
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
            add(
                f"{deep}pto.textract ins(%mb{u}, %c{bk * s}, %c0 : !matb, index, index) outs(%r{l0} : !right)"
            )
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
    add(
        f"        %pc = pto.partition_view %vc, offsets = [%row, %col], sizes = [%c{bm}, %c{bn}] : !vc -> !wc"
    )
    add("        pto.tstore ins(%acc : !acc) outs(%pc : !wc)")
    flag("set", "FIX", "M", 0, "        ")
    if grid is not None:
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


def attention(s0: int, s1: int, head: int = 128, preload: int = 4, overlap: bool = True) -> str:
    """Return one head of attention, 128 rows of q a block: the cube computes scores of 256 keys at a time and
    the product with the values, the vector cores the softmax in slices of 32 rows and the sum. Cores pass
    data through slots in global memory; `preload` tiles of scores are ahead of the values. Without `overlap`
    the cube waits for the weights of a tile before it begins the next."""
    ahead = min(preload, s1 // 256) if overlap else 0
    slots = ahead + 1
    tiles = s1 // 256
    text: list[str] = []
    add = text.append
    mat = "blayout=col_major, slayout=row_major"
    types = {
        "q": f"!pto.tile_buf<mat, 128x{head}xf16, {mat}>",
        "kt": f"!pto.tile_buf<mat, {head}x128xf16, slayout=col_major>",
        "p": f"!pto.tile_buf<mat, 128x128xf16, {mat}>",
        "v": f"!pto.tile_buf<mat, 128x{head}xf16, {mat}>",
        "lq": f"!pto.tile_buf<left, 128x{head}xf16, slayout=row_major>",
        "lp": "!pto.tile_buf<left, 128x128xf16, slayout=row_major>",
        "rk": f"!pto.tile_buf<right, {head}x128xf16, slayout=col_major>",
        "rv": f"!pto.tile_buf<right, 128x{head}xf16, slayout=col_major>",
        "s": f"!pto.tile_buf<acc, 128x128xf32, {mat}, fractal=1024>",
        "o": f"!pto.tile_buf<acc, 128x{head}xf32, {mat}, fractal=1024>",
        "x": "!pto.tile_buf<vec, 32x256xf32>",
        "x16": "!pto.tile_buf<vec, 32x256xf16>",
        "col": "!pto.tile_buf<vec, 32x1xf32, blayout=col_major>",
        "row": "!pto.tile_buf<vec, 1x32xf32>",
        "spread": "!pto.tile_buf<vec, 8x32xf32>",
        "u": f"!pto.tile_buf<vec, 32x{head}xf32>",
        "v16": "!pto.tensor_view<?x?xf16>",
        "v32": "!pto.tensor_view<?x?xf32>",
    }
    for name, written in types.items():
        add(f"!{name} = {written}")
    add('module attributes {pto.target_arch = "a3"} {')
    add("  func.func @attention(%q: !pto.ptr<f16>, %k: !pto.ptr<f16>, %v: !pto.ptr<f16>, %o: !pto.ptr<f32>,")
    add("      %scores: !pto.ptr<f32>, %weights: !pto.ptr<f16>, %partial: !pto.ptr<f32>, %scale: f32)")
    add("      attributes {pto.entry} {")
    for number in sorted({0, 1, 2, 32, 64, 96, 128, 256, head, s0, s1, tiles, ahead, slots, tiles - ahead}):
        add(f"    %c{number} = arith.constant {number} : index")
    big = {"qk": slots * 128 * 256, "pvs": slots * 128 * head, "qks": 128 * 256, "pv1": 128 * head}
    for name, number in big.items():
        add(f"    %n_{name} = arith.constant {number} : index")
    add("    %block64 = pto.get_block_idx")
    add("    %block = arith.index_cast %block64 : i64 to index")
    add("    %first = arith.muli %block, %c128 : index")
    add("    %off_qk = arith.muli %block, %n_qk : index")
    add("    %off_pv = arith.muli %block, %n_pvs : index")

    def flag(what: str, source: str, target: str, id: int, d: str) -> None:
        add(f"{d}pto.{what}_flag[<PIPE_{source}>, <PIPE_{target}>, <EVENT_ID{id}>]")

    def window(d: str, name: str, view: str, at: str, size: str, dims: str, type: str) -> None:
        add(f"{d}%{name} = pto.partition_view %{view}, offsets = [{at}], sizes = [{size}] : "
            f"!{type} -> !pto.partition_tensor_view<{dims}x{'f16' if type == 'v16' else 'f32'}>")  # fmt: skip

    def slot_view(
        d: str, name: str, tile: str, ptr: str, off: str, one: str, rows: str, cols: str, t: str
    ) -> None:
        kind = "f16" if t == "v16" else "f32"
        add(f"{d}%sl_{name} = arith.remui {tile}, %c{slots} : index")
        add(f"{d}%so_{name} = arith.muli %sl_{name}, %n_{one} : index")
        add(f"{d}%sp_{name} = arith.addi %so_{name}, %off_{off} : index")
        add(f"{d}%ptr_{name} = pto.addptr %{ptr}, %sp_{name} : !pto.ptr<{kind}> -> !pto.ptr<{kind}>")
        add(f"{d}%view_{name} = pto.make_tensor_view %ptr_{name}, shape = [%c{rows}, %c{cols}], "
            f"strides = [%c{cols}, %c1] : !{t}")  # fmt: skip

    def part(dims: str, kind: str) -> str:
        return f"!pto.partition_tensor_view<{dims}x{kind}>"

    def scores(d: str, tile: str, tag: str) -> None:
        """The cube: a tile of scores, in two parts."""
        slot_view(d, f"q{tag}", tile, "scores", "qk", "qks", "128", "256", "v32")
        add(f"{d}%key_{tag} = arith.muli {tile}, %c256 : index")
        for sub in (0, 1):
            add(f"{d}%key_{tag}{sub} = arith.addi %key_{tag}, %c{128 * sub} : index")
            window(
                d, f"wk_{tag}{sub}", "vk", f"%c0, %key_{tag}{sub}", f"%c{head}, %c128", f"{head}x128", "v16"
            )
            flag("wait", "MTE1", "MTE2", sub, d)
            add(f"{d}pto.tload ins(%wk_{tag}{sub} : {part(f'{head}x128', 'f16')}) outs(%mk{sub} : !kt)")
            flag("set", "MTE2", "MTE1", sub, d)
            flag("wait", "MTE2", "MTE1", sub, d)
            flag("wait", "M", "MTE1", 0, d)
            add(f"{d}pto.tmov ins(%mk{sub} : !kt) outs(%rk : !rk)")
            flag("set", "MTE1", "MTE2", sub, d)
            flag("set", "MTE1", "M", 0, d)
            flag("wait", "MTE1", "M", 0, d)
            flag("wait", "FIX", "M", sub, d)
            add(f"{d}pto.tmatmul ins(%lq, %rk : !lq, !rk) outs(%s{sub} : !s)")
            flag("set", "M", "MTE1", 0, d)
            flag("set", "M", "FIX", sub, d)
            flag("wait", "M", "FIX", sub, d)
            window(
                d, f"ws_{tag}{sub}", f"view_q{tag}", f"%c0, %c{128 * sub}", "%c128, %c128", "128x128", "v32"
            )
            add(f"{d}pto.tstore ins(%s{sub} : !s) outs(%ws_{tag}{sub} : {part('128x128', 'f32')})")
            flag("set", "FIX", "M", sub, d)
        add(f"{d}pto.sync.set <PIPE_FIX>, 0")

    def values(d: str, tile: str) -> None:
        """The cube: weights times values."""
        slot_view(d, "w", tile, "weights", "qk", "qks", "128", "256", "v16")
        slot_view(d, "u", tile, "partial", "pv", "pv1", "128", str(head), "v32")
        add(f"{d}%value = arith.muli {tile}, %c256 : index")
        for sub in (0, 1):
            add(f"{d}%value{sub} = arith.addi %value, %c{128 * sub} : index")
            window(d, f"wv{sub}", "vv", f"%value{sub}, %c0", f"%c128, %c{head}", f"128x{head}", "v16")
            flag("wait", "MTE1", "MTE2", 2 + sub, d)
            add(f"{d}pto.tload ins(%wv{sub} : {part(f'128x{head}', 'f16')}) outs(%mv{sub} : !v)")
        add(f"{d}pto.sync.wait <PIPE_MTE2>, 1")
        for sub in (0, 1):
            window(d, f"wp{sub}", "view_w", f"%c0, %c{128 * sub}", "%c128, %c128", "128x128", "v16")
            add(f"{d}pto.tload ins(%wp{sub} : {part('128x128', 'f16')}) outs(%mp{sub} : !p)")
            flag("set", "MTE2", "MTE1", 2 + sub, d)
        for sub in (0, 1):
            flag("wait", "MTE2", "MTE1", 2 + sub, d)
            flag("wait", "M", "MTE1", 1, d)
            add(f"{d}pto.tmov ins(%mp{sub} : !p) outs(%lp : !lp)")
            add(f"{d}pto.tmov ins(%mv{sub} : !v) outs(%rv : !rv)")
            flag("set", "MTE1", "MTE2", 2 + sub, d)
            flag("set", "MTE1", "M", 1, d)
            flag("wait", "MTE1", "M", 1, d)
            if not sub:
                flag("wait", "FIX", "M", 2, d)
                add(f"{d}pto.tmatmul ins(%lp, %rv : !lp, !rv) outs(%u : !o)")
            else:
                add(f"{d}pto.tmatmul.acc ins(%u, %lp, %rv : !o, !lp, !rv) outs(%u : !o)")
            flag("set", "M", "MTE1", 1, d)
        flag("set", "M", "FIX", 2, d)
        flag("wait", "M", "FIX", 2, d)
        window(d, "wu", "view_u", "%c0, %c0", f"%c128, %c{head}", f"128x{head}", "v32")
        add(f"{d}pto.tstore ins(%u : !o) outs(%wu : {part(f'128x{head}', 'f32')})")
        flag("set", "FIX", "M", 2, d)
        add(f"{d}pto.sync.set <PIPE_FIX>, 2")

    d = "      "
    add("    pto.section.cube {")
    places = {"mq": ("q", 0), "mk0": ("kt", 32768), "mk1": ("kt", 65536), "mv0": ("v", 98304), "mv1": ("v", 131072),
              "mp0": ("p", 163840), "mp1": ("p", 196608), "lq": ("lq", 0), "lp": ("lp", 32768), "rk": ("rk", 0),
              "rv": ("rv", 32768), "s0": ("s", 0), "s1": ("s", 65536), "u": ("o", 0)}  # fmt: skip
    for name, (type, at) in places.items():
        add(f"{d}%at_{name} = arith.constant {at} : i64")
        add(f"{d}%{name} = pto.alloc_tile addr = %at_{name} : !{type}")
    add(f"{d}%vq = pto.make_tensor_view %q, shape = [%c{s0}, %c{head}], strides = [%c{head}, %c1] : !v16")
    add(f"{d}%vk = pto.make_tensor_view %k, shape = [%c{head}, %c{s1}], strides = [%c1, %c{head}] "
        "{layout = #pto.layout<dn>} : !v16")  # fmt: skip
    add(f"{d}%vv = pto.make_tensor_view %v, shape = [%c{s1}, %c{head}], strides = [%c{head}, %c1] : !v16")
    window(d, "wq", "vq", "%first, %c0", f"%c128, %c{head}", f"128x{head}", "v16")
    add(f"{d}pto.tload ins(%wq : {part(f'128x{head}', 'f16')}) outs(%mq : !q)")
    flag("set", "MTE2", "MTE1", 0, d)
    flag("wait", "MTE2", "MTE1", 0, d)
    add(f"{d}pto.tmov ins(%mq : !q) outs(%lq : !lq)")
    free = [("MTE1", "MTE2", n) for n in range(4)] + [("M", "MTE1", n) for n in (0, 1)]
    free += [("FIX", "M", n) for n in range(3)]
    for source, target, id in free:
        flag("set", source, target, id, d)
    if ahead:
        add(f"{d}scf.for %w = %c0 to %c{ahead} step %c1 {{")
        scores(d + "  ", "%w", "a")
        add(f"{d}}}")
    add(f"{d}scf.for %t = %c0 to %c{tiles} step %c1 {{")
    add(f"{d}  %more = arith.cmpi ult, %t, %c{tiles - ahead} : index")
    add(f"{d}  scf.if %more {{")
    add(f"{d}    %next = arith.addi %t, %c{ahead} : index")
    scores(d + "    ", "%next", "b")
    add(f"{d}  }}")
    values(d + "  ", "%t")
    add(f"{d}}}")
    for source, target, id in free:
        flag("wait", source, target, id, d)
    add("    }")

    def softmax(d: str, tile: str, tag: str) -> None:
        slot_view(d, f"s{tag}", tile, "scores", "qk", "qks", "128", "256", "v32")
        slot_view(d, f"p{tag}", tile, "weights", "qk", "qks", "128", "256", "v16")
        add(f"{d}pto.sync.wait <PIPE_MTE2>, 0")
        for part_ in (0, 1):
            add(f"{d}%r_{tag}{part_} = arith.addi %own, %c{32 * part_} : index")
            window(
                d, f"wx_{tag}{part_}", f"view_s{tag}", f"%r_{tag}{part_}, %c0", "%c32, %c256", "32x256", "v32"
            )
            flag("wait", "V", "MTE2", part_, d)
            add(f"{d}pto.tload ins(%wx_{tag}{part_} : {part('32x256', 'f32')}) outs(%x{part_} : !x)")
            flag("set", "MTE2", "V", part_, d)
        for part_ in (0, 1):
            m, sums = f"%m{part_}_row", f"%l{part_}_row"
            flag("wait", "MTE2", "V", part_, d)
            add(f"{d}pto.trowmax ins(%x{part_}, %scratch : !x, !x) outs(%new : !col)")
            add(f"{d}pto.barrier <PIPE_V>")
            add(f"{d}pto.tmax ins(%new_row, {m} : !row, !row) outs(%new_row : !row)")
            add(f"{d}pto.barrier <PIPE_V>")
            add(f"{d}pto.tsub ins({m}, %new_row : !row, !row) outs(%alpha{part_}_row : !row)")
            add(f"{d}pto.tmuls ins(%new_row, %one : !row, f32) outs({m} : !row)")
            add(f"{d}pto.trowexpandsub ins(%x{part_}, %new, %spread : !x, !col, !spread) outs(%e : !x)")
            flag("set", "V", "MTE2", part_, d)
            add(f"{d}pto.barrier <PIPE_V>")
            add(f"{d}pto.tmuls ins(%alpha{part_}_row, %scale : !row, f32) outs(%alpha{part_}_row : !row)")
            add(f"{d}pto.tmuls ins(%e, %scale : !x, f32) outs(%e : !x)")
            add(f"{d}pto.barrier <PIPE_V>")
            add(f"{d}pto.texp ins(%alpha{part_}_row : !row) outs(%alpha{part_}_row : !row)")
            add(f"{d}pto.texp ins(%e : !x) outs(%e : !x)")
            add(f"{d}pto.barrier <PIPE_V>")
            flag("wait", "MTE3", "V", part_, d)
            add(f"{d}pto.tcvt ins(%e : !x) outs(%h{part_} : !x16)")
            flag("set", "V", "MTE3", part_, d)
            add(f"{d}pto.tmul ins({sums}, %alpha{part_}_row : !row, !row) outs({sums} : !row)")
            add(f"{d}pto.trowsum ins(%e, %scratch : !x, !x) outs(%sum : !col)")
            add(f"{d}pto.barrier <PIPE_V>")
            add(f"{d}pto.tadd ins({sums}, %sum_row : !row, !row) outs({sums} : !row)")
            window(
                d, f"wh_{tag}{part_}", f"view_p{tag}", f"%r_{tag}{part_}, %c0", "%c32, %c256", "32x256", "v16"
            )
            flag("wait", "V", "MTE3", part_, d)
            add(f"{d}pto.tstore ins(%h{part_} : !x16) outs(%wh_{tag}{part_} : {part('32x256', 'f16')})")
            flag("set", "MTE3", "V", part_, d)
        add(f"{d}pto.sync.set <PIPE_MTE3>, 1")

    def update(d: str, tile: str) -> None:
        slot_view(d, "g", tile, "partial", "pv", "pv1", "128", str(head), "v32")
        add(f"{d}pto.sync.wait <PIPE_MTE2>, 2")
        for part_ in (0, 1):
            add(f"{d}%rg{part_} = arith.addi %own, %c{32 * part_} : index")
            window(d, f"wg{part_}", "view_g", f"%rg{part_}, %c0", f"%c32, %c{head}", f"32x{head}", "v32")
            flag("wait", "V", "MTE2", 2 + part_, d)
            add(f"{d}pto.tload ins(%wg{part_} : {part(f'32x{head}', 'f32')}) outs(%g{part_} : !u)")
            flag("set", "MTE2", "V", 2 + part_, d)
            add(
                f"{d}pto.trowexpandmul ins(%o{part_}, %alpha{part_}, %spread : !u, !col, !spread) outs(%o{part_} : !u)"
            )
            add(f"{d}pto.barrier <PIPE_V>")
            flag("wait", "MTE2", "V", 2 + part_, d)
            add(f"{d}pto.tadd ins(%o{part_}, %g{part_} : !u, !u) outs(%o{part_} : !u)")
            flag("set", "V", "MTE2", 2 + part_, d)

    add("    pto.section.vector {")
    size = 32 * head * 4
    spots = {"x0": ("x", 0), "x1": ("x", 32768), "e": ("x", 65536), "h0": ("x16", 98304), "h1": ("x16", 114688),
             "g0": ("u", 131072), "g1": ("u", 131072 + size), "spread": ("spread", 163840),
             "new": ("col", 164864), "sum": ("col", 164992), "alpha0": ("col", 165120), "alpha1": ("col", 165248),
             "m0": ("col", 165376), "m1": ("col", 165504), "l0": ("col", 165632), "l1": ("col", 165760),
             "o0": ("u", 165888), "o1": ("u", 165888), "scratch": ("x", 65536)}  # fmt: skip
    for name, (type, at) in spots.items():
        add(f"{d}%at_{name} = arith.constant {at} : i64")
        add(f"{d}%{name} = pto.alloc_tile addr = %at_{name} : !{type}")
    for name in ("new", "sum", "alpha0", "alpha1", "m0", "m1", "l0", "l1"):
        add(f"{d}%{name}_row = pto.treshape %{name} : !col -> !row")
    add(f"{d}%one = arith.constant 1.0 : f32")
    add(f"{d}%lane64 = pto.get_subblock_idx")
    add(f"{d}%lane = arith.index_cast %lane64 : i64 to index")
    add(f"{d}%own = arith.muli %lane, %c64 : index")
    free = [("V", "MTE2", n) for n in range(4)] + [("MTE3", "V", n) for n in (0, 1)]
    for source, target, id in free:
        flag("set", source, target, id, d)
    if ahead:
        add(f"{d}scf.for %w = %c0 to %c{ahead} step %c1 {{")
        softmax(d + "  ", "%w", "a")
        add(f"{d}}}")
    add(f"{d}scf.for %t = %c0 to %c{tiles} step %c1 {{")
    add(f"{d}  %more = arith.cmpi ult, %t, %c{tiles - ahead} : index")
    add(f"{d}  scf.if %more {{")
    add(f"{d}    %next = arith.addi %t, %c{ahead} : index")
    softmax(d + "    ", "%next", "b")
    add(f"{d}  }}")
    update(d + "  ", "%t")
    add(f"{d}}}")
    add(f"{d}pto.barrier <PIPE_V>")
    add(f"{d}pto.trowexpanddiv ins(%o0, %l0, %spread : !u, !col, !spread) outs(%o0 : !u)")
    flag("set", "V", "MTE3", 2, d)
    flag("wait", "V", "MTE3", 2, d)
    add(f"{d}%vo = pto.make_tensor_view %o, shape = [%c{s0}, %c{head}], strides = [%c{head}, %c1] : !v32")
    add(f"{d}%at_row = arith.addi %first, %own : index")
    window(d, "wo", "vo", "%at_row, %c0", f"%c32, %c{head}", f"32x{head}", "v32")
    add(f"{d}pto.tstore ins(%o0 : !u) outs(%wo : {part(f'32x{head}', 'f32')})")
    for source, target, id in free:
        flag("wait", source, target, id, d)
    add("    }")
    add("    return")
    add("  }")
    add("}")
    return "\n".join(text) + "\n"


def topk(rows: int, k: int = 1000, dtype: str = "f32") -> str:
    """The first k of 1024 columns of every row, double buffered: sorted lists of 32, merged by four, the last
    ones by two, with a copy after every merge; then values and columns apart."""
    wide = 4 if dtype == "f32" else 2
    per = 8 // wide  # elements of a record
    records = 1024 * per
    text: list[str] = []
    add = text.append
    types = {
        "values": f"!pto.tile_buf<vec, 1x1024x{dtype}>",
        "columns": "!pto.tile_buf<vec, 1x1024xui32>",
        "records": f"!pto.tile_buf<vec, 1x{records}x{dtype}>",
        "list": f"!pto.tile_buf<vec, 1x{records // 2}x{dtype}>",
        "out": f"!pto.tile_buf<vec, 1x{k}x{dtype}>",
        "best": f"!pto.tile_buf<vec, 1x{k * per}x{dtype}>",
        "best32": f"!pto.tile_buf<vec, 1x{k * 2}xui32>",
        "where": f"!pto.tile_buf<vec, 1x{k}xui32>",
    }
    for name, written in types.items():
        add(f"!{name} = {written}")
    add('module attributes {pto.target_arch = "a3"} {')
    add(f"  func.func @topk(%x: !pto.ptr<{dtype}>, %y: !pto.ptr<{dtype}>, %at: !pto.ptr<ui32>)")
    add("      attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {")
    for number in sorted({0, 1, 2, rows, 1024, k, records // 2}):
        add(f"    %c{number} = arith.constant {number} : index")
    for number in (64, 256):
        add(f"    %len{number} = arith.constant {number * wide // 4 if wide == 4 else number * 2} : i32")
    add("    %taken = arith.constant dense<0> : vector<4xi16>")
    spots = {"values0": ("values", 0), "values1": ("values", 4096), "columns": ("columns", 8192),
             "ping": ("records", 12288), "pong": ("records", 20480), "third": ("records", 28672),
             "best": ("best", 20480), "best32": ("best32", 20480), "out0": ("out", 40960), "out1": ("out", 45056),
             "where0": ("where", 49152), "where1": ("where", 53248), "one": ("list", 12288),
             "two": ("list", 12288 + 4096)}  # fmt: skip
    for name, (type, at) in spots.items():
        add(f"    %at_{name} = arith.constant {at} : i64")
        add(f"    %{name} = pto.alloc_tile addr = %at_{name} : !{type}")
    views = {"x": (dtype, 1024), "y": (dtype, k), "at": ("ui32", k)}
    for name, (kind, cols) in views.items():
        add(f"    %v{name} = pto.make_tensor_view %{name}, shape = [%c{rows}, %c{cols}], strides = [%c{cols}, %c1] : "
            f"!pto.tensor_view<{rows}x{cols}x{kind}>")  # fmt: skip
    add("    %block64 = pto.get_block_idx")
    add("    %blocks64 = pto.get_block_num")
    add("    %block = arith.index_cast %block64 : i64 to index")
    add("    %blocks = arith.index_cast %blocks64 : i64 to index")
    add("    %twice = arith.muli %blocks, %c2 : index")

    def flag(what: str, source: str, target: str, id: int, d: str = "    ") -> None:
        add(f"{d}pto.{what}_flag[<PIPE_{source}>, <PIPE_{target}>, <EVENT_ID{id}>]")

    for n in (0, 1):
        flag("set", "V", "MTE2", n)
        flag("set", "MTE3", "V", n)
    d = "      "
    add(f"    scf.for %r = %block to %c{rows} step %twice {{")
    for n in (0, 1):
        add(f"{d}%r{n} = arith.addi %r, {'%c0' if not n else '%blocks'} : index")
        for name, (kind, cols) in views.items():
            add(f"{d}%p{name}{n} = pto.partition_view %v{name}, offsets = [%r{n}, %c0], sizes = [%c1, %c{cols}] : "
                f"!pto.tensor_view<{rows}x{cols}x{kind}> -> !pto.partition_tensor_view<1x{cols}x{kind}>")  # fmt: skip
        flag("wait", "V", "MTE2", n, d)
        add(
            f"{d}pto.tload ins(%px{n} : !pto.partition_tensor_view<1x1024x{dtype}>) outs(%values{n} : !values)"
        )
        flag("set", "MTE2", "V", n, d)
        flag("wait", "MTE2", "V", n, d)
        add(f"{d}pto.tsort32 ins(%values{n}, %columns : !values, !columns) outs(%ping : !records)")
        flag("set", "V", "MTE2", n, d)
        add(f"{d}pto.barrier <PIPE_V>")
        for length in (64, 256):
            add(f"{d}pto.tmrgsort ins(%ping, %len{length} : !records, i32) outs(%pong : !records)")
            add(f"{d}pto.barrier <PIPE_V>")
            add(f"{d}pto.tmov ins(%pong : !records) outs(%ping : !records)")
            add(f"{d}pto.barrier <PIPE_V>")
        add(f"{d}pto.tmrgsort ins(%one, %two, %third {{exhausted = false}} : !list, !list, !records) "
            "outs(%pong, %taken : !records, vector<4xi16>)")  # fmt: skip
        add(f"{d}pto.barrier <PIPE_V>")
        add(f"{d}pto.tmov ins(%pong : !records) outs(%ping : !records)")
        add(f"{d}pto.barrier <PIPE_V>")
        flag("wait", "MTE3", "V", n, d)
        pattern = "P0101" if wide == 4 else "P0001"
        add(
            f"{d}pto.tgather ins(%best, {{maskPattern = #pto.mask_pattern<{pattern}>}} : !best) outs(%out{n} : !out)"
        )
        add(f"{d}pto.barrier <PIPE_V>")
        add(f"{d}pto.tgather ins(%best32, {{maskPattern = #pto.mask_pattern<P1010>}} : !best32) outs(%where{n} : "
            "!where)")  # fmt: skip
        flag("set", "V", "MTE3", n, d)
        flag("wait", "V", "MTE3", n, d)
        add(f"{d}pto.tstore ins(%out{n} : !out) outs(%py{n} : !pto.partition_tensor_view<1x{k}x{dtype}>)")
        add(f"{d}pto.tstore ins(%where{n} : !where) outs(%pat{n} : !pto.partition_tensor_view<1x{k}xui32>)")
        flag("set", "MTE3", "V", n, d)
    add("    }")
    for n in (0, 1):
        flag("wait", "V", "MTE2", n)
        flag("wait", "MTE3", "V", n)
    add("    return")
    add("  }")
    add("}")
    return "\n".join(text) + "\n"
