"""Statements with a syntax of their own: modules, functions, structured and unstructured control flow.

Each has a parse function (`PARSERS`) and, next to it, its print function (`PRINTERS`); the formats of rows
cover all other statements.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.affine import AffineMapAttr
from ..ir.attrs import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    DenseArrayAttr,
    DictAttr,
    FloatAttr,
    IntAttr,
    OpaqueAttr,
    StrAttr,
    SymbolAttr,
    TypeAttr,
    symbol_text,
)
from ..ir.core import Block, Operation, Region, Successor, Value
from ..ir.shape import DYNAMIC
from ..ir.types import ERROR, I1, INDEX, FunctionType, ScalarType, Type
from ..isa.row import Row
from .blocks import SHORT_NAMES, Blocks
from .cursor import Fail
from .generic import to_generic
from .statement import Names
from .writer import FormatWriter

Parse = Callable[[Blocks, Row, Names, int], Operation]
Print = Callable[[FormatWriter, Operation], str]

#: Attributes that the header of a function shows.
_FUNC_HEADER = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")


def _make(
    row: Row,
    operands: list[Value],
    results: list[Type] | tuple[Type, ...] = (),
    attrs: dict[str, Attribute] | None = None,
    segments: tuple[int, ...] | None = None,
    regions: list[Region] | None = None,
) -> Operation:
    op = Operation(row.full_name, row, operands, results, attrs, segments)
    if regions:
        op.regions = regions
        for region in regions:
            region.parent = op
    return op


# ------------------------------------------------------------------------------------- module and function


def _module(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    attrs: dict[str, Attribute] = {}
    if p.t[p.i][:1] == "@":
        attrs["sym_name"] = StrAttr(p.symbol())
    if p.accept("attributes"):
        attrs.update(p.dictionary())
    region = p.region(isolated=True)
    return _make(row, [], attrs=attrs, regions=[region])


def _print_module(p: FormatWriter, op: Operation) -> str:
    name = op.attrs.get("sym_name")
    rest = {k: v for k, v in op.attrs.items() if k != "sym_name"}
    head = "module"
    if isinstance(name, StrAttr):
        head += f" {symbol_text(name.value)}"
    if rest:
        head += f" attributes {p.attr_dict(rest)}"
    return f"{head} {p.region(op.regions[0])}"


def _forgot_brace(p: Blocks) -> bool:
    """Return True if a body without its brace follows, and not another function after a declaration."""
    return p.lacks_brace() and p.t[p.i] not in (*SHORT_NAMES, *SHORT_NAMES.values())


def _func(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    attrs: dict[str, Attribute] = {}
    visibility = ""
    if p.t[p.i] in ("private", "public", "nested"):
        visibility = p.t[p.i]
        p.i += 1
    name_at = p.i
    attrs["sym_name"] = StrAttr(p.symbol())
    args: list[tuple[str, Type, int]] = []
    arg_attrs: list[Attribute] = []
    types: list[Type] = []
    p.eat("(")
    while p.t[p.i] != ")":
        if p.t[p.i][:1] == "%":
            where = p.i
            name = p.value_name()
            p.eat(":")
            type = p.type()
            args.append((name, type, where))
        else:
            type = p.type()
        types.append(type)
        arg_attrs.append(DictAttr(p.dictionary() if p.t[p.i] == "{" else {}))
        p.trailing_location()
        if not p.accept(","):
            break
    p.eat(")")
    results: list[Type] = []
    res_attrs: list[Attribute] = []
    if p.accept("->"):
        if p.t[p.i] == "(":
            p.i += 1
            while p.t[p.i] != ")":
                results.append(p.type())
                res_attrs.append(DictAttr(p.dictionary() if p.t[p.i] == "{" else {}))
                if not p.accept(","):
                    break
            p.eat(")")
        else:
            results.append(p.type())
    attrs["function_type"] = TypeAttr(FunctionType(tuple(types), tuple(results)))
    if visibility:
        attrs["sym_visibility"] = StrAttr(visibility)
    if any(isinstance(a, DictAttr) and a.items for a in arg_attrs):
        attrs["arg_attrs"] = ArrayAttr(tuple(arg_attrs))
    if any(isinstance(a, DictAttr) and a.items for a in res_attrs):
        attrs["res_attrs"] = ArrayAttr(tuple(res_attrs))
    if p.accept("attributes"):
        attrs.update(p.dictionary())
    region = Region()
    if p.t[p.i] == "{" or (args and not visibility and _forgot_brace(p)):
        if len(args) != len(types):
            p.report(
                "PTO-E0107",
                "every argument of a function with a body needs a name",
                name_at,
                help="write %name: type",
            )
        region = p.region(args, isolated=True)
    return _make(row, [], attrs=attrs, regions=[region])


def _print_func(p: FormatWriter, op: Operation) -> str:
    signature = op.attrs["function_type"].value
    body = op.regions[0]
    shown = op.attrs.get("arg_attrs")
    notes = shown.items if isinstance(shown, ArrayAttr) else ()
    p.enter_function(op)
    with p.scope():
        args: list[str] = []
        for i, type in enumerate(signature.inputs):
            text = f"{p.define(body.blocks[0].args[i])}: {type}" if body.blocks else str(type)
            note = notes[i] if i < len(notes) else None
            if isinstance(note, DictAttr) and note.items:
                text += f" {note}"
            args.append(text)
        visibility = op.attr("sym_visibility")
        shown_visibility = f"{visibility} " if visibility else ""
        head = f"func.func {shown_visibility}{symbol_text(op.attr('sym_name'))}({', '.join(args)})"
        if signature.results:
            extra = op.attrs.get("res_attrs")
            shown_results = [str(t) for t in signature.results]
            for i, note in enumerate(extra.items if isinstance(extra, ArrayAttr) else ()):
                if isinstance(note, DictAttr) and note.items and i < len(shown_results):
                    shown_results[i] += f" {note}"
            plain = len(shown_results) == 1 and extra is None
            head += f" -> {shown_results[0] if plain else '(' + ', '.join(shown_results) + ')'}"
        rest = {k: v for k, v in op.attrs.items() if k not in _FUNC_HEADER}
        if rest:
            head += f" attributes {p.attr_dict(rest)}"
        if not body.blocks:
            return head
        return f"{head} {p.region(body, entry_args=False)}"


def _call(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    callee = p.symbol()
    p.eat("(")
    values: list[tuple[Value, int]] = []
    while p.t[p.i] != ")":
        values.append((p.value(), p.i - 1))
        if not p.accept(","):
            break
    p.eat(")")
    attrs: dict[str, Attribute] = {"callee": SymbolAttr(callee)}
    if p.t[p.i] == "{":
        attrs.update(p.dictionary())
    p.eat(":")
    signature = p.function_type()
    if len(signature.inputs) != len(values):
        p.report(
            "PTO-E0218", f"call passes {len(values)} values but its type lists {len(signature.inputs)}", at
        )
    for (value, where), type in zip(values, signature.inputs, strict=True):
        p.check_type(value, type, where)
    return _make(row, [v for v, _ in values], signature.results, attrs, (len(values),))


def _print_call(p: FormatWriter, op: Operation) -> str:
    rest = {k: v for k, v in op.attrs.items() if k != "callee"}
    signature = FunctionType(tuple(v.type for v in op.operands), tuple(r.type for r in op.results))
    dictionary = f" {p.attr_dict(rest)}" if rest else ""
    return f"call {symbol_text(op.attr('callee'))}({p.values(op.operands)}){dictionary} : {signature}"


# ---------------------------------------------------------------------------------------------- constants


def _constant(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    attrs: dict[str, Attribute] = p.dictionary() if p.t[p.i] == "{" else {}
    where = p.i
    value = p.attribute()
    if isinstance(value, BoolAttr):
        value = IntAttr(int(value.value), I1)
        if p.t[p.i] == ":":
            p.i += 1
            p.type()
    type: Type
    if isinstance(value, IntAttr | FloatAttr):
        type = value.type
    elif isinstance(value, OpaqueAttr) and " : " in value.text:
        type = p.parse_type_text(value.text.rpartition(" : ")[2], p.tokens.starts[where])
    else:
        type = INDEX
    if isinstance(type, ScalarType) and not isinstance(value, IntAttr | FloatAttr):
        raise Fail(
            where,
            f"expected a number or dense elements, got {p.shown(where)}",
            "write arith.constant 4 : index",
        )
    return _make(row, [], [type], {**attrs, "value": value})


def _print_constant(p: FormatWriter, op: Operation) -> str:
    value = op.attrs["value"]
    rest = {k: v for k, v in op.attrs.items() if k != "value"}
    text = f"{value.value} : {value.type}" if isinstance(value, IntAttr) and value.type != I1 else str(value)
    return f"arith.constant {p.attr_dict(rest) + ' ' if rest else ''}{text}"


# ---------------------------------------------------------------------------------------------------- scf


def _assignments(p: Blocks) -> tuple[list[tuple[str, int]], list[tuple[Value, int]]]:
    """Read `(%a = %x, %b = %y)`; return names and initial values."""
    names: list[tuple[str, int]] = []
    values: list[tuple[Value, int]] = []
    p.eat("(")
    while p.t[p.i] != ")":
        names.append((p.value_name(), p.i - 1))
        p.eat("=")
        values.append((p.value(), p.i - 1))
        if not p.accept(","):
            break
    p.eat(")")
    return names, values


def _types(p: Blocks) -> list[Type]:
    return p.type_list() if p.t[p.i] == "(" else [p.type()]


def _bound(p: Blocks) -> Value:
    """Read a bound of a loop. Report a number, and go on with the other bounds."""
    try:
        return p.value()
    except Fail as fail:
        if not fail.help:
            raise
        p.record(fail)
        p.i += 1
        return Block().add_arg(ERROR)


def _for(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    var_at = p.i
    variable = p.value_name()
    p.eat("=")
    bounds: list[tuple[Value, int]] = []
    for word in ("to", "step", ""):
        bounds.append((_bound(p), p.i - 1))
        if word:
            p.eat(word)
    carried: list[tuple[str, int]] = []
    inits: list[tuple[Value, int]] = []
    types: list[Type] = []
    if p.accept("iter_args"):
        carried, inits = _assignments(p)
        p.eat("->")
        where = p.i
        types = _types(p)
        if len(types) != len(inits):
            p.report("PTO-E0213", f"{len(inits)} carried values but {len(types)} types", where)
        for (value, spot), type in zip(inits, types, strict=True):
            p.check_type(value, type, spot)
    written = p.accept(":")
    type: Type = p.type() if written else INDEX
    for value, where in bounds:
        if written or value.type in (INDEX, ERROR):
            p.check_type(value, type, where)
        else:
            p.error(
                "PTO-E0207", f"expected an index as loop bound without a type, got '%{value.name}'",
                where, expected="index", got=str(value.type),
                help=f"write ': {value.type}' after the step, or convert it: "
                f"%x = arith.index_cast %{value.name} : {value.type} to index",
            )  # fmt: skip
    args = [(variable, type, var_at), *((n, t, a) for (n, a), t in zip(carried, types, strict=True))]
    region = p.region(args, terminator="" if carried else "scf.yield")
    attrs = p.dictionary() if p.t[p.i] == "{" else {}
    operands = [v for v, _ in bounds] + [v for v, _ in inits]
    return _make(row, operands, types, attrs, (1, 1, 1, len(inits)), [region])


def _print_for(p: FormatWriter, op: Operation) -> str:
    lb, ub, step, *inits = op.operands
    body = op.regions[0].blocks[0]
    with p.scope():
        variable = p.define(body.args[0])
        head = f"scf.for {variable} = {p.value(lb)} to {p.value(ub)} step {p.value(step)}"
        if inits:
            pairs = ", ".join(
                f"{p.define(a)} = {p.value(v)}" for a, v in zip(body.args[1:], inits, strict=True)
            )
            head += f" iter_args({pairs}) -> ({', '.join(str(v.type) for v in inits)})"
        if lb.type != INDEX:
            head += f" : {lb.type}"
        text = f"{head} {p.region(op.regions[0], entry_args=False, hide='' if inits else 'scf.yield')}"
    return text + (f" {p.attr_dict(op.attrs)}" if op.attrs else "")


def _if(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    condition, where = p.value(), p.i - 1
    p.check_type(condition, I1, where)
    types: list[Type] = []
    if p.accept("->"):
        types = _types(p)
    hide = "" if types else "scf.yield"
    regions = [p.region(terminator=hide)]
    regions.append(p.region(terminator=hide) if p.accept("else") else Region())
    attrs = p.dictionary() if p.t[p.i] == "{" else {}
    return _make(row, [condition], types, attrs, None, regions)


def _print_if(p: FormatWriter, op: Operation) -> str:
    head = f"scf.if {p.value(op.operands[0])}"
    if op.results:
        head += f" -> ({', '.join(str(r.type) for r in op.results)})"
    hide = "" if op.results else "scf.yield"
    text = f"{head} {p.region(op.regions[0], hide=hide)}"
    if op.regions[1].blocks:
        text += f" else {p.region(op.regions[1], hide=hide)}"
    return text + (f" {p.attr_dict(op.attrs)}" if op.attrs else "")


def _while(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    carried, inits = _assignments(p) if p.t[p.i] == "(" else ([], [])
    p.eat(":")
    where = p.i
    signature = p.function_type()
    if len(signature.inputs) != len(inits):
        p.report("PTO-E0213", f"{len(inits)} carried values but {len(signature.inputs)} types", where)
    for (value, spot), type in zip(inits, signature.inputs, strict=True):
        p.check_type(value, type, spot)
    before = p.region([(n, t, a) for (n, a), t in zip(carried, signature.inputs, strict=True)])
    p.eat("do")
    after = p.region(terminator="" if signature.results else "scf.yield")
    attrs: dict[str, Attribute] = {}
    if p.accept("attributes"):
        attrs = p.dictionary()
    return _make(row, [v for v, _ in inits], signature.results, attrs, (len(inits),), [before, after])


def _print_while(p: FormatWriter, op: Operation) -> str:
    signature = FunctionType(tuple(v.type for v in op.operands), tuple(r.type for r in op.results))
    before, after = op.regions
    with p.scope():
        pairs = ", ".join(
            f"{p.define(a)} = {p.value(v)}" for a, v in zip(before.blocks[0].args, op.operands, strict=True)
        )
        text = (
            f"scf.while {f'({pairs})' if pairs else '()'} : {signature} {p.region(before, entry_args=False)}"
        )
    text += f" do {p.region(after, hide='' if op.results or op.operands else 'scf.yield')}"
    return text + (f" attributes {p.attr_dict(op.attrs)}" if op.attrs else "")


def _execute_region(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    types: list[Type] = []
    if p.accept("->"):
        types = _types(p)
    region = p.region(terminator="" if types else "scf.yield")
    attrs = p.dictionary() if p.t[p.i] == "{" else {}
    return _make(row, [], types, attrs, None, [region])


def _print_execute_region(p: FormatWriter, op: Operation) -> str:
    head = "scf.execute_region"
    if op.results:
        head += f" -> ({', '.join(str(r.type) for r in op.results)})"
    text = f"{head} {p.region(op.regions[0], hide='' if op.results else 'scf.yield')}"
    return text + (f" {p.attr_dict(op.attrs)}" if op.attrs else "")


def _index_switch(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    arg, where = p.value(), p.i - 1
    p.check_type(arg, INDEX, where)
    attrs = p.dictionary() if p.t[p.i] == "{" else {}
    types: list[Type] = []
    if p.accept("->"):
        types = _types(p)
    hide = "" if types else "scf.yield"
    cases: list[int | float] = []
    regions: list[Region] = []
    while p.accept("case"):
        spot = p.i
        number = _integer(p)
        if number in cases:
            p.report("PTO-E0214", f"case {number} is given twice", spot)
        cases.append(number)
        regions.append(p.region(terminator=hide))
    p.eat("default")
    default = p.region(terminator=hide)
    attrs = {**attrs, "cases": DenseArrayAttr("i64", tuple(cases))}
    return _make(row, [arg], types, attrs, None, [default, *regions])


def _print_index_switch(p: FormatWriter, op: Operation) -> str:
    rest = {k: v for k, v in op.attrs.items() if k != "cases"}
    head = f"scf.index_switch {p.value(op.operands[0])}{' ' + p.attr_dict(rest) if rest else ''}"
    if op.results:
        head += f" -> {', '.join(str(r.type) for r in op.results)}"
    hide = "" if op.results else "scf.yield"
    lines = [head]
    for case, region in zip(op.attr("cases"), op.regions[1:], strict=True):
        lines.append(f"{p.pad()}case {case} {p.region(region, hide=hide)}")
    lines.append(f"{p.pad()}default {p.region(op.regions[0], hide=hide)}")
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------- cf


def _br(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    op = _make(row, [], segments=(0,))
    op.successors = (p.successor(),)
    if p.t[p.i] == "{":
        op.attrs = p.dictionary()
    return op


def _successor_text(p: FormatWriter, s: Successor) -> str:
    label = p.block_label(s.block)
    if not s.args:
        return label
    return f"{label}({p.values(s.args)} : {', '.join(str(v.type) for v in s.args)})"


def _print_br(p: FormatWriter, op: Operation) -> str:
    return f"cf.br {_successor_text(p, op.successors[0])}" + (f" {p.attr_dict(op.attrs)}" if op.attrs else "")


def _cond_br(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    condition, where = p.value(), p.i - 1
    p.check_type(condition, I1, where)
    op = _make(row, [condition], segments=(1, 0, 0))
    p.eat(",")
    first = p.successor()
    p.eat(",")
    op.successors = (first, p.successor())
    if p.t[p.i] == "{":
        op.attrs = p.dictionary()
    return op


def _print_cond_br(p: FormatWriter, op: Operation) -> str:
    targets = ", ".join(_successor_text(p, s) for s in op.successors)
    return f"cf.cond_br {p.value(op.operands[0])}, {targets}" + (
        f" {p.attr_dict(op.attrs)}" if op.attrs else ""
    )


def _switch(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    flag, where = p.value(), p.i - 1
    p.eat(":")
    p.check_type(flag, p.type(), where)
    p.eat(",")
    p.eat("[")
    p.eat("default")
    p.eat(":")
    successors = [p.successor()]
    cases: list[int | float] = []
    while p.accept(","):
        cases.append(_integer(p))
        p.eat(":")
        successors.append(p.successor())
    p.eat("]")
    attrs: dict[str, Attribute] = {"case_values": DenseArrayAttr("i64", tuple(cases))}
    if p.t[p.i] == "{":
        attrs.update(p.dictionary())
    op = _make(row, [flag], attrs=attrs, segments=(1, 0, 0))
    op.successors = tuple(successors)
    return op


def _print_switch(p: FormatWriter, op: Operation) -> str:
    if len(op.operands) != 1 or len(op.successors) != 1 + len(op.attr("case_values") or ()):
        return to_generic(p, op)
    default, *rest = op.successors
    parts = [f"default: {_successor_text(p, default)}"]
    parts += [f"{v}: {_successor_text(p, s)}" for v, s in zip(op.attr("case_values"), rest, strict=True)]
    flag = op.operands[0]
    text = f"cf.switch {p.value(flag)} : {flag.type}, [{', '.join(parts)}]"
    others = {k: v for k, v in op.attrs.items() if k != "case_values"}
    return text + (f" {p.attr_dict(others)}" if others else "")


# ------------------------------------------------------------------------------------------------- memref


def _integer(p: Blocks) -> int:
    """Read a number that an i64 can hold."""
    at = p.i
    number, is_float, _ = p.number()
    if is_float or not -(1 << 63) < number < 1 << 63:
        p.report("PTO-E0104", f"expected an integer of 64 bits, got {p.shown(at)}", at)
    return int(number)


def _mixed_list(p: Blocks) -> tuple[list[tuple[Value, int]], list[int | float]]:
    """Read `[%a, 4, 1]`; return dynamic values and static numbers (dynamic ones marked)."""
    dynamic: list[tuple[Value, int]] = []
    static: list[int | float] = []
    p.eat("[")
    while p.t[p.i] != "]":
        if p.t[p.i][:1] == "%":
            dynamic.append((p.value(), p.i - 1))
            static.append(DYNAMIC)
        else:
            static.append(_integer(p))
        if not p.accept(","):
            break
    p.eat("]")
    return dynamic, static


_TRIPLE = ("offsets", "sizes", "strides")


def _strided(keyed: bool) -> Parse:
    """Parse memref.subview `%s[..] [..] [..]` and memref.reinterpret_cast `%s to offset: [..], sizes: ..`."""

    def parse(p: Blocks, row: Row, names: Names, at: int) -> Operation:
        source, where = p.value(), p.i - 1
        lists = []
        if keyed:
            p.eat("to")
        for k, name in enumerate(("offset", "sizes", "strides")):
            if keyed:
                if k:
                    p.eat(",")
                p.eat(name)
                p.eat(":")
            lists.append(_mixed_list(p))
        attrs: dict[str, Attribute] = p.dictionary() if p.t[p.i] == "{" else {}
        p.eat(":")
        p.check_type(source, p.type(), where)
        p.eat("to")
        type = p.type()
        operands = [source]
        segments = [1]
        for name, (dynamic, static) in zip(_TRIPLE, lists, strict=True):
            operands.extend(v for v, _ in dynamic)
            segments.append(len(dynamic))
            attrs[f"static_{name}"] = DenseArrayAttr("i64", tuple(static))
        return _make(row, operands, [type], attrs, tuple(segments))

    return parse


def _print_strided(keyed: bool) -> Print:
    def show(p: FormatWriter, op: Operation) -> str:
        text = f"{op.name} {p.value(op.operands[0])}"
        if keyed:
            text += " to"
        for k, name in enumerate(_TRIPLE):
            dynamic = iter(op.group(name))
            items = [p.value(next(dynamic)) if v == DYNAMIC else str(v) for v in op.attr(f"static_{name}")]
            label = (
                f"{',' if k else ''} {'offset' if name == 'offsets' else name}: "
                if keyed
                else (" " if k else "")
            )
            text += f"{label}[{', '.join(items)}]"
        rest = {k: v for k, v in op.attrs.items() if not k.startswith("static_")}
        text += f" {p.attr_dict(rest)}" if rest else ""
        return f"{text} : {op.operands[0].type} to {op.result.type}"

    return show


def _affine_apply(p: Blocks, row: Row, names: Names, at: int) -> Operation:
    where = p.i
    mapping = p.attribute()
    if not isinstance(mapping, AffineMapAttr):
        raise Fail(where, "expected an affine_map")
    operands: list[Value] = []
    for what, wanted, open_, close in (
        ("dimension", mapping.dims, "(", ")"),
        ("symbol", mapping.symbols, "[", "]"),
    ):
        count, before = p.i, len(operands)
        if p.accept(open_):
            while p.t[p.i] != close:
                operands.append(p.value())
                if not p.accept(","):
                    break
            p.eat(close)
        if len(operands) - before != wanted:
            raise Fail(
                count, f"expected {wanted} {what} operand{'s' * (wanted != 1)}, got {len(operands) - before}"
            )
    attrs: dict[str, Attribute] = {"map": mapping}
    if p.t[p.i] == "{":
        attrs.update(p.dictionary())
    return _make(row, operands, [INDEX], attrs, (len(operands),))


def _print_affine_apply(p: FormatWriter, op: Operation) -> str:
    mapping = op.attrs["map"]
    assert isinstance(mapping, AffineMapAttr)
    first, second = op.operands[: mapping.dims], op.operands[mapping.dims :]
    text = f"affine.apply {mapping}({p.values(first)})" + (f"[{p.values(second)}]" if second else "")
    rest = {k: v for k, v in op.attrs.items() if k != "map"}
    return text + (f" {p.attr_dict(rest)}" if rest else "")


PARSERS: dict[str, Parse] = {
    "builtin.module": _module,
    "func.func": _func,
    "func.call": _call,
    "arith.constant": _constant,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.execute_region": _execute_region,
    "scf.index_switch": _index_switch,
    "cf.br": _br,
    "cf.cond_br": _cond_br,
    "cf.switch": _switch,
    "memref.subview": _strided(False),
    "memref.reinterpret_cast": _strided(True),
    "affine.apply": _affine_apply,
}

PRINTERS: dict[str, Print] = {
    "builtin.module": _print_module,
    "func.func": _print_func,
    "func.call": _print_call,
    "arith.constant": _print_constant,
    "scf.for": _print_for,
    "scf.if": _print_if,
    "scf.while": _print_while,
    "scf.execute_region": _print_execute_region,
    "scf.index_switch": _print_index_switch,
    "cf.br": _print_br,
    "cf.cond_br": _print_cond_br,
    "cf.switch": _print_switch,
    "memref.subview": _print_strided(False),
    "memref.reinterpret_cast": _print_strided(True),
    "affine.apply": _print_affine_apply,
}
