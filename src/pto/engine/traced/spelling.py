"""Reports in the words of C++: names without %, calls as they are written."""

from __future__ import annotations

import re

from ...diag import Diagnostic
from ...isa import row as find_row
from .sites import spelled

_FLAG = re.compile(
    r"pto\.(set_flag|wait_flag)(?:_dyn)?\[<(PIPE_\w+)>, <(PIPE_\w+)>, (?:<(EVENT_ID\d)>|([\w ]+))\]"
)
_BARRIER = re.compile(r"pto\.barrier <(PIPE_\w+)>")
_SYNC = re.compile(r"pto\.(sync\.set|sync\.wait|set_intra_block|wait_intra_core) <(PIPE_\w+)>, (\d+)")
_NAME = re.compile(r"%([A-Za-z_][\w.]*(?:\[[^\[\]]*\][\w.]*)*)")
_ROW = re.compile(r"\bpto\.([a-z]\w*(?:\.\w+)*)|^([a-z]\w*(?:\.\w+)*)(?=: | (?:reads|writes)\b)")


def in_cpp(d: Diagnostic) -> None:
    """Say what a diagnostic of the reference engine says of a program about C++."""
    d.message = _said(d.message)
    d.help = _said(d.help)
    d.expected, d.got = _said(d.expected), _said(d.got)
    d.notes = [(_said(text), span) for text, span in d.notes]


def _said(text: str) -> str:
    if not text:
        return text
    text = _FLAG.sub(lambda m: f"{m[1]}({m[2]}, {m[3]}, {m[4] or m[5]});", text)
    text = _BARRIER.sub(lambda m: f"pipe_barrier({m[1]});", text)
    text = _SYNC.sub(_sync, text)
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
