"""A program text with all stages of its lowering, as data of the page.

    seen = stages(Source("k.pto", text))
    seen.sheets      # source, program after each pass that changes it, C++, image
    seen.findings    # what `pto check` reports
    seen.done        # the lowered program, for a launch; None after errors

Every line of a sheet has the line of the source that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from ..asm.printer import Printer
from ..checking import ChooseTarget, Target, check_source
from ..codegen import cpp
from ..diag import Diagnostic, DiagnosticError, Source, sorted_by_place
from ..driver import Lowered, Options, complete, lowered
from ..engine.native.images import file_of
from ..image import listing
from ..ir.core import Module, Operation
from ..isa.record import Record
from ..lsp.grammar import colored
from ..passes.pipeline import Pass

#: Yields start, end and kind of the words of a text.
Colors = Callable[[str], Iterator[tuple[int, int, str]]]
_MARK = re.compile("\x01(\\d+)\x02")
_CPP = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<keyword>^ *#[^\n]*|\b(?:auto|bool|break|case|class|const|default|do|else|"
    r"enum|extern|for|goto|if|inline|return|static|switch|template|typename|using|"
    r"void|while|__\w+__|AICORE)\b)|(?P<type>\b(?:\w+_t|float|half|int|unsigned|T[a-z]\w*|GlobalTensor)\b)"
    r"|(?P<instruction>\b[A-Za-z_]\w*(?=\())|(?P<number>\b\d[\w.]*)|(?P<attribute>\b[A-Z]\w*\b)",
    re.MULTILINE,
)
_LISTING = re.compile(
    r"(?P<comment>;[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<label>^L\d+:|\bL\d+\b)|(?P<value>@\d+)"
    r"|(?P<keyword>^(?:  at|kernel|function|calls|code|  frame|  argument)\b)"
    r"|(?P<instruction>^    [a-z][\w.]*)|(?P<number>\b(?:0x)?\d[\da-f]*\b)",
    re.MULTILINE,
)
_AT = re.compile(r"  at \d+  ; (.*):(\d+):\d+: ")


def _cpp_colors(text: str) -> Iterator[tuple[int, int, str]]:
    return ((m.start(), m.end(), m.lastgroup or "") for m in _CPP.finditer(text))


def _listing_colors(text: str) -> Iterator[tuple[int, int, str]]:
    return ((m.start(), m.end(), m.lastgroup or "") for m in _LISTING.finditer(text))


class Sheet(Record):
    """A text of the page. `places` has the line of the source for each line (0: none), `new` the lines that
    the previous stage did not have."""

    title: str
    text: str
    places: tuple[int, ...] = ()
    new: tuple[int, ...] = ()
    colors: Colors = colored
    note: str = ""

    def data(self) -> dict[str, Any]:
        """Return the sheet for the page: each line is a list of kinds and texts."""
        return {
            "title": self.title, "note": self.note, "places": self.places, "new": self.new,
            "lines": [_words(line, self.colors) for line in self.text.split("\n")],
        }  # fmt: skip


class Stages(Record):
    """All sheets of a text, the diagnostics, and the lowered program if there is one."""

    sheets: tuple[Sheet, ...]
    findings: list[Diagnostic]
    done: Lowered | None = None


def stages(source: Source, target: Target | ChooseTarget = None) -> Stages:
    """Check a text and lower it as far as its errors allow."""
    checked = check_source(source, target)
    sheets = [Sheet("source", source.text, tuple(range(1, source.lines + 1)))]
    if checked.done is None or checked.module is None or not checked.ok:
        return Stages(tuple(sheets), checked.diagnostics)
    main, texts, unchanged = checked.module.source, [_printed(checked.module)], list[str]()
    states: list[Any] = [None]

    def after(step: Pass, program: Module) -> None:
        state = _state(program)
        made = _printed(program) if state != states[-1] else texts[-1]  # to print takes longer than a pass
        states[:] = [state]
        if made[0] == texts[-1][0]:
            unchanged.append(step.name)
            return
        sheets.append(
            Sheet(step.name, *made, _new(texts[-1][0], made[0]), note=f"after {step.name}; {step.doc}")
        )
        texts.append(made)

    options = Options(check="none", passes="always", insert_sync=not complete(checked.module)[1])
    try:
        done = lowered(checked.module, checked.done.profile, options, after=after)
    except DiagnosticError as e:
        return Stages(tuple(sheets), [*checked.diagnostics, *e.diagnostics])
    found = [*checked.diagnostics, *done.diagnostics]
    if not done.ok:
        return Stages(tuple(sheets), found)
    last = sheets[-1]
    if unchanged:
        note = f"{last.note}; without effect: {', '.join(unchanged)}".removeprefix("; ")
        sheets[-1] = last.replace(note=note)
    for make in (_cpp, _image):
        try:
            sheets.append(make(done, main))
        except DiagnosticError as e:
            found += [d for d in e.diagnostics if d.code not in {f.code for f in found}]
    return Stages(tuple(sheets), sorted_by_place(found), done)


def _state(program: Module) -> list[Any]:
    """Return everything that the text of a program depends on."""
    return [
        (
            op,
            op.name,
            op.loc,
            *op.operands,
            *op.attrs.items(),
            *((v, v.name, v.type) for v in op.results),
            *((a, a.name, a.type) for region in op.regions for block in region.blocks for a in block.args),
            *((s.block, *s.args) for s in op.successors),
        )
        for op in program.walk()
    ]


class _Numbered(Printer):
    """Printer that marks each operation with its line in the source."""

    main: Source | None = None

    def operation(self, op: Operation) -> str:
        line = op.loc.line if op.loc is not None and op.loc.source is self.main else 0
        return f"\x01{line}\x02{super().operation(op)}"


def _printed(module: Module) -> tuple[str, tuple[int, ...]]:
    printer = _Numbered()
    printer.main = module.source
    lines = printer.module(module).split("\n")
    places = [int(m[1]) if (m := _MARK.search(line)) else 0 for line in lines]
    return "\n".join(_MARK.sub("", line) for line in lines), tuple(places)


def _cpp(done: Lowered, main: Source) -> Sheet:
    text, places = cpp.emit_placed(done.module, done.profile, planned=not done.manual)
    lines = tuple(p.line if p is not None and p.source is main else 0 for p in places)
    return Sheet("C++", text, lines, colors=_cpp_colors, note="what ptoas writes for a compiler")


def _image(done: Lowered, main: Source) -> Sheet:
    text = listing.text_of(file_of(done.module, done, main.name)).partition("\nfile ")[0]
    places, line = list[int](), 0
    for row in text.split("\n"):
        if m := _AT.match(row):
            line = int(m[2]) if m[1] == main.name else 0
        elif not row.startswith("    ") or row.startswith("    @"):
            line = 0
        places.append(line)
    return Sheet(
        "image", text, tuple(places), colors=_listing_colors, note="what the virtual machine executes"
    )


def _new(before: str, now: str) -> tuple[int, ...]:
    """Return the numbers (from 0 on) of lines that were not in the text before."""
    matcher = SequenceMatcher(None, before.split("\n"), now.split("\n"), autojunk=True)
    return tuple(n for tag, _, _, a, b in matcher.get_opcodes() if tag != "equal" for n in range(a, b))


@lru_cache(1 << 14)  # an edit leaves most lines as they were
def _words(line: str, colors: Colors) -> list[str]:
    """Return the words of a line: their kinds (empty for other text) and texts in turns."""
    words: list[str] = []
    behind = 0
    for start, end, kind in (*colors(line), (len(line), len(line), "")):
        for of, piece in (("", line[behind:start]), ("" if kind == "word" else kind, line[start:end])):
            words += [of, piece] if piece else []
        behind = end
    return words
