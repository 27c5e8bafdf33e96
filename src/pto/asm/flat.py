"""Flat operand lists: the SSA form (`%d = pto.tadd %a, %b : (T, T) -> T`) and PTO-AS statements
(`tadd %d, %a, %b : T`).

Both become the destination-style operation: a result is a fresh tile that the operation writes, so it becomes
an `alloc_tile` and an `outs` operand. Immediates become constants; `%view[%r, %c]` becomes a window.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.attrs import Attribute
from ..ir.core import Operation, Value
from ..ir.types import ERROR, I32, I64, INDEX, ScalarType, TileBufType, Type, ViewType
from ..isa import row as find_row
from ..isa.row import Operand, Row
from .cursor import Fail
from .lexer import unquote
from .row_reader import RowReader
from .statement import Names, Statement
from .type_text import is_type_start

Given = tuple[Value | None, int, tuple[int | float, bool, bool] | None]  # value or immediate, token


def looks_flat(p: RowReader, row: Row, bare: bool) -> bool:
    """Return True if the statement at the cursor is a flat list."""
    if not row.is_dps or not row.is_ins_outs:
        return bare and p.t[p.i][:1] == "%" and not row.format
    return p.t[p.i] not in ("ins", "outs", "(")


def parse(p: RowReader, row: Row, names: Names, bare: bool) -> Operation:
    begin = p.i
    st = Statement()
    given = _operands(p, row, st)
    if p.t[p.i] == "{":
        st.attrs.update(p.dictionary())
    types, results = _signature(p)
    _hash_attrs(p, row, st)
    order = _order(row, given, bool(names), bare)
    chosen = _assign(p, row, order, given)
    _bind(p, row, st, chosen, given, types, begin)
    if row.results:
        if len(results) not in (len(row.results), sum(not r.optional for r in row.results)) and results:
            raise Fail(begin, f"{row.name} has {len(row.results)} results, its type lists {len(results)}")
        for declared, type in zip(row.results, results, strict=False):
            st.types[declared.name] = [(type, begin)]
    elif names:
        _fresh_destinations(p, row, st, names, results or types[-1:], begin)
    return p.finish(row, st, names, begin)


def _operands(p: RowReader, row: Row, st: Statement) -> list[Given]:
    """Read the comma-separated list; strings and bare words in it are attributes."""
    given: list[Given] = []
    while True:
        text = p.t[p.i]
        if text[:1] == "%":
            at = p.i
            value = p.value()
            p.i = at + 1
            if p.t[p.i] == "[":
                value = _subscript(p, row, value, given, at)
            if value is not None:
                given.append((value, at, None))
            while p.t[p.i] == "!" and p.t[p.i + 2] == "=":
                p.report("PTO-E0107", "cannot use operand modifiers with this instruction")
        elif text[:1].isdigit() or (text == "-" and p.t[p.i + 1][:1].isdigit()):
            at = p.i
            given.append((None, at, p.number()))
        elif text == "@tile" and p.t[p.i + 1] == "(":  # an address, as the vendor documents write it
            at = p.i
            p.i += 2
            given.append((None, at, p.number()))
            p.eat(")")
        elif text[:1] == '"' or text[:1].isalpha():
            word = unquote(text) if text[:1] == '"' else text
            for attr in row.attrs:
                if word in attr.domain and attr.name not in st.attrs:
                    st.attrs[attr.name] = p.declared_attr(attr)
                    break
            else:
                raise Fail(p.i, f"expected an operand, got {p.shown()}")
        else:
            if given or p.t[p.i] not in (":", "{", ";"):
                raise Fail(p.i, f"expected an operand, got {p.shown()}")
            return given
        if not p.accept(","):
            return given


def _subscript(p: RowReader, row: Row, value: Value, given: list[Given], at: int) -> Value | None:
    """Read `%x[%i, %j]`: further operands of the instruction, or a window of a view."""
    p.eat("[")
    indices: list[tuple[Value, int]] = []
    while p.t[p.i] != "]":
        if p.t[p.i][:1] == "%":
            indices.append((p.value(), p.i - 1))
        else:
            where = p.i
            number = p.number()
            indices.append((_constant(p, number, INDEX, where), where))
        if not p.accept(","):
            break
    p.eat("]")
    if isinstance(value.type, ViewType) and value.type.name == "tensor_view":
        for index, where in indices:
            if index.type not in (INDEX, ERROR):
                p.report("PTO-E0303", f"expected an index as subscript of a view, got {index.type}", where)
        return _FlatWindow(value, [v for v, _ in indices], at)  # type: ignore[return-value]
    given.append((value, at, None))
    given.extend((v, w, None) for v, w in indices)
    return None


class _FlatWindow(Value):
    """A subscripted view; it has the size of the statement's tile."""

    __slots__ = ("at", "indices", "view")

    def __init__(self, view: Value, indices: list[Value], at: int) -> None:
        super().__init__(view.type, view.owner, view.index, view.name)
        self.view, self.indices, self.at = view, indices, at


def _signature(p: RowReader) -> tuple[list[Type], list[Type]]:
    """Read `: (T, T) -> T`, `: T, T -> R` or `: T`."""
    types: list[Type] = []
    results: list[Type] = []
    if not p.accept(":"):
        return types, results
    if p.t[p.i] == "(":
        types = p.type_list()
    else:
        types.append(p.type())
        while p.t[p.i] == "," and is_type_start(p.t[p.i + 1]):
            p.i += 1
            types.append(p.type())
    if p.accept("->"):
        if p.t[p.i] == "(":
            results = p.type_list()
        else:
            results.append(p.type())
            while p.t[p.i] == "," and is_type_start(p.t[p.i + 1]):
                p.i += 1
                results.append(p.type())
    return types, results


def _hash_attrs(p: RowReader, row: Row, st: Statement) -> None:
    """Read trailing `#key=value` attributes of PTO-AS."""
    while p.t[p.i][:1] == "#" and p.t[p.i + 1] == "=":
        at = p.i
        key = p.t[p.i][1:]
        p.i += 2
        for attr in row.attrs:
            if attr.name == key or attr.kind.startswith(key) or attr.name.lower().startswith(key.lower()):
                st.attrs[attr.name] = p.declared_attr(attr)
                break
        else:
            p.report("PTO-E0113", f"{row.name}: unknown attribute '{key}'", at, help=_attr_help(row))


def _attr_help(row: Row) -> str:
    return f"attributes: {', '.join(a.name for a in row.attrs)}" if row.attrs else "it takes no attributes"


def _order(row: Row, given: list[Given], has_results: bool, bare: bool) -> tuple[Operand, ...]:
    """Return the declared operands in the order of the statement."""
    if not row.is_dps:
        return row.operands
    if has_results:
        return row.ins
    source_first = (*row.ins, *row.outs)
    if not bare:
        return source_first
    destination_first = (*row.outs, *row.ins)
    if _fits(given, destination_first) or not _fits(given, source_first):
        return destination_first
    return source_first


def reads_destinations_first(row: Row, values: Sequence[Value]) -> bool:
    """Return True if a PTO-AS statement with these operands lists the destinations first."""
    given: list[Given] = [(value, 0, None) for value in values]
    return _order(row, given, has_results=False, bare=True) == (*row.outs, *row.ins)


def _fits(given: list[Given], order: tuple[Operand, ...]) -> bool:
    required = [o for o in order if not o.optional and not o.variadic]
    operands = required if len(given) <= len(required) else order
    for (value, _, immediate), declared in zip(given, operands, strict=False):
        if value is None:
            if immediate is not None and declared.kind not in (
                "scalar",
                "int",
                "float",
                "index",
                "i32",
                "i64",
                "any",
            ):
                return False
        elif (
            value.type is not ERROR
            and declared.kind in ("tile", "view")
            and _class(value.type) != declared.kind
        ):
            return False
    return True


def _class(type: Type) -> str:
    return "view" if isinstance(type, ViewType) else type.kind


def _required(order: tuple[Operand, ...]) -> str:
    return ", ".join(o.name for o in order if not o.optional)


def _assign(p: RowReader, row: Row, order: tuple[Operand, ...], given: list[Given]) -> list[list[Given]]:
    """Return the given operands per declared operand; optional ones are filled only if there are enough."""
    required = sum(not o.optional and not o.variadic for o in order)
    spare = len(given) - required
    if spare < 0:
        raise Fail(
            given[-1][1] if given else p.i,
            f"{row.name} takes {required} operands ({_required(order)}), got {len(given)}",
        )
    out: list[list[Given]] = []
    at = 0
    for declared in order:
        if declared.variadic:
            out.append(given[at : at + spare])
            at += spare
            spare = 0
        elif declared.optional:
            if spare > 0:
                out.append(given[at : at + 1])
                at += 1
                spare -= 1
            else:
                out.append([])
        else:
            out.append(given[at : at + 1])
            at += 1
    if spare:
        raise Fail(given[at][1], f"{row.name} takes at most {len(order)} operands, got {len(given)}")
    # Sort by the declaration order.
    by_name = dict(zip((o.name for o in order), out, strict=True))
    return [by_name.get(o.name, []) for o in row.operands]


def _bind(
    p: RowReader,
    row: Row,
    st: Statement,
    chosen: list[list[Given]],
    given: list[Given],
    types: list[Type],
    begin: int,
) -> None:
    if len(types) == len(given):  # otherwise a single type stands for all tiles
        for (value, at, _), type in zip(given, types, strict=True):
            if value is not None:
                p.check_type(value, type, at)
    elem = _element(given, types)
    tile = next((v.type for v, _, _ in given if v is not None and isinstance(v.type, TileBufType)), None)
    if tile is None:
        tile = next((t for t in types if isinstance(t, TileBufType)), None)
    written = {at: t for (_, at, _), t in zip(given, types, strict=False)} if len(types) == len(given) else {}
    for declared, group in zip(row.operands, chosen, strict=True):
        for value, at, immediate in group:
            if immediate is not None:
                type = written.get(at)
                if declared.kind in ("scalar", "any") or not isinstance(type, ScalarType):
                    type = _immediate_type(declared, elem)
                value = _constant(p, immediate, type, at)
            elif isinstance(value, _FlatWindow):
                value = _window(p, value, tile)
            assert value is not None
            st.values.setdefault(declared.name, []).append((value, at))


def _element(given: list[Given], types: list[Type]) -> ScalarType | None:
    for type in (*(v.type for v, _, _ in given if v is not None), *types):
        if isinstance(type, TileBufType):
            return type.elem
    return None


def _immediate_type(declared: Operand, elem: ScalarType | None) -> ScalarType:
    fixed = {"index": INDEX, "int": I32, "i32": I32, "i64": I64}
    if declared.kinds[0] in fixed:
        return fixed[declared.kinds[0]]
    return elem or I32


def _constant(p: RowReader, number: tuple[int | float, bool, bool], type: ScalarType, at: int) -> Value:
    return _insert(p, "arith.constant", [], type, {"value": p.make_number(*number, type, at)}, at)


def _insert(
    p: RowReader,
    name: str,
    operands: list[Value],
    type: Type,
    attrs: dict[str, Attribute] | None,
    at: int,
    segments: tuple[int, ...] | None = None,
) -> Value:
    op = Operation(name, find_row(name), operands, [type], attrs, segments)
    op.loc = p.tokens.span(at)
    p.block.append(op)
    return op.result


def _window(p: RowReader, window: _FlatWindow, tile: TileBufType | None) -> Value:
    """Insert a `partition_view` with the size of the tile at the given indices."""
    view = window.view.type
    assert isinstance(view, ViewType)
    if tile is None or tile.v_row is None or tile.v_col is None:
        p.report("PTO-E0107", "cannot subscript a view without a tile of static size", window.at)
    rank = view.rank
    if len(window.indices) > rank or rank < 2:
        p.report("PTO-E0107", f"{len(window.indices)} indices into a view of rank {rank}", window.at)
    sizes = [1] * (rank - 2) + [tile.v_row, tile.v_col]
    zeros = rank - len(window.indices)
    offsets = [_constant(p, (0, False, False), INDEX, window.at) for _ in range(zeros)] + window.indices
    extents = [_constant(p, (s, False, False), INDEX, window.at) for s in sizes]
    type = ViewType(view.elem, tuple(sizes))
    return _insert(
        p, "pto.partition_view", [window.view, *offsets, *extents], type, None, window.at, (1, rank, rank)
    )


def _fresh_destinations(
    p: RowReader, row: Row, st: Statement, names: Names, types: list[Type], begin: int
) -> None:
    """Insert one fresh tile for each result of the SSA form."""
    outs = [o for o in row.outs if o.name not in st.values]
    if len(names) > len(outs) or any(count != 1 for _, count, _ in names):
        raise Fail(
            names[0][2], f"{row.name} writes {len(outs)} tile{'s' * (len(outs) != 1)}, got {len(names)} names"
        )
    if len(types) == 1 and len(names) > 1:
        types = types * len(names)
    if len(types) < len(names):
        raise Fail(begin, "the type of the result is missing", "write : (T, T) -> T")
    for declared, (name, _, at), type in zip(outs, names, types, strict=False):
        if not isinstance(type, TileBufType):
            p.report("PTO-E0303", f"expected a tile as result of {row.name}, got {type}", at)
        if type.v_row is None or type.v_col is None:
            p.report(
                "PTO-E0303",
                "expected a static valid region in the SSA form",
                at,
                help="use alloc_tile and outs(...)",
            )
        value = _insert(p, "pto.alloc_tile", [], type, None, at, (0, 0, 0))
        made = value.op
        p.define(name, value, at)
        assert made is not None
        st.values[declared.name] = [(made.result, at)]  # an earlier use may have replaced the value
    names.clear()
