"""Messages between processes: those that are well-formed come through, and any other bytes are refused."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import each

from pto import diag, wire
from pto.diag import Diagnostic, DiagnosticError, Source, Unread
from pto.engine.compiled.library import LaunchOutcome
from pto.engine.compiled.processes import outcome, packed
from pto.host.nodes import address

FIELDS = {
    "i": st.integers(-(2**63), 2**63 - 1),
    "u": st.integers(0, 2**64 - 1),
    "s": st.text(st.characters(exclude_categories=["Cs"])),
    "b": st.binary(),
}
MESSAGES = st.lists(st.sampled_from("iusb")).flatmap(
    lambda kinds: st.tuples(st.just("".join(kinds)), st.tuples(*(FIELDS[kind] for kind in kinds)))
)


@given(MESSAGES)
def test_fields_come_through_and_no_part_of_them_does(
    message: tuple[str, tuple[int | str | bytes, ...]],
) -> None:
    kinds, fields = message
    data = wire.pack(kinds, *fields)
    assert wire.unpack(kinds, data) == fields
    assert wire.receive(io.BytesIO(wire.framed(data)).read, len(data)) == data
    for other in (data[:-1], data + b"\0"):
        if other != data:
            with pytest.raises(DiagnosticError, match="PTO-E2423"):
                wire.unpack(kinds, other)


@given(st.binary(), st.text("iusb", max_size=6))
def test_any_bytes_are_read_or_refused(data: bytes, kinds: str) -> None:
    for read in (
        lambda: wire.unpack(kinds, data),
        lambda: outcome(data, 0, 2),
        lambda: address(data, 0),
        lambda: wire.receive(io.BytesIO(data).read, 64),
    ):
        try:
            read()
        except EOFError:
            pass
        except DiagnosticError as problem:
            assert problem.diagnostics[0].code == "PTO-E2423"


def test_memory_follows_what_has_arrived() -> None:
    """A sender that announces much and sends little costs little."""
    asked: list[int] = []

    def read(most: int) -> bytes:
        asked.append(most)
        return (1 << 40).to_bytes(8, "little") if len(asked) == 1 else b""

    with pytest.raises(EOFError):
        wire.receive(read, 1 << 50)
    assert asked == [8, 1 << 20]


def test_what_is_wrong_is_said() -> None:
    def refused(data: bytes, kinds: str, why: str) -> None:
        with pytest.raises(DiagnosticError) as found:
            wire.unpack(kinds, data, "rank 3")
        assert found.value.diagnostics[0].message == f"cannot read a message from rank 3: {why}"

    each(
        refused,
        [
            (b"", "i", "expected 1 fields, got 0"),
            (wire.pack("i", 7), "iu", "expected 2 fields, got 1"),
            (wire.pack("u", 1 << 63), "b", f"expected a field of {1 << 63} bytes, got 0"),
            (wire.pack("b", b"\xff"), "s", "expected text in UTF-8"),
            (wire.pack("ii", 1, 2), "i", "expected 8 bytes, got 16"),
        ],
    )
    with pytest.raises(DiagnosticError, match="expected at most 10 bytes, got 11"):
        wire.receive(io.BytesIO(wire.framed(bytes(11))).read, 10)


def test_outcomes() -> None:
    for done in (
        LaunchOutcome(0, ""),
        LaunchOutcome(1, "wrong\n", 17, range(5, 2**64 - 1), 1),
        LaunchOutcome(2, "\N{BULLET}", -1),
    ):
        assert outcome(packed(done), 1, 2) == done

    def refused(done: LaunchOutcome, why: str) -> None:
        with pytest.raises(DiagnosticError, match=why):
            outcome(packed(done), 1, 2)

    each(
        refused,
        [
            (LaunchOutcome(-1, "output, which belongs to a rank that runs"), "unknown status -1"),
            (LaunchOutcome(9, ""), "unknown status 9"),
            (LaunchOutcome(1, "", rank=2), "expected a rank from 0 to 1, got 2"),
            (LaunchOutcome(1, "", rank=-1), "expected a rank from 0 to 1, got -1"),
        ],
    )
    assert len(packed(LaunchOutcome(0, "\N{BULLET}" * (1 << 20)))) < wire.SHORT


def test_addresses() -> None:
    assert address(wire.pack("su", "::1", 80), 0) == ("::1", 80)
    for host, port in (("example.org", 80), ("", 80), ("10.0.0.1", 0), ("10.0.0.1", 1 << 16)):
        with pytest.raises(DiagnosticError, match="PTO-E2423"):
            address(wire.pack("su", host, port), 0)


def test_diagnostics() -> None:
    """Places, notes and sources are those of before; two places of one source are places of one source."""
    text, unread = Source("k.pto", "one\ntwo \N{BULLET}\n"), Unread("other.py")
    first = Diagnostic("PTO-E0101", "first", text.at(2), "warning", "x", "y", "do it")
    first.notes = [("there", unread.at(7, 3)), ("nowhere", None), ("here", text.at(1))]
    given = [first, Diagnostic("PTO-E0102", "second")]
    found = diag.from_json(diag.to_json(given))
    assert diag.render(found) == diag.render(given) and diag.render_json(found) == diag.render_json(given)
    assert found[0].span is not None and found[0].notes[2][1] is not None
    assert found[0].span.source is found[0].notes[2][1].source
