"""Checks the versions of a text. If only statements without a body differ from the last version without
problems, only these are read, and rules of instructions are checked for them and for what depends on them.

The program of the earlier version is changed in place: it then belongs to the new version.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ..asm.cursor import Fail, Report
from ..asm.lexer import Tokens, open_types, tokenize
from ..asm.parser import Parser, is_mlir
from ..checking import OVERLAPS, Checked, finished
from ..diag import Source
from ..ir.core import Block, Module, Operation, Value
from ..ir.multi_tiles import single_tiles
from ..ir.packed_tiles import logical_tiles
from ..verifier import verify

Check = Callable[[Source], Checked]


class EditedText:
    """The last version of a text that could be read. Call it with a source to check that version."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._last: Checked | None = None

    def __call__(self, source: Source) -> Checked:
        last, found = self._last, None
        if last is not None and last.source.name == source.name:
            self._last = None  # until the program is complete again
            edit = _Edit(last, source)
            found = edit.checked()
            if not edit.applied:
                self._last = last
        if found is None:
            found = self._check(source)
        if _complete(found):
            self._last = found
        return found


def _complete(found: Checked) -> bool:
    parser, done = found.parser, found.done
    return (
        parser is not None and done is not None and done.module is found.module
        and not parser.located and not parser.diagnostics and is_mlir(parser)
        and all(d.code != "PTO-E0603" for d in found.diagnostics)  # an unknown target
    )  # fmt: skip


class _Edit:
    """The difference between two versions: tokens `first` to `last` of the old one became `count` others."""

    def __init__(self, last: Checked, source: Source) -> None:
        assert last.parser is not None and last.module is not None
        self.last, self.parser, self.module = last, last.parser, last.module
        self.old, self.new = last.source.text, source.text
        self.source = source
        self.applied = False

    def checked(self) -> Checked | None:
        """Return the new version, or None if it has to be read as a whole."""
        self._lines()
        if not self._tokens():
            return None
        removed, made, block, at = [], [], None, 0
        if self.first < self.last_token or self.count:
            found = self._statements()
            if found is None:
                return None
            block, at, removed = found
            read = self._read(block, at, removed)
            if read is None:
                return None
            made = read
        swapped = _replaced(removed, made)
        users = _users(self.module, removed, swapped)
        if users is None:
            return None
        self.applied = True
        self._move()
        if block is not None:
            block.ops[at : at + len(removed)] = made
            for op in made:
                op.parent = block
        for op in users:
            op.operands = [swapped.get(v, v) for v in op.operands]
        return self._verified(removed, made, list(swapped.values()))

    def _lines(self) -> None:
        """Find the lines that differ: `low` to `high` of the old text, `low` to `end` of the new one."""
        old, new = self.old, self.new
        same = _common(old, new, min(len(old), len(new)))
        rest = _common(old[::-1], new[::-1], min(len(old), len(new)) - same)
        self.low = old.rfind("\n", 0, same) + 1
        high = old.find("\n", len(old) - rest)
        self.high = high if high >= 0 else len(old)
        self.delta = len(new) - len(old)
        self.end = self.high + self.delta

    def _tokens(self) -> bool:
        """Find the tokens that differ, and make the tokens of the new text; return False if that needs the
        whole text."""
        old = self.parser.tokens
        i, j = bisect_left(old.starts, self.low), bisect_left(old.starts, self.high)
        crosses = any(
            k and old.starts[k - 1] + len(old.texts[k - 1]) > at for k, at in ((i, self.low), (j, self.high))
        )
        found, errors = tokenize(Source("", self.new[self.low : self.end]))
        texts = found.texts[:-1]
        if crosses or errors or open_types([*old.texts[i - 1 : i], *texts]):
            return False
        starts = [self.low + at for at in found.starts[:-1]]
        self.tokens = Tokens(self.source)
        self.tokens.texts = [*old.texts[:i], *texts, *old.texts[j:]]
        self.tokens.starts = array("Q", [*old.starts[:i], *starts, *(s + self.delta for s in old.starts[j:])])
        k = len(texts)
        while i < j and k and old.texts[j - 1] == texts[k - 1]:
            j, k = j - 1, k - 1
        same = 0
        while i < j and same < k and old.texts[i] == texts[same]:
            i, same = i + 1, same + 1
        self.first, self.last_token, self.count = i, j, k - same
        return True

    def _statements(self) -> tuple[Block, int, list[Operation]] | None:
        """Return the old statements that contain the edit, with their block and position."""
        starts = self.parser.tokens.starts
        block, begin = self.module.body, starts[self.first]
        while True:
            at = bisect_left(block.ops, begin, key=lambda op: op.start) - 1
            if at < 0:
                return None
            op = block.ops[at]
            if not op.regions or op.end <= begin:
                break
            inner = [b for r in op.regions for b in r.blocks if b.ops and b.ops[0].start < begin]
            if not inner:
                return None
            block = inner[-1]
        past = at + 1
        if self.last_token > self.first:
            past = bisect_right(block.ops, starts[self.last_token - 1], key=lambda op: op.start)
        found = block.ops[at:past]
        if not _in_order(block.ops):
            return None
        self.past = bisect_left(starts, found[-1].end)  # the first token after them
        implied = self.old[found[-1].start] == "}"  # a terminator that is not in the text
        if (
            implied
            or any(op.regions or op.successors for op in found)
            or self.past < max(self.first, self.last_token)
        ):
            return None
        return block, at, found

    def _read(self, block: Block, at: int, removed: Sequence[Operation]) -> list[Operation] | None:
        """Read the new statements in their place; return None if they have errors or need other ones."""
        known, texts = self.parser, self.tokens.texts
        end = self.past + self.count - (self.last_token - self.first)
        if known.type_aliases or known.attr_aliases:
            following = zip(texts[end:], texts[end + 1 :], strict=False)
            if any(b == "=" and a[0] in "!#" for a, b in following):
                return None  # an alias counts from its definition on
        reader = Parser(self.source, self.tokens)
        reader.type_aliases, reader.attr_aliases = known.type_aliases, known.attr_aliases
        reader.block.parent = block.parent
        reader.values = {f"%{v.name}": v for v in _visible(block, at)}
        reader.i = bisect_left(known.tokens.starts, removed[0].start)
        try:
            while reader.i < end:
                reader.statement()
        except (Fail, Report):
            return None
        made = reader.block.ops
        names = {r.name for op in removed for r in op.results}
        new = {r.name for op in made for r in op.results} - names
        if (
            reader.i != end or reader.diagnostics or reader.unresolved or reader.located
            or not _in_order(made)
            or any(op.regions or op.successors for op in made)
            or (new and not new.isdisjoint(_names(block)))
        ):  # fmt: skip
            return None
        return made

    def _move(self) -> None:
        """Give every operation its location in the new text."""
        old, starts, texts = self.parser.tokens, self.tokens.starts, self.tokens.texts
        further = self.count - (self.last_token - self.first)
        before, low, high, delta = self.last.source, self.low, self.high, self.delta
        for op in self.module.walk():
            if op.source is not before:
                continue
            op.source = self.source
            if op.start >= high:
                op.start, op.end = op.start + delta, op.end + delta
                continue
            if op.start >= low:
                k = bisect_left(old.starts, op.start)
                op.start = starts[k if k < self.first else k + further]
            if op.end > high:
                op.end += delta
            elif op.end > low:
                k = bisect_left(old.starts, op.end) - 1
                k += further if k >= self.first else 0
                op.end = starts[k] + len(texts[k])
        self.module.source = self.parser.source = self.source
        self.parser.tokens, self.parser.t = self.tokens, texts

    def _verified(
        self, removed: list[Operation], made: list[Operation], values: list[Value]
    ) -> Checked | None:
        done, module = self.last.done, self.module
        assert done is not None
        if logical_tiles(single_tiles(module)) is not module:
            return None
        only, quiet = None, False
        if not done.diagnostics:
            only = {*made, *_dependents(module, values)}
            quiet = not any(map(_orders, (*removed, *only)))
        found = verify(module, done.profile, overlaps=OVERLAPS, only=only, flags="off" if quiet else "error")
        return finished(self.parser, module, done.replace(diagnostics=found), {})


def _in_order(ops: Sequence[Operation]) -> bool:
    """Return True if each operation has a statement of its own: flat statements insert others before them."""
    return all(a.start < b.start for a, b in pairwise(ops))


def _common(a: str, b: str, most: int) -> int:
    """Return the length of the common beginning of two texts, at most `most`."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        low, most = (middle, most) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def _visible(block: Block, at: int) -> Iterator[Value]:
    """Yield the values that a statement at a position of a block can use."""
    here: Block | None = block
    while here is not None and here.parent is not None:
        for other in here.parent.blocks:
            yield from other.args
            for op in other.ops if other is not here else other.ops[:at]:
                yield from op.results
            if other is here:
                break
        outer = here.outer
        if outer is None or outer.parent is None or outer.name == "func.func":
            return
        here, at = outer.parent, outer.parent.ops.index(outer)


def _names(block: Block) -> set[str]:
    """Return the names of all values of the function around a block."""
    outer = block.outer
    while outer is not None and outer.name != "func.func":
        outer = outer.outer
    found: set[str] = set()
    for op in outer.walk() if outer is not None else ():
        found.update(r.name for r in op.results)
        found.update(a.name for region in op.regions for b in region.blocks for a in b.args)
    return found


def _replaced(removed: Sequence[Operation], made: Sequence[Operation]) -> dict[Value, Value]:
    """Return new values by the old ones that they replace."""
    new = {v.name: v for op in made for v in op.results}
    return {
        v: new[v.name] for op in removed for v in op.results if v.name in new and new[v.name].type == v.type
    }


def _users(
    module: Module, removed: Sequence[Operation], swapped: dict[Value, Value]
) -> list[Operation] | None:
    """Return the operations that use old values; None if an old value has no replacement."""
    gone = {v for op in removed for v in op.results}
    found: list[Operation] = []
    for op in module.walk() if gone else ():
        passed = [v for s in op.successors for v in s.args]
        if not gone.isdisjoint(passed):
            return None
        if not gone.isdisjoint(op.operands) and op not in removed:
            if any(v in gone and v not in swapped for v in op.operands):
                return None
            found.append(op)
    return found


def _dependents(module: Module, values: Sequence[Value]) -> Iterator[Operation]:
    """Yield the operations that use values, directly or not."""
    known = set(values)
    for op in module.walk() if known else ():
        if not known.isdisjoint(op.operands):
            known.update(op.results)
            known.update(a for region in op.regions for b in region.blocks for a in b.args)
            yield op


def _orders(op: Operation) -> bool:
    """Return True if the order of pipes may depend on an operation."""
    row = op.row
    return row is None or bool(row.order) or row.terminator or bool(op.regions) or op.name == "func.call"
