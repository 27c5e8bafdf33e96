"""The texts of micro/tags.hpp and micro/arithmetic.hpp: tags of vector calls, and calls that compute lanes.

A vector row with an expression and a call becomes a struct with the expression in C++, over the operators of
core/numbers.hpp and micro/operators.hpp, and an overload for each register type of the public call. Overloads
are functions of registers; only their tags are template parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..isa import meaning
from ..isa import rows as all_rows
from ..isa.dtypes import DTYPES
from ..isa.micro_tags import NAMED, TAGS
from ..isa.row import Form, Row
from .cpp.spelling import register
from .generated import head

#: C++ of the operations of `isa.meaning` in vector rows.
_SPELLED: dict[str, str] = {
    **{name: name for name in (
        "add sub mul div neg bit_and bit_or bit_xor bit_not shl shr less less_equal greater greater_equal "
        "equal not_equal where").split()},
    **{name: f"{name}<T>" for name in "exp log sqrt".split()},
    "abs": "magnitude", "max": "larger", "min": "lesser", "fma": "fused<T>", "popcount": "ones<T>",
    "cls": "sign_bits<T>",
}  # fmt: skip


def _expression(expression: meaning.Expression) -> str:
    return meaning.fold(
        expression, str, str, lambda operation, *args: f"{_SPELLED[operation]}({', '.join(args)})"
    )


# ---- tags ----


def generate_tags() -> str:
    """Return the text of micro/tags.hpp."""
    about = "Words of vector calls: each is an object of a class of its own, a constant of an enumeration."
    out = [head(about), "#include <type_traits>\n"]
    for tag in TAGS.values():
        numbers = {f"{tag.prefix}{word}": n for word, n in (*tag.words.items(), *tag.unnamed.items())}
        listed = ", ".join(f"{word} = {n}" for word, n in numbers.items())
        made = f"enum class {tag.name} {{ {listed} }};"
        out += [f"/// {tag.doc}", made if tag.name in NAMED else f"namespace __cce_simd {{ {made} }}"]
        for word in tag.words:
            value = f"{tag.cpp}::{tag.prefix}{word}"
            out.append(f"inline constexpr std::integral_constant<{tag.cpp}, {value}> {word}{{}};")
        out.append("")
    out += ["namespace __cce_simd {"]
    out += [
        f"using Round{word[-1]}Type = std::remove_const_t<decltype({word})>;" for word in TAGS["ROUND"].words
    ]
    others = [f"using __cce_simd::{name};" for name in TAGS if name not in NAMED]
    out += ["}  // namespace __cce_simd", "", "#ifdef PTO_CPU_BARE_REGISTERS", *others, "#endif"]
    return "\n".join(out) + "\n"


# ---- arithmetic ----


def computed(row: Row) -> list[Form]:
    """Return the forms of a row whose call follows from its expression."""
    own = re.compile(rf"{row.name}(_\$cmp_mode)?\(")
    if row.set != "vector" or not row.expr or row.over:
        return []
    return [f for f in row.forms if not f.by_hand and own.match(f.cpp) and ".B" not in f.cpp]


def overloads(row: Row, form: Form) -> list[str]:
    """Return the element types of a call."""
    return form.types.split() if form.types else [d for d in row.dtypes["a5"] if DTYPES[d].bits < 64]


def _meaning(name: str, expression: meaning.Expression) -> Iterator[str]:
    params = ", ".join(f"{n.upper()} {n}" for n in meaning.names(expression))
    types = ", ".join(f"class {n.upper()}" for n in meaning.names(expression))
    yield f"struct {name} {{"
    yield f"  template <class T, {types}>"
    yield f"  static PTO_INLINE auto of({params}) {{"
    yield f"    return {_expression(expression)};"
    yield "  }"
    yield "};"


class _Call:
    """The parameters and arguments of one call, from its spelling."""

    def __init__(self, row: Row, form: Form) -> None:
        self.row = row
        text = form.cpp[form.cpp.index("(") + 1 : -1]
        words = [w.strip() for w in text.split(",")]
        self.target = re.match(r"\$(\w+)", words[0])[1]  # type: ignore[index]
        self.start = words[0].partition(":")[2]
        self.mask = next(w[1:] for w in words if w in ("$mask", "$seed"))
        self.sources = [w[1:] for w in words[1:] if w.startswith("$") and w not in ("$mask", "$seed")]
        self.tagged = "MODE_ZEROING" in words

    def parameters(self) -> str:
        kinds = {o.name: o.kinds for o in self.row.operands}
        out = ["vector_bool& m" if self.target == "m" else "V& r"]
        for source in self.sources:
            name, _, view = source.partition(".")
            if "vreg" in kinds[name]:
                out.append(f"const {'S' if view else 'V'}& {name}")
            else:
                out.append(f"{'int16_t' if self.row.name in _COUNTS else 'T'} {name}")
        out.append(f"const vector_bool& {self.mask}")
        return ", ".join([*out, *(["M = {}"] if self.tagged else [])])

    def argument(self, name: str) -> str:
        if name == self.start:
            return "r"
        declared = next(o for o in self.row.operands if o.name == name)
        if "vreg" in declared.kinds:
            return name
        if self.row.name in _COUNTS:
            return f"static_cast<pto::detail::wide_t<T>>({name})"
        return f"pto::detail::micro::scalar<T>({name})"


#: Rows whose scalar is a count of bits.
_COUNTS = ("vshls", "vshrs")


def _bitwise(expression: meaning.Expression) -> bool:
    return isinstance(expression, meaning.Apply) and expression.operation in ("bit_and", "bit_or", "bit_xor")


def _macro(row: Row, name: str, call: _Call, expression: meaning.Expression) -> Iterator[str]:
    struct = f"pto::detail::micro::{name}_lanes"
    arguments = ", ".join(call.argument(n) for n in meaning.names(expression))
    if call.target == "m":
        body = f"pto::detail::micro::lanewise_truth<{struct}>(m, {call.mask}, {arguments})"
    else:
        kind = "lanewise_bits" if _bitwise(expression) else "lanewise"
        body = f"pto::detail::micro::{kind}<{struct}, M>(r, {call.mask}, {arguments})"
    tag = "class M = decltype(MODE_UNKNOWN)" if call.tagged else "int = 0"
    yield "#define PTO_CALL_(V, T, S) \\"
    yield f"  template <{tag}> \\"
    yield f"  PTO_INST void {name}({call.parameters()}) {{ \\"
    yield f"    {_traced(row, name, call)} \\"
    yield f"    {body}; \\"
    yield "  }"


def _traced(row: Row, name: str, call: _Call) -> str:
    """Return the trace line of a call. Lanes that keep their values are not operands of the row. A call with
    such lanes has no trace; its result is read from its register.
    """
    sources = [source.partition(".")[0] for source in call.sources]
    operands = [*([call.start] if call.start else []), *sources, call.mask]
    mode = f" cmp_mode={name.rpartition('_')[2]}" if name != row.name else ""
    form = f'"{row.name} >{call.target} {" ".join(operands)}:{mode}"'
    if call.tagged:
        form = f"M::value == ::__cce_simd::Mode::MODE_MERGING ? nullptr : {form}"
    given = ", ".join("r" if operand == call.start else operand for operand in operands)
    return f"PTO_TRACE({form}, PTO_SAYS(), PTO_RESULT({call.target}), {given});"


def _overloads(row: Row, form: Form) -> Iterator[str]:
    call = _Call(row, form)
    whole = meaning.read(row.expr)
    attributes = meaning.attributes(whole)
    modes = row.attr_index[attributes[0]].choices if attributes else ("",)
    yield f"// {row.name}: {row.expr}"
    for mode in modes:
        name = f"{row.name}_{mode}" if mode else row.name
        expression = meaning.decided(whole, {attributes[0]: mode}) if mode else whole
        yield "namespace pto::detail::micro {"
        yield from _meaning(f"{name}_lanes", expression)
        yield "}  // namespace pto::detail::micro"
        yield from _macro(row, name, call, expression)
        for dtype in overloads(row, form):
            signed = register(f"i{DTYPES[dtype].bits}")
            yield f"PTO_CALL_({register(dtype)}, {DTYPES[dtype].cpp}, {signed})"
        yield "#undef PTO_CALL_"
    yield ""


def generate_arithmetic() -> str:
    """Return the text of micro/arithmetic.hpp."""
    about = "Vector calls that compute lane by lane, from the expressions of their rows."
    out = [head(about), '#include "pto/micro/operators.hpp"\n']
    for row in all_rows():
        for form in computed(row)[:1]:
            out += _overloads(row, form)
    return "\n".join(out)
