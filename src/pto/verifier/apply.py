"""Insert the lines that the help of a diagnostic suggests: `put 'LINE' after line N`.

`pto fix` and the language server apply the advice of the verifier and the sanitizers.
"""

from __future__ import annotations

import re

_STEP = re.compile(r"((?:'[^']+'(?: and )?)+) (after|before) line (\d+)")
_MOVE = re.compile(r"\bmove line (\d+) before line (\d+)")
_ELSEWHERE = re.compile(r"\bline \d+ of ")
_QUOTED = re.compile(r"'([^']+)'")


def applied(text: str, help: str) -> str | None:
    """Return a program, or C++, with the lines that a report suggests. Return None if the report suggests no
    lines, or lines of an included file.
    """
    lines = text.split("\n")
    groups = [[line] for line in lines]
    steps = [(_QUOTED.findall(quoted), where, int(n)) for quoted, where, n in _STEP.findall(help)]
    moved = [(int(number), int(to)) for number, to in _MOVE.findall(help)]
    numbers = [n for *_, n in steps] + [n for pair in moved for n in pair]
    if not numbers or not all(0 < n <= len(lines) for n in numbers) or _ELSEWHERE.search(help):
        return None
    for number, to in moved:
        steps.append(([lines[number - 1].lstrip()], "before", to))
        groups[number - 1].remove(lines[number - 1])
    for new, where, number in steps:
        group, own = groups[number - 1], lines[number - 1]
        indent = own[: len(own) - len(own.lstrip())]
        group[len(group) if where == "after" else 0 : 0] = [indent + line for line in new]
    return "\n".join(line for group in groups for line in group)
