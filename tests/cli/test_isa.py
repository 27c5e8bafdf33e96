"""`pto isa`: overview, lists, pages and JSON, for every row of the table."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.each import each, together
from tests.sampling import some

from pto import isa, knobs
from pto.cli import isa as verb
from pto.cli.main import main
from pto.cli.terminal import Screen
from pto.isa import describe
from pto.isa.profiles import PROFILES

PLAIN = Screen(width=90, color=False)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["isa", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def load(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


#: The families of the overview document.
FAMILIES = """sync-and-config elementwise-tile-tile tile-scalar-and-immediate reduce-and-expand
    memory-and-data-movement matrix-and-matrix-vector layout-and-rearrangement irregular-and-complex
    vector-load-store unary binary vec-scalar conversion reduction compare-select rearrangement sfu-dsa
    pipeline-sync dma-copy predicate-load-store predicate-generation control-and-configuration shared-arith
    shared-scf collective scheduling"""


def test_families_of_the_overview() -> None:
    assert set(FAMILIES.split()) <= {r.family for r in isa.rows()}
    configured = {r.name for r in isa.rows() if r.family == "control-and-configuration"}
    assert configured >= {"sethf32mode", "settf32mode", "setfmatrix"}


def test_overview_counts_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys)
    rows = isa.rows()
    assert status == 0 and out.startswith(f"{len(rows)} instructions, ")
    for r in rows:
        assert r.family in out
    for profile in PROFILES.values():
        assert profile.title in out


def test_page_names_the_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "tsort32")
    assert status == 0 and "sort blocks. Records of 32 columns in descending order." in " ".join(out.split())


def test_page_of_an_instruction(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "tadd")
    assert status == 0
    for expected in (
        "pto.tadd  Element-wise sum; integers wrap.",
        "pto.tadd ins(%src0, %src1 : type(%src0), type(%src1)) outs(%dst : type(%dst))",
        "%dst = pto.tadd %src0, %src1 : (type(%src0), type(%src1)) -> type(%dst)",
        "tadd %dst, %src0, %src1 : type(%dst), type(%src0), type(%src1)",
        '"pto.tadd"(%src0, %src1, %dst) : (type(%src0), type(%src1), type(%dst)) -> ()',
        "a2a3  f32 f16 bf16  .  . i16 u16 i32 u32   .   .",
        "src0, src1: same element type as dst         yes  yes      yes",
        "SA-0136  SA-0135",
        "TADD(dst, src0, src1)",
        "0x1007",
    ):
        assert expected in out, expected


@pytest.mark.parametrize("spelling", ["tadd", "pto.tadd", "TADD"])
def test_spellings_of_a_name(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert load(capsys, spelling)["name"] == "tadd"


def test_alias_shows_the_instruction(capsys: pytest.CaptureFixture[str]) -> None:
    aliased = next(r for r in isa.rows() if r.aliases)
    assert load(capsys, aliased.aliases[0])["name"] == aliased.name


def test_one_profile_shows_its_column_only(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "tadd", "--profile", "a3")
    assert "SA-0136" in out and "SA-0135" not in out


def test_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "taddd")
    assert (status, out) == (1, "")
    assert err.startswith("pto isa: unknown instruction 'taddd'; did you mean ") and "'tadd'" in err


def test_missing_on_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    only_a5 = next(r for r in isa.rows() if r.isas == ("a5",) and r.dialect == "pto")
    status, _, err = run(capsys, only_a5.name, "--profile", "a3")
    assert status == 1 and "does not exist on a2a3; it exists on a5" in err


@pytest.mark.parametrize("option", ["--family", "--set"])
def test_unknown_group(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, option, "tyle")
    assert status == 1 and f"unknown {option[2:]} 'tyle'" in err


def test_family_lists_its_members_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    members = [r for r in isa.rows() if r.family == "reduce-and-expand"]
    _, out, _ = run(capsys, "--family", "reduce-and-expand")
    assert all(f"  {r.name} " in out for r in members)
    assert out.endswith(f"{len(members)} instructions\n") and "tadd" not in out


def test_set_includes_instructions_it_shares(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {r.name for r in isa.rows() if "system" in (r.set, *r.also)}
    assert {r["name"] for r in load(capsys, "--set", "system")["rows"]} == wanted


def test_profile_filters(capsys: pytest.CaptureFixture[str]) -> None:
    names = {r["name"] for r in load(capsys, "--profile", "a3")["rows"]}
    assert names == {r.name for r in isa.rows() if r.dialect != "pto" or "a2a3" in r.isas}


def test_search(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--search", "Gather TILE")
    assert "  tgather" in out and "tadd" not in out
    status, _, err = run(capsys, "--search", "zzz")
    assert status == 1 and "no instruction matches 'zzz'" in err


def test_json_is_the_whole_table(capsys: pytest.CaptureFixture[str]) -> None:
    found = load(capsys)
    rows = isa.rows()
    counts = found["counts"]
    assert counts["rows"] == len(rows) == len(found["rows"]) == sum(counts["by_set"].values())
    assert sum(counts["by_family"].values()) == len(rows)
    assert counts["inventory"] == sorted(n for r in rows for n in (r.name, *r.aliases))
    assert counts["names"] == len(counts["inventory"])
    for shown, r in zip(found["rows"], rows, strict=True):
        assert (shown["name"], shown["opcode"], shown["doc"]) == (r.name, r.opcode, r.doc)
        assert [o["name"] for o in shown["operands"]] == [o.name for o in r.operands]
        assert set(shown["syntax"]) == set(describe.FORMS)
        assert (shown["expr"], shown["over"], shown["algorithm"]) == (r.expr, r.over, r.algorithm)
    listed = {name: entry["rows"] for name, entry in found["algorithms"].items()}
    assert listed["index of extreme"] == ["trowargmax", "trowargmin", "tcolargmax", "tcolargmin"]
    assert sum(map(len, listed.values())) == sum(bool(r.algorithm) for r in rows)
    assert len(listed) < 150, "instructions that need an executor of their own"


def test_name_and_filter_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["isa", "tadd", "--set", "tile"])
    assert stop.value.code == 2


def test_no_colour_in_a_pipe_and_colour_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in run(capsys, "tadd")[1]
    with knobs.override(PTO_COLOR="always"):
        assert "\x1b[1;36mpto.tadd\x1b[0m" in run(capsys, "tadd")[1]


@together("r", some(isa.rows(), 4, by=lambda r: r.family))
def test_every_page_fits_the_terminal(r: isa.Row) -> None:
    width = 80
    lines = verb.page_text(describe.page(r, verb.examples(r, r.isas[-1])), Screen(width, color=False))
    text = "\n".join(lines)
    assert r.doc in " ".join(text.split()) and f"0x{r.opcode:04X}" in text
    for name in (*(o.name for o in (*r.operands, *r.results)), *(a.name for a in r.attrs)):
        assert name in text
    words = max(len(word) for line in lines for word in line.split())
    assert max(map(len, lines)) <= max(width, words + 20), max(lines, key=len)


def test_tables_shrink_to_the_width() -> None:
    lines = PLAIN.table(("a", "b"), [("x" * 10, "word " * 60), ("y", "z")])
    assert max(map(len, lines)) <= 90 and len(lines) > 4


def test_rules_of_several_operands_are_merged() -> None:
    row = isa.row("tadd")
    assert row is not None
    table = describe.rule_table(row)
    assert table is not None
    assert ("src0, src1, dst: location vec", "yes", "yes", "yes") in table.rows


def test_readable_expressions() -> None:
    assert (
        describe.readable("dst.loc in (VEC, MAT) and not has(tmp)")
        == "dst.loc in (vec, mat) and (tmp is absent)"
    )


@pytest.mark.parametrize(
    ("given", "code"), [("sa-352", "SA-0352"), ("E0803", "PTO-E0803"), ("803", "PTO-E0803")]
)
def test_explain_takes_short_codes(given: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", given]) == 0
    assert capsys.readouterr().out.startswith(f"{code}: ")


#: Sampled of those with a program: of the assembler, of runs, of the sanitizers, in Python, in a folder.
@pytest.mark.parametrize("code", ["SA-0066", "PTO-E0803", "PTO-E2012", "PTO-E2201", "PTO-E3005", "PTO-E2603"])
def test_explain_shows_a_program(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The shown program is run: the error is at one of its lines, and the change mends it."""
    assert main(["explain", code, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    lines = shown["program"].splitlines()
    found = re.search(rf"^\S+:(\d+):\d+: error\[{code}\]", shown["output"], re.M)
    assert found is not None and int(found[1]) <= len(lines) and shown["change"]
    assert main(["explain", code]) == 0
    out = capsys.readouterr().out
    assert (
        f"\n$ {shown['command']}\n{shown['output']}\n\nMended:\n" in out
        and f"     1 {lines[lines[0].startswith('--- ')]}\n" in out
    )


def test_explain_says_why_there_is_no_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "PTO-E2440"]) == 0
    assert capsys.readouterr().out.endswith("\n\nNo program: needs a Python without z3.\n")


def test_explain_takes_several_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "SA-0352", "e0803"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("SA-0352: ") and "\n\nPTO-E0803: " in out
    assert main(["explain", "SA-0352", "sa-352"]) == 0
    assert capsys.readouterr().out.count("SA-0352: ") == 1
    with pytest.raises(SystemExit):
        main(["isa", "tile", "--set", "micro"])
    assert "cannot combine NAME with" in capsys.readouterr().err
    assert main(["explain", "SA-0352", "nothing", "--json"]) == 1
    said = capsys.readouterr()
    assert [e["code"] for e in json.loads(said.out)] == ["SA-0352"] and "'nothing'" in said.err


def test_a_family_or_a_set_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "dma-copy") == run(capsys, "--family", "dma-copy")
    assert run(capsys, "vector") == run(capsys, "--set", "vector")
    assert run(capsys, "dma-cpy")[2] == "pto isa: unknown instruction 'dma-cpy'; did you mean 'dma-copy'?\n"


def test_prefixes_suggest_the_family(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "pset")
    assert status == 1
    assert "did you mean 'pset_b8' or 'pset_b16' or 'pset_b32'?" in err


def test_attributes_are_spelled_as_in_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert "maskPattern = #pto.mask_pattern<P0101>" in run(capsys, "tgather")[1]
    assert "cmpMode = #pto<cmp eq>" in run(capsys, "tcmps")[1]


def _row(name: str) -> isa.Row:
    found = isa.row(name)
    assert found is not None
    return found


def test_every_form_has_an_example() -> None:
    shown = verb.examples(_row("tgather"), "a5")["pto"]
    for operands in (
        "%src, {maskPattern",
        "%src, %indices, %tmp",
        "%src, %kValue, %tmp",
        "%src, %kTile, %tmp",
    ):
        assert f"pto.tgather ins({operands}" in shown


def test_transfers_of_examples_move_something() -> None:
    def check(name: str) -> None:
        shown = verb.examples(_row(name), "a5")["pto"]
        assert "%c_n_burst = arith.constant 16" in shown
        assert "%c_len_burst = arith.constant 256" in shown

    each(check, ["copy_gm_to_ubuf", "copy_ubuf_to_gm", "mte_gm_ub"])


def test_optional_results_take_their_equals_sign_along() -> None:
    def check(row: isa.Row) -> None:
        for lines in describe.syntax(row).values():
            assert not any(line.startswith("[,") for line in lines)

    each(check, isa.rows())
