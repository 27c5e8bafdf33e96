"""Damaged and hostile images, ELF files and listings: a diagnostic with a code and a place, or an image that was checked.
What was checked never reads or writes outside its frame and its words."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import pto
from pto.diag import Source
from pto.image import container, elf, format, lines, listing
from pto.image.check import check
from pto.image.format import CALL, COPY, END, JUMP, MAGIC, Image

from ..counting import memory_limit, no_hang
from ..fuzz.readers import READERS
from .programs import convolution, example, two, values, walk

PROFILE = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SEEDS = st.integers(0, 2**32 - 1)


def refused(
    code: str, act: Callable[..., object], *args: Any, message: str = "", at: int | None = None
) -> None:
    with pytest.raises(pto.DiagnosticError) as caught:
        act(*args)
    (found,) = caught.value.diagnostics
    assert found.code == code and message in found.message, found
    assert at is None or (found.span is not None and found.span.start == at), found.span and found.span.start


@cache
def data() -> bytes:
    return container.to_bytes(two())


def read(changed: bytes) -> container.ImageFile:
    return container.read(changed, "bad.elf")


def patched(at: int, new: bytes, old: bytes | None = None) -> bytes:
    old = data() if old is None else old
    return old[:at] + new + old[at + len(new) :]


def test_e1221_no_images() -> None:
    refused("PTO-E1221", read, b"", at=0)
    refused("PTO-E1221", read, b"module {}", at=0)
    refused("PTO-E1221", read, elf.written({".text": b"x"}, []), message="missing section .pto", at=0)
    refused(
        "PTO-E1221", read, elf.written({".pto": b"PTOIMAGX" + bytes(60)}, []), message="not an image", at=64
    )
    refused("PTO-E1221", format.sole, MAGIC[:5])
    images = data()[slice(*elf.sections(data(), "k")[".pto"])]
    refused("PTO-E1221", read, elf.written({".pto": images, ".pto.lines": b"nothing"}, []), message="lines")


def test_e1222_versions() -> None:
    begin = elf.sections(data(), "k")[".pto"][0]
    refused("PTO-E1222", read, patched(begin + 8, b"\2"), message="version 2", at=begin + 8)
    begin = elf.sections(data(), "k")[".pto.lines"][0]
    refused("PTO-E1222", read, patched(begin + 8, b"\x09"), message="version 9", at=begin + 8)


def test_e1223_elf() -> None:
    refused("PTO-E1223", read, data()[:40], at=4)
    refused("PTO-E1223", read, patched(4, b"\1"), at=4)  # 32 bits
    refused("PTO-E1223", read, patched(5, b"\2"), at=4)  # big-endian
    for field, new, at in (
        (40, b"\xff" * 8, 40),
        (58, b"\x41\0", 52),
        (60, b"\xff\xff", 40),
        (62, b"\xff\xff", 62),
    ):
        refused("PTO-E1223", read, patched(field, new), at=at)
    refused("PTO-E1221", read, patched(60, b"\0\0"), message="missing section .pto", at=0)
    table = struct.unpack_from("<Q", data(), 40)[0]
    refused("PTO-E1223", read, patched(table + 64 + 24, b"\xff" * 6), message="section 1", at=table + 64)
    refused("PTO-E1223", read, patched(table + 64, b"\xff\xff"), message="no name", at=table + 64)
    refused("PTO-E1223", read, data()[:-1], at=40)


def test_counts_and_ends() -> None:
    """A count is at most the number of remaining bytes, and no object is made before that check."""
    image = format.to_bytes(two().images[0])
    tracemalloc.start()
    for at in range(12, len(image) - 4):
        try:
            format.sole(patched(at, b"\xff\xff\xff\x7f", image))
        except pto.DiagnosticError as e:
            assert e.diagnostics[0].code.startswith("PTO-E12")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    for size in range(len(image)):
        with pytest.raises(pto.DiagnosticError):
            format.sole(image[:size])
    refused("PTO-E1210", format.sole, image + b"\0", message="unexpected 1 bytes", at=len(image))
    refused("PTO-E1209", format.sole, patched(12, b"\xff\xff\0\0", image), message="bytes of a name", at=12)
    refused("PTO-E1207", format.sole, patched(16, b"\xff", image), message="UTF-8", at=16)


def test_tables_of_lines() -> None:
    known = two().lines
    made = lines.to_bytes(known)
    for at in range(12, len(made) - 4, 3):
        for number in (b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\xff\xff\0\0"):
            changed = patched(at, number, made)
            try:
                found = lines.from_bytes(changed, "bad.elf", 0, len(changed))
            except pto.DiagnosticError as e:
                assert e.diagnostics[0].code.startswith("PTO-E12")
            else:
                assert all(span.place[0] == found.places[n].line for n, span in found.spans().items())


# -- the check ------------------------------------------------------------------------------------------------


def _changed(image: Image, **changes: Any) -> Image:
    return image.replace(codes=(image.codes[0].replace(**changes),))


def _where(image: Image, name: str, nth: int = 0) -> int:
    """The word at which an instruction begins."""
    return [at for at, found, _ in walk(image, image.codes[0]) if found == name][nth]


def _word(image: Image, at: int, value: int) -> Image:
    words = list(image.codes[0].words)
    words[at] = value
    return _changed(image, words=tuple(words))


def test_e1224_words() -> None:
    count, turn = two().images
    words = count.codes[0].words
    cases: dict[str, Image] = {
        "word 0: invalid length of an instruction": _word(count, 0, words[0] & 0xFFFFFF),
        "invalid length of an instruction": _word(count, len(words) - 1, END | 9 << 24),
        "missing 'end'": _changed(count, words=words[:-1]),
        "unknown instruction": _word(count, len(words) - 1, 9 | 1 << 24),
        "unknown call": _word(count, _where(count, "vm.step"), CALL + 99 | 3 << 24),
        "wrong number of operands": _changed(count, words=(*words[:-1], JUMP | 1 << 24, END | 1 << 24)),
        "jump to a word": _word(count, _where(count, "jump") + 1, 1),
        "width is out of range": _word(count, _where(count, "next") + 1, 3),
        "source location of a word": _changed(count, places=((1, 0),)),
        "vm.part: wrong number": _word(turn, _where(turn, "vm.part") + 4, 0),
        "rank is out of range": _changed(turn, words=_before_end(turn, *_part(turn, 6))),
        "box_rows is out of range": _word(turn, _where(turn, "vm.assign") + 6, 0),
        "form is out of range": _word(turn, _where(turn, "vm.assign") + 5, 6),
        "bits is out of range": _word(turn, _where(turn, "vm.rows") + 3, 7),
        "vm.tile: too many elements": _word(turn, _where(turn, "vm.tile") + 2, 1 << 30),
    }
    for message, image in cases.items():
        refused("PTO-E1224", check, image, message=message)
    refused("PTO-E1224", check, _changed(count, words=(), places=()), message="missing 'end'")


def _part(image: Image, rank: int) -> tuple[int, ...]:
    """A part of a view of some rank."""
    at = _where(image, "vm.part")
    _, result, source, bits, _, offset, *_ = image.codes[0].words[at:]
    return (
        image.codes[0].words[at] & 0xFFFFFF | 5 + 2 * rank << 24,
        result,
        source,
        bits,
        rank,
        *[offset] * 2 * rank,
    )


def test_e1224_frames() -> None:
    count, turn = two().images
    size = len(turn.codes[0].frame)
    tile = turn.codes[0].words[_where(turn, "vm.tile") + 1]
    step = _where(count, "next")
    counter = count.codes[0].words[step + 2]
    text = next(at for at in range(0, 4096, 8) if count.codes[0].frame[at : at + 2] == b"%d")
    cases: dict[str, Image] = {
        "tile, 40 bytes": _word(turn, _where(turn, "vm.tile") + 1, size - 32),
        "word, 8 bytes at 4": _word(count, step + 2, 4),
        "4294967288": _word(count, step + 2, 0xFFFFFFF8),
        "has two kinds": _word(turn, _where(turn, "vm.tile") + 4, tile),
        "overlap": _word(turn, _where(turn, "vm.tile") + 4, tile + 8),
        "expected zeros": _changed(
            turn, frame=turn.codes[0].frame[:tile] + b"\1" + turn.codes[0].frame[tile + 1 :]
        ),
        "missing end of the text at": _changed(
            count, frame=(count.codes[0].frame + b"x" * 64)[:-1].replace(b"\0", b"x")
        ),
        "overlap at": _changed(
            count,
            words=_before_end(count, COPY | 4 << 24, text + 8, counter, 8),
            frame=count.codes[0].frame + bytes(16),
        ),
        "no value has this size": _changed(
            turn, words=(COPY | 4 << 24, size - 8, size - 8, 7, END | 1 << 24), places=()
        ),
        "cannot copy 8 bytes of a tile": _changed(
            turn, words=_before_end(turn, COPY | 4 << 24, size - 8, tile, 8)
        ),
        "too large": _changed(turn, frame=bytes(format.MOST_FRAME + 8)),
    }
    for message, image in cases.items():
        refused("PTO-E1224", check, image, message=message)


def test_e1224_values_of_sizes_of_their_own() -> None:
    """Arrays, groups and convolution tiles: no part lies outside, or is used as another type."""
    (of,), (conv,) = values().images, convolution().images
    size = len(of.codes[0].frame)
    get, set, group = (_where(of, name) for name in ("vm.get", "vm.set", "vm.group"))
    made, placed = _where(conv, "vm.conv"), _where(conv, "vm.conv_at")
    cases: dict[str, Image] = {
        "has two kinds": _word(of, get + 5, 4),  # an array of more elements than the other call says
        "array24, 24 bytes": _word(of, get + 2, size - 16),
        "width is out of range": _word(of, set + 3, 3),
        "sizes is out of range": _word(of, set + 5, 0),
        "vm.get: wrong number": _word(of, get + 4, 3),
        "vm.conv: too many elements": _word(_word(conv, made + 3, 1 << 30), made + 4, 1 << 30),
        "the root is not a member": _word(of, group + 4, 2),
        "members is out of range": _word(of, group + 3, 0),
        "view, 88 bytes": _word(of, group + 3, 254),
        "two kinds of values": _word(of, group + 1, of.codes[0].words[group + 2]),
        "conv16, 128 bytes": _word(conv, made + 1, len(conv.codes[0].frame) - 64),
        "bits is out of range": _word(conv, made + 8, 12),
        "space is out of range": _word(conv, placed + 3, 99),
    }
    tile = conv.codes[0].words[made + 1]
    cases[f"offset {tile} of the frame has two kinds"] = _word(conv, made + 8, 32)
    for message, image in cases.items():
        refused("PTO-E1224", check, image, message=message)


def _before_end(image: Image, *words: int) -> tuple[int, ...]:
    """The words of an image with others before the last, which a jump leads to."""
    *rest, end = image.codes[0].words
    return (*rest, *words, end)


def test_e1224_turned_tiles() -> None:
    """A transposed copy is used once and copied back at once: otherwise freed memory would be used."""
    turn = two().images[1]
    words = turn.codes[0].words
    rows, back = _where(turn, "vm.rows"), _where(turn, "vm.back")
    cut = {
        "no call": words[: rows + 4] + words[back:],
        "not back": words[:back] + words[back + 4 :],
        "back twice": words[: back + 4] + words[back:],
        "back before": words[:rows] + words[back : back + 4] + words[rows:],
        "end inside": (*words[:back], END | 1 << 24),
        "jump inside": (*words[:back], JUMP | 2 << 24, 0, *words[back:]),
    }
    for changed in cut.values():
        at = _where(turn, "jump")
        fixed = tuple(w + len(changed) - len(words) if i == at + 1 else w for i, w in enumerate(changed))
        for candidate in (changed, fixed):
            refused("PTO-E1224", check, _changed(turn, words=candidate, places=()))
    other = list(words)
    other[back + 1] = other[rows + 1]
    refused("PTO-E1224", check, _changed(turn, words=tuple(other)))


def _parameters(image: Image, *parameters: tuple[str, str]) -> Image:
    return image.replace(functions=(image.functions[0].replace(parameters=parameters),))


def test_e1224_the_whole() -> None:
    count, turn = two().images
    view = turn.codes[0].arguments[0][0]
    cases: dict[str, Image] = {
        "unknown target": count.replace(target="a9"),
        "unknown memory": count.replace(capacity=(("disk", 1),)),
        "vector cores": count.replace(subblocks=0),
        "kinds of core": count.replace(codes=(count.codes[0], count.codes[0])),
        "kinds of": count.replace(codes=()),
        "listed twice": count.replace(calls=(*count.calls, count.calls[0])),
        "unknown value": count.replace(calls=(*count.calls, "system(0);x& a0; ")),
        "number of functions": count.replace(functions=()),
        "invalid type of an argument": count.replace(
            functions=(count.functions[0].replace(parameters=(("x", "!pto.nothing"),)),)
        ),
        "dealt out": count.replace(dealt=(7,)),
        "do not match its function": _changed(turn, arguments=((view, 0),)),
        "expected a number for argument": _parameters(
            count, ("__pypto_spmd_block_idx", "!pto.ptr<i32>"), ("n", "index")
        ),
        "duplicate name of an argument": _parameters(count, ("n", "!pto.ptr<i32>"), ("n", "index")),
        "expected rank 1 .. 5": _parameters(count, ("v", "!pto.tensor_view<1x1x1x1x1x1xf32>")),
        "expected a pointer": count.replace(dealt=(1,)),
        "code mix do not match": _changed(count, arguments=(*count.codes[0].arguments, (0, 0))),
    }
    for message, image in cases.items():
        refused("PTO-E1224", check, image, message=message)
    twice = elf.written({".pto": b"".join(
        made + bytes(-len(made) % 8) for made in [format.to_bytes(count)] * 2
    )}, [])  # fmt: skip
    refused("PTO-E1224", read, twice, message="duplicate name of a kernel")


# -- listings -------------------------------------------------------------------------------------------------


def test_e1226_listings() -> None:
    text = listing.text_of(two())

    def wrong(old: str, new: str, message: str) -> None:
        assert old in text, old
        changed = text.replace(old, new, 1)
        with pytest.raises(pto.DiagnosticError) as caught:
            listing.assembled(Source("k.txt", changed))
        (found,) = caught.value.diagnostics
        assert found.code == "PTO-E1226" and message in found.message, found.message
        assert found.span is not None and found.help

    wrong("pto.image 1", "", "not a listing")
    wrong("pto.image 1", "pto.image 7", "a version is out of range")
    wrong("subblocks 2", "subblocks 0x1ffffffff", "out of range")
    wrong("subblocks 2", "subblock 2", "unexpected 'subblock'")
    wrong("subblocks 2", "subblocks 2 3", "unexpected text")
    wrong("subblocks 2", "subblocks $", "unexpected character")
    wrong('kernel "turn"', 'kernel "count"', "duplicate name of a kernel")
    wrong('kernel "count" "cpu"', 'kernel "count"', "missing a target")
    wrong('"count"', '"\\q"', "quoted as in JSON")
    wrong("code mix", "code scalar", "unknown kind of core")
    wrong("  frame ", "  frame 99999999", "out of range")
    wrong("    next 8,", "    nxt 8,", "unknown instruction 'nxt'")
    wrong("    next 8,", "    next 8", "missing ','")
    wrong("jump L", "jump M", "unknown label 'M")
    wrong("    end", "    end\nL1:\nL1:", "new name for a label")
    wrong("  vm.step\n", "  vm.step\n  vm.step\n", "duplicate name of a call")
    wrong("\n  line 2 ", "\n  line 0 ", "out of range")
    wrong('\nfile "', '\nkernel "x" "cpu"\nfile "', "unexpected 'file'")
    refused("PTO-E1226", listing.assembled, Source("k.txt", ""), message="empty")
    refused("PTO-E1226", listing.assembled, Source("k.txt", "pto.image 1"), message="missing kernel")
    changed = text.replace("next 8, @", "next 8, @1")
    with pytest.raises(pto.DiagnosticError) as caught:  # a file is checked on reading, and the line is named
        listing.assembled(Source("k.txt", changed))
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-E1224" and found.span is not None
    assert "next 8, @1" in found.span.source.line(found.span.line)


# -- size -----------------------------------------------------------------------------------------------------


def listed(*lines: str) -> bytes:
    head = ("pto.image 1", 'kernel "k" "cpu"', 'function "k" -1', "calls", "code mix")
    return "\n".join((*head, *lines)).encode()


def test_large_and_deep() -> None:
    """Time and memory follow the size of the file."""
    frame, n = "  frame 131072", 1_000
    kernels = [f'kernel "k{i}" "cpu"\nfunction "k" -1\ncalls\ncode mix\n  end' for i in range(n)]
    many = {
        "jumps": listed(frame, "L:", *["  jump L"] * n, "  end"),
        "labels": listed(frame, *(f"L{i}:" for i in range(n)), "  end"),
        "digits": listed(frame, "  jump " + "9" * 200_000),
        "operands": listed(frame, "  jump " + "@8, " * 10_000),
        "text": listed(frame, '"' * 100_000),
        "copies": listed(frame, *(f"  copy @{16 * i + 16}, @{16 * i}, 8" for i in range(n)), "  end"),
        "copies back": listed(frame, *(f"  copy @{16 * i}, @{16 * i + 16}, 8" for i in range(n)),
                              f"  unless @{16 * n}, L", "L:", "  end"),
        "lines": listed("  end", 'file "x"', *(f'  line {i} "x"' for i in range(1, n)),
                        *(f"  place {i} {i}:1 1" for i in range(1, n))),
        "parameters": listed().replace(b"calls", b"".join(b' parameter "p%d" "i32"\n' % i for i in range(n)) + b"calls"),
        "kernels": listed("  end", *kernels),
        "calls": listed("  end").replace(b"calls", b"calls\n" + b"".join(
            b'c%d "float& a0; int32_t& a1; %d;"\n' % (i, i) for i in range(n))),
    }  # fmt: skip
    for text in many.values():
        with no_hang(60), memory_limit(600 << 20):
            READERS["listing"].read(text)


def test_frames_take_no_more_memory_than_files_may() -> None:
    """A listing has the size of a frame in a few digits."""
    with memory_limit(200 << 20):
        refused("PTO-E1226", listing.assembled, Source("k.txt", listed(*["code mix", "  frame 16777216"] * 500).decode()),
                message="too large in total")  # fmt: skip


def test_e1224_sizes() -> None:
    """Allocations and loops of the machine are bounded by the sizes of a core."""
    turn, mixed = two().images[1], example("kernels/mixed_fifo").images[0]
    pipe = next(at for at, name, _ in walk(mixed, mixed.codes[0]) if name == "vm.pipe")
    refused(
        "PTO-E1224", check, _word(turn, _where(turn, "vm.tile") + 2, 1 << 20), message="too many elements"
    )
    words = list(mixed.codes[0].words)
    words[pipe + 8] = 1 << 30
    code = mixed.codes[0].replace(words=tuple(words))
    refused("PTO-E1224", check, mixed.replace(codes=(code, *mixed.codes[1:])), message="slots too large")
