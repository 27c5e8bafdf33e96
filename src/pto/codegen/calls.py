"""The text of ops/calls.hpp: the call frames of tile instructions with a hand-written meaning.

    template <class Dst, class Src, class Offsets, class... Rest>
    PTO_INST RecordEvent TGATHERB(Dst& dst, Src& src, Offsets& offsets, Rest&... rest) {
      PTO_LEGAL(check_tgatherb<Dst, Src, Offsets>(dst));
      detail::finish_call<0>(rest...);
      PTO_TRACE("tgatherb dst src offsets:", PTO_SAYS(), dst, src, offsets, rest...);
      detail::gather_blocks(dst, src, offsets);
      return {};
    }

The frame calls a function in the header of its family, which has the name of the row's algorithm (or of the
row, if its expression has no C++). The function takes the operands of the call without scratch. Its template
arguments are attributes. Forms with a frame written by hand (`Form.by_hand`) are left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from ..isa import rows as all_rows
from ..isa.algorithms import kind_of
from ..isa.record import Record
from ..isa.row import Attr, Form, Operand, Row
from .checks import Call, Check, call_of, checks_of, spelling
from .conditions import type_of
from .cpp.template import attribute_class
from .generated import filled, head

#: Headers of the functions that the frames call.
_FAMILIES = ("compare", "convert", "elementwise", "expand", "fixpipe", "gather", "generate", "img2col",
             "load_store", "matmul", "moves", "part", "quantise", "rearrange", "reduce", "sort")  # fmt: skip
#: C++ types of scalar operands; the default is the element type of the first tile that is read.
_SCALARS = {"float": "float", "int": "int64_t", "index": "uint16_t", "i64": "uint64_t"}
_PLAIN = {"bool": "bool", "int": "int"}


class CallOverload(Record):
    """An overload: forms of a row with the same arguments and compatible template arguments."""

    row: Row
    check: Check
    forms: tuple[tuple[Form, Call], ...]
    args: tuple[str, ...]  # without trailing scratch
    scratch: int  # the maximal number of trailing scratch tiles
    overloaded: bool  # there are calls of the same name with other arguments
    fewest: int  # all argument lists of this name
    numbers: frozenset[int]  # arguments that are numbers in some calls of this name

    @property
    def call(self) -> Call:
        return self.forms[0][1]

    @cached_property
    def operands(self) -> dict[str, Operand]:
        return {o.name: o for o in (*self.row.operands, *self.row.results)}

    @cached_property
    def template_list(self) -> list[str]:
        """Return the longest list of template arguments; all other lists are prefixes of it."""
        return max((_words(call.types) for _, call in self.forms), key=len)

    def is_scratch(self, name: str) -> bool:
        return name in self.operands and self.operands[name].role == "tmp" and not self.forms[0][0].scratch


# ---- overloads ----


def written() -> Iterator[CallOverload]:
    """Yield the overloads with a generated frame and a hand-written meaning."""
    found = [(row, check) for row in all_rows() for check in checks_of(row)]
    every: dict[str, set[tuple[str, ...]]] = defaultdict(set)  # argument lists by name
    numbers: dict[str, set[int]] = defaultdict(set)
    for row, check in found:
        for form, call in _calls(check):
            every[call.name].add((*_arguments(call)[: _ends(row, call)], *form.scalars))
            numbers[call.name].update(k for k, n in enumerate(call.operands) if n in check.scalars)
    for row, check in found:
        groups: dict[tuple[tuple[str, ...], str], list[tuple[Form, Call]]] = {}
        for form, call in _calls(check):
            if (form.written or not row.expr) and not form.by_hand:
                args = _arguments(call)[: _ends(row, call)]
                groups.setdefault((tuple(args), _leading(row, call)), []).append((form, call))
        for (args, _), group in groups.items():
            name = group[0][1].name
            scratch = int(any(len(_arguments(call)) > len(args) for _, call in group))
            overloaded, fewest = len(every[name]) > 1, min(map(len, every[name]))
            known = frozenset(numbers[name])
            yield CallOverload(row, check, tuple(group), args, scratch, overloaded, fewest, known)


def _calls(check: Check) -> list[tuple[Form, Call]]:
    return [(form, call) for form in check.forms if (call := call_of(form)) is not None]


def _ends(row: Row, call: Call) -> int:
    """Return the number of arguments of a call without trailing optional scratch."""
    args = _arguments(call)
    optional = {f"${o.name}" for o in row.operands if o.role == "tmp" and o.optional}
    return len(args) - (args[-1] in optional)


def _words(types: str) -> list[str]:
    return types.split(", ") if types else []


def _arguments(call: Call) -> list[str]:
    return call.args.split(", ") if call.args else []


def _leading(row: Row, call: Call) -> str:
    """Return the attribute before all types in a list of template arguments."""
    words = _words(call.types)
    attr = _attribute(row, words[0]) if words else None
    return attr.name if attr else ""


def _attribute(row: Row, word: str) -> Attr | None:
    """Return the attribute of a template argument."""
    found = re.search(r"\$(\w+)", word)
    if found:
        return row.attr_index[found[1]]
    return row.attr_index.get(word) or next((a for a in row.attrs if attribute_class(a) == word), None)


# ---- the frame ----


def _frame(made: CallOverload) -> Iterator[str]:
    row, check, call = made.row, made.check, made.call
    params, conditions, handed = _parameters(made)
    yield f"/// {row.doc}"
    yield from filled("template <", ", ".join([*_template(made), "class... Rest>"]), "          ")
    if made.overloaded and not made.scratch:
        conditions = [*conditions, "all_events_v<Rest...>"]
    if conditions:
        yield f"  requires({' && '.join(conditions)})"
    yield from filled(
        f"PTO_INST RecordEvent {call.name}(",
        f"{', '.join([*params, 'Rest&... rest'])}) {{",
        " " * len(call.name) + " " * 22,
    )
    if not check.is_empty:
        yield check.called(_checked(made))
    yield f"  detail::finish_call<{made.scratch}>(rest...);"
    yield from traced(row, [n for text in made.args for n in re.findall(r"\$(\w+)", text)], _given(made))
    arguments = ", ".join(_chosen(made))
    yield f"  detail::{_function(made)}{f'<{arguments}>' if arguments else ''}({', '.join(handed)});"
    yield "  return {};"
    yield "}"


def _parameters(made: CallOverload) -> tuple[list[str], list[str], list[str]]:
    """Return the parameters, the requirements that tell overloads apart, and the passed arguments."""
    params: list[str] = []
    conditions: list[str] = []
    handed: list[str] = []
    starts = True  # True so far: positions after tiles are 0 by default
    for k, text in enumerate(made.args):
        found = re.fullmatch(r"(?:\((\w+)\) )?\$(\w+)", text)
        assert found, f"{made.row.name}: {text} has no frame"
        cast, name = found.groups()
        operand = made.operands.get(name)
        if made.is_scratch(name):
            params.append(f"[[maybe_unused]] {type_of(name)}& {name}")
            conditions += [f"is_tile_data_v<{type_of(name)}>"] if made.overloaded else []
            continue
        handed.append(name)
        if name in made.check.classes:
            params.append(f"{type_of(name)}& {name}")
            assert operand is not None
            if made.overloaded and (k >= made.fewest or k in made.numbers):
                conditions.append(_is_any(made.check.classes[name], type_of(name)))
        else:
            starts = starts and operand is not None and operand.kind == "index"
            params.append(f"{cast or _value_type(made, name)} {name}{' = 0' if starts else ''}")
    return params, conditions, handed


def traced(row: Row, args: Iterable[str], given: Iterable[Attr] = ()) -> Iterator[str]:
    """Yield the line of a frame that traces a call, with its arguments and the attributes among its template
    arguments.
    """
    operands = [n for n in args if n not in row.attr_index]
    attrs = [*(n for n in args if n in row.attr_index), *(a.name for a in given)]
    form = " ".join([row.name, *operands]) + ":" + "".join(f" {name}" for name in attrs)
    yield from filled(
        "  PTO_TRACE(",
        ", ".join([f'"{form}"', f"PTO_SAYS({', '.join(attrs)})", *operands, "rest...);"]),
        "            ",
    )


_KINDS = {"tile": "is_tile_data_v", "conv_tile": "is_conv_tile_v", "view": "is_global_data_v"}


def _is_any(kinds: Iterable[str], type: str) -> str:
    """Return the condition that a type is of one of some kinds."""
    found = " || ".join(f"{_KINDS[kind]}<{type}>" for kind in kinds)
    return f"({found})" if "||" in found else found


def _value_type(made: CallOverload, name: str) -> str:
    """Return the type of an argument other than tiles and tensors."""
    operand = made.operands.get(name)
    if operand is None:
        attr = made.row.attr_index[name]
        return attribute_class(attr) or _PLAIN[attr.kind]
    known = next((_SCALARS[k] for k in operand.kinds if k in _SCALARS), None)
    if known:
        return known
    read = [n for n in made.check.classes if made.operands[n].reads and made.operands[n].role == "in"]
    return f"typename {type_of((read or [*made.check.classes])[-1 if read else 0])}::DType"


def _template(made: CallOverload) -> list[str]:
    """Return the template parameters: its longest list, and classes that follow from the call."""
    known = {type_of(n): n for n in made.check.classes}
    known |= {type_of(n): n for n in made.operands if made.is_scratch(n)}
    fewest = min(len(_words(call.types)) for _, call in made.forms)
    params: list[str] = []
    said: set[str] = set()
    for k, word in enumerate(made.template_list):
        if word in known:
            said.add(word)
            params.append(f"class {word}")
            continue
        attr = _attribute(made.row, word)
        assert attr is not None, f"{made.row.name}: {word} has no frame"
        enum = word.partition("::")[0] if "::" in word else attribute_class(attr) or _PLAIN[attr.kind]
        default = _default(made, attr) if k or attr.assumed is not None else ""
        assert default or k < fewest, f"{made.row.name}: {word} has no default"
        params.append(f"{enum} {attr.name}{f' = {default}' if default else ''}")
    named = [n for text in made.args for n in re.findall(r"\$(\w+)", text)]
    return params + [f"class {type_of(n)}" for n in named if type_of(n) in known and type_of(n) not in said]


def _default(made: CallOverload, attr: Attr) -> str:
    """Return the default of a template argument; empty if the call must have it."""
    value = attr.assumed if attr.default is None else attr.default
    longest = max((call for _, call in made.forms), key=lambda call: len(_words(call.types)))
    spelled = spelling(attr, longest)
    return spelled(value) if spelled is not None and value is not None else ""


def _given(made: CallOverload) -> list[Attr]:
    found = [_attribute(made.row, word) for word in made.template_list]
    return [attr for attr in found if attr is not None]


def _checked(made: CallOverload) -> Iterator[str]:
    """Yield the attributes for the check; attributes that the call lacks have their defaults."""
    given = {attr.name for attr in _given(made)}
    for name in made.check.attrs:
        yield name if name in given else made.check.defaults[name]


def _chosen(made: CallOverload) -> Iterator[str]:
    """Yield the template arguments of the function: the range of the row, its kind, and attributes."""
    _, kind = kind_of(made.row)
    if made.row.over.startswith("fold"):
        yield along(made.row)
    if kind:
        yield f"detail::Kind::{kind}"
    yield from (attr.name for attr in _given(made) if not attr.inert)


def _function(made: CallOverload) -> str:
    return kind_of(made.row)[0].replace(" ", "_") or made.row.name


def along(row: Row) -> str:
    """Return the axis of a fold."""
    return "detail::Along::row" if row.over == "fold columns" else "detail::Along::col"


# ---- the file ----


def generate() -> str:
    """Return the text of ops/calls.hpp."""
    about = "Calls of tile instructions whose meaning is a function of their family's header."
    includes = "".join(f'#include "pto/ops/{name}.hpp"\n' for name in _FAMILIES)
    out = [head(about), includes, "namespace pto {\n"]
    for made in written():
        out += [*_frame(made), ""]
    return "\n".join([*out, "}  // namespace pto"]) + "\n"
