"""Reports in C++ syntax: names without %, calls as they are written."""

from __future__ import annotations

import copy
import os
import re

from ...diag import Diagnostic, Source
from ...ir.core import Operation
from ...isa import row as find_row
from ...isa import rows
from ..cpp.handwritten import without_comments
from ..cpp.places import functions_in
from ..vocabulary import Words
from .sites import spelled

_FLAG = re.compile(
    r"pto\.(set_flag|wait_flag)(?:_dyn)?\[<(PIPE_\w+)>, <(PIPE_\w+)>, "
    r"(?:<(EVENT_ID\d)>|([^']+?))\](?=['\s]|$)"
)
_GUARD = re.compile(r"'pto\.section\.(vector|cube) \{ (pto\.[^']+) \}'")
_KINDS = {"vector": "__DAV_VEC__", "cube": "__DAV_CUBE__"}
_BARRIER = re.compile(r"pto\.barrier <(PIPE_\w+)>")
_SYNC = re.compile(r"pto\.(sync\.set|sync\.wait|set_intra_block|wait_intra_core) <(PIPE_\w+)>, (\d+)")
_TOKEN = re.compile(r"pto\.(get|rls)_buf\[(\w+), (\d+)\]")
_MEMORY = re.compile(r'pto\.mem_bar "(\w+)"')
_NAME = re.compile(r"%([A-Za-z_][\w.]*(?:\[[^\[\]]*\][\w.]*)*)")
_ROW = re.compile(r"\bpto\.([a-z]\w*(?:\.\w+)*)|^([a-z]\w*(?:\.\w+)*)(?=: | (?:reads|writes|stores)\b)")


_WORD = re.compile(r"[A-Za-z_]\w*")
_SIGN = re.compile(r"%(?=[A-Za-z_])")


class CppWords(Words):
    """Names for messages about C++: calls as they are written, values by the names of variables."""

    sign = ""

    def operation(self, op: Operation) -> str:
        names = spelled(op.row) if op.row is not None else ()
        written = _WORD.match(op.source.text, op.start) if op.source is not None else None
        if written is not None and written[0] in names:
            return written[0]
        return names[0] if names else super().operation(op)

    def call(self, op: Operation) -> str:
        """Return the name of a call, for flags and barriers with their pipes and ids, because a helper
        function may have made it."""
        name = self.operation(op)
        named = [op.attr(n) for n in ("src_pipe", "dst_pipe", "event_id", "pipe") if n in op.attrs]
        return f"{name}({', '.join(map(str, named))})" if named else name

    def function(self, name: str) -> str:
        return name

    def plain(self, text: str) -> str:
        return _SIGN.sub("", text)

    def told(self, found: Diagnostic) -> Diagnostic:
        made = copy.copy(found)
        in_cpp(made)
        return made


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def first_calls(source: Source) -> dict[str, tuple[str, int]]:
    """Return the functions of a file and of its includes, with the file and line of their first calls."""
    calls = {name for row in rows() for name in spelled(row)}
    found: dict[str, tuple[str, int]] = {}
    files, seen = [source], {os.path.realpath(source.name)}
    while files:
        file = files.pop(0)
        text = without_comments(file.text)
        for function in functions_in(file):
            words = _WORD.finditer(text, text.find("{", function.start), function.end)
            first = next((m.start() for m in words if m[0] in calls), None)
            if first is not None:
                found.setdefault(function.name, (file.name, file.place(first)[0]))
        for m in _INCLUDE.finditer(file.text):
            path = os.path.join(os.path.dirname(file.name), m[1])
            if os.path.realpath(path) not in seen and os.path.isfile(path):
                seen.add(os.path.realpath(path))
                with open(path, encoding="utf-8", errors="replace") as f:
                    files.append(Source(path, f.read()))
    return found


def in_cpp(d: Diagnostic) -> None:
    """Translate a diagnostic of the reference engine about a program to C++ syntax."""
    d.message = _said(d.message)
    d.help = _said(d.help)
    d.expected, d.got = _said(d.expected), _said(d.got)
    d.notes = [(_said(text), span) for text, span in d.notes]


def _said(text: str) -> str:
    if not text:
        return text
    text = _GUARD.sub(lambda m: f"'#ifdef {_KINDS[m[1]]}' and '{m[2]}' and '#endif'", text)
    text = _FLAG.sub(lambda m: f"{m[1]}({m[2]}, {m[3]}, {m[4] or m[5]});", text)
    text = _BARRIER.sub(lambda m: f"pipe_barrier({m[1]});", text)
    text = _SYNC.sub(_sync, text)
    text = _TOKEN.sub(lambda m: f"{m[1]}_buf({m[2]}, {m[3]}, 0);", text)
    text = _MEMORY.sub(lambda m: f"mem_bar({m[1]});", text)
    text = _NAME.sub(lambda m: f"'{m[1]}'", text)
    return _ROW.sub(_call, text)


def _sync(m: re.Match[str]) -> str:
    if m[1] == "sync.set":
        return f"ffts_cross_core_sync({m[2]}, getFFTSMsg(2, {m[3]}));"
    if m[1] == "sync.wait":
        return f"wait_flag_dev({m[3]});"
    return f"{'set_intra_block' if m[1] == 'set_intra_block' else 'wait_intra_block'}({m[2]}, {m[3]});"


def _call(m: re.Match[str]) -> str:
    row = find_row(m[1] or m[2])
    names = spelled(row) if row is not None else ()
    return names[0] if names else m[0]
