"""Operations of several files in one module: every stage points at the file and line they come from."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests.each import together

import pto
from pto import codegen
from pto.asm import parse, to_text
from pto.diag import Diagnostic, Source, Unread, render, render_json
from pto.ir import Builder
from pto.ir.attrs import Attribute, UnitAttr
from pto.ir.clone import clone
from pto.ir.core import Module, Operation, Value
from pto.ir.types import PtrType, ScalarType, TileBufType, ViewType
from pto.isa.profiles import profile
from pto.passes import compile
from pto.reading import decode
from pto.verifier import verify

PY = Source(
    "model.py",
    """\
@kernel
def model(a, b):
    x = load(a)
    y = add(x, x)
    store(b, y)
""",
)
CPP = Source(
    "add.cpp",
    """\
#include "tiles.h"

template <class T> void add(T& y, T& x) {
  T t;
  y = x + x;
}
""",
)
F32 = ScalarType("f32")


def build(rows: int = 16, second: str = "f32", by_hand: bool = False, twice: bool = False) -> Module:
    """b = a + a, as Python calls it and C++ does it."""
    at = {"model": PY.at(2), "load": PY.at(3), "store": PY.at(5), "tile": CPP.at(4), "add": CPP.at(5)}
    b = Builder.module()
    entry: dict[str, Attribute] = {"pto.entry": UnitAttr()}
    f = b.at(at["model"]).func("model", [PtrType(F32), PtrType(F32)], entry)
    one, n, m = b.constant(1), b.constant(rows), b.constant(64)
    zero = b.constant(0)
    windows: list[Value] = []
    for pointer in f.args:
        view = b.op(
            "pto.make_tensor_view", [ViewType(F32, (rows, 64), "tensor_view")], ptr=pointer, shape=[n, m],
            strides=[m, one],
        ).result  # fmt: skip
        windows.append(
            b.op("pto.partition_view", [ViewType(F32, (rows, 64))], source=view, offsets=[zero, zero],
                 sizes=[n, m]).result
        )  # fmt: skip
    x, y = (TileBufType(ScalarType(t), "vec", rows, 64, rows, 64) for t in ("f32", second))
    tiles: list[Value] = []
    for k, (type, where) in enumerate(((x, "load"), (y, "tile"))):
        address = {"addr": b.at(at[where]).constant(k * 32768, ScalarType("i64"))} if by_hand else {}
        tiles.append(b.at(at[where]).op("pto.alloc_tile", [type], **address).result)
        tiles[-1].name = "xy"[k]
    b.at(at["load"]).op("pto.tload", src=windows[0], dst=tiles[0])
    b.at(at["add"]).op("pto.tadd", src0=tiles[0], src1=tiles[0], dst=tiles[1])
    b.at(at["store"]).op("pto.tstore", src=tiles[1], dst=windows[1])
    b.op("func.return")
    if twice:
        b.at(CPP.at(3, 20)).func("model", [])
        b.op("func.return")
    return b.built


def named(module: Module, name: str) -> Operation:
    return next(op for op in module.walk() if op.name == name)


def places(d: Diagnostic) -> list[tuple[str, int, int]]:
    """Return the locations of a diagnostic and its notes; the same in JSON."""
    spans = [d.span, *(span for _, span in d.notes)]
    found = [(s.source.name, *s.place) for s in spans if s is not None]
    data = json.loads(render_json([d]))[0]
    shown = [p for p in (data, *data.get("notes", ())) if "file" in p]
    assert found == [(p["file"], p["line"], p["column"]) for p in shown]
    return found


def test_the_verifier_points_at_both_files() -> None:
    found = verify(build(second="f16"), "a3")[0]
    assert places(found)[0] == ("add.cpp", 5, 3)
    assert "add.cpp:5:3: error[" in render([found]) and "    5 |   y = x + x;\n" in render([found])
    (found,) = verify(build(twice=True), "a3")
    assert places(found) == [("add.cpp", 3, 20), ("model.py", 2, 1)]
    text = render([found])
    assert "    3 | template <class T> void add(T& y, T& x) {\n" in text
    assert "  model.py:2:1: note: first defined here\n    2 | def model(a, b):\n" in text


def test_a_pass_points_at_both_files() -> None:
    _, found = compile(build(rows=1024), profile("a3"))
    (d,) = found
    assert d.code == "PTO-E0702" and places(d) == [("model.py", 3, 5)]
    assert "262144 bytes are in use at line 3 of model.py" in d.message
    notes = "\n".join(text for text, _ in d.notes)
    assert "line 3 of model.py, used in lines 3..3 of model.py and 5..5 of add.cpp" in notes


def test_runs_point_at_both_files() -> None:
    short = pto.kernel(build(), target="a3", engine="reference").run(
        np.zeros((8, 64), np.float32), np.zeros((16, 64), np.float32)
    )
    (d,) = short.diagnostics
    assert d.code == "PTO-E2101" and places(d)[0] == ("model.py", 3, 5)
    wide = np.zeros((16, 64), np.float32)
    run = pto.kernel(build(by_hand=True), target="a3", engine="reference").run(
        wide, wide.copy(), sanitize="race"
    )
    races = {places(d)[0]: d for d in run.diagnostics}
    assert set(races) == {("add.cpp", 5, 3), ("model.py", 5, 5)}
    first = races["add.cpp", 5, 3]
    assert places(first)[1] == ("model.py", 3, 5)
    assert "after line 3 of model.py and" in first.help and "before line 5 of add.cpp" in first.help
    assert "earlier iteration" not in first.notes[0][0]  # line 3 of one file comes before line 5 of the other


def test_diagnostics_are_sorted_by_file_and_line() -> None:
    spans = [PY.at(5), CPP.at(4), PY.at(3), Unread("b.py").at(10, 1), Unread("b.py").at(9, 70000), None]
    found = [Diagnostic("PTO-E0001", "m", span) for span in spans]
    shown = [(d.get("file"), d.get("line")) for d in json.loads(render_json(found))]
    assert shown == [
        ("add.cpp", 4),
        ("b.py", 9),
        ("b.py", 10),
        ("model.py", 3),
        ("model.py", 5),
        (None, None),
    ]


def test_emitted_lines_name_both_files() -> None:
    text = pto.emit_cpp(build(), target="a3", line_directives=True)
    where: dict[str, tuple[str, int]] = {}
    file, line = "", 0
    for written in text.splitlines():
        said = re.fullmatch(r'#line (\d+) "(.*)"', written)
        if said:
            file, line = said[2], int(said[1])
            continue
        for word in ("TLOAD", "TADD", "TSTORE"):
            if f"{word}(" in written:
                where[word] = file, line
        line += 1
    assert where == {"TLOAD": ("model.py", 3), "TADD": ("add.cpp", 5), "TSTORE": ("model.py", 5)}


def test_marks_outlive_the_passes() -> None:
    """Marks of checked C++ lead to the locations in the original program."""
    module = build()
    context, _ = compile(module, profile("a3"))
    text = codegen.cpp.emit(context.module, context.profile, planned=True, checked=True)
    marked = {int(n) for n in re.findall(r"detail::mark\((-?\d+)\)", text)}
    wanted = {module.mark(named(module, name)) for name in ("pto.tload", "pto.tadd", "pto.tstore")}
    assert marked >= wanted and len(wanted) == 3 and all(1 << 30 <= n < 1 << 31 for n in wanted)
    own = parse("func.func @f() {\n  return\n}")
    assert own.mark(named(own, "func.return")) == 19  # its offset
    assert Builder.module().built.mark(Builder.module().built.op) == -1


def told(module: Module) -> list[tuple[str, str, int, int] | None]:
    """Name, file, line and column of every operation of a function."""
    out: list[tuple[str, str, int, int] | None] = []
    for op in (o for f in module.functions for b in f.regions[0].blocks for o in b.ops):
        out.append((op.name, op.loc.source.name, *op.loc.place) if op.loc is not None else None)
    return out


@pytest.mark.parametrize("strict", [False, True])
def test_bytecode_keeps_both_files(strict: bool) -> None:
    module = build()
    data = pto.to_bytecode(module, debuginfo=True, strict=strict)
    again = pto.from_bytecode(data, "model.ptobc")
    assert told(again) == told(module) == told(clone(module))
    assert [s.name for s in again.sources] == ["model.ptobc", "model.py", "add.cpp"]
    kept = pto.to_bytecode(again, debuginfo=True, strict=strict)
    assert pto.to_bytecode(pto.from_bytecode(kept), debuginfo=True, strict=strict) == kept
    assert kept == data or not strict  # constants without a name are given one
    assert {op.loc.source.name for op in pto.from_bytecode(pto.to_bytecode(module)).walk() if op.loc} == {
        "<bytecode>"
    }
    source, _ = decode("model.ptobc", data)  # as the command lines read it
    assert source is not None and told(parse(source.text)) == told(module)
    bad, _ = decode("bad.ptobc", pto.to_bytecode(build(second="f16"), debuginfo=True))
    assert bad is not None and places(verify(parse(bad.text), "a3")[0])[0] == ("add.cpp", 5, 3)


def test_text_keeps_both_files() -> None:
    module = build()
    for form in ("pto", "generic"):
        text = to_text(module, form, locations=True)
        assert "loc(" not in to_text(module, form) and told(parse(text)) == told(module)
    with pytest.raises(ValueError, match="PTO-AS has no locations"):
        to_text(module, "asm", locations=True)


@together(
    ("said", "place"),
    [
        ('"k.py":3:5', ("k.py", 3, 5)),
        ('"k.py":3:5 to :9', ("k.py", 3, 5)),
        ('"a \\"b\\".py":3:5', ('a "b".py', 3, 5)),
        ('"x"("k.py":3:5)', ("k.py", 3, 5)),
        ('callsite("k.py":3:5 at "m.py":1:1)', ("k.py", 3, 5)),
        ('fused<"p">[unknown, "k.py":3:5, "m.py":1:1]', ("k.py", 3, 5)),
        ("#late", ("late.py", 7, 8)),
        ("callsite(#chain at #late)", ("late.py", 7, 8)),
        ("unknown", ("<text>", 2, 3)),
        ("#nobody", ("<text>", 2, 3)),
        ("#self", ("<text>", 2, 3)),
        ('"k.py":3:12345678901', ("<text>", 2, 3)),
    ],
)
def test_locations_of_a_text(said: str, place: tuple[str, int, int]) -> None:
    aliases = '#chain = loc(#late)\n#late = loc("late.py":7:8)\n#self = loc(#self)\n'
    module = parse(f"func.func @f() {{\n  %c = arith.constant 0 : index loc({said})\n  return\n}}\n{aliases}")
    constant, end = module.functions[0].regions[0].blocks[0].ops
    assert constant.loc is not None and (constant.loc.source.name, *constant.loc.place) == place
    assert end.loc is not None and end.loc.source is module.source


def test_order_is_that_of_the_program() -> None:
    module = parse(
        "func.func @f(%n: index) {\n  scf.for %i = %n to %n step %n {\n    %a = arith.constant 1 : i32\n  }\n"
        "  cf.br ^b\n^b:\n  return\n}\nfunc.func @g() {\n  return\n}"
    )
    ops = list(module.walk())
    assert ops == sorted(ops, key=lambda op: op.order)
    assert len({op.order for op in ops}) == len(ops)


def test_places_of_a_source() -> None:
    source = Source("t", "  a b\r\n\nc")
    assert [(s.start, s.end) for s in (source.at(1), source.at(1, 5), source.at(2), source.at(3, 9))] == [
        (2, 5), (4, 5), (7, 8), (9, 10),
    ]  # fmt: skip
    assert (
        source.lines == 3
        and source.at(1) == source.at(1, 3)
        and source.at(1) != Source("t", source.text).at(1)
    )
    assert source.at(1).find("b") == source.at(1, 5) and source.at(1).find("c") is None
