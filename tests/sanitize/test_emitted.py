"""A program and the C++ that is emitted for it give the same reports at the same lines.

`make emitted` compares all of the corpus; `python -m tests.sanitize.emitted NAME.bad` shows one.
"""

from __future__ import annotations

import os

import pytest
from tests.each import each

from .corpus import NAMES
from .emitted import difference, libraries

#: What C++ does not show, and why.
KNOWN = {
    "gm_scalar_store.bad": "a store through a pointer is no call",
    "rank_cleared_signal.bad": "a store through a pointer is no call",
    "partition_beyond_view.bad": "a window of a view is a pointer in C++",
    "semaphore_range.bad": "a message has 4 bits for the id",
    "scalar_selected.good": "what becomes of the number is not seen",
    "scalar_selected.bad": "reported where the element is read",
    **dict.fromkeys(
        ("index_vector_blocks.bad", "index_vector_gather.bad", "index_vector_scatter.bad", "vector_leaves_tile.bad"),
        "a pointer does not say which tile it was made from",
    ),
    **dict.fromkeys(
        (
            "undefined_branch.bad", "undefined_call_result.bad", "undefined_loop_bound.bad",
            "undefined_offset.bad", "undefined_pointer_offset.bad", "undefined_scalar_operand.bad",
            "undefined_scalar_stored.bad", "undefined_valid_shape.bad",
        ),
        "reported where the element is read",
    ),
}  # fmt: skip

#: One of each kind.
SOME = (
    "raw_mte2_v", "war_v_mte2", "raw_v_v", "set_twice", "left_set", "wait_without_set", "never_written",
    "partly_written", "tile_beyond_capacity", "subview_outside", "fifo_full", "rank_unknown_peer",
)  # fmt: skip

ALL = [f"{name}.{kind}" for name in NAMES for kind in ("bad", "good")]


def compare(names: list[str]) -> None:
    found = libraries(tuple(names))

    def same(name: str) -> None:
        built = found[name]
        assert not isinstance(built, str), built
        text = difference(name, built)
        assert bool(text) == (name in KNOWN), text or f"it is as the program says: {KNOWN[name]}?"

    each(same, names)


def test_some_programs() -> None:
    compare([f"{name}.bad" for name in SOME])


def test_all_programs() -> None:
    if "PTO_TEST_EMITTED" not in os.environ:
        pytest.skip("make emitted")
    compare(ALL)
