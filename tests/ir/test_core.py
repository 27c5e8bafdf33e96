"""Operations, uses, replacement, constants and the builder."""

from __future__ import annotations

import pytest
from tests.counting import calls

from pto import DiagnosticError, kernel
from pto.asm import parse, to_text
from pto.ir import Builder, Operation, ScalarType, StrAttr, Value, constant_of, replace_uses, uses
from pto.ir.types import INDEX, ElemName, TileBufType
from pto.isa.machine import Pipe

F32 = ScalarType("f32")
TILE = TileBufType(F32, "vec", 16, 64, 16, 64)

PROGRAM = """\
func.func @f(%n: index, %c: i1) -> index {
  %one = arith.constant 1 : index
  %a = arith.addi %n, %one : index
  %r = scf.if %c -> (index) {
    scf.yield %a : index
  } else {
    %b = arith.addi %a, %one : index
    scf.yield %b : index
  }
  cf.br ^end(%a : index)
^end(%x: index):
  return %r : index
}
"""


def test_walk_is_pre_order() -> None:
    names = [op.name for op in parse(PROGRAM).walk()]
    assert names == [
        "builtin.module", "func.func", "arith.constant", "arith.addi", "scf.if", "scf.yield", "arith.addi",
        "scf.yield", "cf.br", "func.return",
    ]  # fmt: skip


def test_uses_reach_into_regions_and_branches() -> None:
    module = parse(PROGRAM)
    body = module.functions[0].regions[0]
    a = next(op.result for op in module.walk() if op.results and op.result.name == "a")
    found = [(op.name, index) for op, index in uses(body)[a]]
    assert found == [("scf.yield", 0), ("arith.addi", 0), ("cf.br", -1)]


def test_replace_uses_everywhere() -> None:
    module = parse(PROGRAM)
    body = module.functions[0].regions[0]
    values = {r.name: r for op in module.walk() for r in op.results}
    assert replace_uses(body, values["a"], values["one"]) == 3
    assert "scf.yield %one" in to_text(module) and "cf.br ^end(%one : index)" in to_text(module)
    assert values["a"] not in uses(body)


def test_constants_are_seen_through_casts() -> None:
    text = "func.func @f(%x: i32) {\n  %c = arith.constant 7 : i32\n  %i = arith.index_cast %c : i32 to index\n  %j = arith.index_cast %x : i32 to index\n  return\n}\n"
    values = {r.name: r for op in parse(text).walk() for r in op.results}
    assert constant_of(values["i"]) == 7
    assert constant_of(values["j"]) is None


def test_constants_are_numbers_of_their_type() -> None:
    """Constants as engines compute them: all rows and types are in tests/engine/test_integers.py."""
    body = """\
  %byte = arith.constant 200 : i8
  %yes = arith.constant -1 : i1
  %wide = arith.extui %byte : i8 to i64
  %half = arith.constant 0.1 : f16
  %low, %high = arith.mulsi_extended %byte, %byte : i8
  %float = arith.sitofp %byte : i8 to f32
  %sum = arith.addf %float, %float : f32
  %zero = arith.constant 0 : i8
  %none = arith.divsi %byte, %zero : i8
  %chosen = arith.select %yes, %half, %half : f16
  %dense = arith.constant dense<[1, 2, 3, 4]> : vector<4xi16>
"""
    found = {
        r.name: constant_of(r)
        for op in parse(f"func.func @f() {{\n{body}  return\n}}\n").walk()
        for r in op.results
    }
    assert found == {
        "byte": -56, "yes": 1, "wide": 200, "half": 0.0999755859375, "low": 64, "high": 12, "float": -56.0, "sum": None,
        "zero": 0, "none": None, "chosen": 0.0999755859375, "dense": None,
    }  # fmt: skip


def test_constants_are_not_looked_for_without_end() -> None:
    """Sums of sums that share their operands, long chains, and values that are made of themselves."""

    def last(count: int) -> Value:
        lines = "".join(f"  %v{n + 1} = arith.addi %v{n}, %v{n} : i32\n" for n in range(count))
        text = f"func.func @f() {{\n  %v0 = arith.constant 1 : i32\n{lines}  return\n}}\n"
        return next(r for op in parse(text).walk() for r in op.results if r.name == f"v{count}")

    assert (
        constant_of(last(30)) == 1 << 30
        and constant_of(last(31)) == -(1 << 31)
        and constant_of(last(40)) == 0
    )
    long = last(2000)
    assert constant_of(long) is None and calls(constant_of, long) < 2000
    own = last(3)
    assert own.op is not None
    own.op.operands = [own, own]
    assert constant_of(own) is None


def test_programs_that_no_verifier_has_seen_have_no_constants() -> None:
    module = parse("""func.func @f() {
  %a = arith.constant 3 : i32
  %b = arith.cmpi slt, %a, %a : i32
  %c = arith.addi %a, %a : i32
  return
}
""")
    ops = {r.name: op for op in module.walk() for r in op.results}
    ops["b"].set_attr("predicate", StrAttr("almost"))
    ops["c"].operands = ops["c"].operands[:1]
    assert constant_of(ops["b"].result) is None and constant_of(ops["c"].result) is None
    with pytest.raises(DiagnosticError, match="attribute 'predicate' has no value 'almost'"):
        kernel(module, engine="reference", check=False)


def test_named_operands_with_segments() -> None:
    text = f"func.func @f(%s: {TILE}, %t: {TILE}, %d: {TILE}) {{\n  pto.trsqrt ins(%s, %t : {TILE}, {TILE}) outs(%d : {TILE})\n  pto.trsqrt ins(%s : {TILE}) outs(%d : {TILE})\n  return\n}}\n"
    with_tmp, without = [op for op in parse(text).walk() if op.name == "pto.trsqrt"]
    assert with_tmp.get("tmp") is not None and without.get("tmp") is None
    assert [o.name for o, _ in with_tmp.named()] == ["src", "dst", "tmp"]
    assert without.get("dst").name == "d"  # type: ignore[union-attr]


def test_builder_makes_what_the_parser_reads() -> None:
    b = Builder.module()
    entry = b.func("k", [TILE, TILE, TILE])
    b.constant(4)
    b.op("pto.tadd", src0=entry.args[0], src1=entry.args[1], dst=entry.args[2])
    b.op("func.return")
    text = to_text(b.built)
    assert to_text(parse(text)) == text
    assert f"pto.tadd ins(%arg0, %arg1 : {TILE}, {TILE}) outs(%arg2 : {TILE})" in text


def test_builder_refuses_unknown_names() -> None:
    b = Builder.module()
    entry = b.func("k", [TILE])
    with pytest.raises(KeyError, match=r"no instruction 'pto.tfoo'"):
        b.op("pto.tfoo")
    with pytest.raises(TypeError, match=r"pto.tneg has no operand 'source'"):
        b.op("pto.tneg", source=entry.args[0])


def test_types_compare_by_value_and_do_not_change() -> None:
    same = TileBufType(F32, "vec", 16, 64, 16, 64)
    assert same == TILE and hash(same) == hash(TILE) and same is not TILE
    assert TILE.replace(rows=32) != TILE
    with pytest.raises(AttributeError, match="immutable"):
        TILE.rows = 8  # type: ignore[misc]
    with pytest.raises(TypeError, match="unknown field color"):
        TILE.replace(color=1)
    with pytest.raises(TypeError, match="unknown field space"):  # although their number is right
        Pipe(name="V", number=1, space=3)  # type: ignore[call-arg]


def test_signless_names_stand_for_both_signs() -> None:
    signless, unsigned, signed = (ScalarType(t).dtype for t in ("i32", "ui32", "si32"))
    assert signless == "i32" and signless == "u32"
    assert unsigned == "u32" and unsigned != "i32"
    assert signed == "i32" and signed != "u32"
    assert signless != unsigned and signless != signed
    assert isinstance(signless, ElemName) and INDEX.dtype is None


def test_operations_without_attributes_share_none() -> None:
    """Attributes added to one of them, or removed, do not appear in another."""
    a, b = Operation("a", None, []), Operation("b", None, [])
    with pytest.raises(TypeError):
        a.attrs["k"] = StrAttr("v")
    a.set_attr("k", StrAttr("v"))
    assert a.attrs == {"k": StrAttr("v")} and b.attrs == {}
