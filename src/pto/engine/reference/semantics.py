"""Differences between the manual of the vector instructions and the hardware: two presets of switches.

`hw` follows the A5 headers and the documentation of the vendor, `doc` the formulas of the manual. If a
formula of the manual cannot be executed as written, both presets follow the hardware.
"""

from __future__ import annotations

from typing import NamedTuple


class Semantics(NamedTuple):
    """A preset; every switch is "hw" or "doc"."""

    name: str
    #: Results of vcgadd, vcgmax, vcgmin: hw packs them in lanes 0..7, doc stores each in the first lane of
    #: its group.
    vcg_layout: str
    #: vcpadd: hw adds neighbours, doc gives the running sum.
    vcpadd_mode: str
    #: PAT_H and PAT_Q: hw turns on the lowest half and quarter of the lanes, doc the upper.
    pat_h: str
    #: Predicate algebra: hw turns off the lanes that are off in the governing mask, doc ignores that mask.
    palgebra_gate: str
    #: ppack and punpack: hw compacts and spreads the bits of the whole mask, doc moves logical lanes.
    ppack_mode: str
    #: The flag of vsubc and vsubcs: hw sets it for lanes without a borrow, doc for lanes with one.
    vsubc_flag: str
    #: vstsx2: hw ignores the mask, doc stores only elements that are on.
    vstsx2_mask: str
    #: The source of mte_l1_l0b in L1: hw an n x k matrix, k x n with `transpose`; doc the other way round.
    l0b_source: str
    #: Bursts of mte_l1_ub: hw counts lengths and gaps in blocks of 32 bytes, doc lengths and strides in
    #: bytes.
    l1_ub_units: str


SEMANTICS = {name: Semantics(name, *[name] * (len(Semantics._fields) - 1)) for name in ("hw", "doc")}


def preset(name: str) -> Semantics:
    """Return a preset by its name; raise `ValueError` for an unknown name."""
    found = SEMANTICS.get(name)
    if found is None:
        raise ValueError(f"unknown semantics {name!r}: expected {' or '.join(SEMANTICS)}")
    return found
