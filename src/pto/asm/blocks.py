"""Regions, blocks and the statements in them, with recovery: after an error the next statement is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from ..diag import Source, Span, did_you_mean
from ..ir.core import Block, Operation, Region, Successor, Value
from ..ir.types import ERROR, Type
from ..isa import row
from .cursor import MAX_ERRORS, Cursor, Fail, Report, literal_help
from .lexer import EOF, Tokens

#: Operations that real files write without their dialect.
SHORT_NAMES = {"return": "func.return", "call": "func.call", "func": "func.func", "module": "builtin.module"}


class Blocks(Cursor):
    """A cursor inside a block. The parser defines `statement`."""

    def __init__(self, source: Source, tokens: Tokens | None = None) -> None:
        super().__init__(source, tokens)
        self.block = Block()
        self.blocks: dict[str, tuple[Block, int]] = {}
        # Tokens that begin a statement, a label or a body; the layout of the text needs them.
        self.begins: list[int] = []
        self.bodies: dict[int, int] = {}
        self.semicolons = False  # True if a statement may end with a semicolon

    if TYPE_CHECKING:

        def statement(self) -> Operation: ...

    def value_name(self) -> str:
        text = self.t[self.i]
        if text[:1] != "%":
            raise Fail(self.i, f"expected a value such as %x, got {self.shown()}", literal_help(text))
        self.i += 1
        return text

    def value(self) -> Value:
        at = self.i
        return self.use(self.value_name(), at)

    def region(
        self, args: Sequence[tuple[str, Type, int]] = (), terminator: str = "", isolated: bool = False
    ) -> Region:
        """Read `{ ... }`; `args` are block arguments that the operation itself names (loop variables)."""
        region = Region()
        outer_block, outer_blocks = self.block, self.blocks
        if self.lacks_brace():  # read the body as if the brace were there
            self.record(Fail(self.i, f"expected '{{', got {self.shown()}"))
        else:
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
                    self._never_closed(opened)
                if text[:1] == "^":
                    self.label(region)
                else:
                    self.guarded_statement()
            self.bodies[opened] = self.i
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
            loc = Span(self.source, at, at + 1)
            region.blocks[-1].append(Operation(terminator, row(terminator), [], loc=loc))
        return region

    def lacks_brace(self) -> bool:
        """Return True if a line ends before the brace of its body, and the next one looks like a
        statement."""
        return self.begins_line(self.i) and self._like_a_statement(self.i)

    def _like_a_statement(self, at: int) -> bool:
        text = self.t[at]
        return text[:1] in ("%", "^", '"') or "." in text or text in SHORT_NAMES

    def _never_closed(self, opened: int) -> NoReturn:
        """Report the block that lacks its brace: its brace is further out than the block.

        Errors after this point are dropped, because the text was read inside the wrong block.
        """
        mistaken = [
            (closed, first)
            for first, closed in self.bodies.items()
            if self._indentation(closed) < self._indentation(first)
        ]
        if mistaken:
            closed, opened = min(mistaken)
            where = self.tokens.starts[closed]
            self.diagnostics[:] = [d for d in self.diagnostics if d.span is None or d.span.start < where]
            self._forward.clear()
        self.report("PTO-E0106", "unclosed '{'", opened, help="add the missing '}'")

    def _indentation(self, at: int) -> int:
        """Return the indentation of the line of a token."""
        start = self.source.text.rfind("\n", 0, self.tokens.starts[at]) + 1
        line = self.source.text[start : self.tokens.starts[at]]
        return len(line) - len(line.lstrip())

    def undefined_blocks(self) -> None:
        """Report branches to blocks that the region does not have."""
        for label, (block, at) in self.blocks.items():
            if block.parent is None:
                known = [k for k, (b, _) in self.blocks.items() if b.parent]
                self.error("PTO-E0206", f"undefined block '{label}'", at, help=did_you_mean(label, known))

    def label(self, region: Region) -> None:
        """Read `^bb0(%x: T):`"""
        at = self.i
        self.begins.append(at)
        label = self.t[self.i]
        self.i += 1
        known = self.blocks.get(label)
        if known and known[0].parent is not None:
            self.error("PTO-E0202", f"block '{label}' is defined twice", at)
            block = Block(label)
        else:
            block = known[0] if known else Block(label)
        # A label right at the start names the existing entry block, with its arguments.
        first = region.blocks[0]
        named = not first.args or self.t[self.i] != "("
        if len(region.blocks) == 1 and not first.ops and named and not known:
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
            self.record(problem)
            self.skip(at)

    def successor(self) -> Successor:
        """Read `^bb1(%x, %y : T, T)`"""
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
        """Read a statement; on an error record the error and go to the next statement."""
        at = self.i
        self.begins.append(at)
        depth, scopes = self.depth, len(self._scopes)
        try:
            self.statement()
        except (Fail, Report) as problem:
            while len(self._scopes) > scopes:
                self.close_scope()
            self.depth = depth
            self.record(problem)
            self._poison_results(at)
            self.skip(at)

    def record(self, problem: Fail | Report) -> None:
        if isinstance(problem, Report):
            self.diagnostics.append(problem.diagnostic)
            return
        at, message = problem.at, problem.message
        code = problem.code or ("PTO-E0106" if self.t[at] == EOF else "PTO-E0107")
        d = self.error(code, message, at, help=problem.help, expected=problem.expected)
        if message.endswith(f", got {self.shown(at)}") and [at] != self.begins[-1:] and self.begins_line(at):
            # Something is missing after the text above.
            end = self.tokens.span(at - 1).end
            d.span = Span(self.source, end, end + 1)
            d.message = message.removesuffix(self.shown(at)) + "the end of the line"

    def _poison_results(self, at: int) -> None:
        """Define results of a failed statement with unknown type, so that no further errors follow."""
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
                        self.define(key, Block().add_arg(ERROR), at)
                        self.values[key].type = ERROR
            i += 1

    def skip(self, at: int) -> None:
        """Move past a broken statement: to the next line that starts one, outside its braces.

        Braces count from the statement's start: those of an unfinished dictionary or body close there.
        """
        if len(self.diagnostics) == MAX_ERRORS:
            self.error("PTO-E0107", f"{MAX_ERRORS} errors: the rest of the text is not read", at)
        if len(self.diagnostics) > MAX_ERRORS:
            self.i = len(self.t) - 1
            return
        reached = max(self.i, at + 1)
        self.i = at
        depth = 0
        while self.t[self.i] != EOF:
            text = self.t[self.i]
            if depth <= 0 and self.i >= reached:
                if text == "}":
                    return
                alias = text[0] in "!#" and self.t[self.i + 1] == "="
                if self.begins_line(self.i) and (alias or self._like_a_statement(self.i)):
                    return
            depth += (text == "{") - (text == "}")
            self.i += 1


def _is_terminator(op: Operation) -> bool:
    return op.row is not None and op.row.terminator
