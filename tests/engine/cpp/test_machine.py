"""The launch itself: the arguments of a core, the order of cores, and that no program can hang or end the
process.
"""

from __future__ import annotations

import platform
import struct
from typing import Any

import numpy as np
import pytest

from pto.engine.compiled.library import DONE, FAILED, STUCK, Library

SEEN = np.dtype([("f64", "f8"), ("f32", "f4"), ("f16", "u2"), ("i8", "i1"), ("flag", "u1"), ("i32", "i4"),
                 ("i64", "i8"), ("block", "i8"), ("blocks", "i8"), ("sub", "i8")], align=True)  # fmt: skip


def bits(form: str, value: float) -> int:
    return int.from_bytes(struct.pack(form, value), "little")


def address(array: Any) -> int:
    return array.ctypes.data


@pytest.mark.parametrize("threads", [1, 3])
def test_arguments_arrive_in_their_types(machine: Library, threads: int) -> None:
    out = np.zeros(5, SEEN)
    minus = (1 << 64) - 3
    words = [address(out), bits("<d", -0.1), bits("<f", 1.5), 0x3C01, minus, 1, minus, minus, 0, 0, 0]
    special = bytes([0] * 8 + [1, 2, 3])
    assert machine.call("pto_launch_arguments", words, 5, threads=threads, special=special)[:2] == (DONE, "")
    for block, seen in enumerate(out):
        assert tuple(seen)[:7] == (-0.1, 1.5, 0x3C01, -3, 1, -3, -3)
        assert (seen["block"], seen["blocks"], seen["sub"]) == (block, 5, 0)


def test_the_number_of_arguments_is_checked(machine: Library) -> None:
    status, text = machine.call("pto_launch_parts", [0])[:2]
    assert status == FAILED and text == "[PTO-E2011] the kernel takes 2 arguments, got 1"


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_many_blocks_share_threads_and_see_fresh_memory(machine: Library, threads: int) -> None:
    blocks, count = 300, 11
    out = np.zeros((blocks, count), np.int32)
    assert machine.call("pto_launch_parts", [address(out), count], blocks, threads=threads)[0] == DONE
    assert np.array_equal(out, np.repeat(np.arange(blocks) * 1000 + blocks, count).reshape(blocks, count))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_blocks_meet_at_a_grid_barrier(machine: Library, threads: int) -> None:
    counts, late = np.zeros(20, np.int32), np.zeros(1, np.int32)
    words = [address(counts), counts.size, address(late)]
    assert machine.call("pto_launch_barrier", words, 40, threads=threads)[:2] == (DONE, "")
    assert (counts == 40).all() and late[0] == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_a_barrier_that_one_block_skips_is_stuck(machine: Library, threads: int) -> None:
    status, text = machine.call("pto_launch_deserter", [2], 4, threads=threads)[:2]
    assert status == STUCK
    line = "a grid barrier (aiv_only): 3 of 4 cores are there"
    found = text.splitlines()
    assert (found if threads == 1 else sorted(found)) == [f"block {b}\t{line}" for b in (0, 1, 3)]


X86 = platform.machine() == "x86_64"  # checks divisions itself; elsewhere the compiler does, by a trap
EITHER = "[PTO-E2102] an integer is divided by zero, or the code traps"
DIVIDED = "[PTO-E2102] an integer is divided by zero, or a quotient does not fit" if X86 else EITHER
NULL = "a null pointer, a tile that TASSIGN gave no address, or an address on chip, which is for instructions only"
TRAPPED = "[PTO-E2102] the code traps, or has an instruction that is none here" if X86 else EITHER


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (1, "[PTO-E2105] trap: the program trapped"),
        (3, f"[PTO-E2101] access to address 0x10, which is not mapped: {NULL}"),
        (4, DIVIDED),
        (5, "[PTO-E2101] the stack of the core overflows: 1048576 bytes"),
        (6, "[PTO-E2102] the kernel threw a C++ exception"),
        (7, "[PTO][SA-0353] tile 0 ends beyond UB"),
        (9, "[PTO-E2102] semaphore 99 is outside 0..15"),
        (10, TRAPPED),
    ],
)
def test_a_failing_core_ends_the_launch_with_a_text(machine: Library, how: int, text: str) -> None:
    out = np.zeros(1, np.int32)
    assert machine.call("pto_launch_misbehave", [how, 0, address(out)])[:2] == (FAILED, text)
    # with several cores it says which one; and the library can be launched again
    status, said = machine.call("pto_launch_misbehave", [how, 0, address(out)], 3, threads=2)[:2]
    assert status == FAILED and said.startswith(f"{text} (block ")
    assert machine.call("pto_launch_misbehave", [0, 0, address(out)], 3)[:2] == (DONE, "")


def test_waiting_in_vain_is_stuck_and_long_lists_are_cut(machine: Library) -> None:
    assert machine.call("pto_launch_misbehave", [2, 0, 0])[:2] == (STUCK, "\train\n")
    status, text = machine.call("pto_launch_misbehave", [2, 0, 0], 30, threads=2)[:2]
    assert status == STUCK
    assert len(text.splitlines()) == 13 and text.splitlines()[-1] == "\t18 more"


def test_prints_go_to_the_caller(machine: Library) -> None:
    written: list[str] = []
    assert machine.call("pto_launch_misbehave", [8, 0, 0], 3, write=written.append)[0] == DONE
    assert "".join(written) == "block 0\nblock 1\nblock 2\n"


# -- mixed kernels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("subblocks", [1, 2])
def test_halves_are_apart(mixed: Library, subblocks: int, threads: int) -> None:
    out = np.zeros((4, 3), np.int32)
    assert mixed.call("pto_launch_who", [address(out)], 4, subblocks, threads)[:2] == (DONE, "")
    assert (out == [11 + 100 * subblocks, 22, 122 if subblocks == 2 else 0]).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_cores_of_a_block_take_turns(mixed: Library, threads: int) -> None:
    log = np.zeros((6, 3), np.int32)
    assert mixed.call("pto_launch_turns", [address(log), 50], 6, 2, threads)[:2] == (DONE, "")
    assert (log == 50).all()


def test_like_cores_meet(mixed: Library) -> None:
    counts, late = np.zeros(10 + 7, np.int32), np.zeros(2, np.int32)
    assert mixed.call("pto_launch_like_cores", [address(counts), 10, address(late)], 7, 2, 2)[:2] == (
        DONE,
        "",
    )
    assert (counts[:10] == 14).all() and (counts[10:] == 20).all() and not late.any()


def test_pipes_that_the_program_steers(mixed: Library) -> None:
    """TMPipe: tiles narrower than the entry, several entries on the way, a part of it for each lane."""
    blocks, rounds = 2, 5
    slots, out = np.zeros(blocks * 2048, np.float32), np.zeros((blocks, rounds * 512), np.float32)
    arguments = [address(slots), address(out), rounds]
    assert mixed.call("pto_launch_there_and_back", arguments, blocks, 2, 2)[:2] == (DONE, "")
    assert (out == 1 + np.arange(rounds * 512, dtype=np.float32)).all()
    if '"target": "a5"' in (mixed.text("pto_library") or ""):
        near = np.zeros(rounds * 256, np.float32)
        assert mixed.call("pto_launch_near_and_back", [address(near), rounds], 1, 2, 1)[:2] == (DONE, "")
        assert (near == 1 + np.arange(rounds * 256, dtype=np.float32)).all()


def test_a_full_fifo_that_nobody_reads_is_stuck(mixed: Library) -> None:
    assert mixed.call("pto_launch_full", [4])[:2] == (DONE, "")  # as many as there are slots
    status, text = mixed.call("pto_launch_full", [5])[:2]
    assert status == STUCK
    assert text.splitlines() == [
        "AIC\ta free slot of C2V FIFO 2: all 4 slots hold entries not freed",
        "AIV0\ta grid barrier (mix): 2 of 3 cores are there",
        "AIV1\ta grid barrier (mix): 2 of 3 cores are there",
    ]
