"""The translation unit around a kernel: its halves, and the C entry point that launches it.

A mixed kernel is the same source compiled twice: once with `__DAV_CUBE__` and once with `__DAV_VEC__`
defined. Emitted C++ includes only our headers and <cmath>, so both copies fit in one unit, each in a
namespace. C++ of users may include any file, so its halves are separate units, see `half`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from ...isa.machine import SUBBLOCKS
from ...isa.record import Record

LAUNCH = '#include "pto/core/describe.hpp"\n#include "pto/launch.hpp"\n'
_HEADERS = f'#include "pto/pto-inst.hpp"\n{LAUNCH}'
#: Functions that hide those of the C library inside a namespace: all engines have the same bits.
_CMATH, _FUNCTIONS, _OWN = "#include <cmath>", "pto/core/functions.hpp", "PTO_OWN_FUNCTIONS"
_STANDARD = re.compile(r"^#include <\w+>", re.MULTILINE)
#: The name of the file with the emitted source, which a unit includes.
BODY = "kernel.inc"
_KINDS = {"mix": "Mix", "cube": "Cube", "vector": "Vector"}
_GUARDS = {"cube": "__DAV_CUBE__", "vector": "__DAV_VEC__"}


class LaunchEntry(Record):
    """The entry point of a launch: its name, and the functions of the cores that run it."""

    name: str
    cube: str = ""  # function of the cube core; with `vector`: a mixed kernel
    vector: str = ""
    mix: str = ""  # function for any kind of core
    longest: str = ""  # for C++ of users: among these functions, the one with most arguments
    args: tuple[str, ...] = ()  # names of the arguments, for messages
    # their types in the program; empty for C++ of users, whose library has the types
    types: tuple[str, ...] = ()
    subblocks: int = SUBBLOCKS  # default number of vector cores of a mixed kernel

    @property
    def mixed(self) -> bool:
        return bool(self.cube and self.vector)

    @property
    def symbol(self) -> str:
        return "pto_launch_" + re.sub(r"\W", "_", self.name, flags=re.ASCII)

    @property
    def kind(self) -> str:
        return "mixed" if self.mixed else next(kind for kind in _KINDS if getattr(self, kind))


def about(
    entries: Sequence[LaunchEntry],
    target: str,
    checked: bool,
    file: str = "",
    auto: bool = False,
    traced: bool = False,
) -> str:
    """Return the description of a library as C++; `describe` of files.py reads it."""
    kernels = [
        {"name": e.name, "symbol": e.symbol, "kind": e.kind, "args": e.args, "types": e.types,
         "subblocks": e.subblocks}
        for e in entries
    ]  # fmt: skip
    facts = {"format": 1, "target": target, "checked": checked, "auto": auto, "file": file}
    if traced:
        facts["traced"] = True
    text = json.dumps({**facts, "kernels": kernels})
    return f"PTO_ABOUT({json.dumps(text)})\n"


def _arguments(e: LaunchEntry, function: str) -> str:
    return f"PTO_ARGUMENTS({e.symbol.removeprefix('pto_launch_')}, {function})\n"


def single(entries: list[LaunchEntry], body: str, text: str, described: str = "") -> str:
    """Return one unit with a kernel source that includes only our headers and the standard library; these
    includes come before its namespaces. `body` is its file, `text` the contents, `described` the description.
    """
    mixed = [e for e in entries if e.mixed]
    parts, own = _before(text)
    if mixed:
        parts += [_reading(half, body, own) for half in _GUARDS]
    alone = sorted({kind for e in entries if not e.mixed for kind in _KINDS if getattr(e, kind)})
    for kind in alone:
        if kind == "mix" or not mixed:
            parts.append(_reading(kind, body, own))
    for e in entries:
        parts.append(_launcher(e, lambda kind, name: f"{kind}_side::{name}"))
    return "\n".join([*parts, described])


def task(kind: str, function: str, parameters: Sequence[str], body: str, text: str) -> str:
    """Return one unit with an emitted function as a kernel of the task runtime, for one kind of core;
    `parameters` are values of `pto2::Parameter`. `body` and `text` are as for `single`."""
    parts, own = _before(text)
    listed = ",\n".join(f"    {p}" for p in (*parameters, "{}"))
    return "\n".join(
        [
            *parts,
            _reading(kind, body, own),
            '#include "pto2/program_entry.hpp"',
            f"static const pto2::Parameter kParameters[] = {{\n{listed}}};",
            f"PTO2_PROGRAM({kind}_side::{function}, kParameters)\n",
        ]
    )


def _before(text: str) -> tuple[list[str], str]:
    """Return the text before the namespaces of an emitted source, and the first line of each namespace."""
    parts = [_HEADERS + "".join(f"{line}\n" for line in _STANDARD.findall(text))]
    own = _OWN if _CMATH in text else ""
    return [*parts, f'#include "{_FUNCTIONS}"\n' if own else ""], own


def _reading(kind: str, body: str, own: str) -> str:
    """Return one copy of the source for a kind of core, with `own` before it."""
    defined = [_GUARDS[kind]] if kind in _GUARDS else list(_GUARDS.values())
    lines = [f"#undef {guard}" for guard in _GUARDS.values()]
    lines += [f"#define {guard}" for guard in defined]
    return "\n".join([*lines, f"namespace {kind}_side {{", own, f'#include "{body}"', "}  // namespace", ""])


def _launcher(e: LaunchEntry, spelled: object) -> str:
    assert callable(spelled)
    name = e.symbol.removeprefix("pto_launch_")
    if e.mixed:
        return f"PTO_MIXED_LAUNCHER({name}, {spelled('cube', e.cube)}, {spelled('vector', e.vector)})\n"
    kind = next(kind for kind in _KINDS if getattr(e, kind))
    function = spelled(kind, getattr(e, kind))
    return f"PTO_LAUNCHER({name}, pto::detail::CoreKind::{_KINDS[kind]}, {function})\n"


# -- C++ of users ------------------------------------------------------------------------------------------


def whole(entries: list[LaunchEntry], body: str, described: str) -> str:
    """Return one unit with a source that may include any file; no entry is mixed."""
    parts = [f'#include "{body}"\n{LAUNCH}']
    for e in entries:
        parts += [_launcher(e, lambda _, name: f"::{name}"), _arguments(e, f"::{getattr(e, e.kind)}")]
    return "\n".join([*parts, described])


def half(kind: str, entries: list[LaunchEntry], body: str) -> str:
    """Return the unit of one kind of core of mixed kernels, to be compiled with its guard defined."""
    parts = [f'#include "{body}"\n{LAUNCH}']
    for e in entries:
        name = e.symbol.removeprefix("pto_launch_")
        parts.append(f"PTO_HALF({kind}, {name}, ::{getattr(e, kind)})\n")
        if getattr(e, kind) == e.longest and (kind == "cube" or e.cube != e.longest):
            parts.append(_arguments(e, f"::{e.longest}"))
    return "\n".join(parts)


def joined(entries: list[LaunchEntry], described: str) -> str:
    """Return the unit that launches the two halves."""
    parts = [LAUNCH]
    parts += [f"PTO_JOINED_LAUNCHER({e.symbol.removeprefix('pto_launch_')})\n" for e in entries]
    return "\n".join([*parts, described])
