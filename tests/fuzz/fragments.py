"""Hostile pieces of program text, by kind: symbols, strings, types, attributes, locations, affine maps,
statements.

Pieces are grammatical more often than not, so that they reach the stages after the parser. Names and
expressions look like Python, C++ or paths; an evaluation of one of them is detected by the canary of
`tests/security/watch.py`. Every function is a pure function of a `Random`.
"""

from __future__ import annotations

from random import Random

from ..security.watch import CANARY

NUMBERS = (
    "0", "-1", "1", "7", "31", "32", "4095", "65536", "2147483648", "4294967296", "9223372036854775808",
    "18446744073709551616", "1" * 40, "9" * 5000, "0x", "0X1F", "0xFFFFFFFFFFFFFFFFFF", "0x" + "F" * 5000, "024",
    "1e400", "1.0e", ".5", "0b1", "1_000", "?",
)  # fmt: skip
#: Expressions that do something where they are evaluated, by Python or by a C++ compiler.
CODE = (
    f"__import__('os').system('touch {CANARY}')", f"open('{CANARY}', 'w')", f"exec(\"open('{CANARY}','w')\")",
    "d0.__class__.__mro__", "(lambda: d0)()", "d0 if d0 else 1", "[d0 for d0 in range(9)][0]", "d0 ** 99999999",
    "d0 << 99999999999", "1 or d0", "d0(s0)", "d0[0]", "d0; import os", "d0\\nimport os", "{d0}", "f'{d0}'",
    f'); system("touch {CANARY}"); //', f'*/ int x = system("touch {CANARY}"); /*', f'"; system("touch {CANARY}"); "',
    f"\\\\\\n#include </dev/zero>\\nint {CANARY};", "??/", "R\\\"(x)\\\"", "#pragma GCC error",
)  # fmt: skip
PATHS = (
    "/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/self/environ", "/etc/passwd", f"../{CANARY}", f"/tmp/{CANARY}",
    "", ".", "..", "/", "a\\00b", "a\\0Ab", "~", "$HOME", f"$(touch {CANARY})", f"`touch {CANARY}`", "x" * 5000, "-", "k.pto",
    "<script>alert(1)</script>", "%s%n%d", "{0}", "{0.__class__}", "\\1B[2J",
)  # fmt: skip
_WORDS = (
    "x",
    "d0",
    "value",
    "pto.entry",
    "sym_name",
    "callee",
    "function_type",
    "operandSegmentSizes",
    "predicate",
)
_SCALARS = (
    "i1",
    "i8",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "index",
    "none",
    "si4",
    "ui64",
    "i128",
    "i99999",
    "i0",
    "f8E4M3FN",
)


def number(r: Random) -> str:
    """A number that a count, a size or a bound may be."""
    return r.choice(NUMBERS) if r.random() < 0.5 else str(r.randrange(r.choice((2, 8, 300, 70000))))


def string(r: Random) -> str:
    """A quoted text with escapes."""
    inside = r.choice((*CODE, *PATHS, *_WORDS))
    if r.random() < 0.3:
        inside += r.choice(
            ("\\\\", "\\n", "\\t", "\\22", "\\0", "\\FF", "\\u0041", "\\q", "\\", "\0", "\n", "é", "\ud7ff")
        )
    return '"' + inside.replace('"', '\\"' if r.random() < 0.9 else '"') + '"'


def symbol(r: Random) -> str:
    """A name of a function, quoted or not."""
    if r.random() < 0.4:
        return "@" + r.choice(
            ("k", "f", "main", "operator", "class", "int", "_", "a$b", "a.b", "system", "0", "__init__")
        )
    return "@" + string(r) + ("::@" + string(r) if r.random() < 0.1 else "")


def affine(r: Random, depth: int = 3) -> str:
    """An expression of a map."""
    if depth == 0 or r.random() < 0.3:
        return r.choice(("d0", "d1", "s0", "s1", "d7", "(d0)", "-d0", number(r), r.choice(CODE)))
    operator = r.choice(("+", "-", "*", "floordiv", "ceildiv", "mod", "mod", "/", "//", "**", "and", ""))
    made = f"{affine(r, depth - 1)} {operator} {affine(r, depth - 1)}"
    return f"({made})" if r.random() < 0.5 else made


def affine_map(r: Random) -> str:
    """A map or a set."""
    dims = ", ".join(f"d{n}" for n in range(r.randrange(3)))
    symbols = f"[{', '.join(f's{n}' for n in range(r.randrange(3)))}]" if r.random() < 0.6 else ""
    results = ", ".join(affine(r) for _ in range(r.choice((1, 1, 1, 0, 2))))
    if r.random() < 0.2:
        return f"affine_set<({dims}){symbols} : ({results} {r.choice(('>=', '==', '<', ''))} 0)>"
    return f"affine_map<({dims}){symbols} -> ({results})>"


def shape(r: Random) -> str:
    return "".join(
        f"{number(r) if r.random() < 0.4 else r.choice(('?', '16', '64', '8'))}x"
        for _ in range(r.randrange(4))
    )


def type(r: Random, depth: int = 2) -> str:
    """A type: ours, MLIR's, or opaque."""
    scalar = r.choice(_SCALARS)
    kind = r.randrange(12 if depth else 8)
    if kind < 2:
        return scalar
    if kind == 2:
        return f"!pto.ptr<{scalar}{r.choice(('', ', ub', ', gm', ', ' + string(r)))}>"
    if kind == 3:
        options = r.choice(
            (
                "",
                ", blayout=col_major",
                ", slayout=row_major",
                f", fractal={number(r)}",
                f", valid={shape(r)[:-1]}",
            )
        )
        return f"!pto.tile_buf<{r.choice(('vec', 'mat', 'left', 'acc', 'x'))}, {shape(r)}{scalar}{options}>"
    if kind == 4:
        layout = r.choice(
            (
                "",
                f", {affine_map(r)}",
                f", strided<[{number(r)}], offset: {number(r)}>",
                ", #pto.address_space<gm>",
            )
        )
        return f"memref<{shape(r)}{scalar}{layout}>"
    if kind == 5:
        return f"!pto.{r.choice(('tensor_view', 'partition_tensor_view', 'local_array', 'conv_tile', 'group', 'nothing'))}<{shape(r)}{scalar}>"
    if kind == 6:
        return f"{r.choice(('tensor', 'vector'))}<{shape(r)}{scalar}>"
    if kind == 7:
        return f"!{r.choice(('other', 'pto', 'x.y'))}.{r.choice(('thing', 'ptr', 'tile_buf'))}<{string(r)}, [{number(r)}]>"
    if kind == 8:
        return f"({type(r, depth - 1)}, {type(r, depth - 1)}) -> {type(r, depth - 1)}"
    if kind == 9:
        return f"tuple<{type(r, depth - 1)}>"
    return f"!pto.ptr<{type(r, depth - 1)}>"


def attribute(r: Random, depth: int = 2) -> str:
    """The value of an attribute."""
    kind = r.randrange(13 if depth else 9)
    if kind == 0:
        return f"{number(r)} : {r.choice(_SCALARS)}"
    if kind == 1:
        return string(r)
    if kind == 2:
        return affine_map(r)
    if kind == 3:
        return symbol(r)
    if kind == 4:
        return type(r, 1)
    if kind == 5:
        inside = r.choice(
            (
                number(r),
                "[1, 2]",
                "[[1], [2, 3]]",
                '"0xFF"',
                '"0x' + "F" * 64 + '"',
                "",
                "true",
                string(r),
                "[" * 50,
            )
        )
        return f"dense<{inside}> : {r.choice(('tensor', 'vector'))}<{shape(r)}{r.choice(_SCALARS)}>"
    if kind == 6:
        return f"array<{r.choice(_SCALARS)}{r.choice((': ', ''))}{', '.join(number(r) for _ in range(r.randrange(4)))}>"
    if kind == 7:
        return f"#{r.choice(('pto', 'other', 'arith'))}.{r.choice(('pipe', 'event', 'fastmath', 'thing'))}<{r.choice((string(r), 'PIPE_V', number(r)))}>"
    if kind == 8:
        return r.choice(
            (
                "unit",
                "true",
                "#gt",
                "opaque<" + string(r) + ", " + string(r) + ">",
                "loc(unknown)",
                location(r),
            )
        )
    if kind == 9:
        return "[" + ", ".join(attribute(r, depth - 1) for _ in range(r.randrange(4))) + "]"
    if kind == 10:
        return dictionary(r, depth - 1)
    return f"dense_resource<{r.choice(_WORDS)}> : tensor<{shape(r)}f32>"


def dictionary(r: Random, depth: int = 2) -> str:
    names = [string(r) if r.random() < 0.2 else r.choice(_WORDS) for _ in range(r.randrange(4))]
    return (
        "{"
        + ", ".join(f"{name} = {attribute(r, depth)}" if r.random() < 0.9 else name for name in names)
        + "}"
    )


def location(r: Random, depth: int = 2) -> str:
    """Return a location; its path must not be opened."""
    return f"loc({_place(r, depth)})"


def _place(r: Random, depth: int) -> str:
    kind = r.randrange(6) if depth else 0
    path = '"' + r.choice(PATHS) + '"'
    if kind < 2:
        return f"{path}:{number(r)}:{number(r)}"
    if kind == 2:
        return f"fused[{_place(r, depth - 1)}, {_place(r, depth - 1)}]"
    if kind == 3:
        return f"callsite({_place(r, depth - 1)} at {_place(r, depth - 1)})"
    if kind == 4:
        return f"{string(r)}({_place(r, depth - 1)})"
    return r.choice(("unknown", path, "#here", "fused<" + attribute(r, 0) + ">[]"))


def statement(r: Random) -> str:
    """An operation with hostile parts; its operands are `%n : index`, `%m : memref<?xf32>` and `%p : !pto.ptr<f32>`."""
    made = r.choice((
        lambda: f"%a = affine.apply {affine_map(r)}(%n)[%n]", lambda: f"%a = arith.constant {attribute(r, 1)}",
        lambda: f"%a = affine.min {affine_map(r)}(%n)", lambda: f"%a:{number(r)} = call {symbol(r)}(%n) : (index) -> index",
        lambda: f"scf.for %i = %n to %n step %n {{\n}} {dictionary(r)}", lambda: f"{string(r)}(%n) {dictionary(r)} : (index) -> ()",
        lambda: f'"pto.print"(%n) <{{format = {string(r)}}}> : (index) -> ()', lambda: f"pto.print ins({string(r)}, %n : index)",
        lambda: f"%a = memref.alloc() : {type(r)}", lambda: f"%a = pto.alloc_tile : {type(r)}",
        lambda: f"%a = pto.load_scalar %p[%n] : {type(r)} -> {type(r)}", lambda: f"pto.barrier #pto.pipe<{r.choice(CODE)}>",
        lambda: f"%a = memref.subview %m[{number(r)}] [{number(r)}] [{number(r)}] : {type(r)} to {type(r)}",
        lambda: f"cf.switch %n : index, [default: ^x, {number(r)}: ^y]", lambda: f"scf.index_switch %n\ncase {number(r)} {{\n}}\ndefault {{\n}}",
        lambda: f"%a = memref.load %m[{affine(r)}] : {type(r)}", lambda: f"%a = arith.cmpi {r.choice(_WORDS)}, %n, %n : {type(r)}",
        lambda: f"affine.if {affine_map(r)}(%n)[%n] {{\n}}", lambda: f"affine.for %i = 0 to {affine_map(r)}(%n) step {number(r)} {{\n}}",
    ))()  # fmt: skip
    return made + (" " + location(r) if r.random() < 0.2 else "")


def program(r: Random) -> str:
    """A module that is well-formed but for its pieces."""
    aliases = r.choice(("", f"!t = {type(r)}\n", f"#gt = {attribute(r)}\n", f"#here = {location(r)}\n"))
    head = (
        "(%n: index, %m: memref<?xf32>, %p: !pto.ptr<f32>"
        + (f", %o: {type(r)}" if r.random() < 0.3 else "")
        + ")"
    )
    more = f" attributes {dictionary(r)}" if r.random() < 0.4 else " attributes {pto.entry}"
    name = symbol(r) if r.random() < 0.5 else "@k"
    body = "\n".join(statement(r) for _ in range(r.randrange(4)))
    outside = f" attributes {dictionary(r)}" if r.random() < 0.3 else ""
    return f"{aliases}module{outside} {{\nfunc.func {name}{head}{more} {{\n{body}\nreturn\n}}\n}}\n"
