"""Draw the messages between ranks: a line for each rank, time from top to bottom, arrows between the lines
for data and signals, and marks for waits."""

from __future__ import annotations

from collections.abc import Sequence

from ..isa.record import Record
from .markup import escaped

DATA, SIGNAL, WAIT = "data", "signal", "wait"
#: Maximum number of messages in a drawing.
MOST = 300


class Message(Record):
    """Data that a rank writes into a window, a signal that it sets, or a signal that it has waited for."""

    kind: str
    source: int  # the acting rank
    target: int  # the owner of the window
    text: str
    line: int = 0  # line in the program


_COLOURS = {DATA: "#2563eb", SIGNAL: "#d97706", WAIT: "#059669"}
_LEFT, _LANE, _TOP, _STEP = 60, 310, 84, 30


def svg(messages: Sequence[Message], ranks: int, title: str) -> str:
    """Return the drawing as one file."""
    shown = messages[:MOST]
    width = _LEFT * 2 + _LANE * max(1, ranks - 1) + 130
    height = _TOP + _STEP * (len(shown) + 1) + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{escaped(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="22" font-size="14" font-weight="600" fill="#111827">{escaped(title)}</text>',
        _legend(),
    ]
    for rank in range(ranks):
        x = _at(rank)
        out.append(
            f'<line x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{height - 30}" stroke="#d1d5db" stroke-width="2"/>'
        )
        out.append(
            f'<text x="{x}" y="{_TOP - 14}" text-anchor="middle" font-weight="600" fill="#111827">'
            f"rank {rank}</text>"
        )
    for n, message in enumerate(shown):
        out.append(_drawn(message, _TOP + _STEP * (n + 1)))
    if len(messages) > MOST:
        out.append(f'<text x="16" y="{height - 12}" fill="#6b7280">and {len(messages) - MOST} more</text>')
    return "".join([*out, "</svg>"])


def _at(rank: int) -> int:
    return _LEFT + rank * _LANE


def _legend() -> str:
    words = {DATA: "data into a window", SIGNAL: "signal", WAIT: "waited for"}
    parts = []
    for n, (kind, text) in enumerate(words.items()):
        x = 16 + n * 150
        parts.append(f'<circle cx="{x + 5}" cy="38" r="4" fill="{_COLOURS[kind]}"/>')
        parts.append(f'<text x="{x + 14}" y="42" fill="#374151">{text}</text>')
    return "".join(parts)


def _drawn(message: Message, y: int) -> str:
    colour = _COLOURS[message.kind]
    place = f" · line {message.line}" if message.line else ""
    text = escaped(message.text + place)
    x, to = _at(message.source), _at(message.target)
    if message.kind == WAIT or x == to:
        mark = (
            f'<path d="M{x} {y - 6}l6 6l-6 6l-6 -6z" fill="{colour}"/>'
            if message.kind == WAIT
            else f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>'
        )
        return f'{mark}<text x="{x + 12}" y="{y + 4}" fill="{colour}">{text}</text>'
    way = 1 if to > x else -1
    tip = to - 7 * way
    dash = "" if message.kind == DATA else ' stroke-dasharray="5 3"'
    return (
        f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
        f'<line x1="{x}" y1="{y}" x2="{tip}" y2="{y}" stroke="{colour}" stroke-width="1.6"{dash}/>'
        f'<path d="M{to - way} {y}l{-8 * way} -4v8z" fill="{colour}"/>'
        f'<text x="{x + 12 * way}" y="{y - 5}" text-anchor="{"start" if way > 0 else "end"}" '
        f'fill="{colour}">{text}</text>'
    )
