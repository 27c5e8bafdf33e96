"""The C++ spelling of a table row, compiled: which alternative an operation takes, and what fills its places.

    TMOV($dst, $src) | TMOV<Dst, Src, ReluPreMode>($dst, $src)

`$name` is an operand, a result or an attribute; inside `<...>` a capitalised operand name is its type, `T`
the element type of dst, and the name of an enum class the attribute of that kind. `$name.U` is an attribute
in upper case, `.C` in CamelCase, `.N` as a number. Alternatives are separated by ` | `; an operation takes
the one that says everything that is set and as little else as possible. One that fixes attributes is for
these values only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...ir.core import Operation
from ...isa.enums import ENUMS
from ...isa.row import Attr, Row

#: Attributes that the type of an argument says: the layout of an access is that of its tensor.
_IN_TYPES = frozenset(("layout",))

#: Attributes that mean something where they are absent: a comparison is for equality.
_IMPLIED = frozenset(("cmpMode",))

_TOKEN = re.compile(r"\$(\w+)(?:\.([UCN])(?![\w(]))?|([A-Za-z_][\w:]*)")

_NOTHING: dict[str, Any] = {}

#: A place of a template: (kind, name). Kinds: text, value, cast, type, elem, attr, upper,
#: camel, number, variable; `cast` is a value after a cast.
Place = tuple[str, str]


class Alternative:
    """One spelling: its places in order, the operands and attributes it mentions, and those it fixes."""

    def __init__(self, row: Row, text: str, fixes: Mapping[str, Any] = _NOTHING) -> None:
        self.text = text
        self.fixes = fixes
        self.places: list[Place] = []
        self.operands: set[str] = set()
        self.attrs: set[str] = set()
        opening = re.match(r"[\w:]+<", text)
        close = text.find(">(") if opening else -1
        at = 0
        for m in _TOKEN.finditer(text):
            place = self._place(row, m, opening is not None and opening.end() <= m.start() < close)
            if place is None:
                continue
            if m.start() > at:
                self.places.append(("text", text[at : m.start()]))
            self.places.append(place)
            at = m.end()
        if at < len(text):
            self.places.append(("text", text[at:]))

    def _place(self, row: Row, m: re.Match[str], in_types: bool) -> Place | None:
        name, case, word = m.groups()
        if name is None:
            return self._word(row, word) if in_types else None
        if name in row.operand_index:
            self.operands.add(name)
            return "cast" if m.string[: m.start()].endswith(") ") else "value", name
        if name in row.attr_index:
            self.attrs.add(name)
            kind = row.attr_index[name].kind
            if case:
                return {"U": "upper", "C": "camel", "N": "number"}[case], name
            hoisted = not in_types and (kind in ("cmp", "round_mode", "saturation_mode", "bool"))
            return "variable" if hoisted else "attr", name
        if any(r.name == name for r in row.results):
            return "value", name
        return None

    def _word(self, row: Row, word: str) -> Place | None:
        operand = word[0].lower() + word[1:]
        if word[0].isupper() and operand in row.operand_index:
            self.operands.add(operand)
            return "type", operand
        if word == "T":
            return "elem", "dst"
        attr = row.attr_index.get(word) or next((a for a in row.attrs if attribute_class(a) == word), None)
        if attr is None:
            return None
        self.attrs.add(attr.name)
        return "attr", attr.name


def attribute_class(attr: Attr) -> str:
    """C++ class of an attribute's enum, without namespace."""
    if attr.kind not in ENUMS:
        return ""
    return ENUMS[attr.kind].cpp.rpartition("::")[0].rpartition("::")[2]


class Template:
    """All spellings of a row."""

    def __init__(self, row: Row, steps: bool) -> None:
        self.row = row
        forms = list({form.cpp: form for form in row.forms}.values())
        if not steps:  # one call rounds once
            forms = [form for form in forms if ";" not in form.cpp] or forms
        self.alternatives = [Alternative(row, form.cpp, form.fixes) for form in forms]
        self._fixed = sorted({name for form in forms for name in form.fixes})
        self._optional = [(i, o.name) for i, o in enumerate(row.operands) if o.optional or o.variadic]
        self._defaults = {a.name: a.default for a in row.attrs}
        self._silent = _IN_TYPES | {a.name for a in row.attrs if a.hint}
        self._choices: dict[tuple[Any, ...], tuple[Alternative | None, str]] = {}

    def choose(self, op: Operation) -> tuple[Alternative | None, str]:
        """The alternative an operation takes; None and why no alternative fits."""
        facts: list[str] = []
        if op.segments is not None:
            segments = op.segments
            facts = [name for i, name in self._optional if segments[i]]
        if op.attrs:
            defaults = self._defaults
            facts += [n for n, a in op.attrs.items() if n in defaults and a.value != defaults[n]]
        values = [op.attr(name) for name in self._fixed]
        key = (*facts, *values)
        found = self._choices.get(key)
        if found is None:
            found = self._choices[key] = self._pick(set(facts), dict(zip(self._fixed, values, strict=True)))
        return found

    def _pick(self, facts: set[str], values: dict[str, Any]) -> tuple[Alternative | None, str]:
        optional = {name for _, name in self._optional}
        absent = optional - facts
        unset = {n for n, d in self._defaults.items() if d is None and n not in facts} - _IMPLIED
        best: tuple[tuple[int, int], Alternative] | None = None
        for a in self.alternatives:
            if a.operands & absent or a.attrs & unset or any(values[n] != v for n, v in a.fixes.items()):
                continue
            said = len(facts & (a.operands | a.attrs | a.fixes.keys()))
            extra = len(a.attrs - facts)
            score = (said, -extra)
            if best is None or score > best[0]:
                best = score, a
        if best is None:  # scratch tiles that the only spelling names are left out
            missing = min(absent & self.alternatives[0].operands, default="")
            if self.row.set == "comm" and missing:
                return None, f"without '{missing}'"
            return self._without(absent | unset), ""
        left = facts - best[1].operands - best[1].attrs - best[1].fixes.keys() - self._silent
        return (best[1], "") if not left else (None, f"with '{min(left)}'")

    def _without(self, names: set[str]) -> Alternative:
        """The first spelling with the arguments of these names dropped."""
        text = self.row.forms[0].cpp
        for name in names:
            text = re.sub(rf", &?\${name}\b(?![.\w])", "", text)
        return Alternative(self.row, text)


_cache: dict[str, Template] = {}


def template(row: Row, isa: str) -> Template:
    """The spellings of a row on a target: a sum of three is two instructions, except on the cpu."""
    steps = isa != "cpu" or ";" not in row.cpp
    key = row.name if steps else f"{row.name} on {isa}"
    found = _cache.get(key)
    if found is None:
        found = _cache[key] = Template(row, steps)
    return found
