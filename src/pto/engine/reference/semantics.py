"""Where the manual of the vector instructions and the hardware differ: two presets, and what a switch does.

`hw` is what A5 headers and the vendor's documentation show, `doc` is the manual's formula. Where the manual
cannot be carried out as written there is no switch: the hardware's meaning holds in both.
"""

from __future__ import annotations

from typing import NamedTuple


class Semantics(NamedTuple):
    """A preset; every switch is "hw" or "doc"."""

    name: str
    #: Results of vcgadd, vcgmax, vcgmin: hw packs them in lanes 0..7, doc leaves each in the first lane of
    #: its group.
    vcg_layout: str
    #: vcpadd: hw adds neighbours, doc gives the running sum.
    vcpadd_mode: str
    #: PAT_H and PAT_Q: hw turns on the lowest half and quarter of the lanes, doc the upper.
    pat_h: str
    #: Predicate algebra: hw turns off what its governing mask has off, doc ignores that mask.
    palgebra_gate: str
    #: ppack and punpack: hw compacts and spreads the bits of the whole mask, doc moves logical lanes.
    ppack_mode: str
    #: The flag of vsubc and vsubcs: hw sets it where nothing was borrowed, doc where something was.
    vsubc_flag: str
    #: vstsx2: hw ignores the mask, doc lets it gate elements.
    vstsx2_mask: str
    #: What mte_l1_l0b finds in L1: hw an n x k matrix, k x n with `transpose`; doc the other way round.
    l0b_source: str
    #: Bursts of mte_l1_ub: hw counts blocks of 32 bytes and the gaps between bursts, doc bytes and strides.
    l1_ub_units: str


SEMANTICS = {name: Semantics(name, *[name] * (len(Semantics._fields) - 1)) for name in ("hw", "doc")}


def preset(name: str) -> Semantics:
    """A preset by its name; `ValueError` for an unknown one."""
    found = SEMANTICS.get(name)
    if found is None:
        raise ValueError(f"semantics is one of {', '.join(SEMANTICS)}, got {name!r}")
    return found
