"""Markdown of generated pages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence


def text(value: str) -> str:
    """Escape plain text for Markdown; `code` in backticks stays code."""
    parts = value.split("`")
    if len(parts) % 2 == 0:
        return _plain(value)
    return "".join(f"<code>{_plain(p)}</code>" if i % 2 else _plain(p) for i, p in enumerate(parts))


def _plain(value: str) -> str:
    return re.sub(r"[|*_`\[\]\\~#!]", lambda m: f"&#{ord(m[0])};", html.escape(value, quote=False))


def code(value: str) -> str:
    """Inline code that may hold anything, also inside a table."""
    return f"<code>{_plain(value)}</code>"


def anchor(name: str) -> str:
    """A place that links and the search can name."""
    return f'<a id="{html.escape(name)}"></a>'


def fence(lines: Iterable[str], language: str = "text", title: str = "") -> str:
    head = f'```{language} title="{title}"' if title else f"```{language}"
    return "\n".join((head, *lines, "```"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(r)} |" for r in rows)])


def filtered(head: Sequence[str], rows: Iterable[Sequence[str]], choices: Sequence[str]) -> str:
    """Return a table that assets/pto.js can filter, by text and by the words of the columns `choices`."""
    opening = f'<div class="filtered" data-choices="{",".join(choices)}" markdown>'
    return "\n".join((opening, "", table(head, rows), "", "</div>"))
