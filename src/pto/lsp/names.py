"""Names of a program: values, functions, blocks and aliases; where each is defined and used.

Values are those that the parser has resolved. In a statement that the parser could not read, a name means the
nearest value of that name.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from ..checking import Checked
from ..ir.core import Block, Operation, Value

_ALIAS_IN = re.compile(r"(?<=.)[!#]([A-Za-z_]\w*)(?![\w.<])")
#: Legal names, without their first character.
_LEGAL = {
    "%": r"[\w$.\-]+",
    "@": r"[A-Za-z_][\w$.]*",
    "^": r"[\w$.\-]+",
    "!": r"[A-Za-z_]\w*",
    "#": r"[A-Za-z_]\w*",
}


class Occurrence(NamedTuple):
    start: int
    end: int
    name: str  # with its first character
    key: object  # equal for all occurrences of one thing
    value: Value | None
    defines: bool


class _Node(NamedTuple):
    """An operation with its own names: operands, results, and arguments of its blocks."""

    start: int
    end: int
    op: Operation
    values: dict[str, Value]
    defined: set[str]


class NameIndex:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._nodes = sorted(self._collect(), key=lambda n: (n.start, -n.end))
        self.all = list(self._occurrences())
        self._starts = [o.start for o in self.all]

    # -- queries -------------------------------------------------------------------------------------------

    def at(self, offset: int) -> Occurrence | None:
        """Return the name at an offset, or the name that ends there."""
        index = bisect_right(self._starts, offset) - 1
        while index >= 0 and self.all[index].start >= offset - 4096:
            if self.all[index].end >= offset:
                return self.all[index]
            index -= 1
        return None

    def of(self, key: object) -> list[Occurrence]:
        """Return all occurrences of a thing."""
        return [o for o in self.all if o.key == key]

    def definition(self, key: object) -> Occurrence | None:
        return next((o for o in self.all if o.key == key and o.defines), None)

    def refused(self, found: Occurrence, new: str) -> str:
        """Return the reason why a name cannot be replaced by another; empty if it can."""
        kind = found.name[0]
        new = new if new[:1] == kind else kind + new
        if not re.fullmatch(_LEGAL[kind], new[1:]):
            return f"expected a name such as {kind}x, got '{new[:60]}'"
        near = {o.key for o in self.of(found.key)}
        scopes = {self._scope(o.start) for o in self.of(found.key)}
        taken = any(
            o.name == new and o.key not in near and (kind != "%" or self._scope(o.start) in scopes)
            for o in self.all
        )
        return f"the name '{new}' is taken" if taken else ""

    def visible(self, offset: int) -> dict[str, Value | None]:
        """Return the values that a statement at an offset can use, by name."""
        found: dict[str, Value | None] = {}
        module = self._checked.module
        inside = module is not None and self._visible(module.op, offset, found)
        if not inside:  # the parser could not read the function around it
            texts, starts = self._checked.tokens.texts, self._checked.tokens.starts
            for i, text in enumerate(texts[:-1]):
                if starts[i] >= offset:
                    break
                if text[:1] == "%" and texts[i + 1] in ("=", ":", ","):
                    found.setdefault(text, None)
        return found

    def _visible(self, op: Operation, offset: int, found: dict[str, Value | None]) -> bool:
        """Add the values visible at an offset inside an operation. Return True if a function contains it."""
        if op.name == "func.func":
            found.clear()
        inside = op.name == "func.func"
        for region in op.regions:
            for block in region.blocks:
                found.update((f"%{a.name}", a) for a in block.args)
                for o in block.ops:
                    start, end = self._range(o)
                    if start >= offset:
                        break
                    if offset <= end and o.regions:
                        inside |= self._visible(o, offset, found)
                    elif end < offset:
                        found.update((f"%{r.name}", r) for r in o.results)
        return inside

    # -- collection ----------------------------------------------------------------------------------------

    def _range(self, op: Operation) -> tuple[int, int]:
        found = self._checked.ranges.get(op)
        if found is not None:
            return found
        return (op.start, op.end) if op.source is self._checked.source else (-1, -1)

    def _scope(self, offset: int) -> int:
        """Return the start of the function around an offset, -1 outside functions."""
        around = (n.start for n in self._nodes if n.op.name == "func.func" and n.start <= offset < n.end)
        return next(around, -1)

    def _collect(self) -> Iterator[_Node]:
        module = self._checked.module
        for op in module.walk() if module is not None else ():
            start, end = self._range(op)
            if start < 0:
                continue
            made = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)]
            used = [*op.operands, *(v for s in op.successors for v in s.args)]
            values: dict[str, Value] = {}
            for value in (*made, *used):
                values.setdefault(value.name.partition("#")[0], value)
            yield _Node(start, end, op, values, {v.name.partition("#")[0] for v in made})

    def _occurrences(self) -> Iterator[Occurrence]:
        tokens = self._checked.tokens
        stack: list[_Node] = []
        waiting = iter([*self._nodes, None])
        after = next(waiting)
        first: dict[object, Value] = {}  # several results of one operation share a name
        seen: set[object] = set()
        for i, (text, start) in enumerate(zip(tokens.texts, tokens.starts, strict=True)):
            while after is not None and after.start <= start:
                stack.append(after)
                after = next(waiting)
            while stack and stack[-1].end <= start:
                stack.pop()
            head, end = text[:1], start + len(text)
            if head == "%":
                name = text[1:].partition("#")[0]
                key, value, owns = self._value(stack, name, first)
                defines = owns and key not in seen
                if defines:
                    seen.add(key)
                yield Occurrence(start, start + 1 + len(name), f"%{name}", key, value, defines)
            elif head == "@" and text[1:2] != '"':
                node = stack[-1] if stack else None
                defines = node is not None and node.op.attr("sym_name") == text[1:] and text not in seen
                if defines:
                    seen.add(text)
                yield Occurrence(start, end, text, text, None, defines)
            elif head == "^":
                around = (
                    n for n in reversed(stack) if any(b.label == text for r in n.op.regions for b in r.blocks)
                )
                node = next(around, None)
                label = (node.start if node is not None else -1, text)
                yield Occurrence(
                    start, end, text, label, None, tokens.texts[i - 1 : i] != [","] and self._labels(i)
                )
            elif head in ("!", "#") and head:
                if "." not in text and "<" not in text:
                    yield Occurrence(start, end, text, text, None, tokens.texts[i + 1 : i + 2] == ["="])
                else:
                    for m in _ALIAS_IN.finditer(text):
                        yield Occurrence(start + m.start(), start + m.end(), m[0], m[0], None, False)

    def _labels(self, i: int) -> bool:
        """Return True if the block name at a token is the label of a block."""
        texts = self._checked.tokens.texts
        depth = 0
        for text in texts[i + 1 : i + 400]:
            depth += (text == "(") - (text == ")")
            if depth == 0 and text != ")":
                return text == ":"
        return False

    def _value(
        self, stack: list[_Node], name: str, first: dict[object, Value]
    ) -> tuple[object, Value | None, bool]:
        """Return key and value of a name, and whether the innermost operation defines it."""
        for node in reversed(stack):
            value = node.values.get(name)
            if value is not None:
                owner: Operation | Block = value.owner
                key = (id(owner), name)
                return key, first.setdefault(key, value), name in node.defined
        return (stack[0].start if stack else -1, name), None, False
