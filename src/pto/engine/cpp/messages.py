"""Turns the output of a C++ compiler into diagnostics with locations in the program.

Emitted C++ names the lines of its `.pto` program with `#line`, so the compiler reports these. An error inside
a header is shown at the line of the program that caused it, the innermost "required from here".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...diag import Diagnostic, Source, Span, Unread, did_you_mean

_LINE = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<col>\d+):)?\s+(?P<rest>.*)$")
_SEVERITY = re.compile(r"^(?P<kind>fatal error|error|warning|note): (?P<text>.*)$")
_INCLUDED = re.compile(r"^(?:In file included| +) from (?P<file>[^\s:][^:]*):(?P<line>\d+)")
#: `[PTO][SA-0352] text` in a static_assert of our headers.
_OURS = re.compile(r"\[PTO\]\s*\[(?P<code>[A-Z]+-E?\d+)\]\s*(?P<text>.*)")
_ASSERT = re.compile(r"^static assertion failed(?: due to requirement .*?)?:? ?(?P<text>.*)$")
_TILE = "Tile: "
_LIMIT = 20

#: A location: source and 1-based line and column; column 0 for the whole line.
Place = tuple[Source, int, int]


def diagnostics(output: str, sources: Mapping[str, Source], exact: bool = True) -> list[Diagnostic]:
    """Return the errors in the output of a compiler. `sources` are the files of the program by their names in
    the output; `exact` means that columns are those of the program, which they are not with `#line`."""
    found: list[Diagnostic] = []
    ours: list[bool] = []  # for each: was it reported inside our headers
    context: Place | None = None
    for line in output.splitlines():
        m = _LINE.match(line)
        if m is None:
            if (i := _INCLUDED.match(line)) and i["file"] in sources and context is None:
                context = sources[i["file"]], int(i["line"]), 0
            continue
        place = _place(m, sources, exact)
        severity = _SEVERITY.match(m["rest"])
        if severity is None:  # "required from here", "in instantiation of"
            context = place or context
            continue
        kind, text = severity["kind"], severity["text"]
        if kind == "note":
            if text.endswith(" evaluates to false"):  # the assertion has this text, too
                continue
            if found and len(found[-1].notes) < 6:
                if found[-1].span is None and place is not None:  # clang names the cause in a note
                    found[-1].span = _span(place)
                found[-1].notes.append((_note(m, text, place), None if place is None else _span(place)))
            continue
        if kind == "warning":
            context = None
            continue
        found.append(_error(text, place or context, m))
        ours.append("/pto/" in m["file"] and place is None)
        context = None
    found = _causes(found, ours)
    for d in found:
        _point_at_type(d)
    if not found:
        last = [line for line in output.splitlines() if line.strip()][-6:]
        d = Diagnostic("PTO-E2402", "cannot compile the C++", help="see the output of the compiler below")
        d.notes.extend((line.strip(), None) for line in last)
        return [d]
    if len(found) > _LIMIT:
        found = [*found[:_LIMIT], Diagnostic("PTO-E2402", f"and {len(found) - _LIMIT} more errors")]
    return found


def _causes(found: list[Diagnostic], ours: list[bool]) -> list[Diagnostic]:
    """Drop errors that follow from an assertion of ours: others in our headers, or at the same line."""
    if any(d.help.startswith(_LOCATION) for d in found):  # the compiler replaces the wrong type by int
        return [d for d in found if d.help or not (d.span is None or _FOLLOWS.search(d.message))]
    asserted = [d for d in found if d.code != "PTO-E2402"]
    if not asserted:
        return found
    lines = {d.span.place[0] for d in asserted if d.span is not None}
    if any(d.message.startswith(_TILE) for d in asserted):  # errors of constraints follow from the wrong type
        lines.update(d.span.place[0] for d in found if d.span and d.message.endswith("is ambiguous"))
    return [
        d
        for d, inside in zip(found, ours, strict=True)
        if d.code != "PTO-E2402" or not (inside or (d.span is not None and d.span.place[0] in lines))
    ]


def _point_at_type(d: Diagnostic) -> None:
    """Move an error of a tile type from the construction of a tile to the type, if the same file has it."""
    if d.span is None or not d.message.startswith(_TILE):
        return
    source = d.span.source
    text, (begin, end) = source.text, source.bounds(d.span.line)
    written = re.search(r"\b(?:pto::)?Tile<.*>", text[begin : d.span.start])
    if written is not None:
        d.span = Span(source, begin + written.start(), begin + written.end())
        return
    types = {m[1]: m for m in re.finditer(r"\busing\s+(\w+)\s*=\s*((?:pto::)?Tile<[^;]*)", text[:begin])}
    words = re.findall(r"[A-Za-z_]\w*", text[begin:end])
    of = rf"\b({'|'.join(types)})\b[^;{{}}]*\b"
    made = [m for w in words for m in re.finditer(rf"{of}{w}\b", text[:begin])] if types else []
    name = next((w for w in words if w in types), made[-1][1] if made else "")
    if name:
        if all(span != d.span for _, span in d.notes):  # not yet noted by clang
            d.notes.append(("the type is used here", d.span))
        d.span = Span(source, *types[name].span(2))


def _place(m: re.Match[str], sources: Mapping[str, Source], exact: bool) -> Place | None:
    source = sources.get(m["file"])
    if source is None:
        return None
    return source, int(m["line"]), int(m["col"] or 0) if exact else 0


def _span(place: Place) -> Span | None:
    source, line, column = place
    if isinstance(source, Unread):
        return source.at(line, column)
    if not 1 <= line <= source.lines:
        return None
    start, end = source.bounds(line)
    if column and start + column - 1 < end:
        first = start + column - 1
        word = re.match(r"\w+", source.text[first:end])
        return Span(source, first, first + (len(word[0]) if word else 1))
    return source.at(line)


def _note(m: re.Match[str], text: str, place: Place | None) -> str:
    return text if place is not None else f"{m['file'].rpartition('/')[2]}:{m['line']}: {text}"


def _error(text: str, place: Place | None, m: re.Match[str]) -> Diagnostic:
    span = None if place is None else _span(place)
    asserted = _ASSERT.match(text)
    plain = asserted["text"].strip('"') if asserted else text
    ours = _OURS.search(plain)
    if ours:
        message, _, fix = ours["text"].partition("; fix: ")
        return Diagnostic(ours["code"], message.strip(' "'), span, help=fix.strip(' "'))
    d = Diagnostic("PTO-E2402", f"C++: {plain or text}", span, help=_hint(plain or text, span))
    if span is None:
        d.notes.append((f"at {m['file']}:{m['line']}", None))
    return d


_UNKNOWN = re.compile(r"'(\w+)' was not declared|use of undeclared identifier '(\w+)'")
_LOCATION = "write the location first"
_STALE = "the headers are older than the instruction table: make generate, in a checkout"
_FOLLOWS = re.compile(r"\bint\b|non-constant condition|not usable in a constant expression")
_TOO_FEW = re.compile(r"wrong number of template arguments|too few template arguments|template argument for")


def _hint(text: str, span: Span | None) -> str:
    """Return help that the compiler cannot give: names of our instructions, and the syntax of a tile type."""
    unknown = _UNKNOWN.search(text)
    name = (unknown[1] or unknown[2]) if unknown else ""
    if name.isupper() and "did you mean" not in text:
        from ...isa import rows

        calls = {m[0] for r in rows() for m in re.finditer(r"\b[A-Z][A-Z0-9_]+(?=[(<])", r.cpp)}
        return _STALE if name in calls else did_you_mean(name, sorted(calls))
    if span is not None and _TOO_FEW.search(text):
        line = span.source.line(span.line)[: span.place[1]]
        written = re.search(r"\bTile<\s*((?:float|half|bfloat16_t|u?int\d+_t)\b[^<>;]*)>?$", line)
        if written:
            return f"{_LOCATION}: Tile<TileType::Vec, {written[1].strip()}>"
    return ""
