"""Images as bytes, ELF files and listings: each way and back, and what other tools read of them."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import pto
from pto.bytecode import from_bytecode
from pto.diag import Source
from pto.driver import Options, lowered
from pto.engine.native.files import program_of
from pto.engine.native.images import images as images_of
from pto.image import container, format, listing
from pto.image.check import check
from pto.image.operands import INSTRUCTIONS, NUMBERS, OWN, SIZED, VALUES, kind_of, operands_of
from pto.isa import rows
from pto.isa.row import Row
from pto.witness.plan import plans
from pto.witness.programs import build

from ..each import each
from .programs import EXAMPLES, TWO, every, example, file_of, two

ROOT = Path(__file__).parents[2]


def there_and_back(file: container.ImageFile) -> None:
    for image in file.images:
        check(image)
        data = format.to_bytes(image)
        assert format.sole(data).image == image and format.to_bytes(format.sole(data).image) == data
    data = container.to_bytes(file)
    assert container.read(data, "k.elf") == file
    text = listing.text_of(file)
    again = listing.assembled(Source("k.txt", text))
    assert [*map(format.to_bytes, again.images)] == [*map(format.to_bytes, file.images)]
    assert again.lines == file.lines and again.program == b""
    assert listing.text_of(container.read(container.to_bytes(again), "k2.elf")) == text


def test_there_and_back() -> None:
    each(there_and_back, every())


def test_images_of_all_instructions_pass_the_check() -> None:
    """Images of a witness of every row; a launch cannot give them the tiles that they take as arguments."""

    def passes(row: Row) -> None:
        for made in itertools.islice(plans(row, "a5"), 1):
            module = build(made)
            try:
                images = images_of(
                    module, lowered(module, "a5", Options(check="none", passes="always")).sound()
                )
            except pto.DiagnosticError as e:
                assert {d.code for d in e.diagnostics} <= {"PTO-E2003", "PTO-E2014"}
                continue
            for image in images:
                check(image.replace(codes=tuple(code.replace(arguments=()) for code in image.codes)))

    each(passes, [row for row in rows() if row.dialect != "builtin"])


def test_the_program_in_a_file_is_the_program() -> None:
    """As many operations in the same order, at the places that the source has."""

    def same(name: str) -> None:
        module, file = pto.parse(EXAMPLES / f"{name}.pto"), example(name)
        kept = program_of(file)
        assert [op.name for op in module.walk()] == [op.name for op in kept.walk()]
        for number, (op, other) in enumerate(zip(module.walk(), kept.walk(), strict=True)):
            if number in file.lines.places:
                assert op.loc is not None and other.loc is not None
                assert op.loc.place == other.loc.place and op.loc.source.name == other.loc.source.name
                assert op.loc.head.source.line(op.loc.line) == other.loc.source.line(other.loc.line)
        assert len(file.lines.places) > 3
        again = file_of(from_bytecode(file.program))
        for image, other in zip(file.images, again.images, strict=True):
            bare = [i.replace(codes=[c.replace(places=()) for c in i.codes]) for i in (image, other)]
            assert bare[0] == bare[1]

    each(same, ("01_vec_add", "07_mixed_sections", "kernels/flash_attention", "micro/topk"))


@pytest.mark.skipif(shutil.which("readelf") is None or shutil.which("nm") is None, reason="no binutils")
def test_other_tools_read_it(tmp_path: Path) -> None:
    path = tmp_path / "k.elf"
    path.write_bytes(container.to_bytes(two()))
    shown = subprocess.run(["readelf", "-aW", path], capture_output=True, text=True, check=True)
    assert not shown.stderr and "Warning" not in shown.stdout
    assert all(f" {name} " in shown.stdout for name in (".pto", ".ptobc", ".pto.lines"))
    names = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True)
    first, second = (len(format.to_bytes(image)) for image in two().images)
    at = first + -first % 8
    assert names.stdout.splitlines() == [
        f"{0:016x} {first:016x} R count", f"{at:016x} {second:016x} R turn"
    ] and not names.stderr  # fmt: skip


def test_a_listing_shows_the_source() -> None:
    lines = listing.text_of(two()).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("    tadd @"))
    number, line = next((n, text) for n, text in enumerate(TWO.splitlines(), 1) if "pto.tadd" in text)
    shown = [text for text in lines[:at] if text.startswith("  at ")][-1]
    assert re.fullmatch(rf"  at \d+  ; <text>:{number}:5: {re.escape(line.strip()[:160])}", shown)
    assert any(re.fullmatch(r"    next 8, @\d+, @\d+, @\d+, L\d+", text) for text in lines)


def test_the_machine_has_what_the_table_says() -> None:
    text = "".join(
        (ROOT / "native" / "vm" / name).read_text(encoding="utf-8") for name in ("vm.cpp", "values.hpp")
    )
    assert set(re.findall(r'\{"(vm\.\w+)", \w+\}', text)) == {*OWN}
    assert {len(found) for found in INSTRUCTIONS.values()} == {0, 1, 2, 3, 4, 5}
    kinds = {o.kind for table in (INSTRUCTIONS, OWN) for operands in table.values() for o in operands}
    assert kinds <= {*VALUES, *SIZED, *NUMBERS, "target", "place", "views"}


def test_the_manual_has_the_table() -> None:
    text = (ROOT / "docs" / "image.md").read_text(encoding="utf-8")
    for name, operands in OWN.items():
        shown = ", ".join(f"{o.name}{'...' if o.times else ''}" for o in operands)
        assert f"| `{name}` | {shown} |" in text


def test_kinds_of_types() -> None:
    known = {
        "float": "word", "int64_t": "word", "RoundMode": "word", "__ubuf__ half*": "word", "char": "text",
        "__gm__ pto::int4b_t*": "word", "OpenView<float, pto::Layout::ND>": "view", "OpenPipe": "pipe",
        "vector_f32": "register", "vector_bool": "mask", "vector_align": "stream", "bool": "word",
        "pto::comm::AsyncEvent": "stream", "PTOAS_EventIdArray<4>": "events4",
        "pto::comm::ParallelGroup<OpenView<float, pto::Layout::ND>>": "group",
        "ConvTile<TileType::Mat, half, 0, pto::Layout::NC1HWC0, ConvTileShape<-1, -1>>": "conv16",
        "pto::MrgSortExecutedNumList": "word",
    }  # fmt: skip
    assert {type: kind_of(type) for type in known} == known
    for unknown in ("Foo", "OpenTile<", "std::string", "char*", "PTOAS_EventIdArray<99999>", "float&", ""):
        assert kind_of(unknown) in ("", "word") and (kind_of(unknown) == "" or unknown == "char*")
    assert operands_of("float& a1; f(a1);") is None and operands_of("float& a0; f(a0); Foo&& a1; ") is None
    assert operands_of("") == () and operands_of("f(); // done") == ()
