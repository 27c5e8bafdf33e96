"""The C++ spelling of a table row, compiled: the alternative for an operation, and the text of its places.

    TMOV($dst, $src) | TMOV<Dst, Src, ReluPreMode>($dst, $src)

`$name` is an operand, a result or an attribute; inside `<...>` a capitalised operand name is its type, `T`
the element type of dst, and the name of an enum class the attribute of that kind. `$name.U` is an attribute
in upper case, `.C` in CamelCase, `.N` as a number. Alternatives are separated by ` | `. An operation takes
the alternative that has all its present operands and attributes, and as few others as possible. An
alternative that fixes attributes or element types is only for these.

Calls on vector registers have more words. A result is a variable that the call writes; `$r:acc` begins as a
copy of an operand. `$x.S`, `$x.B` and `$x.W` see a register as signed, unsigned and 32-bit unsigned integers,
`$n.K` is a constant operand and `$n.H` the half that it names. `%t<u32>` is a register of the call itself, by
default with the type of its result; `<mask>` is a mask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...ir.core import Operation
from ...isa.enums import ENUMS
from ...isa.row import Attr, Row

#: Attributes that follow from the type of an argument: the layout of an access is that of its tensor.
_IN_TYPES = frozenset(("layout",))

#: Attributes that have a meaning if they are absent: a comparison is for equality.
_IMPLIED = frozenset(("cmpMode",))

_TOKEN = re.compile(
    r"\$(\w+)(?::(\w+))?(?:\.([UCNSBWKH])(?![\w(]))?|%([a-z]\w*)(?:<(\w+)>)?|([A-Za-z_][\w:]*)"
)
#: Places that end in a letter.
_CASES = {
    "U": "upper", "C": "camel", "N": "number", "S": "signed", "B": "bits", "W": "words", "K": "constant",
    "H": "half",
}  # fmt: skip
#: Sets whose calls have forms by element type; an operation without a form has no spelling.
_BY_TYPE = ("vector", "predicate", "cube")

_NOTHING: dict[str, Any] = {}

#: A place of a template: (kind, name). Kinds: text, value, cast, type, elem, attr, upper,
#: camel, number, variable, begins, temporary, signed, bits, words, constant, half; `cast` is a value after a
#: cast or sign.
Place = tuple[str, str]


class Alternative:
    """One spelling: its places in order, its operands and attributes, and its fixed attributes."""

    def __init__(
        self, row: Row, text: str, fixes: Mapping[str, Any] = _NOTHING, types: str = "", ignores: str = ""
    ) -> None:
        self.text = text
        self.fixes = fixes
        self.types = frozenset(types.split())
        self.ignores = frozenset(ignores.split())
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
        name, start, case, temporary, type, word = m.groups()
        if temporary is not None:
            return "temporary", f"{temporary}:{type or ''}"
        if name is None:
            return self._word(row, word) if in_types else None
        if start is not None:
            self.operands.add(start)
            return "begins", f"{name}:{start}"
        if name in row.operand_index:
            self.operands.add(name)
            if case:
                return _CASES[case], name
            return "cast" if m.string[: m.start()].endswith((") ", "-")) else "value", name
        if name in row.attr_index:
            self.attrs.add(name)
            kind = row.attr_index[name].kind
            if case:
                return _CASES[case], name
            hoisted = not in_types and (kind in ("cmp", "round_mode", "saturation_mode", "bool"))
            return "variable" if hoisted else "attr", name
        if any(r.name == name for r in row.results):
            return _CASES[case] if case else "value", name
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
    """Return the C++ class of the enum of an attribute, without namespace."""
    if attr.kind not in ENUMS:
        return ""
    return ENUMS[attr.kind].cpp.rpartition("::")[0].rpartition("::")[2]


class Template:
    """All spellings of a row."""

    def __init__(self, row: Row, steps: bool) -> None:
        self.row = row
        forms = list({(form.cpp, *form.fixes.values()): form for form in row.forms}.values())
        if not steps:  # one call rounds once
            forms = [form for form in forms if ";" not in form.cpp] or forms
        self.alternatives = [
            Alternative(row, form.cpp, form.fixes, form.types, form.ignores) for form in forms
        ]
        self._typed = (
            () if not any(form.types for form in forms)
            else row.combos[0].operands if row.combos else (row.typed,)
        )  # fmt: skip
        self._fixed = sorted({name for form in forms for name in form.fixes})
        self._optional = [(i, o.name) for i, o in enumerate(row.operands) if o.optional or o.variadic]
        self._defaults = {a.name: a.default for a in row.attrs}
        self._silent = _IN_TYPES | {a.name for a in row.attrs if a.hint}
        self._choices: dict[tuple[Any, ...], tuple[Alternative | None, str]] = {}

    def choose(self, op: Operation) -> tuple[Alternative | None, str]:
        """Return the alternative for an operation; or None, and the reason that no alternative fits."""
        facts: list[str] = []
        if op.segments is not None:
            segments = op.segments
            facts = [name for i, name in self._optional if segments[i]]
        if op.attrs:
            defaults = self._defaults
            facts += [n for n, a in op.attrs.items() if n in defaults and a.value != defaults[n]]
        values = [op.attr(name) for name in self._fixed]
        types = ",".join(element_type(op, name) for name in self._typed)
        key = (*facts, *values, types)
        found = self._choices.get(key)
        if found is None:
            given = dict(zip(self._fixed, values, strict=True))
            found = self._choices[key] = self._pick(set(facts), given, types)
        return found

    def _pick(
        self, facts: set[str], values: dict[str, Any], types: str
    ) -> tuple[Alternative | None, str]:  # fmt: skip
        optional = {name for _, name in self._optional}
        absent = optional - facts
        by_type = self.row.set in _BY_TYPE
        if by_type:  # no mask means all lanes
            absent -= {"mask"}
        unset = {n for n, d in self._defaults.items() if d is None and n not in facts} - _IMPLIED
        best: tuple[tuple[int, int], Alternative] | None = None
        for a in self.alternatives:
            if a.operands & absent or a.attrs & unset or any(values[n] != v for n, v in a.fixes.items()):
                continue
            if a.types and types not in a.types:
                continue
            said = len(facts & (a.operands | a.attrs | a.ignores | a.fixes.keys()))
            extra = len(a.attrs - facts)
            score = (said, -extra)
            if best is None or score > best[0]:
                best = score, a
        if best is None and by_type:
            of = " to ".join(types.split(","))
            return None, f"with '{self._fixed[0]}'" if self._fixed else f"for elements of {of}"
        if best is None:  # leave out scratch tiles that only this spelling names
            missing = min(absent & self.alternatives[0].operands, default="")
            if self.row.set == "comm" and missing:
                return None, f"without '{missing}'"
            return self._without(absent | unset), ""
        chosen = best[1]
        left = facts - chosen.operands - chosen.attrs - chosen.ignores - chosen.fixes.keys() - self._silent
        return (best[1], "") if not left else (None, f"with '{min(left)}'")

    def _without(self, names: set[str]) -> Alternative:
        """Return the first spelling without the arguments of these names."""
        text = self.row.forms[0].cpp
        for name in names:
            text = re.sub(rf", &?\${name}\b(?![.\w])", "", text)
        return Alternative(self.row, text)


def element_type(op: Operation, name: str) -> str:
    """Return the element type of an operand or result."""
    row = op.row
    assert row is not None
    if name in row.operand_index:
        return str(op.group(name)[0].type.dtype)  # type: ignore[attr-defined]
    at = next(i for i, r in enumerate(row.results) if r.name == name)
    return str(op.results[at].type.dtype)  # type: ignore[attr-defined]


_cache: dict[str, Template] = {}


def template(row: Row, isa: str) -> Template:
    """Return the spellings of a row on a target. A sum of three is two instructions, except on cpu."""
    steps = isa != "cpu" or ";" not in row.cpp or row.set in _BY_TYPE
    key = row.name if steps else f"{row.name} on {isa}"
    found = _cache.get(key)
    if found is None:
        found = _cache[key] = Template(row, steps)
    return found
