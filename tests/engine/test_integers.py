"""One arithmetic of integers: constant folding, both engines and canonicalized programs give the same numbers."""

from __future__ import annotations

import random

import numpy as np
from tests.each import each
from tests.passes.running import result
from tests.sampling import EVERY, some

import pto
from pto.ir.core import constant_of

from .integers import TYPES, Case, as_words, cases, edges, of_word, operands, rows, to_word, undefined
from .native.without_pack import compile_calls
from .programs import program

Numbers = tuple[int, ...]


def test_every_row_is_folded() -> None:
    """Whatever the table defines, and only that."""

    def check(case: Case) -> None:
        unlike = [n for n in operands(case) if (case.fold(n) is None) != undefined(case, n)]
        assert not unlike, unlike[:5]

    assert {case.row.name for case in cases()} == {row.name for row in rows()} and len(rows()) >= 34
    assert {t for case in cases() for t in case.types} == set(TYPES)
    each(check, cases())


def kernel(same: list[Case]) -> str:
    """Cases with the same types, on numbers from arrays."""
    types = same[0].types
    load = [
        f"%l{n} = pto.load_scalar %x{n}[%i] : !pto.ptr<i64> -> i64\n{of_word(f'%l{n}', t, f'%a{n}')}"
        for n, t in enumerate(types)
    ]
    body: list[str] = []
    count = 0
    for case in same:
        names = [f"%r{count + n}" for n in range(len(case.results))]
        body.append(case.line(names, [f"%a{n}" for n in range(len(types))]))
        for name, type in zip(names, case.results, strict=True):
            body += [
                to_word(name, type, f"%w{count}"), f"%k{count} = arith.constant {count} : index",
                f"%p{count} = arith.addi %first, %k{count} : index",
                f"pto.store_scalar %w{count}, %out[%p{count}] : !pto.ptr<i64>, i64",
            ]  # fmt: skip
            count += 1
    arguments = "".join(f"%x{n}: !pto.ptr<i64>, " for n in range(len(types)))
    lines = "\n".join((*load, *body))
    return program(
        f"""%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %count = arith.constant {count} : index
        scf.for %i = %c0 to %n step %c1 {{
          %first = arith.muli %i, %count : index
          {lines}
        }}""",
        f"{arguments}%out: !pto.ptr<i64>, %n: index",
        "attributes {pto.entry}",
    )


def test_engines_compute_what_is_folded() -> None:
    groups: dict[tuple[object, ...], tuple[list[Case], list[Numbers]]] = {}
    for case in cases():
        defined = [n for n in operands(case) if case.fold(n) is not None]
        groups.setdefault((case.types, *defined), ([], some(defined, 5)))[0].append(case)

    modules = [pto.parse(kernel(same)) for same, _ in groups.values()]
    compile_calls(modules)

    def check(module: pto.Module, same: list[Case], given: list[Numbers]) -> None:
        want = as_words(r for numbers in given for case in same for r in case.fold(numbers) or ())
        arrays = [np.array(as_words(column), np.int64) for column in zip(*given, strict=True)]
        for engine in ("reference", "native"):
            got = np.zeros(len(want), np.int64)
            pto.kernel(module, engine=engine)(*arrays, got, len(given))
            names = [f"{case.name} #{n}" for case in same for n in range(len(case.results))]
            unlike = [
                (engine, names[k % len(names)], given[k // len(names)], want[k], int(got[k]))
                for k in np.nonzero(got != want)[0]
            ]
            assert not unlike, unlike[:5]

    count = sum(len(case.results) * len(given) for same, given in groups.values() for case in same)
    assert count > (30_000 if EVERY else 6_000)
    each(check, [(module, *group) for module, group in zip(modules, groups.values(), strict=True)])


def test_canonicalized_programs_compute_the_same() -> None:
    """Constants instead of every operation, of which each is stored."""

    def check(type: str) -> None:
        chance = random.Random(type)
        lines: list[str] = []
        want: list[int] = []
        used = {n: f"%{type}_{k}" for k, n in enumerate(edges(type))}
        known = [
            (c, n) for c in cases() if set(c.types) == {type} for n in operands(c) if c.fold(n) is not None
        ]
        for case, numbers in chance.sample(known, min(len(known), 250 if EVERY else 50)):
            names = [f"%r{len(want) + n}" for n in range(len(case.results))]
            lines.append(case.line(names, [used[n] for n in numbers]))
            for name, result_type, number in zip(names, case.results, case.fold(numbers) or (), strict=True):
                at = len(want)
                lines.append(to_word(name, result_type, f"%w{at}"))
                lines.append(f"%k{at} = arith.constant {at} : index")
                lines.append(f"pto.store_scalar %w{at}, %out[%k{at}] : !pto.ptr<i64>, i64")
                want += as_words([number])
        heads = [
            f"{name} = arith.constant {n} : {type}"
            if type != "i1"
            else f"{name} = arith.constant {n == 1}".lower()
            for n, name in used.items()
        ]
        before = pto.parse(program("\n".join((*heads, *lines))))
        after = result(before, "canonicalize")
        assert {op.name for op in after.walk() if op.name.startswith(("arith.", "math."))} == {
            "arith.constant"
        }
        for module in (before, after):
            out = np.zeros(len(want), np.int64)
            pto.kernel(module, engine="reference")(out)
            assert out.tolist() == want

    each(check, TYPES)


def test_undefined_results_stay_operations() -> None:
    """A zero divisor and the like are not errors of a program that does not run them, and not constants."""

    def check(case: Case) -> None:
        (numbers, *_) = [n for n in operands(case) if undefined(case, n)]
        heads = [f"%a{n} = arith.constant {x} : {case.types[0]}" for n, x in enumerate(numbers)]
        store = "%c0 = arith.constant 0 : index\npto.store_scalar %w, %out[%c0] : !pto.ptr<i64>, i64"
        body = "\n".join(
            (*heads, case.line(["%r"], ["%a0", "%a1"]), to_word("%r", case.results[0], "%w"), store)
        )
        module = result(program(body), "canonicalize")
        (op,) = (op for op in module.walk() if op.row is case.row)
        assert constant_of(op.result) is None

    each(
        check,
        [c for c in cases() if c.types[0] in ("i8", "i32") and any(undefined(c, n) for n in operands(c))],
    )


def test_large_integers_round_once() -> None:
    """A double on the way from an i64 to an f32 would round first."""
    number = (1 << 60) + (1 << 36) + 1
    text = program(
        """%c0 = arith.constant 0 : index
        %a = pto.load_scalar %x[%c0] : !pto.ptr<i64> -> i64
        %f = arith.sitofp %a : i64 to f32
        %g = arith.uitofp %a : i64 to f32
        %h = arith.constant 1 : index
        pto.store_scalar %f, %out[%c0] : !pto.ptr<f32>, f32
        pto.store_scalar %g, %out[%h] : !pto.ptr<f32>, f32""",
        "%x: !pto.ptr<i64>, %out: !pto.ptr<f32>", "attributes {pto.entry}",
    )  # fmt: skip
    for engine in ("reference", "native"):
        out = np.zeros(2, np.float32)
        pto.kernel(pto.parse(text), engine=engine)(np.array([number]), out)
        assert out.tolist() == [float((1 << 60) + (1 << 37))] * 2, engine
