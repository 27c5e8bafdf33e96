"""Properties of every input, however broken; `check` raises AssertionError if one does not hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from pto.asm import FORMS, parse_source, to_text
from pto.diag import Diagnostic, Source, Unread, has_errors, render, render_json
from pto.ir.core import Module
from pto.isa.errors import CATALOGUE
from pto.reading import decode
from pto.verifier import verify

from ..counting import no_hang

_GROUPS = re.compile(r"unknown attribute '(operandSegmentSizes|operand_segment_sizes|case_operand_segments)'")


def check(data: bytes) -> str:
    """Check every property of one input; return how far it got: undecoded, rejected, illegal or legal."""
    with no_hang(60):  # the largest inputs of the tests take half a second
        return _check(data)


def _check(data: bytes) -> str:
    source, problems = decode("fuzz.pto", data)
    if source is None:
        assert has_errors(problems)
        well_formed(problems, None)
        return "undecoded"
    module, problems = parse_source(source)
    well_formed(problems, source)
    if module is None:
        assert has_errors(problems), "rejected without an error"
        return "rejected"
    assert not has_errors(problems), "an error, but a module all the same"
    found = verify(module)
    well_formed(found, source)
    for form in FORMS:
        round_trip(module, form, _codes(found))
    return "illegal" if has_errors(found) else "legal"


def well_formed(diagnostics: list[Diagnostic], source: Source | None) -> None:
    """Codes of the catalogue, places inside the text, and both renderings work."""
    for d in diagnostics:
        assert d.code in CATALOGUE, f"{d.code} is not in the catalogue"
        assert d.message and d.severity in ("error", "warning", "note")
        spans = [d.span, *(span for _, span in d.notes)]
        whole = d.code == "PTO-E0004"  # the file is something else altogether
        assert d.span is not None or whole, f"{d.code} has no place: {d.message}"
        for span in spans:
            if span is not None and source is not None and not isinstance(span.source, Unread):
                assert span.source is source, f"{d.code} points into another text"
                assert 0 <= span.start <= len(source.text), f"{d.code} at {span.start} of {len(source.text)}"
                assert span.start <= span.end <= len(source.text) + 1, f"{d.code} ends at {span.end}"
    assert isinstance(render(diagnostics), str) and isinstance(render_json(diagnostics), str)


def round_trip(module: Module, form: str, codes: Counter[str]) -> None:
    """The printed text is read again, prints the same, and is as legal as before."""
    text = to_text(module, form)
    again, problems = parse_source(Source(f"{form}.pto", text))
    assert again is not None, f"{form} is not read again:\n{render(problems[:3])}\n{text[:2000]}"
    if form == "asm" and any(code.startswith("PTO-E03") for code in codes):
        return  # operands of wrong types: this form finds out by their types which is which
    assert to_text(again, form) == text, (
        f"{form} is no fixpoint:\n{text[:2000]}\n---\n{to_text(again, form)[:2000]}"
    )
    if form != "generic" and any(code.startswith("PTO-E02") for code in codes):
        return  # the other forms put terminators and destinations in their place, which may repair the structure
    after = _codes(verify(again))
    assert after == codes, (
        f"{form}: verified as {dict(codes)}, printed and read as {dict(after)}\n{text[:2000]}"
    )


def _codes(diagnostics: Iterable[Diagnostic]) -> Counter[str]:
    """Return codes and their counts; an attribute for the groups of operands is not printed in generic
    form."""
    return Counter(d.code for d in diagnostics if not _GROUPS.search(d.message))
