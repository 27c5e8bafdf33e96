"""Call frames of the C++ intrinsics: generated, or written by hand for a reason that the table gives."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from functools import cache

from pto import isa
from pto.codegen import calls
from pto.codegen.__main__ import HEADERS
from pto.codegen.checks import call_of, checks_of
from pto.isa.row import Form, Row

OPS = HEADERS / "ops"
GENERATED = ("legality.hpp", "meanings.hpp", "regular.hpp", "calls.hpp")
_ENTRY = re.compile(r"(?:PTO_INST|inline) (?:comm::)?\w+ ([A-Z][A-Z0-9_]+)\(")


@cache
def forms() -> list[tuple[Row, Form]]:
    """Overloads that have a check, and so a frame."""
    return [(row, form) for row in isa.rows() for check in checks_of(row) for form in check.forms]


def name_of(form: Form) -> str:
    call = call_of(form)
    assert call is not None
    return call.name


def names_in(*headers: str) -> set[str]:
    return {n for h in headers for n in _ENTRY.findall((OPS / h).read_text())}


def test_a_frame_is_generated_or_has_a_reason_not_to_be() -> None:
    open_: list[str] = []
    written = {(made.row.name, form.cpp) for made in calls.written() for form, _ in made.forms}
    for row, form in forms():
        key = row.name, form.cpp
        derived = bool(row.expr) and not form.written
        if (key in written) + (bool(form.by_hand) or derived) != 1:
            open_.append(f"{row.name}: {form.cpp}")
    assert not open_, "\n".join(open_)
    assert len({name for name, _ in written}) >= 41


def test_what_is_written_by_hand_is_what_the_table_says() -> None:
    others = (*GENERATED, "comm.hpp")  # whose calls are in a namespace of their own
    headers = [p.name for p in OPS.glob("*.hpp") if p.name not in others]
    written, generated = names_in(*headers), names_in("meanings.hpp", "regular.hpp", "calls.hpp")
    reasons: dict[str, set[str]] = defaultdict(set)
    for _, form in forms():
        if form.by_hand:
            reasons[name_of(form)].add(form.by_hand)
    # core/, what emitted programs bring along, and the frame of another row
    elsewhere = {"TASSIGN", "SYNCALL", "PTOAS__TRANDOM", "TMOV_FP"}
    assert reasons.keys() - elsewhere <= written, "these have a reason, and no frame by hand"
    unshaped = {"TLOAD", "TSTORE"}  # also of tensors without a shape: they call the generated ones
    assert not (written & generated) - reasons.keys() - unshaped, "a frame by hand, and no reason"


@cache
def generated() -> str:
    return calls.generate()


def test_a_frame_as_the_module_shows_it() -> None:
    shown = textwrap.dedent(str(calls.__doc__).partition("\n\n")[2].partition("\n\nThe frame")[0])
    assert shown.startswith("template <") and shown in generated()


def test_attributes_become_template_arguments_and_inert_ones_go_no_further() -> None:
    text = generated()
    assert "template <AccPhase phase, class Dst, class Lhs, class Rhs, class... Rest>" in text
    assert "detail::matrix_product(dst, lhs, rhs);" in text
    assert "AtomicType atomicType = AtomicType::AtomicNone" in text
    assert "detail::store<atomicType, reluPreMode>(dst, src, preQuantScalar);" in text
