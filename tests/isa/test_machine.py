"""The machine: pipes of rows and of the kinds of instructions, cores, and the headers made from them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto import isa
from pto.cli import common
from pto.codegen import machine_facts
from pto.isa.enums import ENUMS, SYNC_OP_PIPE
from pto.isa.kinds import EVENTS_APART, event_pipe, pipe_of_kind
from pto.isa.machine import C2V, CHAINING, CORES, EVERY_PIPE, MEMORIES, ONLY_ON, PIPES, V2C
from pto.isa.profiles import ISAS, PLATFORMS, PROFILES

#: The pipes of C++ events, as the manual of the headers lists them; V for the others.
EVENTS = {
    "MTE2": "TLOAD TPREFETCH TEXPANDS_MAT TFILLPAD_MAT MGATHER_MAT",
    "MTE3": "TSTORE_VEC TSTORE_MAT",
    "FIX": "TSTORE_ACC TMOV_A2V TMOV_A2M TMOV_V2M TMOV_M2S TEXTRACT_V2M TEXTRACT_A2M TINSERT_A2M",
    "MTE1": "TMOV_M2L TMOV_M2R TMOV_M2B TEXTRACT_M2LR TIMG2COL",
    "M": "TMATMUL TGEMV",
    "S": "SCALAR TRESHAPE TCI SETFMATRIX SET_IMG2COL_RPT SET_IMG2COL_PADDING",
}


def test_pipes_of_events() -> None:
    listed = {kind: pipe for pipe, kinds in EVENTS.items() for kind in kinds.split()}
    assert {kind: event_pipe(kind) for kind in ENUMS["op"].values} == {
        kind: listed.get(kind, "V") for kind in ENUMS["op"].values
    }


def test_kinds_run_where_their_rows_do() -> None:
    """Every difference between the two maps is one that is written down, and is one."""
    apart = {
        kind for kind in ENUMS["op"].values if {pipe_of_kind(kind, i) for i in ISAS} != {event_pipe(kind)}
    }
    assert apart == {*EVENTS_APART, "TMOV_M2S", "TMOV_V2M"}
    assert [pipe_of_kind("TSCATTER", i) for i in ISAS] == ["S", "S", "V"]
    assert pipe_of_kind("MSCATTER", "a2a3") == "MTE3" and pipe_of_kind("TCI", "a5") == "V"
    assert pipe_of_kind("nothing", "a5") == "ALL"
    assert set(SYNC_OP_PIPE) == set(ENUMS["sync_op_type"].values)


def test_pipes_of_rows_exist() -> None:
    """A row names a pipe that there is, on the kind of core that it is for."""
    for row in isa.rows():
        cases = (("", row.pipe),) if isinstance(row.pipe, str) else row.pipe
        for _, pipe in cases:
            if pipe and pipe not in row.attr_index:
                assert pipe in PIPES or pipe == EVERY_PIPE.name, (row.name, pipe)
                if row.core and len(cases) == 1:
                    assert ONLY_ON.get(pipe, row.core) == row.core, (row.name, pipe)


def test_cores_and_pipes() -> None:
    assert ONLY_ON == {"MTE1": "cube", "M": "cube", "FIX": "cube", "V": "vector"}
    assert {p for c in CORES.values() for p in c.pipes} <= set(PIPES)
    assert len({p.number for p in PIPES.values()} | {EVERY_PIPE.number}) == len(PIPES) + 1


def test_what_chains_is_there() -> None:
    """Families that chain have rows, on the pipe that does."""
    for family in CHAINING.families:
        assert any(row.family == family and row.pipe == CHAINING.pipe for row in isa.rows()), family


def test_directions_of_fifos() -> None:
    """As the names of the frontend instructions say them."""
    directions = {row.name: row.fifo_direction for row in isa.rows() if row.fifo_direction}
    assert directions == {
        "tpush_to_aiv": C2V, "tpop_from_aic": C2V, "tfree_from_aic": C2V,
        "tpush_to_aic": V2C, "tpop_from_aiv": V2C, "tfree_from_aiv": V2C,
    }  # fmt: skip


def test_a_new_profile_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The header of a machine with one more target has its capacities, column and macro."""
    made = PROFILES["a5"].replace(name="a9", capacity=dict.fromkeys(MEMORIES, 77), arch_numbers=(9900,))
    monkeypatch.setattr(machine_facts, "PROFILES", {**PROFILES, "a9": made})
    text = machine_facts.machine()
    assert "#elif __NPU_ARCH__ == 9900\n#define PTO_NPU_ARCH_A9" in text
    column = f"Isa::{list(PROFILES.values())[-1].isa}, Isa::a5)"
    assert column in " ".join(text.split()) and text.count("77u)") == len(MEMORIES)
    monkeypatch.setitem(PROFILES, "a9", made.replace(aliases=("nine",)))
    assert common.profile_list().endswith(", a9 (nine)")


def test_profiles_that_users_name() -> None:
    assert common.profile_list() == "cpu, a2a3 (a2, a3), a5, kirin9030, kirinx90"
    assert PLATFORMS == {"a2a3sim": "a2a3", "a5sim": "a5", "a2a3": "a2a3", "a5": "a5"}
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    found = re.search(r"the\s+profiles ((?:`\w+`(?:,\s+|\s+and\s+)?)+)", readme)
    assert found is not None and re.findall(r"\w+(?=`)", found[1]) == list(PROFILES)
