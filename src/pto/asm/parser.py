"""Text to IR: modules, functions, blocks and statements of every form.

A statement is tried against the formats of its row; the further-reaching failure is the one reported. After
an error the parser skips to the next statement, so that one run reports all errors of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from ..diag import Diagnostic, DiagnosticError, Source, did_you_mean, has_errors
from ..ir.attrs import Attribute, DenseArrayAttr, IntAttr, StrAttr
from ..ir.core import Block, Module, Operation, Region, Successor, Value
from ..ir.types import ERROR, FunctionType, Type
from ..isa import mnemonics, row
from ..isa.format import AttrDict, Group, Item, Lit, TypeOf, Var
from ..isa.profiles import Profile, resolve
from ..isa.row import Attr, Row
from .cursor import Cursor, Fail, Report
from .lexer import EOF, unquote

_SHORT_NAMES = {"return": "func.return", "call": "func.call", "func": "func.func", "module": "builtin.module"}
_SPLIT = "// -----"


class Statement:
    """What a format has read so far."""

    __slots__ = ("attrs", "regions", "result_types", "types", "values")

    def __init__(self) -> None:
        self.values: dict[str, list[tuple[Value, int]]] = {}
        self.types: dict[str, list[tuple[Type, int]]] = {}
        self.attrs: dict[str, Attribute] = {}
        self.regions: dict[str, Region] = {}
        self.result_types: list[Type] = []


Names = list[tuple[str, int, int]]  # result name, count, token index
Custom = Callable[["Parser", Row, Names, int], Operation]


class Parser(Cursor):
    def __init__(self, source: Source, profile: Profile) -> None:
        super().__init__(source, profile)
        self.block = Block()
        self.blocks: dict[str, tuple[Block, int]] = {}

    # ------------------------------------------------------------------------------------------- module

    def module(self) -> Module:
        """The whole text: aliases, then a module or bare functions."""
        top = Operation("builtin.module", row("builtin.module"), [])
        region = Region(top)
        top.regions = [region]
        self.block = body = region.add_block()
        self.open_scope()
        while self.t[self.i] != EOF:
            if not self.alias():
                self.guarded_statement()
        self.close_scope()
        self.undefined(0)
        only = body.ops[0] if len(body.ops) == 1 else None
        if only is not None and only.name == "builtin.module":
            return Module(only, self.source)
        return Module(top, self.source, implicit=True)

    def alias(self) -> bool:
        """`!name = type` or `#name = attr` at top level."""
        text = self.t[self.i]
        if text[:1] not in ("!", "#") or self.t[self.i + 1] != "=":
            return False
        at = self.i
        self.i += 2
        try:
            if text[0] == "!":
                self.type_aliases[text[1:]] = self.type()
            elif self.t[self.i] == "loc":
                self.location()
                self.attr_aliases[text[1:]] = StrAttr("loc")
            else:
                self.attr_aliases[text[1:]] = self.attribute()
        except (Fail, Report) as problem:
            self._record(problem)
            if text[0] == "!":
                self.type_aliases[text[1:]] = ERROR
            self._skip(at)
        return True

    # --------------------------------------------------------------------------------- blocks, statements

    def region(
        self, args: Sequence[tuple[str, Type, int]] = (), terminator: str = "", isolated: bool = False
    ) -> Region:
        """`{ ... }`; `args` are block arguments that the operation itself names (loop variables)."""
        region = Region()
        outer_block, outer_blocks = self.block, self.blocks
        self.eat("{")
        self.open_scope()
        self.blocks = {}
        self.block = region.add_block()
        opened = self.i - 1
        try:
            for name, type, at in args:
                self.define(name, self.block.add_arg(type), at)
            while True:
                text = self.t[self.i]
                if text == "}":
                    break
                if text == EOF:
                    self.report("PTO-E0106", "'{' is never closed", opened, help="add the missing '}'")
                if text[:1] == "^":
                    self.label(region)
                else:
                    self.guarded_statement()
            self.i += 1
            self.undefined_blocks()
            if len(region.blocks) > 1 and not region.blocks[0].ops and not region.blocks[0].args:
                region.blocks.pop(0)
        finally:
            self.close_scope()
            if isolated:
                self.undefined(len(self._scopes))
            self.block, self.blocks = outer_block, outer_blocks
        if terminator and (not region.blocks[-1].ops or not _is_terminator(region.blocks[-1].ops[-1])):
            at = self.tokens.starts[self.i - 1]
            region.blocks[-1].append(Operation(terminator, row(terminator), [], start=at, end=at + 1))
        return region

    def undefined_blocks(self) -> None:
        """Report branches to blocks that the region does not have."""
        for label, (block, at) in self.blocks.items():
            if block.parent is None:
                known = [k for k, (b, _) in self.blocks.items() if b.parent]
                self.error("PTO-E0206", f"undefined block '{label}'", at, help=did_you_mean(label, known))

    def label(self, region: Region) -> None:
        """`^bb0(%x: T):`"""
        at = self.i
        label = self.t[self.i]
        self.i += 1
        known = self.blocks.get(label)
        if known and known[0].parent is not None:
            self.error("PTO-E0202", f"block '{label}' is defined twice", at)
            block = Block(label)
        else:
            block = known[0] if known else Block(label)
        # A label right at the start names the entry block the region already has.
        first = region.blocks[0]
        if len(region.blocks) == 1 and not first.ops and not first.args and not known:
            block = first
            block.label = label
        else:
            region.blocks.append(block)
        block.parent = region
        self.blocks[label] = (block, at)
        self.block = block
        try:
            if self.accept("("):
                while self.t[self.i] != ")":
                    name_at = self.i
                    name = self.value_name()
                    self.eat(":")
                    self.define(name, block.add_arg(self.type()), name_at)
                    self.trailing_location()
                    if not self.accept(","):
                        break
                self.eat(")")
            self.eat(":")
        except (Fail, Report) as problem:
            self._record(problem)
            self._skip(at)

    def successor(self) -> Successor:
        """`^bb1(%x, %y : T, T)`"""
        at = self.i
        label = self.t[at]
        if label[:1] != "^":
            raise Fail(at, f"expected a block such as ^bb1, got {self.shown()}")
        self.i += 1
        block = self.blocks.setdefault(label, (Block(label), at))[0]
        args: list[Value] = []
        if self.accept("("):
            places: list[int] = []
            while self.t[self.i][:1] == "%":
                places.append(self.i)
                args.append(self.value())
                if not self.accept(","):
                    break
            self.eat(":")
            for k, value in enumerate(args):
                self.check_type(value, self.type(), places[k])
                if k + 1 < len(args):
                    self.eat(",")
            self.eat(")")
        return Successor(block, args)

    def guarded_statement(self) -> None:
        """One statement; on an error record it and go to the next one."""
        at = self.i
        depth, scopes = self.depth, len(self._scopes)
        try:
            self.statement()
        except (Fail, Report) as problem:
            while len(self._scopes) > scopes:
                self.close_scope()
            self.depth = depth
            self._record(problem)
            self._poison_results(at)
            self._skip(at)

    def _record(self, problem: Fail | Report) -> None:
        if isinstance(problem, Report):
            self.diagnostics.append(problem.diagnostic)
            return
        code = problem.code or ("PTO-E0106" if self.t[problem.at] == EOF else "PTO-E0107")
        self.error(code, problem.message, problem.at, help=problem.help, expected=problem.expected)

    def _poison_results(self, at: int) -> None:
        """Results of a statement that failed are known names of unknown type: no follow-up errors."""
        i = at
        while self.t[i][:1] == "%":
            name = self.t[i]
            i += 1
            count = 1
            if self.t[i] == ":" and self.t[i + 1].isdigit():
                count = min(int(self.t[i + 1][:4]), 1000)
                i += 2
            if self.t[i] not in (",", "="):
                return
            for k in range(count):
                for key in (name, f"{name}#{k}") if count > 1 else (name,):
                    if key not in self.values:
                        self.define(key, Value(ERROR, Block()), at)
                        self.values[key].type = ERROR
            i += 1

    def _skip(self, at: int) -> None:
        """Move past a broken statement: to the next line that starts one, outside its braces.

        Braces count from the statement's start: those of an unfinished dictionary or body close there.
        """
        reached = max(self.i, at + 1)
        self.i = at
        depth = 0
        source = self.source
        while self.t[self.i] != EOF:
            text = self.t[self.i]
            if depth <= 0 and self.i >= reached:
                if text == "}":
                    return
                before = self.tokens.starts[self.i - 1] + len(self.t[self.i - 1])
                fresh = "\n" in source.text[before : self.tokens.starts[self.i]]
                if fresh and (text[0] in "%^" or "." in text or text in _SHORT_NAMES or text[0] == '"'):
                    return
            depth += (text == "{") - (text == "}")
            self.i += 1

    def statement(self) -> Operation:
        t = self.t
        start = self.i
        names: Names = []
        if t[start][:1] == "%":
            names = self._result_names()
        name = t[self.i]
        at = self.i
        if name[:1] == '"':
            op = self.generic_statement(names)
        else:
            found = row(_SHORT_NAMES.get(name, name)) if name != EOF else None
            if found is None:
                op = self._unknown_statement(name, names)
            else:
                self.i += 1
                op = self.row_statement(
                    found, names, bare=not name.startswith(found.dialect + ".") and name not in _SHORT_NAMES
                )
        if t[self.i] == "loc":
            self.trailing_location()
        op.start = self.tokens.starts[start]
        op.end = self.tokens.starts[self.i - 1] + len(t[self.i - 1])
        if names:
            self.bind_results(op, names, at)
        self.accept(";")
        self.block.append(op)
        return op

    def _result_names(self) -> Names:
        names: Names = []
        while True:
            at = self.i
            name = self.value_name()
            count = 1
            if self.accept(":"):
                if not self.t[self.i].isdigit() or len(self.t[self.i]) > 4:
                    raise Fail(self.i, f"expected a result count, got {self.shown()}")
                count = int(self.t[self.i])
                self.i += 1
            names.append((name, count, at))
            if not self.accept(","):
                break
        self.eat("=")
        return names

    def bind_results(self, op: Operation, names: Names, at: int) -> None:
        wanted = sum(count for _, count, _ in names)
        if wanted != len(op.results):
            self.error(
                "PTO-E0208",
                f"{op.name} has {len(op.results)} result{'s' * (len(op.results) != 1)}",
                names[0][2],
                expected=f"{len(op.results)} name{'s' * (len(op.results) != 1)}",
                got=f"{wanted}",
            )
            self._poison_results(names[0][2])
            return
        k = 0
        for name, count, where in names:
            if count == 1:
                self.define(name, op.results[k], where)
                k += 1
                continue
            for n in range(count):
                self.define(f"{name}#{n}", op.results[k], where)
                self.values[f"{name}#{n}"].name = f"{name[1:]}#{n}"
                k += 1

    def _unknown_statement(self, name: str, names: Names) -> NoReturn:
        if name == EOF:
            self.report("PTO-E0106", "expected a statement, got end of file")
        if not (name[:1].isalpha() or name[:1] == "_"):
            raise Fail(self.i, f"expected a statement, got {self.shown()}")
        help = did_you_mean(name if "." in name else f"pto.{name}", mnemonics())
        if name in _REPLACED:
            help = _REPLACED[name]
        self.report(
            "PTO-E0108", f"unknown operation '{name}'", help=help or "`pto isa` lists every operation"
        )

    # --------------------------------------------------------------------------------------------- values

    def value_name(self) -> str:
        text = self.t[self.i]
        if text[:1] != "%":
            raise Fail(self.i, f"expected a value such as %x, got {self.shown()}")
        self.i += 1
        return text

    def value(self) -> Value:
        at = self.i
        return self.use(self.value_name(), at)

    # ------------------------------------------------------------------------------------------ statements

    def row_statement(self, found: Row, names: Names, bare: bool) -> Operation:
        """A statement of a known row, in whichever form it is written."""
        from . import flat, structured

        custom = structured.PARSERS.get(found.name)
        if custom is not None:
            return custom(self, found, names, self.i - 1)
        begin = self.i
        best: Fail | None = None
        if flat.looks_flat(self, found, bare):
            try:
                return flat.parse(self, found, names, bare)
            except Fail as fail:
                best = fail
                self.i = begin
        for steps in compiled(found):
            st = Statement()
            try:
                self.run(steps, st, found)
                return self.finish(found, st, names, begin)
            except Fail as fail:
                if best is None or fail.at > best.at:
                    best = fail
                self.i = begin
        assert best is not None
        if not flat.looks_flat(self, found, bare):
            try:
                return flat.parse(self, found, names, bare)
            except Fail as fail:
                if fail.at > best.at:
                    best = fail
        help = best.help or f"syntax: {found.full_name} {_format_text(found)}"
        raise Fail(best.at, f"{found.name}: {best.message}", help, best.code, best.expected)

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
                    raise Fail(at, f"expected a value for '{step[1]}', got {self.shown()}")
                self.i += 1
                value = self.values.get(text) or self.use(text, at)
                st.values.setdefault(step[1], []).append((value, at))
            elif kind == TYPE:
                at = self.i
                type = self._stripped(st, step[1]) if t[at] == "<" else self.type()
                st.types.setdefault(step[1], []).append((type, at))
            elif kind == DICT:
                if t[self.i] == "{":
                    self._attr_dict(st)
            elif kind == GROUP:
                self._group(step, st, found)
            elif kind == VALUES:
                self._values(step[1], st)
            elif kind == TYPES:
                self._types_of(step[1], st)
            elif kind == ATTR:
                st.attrs[step[1].name] = self.declared_attr(step[1])
            else:
                st.regions[step[1]] = self.region()

    def _stripped(self, st: Statement, name: str) -> Type:
        """`<f32>` for `!pto.ptr<f32>`: the type's name follows from the operand it belongs to."""
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

    def _attr_dict(self, st: Statement) -> None:
        at = self.i
        for key, value in self.dictionary().items():
            if key in st.attrs:
                self.report("PTO-E0114", f"attribute '{key}' is given twice", at)
            st.attrs[key] = value

    def _values(self, name: str, st: Statement) -> None:
        got = st.values.setdefault(name, [])
        while self.t[self.i][:1] == "%":
            got.append((self.value(), self.i - 1))
            if self.t[self.i] != "," or self.t[self.i + 1][:1] != "%":
                break
            self.i += 1

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
        while True:
            begin = self.i
            saved = _snapshot(st)
            try:
                if not self._may_start(step, st):
                    return
                self.run(step[1], st, found)
            except Fail as fail:
                # A group that got past its first token is what the user meant: keep its error.
                if fail.at > begin + 1 and step[3]:
                    raise
                self.i = begin
                _restore(st, saved)
                return
            if not step[2] or self.i == begin:
                return

    def _may_start(self, step: Step, st: Statement) -> bool:
        """Types of an optional operand are present exactly when the operand is."""
        for name in step[4]:
            if not len(st.values.get(name, ())) > len(st.types.get(name, ())):
                return False
        return True

    # ------------------------------------------------------------------------------------------ operations

    def finish(self, found: Row, st: Statement, names: Names, at: int) -> Operation:
        """Assemble the operation: operands in table order, types checked, results typed."""
        operands: list[Value] = []
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
            operands.extend(v for v, _ in got)
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
                from .structured import INFERENCE

                out.append(INFERENCE[rule.partition("(")[0]](st))
                continue
            elif rule:
                out.append(self.parse_type_text(rule, 0))
                continue
            if declared.optional:
                continue
            raise Fail(self.i, f"the type of result '{declared.name}' is missing")
        return out

    def generic_statement(self, names: Names) -> Operation:
        """`"dialect.op"(%a) <{..}> {..} ({region}) : (T) -> T`"""
        at = self.i
        name = unquote(self.t[self.i])
        self.i += 1
        found = row(name)
        if found is None and (name.startswith("pto.") or "." not in name):
            self.report("PTO-E0108", f"unknown operation '{name}'", at, help=did_you_mean(name, mnemonics()))
        self.eat("(")
        values: list[tuple[Value, int]] = []
        while self.t[self.i] != ")":
            values.append((self.value(), self.i - 1))
            if not self.accept(","):
                break
        self.eat(")")
        successors: list[Successor] = []
        if self.accept("["):
            while self.t[self.i] != "]":
                successors.append(self.successor())
                if not self.accept(","):
                    break
            self.eat("]")
        attrs: dict[str, Attribute] = {}
        if self.t[self.i] == "<" and self.t[self.i + 1] == "{":
            self.i += 1
            attrs.update(self.dictionary())
            self.eat(">")
        regions: list[Region] = []
        if self.t[self.i] == "(" and self.t[self.i + 1] == "{":
            self.i += 1
            while True:
                regions.append(self.region(isolated=name == "func.func"))
                if not self.accept(","):
                    break
            self.eat(")")
        if self.t[self.i] == "{":
            attrs.update(self.dictionary())
        self.eat(":")
        type_at = self.i
        signature = self.type()
        if not isinstance(signature, FunctionType):
            raise Fail(type_at, "expected a type of the form (T, T) -> T")
        if len(signature.inputs) != len(values):
            raise Fail(type_at, f"{len(values)} operands but {len(signature.inputs)} operand types")
        for (value, where), type in zip(values, signature.inputs, strict=True):
            self.check_type(value, type, where)
        op = Operation(name, found, [v for v, _ in values], signature.results, attrs or None)
        op.regions = regions
        op.successors = tuple(successors)
        for region in regions:
            region.parent = op
        if found is not None:
            from .generic import from_generic

            from_generic(self, op, found, at)
        return op


# --------------------------------------------------------------------------------------- compiled formats

LIT, VALUE, VALUES, TYPE, TYPES, ATTR, REGION, DICT, GROUP = range(9)
Step = tuple  # type: ignore[type-arg]
_compiled: dict[str, tuple[tuple[Step, ...], ...]] = {}


def compiled(found: Row) -> tuple[tuple[Step, ...], ...]:
    """The formats of a row as steps for `Parser.run`."""
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
        elif isinstance(item, Group):
            steps = _compile(item.items, found)
            has_value = any(s[0] in (VALUE, VALUES, ATTR, REGION) for s in steps)
            types = tuple(
                s[1] for s in steps if s[0] in (TYPE, TYPES) and s[1] in found.operand_index and not has_value
            )
            literal = steps[0][0] == LIT and steps[0][1] not in (",", "{", "(")
            out.append((GROUP, steps, item.repeat, literal, tuple(dict.fromkeys(types))))
    return tuple(out)


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


def _format_text(found: Row) -> str:
    from ..isa.row import default_format

    first = found.format if isinstance(found.format, str) else found.format[0]
    return first or default_format(found)


def _is_terminator(op: Operation) -> bool:
    return op.row is not None and op.row.terminator


_REPLACED = {
    "pto.vbroadcast": "use pto.vbr",
    "pto.copy_vreg_to_ub": "use pto.vsts",
    "pto.vidu": "use pto.vci",
}


# ---------------------------------------------------------------------------------------------- front door


def target_of(text: str) -> str | None:
    """Value of the `pto.target_arch` attribute of a text, without parsing it."""
    at = text.find("pto.target_arch")
    if at < 0:
        return None
    rest = text[at + 15 : at + 80].lstrip(' "').lstrip("= ")
    return rest[1:].partition('"')[0] if rest[:1] == '"' else None


def effective_profile(text: str, target: str | Profile | None) -> Profile:
    """The profile of a program text, known before it is parsed: Left tiles depend on it."""
    return resolve(target, target_of(text))


def parse_source(
    source: Source, target: str | Profile | None = None
) -> tuple[Module | None, list[Diagnostic]]:
    """Parse; the module is None when there are errors."""
    from . import assembly

    parser = Parser(source, effective_profile(source.text, target))
    if assembly.looks_like(parser):
        module = assembly.parse(parser)
    else:
        module = parser.module()
    if has_errors(parser.diagnostics):
        return None, parser.diagnostics
    return module, parser.diagnostics


def parse(text: str, name: str = "<text>", target: str | Profile | None = None) -> Module:
    """Parse a program text; raises `DiagnosticError` with all diagnostics."""
    module, diagnostics = parse_source(Source(name, text), target)
    if module is None:
        raise DiagnosticError(diagnostics)
    return module


def segments_attr(op: Operation) -> tuple[int, ...] | None:
    found = op.attrs.get("operandSegmentSizes") or op.attrs.get("operand_segment_sizes")
    return tuple(int(v) for v in found.value) if isinstance(found, DenseArrayAttr) else None


__all__ = ["IntAttr", "Parser", "effective_profile", "parse", "parse_source"]
