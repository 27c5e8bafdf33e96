"""Target profiles: legal features and on-chip memory of a target.

A profile only answers questions of legality; any profile runs on any engine. Capacities and alignment are in
bytes and can be overridden per run with `Profile.override`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .machine import MEMORIES
from .record import Record

K = 1024

#: Tile location -> the buffer that backs it.
LOCATIONS: dict[str, str] = {loc: memory.buffer for loc, memory in MEMORIES.items()}


class Behaviour(Record):
    """The differences between the columns of the tables that more than one part of pto follows."""

    whole_windows: bool = False  # instructions also pad the invalid region of a window
    valid_sources: bool = False  # moves read the valid region of a tile; else its whole shape
    aligned_copies: bool = True  # on-chip addresses and strides of copies are multiples of a block
    late_stores: bool = True  # vector stores of a vecscope may become visible late
    core_semaphores: bool = False  # each vector core of a block has semaphores; else the block has
    buffer_slots: bool = False  # slots of a FIFO between cores may lie in the buffer of the consumer
    copying_pops: bool = False  # a pop copies its slot from global memory, and frees it


#: By column.
BEHAVIOURS = {
    "cpu": Behaviour(whole_windows=True, valid_sources=True, aligned_copies=False, late_stores=False),
    "a2a3": Behaviour(copying_pops=True),
    "a5": Behaviour(core_semaphores=True, buffer_slots=True, copying_pops=True),
}


class Profile(Record):
    name: str
    isa: str  # legality column: cpu, a2a3 or a5
    title: str
    capacity: Mapping[str, int]  # by tile location
    align: int = 32
    left_blayout: str = "row_major"  # block layout of a Left tile
    max_rows: int = 8192
    aliases: tuple[str, ...] = ()
    small_floats: bool = False  # 8-bit and 4-bit floating-point elements exist
    arch_numbers: tuple[int, ...] = ()  # values of __NPU_ARCH__ for this profile
    own_tmp: tuple[int, int] | None = None  # (address, size) of scratch in UB for rows with `own_tmp_on`

    @property
    def behaviour(self) -> Behaviour:
        return BEHAVIOURS[self.isa]

    @property
    def macro(self) -> str:
        """The C++ macro of the profile, or an empty text for the default of the headers."""
        return f"PTO_NPU_ARCH_{self.name.upper()}" if self.name != "cpu" else ""

    def override(self, capacity: Mapping[str, int] | None = None, align: int | None = None) -> Profile:
        """Return the profile with other capacities (by location) or another alignment."""
        unknown = set(capacity or ()) - set(LOCATIONS)
        if unknown:
            raise ValueError(
                f"unknown tile location {sorted(unknown)[0]!r}; expected one of {', '.join(LOCATIONS)}"
            )
        return self.replace(capacity={**self.capacity, **(capacity or {})}, align=align or self.align)


def _cap(
    vec: int, mat: int, left: int, right: int, acc: int, bias: int, scaling: int, scale: int
) -> dict[str, int]:
    return dict(zip(LOCATIONS, (vec * K, mat * K, left * K, right * K, acc * K, bias * K, scaling * K,
                                scale * K, scale * K), strict=True))  # fmt: skip


PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile("cpu", "cpu", "CPU simulator", _cap(512, 512, 64, 64, 256, 512, 512, 4),
                left_blayout="col_major", max_rows=65535, small_floats=True),
        Profile("a2a3", "a2a3", "Ascend 910B / 910C", _cap(192, 512, 64, 64, 128, 1, 2, 0),
                aliases=("a2", "a3"), arch_numbers=(2201,), own_tmp=(184 * K, 8 * K)),
        Profile("a5", "a5", "Ascend 950 PR / DT", _cap(256, 512, 64, 64, 256, 4, 4, 4),
                left_blayout="col_major", max_rows=65535, small_floats=True, arch_numbers=(3101, 3510)),
        Profile("kirin9030", "a5", "Kirin 9030", _cap(128, 512, 32, 32, 64, 1, 7, 0),
                left_blayout="col_major", max_rows=65535, arch_numbers=(3113,)),
        Profile("kirinx90", "a2a3", "Kirin X90", _cap(128, 1024, 64, 64, 128, 1, 6, 0), arch_numbers=(3003,)),
    )
}  # fmt: skip

ALIASES: dict[str, str] = {a: p.name for p in PROFILES.values() for a in (p.name, *p.aliases)}

#: The profile of a program without a target.
DEFAULT = "a2a3"

#: Platform of the task runtime -> profile of its kernels: for each target with its own legality column,
#: simulated or not. Here, all platforms are simulated.
PLATFORMS: dict[str, str] = {
    p.name + suffix: p.name
    for suffix in ("sim", "")
    for p in PROFILES.values()
    if p.name == p.isa and p.macro
}
DEFAULT_PLATFORM = f"{DEFAULT}sim"

#: Columns of the legality tables, and their names in messages.
ISAS = ("cpu", "a2a3", "a5")
ARCH_NAMES = {"cpu": "CPU", "a2a3": "A2/A3", "a5": "A5"}


def resolve(target: str | Profile | None, written: str | None) -> Profile:
    """Return the profile of a program: the given profile, else the profile that the program names, else the
    default."""
    if isinstance(target, Profile):
        return target
    if target is not None:
        return profile(target)
    return profile(written if written and written.lower() in ALIASES else DEFAULT)


def profile(name: str) -> Profile:
    """Return a profile by name or alias, case-insensitively; raise `ValueError` for an unknown name."""
    found = ALIASES.get(name.lower())
    if found is None:
        raise ValueError(f"unknown target profile {name!r}; expected one of {', '.join(ALIASES)}")
    return PROFILES[found]
