"""Forms of integers hold in every iteration: random arithmetic in loops with constant bounds, evaluated.

Numbers that have an open end are assumed not to wrap, so results computed from them are not compared.
"""

from __future__ import annotations

import itertools
import random

from tests.sampling import EVERY
from tests.seeds import seeds

import pto
from pto.engine.reference import scalars
from pto.ir.core import Operation, Value, constant_of
from pto.passes.sync.affine import BIG, Affine, Forms, Symbol

TYPES = ("i8", "i16", "i32", "i64", "index", "ui8")
TWO = "addi subi muli shli remsi remui andi minsi minui maxsi maxui divsi divui floordivsi shrui shrsi ori xori".split()
CONSTANTS = (
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    31,
    64,
    100,
    127,
    -1,
    -2,
    -100,
    -128,
    32767,
    1 << 20,
    1 << 30,
    -(1 << 31),
    1 << 62,
)


def body(chance: random.Random, count: int) -> str:
    """Lines that compute numbers of all types of the numbers before them, the induction variables first."""
    bits = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64, "ui8": 8}
    known = {t: [f"%{t}_{n}" for n in range(3)] for t in TYPES}
    lines = []
    for type, names in known.items():
        for name in names:
            low, high = (0, 255) if type == "ui8" else (-1 << bits[type] - 1, (1 << bits[type] - 1) - 1)
            number = chance.choice([n for n in CONSTANTS if low <= n <= high])
            lines.append(f"{name} = arith.constant {number} : {type}")
    known["index"] += ["%i", "%j"] * 3
    for n in range(count):
        type = chance.choice(TYPES)
        if chance.random() < 0.4:
            have = chance.choice([t for t in TYPES if t != type])
            if "index" in (have, type):
                name = chance.choice(("index_cast", "index_castui"))
            elif bits[have] == bits[type]:
                name = "bitcast"
            else:
                name = "trunci" if bits[have] > bits[type] else chance.choice(("extsi", "extui"))
            lines.append(f"%v{n} = arith.{name} {chance.choice(known[have])} : {have} to {type}")
        elif chance.random() < 0.1:
            a, b = (chance.choice(known[type]) for _ in range(2))
            lines.append(f"%t{n} = arith.cmpi slt, {a}, {b} : {type}")
            lines.append(f"%v{n} = arith.select %t{n}, {b}, {a} : {type}")
        else:
            a, b = (chance.choice(known[type]) for _ in range(2))
            lines.append(f"%v{n} = arith.{chance.choice(TWO)} {a}, {b} : {type}")
        known[type] += [f"%v{n}"] * 2
    return "\n".join(lines)


def program(chance: random.Random) -> str:
    (a, b, s), (c, d, t) = (
        (chance.randint(-3, 3), chance.randint(1, 9), chance.randint(1, 3)) for _ in range(2)
    )
    ends = {"a": a, "b": a + b, "s": s, "c": c, "d": c + d, "t": t}
    heads = "\n".join(f"%{k} = arith.constant {n} : index" for k, n in ends.items())
    loops = "scf.for %i = %a to %b step %s {\nscf.for %j = %c to %d step %t {"
    return f"func.func @f() {{\n{heads}\n{loops}\n{body(chance, 24)}\n}}\n}}\nreturn\n}}\n"


def numbers(ops: list[Operation], given: dict[Value, int]) -> dict[Value, int]:
    """Return the value of every definition in an iteration, without undefined ones."""
    found = dict(given)
    for op in ops:
        if op.name == "arith.constant":
            found[op.result] = int(constant_of(op.result) or 0)
        elif all(v in found for v in op.operands):
            try:
                found[op.result] = scalars.evaluator(op)(*(found[v] for v in op.operands))
            except scalars.IllegalInstruction:
                continue
    return found


def value(form: Affine, symbols: dict[Symbol, int], number: int) -> int | None:
    """Return the number of a form; a symbol that appears first gets its number from the computed value."""
    unknown = [s for s in form.terms if s not in symbols]
    if len(unknown) == 1:
        (symbol,) = unknown
        rest, odd = divmod(number - (value(form.plus(Affine(0, {symbol: form.terms[symbol]}), -1), symbols, 0) or 0),
                           form.terms[symbol])  # fmt: skip
        assert (
            not odd
            and (symbol.low <= rest or symbol.low <= -BIG)
            and (rest <= symbol.high or symbol.high >= BIG)
        )
        symbols[symbol] = rest
    elif unknown:
        return None
    return form.constant + sum(n * symbols[s] for s, n in form.terms.items())


def check(seed: int) -> int:
    module = pto.parse(program(random.Random(seed)))
    outer, inner = (op for op in module.walk() if op.name == "scf.for")
    ops = [op for op in module.walk() if op.name.startswith("arith.")]
    forms, linear = Forms(), 0
    bounded: set[Value] = set()
    for op in ops:
        if all(v in bounded or v.op is None for v in op.operands) and None not in forms.of(op.result).ends:
            bounded.add(op.result)
    loops = [
        (loop.regions[0].blocks[0].args[0], [constant_of(v) for v in loop.operands[:3]])
        for loop in (outer, inner)
    ]
    for turn in itertools.product(*(range(*map(int, ends)) for _, ends in loops)):  # type: ignore[arg-type]
        given = {iv: n for (iv, _), n in zip(loops, turn, strict=True)}
        symbols: dict[Symbol, int] = {}
        for iv, n in given.items():
            assert value(forms.of(iv), symbols, n) == n
        for v, n in numbers(ops, given).items():
            if v.op is not None and not bounded.issuperset(x for x in v.op.operands if x.op is not None):
                continue
            form = forms.of(v)
            low, high = form.range
            assert (low <= n or low <= -BIG) and (n <= high or high >= BIG), (v.name, n, form.range)
            assert value(form, symbols, n) in (n, None), (v.name, n, form.key)
            linear += len(form.terms) > 0 and all(s.loop is not None for s in form.terms)
    return linear


def test_forms_hold_in_every_iteration() -> None:
    assert sum(map(check, seeds(range(60 if EVERY else 20)))) > (1000 if EVERY else 300)
