"""Programs for bench_native.py: operations on tiles that lie on chip, over and over."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

#: A tile type by the letter that operations name it with.
TILE = "!pto.tile_buf<vec, {}>"
COLUMN = "!pto.tile_buf<vec, {}x1x{}, blayout=col_major>"
MAT = "!pto.tile_buf<mat, 128x128xf16, blayout=col_major, slayout=row_major>"
LEFT = "!pto.tile_buf<left, 128x128xf16, slayout=row_major>"
RIGHT = "!pto.tile_buf<right, 128x128xf16, slayout=col_major>"
ACC = "!pto.tile_buf<acc, 128x128xf32, blayout=col_major, slayout=row_major, fractal=1024>"


def operation(name: str, ins: str, out: str, types: dict[str, str]) -> str:
    """An instruction on tiles, by their names; a name without a tile is a number of the program."""
    names = ins.split()
    given = ", ".join(f"%{n}" for n in names)
    kinds = ", ".join(types.get(n, "f32") for n in names)
    return f"pto.{name} ins({given} : {kinds}) outs(%{out} : {types[out]})"


def in_tiles(calls: Sequence[tuple[str, str, str]], shape: tuple[int, int], dtype: str = "f32") -> str:
    """Return a kernel (x, y, z, n): tiles a and b are loaded, operations (name, inputs, outputs) follow n
    times; c is stored. `s` and `u` are columns, `two` is a number."""
    rows, cols = shape
    tile, size = TILE.format(f"{rows}x{cols}x{dtype}"), rows * cols * (2 if dtype == "f16" else 4)
    types = dict.fromkeys("abc", tile) | dict.fromkeys("su", COLUMN.format(rows, dtype))
    if any("d" in (*ins.split(), out) for _, ins, out in calls):
        types["d"] = TILE.format(f"{cols}x{rows}x{dtype}")
    window = f"!pto.partition_tensor_view<{rows}x{cols}x{dtype}>"
    body = [f"%two = arith.constant 2.0 : {dtype}"]
    for n, (name, type) in enumerate(types.items()):
        at = {"s": 3 * size, "u": 3 * size + 4096, "d": 2 * size}.get(name, n * size)
        body += [
            f"%at_{name} = arith.constant {at} : i64",
            f"%{name} = pto.alloc_tile addr = %at_{name} : {type}",
        ]
    for pointer in "xyz":
        body.append(
            f"%v{pointer} = pto.make_tensor_view %{pointer}, shape = [%rows, %cols], strides = [%cols, %c1]"
            f" : !pto.tensor_view<{rows}x{cols}x{dtype}>"
        )
        body.append(
            f"%p{pointer} = pto.partition_view %v{pointer}, offsets = [%c0, %c0], sizes = [%rows, %cols]"
            f" : !pto.tensor_view<{rows}x{cols}x{dtype}> -> {window}"
        )
    body += [f"pto.tload ins(%p{p} : {window}) outs(%{t} : {tile})" for p, t in ("xa", "yb", "yc")]
    body += looped([operation(*call, types) for call in calls])
    body.append(f"pto.tstore ins(%c : {tile}) outs(%pz : {window})")
    pointers = ", ".join(f"%{p}: !pto.ptr<{dtype}>" for p in "xyz")
    numbers = {"c0": 0, "c1": 1, "rows": rows, "cols": cols}
    return kernel(f"{pointers}, %n: index", numbers, body)


def looped(body: Sequence[str]) -> list[str]:
    return ["scf.for %i = %c0 to %n step %c1 {", *body, "}"]


def kernel(arguments: str, numbers: dict[str, int], body: Sequence[str], target: str = "cpu") -> str:
    constants = [f"%{name} = arith.constant {value} : index" for name, value in numbers.items()]
    inside = "\n".join((*constants, *body))
    head = f'module attributes {{pto.target_arch = "{target}"}}'
    return f"{head} {{ func.func @k({arguments}) attributes {{pto.entry}} {{\n{inside}\nreturn\n}} }}"


def of_operations(count: int) -> str:
    """A kernel (x, y, z) of so many tile operations without addresses and flags."""
    tile, view = TILE.format("16x64xf32"), "!pto.tensor_view<16x64xf32>"
    window = "!pto.partition_tensor_view<16x64xf32>"
    body: list[str] = []
    for p in "xyz":
        body.append(
            f"%v{p} = pto.make_tensor_view %{p}, shape = [%rows, %cols], strides = [%cols, %c1] : {view}"
        )
        body.append(
            f"%p{p} = pto.partition_view %v{p}, offsets = [%c0, %c0], sizes = [%rows, %cols]"
            f" : {view} -> {window}"
        )
    body += [f"%t{n} = pto.alloc_tile : {tile}" for n in range(4)]
    body += [f"pto.tload ins(%p{p} : {window}) outs(%t{n} : {tile})" for n, p in enumerate("xy")]
    names = ("tadd", "tsub", "tmul", "tmax", "tmin")
    for n in range(count - 3):
        a, b, c = (n + k for k in (0, 1, 2))
        body.append(
            f"pto.{names[n % len(names)]} ins(%t{a % 4}, %t{b % 4} : {tile}, {tile}) outs(%t{c % 4} : {tile})"
        )
    body.append(f"pto.tstore ins(%t{(count - 2) % 4} : {tile}) outs(%pz : {window})")
    pointers = ", ".join(f"%{p}: !pto.ptr<f32>" for p in "xyz")
    return kernel(pointers, {"c0": 0, "c1": 1, "rows": 16, "cols": 64}, body, "a3")


def carried(name: str, start: str, type: str, body: Sequence[str], last: str) -> list[str]:
    """n times some operations, from a value to the next one."""
    head = f"%end = scf.for %i = %c0 to %n step %c1 iter_args(%{name} = %{start}) -> ({type}) {{"
    return [head, *body, f"scf.yield %{last} : {type}", "}"]


def of_scalars(count: int) -> str:
    """Return a kernel (out, n): n times some operations on numbers, each on the result of the one before."""
    names = [f"v{k}" for k in range(count + 1)]
    body = [
        f"%{b} = arith.{'xori' if k % 2 else 'addi'} %{a}, %i : index"
        for k, (a, b) in enumerate(pairwise(names))
    ]
    loop = carried(names[0], "c0", "index", body, names[-1])
    out = [
        "%number = arith.index_cast %end : index to i32",
        "pto.store_scalar %number, %out[%c0] : !pto.ptr<i32>, i32",
    ]
    return kernel("%out: !pto.ptr<i32>, %n: index", {"c0": 0, "c1": 1}, [*loop, *out])


def of_registers(count: int) -> str:
    """A kernel (n): n times as many sums of vector registers."""
    v, m, ub = "!pto.vreg<64xf32>", "!pto.mask<b32>", "!pto.ptr<f32, ub>"
    names = [f"v{k}" for k in range(count + 1)]
    sums = [f"%{b} = pto.vadd %{a}, %one, %all : {v}, {v}, {m} -> {v}" for a, b in pairwise(names)]
    body = [
        "%f1 = arith.constant 1.0 : f32", "%at = arith.constant 0 : i64",
        f"%to = pto.castptr %at : i64 -> {ub}",
        "pto.vecscope {", f'%all = pto.pset_b32 "PAT_ALL" : {m}', f"%one = pto.vbr %f1 : f32 -> {v}",
        *carried(names[0], "one", v, sums, names[-1]),
        f'pto.vsts %end, %to[%c0], %all {{dist = "NORM_B32"}} : {v}, {ub}, {m}', "}",
    ]  # fmt: skip
    return kernel("%n: index", {"c0": 0, "c1": 1}, body, "a5")


def product() -> str:
    """A kernel (a, b, c, n): operands to the cube, n times their product, and out."""
    body: list[str] = []
    for name, type, at in (
        ("ma", MAT, 0),
        ("mb", MAT, 32768),
        ("left", LEFT, 0),
        ("right", RIGHT, 0),
        ("acc", ACC, 0),
    ):
        body += [
            f"%at_{name} = arith.constant {at} : i64",
            f"%{name} = pto.alloc_tile addr = %at_{name} : {type}",
        ]
    for name, dtype in (("a", "f16"), ("b", "f16"), ("c", "f32")):
        view, window = f"!pto.tensor_view<128x128x{dtype}>", f"!pto.partition_tensor_view<128x128x{dtype}>"
        body.append(
            f"%v{name} = pto.make_tensor_view %{name}, shape = [%c128, %c128], strides = [%c128, %c1]"
            f" : {view}"
        )
        body.append(
            f"%p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%c128, %c128]"
            f" : {view} -> {window}"
        )
    for name, to in (("a", "left"), ("b", "right")):
        body.append(
            f"pto.tload ins(%p{name} : !pto.partition_tensor_view<128x128xf16>) outs(%m{name} : {MAT})"
        )
        body.append(f"pto.tmov ins(%m{name} : {MAT}) outs(%{to} : {LEFT if to == 'left' else RIGHT})")
    body += looped([f"pto.tmatmul ins(%left, %right : {LEFT}, {RIGHT}) outs(%acc : {ACC})"])
    body.append(f"pto.tstore ins(%acc : {ACC}) outs(%pc : !pto.partition_tensor_view<128x128xf32>)")
    arguments = "%a: !pto.ptr<f16>, %b: !pto.ptr<f16>, %c: !pto.ptr<f32>, %n: index"
    return kernel(arguments, {"c0": 0, "c1": 1, "c128": 128}, body, "a3")


def stream() -> str:
    """A kernel (x, y, z, n): a long array through tiles of 64x128: load, load, add, store."""
    tile, window = TILE.format("64x128xf32"), "!pto.partition_tensor_view<64x128xf32>"
    view = "!pto.tensor_view<?x128xf32>"
    body: list[str] = []
    for n, name in enumerate("abc"):
        body += [
            f"%at_{name} = arith.constant {n * 32768} : i64",
            f"%{name} = pto.alloc_tile addr = %at_{name} : {tile}",
        ]
    for p in "xyz":
        body.append(
            f"%v{p} = pto.make_tensor_view %{p}, shape = [%n, %c128], strides = [%c128, %c1] : {view}"
        )
    body.append("scf.for %i = %c0 to %n step %c64 {")
    for p in "xyz":
        body.append(
            f"%p{p} = pto.partition_view %v{p}, offsets = [%i, %c0], sizes = [%c64, %c128]"
            f" : {view} -> {window}"
        )
    body += [f"pto.tload ins(%p{p} : {window}) outs(%{t} : {tile})" for p, t in ("xa", "yb")]
    body.append(f"pto.tadd ins(%a, %b : {tile}, {tile}) outs(%c : {tile})")
    body += [f"pto.tstore ins(%c : {tile}) outs(%pz : {window})", "}"]
    pointers = ", ".join(f"%{p}: !pto.ptr<f32>" for p in "xyz")
    return kernel(f"{pointers}, %n: index", {"c0": 0, "c1": 1, "c64": 64, "c128": 128}, body)
