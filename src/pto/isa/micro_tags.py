"""Words of vector calls in C++: enumerations whose constants are tags, with the numbers of the vendor's
headers.

    TAGS["DistVST"].words["NORM_B32"]   # -> 2
    spelled("Dist", "BDINTLV")          # -> 'std::integral_constant<::Dist, static_cast<::Dist>(10)>()'

A tag is an object of a class of its own, `std::integral_constant` of a global enumeration. Words without a
constant in public code are spelled by their numbers.
"""

from __future__ import annotations

from .record import Record

_NO_WORDS: dict[str, int] = {}


#: Enumerations that user code names. The names of the others are too common for the global namespace.
NAMED = ("Dist", "DistVST", "ROUND", "Post", "Spr")


class Tag(Record):
    """One enumeration: its constants, the prefix of its enumerators, and words without a constant."""

    name: str
    doc: str
    words: dict[str, int]
    prefix: str = ""  # prefix of enumerators; constants have no prefix
    unnamed: dict[str, int] = _NO_WORDS

    @property
    def cpp(self) -> str:
        """The enumeration in C++."""
        return f"::{self.name}" if self.name in NAMED else f"::__cce_simd::{self.name}"


def _counted(words: str) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split())}


_LOADS = (
    "BRC_B8 1 BRC_B16 2 BRC_B32 3 US_B8 6 US_B16 7 DS_B8 8 DS_B16 9 DINTLV_B8 11 DINTLV_B16 12 UNPK_B8 13 "
    "UNPK_B16 14 BLK 15 E2B_B16 16 E2B_B32 17 UNPK_B32 18 DINTLV_B32 19 UNPK4_B8 20"
).split()


def with_width(dist: str, bits: int) -> str:
    """Return a distribution of loads with its item width, if that is the width of the elements."""
    return f"{dist}_B{bits}" if dist in ("BRC", "US", "DS") else dist


_PATTERNS = "ALL VL1 VL2 VL3 VL4 VL8 VL16 VL32 VL64 VL128 M3 M4 H Q"

_LIST = (
    Tag(
        "Dist", "Which bytes a load gives to which lanes; the last ones are of masks.",
        {"NORM": 0, **dict(zip(_LOADS[::2], map(int, _LOADS[1::2]), strict=True)), "US": 1, "DS": 2, "PK": 1},
        "DIST_", {"BDINTLV": 10, "SPLT4CHN_B8": 21, "SPLT2CHN_B8": 22, "SPLT2CHN_B16": 23},
    ),
    Tag(
        "DistVST", "Which lanes a store puts into which bytes.",
        _counted("NORM_B8 NORM_B16 NORM_B32 ONEPT_B8 ONEPT_B16 ONEPT_B32 PK_B16 PK_B32 INTLV_B8 INTLV_B16 "
                 "PK_B64 INTLV_B32 PK4_B32"),
        "DIST_", {"MRG4CHN_B8": 13, "MRG2CHN_B8": 14, "MRG2CHN_B16": 15},
    ),
    Tag(
        "Pat", "Lanes of a mask.",
        {**_counted(" ".join(f"PAT_{w}" for w in _PATTERNS.split())), "PAT_ALLF": 15},
    ),
    Tag("ROUND", "Rounding: nearest even, nearest away, floor, ceil, to zero, to odd, hybrid.",
        {f"ROUND_{w}": n for w, n in _counted("R A F C Z O H").items()}),
    Tag("Part", "Which lane of two.", _counted("PART_EVEN PART_ODD")),
    Tag("Part_T", "Which lane of four.", _counted("PART_P0 PART_P1 PART_P2 PART_P3")),
    Tag("RoundingSaturation", "What does not fit: saturates, or not.", _counted("RS_DISABLE RS_ENABLE")),
    Tag("Mode", "What lanes become that are off; unknown is zero here.",
        _counted("MODE_UNKNOWN MODE_MERGING MODE_ZEROING")),
    Tag("StoreMode", "Whether a squeeze says how much it kept.", _counted("MODE_NO_STORED MODE_STORED")),
    Tag("Post", "Whether the base moves on.", {"POST_UPDATE": 1}, "", {"NO_POST_UPDATE": 0}),
    Tag("HiloPart", "Which half.", _counted("LOWER HIGHER")),
    Tag("Pos", "Which lane is repeated.", _counted("POS_LOWEST POS_HIGHEST")),
    Tag("Order", "Direction of consecutive lanes.", _counted("INC_ORDER DEC_ORDER")),
    Tag("Bin", "Which half of the bins of a histogram.", _counted("Bin_N0 Bin_N1")),
    Tag("Spr", "Special registers.", {"SPR_AR": 74}),
)  # fmt: skip
TAGS: dict[str, Tag] = {tag.name: tag for tag in _LIST}


def spelled(name: str, word: str) -> str:
    """Return a word of an enumeration in C++: its constant, or its number if it has no constant."""
    tag = TAGS[name]
    if word in tag.words:
        return word
    return f"std::integral_constant<{tag.cpp}, static_cast<{tag.cpp}>({tag.unnamed[word]})>()"
