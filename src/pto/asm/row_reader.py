"""Statements through the formats of their rows.

A format is compiled to steps once; a statement is tried with each format of its row, and the furthest failure
is reported.
"""

from __future__ import annotations

from ..ir.core import Operation, Region, Value
from ..ir.kinds import kind_matches
from ..ir.types import ERROR, Type
from ..isa.format import AttrDict, FormatGroup, Item, Lit, TypeOf, Var
from ..isa.row import KINDS, Attr, Operand, Row
from .blocks import Blocks
from .cursor import Fail, literal_help
from .inference import INFERENCE
from .lexer import EOF
from .statement import Names, Statement, settle

LIT, VALUE, VALUES, TYPE, TYPES, ATTR, REGION, DICT, GROUP = range(9)
_INTEGERS = {"index", "i8", "i16", "i32", "i64"}
Step = tuple  # type: ignore[type-arg]
_compiled: dict[str, tuple[tuple[Step, ...], ...]] = {}


def compiled(found: Row) -> tuple[tuple[Step, ...], ...]:
    """Return the formats of a row as steps for `Parser.run`."""
    out = _compiled.get(found.name)
    if out is None:
        out = _compiled[found.name] = tuple(_compile(items, found) for items in found.formats)
    return out


def _compile(items: tuple[Item, ...], found: Row) -> tuple[Step, ...]:
    out: list[Step] = []
    for item in items:
        if isinstance(item, Lit):
            out.append((LIT, item.text))
        elif isinstance(item, Var):
            attr: Attr | None = found.attr_index.get(item.name)
            if item.name in found.operand_index:
                out.append((VALUES if item.many else VALUE, item.name))
            elif attr is not None:
                out.append((ATTR, attr))
            else:
                out.append((REGION, item.name))
        elif isinstance(item, TypeOf):
            is_result = item.name not in found.operand_index
            out.append((TYPES if item.many and not is_result else TYPE, item.name))
        elif isinstance(item, AttrDict):
            out.append((DICT,))
        elif isinstance(item, FormatGroup):
            steps = _compile(item.items, found)
            has_value = any(s[0] in (VALUE, VALUES, ATTR, REGION) for s in steps)
            types = tuple(
                s[1] for s in steps if s[0] in (TYPE, TYPES) and s[1] in found.operand_index and not has_value
            )
            literal = steps[0][0] == LIT and steps[0][1] not in (",", "{", "(")
            out.append((GROUP, steps, item.repeat, literal, tuple(dict.fromkeys(types))))
    return tuple(out)


def one_typed(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], dict[str, str]]:
    """Return a format in which a list of operands has only one type, for all of them. Also return a map from
    each operand without a type to the operand with the type.
    """
    out: list[Step] = []
    same: dict[str, str] = {}
    for step in steps:
        follows = len(out) > 1 and out[-1] == (LIT, ",") and out[-2][0] == TYPE
        if step[0] == TYPE and follows:
            out.pop()
            same[str(step[1])] = same.get(str(out[-1][1]), str(out[-1][1]))
        else:
            out.append(step)
    return tuple(out), same


class RowReader(Blocks):
    """Reads formats, and makes operations."""

    def run(self, steps: tuple[Step, ...], st: Statement, found: Row) -> None:
        t = self.t
        for step in steps:
            kind = step[0]
            if kind == LIT:
                if t[self.i] != step[1]:
                    raise Fail(self.i, f"expected '{step[1]}', got {self.shown()}")
                self.i += 1
            elif kind == VALUE:
                at = self.i
                text = t[at]
                if text[:1] != "%":
                    raise self._no_value(found, step[1])
                self.i += 1
                value = self.values.get(text) or self.use(text, at)
                st.values.setdefault(step[1], []).append((value, at))
            elif kind == TYPE:
                at = self.i
                type = self._stripped(st, step[1]) if t[at] == "<" else self.type()
                st.types.setdefault(step[1], []).append((type, at))
            elif kind == DICT:
                if t[self.i] == "{":
                    self.attr_dict(st)
            elif kind == GROUP:
                self._group(step, st, found)
            elif kind == VALUES:
                self._values(step[1], st, found)
            elif kind == TYPES:
                self._types_of(step[1], st)
            elif kind == ATTR:
                st.attrs[step[1].name] = self.declared_attr(step[1])
            else:
                st.regions[step[1]] = self.region()

    def _stripped(self, st: Statement, name: str) -> Type:
        """Read `<f32>` for `!pto.ptr<f32>`: the name of the type follows from its operand."""
        known = st.values.get(name) or next(iter(st.values.values()), None)
        head = {
            "ptr": "ptr",
            "tile": "tile_buf",
            "tensor_view": "tensor_view",
            "view": "partition_tensor_view",
        }
        kind = head.get(known[0][0].type.kind) if known else None
        if kind is None:
            raise Fail(self.i, "expected a type, got '<'", "write the type in full")
        begin, depth = self.i, 0
        while True:
            text = self.t[self.i]
            if text in (EOF, "{", "}"):
                raise Fail(self.i, "expected '>'")
            depth += (text == "<") - (text == ">")
            self.i += 1
            if depth == 0:
                break
        start = self.tokens.starts[begin]
        text = self.source.text[start : self.tokens.starts[self.i - 1] + 1]
        return self.parse_type_text(f"!pto.{kind}{text}", start - len(kind) - 5)

    def attr_dict(self, st: Statement) -> None:
        at = self.i
        for key, value in self.dictionary().items():
            if key in st.attrs:
                self.report("PTO-E0114", f"attribute '{key}' is given twice", at)
            st.attrs[key] = value

    def _values(self, name: str, st: Statement, found: Row) -> None:
        got = st.values.setdefault(name, [])
        while self.t[self.i][:1] == "%":
            got.append((self.value(), self.i - 1))
            if self.t[self.i] != "," or not self.t[self.i + 1][:1].startswith(("%", *"0123456789")):
                return
            self.i += 1
        if self.t[self.i][:1].isdigit():
            raise self._no_value(found, name)

    def _no_value(self, found: Row, name: str) -> Fail:
        kinds = found.operands[found.operand_index[name]].kinds
        text = f"-{self.t[self.i + 1]}" if self.t[self.i] == "-" else self.t[self.i]
        help = literal_help(text, "" if "index" in kinds else kinds[0])
        return Fail(self.i, f"expected a value for '{name}', got {self.shown()}", help)

    def _types_of(self, name: str, st: Statement) -> None:
        got = st.types.setdefault(name, [])
        count = len(st.values.get(name, ()))
        if not count:
            return
        for k in range(count):
            got.append((self.type(), self.i - 1))
            if k + 1 < count:
                self.eat(",")

    def _group(self, step: Step, st: Statement, found: Row) -> None:
        first = step[1][0]
        while first[0] != LIT or self.t[self.i] == first[1]:
            if not self._may_start(step, st):
                return
            begin = self.i
            saved = _snapshot(st)
            try:
                self.run(step[1], st, found)
                self._check_group(saved[0], st, found)
            except Fail as fail:
                # If more than the first token matched, the user meant this group, so report its error.
                if fail.at > begin + 1 and step[3]:
                    raise
                self.forget_uses(begin)
                self.i = begin
                _restore(st, saved)
                return
            if not step[2] or self.i == begin:
                return

    def _check_group(self, before: dict[str, int], st: Statement, found: Row) -> None:
        """Check the kinds of operands, which distinguish optional groups."""
        for name, got in st.values.items():
            declared = found.operands[found.operand_index[name]]
            for value, at in got[before.get(name, 0) :]:
                if not kind_matches(declared, value.type):
                    raise _wrong_kind(declared, value, at, at)

    def _may_start(self, step: Step, st: Statement) -> bool:
        """Return True if a type may follow: an optional operand has types exactly if it is present."""
        for name in step[4]:
            if not len(st.values.get(name, ())) > len(st.types.get(name, ())):
                return False
        return True

    def finish(self, found: Row, st: Statement, names: Names, at: int) -> Operation:
        """Assemble the operation: operands in table order, types checked, results typed."""
        operands: list[Value] = []
        several = not isinstance(found.format, str)
        segments: list[int] | None = [] if found.has_segments else None
        for declared in found.operands:
            got = st.values.get(declared.name, ())
            if segments is not None:
                segments.append(len(got))
            if not got:
                if declared.optional or declared.variadic:
                    continue
                raise Fail(self.i, f"operand '{declared.name}' is missing")
            if len(got) > 1 and not declared.variadic:
                raise Fail(got[1][1], f"operand '{declared.name}' is given twice")
            if several:  # this form of the statement does not fit, but another one may
                for value, where in got:
                    if not kind_matches(declared, value.type):
                        raise _wrong_kind(declared, value, where, self.i)
            types = st.types.get(declared.name)
            if types:
                if len(types) == len(got):
                    for (value, where), (type, _) in zip(got, types, strict=True):
                        if value.type is not type:
                            self.check_type(value, type, where)
                elif len(types) != 1:
                    raise Fail(types[0][1], f"{len(got)} values but {len(types)} types for '{declared.name}'")
                else:
                    for value, where in got:
                        self.check_type(value, types[0][0], where)
            operands += [v for v, _ in got]
        if st.attrs:
            settle(found, st.attrs)
        op = Operation(
            found.full_name,
            found,
            operands,
            self._result_types(found, st, operands, names),
            st.attrs or None,
            tuple(segments) if segments is not None else None,
        )
        if st.regions:
            op.regions = [st.regions.get(name, Region()) for name in found.regions]
            for region in op.regions:
                region.parent = op
        return op

    def _result_types(self, found: Row, st: Statement, operands: list[Value], names: Names) -> list[Type]:
        out: list[Type] = []
        for declared in found.results:
            types = st.types.get(declared.name)
            if types:
                out.extend(t for t, _ in types)
                continue
            rule = found.infer.get(declared.name, "")
            if rule.startswith("$"):
                source, _, fact = rule[1:].partition(".")
                got = st.values.get(source)
                if got:
                    type = got[0][0].type
                    out.append(getattr(type, "elem", ERROR) if fact == "dtype" else type)
                    continue
                types = st.types.get(source)
                if types:
                    out.append(types[0][0])
                    continue
            elif "(" in rule:
                out.append(INFERENCE[rule.partition("(")[0]](st))
                continue
            elif rule:
                out.append(self.parse_type_text(rule, 0))
                continue
            if declared.optional:
                continue
            raise Fail(self.i, f"the type of result '{declared.name}' is missing")
        return out


def _wrong_kind(declared: Operand, value: Value, at: int, reach: int) -> Fail:
    wanted = " or ".join(KINDS[k] for k in declared.kinds)
    message = f"operand '{declared.name}' must be {wanted}, but got {value.type}"
    numbers = {str(value.type), *declared.kinds} <= _INTEGERS
    help = "write the constant with that type, or convert it with arith.index_cast" if numbers else ""
    fail = Fail(at, message, help, code="PTO-E0303", expected=wanted)
    fail.reach = reach
    return fail


def _snapshot(st: Statement) -> tuple[dict[str, int], dict[str, int], set[str]]:
    return (
        {k: len(v) for k, v in st.values.items()},
        {k: len(v) for k, v in st.types.items()},
        set(st.attrs),
    )


def _restore(st: Statement, saved: tuple[dict[str, int], dict[str, int], set[str]]) -> None:
    for store, lengths in ((st.values, saved[0]), (st.types, saved[1])):
        for key in list(store):
            if key not in lengths:
                del store[key]
            else:
                del store[key][lengths[key] :]
    for key in set(st.attrs) - saved[2]:
        del st.attrs[key]
