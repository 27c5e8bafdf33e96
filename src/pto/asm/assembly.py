"""PTO-AS, the assembly form: directives and destination-first statements.

    .module {pto.target_arch = "a3"}
    .func @vec_add {pto.entry}
    .arg %a : !pto.ptr<f32>
    .const %c16 = 16 : index
    tadd %c, %a, %b : !pto.tile_buf<vec, 16x64xf32>
    .end

Statements outside a `.func` form a function `@main` whose `.arg`s are its arguments. Structured control
flow is written as in the other forms. A `#` at the start of a line begins a comment.
"""

from __future__ import annotations

import re

from ..diag import Source, Span, did_you_mean
from ..ir.attrs import ArrayAttr, Attribute, DictAttr, StrAttr, TypeAttr
from ..ir.core import Block, Module, Operation, Region
from ..ir.shape import VISIBILITIES, special
from ..ir.types import FunctionType, Type
from ..isa import row
from .cursor import MAX_ERRORS, Fail, Report
from .lexer import EOF
from .parser import Parser, is_mlir
from .structured import PARSERS

DIRECTIVES = (".module", ".func", ".arg", ".const", ".end", ".result", ".declare")
_COMMENT = re.compile(r"^[ \t]*#(?![\w.]*\s*=)[^\n]*", re.MULTILINE)


def looks_like(p: Parser) -> bool:
    """Return True for an assembly file, which starts with a directive or a bare mnemonic."""
    if is_mlir(p):
        return False
    if _COMMENT.search(p.source.text[:4096]):
        return True
    text = p.t[0]
    if text == ".":
        return f".{p.t[1]}" in DIRECTIVES
    return text[:1].isalpha() and row(text) is not None and "." not in text and text not in ("module", "func")


def parse(p: Parser) -> Module:
    """Parse the whole file."""
    if _COMMENT.search(p.source.text):
        # Comments are blanked, so every offset stays that of the user's file.
        text = _COMMENT.sub(lambda m: " " * len(m[0]), p.source.text)
        shown = p.source
        p = _replace(p, Parser(Source(shown.name, text)), shown)
    module = _Reader(p).module()
    return module


def _replace(old: Parser, new: Parser, shown: Source) -> Parser:
    new.source = shown
    new.tokens.source = shown
    old.tokens, old.t, old.begins, old.bodies = new.tokens, new.t, new.begins, new.bodies
    old.type_aliases, old._types = new.type_aliases, new._types
    old.places, old.located = new.places, new.located
    for d in new.diagnostics:
        assert d.span is not None
        d.span = Span(shown, d.span.start, d.span.end)
    old.diagnostics = new.diagnostics
    return new


class _Reader:
    def __init__(self, p: Parser) -> None:
        self.p = p
        p.semicolons = True
        self.top = Operation("builtin.module", row("builtin.module"), [])
        region = Region(self.top)
        self.top.regions = [region]
        self.body = region.add_block()
        self.func: Operation | None = None

    def module(self) -> Module:
        p = self.p
        p.open_scope()
        while p.t[p.i] != EOF:
            at = p.i
            if p.alias():
                continue
            if p.t[p.i] == ".":
                depth = p.depth
                try:
                    self.directive()
                except (Fail, Report) as problem:
                    p.depth = depth
                    p.record(problem)
                    p.skip(at)
                continue
            if p.t[p.i] in ("module", "builtin.module", "func.func"):
                self.close_function()
                p.block = self.body
                p.guarded_statement()
                continue
            if self.func is None:
                self.open_function("main", {})
            if p.t[p.i][:1] == "^" and self.func is not None:
                p.label(self.func.regions[0])
                continue
            if p.t[p.i] == "}":
                p.error("PTO-E0107", "unexpected '}'")
                p.i = len(p.t) - 1 if len(p.diagnostics) > MAX_ERRORS else p.i + 1
                continue
            p.guarded_statement()
        self.close_function()
        problem = special(self.top)
        if problem:
            p.error("PTO-E0107", f"module: {problem}", 0)
        p.close_scope()
        p.undefined(0)
        return Module(self.top, p.source)

    def directive(self) -> None:
        p = self.p
        at = p.i
        p.begins.append(at)
        name = "." + p.t[p.i + 1]
        p.i += 2
        if name == ".module":
            self.top.attrs = p.dictionary() if p.t[p.i] == "{" else {}
        elif name == ".func":
            self.close_function()
            private = p.accept("private")
            symbol = p.symbol()
            attrs = self._attributes()
            if private:
                attrs = {"sym_visibility": StrAttr("private"), **attrs}
            self.open_function(symbol, attrs)
        elif name == ".declare":
            self.close_function()
            symbol = p.symbol()
            p.eat(":")
            signature = p.function_type()
            self._declare(symbol, signature, self._attributes())
        elif name == ".arg":
            self._argument()
        elif name == ".result":
            self._result()
        elif name == ".const":
            self._constant(at)
        elif name == ".end":
            if self.func is None:
                p.report("PTO-E0113", ".end without .func", at)
            self.close_function()
        else:
            p.report("PTO-E0113", f"unknown directive '{name}'", at, help=did_you_mean(name, DIRECTIVES))
        p.accept(";")

    def _attributes(self) -> dict[str, Attribute]:
        """Return the attributes of a function; refuse attributes that directives set."""
        p, at = self.p, self.p.i
        attrs = p.dictionary() if p.t[p.i] == "{" else {}
        for key in ("sym_name", "function_type", "arg_attrs"):
            if key in attrs:
                p.report("PTO-E0114", f"cannot set {key}: the directives set it", at)
        if attrs.get("sym_visibility", VISIBILITIES[0]) not in VISIBILITIES:
            p.report("PTO-E0112", "expected public, private or nested for sym_visibility", at)
        return attrs

    def _declare(self, symbol: str, signature: FunctionType, attrs: dict[str, Attribute]) -> Operation:
        op = Operation("func.func", row("func.func"), [])
        op.attrs = {"sym_name": StrAttr(symbol), "function_type": TypeAttr(signature), **attrs}
        op.regions = [Region(op)]
        start = self.p.tokens.starts[self.p.i - 1]
        op.loc = Span(self.p.source, start, start + 1)
        return self.body.append(op)

    def open_function(self, symbol: str, attrs: dict[str, Attribute]) -> None:
        p = self.p
        p.blocks = {}
        self.func = self._declare(symbol, FunctionType((), ()), attrs)
        p.open_scope()
        p.block = self.func.regions[0].add_block()

    def close_function(self) -> None:
        p = self.p
        func, self.func = self.func, None
        if func is None:
            return
        blocks = func.regions[0].blocks
        final: Block = blocks[-1]
        last = final.ops[-1] if final.ops else None
        # A function with several blocks must write the terminator of each block, as in the other forms.
        if len(blocks) == 1 and (last is None or last.row is None or not last.row.terminator):
            at = p.tokens.starts[max(p.i - 1, 0)]
            loc = Span(p.source, at, at + 1)
            final.append(Operation("func.return", row("func.return"), [], segments=(0,), loc=loc))
        problem = special(func)
        if problem:  # a first block may have a label, but its arguments come from .arg
            p.error("PTO-E0107", f"func.func: {problem}", max(p.i - 1, 0))
        p.close_scope()
        p.undefined_blocks()
        p.undefined(len(p._scopes))

    def _signature(self) -> FunctionType:
        assert self.func is not None
        return self.func.attrs["function_type"].value

    def _argument(self) -> None:
        p = self.p
        if self.func is None:
            self.open_function("main", {})
        assert self.func is not None
        if p.block is not self.func.regions[0].blocks[0] or p.block.label:
            p.report(
                "PTO-E0113",
                "expected .arg before the first block",
                help="move it to the start of the function",
            )
        at = p.i
        name = p.value_name()
        p.eat(":")
        type = p.type()
        note = DictAttr(p.dictionary() if p.t[p.i] == "{" else {})
        known = self.func.attrs.get("arg_attrs")
        if note.items or known is not None:  # one dictionary per argument, or none at all
            items = known.items if isinstance(known, ArrayAttr) else ()
            missing = (DictAttr({}),) * (len(self._signature().inputs) - len(items))
            self.func.attrs["arg_attrs"] = ArrayAttr((*items, *missing, note))
        p.define(name, p.block.add_arg(type), at)
        self._retype((*self._signature().inputs, type), self._signature().results)

    def _result(self) -> None:
        p = self.p
        if self.func is None:
            p.report("PTO-E0113", ".result without .func")
        self._retype(self._signature().inputs, (*self._signature().results, p.type()))

    def _retype(self, inputs: tuple[Type, ...], results: tuple[Type, ...]) -> None:
        assert self.func is not None
        self.func.attrs["function_type"] = TypeAttr(FunctionType(inputs, results))

    def _constant(self, start: int) -> None:
        p = self.p
        if self.func is None:
            self.open_function("main", {})
        at = p.i
        name = p.value_name()
        p.eat("=")
        found = row("arith.constant")
        assert found is not None
        op = PARSERS["arith.constant"](p, found, [], at)
        starts = p.tokens.starts
        op.loc = Span(p.source, starts[start], starts[p.i - 1] + len(p.t[p.i - 1]))
        p.block.append(op)
        p.define(name, op.result, at)
