"""Text to IR: modules, aliases and statements of every form.

A statement is read by its own function (control flow), as a flat list (SSA and PTO-AS), in generic form, or
through the formats of its row.
"""

from __future__ import annotations

from typing import NoReturn, TypeVar

from ..diag import did_you_mean
from ..ir.attrs import Attribute, StrAttr
from ..ir.core import Module, Operation, Region, Successor, Value, may_name
from ..ir.shape import miscount, special
from ..ir.types import ERROR, FunctionType, Type
from ..isa import mnemonics, row
from ..isa.row import Row
from . import flat, structured
from .blocks import SHORT_NAMES
from .cursor import Fail, Report
from .lexer import EOF, unquote
from .row_reader import RowReader, compiled, one_typed
from .statement import Names, Statement

MAX_ALIAS = 10_000  # characters of an expanded alias

_Named = TypeVar("_Named", Type, Attribute)


class Parser(RowReader):
    def module(self) -> Module:
        """Read the whole text: aliases, then a module or bare functions."""
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
        """Read `!name = type` or `#name = attr` at top level."""
        text = self.t[self.i]
        if text[:1] not in ("!", "#") or self.t[self.i + 1] != "=":
            return False
        at = self.i
        self.begins.append(at)
        self.i += 2
        try:
            if text[0] == "!":
                self.type_aliases[text[1:]] = self._short(self.type(), at)
            elif self.t[self.i] == "loc":
                self.places[text] = self.location()
                self.attr_aliases[text[1:]] = StrAttr("loc")
            else:
                self.attr_aliases[text[1:]] = self._short(self.attribute(), at)
        except (Fail, Report) as problem:
            self.record(problem)
            if text[0] == "!":
                self.type_aliases[text[1:]] = ERROR
            self.skip(at)
        return True

    def _short(self, named: _Named, at: int) -> _Named:
        """Check the size of an alias: aliases of aliases can double it with every line."""
        if len(str(named)) > MAX_ALIAS:
            self.report("PTO-E0105", f"alias stands for more than {MAX_ALIAS} characters", at)
        return named

    def statement(self) -> Operation:
        t = self.t
        start = self.i
        before = len(self.block.ops)
        names: Names = []
        if t[start][:1] == "%":
            names = self._result_names()
        name = t[self.i]
        at = self.i
        if name[:1] == '"':
            op = self.generic_statement(names)
        else:
            found = row(SHORT_NAMES.get(name, name)) if name != EOF else None
            if found is None:
                op = self._unknown_statement(name, names)
            else:
                self.i += 1
                op = self.row_statement(
                    found, names, bare=not name.startswith(found.dialect + ".") and name not in SHORT_NAMES
                )
        wrong = (miscount(op) if name[:1] == '"' else "") or special(op)
        if wrong:
            raise Fail(at, f"{op.name}: {wrong}")
        said = self.trailing_location() if t[self.i] == "loc" else None
        if said is not None:
            self.located += [(made, said) for made in (*self.block.ops[before:], op)]
        starts = self.tokens.starts
        op.source = self.source
        op.start = starts[start]
        op.end = starts[self.i - 1] + len(t[self.i - 1])
        if names:
            self.bind_results(op, names, at)
        if self.semicolons:
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
                f"wrong number of results of {op.name}",
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
            help = (
                "remove ';': a statement ends with its line, and only PTO-AS has ';'" if name == ";" else ""
            )
            raise Fail(self.i, f"expected a statement, got {self.shown()}", help)
        help = did_you_mean(name if "." in name else f"pto.{name}", mnemonics())
        if name in _REPLACED:
            help = _REPLACED[name]
        self.report(
            "PTO-E0108", f"unknown operation '{name}'", help=help or "`pto isa` lists every operation"
        )

    def row_statement(self, found: Row, names: Names, bare: bool) -> Operation:
        """Read a statement of a known row, in any form."""
        custom = structured.PARSERS.get(found.name)
        if custom is not None:
            return custom(self, found, names, self.i - 1)
        begin = self.i
        best: Fail | None = None
        nearest = 0  # the format that read furthest
        if flat.looks_flat(self, found, bare):
            try:
                return flat.parse(self, found, names, bare)
            except Fail as fail:
                best = fail
                self.i = begin
        for k, steps in enumerate(compiled(found)):
            st = Statement()
            try:
                self.run(steps, st, found)
                # no format begins with ':', so these are the types of a longer form
                if self.t[self.i] == ":":
                    raise Fail(self.i, "expected the end of the statement, got ':'")
                if found.is_ins_outs and self.t[self.i] == "{":  # some tools write attributes at the end
                    self.attr_dict(st)
                return self.finish(found, st, names, begin)
            except Fail as fail:
                if best is None or fail.reach > best.reach:
                    best, nearest = fail, k
                self.i = begin
        assert best is not None
        if found.is_ins_outs and all(o.kinds == ("tile",) for o in found.operands):
            made = self._one_type(found, names, begin)
            if made is not None:
                return made
        if not flat.looks_flat(self, found, bare):
            try:
                return flat.parse(self, found, names, bare)
            except Fail as fail:
                if fail.reach > best.reach:
                    best = fail
        if not best.help.startswith("use arith.constant"):
            self._count_operands(found, begin)
        form = "asm" if bare else "ssa" if names and self.t[begin] != "ins" else "pto"
        help = best.help or f"syntax: {_syntax(found, form, nearest)}"
        message = best.message.removeprefix(f"{found.name} ")
        raise Fail(best.at, f"{found.name}: {message}", help, best.code, best.expected)

    def _one_type(self, found: Row, names: Names, begin: int) -> Operation | None:
        """Read `ins(%a, %b : T) outs(%d : T)`, as on the pages of the ISA: one type for a whole list."""
        for steps, same in map(one_typed, compiled(found)):
            st = Statement()
            try:
                self.run(steps, st, found)
            except Fail:
                self.i = begin
                continue
            st.types.update((name, st.types[first]) for name, first in same.items())
            return self.finish(found, st, names, begin)
        return None

    def _count_operands(self, found: Row, begin: int) -> None:
        """Report a missing or extra operand of `ins(..)` or `outs(..)`, if that is the mistake."""
        if not found.is_ins_outs or isinstance(found.format, tuple):
            return
        for word, declared, verb in (("ins", found.ins, "reads"), ("outs", found.outs, "writes")):
            at = begin
            while self.t[at] not in (word, EOF, "}") and at < begin + 200:
                at += 1
            if self.t[at] != word or self.t[at + 1] != "(" or not declared:
                continue
            given, at = 0, at + 2
            while self.t[at][:1] == "%":
                given += 1
                at += 1 + (self.t[at + 1] == ",")
            least = sum(not o.optional for o in declared)
            if least <= given <= len(declared) or any(o.variadic for o in declared):
                continue
            listed = ", ".join(o.name + "?" * o.optional for o in declared)
            wrong = f"'{declared[given].name}' is missing" if given < least else "too many operands"
            raise Fail(at - 1, f"{found.name} {verb} {least} operands ({listed}), got {given}: {wrong}")

    def generic_statement(self, names: Names) -> Operation:
        """Read `"dialect.op"(%a) <{..}> {..} ({region}) : (T) -> T`"""
        at = self.i
        name = unquote(self.t[self.i])
        self.i += 1
        found = row(name)
        if found is None and (name.startswith("pto.") or not may_name(name)):
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
                regions.append(self.region(isolated=name in ("func.func", "builtin.module")))
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


def _syntax(found: Row, form: str, nearest: int) -> str:
    """Return the syntax of a row as `pto isa` shows it, in the form of the statement."""
    from ..isa.describe import syntax  # costly, and needed only for errors

    lines = syntax(found)[form]
    return lines[min(nearest, len(lines) - 1)]


_REPLACED = {
    "pto.vbroadcast": "use pto.vbr",
    "pto.copy_vreg_to_ub": "use pto.vsts",
    "pto.vidu": "use pto.vci",
}


def is_mlir(p: Parser) -> bool:
    """Return True if a text starts like MLIR, and so is not assembly."""
    at = 0
    while p.t[at][:1] == "!" and p.t[at + 1] == "=":  # both have aliases of types
        at += 3
        if at >= len(p.t):
            return True
    first = p.t[at]
    return first in ("module", "func.func", "builtin.module") or first[:1] == '"' or (at > 0 and first != ".")
