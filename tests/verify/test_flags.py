"""Balance of flags and buffer tokens over straight code, branches, loops, calls and cores; pipes of a core."""

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
NUMBERS = "\n".join(f"%c{i} = arith.constant {i} : index" for i in (0, 1, 2, 8))
OTHER_SET, OTHER_WAIT = SET.replace("ID0", "ID1"), WAIT.replace("ID0", "ID1")


@pytest.fixture
def flags(annotated: Check, kernel: Check) -> Check:
    return lambda *lines, **options: annotated(kernel("\n".join(lines)), **options)


def bad(line: str, code: str) -> str:
    return f"{line} //~ PTO-E{code}"


def when(condition: str, then: str, otherwise: str = "", code: str = "") -> str:
    mark = f" //~ PTO-E{code}" if code else ""
    return f"scf.if {condition} {{{mark}\n{then}\n}}" + (f" else {{\n{otherwise}\n}}" if otherwise else "")


def loop(body: str, upper: str = "%c8", lower: str = "%c0", step: str = "%c1") -> str:
    return f"scf.for %i = {lower} to {upper} step {step} {{\n{body}\n}}"


def compare(relation: str, a: str, b: str, name: str = "%p") -> str:
    return f"{name} = arith.cmpi {relation}, {a}, {b} : index"


def severities(found: list[Any]) -> list[tuple[str, str]]:
    return [(d.code.removeprefix("PTO-E"), d.severity) for d in found]


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


def test_paths_that_met_again_are_one(flags: Check) -> None:
    """After branches with equal ends, either outcome of the same condition is possible again."""
    again = f"scf.if %cond {{\n{WAIT}\n{SET}\n}} else {{\n{WAIT}\n{SET}\n}}"
    flags(SET, again, f"scf.if %cond {{\n{bad(SET, '0804')}\n}}", WAIT)


def test_a_pair_inside_one_branch(flags: Check) -> None:
    flags(f"scf.if %cond {{\n{SET}\n{WAIT}\n}}")


def test_set_in_one_branch(flags: Check) -> None:
    found = flags(when("%cond", SET, code="0808"))
    assert severities(found) == [("0808", "warning")]
    assert [label for label, _ in found[0].notes] == ["set here"]


def test_wait_in_one_branch(flags: Check) -> None:
    found = flags(SET, when("%cond", WAIT, code="0808"))
    assert severities(found) == [("0808", "warning")]


def test_set_in_one_branch_and_waited_for_after(flags: Check) -> None:
    """One report, at the branch, with the places of both sides."""
    (found,) = flags(when("%cond", SET, code="0808"), WAIT)
    assert [(label, at.place[0]) for label, at in found.notes] == [("set here", 4), ("waited for here", 6)]


def test_set_in_one_branch_and_set_again_after(flags: Check) -> None:
    (found,) = flags(when("%cond", SET, code="0808"), SET, WAIT)
    assert [label for label, _ in found.notes] == ["set here", "set again here"]


def test_set_in_the_other_branch_than_the_wait(flags: Check) -> None:
    found = flags(when("%cond", SET, bad(WAIT, "0803")))
    assert severities(found) == [("0803", "error")]


def test_two_branches_of_one_condition(flags: Check) -> None:
    """Two buffers alternately: a flag set by one branch is waited for by the same branch."""
    flags(when("%cond", SET, OTHER_SET), when("%cond", WAIT, OTHER_WAIT))
    flags(when("%cond", SET), when("%cond", WAIT))


def test_two_branches_of_one_condition_crossed(flags: Check) -> None:
    found = flags(when("%cond", SET, OTHER_SET), when("%cond", bad(OTHER_WAIT, "0803"), bad(WAIT, "0803")))
    assert severities(found) == [("0803", "error"), ("0803", "error")]


def test_branches_of_independent_conditions(flags: Check) -> None:
    found = flags(NUMBERS, compare("eq", "%n", "%c0"), when("%cond", SET, code="0808"), when("%p", WAIT))
    assert severities(found) == [("0808", "warning")]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (("eq", "%n", "%c0"), ("eq", "%n", "%c0"), True),
        (("eq", "%n", "%c0"), ("eq", "%c0", "%n"), True),
        (("eq", "%n", "%c0"), ("ne", "%n", "%c0"), False),
        (("slt", "%n", "%c2"), ("sgt", "%c2", "%n"), True),
        (("slt", "%n", "%c2"), ("sge", "%n", "%c2"), False),
        (("sle", "%n", "%c2"), ("sgt", "%n", "%c2"), False),
    ],
)
def test_conditions_computed_twice(
    flags: Check, first: tuple[str, str, str], second: tuple[str, str, str], same: bool
) -> None:
    arms = (WAIT, OTHER_WAIT) if same else (OTHER_WAIT, WAIT)
    flags(NUMBERS, compare(*first), when("%p", SET, OTHER_SET), compare(*second, "%q"), when("%q", *arms))


def test_conditions_that_read_a_number_differently(flags: Check) -> None:
    """The byte -1 as a signed number is below 5, and as an unsigned one it is not."""
    head = "%b = arith.index_cast %n : index to i8\n%five = arith.constant 5 : i32"
    test = "%w{0} = arith.ext{1}i %b : i8 to i32\n%p{0} = arith.cmpi slt, %w{0}, %five : i32"
    flags(head, test.format(0, "s"), when("%p0", SET), test.format(1, "s"), when("%p1", WAIT))
    found = flags(
        head, test.format(0, "s"), when("%p0", SET, code="0808"), test.format(1, "u"), when("%p1", WAIT)
    )
    assert severities(found) == [("0808", "warning")]


def test_a_negated_condition(flags: Check) -> None:
    negate = "%yes = arith.constant true\n%not = arith.xori %cond, %yes : i1"
    flags(when("%cond", SET), negate, when("%not", OTHER_SET, WAIT), when("%not", OTHER_WAIT))


def test_a_constant_condition(flags: Check) -> None:
    flags("%no = arith.constant false", when("%no", SET))
    flags("%yes = arith.constant true", when("%yes", SET), WAIT)


def test_switch(flags: Check) -> None:
    arms = "case 0 {{\n{0}\n}}\ncase 1 {{\n{1}\n}}\ndefault {{\n{2}\n}}"
    switch = "scf.index_switch %n"
    flags(f"{switch}\n" + arms.format(SET, SET, SET), WAIT)
    flags(f"{switch}\n" + arms.format(SET, OTHER_SET, ""), f"{switch}\n" + arms.format(WAIT, OTHER_WAIT, ""))
    found = flags(f"{switch} //~ PTO-E0808\n" + arms.format(SET, "", SET), WAIT)
    assert severities(found) == [("0808", "warning")]


# ----------------------------------------------------------------------------------------------- loops


def test_a_pair_in_a_loop(flags: Check) -> None:
    flags(LOOP.format(f"{SET}\n{WAIT}"))


def test_prime_and_drain(flags: Check) -> None:
    """The buffer-reuse pattern: the reverse flag is primed before the loop and drained after it."""
    flags(BACK_SET, LOOP.format(f"{BACK_WAIT}\n{SET}\n{WAIT}\n{BACK_SET}"), BACK_WAIT)


def test_prime_without_drain(flags: Check) -> None:
    flags(BACK_SET, LOOP.format(f"{BACK_WAIT}\n{bad(BACK_SET, '0805')}"))


def test_drain_without_prime(flags: Check) -> None:
    """One report: that the wait after the loop may fail too follows from it."""
    flags(LOOP.format(f"{bad(BACK_WAIT, '0803')}\n{BACK_SET}"), BACK_WAIT)


def test_prime_of_two_buffers(flags: Check) -> None:
    second_set, second_wait = BACK_SET.replace("ID0", "ID1"), BACK_WAIT.replace("ID0", "ID1")
    body = f"{BACK_WAIT}\n{BACK_SET}\n{second_wait}\n{second_set}"
    flags(BACK_SET, second_set, LOOP.format(body), BACK_WAIT, second_wait)


def test_set_before_the_loop_and_waited_for_in_it(flags: Check) -> None:
    (found,) = flags(SET, "scf.for %k = %n to %n step %n { //~ PTO-E0803", WAIT, "}", WAIT)
    assert found.severity == "error" and "set only before the loop" in found.message
    assert [(label, at.place[0]) for label, at in found.notes] == [("waited for here", 5)]


def test_a_wait_of_the_first_iteration_names_the_set_that_comes_too_late(flags: Check) -> None:
    (found,) = flags(LOOP.format(f"{bad(WAIT, '0803')}\n{SET}"))
    assert "which nothing has set by then: PIPE_" in found.message
    assert [label for label, _ in found.notes] == ["it is set here, too late for the first wait"]
    assert "'pto.set_flag[<PIPE_" in found.help


def test_set_in_every_iteration(flags: Check) -> None:
    (found,) = flags(LOOP.format(bad(SET, "0804")))
    assert found.severity == "error" and "in every iteration" in found.message
    assert [label for label, _ in found.notes] == ["in this loop"]


def test_loop_of_one_iteration(flags: Check) -> None:
    flags(NUMBERS, SET, loop(WAIT, upper="%c1"))
    flags(NUMBERS, loop(SET, upper="%c1"), WAIT)
    flags(NUMBERS, SET, loop(f"{WAIT}\n{compare('eq', '%i', '%c0')}\n{when('%p', SET)}", upper="%c1"), WAIT)


def test_loop_of_no_iteration(flags: Check) -> None:
    flags(NUMBERS, loop(bad(SET, "0804")))
    flags(NUMBERS, loop(SET, upper="%c0"))


def test_an_unsigned_bound_is_no_negative_one(flags: Check) -> None:
    byte = "%byte = arith.constant -1 : i8\n%most = arith.index_cast{} %byte : i8 to index"
    flags(NUMBERS, byte.format("ui"), loop(bad(SET, "0804"), upper="%most"))
    flags(NUMBERS, byte.format(""), loop(SET, upper="%most"))


def test_numbers_that_wrap_are_not_compared_as_if_they_did_not(flags: Check) -> None:
    """All iterations but the first wait, unless 8 bits count on from 127 to -128."""
    head = "%c200 = arith.constant 200 : index\n%one = arith.constant 1 : i8"
    narrow = "%m = arith.index_cast %i : index to i8\n%p = arith.cmpi sge, %m, %one : i8"
    flags(NUMBERS, head, loop(f"{narrow}\n{when('%p', WAIT)}\n{SET}"), WAIT)
    wrong = when("%p", bad(WAIT, "0803"))
    flags(NUMBERS, head, loop(f"{narrow}\n{wrong}\n{SET}", upper="%c200"), WAIT)


def test_minus_one_is_the_largest_unsigned_number(flags: Check) -> None:
    below = "%least = arith.constant -1 : index\n%p = arith.cmpi ult, %i, %least : index"
    flags(NUMBERS, loop(f"{below}\n{when('%p', bad(SET, '0804'))}"))


@pytest.mark.parametrize(
    ("relation", "a", "b"),
    [
        ("ne", "%i", "%c0"),
        ("sgt", "%i", "%c0"),
        ("slt", "%c0", "%i"),
        ("sge", "%i", "%c1"),
        ("ugt", "%i", "%c0"),
    ],
)
def test_wait_in_all_but_the_first_iteration(flags: Check, relation: str, a: str, b: str) -> None:
    body = f"{compare(relation, a, b)}\n{when('%p', WAIT)}\n{SET}"
    flags(NUMBERS, loop(body), WAIT)


def test_wait_in_all_but_the_first_iteration_by_run_time_bounds(flags: Check) -> None:
    """Without an iteration there is no flag to drain: a warning, unless the drain has the same condition."""
    body = f"{compare('ne', '%i', '%c0')}\n{when('%p', WAIT)}\n{SET}"
    found = flags(NUMBERS, loop(body, "%n"), bad(WAIT, "0803"))
    assert severities(found) == [("0803", "warning")]
    assert "this loop runs" in found[0].notes[-1][0]
    flags(NUMBERS, loop(body, "%n"), compare("sgt", "%n", "%c0", "%q"), when("%q", WAIT))


def test_wait_in_all_but_the_first_iteration_broken(flags: Check) -> None:
    only_first = f"{compare('eq', '%i', '%c0')}\n{when('%p', bad(WAIT, '0803'))}\n{bad(SET, '0804')}"
    found = flags(NUMBERS, loop(only_first), WAIT)
    assert severities(found) == [("0803", "error"), ("0804", "error")]
    second = f"{compare('ne', '%i', '%c1')}\n{when('%p', WAIT, code='0808')}\n{SET}"
    assert severities(flags(NUMBERS, SET, loop(second), WAIT)) == [("0808", "warning")]


@pytest.mark.parametrize("upper", ["%c8", "%n"])
@pytest.mark.parametrize(
    ("more", "relation", "a", "b"),
    [
        ("%j = arith.addi %i, %c1 : index", "slt", "%j", "{0}"),
        ("%j = arith.addi %i, %c1 : index", "ne", "%j", "{0}"),
        ("%j = arith.subi {0}, %c1 : index", "slt", "%i", "%j"),
        ("%j = arith.subi {0}, %c1 : index", "ne", "%i", "%j"),
        ("%j = arith.subi {0}, %c2 : index", "sle", "%i", "%j"),
    ],
)
def test_set_in_all_but_the_last_iteration(
    flags: Check, upper: str, more: str, relation: str, a: str, b: str
) -> None:
    """The reverse flag is primed before the loop and not set again by the last iteration."""
    body = f"{WAIT}\n{more.format(upper)}\n{compare(relation, a, b.format(upper))}\n{when('%p', SET)}"
    guard = [compare("slt", "%c0", upper, "%q"), when("%q", SET)]
    flags(NUMBERS, *guard, loop(body, upper))


def test_set_in_all_but_the_last_iteration_broken(flags: Check) -> None:
    body = f"{WAIT}\n{compare('slt', '%i', '%c8')}\n{when('%p', bad(SET, '0805'))}"
    assert severities(flags(NUMBERS, SET, loop(body))) == [("0805", "error")]
    body = f"{bad(WAIT, '0803')}\n{compare('slt', '%i', '%c2')}\n{when('%p', SET)}"
    assert severities(flags(NUMBERS, SET, loop(body))) == [("0803", "warning")]


def test_two_buffers_in_turn(flags: Check) -> None:
    parity = f"%r = arith.remui %i, %c2 : index\n{compare('eq', '%r', '%c0')}"
    body = f"{parity}\n{when('%p', WAIT, OTHER_WAIT)}\n{when('%p', SET, OTHER_SET)}"
    flags(NUMBERS, SET, OTHER_SET, loop(body, "%n"), WAIT, OTHER_WAIT)
    crossed = (
        f"{parity}\n{when('%p', WAIT, OTHER_WAIT)}\n{when('%p', bad(OTHER_SET, '0804'), bad(SET, '0804'))}"
    )
    found = flags(NUMBERS, SET, OTHER_SET, loop(crossed, "%n"), WAIT, OTHER_WAIT)
    assert severities(found) == [("0804", "error"), ("0804", "error")]


def test_a_condition_of_one_iteration_says_nothing_of_the_next(flags: Check) -> None:
    drawn = "%x = pto.load_scalar %gm[%i] : !pto.ptr<f32> -> f32\n%p = arith.cmpf olt, %x, %x : f32"
    found = flags(NUMBERS, loop(f"{drawn}\n{when('%p', SET, bad(WAIT, '0803'))}"))
    assert severities(found) == [("0803", "error")]


def test_nested_loops(flags: Check) -> None:
    flags(BACK_SET, LOOP.format(LOOP.replace("%k", "%j").format(f"{BACK_WAIT}\n{BACK_SET}")), BACK_WAIT)


def test_branch_in_a_loop(flags: Check) -> None:
    flags(LOOP.format(f"{SET}\nscf.if %cond {{\n{WAIT}\n}} else {{\n{WAIT}\n}}"))
    found = flags(LOOP.format(f"{SET}\nscf.if %cond {{ //~ PTO-E0808\n{WAIT}\n}}"))
    assert severities(found) == [("0808", "warning")]


def test_while(flags: Check) -> None:
    text = "scf.while () : () -> () {{\n{0}\n%go = arith.cmpi eq, %n, %n : index\nscf.condition(%go)\n}} do {{\n{1}\n}}"
    flags(text.format(f"{SET}\n{WAIT}", ""))
    flags(BACK_SET, text.format(f"{BACK_WAIT}\n{BACK_SET}", ""), BACK_WAIT)
    # `before` runs once more than `after`: n + 1 sets, n waits, and one more wait after the loop.
    flags(text.format(SET, WAIT), WAIT)
    flags(SET, text.format(WAIT, SET))
    flags(text.format(bad(SET, "0805"), WAIT))
    flags(text.format(bad(SET, "0804"), ""), WAIT)
    flags(text.format(bad(WAIT, "0803"), SET))
    found = flags(SET, text.format(WAIT, "").replace("() {", "() { //~ PTO-E0803", 1))
    assert severities(found) == [("0803", "error")]


# --------------------------------------------------------------------------------------- calls and cores

HELPER = "module {{\nfunc.func private @other() {{\n{0}\nreturn\n}}"
CALL = "call @other() : () -> ()"


def test_a_callee_is_followed_where_it_is_called(annotated: Check, kernel: Check) -> None:
    def check(helper: str, *lines: str) -> Any:
        return annotated(kernel("\n".join(lines)).replace("module {", HELPER.format(helper)))

    check(SET, CALL, WAIT)
    check(SET, CALL, WAIT, CALL, WAIT)
    check(WAIT, SET, CALL)
    check(WAIT, BACK_SET, LOOP.format(f"{BACK_WAIT}\n{SET}\n{CALL}\n{BACK_SET}"), BACK_WAIT)
    check(bad(SET, "0805"), CALL)
    check(bad(SET, "0804"), CALL, CALL, WAIT)
    check(bad(WAIT, "0803"), CALL)
    check(f"{bad(SET, '0804')}\n{WAIT}", SET, CALL)


def test_conditions_of_a_callee_are_new_in_every_call(annotated: Check, kernel: Check) -> None:
    helper = "func.func private @other(%x: i1) {\n" + when("%x", SET, code="0808") + "\nreturn\n}"
    call = "call @other(%cond) : (i1) -> ()"
    text = kernel(f"{call}\n{WAIT}").replace("module {", "module {\n" + helper)
    assert severities(annotated(text.replace(" //~ PTO-E0808", "").replace(WAIT, bad(WAIT, "0803")))) == [
        ("0803", "warning")
    ]


@pytest.mark.parametrize(("functions", "calls", "judged"), [(10, 2, True), (40, 2, True), (900, 1, False)])
def test_calls_without_end_are_given_up(diagnose: Check, functions: int, calls: int, judged: bool) -> None:
    """Each function calls the next one: neither their number nor their depth may be a problem."""
    text = "".join(
        f"func.func @f{i}() {{\n" + f"call @f{i + 1}() : () -> ()\n" * calls + "return\n}\n"
        for i in range(functions)
    )
    text += f"func.func @f{functions}() {{\n{SET}\nreturn\n}}\n"
    assert bool(diagnose(text)) == judged


def test_each_core_has_its_own_flags(flags: Check) -> None:
    cube, vector = ("pto.section.cube {{\n{0}\n}}", "pto.section.vector {{\n{0}\n}}")
    both = SET.replace("PIPE_V", "PIPE_S"), WAIT.replace("PIPE_V", "PIPE_S")
    flags(cube.format("\n".join(both)), vector.format("\n".join(both)))
    flags(cube.format(both[0]), vector.format("\n".join(both)), cube.format(both[1]))
    flags(both[0], cube.format(both[1]), vector.format(both[1]))
    flags(both[0], vector.format(both[1]))  # nothing says that it also runs on a cube core
    found = flags(cube.format(bad(both[0], "0805")), vector.format(bad(both[1], "0803")))
    assert ["on the cube core" in found[0].message, "on the vector core" in found[1].message] == [True, True]
    assert "own flags" in found[0].notes[-1][0] and found[0].notes[-1][1].place[0] == found[1].span.place[0]
    flags(bad(both[0], "0805"), cube.format("pto.barrier #pto.pipe<PIPE_M>"), vector.format(both[1]))


def test_kernels_of_both_kinds_under_one_entry(annotated: Check) -> None:
    def function(name: str, kind: str, body: str) -> str:
        attributes = f"attributes {{pto.kernel_kind = #pto.kernel_kind<{kind}>}}"
        return f"func.func private @{name}() {attributes} {{\n{body}\nreturn\n}}\n"

    set_, wait = SET.replace("PIPE_V", "PIPE_S"), WAIT.replace("PIPE_V", "PIPE_S")
    entry = "func.func @k() {\ncall @c() : () -> ()\ncall @v() : () -> ()\nreturn\n}\n"

    def check(cube: str, vector: str) -> None:
        annotated(
            "module {\n" + function("c", "cube", cube) + function("v", "vector", vector) + entry + "}\n"
        )

    check(f"{set_}\n{wait}", f"{set_}\n{wait}")
    check(bad(set_, "0805"), bad(wait, "0803"))


@pytest.mark.parametrize("line", [SET, WAIT, "pto.barrier #pto.pipe<PIPE_V>", "pto.barrier_sync[TVEC]"])
def test_a_cube_core_has_no_vector_pipe(diagnose: Check, kernel: Check, line: str) -> None:
    def codes(core: str) -> list[str]:
        return [d.code for d in diagnose(kernel(f"pto.section.{core} {{\n{line}\n}}"), flags="off")]

    assert codes("cube") == ["PTO-E1003"]
    assert codes("vector") == []


@pytest.mark.parametrize("pipe", ["PIPE_M", "PIPE_MTE1", "PIPE_FIX"])
def test_a_vector_core_has_no_cube_pipes(diagnose: Check, kernel: Check, pipe: str) -> None:
    def found(kind: str) -> list[Any]:
        more = f"attributes {{pto.kernel_kind = #pto.kernel_kind<{kind}>}} "
        return diagnose(kernel(f"pto.set_flag[PIPE_MTE2, {pipe}, EVENT_ID0]", more=more), flags="off")

    (problem,) = found("vector")
    assert problem.code == "PTO-E1003" and f"cannot use {pipe} on a vector core" in problem.message
    assert found("cube") == []


# ------------------------------------------------------------------------- tokens, severity, omissions


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


def test_tokens_over_branches_and_loops(flags: Check) -> None:
    take, release = "pto.get_buf[PIPE_V, 1]", "pto.rls_buf[PIPE_V, 1]"
    flags(when("%cond", take), when("%cond", release))
    flags(LOOP.format(f"{take}\n{release}"))
    assert severities(flags(when("%cond", take, code="0806"))) == [("0806", "warning")]
    assert severities(flags(LOOP.format(bad(take, "0806")))) == [("0806", "error")]
    flags(take, "scf.for %k = %n to %n step %n { //~ PTO-E0806", release, "}", release)


def test_severity_is_chosen_by_the_caller(diagnose: Check, kernel: Check) -> None:
    text = kernel(SET)
    assert [d.severity for d in diagnose(text, flags="warning")] == ["warning"]
    assert [d.severity for d in diagnose(text, flags="error")] == ["error"]
    assert diagnose(text, flags="off") == []


def test_a_pipe_may_wait_for_what_another_sets_further_down(diagnose: Check, kernel: Check) -> None:
    wait, back = "pto.wait_flag[PIPE_V, PIPE_MTE2, EVENT_ID0]", "pto.set_flag[PIPE_V, PIPE_MTE2, EVENT_ID0]"
    assert {d.severity for d in diagnose(kernel(f"{wait}\n{back}"))} == {"warning"}
    assert {d.severity for d in diagnose(kernel(wait))} == {"error"}


def test_flags_are_followed_beside_errors_of_instructions(annotated: Check, kernel: Check) -> None:
    annotated(kernel(f"{SET} //~ PTO-E0805\n%t = pto.alloc_tile : !pto.tile_buf<vec, 16x12xf16> //~ SA-0006"))


def test_flags_are_not_followed_through_a_broken_structure(annotated: Check, kernel: Check) -> None:
    annotated(kernel(f"{SET}\ncall @missing() : () -> () //~ PTO-E0204"))


@pytest.mark.parametrize(
    "body",
    [
        "pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %n]\n" + SET,
        f"{SET}\ncf.br ^next\n^next:",
    ],
    ids=["run-time id", "unstructured"],
)
def test_what_only_the_simulator_can_follow(diagnose: Check, kernel: Check, body: str) -> None:
    assert diagnose(kernel(body)) == []


def test_a_run_time_id_hides_only_its_pair(flags: Check) -> None:
    flags("pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %n]", SET, bad(BACK_SET, "0805"))


def test_a_constant_id_is_known(flags: Check) -> None:
    flags(NUMBERS, "pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %c1]", OTHER_WAIT)
    flags(NUMBERS, bad("pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %c1]", "0805"), bad(WAIT, "0803"))


@pytest.mark.parametrize("wait", [WAIT, ""], ids=["balanced", "unbalanced"])
def test_a_deep_nest_of_loops_and_calls_is_followed(
    diagnose: Check, kernel: Check, monkeypatch: pytest.MonkeyPatch, wait: str
) -> None:
    """A walk of 40 loops in each other, 3 to the power of 40 without remembering, stays in its bounds."""
    monkeypatch.setattr("pto.verifier.balance._MOST_STEPS", 1000)
    nest = f"{SET}\n{wait}"
    for n in range(40):
        nest = f"scf.for %i{n} = %n to %n step %n {{\n{nest}\n}}"
    calls = "".join(
        f"func.func private @g{n}() {{\ncall @g{n + 1}() : () -> ()\ncall @g{n + 1}() : () -> ()\nreturn\n}}\n"
        for n in range(20)
    )
    last = f"func.func private @g20() {{\n{SET}\n{wait}\nreturn\n}}\n"
    for text in (kernel(nest), kernel("call @g0() : () -> ()") + calls + last):
        assert bool(diagnose(text)) == (not wait)
