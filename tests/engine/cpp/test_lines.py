"""Line tables of libraries: the same as objdump prints, and refused in time and memory where they are damaged."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import pto
from pto.bytecode.leb import write_uleb
from pto.engine.cpp import compiler
from pto.engine.cpp.lines import LibraryLines, Line, lines_of
from pto.image import elf
from pto.image.elf import BadElf

from ...counting import memory_limit, no_hang

SOURCE = """\
#include "twice.h"
extern "C" int sum(int n) {
  int s = 0;
  for (int i = 0; i < n; ++i)
    s += twice(i) * n;
  return s;
}
"""


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_as_objdump_prints(version: int, tmp_path: Path) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("needs objdump")
    (tmp_path / "k.cpp").write_text(SOURCE)
    (tmp_path / "twice.h").write_text(
        "[[gnu::noinline]] inline int twice(int x) {\n  return x +\n    x;\n}\n"
    )
    command = [
        *compiler.find().command,
        "-shared",
        "-fPIC",
        "-O1",
        "-g",
        f"-gdwarf-{version}",
        "k.cpp",
        "-o",
        "k.so",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    printed = subprocess.run(
        ["objdump", "--dwarf=decodedline", "k.so"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    rows = re.findall(r"^(\S+\.(?:cpp|h)) +(\d+|-) +(?:0x)?([0-9a-f]+)\b", printed.stdout, re.MULTILINE)
    expected: dict[int, tuple[str, int] | None] = {}
    for (
        file,
        line,
        address,
    ) in rows:  # of several rows of one address the last counts, and a line before an end
        if line != "-":
            expected[int(address, 16)] = file, int(line)
        else:
            expected.setdefault(int(address, 16), None)
    lines = lines_of(str(tmp_path / "k.so"))
    found = {address: lines.at(address) for address in expected}
    assert {a: line and (Path(line.file).name, line.line) for a, line in found.items()} == expected
    assert {Path(line.file).name for line in found.values() if line} == {"k.cpp", "twice.h"}
    if version == 5:  # earlier ones have the folder elsewhere
        assert all(Path(line.file).parent == tmp_path for line in found.values() if line)


_ONE = bytes((1, 1, 0x1F, 1)) + bytes(4)  # a field that is a name in .debug_line_str; one entry
_TWO = bytes((1, 1, 0x1F, 2)) + bytes(8)  # programs begin with file 1, and files are numbered from 0
#: Every operation of a line program, extended ones with an address and with what no reader knows.
EVERY_STEP = (
    b"\0\x09\2" + struct.pack("<Q", 0x1000) + bytes((3, 6, 5, 4, 1, 2, 0x10, 6, 7, 0x20, 8, 1, 9, 4, 0, 10, 11))
    + bytes((12, 1, 3, 0x7F, 0xF0, 0, 2, 4, 1, 0, 3, 0x80, 1, 1, 2, 0x80, 1, 0, 1, 1))
)  # fmt: skip


def library(
    program: bytes, entries: bytes | None = None, span: int = 14, name: bytes = b"/k.cpp", version: int = 5
) -> bytes:
    """An ELF file with a line table of one unit, with one file."""
    if entries is None:
        entries = _ONE + _TWO if version >= 5 else b"\0" + name + b"\0\0\0\0\0"
    head = (
        bytes((1, 1, 1)[version < 4 :])
        + bytes((0xFB, span, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1))
        + entries
    )
    unit = (
        struct.pack("<H", version)
        + (b"\x08\0" if version >= 5 else b"")
        + struct.pack("<I", len(head))
        + head
    )
    table = struct.pack("<I", len(unit + program)) + unit + program
    return elf.written({".debug_line": table, ".debug_line_str": name + b"\0"}, [])


def uleb(value: int) -> bytes:
    out = bytearray()
    write_uleb(out, value)
    return bytes(out)


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_every_step(version: int) -> None:
    lines = LibraryLines(library(EVERY_STEP, version=version))
    found = {at: lines.at(at) for at in (0xFFF, 0x1000, 0x1035, 0x1036, 0x10B5, 0x10B6)}
    first, second = Line("/k.cpp", 7, 4), Line("/k.cpp", 4, 4)
    assert list(found.values()) == [None, first, first, second, second, None]


MANY = uleb(1 << 60)
DAMAGED = {
    "folders without fields": library(b"", b"\0" + MANY + b"\0\0"),
    "files of fields that take no byte": library(b"", _ONE + bytes((1, 1, 0x19)) + MANY),
    "more folders than bytes": library(b"", bytes((1, 1, 0x0B)) + MANY),
    "a number of a megabyte": library(b"\x02" + b"\xff" * (1 << 20) + b"\0\0\1\1"),
    "a name behind the end": library(b"", bytes((1, 1, 0x1F, 1)) + struct.pack("<I", 1 << 31)),
    "a file that is not there": library(b"\x04\x05\x01"),
    "steps of no size": library(b"\xff", span=0),
    "an end before the end": library(b"\0"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage(name: str) -> None:
    with no_hang(5), memory_limit(256 << 20), pytest.raises(BadElf, match="its line table is damaged"):
        LibraryLines(DAMAGED[name])


def test_names_that_share_bytes() -> None:
    """Every file of a table may have the same long name: together they are no longer than a few sizes of the file."""
    files = 1 << 14
    entries = _ONE + bytes((1, 1, 0x1F)) + uleb(files) + bytes(4 * files)
    assert LibraryLines(library(b"", entries)).at(0) is None
    with no_hang(5), memory_limit(256 << 20), pytest.raises(BadElf):
        LibraryLines(library(b"", entries, name=b"n" * (1 << 20)))


def test_a_damaged_table_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "k.so"
    path.write_bytes(DAMAGED["steps of no size"])
    with pytest.raises(pto.DiagnosticError) as caught:
        lines_of(str(path))
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-E2405" and found.message == f"cannot run '{path}': its line table is damaged"
    assert found.help is not None and "pto build" in found.help
