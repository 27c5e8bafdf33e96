"""Balance of flags and buffer tokens over straight code, branches and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[..., Any]

SET = "pto.set_flag[PIPE_MTE2, PIPE_V, EVENT_ID0]"
WAIT = "pto.wait_flag[PIPE_MTE2, PIPE_V, EVENT_ID0]"
BACK_SET = "pto.set_flag[PIPE_V, PIPE_MTE2, EVENT_ID0]"
BACK_WAIT = "pto.wait_flag[PIPE_V, PIPE_MTE2, EVENT_ID0]"
LOOP = "scf.for %k = %n to %n step %n {{\n{0}\n}}"


@pytest.fixture
def flags(annotated: Check, kernel: Check) -> Check:
    return lambda *lines, **options: annotated(kernel("\n".join(lines)), **options)


def bad(line: str, code: str) -> str:
    return f"{line} //~ PTO-E{code}"


# --------------------------------------------------------------------------------------- straight code


def test_a_pair(flags: Check) -> None:
    flags(SET, WAIT)


def test_pairs_of_other_ids_and_directions_are_independent(flags: Check) -> None:
    flags(SET, SET.replace("ID0", "ID1"), BACK_SET, WAIT, WAIT.replace("ID0", "ID1"), BACK_WAIT)


def test_an_event_class_is_its_pipe(flags: Check) -> None:
    flags("pto.record_event[TLOAD, TVEC, EVENT_ID0]", WAIT)


def test_wait_without_set(flags: Check) -> None:
    (found,) = flags(bad(WAIT, "0803"))
    assert "(PIPE_MTE2 -> PIPE_V, EVENT_ID0)" in found.message


def test_wait_before_set(flags: Check) -> None:
    flags(bad(WAIT, "0803"), bad(SET, "0805"))


def test_set_twice_points_at_the_first(flags: Check) -> None:
    (found,) = flags(SET, bad(SET, "0804"), WAIT)
    assert found.notes[0][0] == "first set here"


def test_second_wait(flags: Check) -> None:
    flags(SET, WAIT, bad(WAIT, "0803"))


# -------------------------------------------------------------------------------------------- branches


def test_both_branches_set(flags: Check) -> None:
    flags(f"scf.if %cond {{\n{SET}\n}} else {{\n{SET}\n}}", WAIT)


def test_both_branches_wait(flags: Check) -> None:
    flags(SET, f"scf.if %cond {{\n{WAIT}\n}} else {{\n{WAIT}\n}}")


def test_a_pair_inside_one_branch(flags: Check) -> None:
    flags(f"scf.if %cond {{\n{SET}\n{WAIT}\n}}")


def test_set_in_one_branch(flags: Check) -> None:
    flags(f"scf.if %cond {{ //~ PTO-E0808\n{SET}\n}}")


def test_wait_in_one_branch(flags: Check) -> None:
    flags(SET, f"scf.if %cond {{ //~ PTO-E0808\n{WAIT}\n}}")


def test_set_in_the_other_branch_than_the_wait(flags: Check) -> None:
    flags(f"scf.if %cond {{ //~ PTO-E0808\n{SET}\n}} else {{\n{bad(WAIT, '0803')}\n}}")


# ----------------------------------------------------------------------------------------------- loops


def test_a_pair_in_a_loop(flags: Check) -> None:
    flags(LOOP.format(f"{SET}\n{WAIT}"))


def test_prime_and_drain(flags: Check) -> None:
    """The buffer-reuse pattern: the reverse flag is primed before the loop and drained after it."""
    flags(BACK_SET, LOOP.format(f"{BACK_WAIT}\n{SET}\n{WAIT}\n{BACK_SET}"), BACK_WAIT)


def test_prime_without_drain(flags: Check) -> None:
    flags(BACK_SET, LOOP.format(f"{BACK_WAIT}\n{bad(BACK_SET, '0805')}"))


def test_drain_without_prime(flags: Check) -> None:
    flags(LOOP.format(f"{bad(BACK_WAIT, '0803')}\n{bad(BACK_SET, '0804')}"), BACK_WAIT)


def test_prime_of_two_buffers(flags: Check) -> None:
    second_set, second_wait = BACK_SET.replace("ID0", "ID1"), BACK_WAIT.replace("ID0", "ID1")
    body = f"{BACK_WAIT}\n{BACK_SET}\n{second_wait}\n{second_set}"
    flags(BACK_SET, second_set, LOOP.format(body), BACK_WAIT, second_wait)


def test_set_before_the_loop_and_waited_for_in_it(flags: Check) -> None:
    flags(SET, "scf.for %k = %n to %n step %n { //~ PTO-E0803", WAIT, "}", WAIT)


def test_set_in_every_iteration(flags: Check) -> None:
    (found,) = flags(LOOP.format(bad(SET, "0804")))
    assert "in every iteration" in found.message


def test_nested_loops(flags: Check) -> None:
    flags(BACK_SET, LOOP.format(LOOP.replace("%k", "%j").format(f"{BACK_WAIT}\n{BACK_SET}")), BACK_WAIT)


def test_branch_in_a_loop(flags: Check) -> None:
    flags(LOOP.format(f"{SET}\nscf.if %cond {{\n{WAIT}\n}} else {{\n{WAIT}\n}}"))
    flags(LOOP.format(f"{SET}\nscf.if %cond {{ //~ PTO-E0808\n{WAIT}\n}}"))


def test_while(flags: Check) -> None:
    loop = "scf.while () : () -> () {{\n{0}\nscf.condition(%cond)\n}} do {{\n}}"
    flags(loop.format(f"{SET}\n{WAIT}"))
    flags(BACK_SET, loop.format(f"{BACK_WAIT}\n{BACK_SET}"), BACK_WAIT)


# ------------------------------------------------------------------------- tokens, severity, what is left out


def test_tokens_are_per_pipe(flags: Check) -> None:
    flags(
        "pto.get_buf[PIPE_V, 1]",
        "pto.get_buf[PIPE_MTE3, 1]",
        "pto.rls_buf[PIPE_V, 1]",
        "pto.rls_buf[PIPE_MTE3, 1]",
    )


def test_token_misuse(flags: Check) -> None:
    flags("pto.get_buf[PIPE_V, 1]", bad("pto.get_buf[PIPE_V, 1]", "0806"), "pto.rls_buf[PIPE_V, 1]")
    flags(bad("pto.rls_buf[PIPE_V, 1]", "0806"))
    flags(bad("pto.get_buf[PIPE_V, 1]", "0807"))


def test_severity_is_chosen_by_the_caller(diagnose: Check, kernel: Check) -> None:
    text = kernel(SET)
    assert [d.severity for d in diagnose(text, flags="warning")] == ["warning"]
    assert [d.severity for d in diagnose(text, flags="error")] == ["error"]
    assert diagnose(text, flags="off") == []


def test_flags_are_followed_beside_errors_of_instructions(annotated: Check, kernel: Check) -> None:
    annotated(kernel(f"{SET} //~ PTO-E0805\n%t = pto.alloc_tile : !pto.tile_buf<vec, 16x12xf16> //~ SA-0006"))


def test_flags_are_not_followed_through_a_broken_structure(annotated: Check, kernel: Check) -> None:
    annotated(kernel(f"{SET}\ncall @missing() : () -> () //~ PTO-E0204"))


@pytest.mark.parametrize(
    "body",
    [
        "pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %n]\n" + SET,
        f"{SET}\ncf.br ^next\n^next:",
        f"{SET}\ncall @other() : () -> ()",
    ],
    ids=["run-time id", "unstructured", "call"],
)
def test_what_only_the_simulator_can_follow(diagnose: Check, kernel: Check, body: str) -> None:
    text = kernel(body).replace(
        "module {", "module {\nfunc.func private @other() {\n" + SET + "\n" + WAIT + "\nreturn\n}"
    )
    assert diagnose(text) == []
