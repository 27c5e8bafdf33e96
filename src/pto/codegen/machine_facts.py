"""The texts of core/machine_facts.hpp and detail/element_types.hpp: the machine and the element types in C++.

Targets, their capacities and alignments come from `isa/profiles.py`, memories, pipes and flags from
`isa/machine.py`, kinds of instructions and the pipes of their events from `isa/kinds.py`, element types from
`isa/dtypes.py` and the codes of their special values from `isa/encoding.py`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from ..isa import encoding
from ..isa.dtypes import DTYPES, NUMBERS, DType
from ..isa.enums import ENUMS, MASK_PATTERNS, OPS
from ..isa.kinds import event_pipe
from ..isa.machine import EVENT_IDS, EVERY_PIPE, MEMORIES, PIPES, SEMAPHORES, SUBBLOCKS
from ..isa.profiles import ISAS, PROFILES, Profile
from ..isa.tables.dma import BURST_BITS
from .generated import head, laid_out

_HEAD = head(
    "The machine of every target: memories, pipes, flags, and the pipes of events. All other headers include",
    "this one first, through core/macros.hpp.",
    includes=("<cstddef>", "<cstdint>"),
)


def _lines(words: Iterable[str], indent: str = "  ") -> Iterator[str]:
    """Yield a list with commas, in lines."""
    yield from textwrap.wrap(", ".join(words) + ",", 108, initial_indent=indent, subsequent_indent=indent)


# ---- the machine ----


def _targets() -> Iterator[str]:
    """Yield the target of a program, and a choice among values by target."""
    named = [p for p in PROFILES.values() if p.macro]
    yield f"#if defined(__NPU_ARCH__) && {' && '.join(f'!defined({p.macro})' for p in named)}"
    word = "if"
    for p in named:
        if p.arch_numbers:
            yield f"#{word} {' || '.join(f'__NPU_ARCH__ == {n}' for n in p.arch_numbers)}"
            yield f"#define {p.macro}"
            word = "elif"
    yield "#endif"
    yield "#endif"
    yield ""
    names = ", ".join(PROFILES)
    yield "// Kernels of the virtual machine are told their target when they run: as much room as any has."
    yield "#ifdef PTO_CPU_OPEN"
    yield f"#define PTO_BY_TARGET_({names}) pto::detail::most({names})"
    yield "#define PTO_ISA_OPEN"
    word = "elif"
    for p in reversed(named):  # the general profiles last
        yield f"#{word} defined({p.macro})"
        yield f"#define PTO_BY_TARGET_({names}) {p.name}"
        yield f"#define PTO_ISA_{p.isa.upper()}"
        word = "elif"
    (plain,) = (p for p in PROFILES.values() if not p.macro)
    yield "#else"
    yield f"#define PTO_BY_TARGET_({names}) {plain.name}"
    yield f"#define PTO_ISA_{plain.isa.upper()}"
    yield "#endif"


def _by_target(values: Iterable[object]) -> str:
    return f"PTO_BY_TARGET_({', '.join(map(str, values))})"


def _default(macro: str, value: str) -> Iterator[str]:
    yield f"#ifndef {macro}"
    yield f"#define {macro} {value}"
    yield "#endif"


def _memories() -> Iterator[str]:
    profiles: list[Profile] = list(PROFILES.values())
    yield "namespace pto::detail {"
    yield "template <class... Sizes>"
    yield "constexpr size_t most(Sizes... sizes) {"
    yield "  size_t found = 0;"
    yield "  ((found = found < static_cast<size_t>(sizes) ? static_cast<size_t>(sizes) : found), ...);"
    yield "  return found;"
    yield "}"
    yield "}  // namespace pto::detail"
    yield ""
    yield "// Capacities and alignments, in bytes: of the target, or as given with -D."
    for loc, memory in MEMORIES.items():
        capacity = _by_target(f"{p.capacity[loc]}u" for p in profiles)
        yield from _default(f"PTO_{memory.macro}_SIZE_BYTES", capacity)
    yield from _default("PTO_ALIGN_BYTES", _by_target(p.align for p in profiles))
    for memory in MEMORIES.values():
        yield from _default(f"PTO_{memory.macro}_ALIGN_BYTES", "PTO_ALIGN_BYTES")
    yield ""
    yield "namespace pto {"
    yield "// Ctrl is a name of the field that stands for no memory."
    yield f"enum class TileType {{ {', '.join(m.tile_type for m in MEMORIES.values())}, Ctrl }};"
    yield ""
    (tmp,) = (p.own_tmp for p in profiles if p.own_tmp)
    yield "/// Scratch in UB that row-wise instructions take where no tile is given."
    yield f"inline constexpr uint32_t TMP_UB_OFFSET = {tmp[0]}, TMP_UB_SIZE = {tmp[1]};"
    yield "}  // namespace pto"
    yield ""
    yield "namespace pto::detail {"
    yield "/// The column of the instruction tables that a program is held to."
    yield f"enum class Isa : uint8_t {{ {', '.join(ISAS)} }};"
    yield "#ifdef PTO_CPU_OPEN"
    yield "#define PTO_IF_TARGET if"
    yield "#define PTO_OF_TARGET inline"
    yield "inline constexpr bool kOpenTiles = true;"
    yield "#else"
    yield "#define PTO_IF_TARGET if constexpr"
    yield "#define PTO_OF_TARGET constexpr"
    yield "inline constexpr bool kOpenTiles = false;"
    yield f"inline constexpr Isa kIsa = {_by_target(f'Isa::{p.isa}' for p in profiles)};"
    yield "/// Whether the boxes of tiles in L0A stand column by column."
    columns = _by_target(str(p.left_blayout == "col_major").lower() for p in profiles)
    yield f"inline constexpr bool kLeftByColumns = {columns};"
    yield "#endif"
    yield ""
    yield "/// Bits of the length and the count of bursts to and from global memory."
    yield f"inline constexpr int kBurstBits = {_by_target(BURST_BITS[p.isa] for p in profiles)};"
    yield "/// On-chip spaces, in the order of `TileType`."
    yield f"inline constexpr int kSpaces = {len(MEMORIES)};"
    for name, what, type in (("kCapacity", "SIZE", "size_t"), ("kAlign", "ALIGN", "size_t")):
        macros = ", ".join(f"PTO_{m.macro}_{what}_BYTES" for m in MEMORIES.values())
        yield f"inline constexpr {type} {name}[kSpaces] = {{{macros}}};"
    names = ", ".join(f'"{m.buffer}"' for m in MEMORIES.values())
    yield f"inline constexpr const char* kSpaceNames[kSpaces] = {{{names}}};"
    yield "}  // namespace pto::detail"


def _pipes() -> Iterator[str]:
    pipes = sorted((*PIPES.values(), EVERY_PIPE), key=lambda p: p.cpp)
    assert [p.cpp for p in pipes] == list(range(len(pipes)))
    yield "// Kernels define it for compilers that lack it."
    yield "#undef PIPE_FIX"
    yield "using pipe_t = int;"
    yield f"inline constexpr pipe_t {', '.join(f'PIPE_{p.name} = {p.cpp}' for p in pipes)};"
    yield ""
    yield "using event_t = int;"
    ids = ", ".join(f"EVENT_ID{n} = {n}" for n in range(EVENT_IDS))
    yield f"inline constexpr event_t {ids}, EVENT_ID_MAX = {EVENT_IDS};"
    yield ""
    yield "namespace pto::detail {"
    yield f"inline constexpr int kPipes = {len(pipes)}, kEventIds = {EVENT_IDS};"
    yield "/// In the order of `pipe_t`."
    names = ", ".join(f'"{p.name}"' for p in pipes)
    yield f"inline constexpr const char* kPipeNames[kPipes] = {{{names}}};"
    yield "/// Ids of a core, then those by which A5 addresses the second vector core."
    yield f"inline constexpr int kSecondVector = {SEMAPHORES}, kSemaphores = {SUBBLOCKS} * kSecondVector;"
    yield "}  // namespace pto::detail"


def _mask_patterns() -> Iterator[str]:
    numbers = ENUMS["mask_pattern"].values
    assert [*numbers.items()] == [(name, n) for n, name in enumerate(MASK_PATTERNS, 1)]
    yield "namespace pto {"
    yield "/// Which elements of every group are taken; the bits are read from the right."
    yield f"enum class MaskPattern : uint8_t {{ {', '.join(f'{k} = {n}' for k, n in numbers.items())} }};"
    yield "}  // namespace pto"
    yield ""
    yield "namespace pto::detail {"
    yield "/// By the number of a pattern: how far apart what it selects is, and the first of it."
    yield "struct Selection {"
    yield "  int8_t period, first;"
    yield "};"
    pairs = ", ".join(f"{{{period}, {first}}}" for period, first in MASK_PATTERNS.values())
    yield f"inline constexpr Selection kMaskPatterns[] = {{{{1, 0}}, {pairs}}};"
    yield "}  // namespace pto::detail"


def _kinds() -> Iterator[str]:
    kinds = OPS.split()
    yield "namespace pto {"
    yield "/// Kinds of instructions, as events name them."
    yield "enum class Op : uint16_t {"
    yield from _lines((*kinds, "OP_COUNT"))
    yield "};"
    yield ""
    yield "/// The pipe that events of a kind set flags for."
    yield "constexpr pipe_t pipe_of(Op op) {"
    yield "  switch (op) {"
    by_pipe: dict[str, list[str]] = {EVERY_PIPE.name: ["OP_COUNT"]}
    for kind in kinds:
        by_pipe.setdefault(event_pipe(kind), []).append(kind)
    most = max(by_pipe, key=lambda pipe: len(by_pipe[pipe]))
    for pipe, found in by_pipe.items():
        if pipe != most:
            yield from (f"    case Op::{kind}:" for kind in found)
            yield f"      return PIPE_{pipe};"
    yield f"    default: return PIPE_{most};"
    yield "  }"
    yield "}"
    yield "}  // namespace pto"


def machine() -> str:
    """Return the text of core/machine_facts.hpp."""
    out: list[str] = [_HEAD]
    for part in (_targets, _memories, _pipes, _kinds, _mask_patterns):
        out += [*laid_out(part()), ""]
    return "\n".join(out)


# ---- element types ----

_ELEMENTS_HEAD = head("Lists of element types, as macros over a macro X.", includes=("<cstdint>",))


def _list(name: str, doc: str, entries: Iterable[str]) -> Iterator[str]:
    yield f"// {doc}"
    yield f"#define {name}(X) \\"
    yield " \\\n".join(f"  X({entry})" for entry in entries)
    yield ""


def _fields(d: DType) -> str:
    """Return the fields of a float, its largest value, and the codes for overflow and NaN."""
    nan = encoding.NAN_CODES[d.name] if d.nan else 0
    most = encoding.encode(d, d.max_finite)
    overflow = encoding.INF_CODES[d.name] if d.inf else nan or most
    return f"{d.exp}, {d.man}, {d.bias}, {d.bits}, 0x{most:X}, 0x{overflow:X}, 0x{nan:X}"


def elements() -> str:
    """Return the text of detail/element_types.hpp."""
    ordered = sorted(DTYPES.values(), key=lambda d: NUMBERS[d.name])
    fixed = [d for d in ordered if d.kind == "f" and d.exp]
    small = [d for d in ordered if d.is_float and d.bits <= 16]
    code = {d.name: f"std::uint{max(d.bits, 8)}_t" for d in ordered}
    parts = (
        _list("PTO_ELEMENT_TYPES", "X(name, bits, kind): all, in the order of DType.",
              (f"{d.name}, {d.bits}, '{d.kind}'" for d in ordered)),
        _list("PTO_FLOAT_FIELDS", "X(name, ..): floats with fixed fields, as `Fields` has them.",
              (f"{d.name}, {_fields(d)}" for d in fixed)),
        _list("PTO_SMALL_FLOATS", "X(name, type): floats of 16 bits or fewer, with their types in C++.",
              (f"{d.name}, {d.cpp}" for d in small)),
        _list("PTO_SMALL_FIELDS", "X(name, type, code): those with fixed fields, and the type of codes.",
              (f"{d.name}, {d.cpp}, {code[d.name]}" for d in small if d in fixed)),
    )  # fmt: skip
    return "\n".join((_ELEMENTS_HEAD, *(line for part in parts for line in part)))
