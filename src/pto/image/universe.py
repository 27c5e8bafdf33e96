"""The calls that the package has compiled: those of every legal form of every instruction, as the witnesses have them.

    python -m pto.image.universe FOLDER [PARTS]     # what CMake runs: C++ in so many files, a table for each

Sizes, targets and numbers are no part of a call, so these are all that there are, but for layouts: instructions whose
tiles may lie in several ways are compiled for each.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ..codegen.cpp import program, prologue
from ..codegen.cpp.unit import Unit
from ..ir.core import Module
from ..ir.types import TileBufType, Type
from ..isa import profile, rows
from ..isa.profiles import ISAS
from ..isa.row import Row
from ..isa.enums import ENUMS
from ..witness.plan import Plan, make_attribute, plans, violated
from ..witness.programs import build
from .calls import NoCall, by_region, key, recorder

_DECLARED = re.compile(r"([^;]*?)& a(\d+); ")
#: Families of instructions that bring elements from one layout to another.
_MOVES = ("layout-and-rearrangement", "memory-and-data-movement")
_SKIPPED = ("func", "builtin", "scf", "cf", "memref", "affine")


def calls() -> dict[str, str]:
    """Every call, with the instruction that makes it."""
    found: dict[str, str] = {}
    for row in rows():
        if row.dialect in _SKIPPED or row.regions:
            continue
        for isa in ISAS:
            for made in _planned(row, isa):
                module = build(made)
                for name in _calls_of(module, row, isa):
                    found.setdefault(name, row.name)
    return found


def _calls_of(module: Module, row: Row, isa: str) -> Iterator[str]:
    program.load(module)
    record = recorder(Unit(module, profile(isa), index_type="int64_t", checked=True))
    for op in module.walk():
        if op.row is not row:
            continue
        try:
            yield record.call(op).name
        except NoCall:
            continue


def _planned(row: Row, isa: str) -> Iterator[Plan]:
    """Every legal form with every choice of element types; of moves also for the other flat layouts."""
    for made in _with_attributes(row, isa):
        yield made
        names = [n for n, types in made.operands.items() if any(_flat(t) for t in types)]
        if row.family not in _MOVES or by_region(row) or not names:
            continue
        for choice in itertools.product((False, True), repeat=len(names)):
            turned = {n for n, other in zip(names, choice, strict=True) if other}
            trial = made.replace(operands={
                n: tuple(_turned(t) if n in turned else t for t in types) for n, types in made.operands.items()
            })  # fmt: skip
            if turned and not violated(trial):
                yield trial


def _with_attributes(row: Row, isa: str) -> Iterator[Plan]:
    """Every legal form, and each with every other value of one of its attributes."""
    for made in plans(row, isa):
        yield made
        for attr in row.attrs:
            words = ENUMS[attr.kind].values if attr.kind in ENUMS else attr.domain
            for word in words:
                value = make_attribute(attr, word)
                if made.attrs.get(attr.name) != value:
                    trial = made.replace(attrs={**made.attrs, attr.name: value})
                    if not violated(trial):
                        yield trial


def _flat(type: Type) -> bool:
    return isinstance(type, TileBufType) and not type.boxed


def _turned(type: Type) -> Type:
    """A tile of the other flat layout."""
    if not isinstance(type, TileBufType):
        return type
    return type.replace(blayout="col_major" if type.blayout == "row_major" else "row_major")


def source(name: str, row: str) -> str:
    """The function of a call as C++."""
    declared = _DECLARED.match(name)
    at = 0
    places: list[str] = []
    while declared is not None:
        places.append(f"auto& a{declared[2]} = at<{declared[1]}>(f, s[{declared[2]}]); ")
        at = declared.end()
        declared = _DECLARED.match(name, at)
    return f"void k{key(name):016x}(char* f, const uint32_t* s) {{  // {row}\n  (void)f, (void)s; " + (
        f"{''.join(places)}{name[at:]}\n}}\n"
    )


def files(parts: int) -> Iterator[tuple[str, str]]:
    """Names and texts of the files."""
    every = sorted(calls().items(), key=lambda item: (item[1], item[0]))  # neighbours share templates
    pieces = [every[n * len(every) // parts : (n + 1) * len(every) // parts] for n in range(parts)]
    helpers = prologue.helpers()
    for n, some in enumerate(pieces):
        out = ['#include "vm/open.hpp"\n#include "vm/vm.hpp"\n', "using namespace pto;\nusing namespace pto::vm;\n",
               "namespace {\n", helpers]  # fmt: skip
        out += [source(name, row) for name, row in some]
        out.append(f"}}  // namespace\nextern const Entry kEntries{n}[];\nextern const Entry kEntries{n}[] = {{\n")
        out += [f"  {{0x{k:016x}u, k{k:016x}}},\n" for k in sorted(key(name) for name, _ in some)]
        out.append("};\n")
        yield f"part{n}.cpp", "".join(out)
    yield "tables.cpp", "".join([
        '#include "vm/open.hpp"\n#include "vm/vm.hpp"\n', "using pto::vm::Entry;\n",
        *(f"extern const Entry kEntries{n}[];\n" for n in range(parts)),
        "namespace pto::vm {\nconst Table kTables[] = {\n",
        *(f"  {{kEntries{n}, {len(some)}}},\n" for n, some in enumerate(pieces)),
        "  {nullptr, 0}};\n}  // namespace pto::vm\n",
    ])  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files(int(sys.argv[2]) if len(sys.argv) > 2 else 16):
        path = folder / name
        if not path.exists() or path.read_text() != text:  # what has not changed is not compiled again
            path.write_text(text)


if __name__ == "__main__":
    main()
