"""Layout of a program text, for `pto fmt`.

Tokens and their order do not change, so the form of the text (destination style, SSA, PTO-AS, generic), its
aliases, locations and comments stay. White space changes: one statement per line, indented by its depth,
single spaces as the printer writes them, at most one blank line. A statement may keep its line breaks. Types
are spelled as the printer spells them, or by their alias.
"""

from __future__ import annotations

from collections import Counter

from ..ir.types import Type
from .comments import Gap
from .lexer import EOF
from .parser import Parser
from .spacing import Spacing

_STEP = "  "
_CONTINUED = "    "


def layout(p: Parser) -> str:
    """Return the laid-out text of a parser that has read it without errors."""
    return _Layout(p).run()


class _Layout:
    def __init__(self, p: Parser) -> None:
        self.text = p.source.text
        self.t, self.starts = p.tokens.texts, p.tokens.starts
        self.begins = set(p.begins)
        self.bodies = p.bodies
        self.ends = set(p.bodies.values())
        self.spelling = _Spelling(p)
        self.lines: list[str] = []
        self.line = ""
        self.depth = 0
        self.fresh = True  # the body is empty so far: no blank line here
        self.statement = Spacing(self.t, 0)
        self.outer: list[Spacing] = []  # statements with open bodies

    def run(self) -> str:
        end = 0
        for at, token in enumerate(self.t):
            start = self.starts[at]
            gap = Gap(self.text, end, start)
            end = start + len(token)
            if at in self.begins or at in self.ends or token == EOF:
                self._start_line(at, gap)
            else:
                self._go_on(at, gap)
            self._write(at, end)
        return "\n".join(self.lines) + "\n" if self.lines else ""

    def _write(self, at: int, end: int) -> None:
        written = self.text[self.starts[at] : end]
        # A token over several lines may hold comments.
        self.line += written if "\n" in written else self.spelling.of(at)
        self.statement.take(at)
        if at in self.bodies:
            self.outer.append(self.statement)
            self.depth += 1
            self.fresh = True

    def _start_line(self, at: int, gap: Gap) -> None:
        """Begin a line for a statement, a label or the end of a body."""
        ends, label = at in self.ends, self.t[at][:1] == "^"
        self._comments(gap, _STEP * max(self.depth - label, 0))
        if gap.blank and not self.fresh and not ends and self.t[at] != EOF:
            self.lines.append("")
        if ends:
            self.depth -= 1
            self.statement = self.outer.pop()
        else:
            self.statement = Spacing(self.t, at)
            self.spelling.enter(at)
        self.fresh = False
        self.line = _STEP * max(self.depth - label, 0)

    def _go_on(self, at: int, gap: Gap) -> None:
        """Add a token inside a statement."""
        token = self.t[at]
        beside_body = at in self.bodies or at - 1 in self.ends
        case = self._is_case(at)
        if gap.comments or case or (gap.newline and not beside_body):
            pad = _STEP * self.depth + ("" if case or beside_body else _CONTINUED)
            self._comments(gap, pad, inside=True)
            self.line = _STEP * self.depth if token in (")", "]", "}", ">") else pad
        elif self.statement.before(at, self.starts[at] > self.starts[at - 1] + len(self.t[at - 1])):
            self.line += " "

    def _is_case(self, at: int) -> bool:
        """Return True for `case 1 {` and `default {`, which have lines of their own."""
        if self.statement.name != "scf.index_switch" or self.statement.open:
            return False
        return self.t[at] in ("case", "default")

    def _comments(self, gap: Gap, pad: str, inside: bool = False) -> None:
        """End the current line, with the comments that follow it."""
        # column of a comment after a token; comments on the lines below may continue in this column
        source = column = 0
        for comment in gap.comments:
            if comment.behind:
                if self.line.strip() != "}":  # a comment below a closing brace does not continue another one
                    source, column = comment.column, len(self.line.rpartition("\n")[2]) + 2
                self.line += f"  {comment.text}"
                continue
            self._end_line()
            if comment.blank and not self.fresh and not inside:
                self.lines.append("")
            if comment.blank or comment.column != source:
                source = 0
            self.line = (" " * column if source else pad) + comment.text
            self.fresh = False
        self._end_line()

    def _end_line(self) -> None:
        if self.line:
            self.lines.append(self.line)
        self.line = ""


class _Spelling:
    """Returns the spelling of tokens: types as the printer writes them, or by an alias defined further up."""

    def __init__(self, p: Parser) -> None:
        self.p = p
        self.aliases: dict[Type, str] = {}
        self.pending = ""  # the alias being defined
        self.defined = Counter(p.t[at] for at in p.begins if p.t[at][:1] == "!")

    def enter(self, at: int) -> None:
        """Begin a statement."""
        if self.defined[self.pending] == 1:  # a name defined twice is ambiguous
            self.aliases.setdefault(self.p.type_aliases[self.pending[1:]], self.pending)
        token = self.p.t[at]
        self.pending = token if token[:1] == "!" else ""

    def of(self, at: int) -> str:
        text = self.p.t[at]
        if text[:1] == '"' or text[:1] == "@" or ("<" not in text and text[:1] != "!"):
            return text
        type = self.p.known_type(text)
        if type is None:
            return text
        return str(type) if self.pending else self.aliases.get(type) or str(type)
