"""Proofs of small kernels, of their broken variants, and of the corpora of planted faults."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.each import each
from tests.proof.corpus import ASSUMED, LIMITED, Tally, path_of, planted
from tests.proof.mutants import missed, mutants
from tests.sampling import some
from tests.sanitize import corpus

import pto
from pto.cli.main import main
from pto.cli.ptoas import main as ptoas
from pto.proof.findings import EVERY
from pto.proof.prove import PROVED, REFUTED, UNKNOWN, Proof, prove, suggested
from pto.proof.replay import is_of

SLOTS = (Path(__file__).parent / "slots.pto").read_text(encoding="utf-8")
KERNELS = Path(__file__).parents[2] / "examples" / "kernels"


def verdicts(proof: Proof) -> str:
    """The first letters of all verdicts, in the order of the properties."""
    return "".join(proof[p].verdict[0] for p in EVERY)


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def test_slots_by_turns_and_blocks() -> None:
    proof = prove(pto.parse(SLOTS))
    assert verdicts(proof) == "pppppp" and proof.ok and proof.verdict == PROVED
    assert "%x holds 64 * rows elements" in proof.assumptions
    assert "0 <= rows <= 1048576" in proof.assumptions


#: Change of the kernel -> the property that breaks, the line of the report, and values that break it.
BROKEN = [
    # a window that is always 16 rows: the last tile leaves the array
    ("arith.minsi %left, %c16", "arith.maxsi %left, %c16", "bounds", "%a = pto.alloc_tile"),
    ("%r = arith.muli %t, %c16", "%r = arith.muli %t, %c15", "blocks", "pto.tstore"),
    ("      pto.wait_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %slot]\n", "", "pipes", "pto.tadd"),
    ("    pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID1>]\n    return", "    return", "flags", "set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID1>"),
    ("    pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID1>]\n", "", "flags", "wait_flag_dyn[<PIPE_MTE3>"),
]  # fmt: skip


@pytest.mark.parametrize("old, new, prop, place", BROKEN, ids=[f"{n}-{b[2]}" for n, b in enumerate(BROKEN)])
def test_broken(old: str, new: str, prop: str, place: str) -> None:
    text = SLOTS.replace(old, new)
    assert text != SLOTS
    proof = prove(pto.parse(text))
    assert proof.verdict == REFUTED and proof[prop].verdict == REFUTED
    found = proof[prop].counterexample
    assert found is not None and is_of(prop, found.report.code)
    # a run with these values reports it again
    launch = found.launch
    result = pto.kernel(pto.parse(text), engine="reference").run(
        *launch.args, blocks=launch.blocks, sanitize="oob,race,sync"
    )
    assert found.report.code in {d.code for d in result.diagnostics}
    assert found.report.span is not None
    lines = {found.report.span.line, *(s.line for _, s in found.report.notes if s is not None)}
    assert line_of(text, place) in lines


def test_assumptions_decide() -> None:
    text = SLOTS.replace("arith.minsi %left, %c16", "arith.minsi %c16, %c16")  # whole tiles only
    assert prove(pto.parse(text), properties=("bounds",)).verdict == REFUTED
    assert prove(pto.parse(text), assume=["rows % 16 == 0"], properties=("bounds",)).ok
    assert prove(pto.parse(text), assume=["rows == 32", "blocks <= 2"], properties=("bounds",)).ok


@pytest.mark.parametrize(
    "assume, message",
    [
        ("rows %", "cannot parse"),
        ("columns > 1", "unknown parameter 'columns'"),
        ("rows < 4 < 2", "no values satisfy"),
        ("__import__('os')", "cannot use"),
        ("exp(rows) == 1", "unknown operation 'exp'"),
    ],
)
def test_e2441_assumptions_that_cannot_be(assume: str, message: str) -> None:
    with pytest.raises(pto.DiagnosticError, match=message) as e:
        prove(pto.parse(SLOTS), assume=[assume])
    assert [d.code for d in e.value.diagnostics] == ["PTO-E2441"]


def test_e2019_launches_check_assumptions(tmp_path: Path) -> None:
    """A program states its assumptions: a proof uses them, and a launch that breaks one is refused."""
    text = SLOTS.replace(
        "attributes {pto.entry,", 'attributes {pto.assume = ["rows % 16 == 0", "blocks <= 2"], pto.entry,'
    )
    text = text.replace("arith.minsi %left, %c16", "arith.minsi %c16, %c16")
    module = pto.parse(text)
    assert pto.verify(module) == []
    assert prove(module, properties=("bounds",)).ok
    x = np.zeros(64 * 32, np.float32)
    source, image = tmp_path / "k.pto", tmp_path / "k.elf"
    source.write_text(text)
    assert ptoas([str(source), "-o", str(image)]) == 0
    kernels = [pto.kernel(module, engine=engine) for engine in ("reference", "native", "cpp")]
    for kernel in (*kernels, pto.kernel(image)):
        assert kernel.run(x, x.copy(), 32, blocks=2).ok
        for rows, blocks, why in ((17, 1, "rows = 17"), (32, 3, "blocks = 3")):
            with pytest.raises(pto.DiagnosticError, match="assumes") as e:
                kernel.run(x, x.copy(), rows, blocks=blocks)
            (d,) = e.value.diagnostics
            assert d.code == "PTO-E2019" and d.got == why
    wrong = pto.verify(pto.parse(text.replace("rows % 16", "lines % 16")))
    assert [d.code for d in wrong] == ["PTO-E2441"] and "unknown parameter 'lines'" in wrong[0].message


def test_e2440_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(pto.DiagnosticError, match="cannot prove anything without z3") as e:
        prove(pto.parse(SLOTS))
    (d,) = e.value.diagnostics
    assert d.code == "PTO-E2440" and "pip install 'pto[prove]'" in d.help


def test_e2442_an_instruction_that_is_not_followed() -> None:
    """It stops the proof of what depends on it, and is named."""
    text = SLOTS.replace("      pto.tstore", "      pto.syncall\n      pto.tstore")
    proof = prove(pto.parse(text))
    assert proof.verdict == UNKNOWN
    (d, *_) = proof["flags"].reasons
    assert d.code == "PTO-E2442" and "syncall: a barrier in a loop" in d.message
    assert d.span is not None and d.span.line == line_of(text, "pto.syncall")


def test_grid_barrier() -> None:
    """Blocks that read what others wrote need a barrier between the two."""
    text = SLOTS.replace(
        "    return",
        """    pto.barrier <PIPE_ALL>
    pto.syncall
    scf.for %j = %c0 to %rows step %c16 {
      %left2 = arith.subi %rows, %j : index
      %h2 = arith.minsi %left2, %c16 : index
      %at2 = arith.constant 16384 : i64
      %t2 = pto.alloc_tile addr = %at2 valid_row = %h2 : !tile
      %p2 = pto.partition_view %vy, offsets = [%j, %c0], sizes = [%h2, %c64] : !view -> !window
      pto.tload ins(%p2 : !window) outs(%t2 : !tile)
    }
    return""",
    )
    assert prove(pto.parse(text)).ok
    without = prove(pto.parse(text.replace("    pto.syncall\n", "")))
    assert without["blocks"].verdict == REFUTED and without["pipes"].ok


PARTS = """!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.tensor_view<16x64xf32>
!window = !pto.partition_tensor_view<16x64xf32>

func.func @parts(%y: !pto.ptr<f32>, %block: index, %blocks: index) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  %b64 = pto.get_block_idx
  %b = arith.index_cast %b64 : i64 to index
  %at = arith.muli %b, %c1024 : index
  %p = pto.addptr %y, %at : !pto.ptr<f32> -> !pto.ptr<f32>
  %v = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : !view
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !window
  %t = pto.alloc_tile : !tile
  pto.texpands ins(%zero : f32) outs(%t : !tile)
  pto.tstore ins(%t : !tile) outs(%w : !window)
  return
}
"""


def test_parts_of_an_array() -> None:
    """A pointer that moves with the block. Parameters may have the names of what a launch has."""
    proof = prove(pto.parse(PARTS))
    assert proof.ok and "%y holds 1024 * block# + 1024 elements" in proof.assumptions
    same = prove(pto.parse(PARTS.replace("arith.muli %b, %c1024", "arith.muli %b, %block")))
    assert same["blocks"].verdict == REFUTED and same["pipes"].ok
    half = prove(pto.parse(PARTS.replace("%c1024 = arith.constant 1024", "%c1024 = arith.constant 512")))
    assert half["blocks"].verdict == REFUTED and half["bounds"].ok


def test_an_impossible_time(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove(pto.parse(SLOTS), timeout=1e-9)
    assert verdicts(proof) == "uuuuuu" and "takes more than" in proof["bounds"].reasons[0].message


LOOPS = """!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.tensor_view<?x64xf32>
!window = !pto.partition_tensor_view<16x64xf32>

func.func @loops(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %tiles: index) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %rows = arith.muli %tiles, %c16 : index
  %one = arith.constant 1.0 : f32
  %at_s = arith.constant 0 : i64
  %at_t = arith.constant 4096 : i64
  %at_u = arith.constant 8192 : i64
  %vx = pto.make_tensor_view %x, shape = [%rows, %c64], strides = [%c64, %c1] : !view
  %vy = pto.make_tensor_view %y, shape = [%rows, %c64], strides = [%c64, %c1] : !view
  %s = pto.alloc_tile addr = %at_s : !tile
  %t = pto.alloc_tile addr = %at_t : !tile
  %u = pto.alloc_tile addr = %at_u : !tile
  pto.texpands ins(%one : f32) outs(%s : !tile)
  scf.for %r = %c0 to %rows step %c16 {
    %px = pto.partition_view %vx, offsets = [%r, %c0], sizes = [%c16, %c64] : !view -> !window
    %py = pto.partition_view %vy, offsets = [%r, %c0], sizes = [%c16, %c64] : !view -> !window
    %first = arith.cmpi eq, %r, %c0 : index
    scf.if %first {
      pto.texpands ins(%one : f32) outs(%u : !tile)
    }
    pto.barrier <PIPE_ALL>
    pto.tload ins(%px : !window) outs(%t : !tile)
    pto.barrier <PIPE_ALL>
    pto.tadd ins(%s, %t : !tile, !tile) outs(%s : !tile)
    pto.barrier <PIPE_ALL>
    pto.tadd ins(%s, %u : !tile, !tile) outs(%s : !tile)
    pto.barrier <PIPE_ALL>
    pto.tstore ins(%s : !tile) outs(%py : !window)
    pto.barrier <PIPE_ALL>
  }
  return
}
"""


def test_contents_of_tiles() -> None:
    """Undefined data, and tiles that share bytes, for all numbers of iterations."""
    assert prove(pto.parse(LOOPS)).ok
    # the sum is not written before the loop; a tile that is written in the second iteration only
    for change in (
        ("  pto.texpands ins(%one : f32) outs(%s : !tile)\n", ""),
        ("arith.cmpi eq, %r, %c0", "arith.cmpi eq, %r, %c16"),
    ):
        found = prove(pto.parse(LOOPS.replace(*change)), properties=("undef",))["undef"]
        assert found.verdict == REFUTED, change
        assert found.counterexample is not None and found.counterexample.report.code == "PTO-E2203"
    # an address that depends on the number of tiles: %t takes the bytes of %u if there are two
    text = LOOPS.replace("  %at_t = arith.constant 4096 : i64\n", "")
    text = text.replace(
        "  %vx =",
        """  %four = arith.constant 4096 : index
  %at = arith.muli %tiles, %four : index
  %at_t = arith.index_cast %at : index to i64
  %vx =""",
    )
    assert prove(pto.parse(text), assume=["tiles >= 3", "tiles <= 40"]).ok
    found = prove(pto.parse(text), assume=["tiles >= 1", "tiles <= 40"])["overlap"]
    assert found.counterexample is not None and found.counterexample.launch.values == {"tiles": 2}


UNUSED = """!tile = !pto.tile_buf<vec, 16x64xf32>
!window = !pto.partition_tensor_view<16x64xf32>

func.func @k(%x: !window, %y: !window) attributes {pto.entry} {
  %t = pto.alloc_tile : !tile
  %u = pto.alloc_tile : !tile
  pto.tload ins(%x : !window) outs(%t : !tile)
  pto.tadd ins(%u, %u : !tile, !tile) outs(%u : !tile)
  pto.tstore ins(%t : !tile) outs(%y : !window)
  return
}
"""


def test_undefined_data_with_and_without_an_effect() -> None:
    assert prove(pto.parse(UNUSED)).ok
    found = prove(pto.parse(UNUSED.replace("tstore ins(%t", "tstore ins(%u")))["undef"]
    assert found.counterexample is not None and found.counterexample.report.code == "PTO-E2203"


#: Kernel, its limits, the properties that hold within them, a change that breaks it, and the broken property.
POINTERS = [
    ("08_vector_micro", "pppp?p", '    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]\n', "", "flags"),
    ("08_vector_micro", "pppp?p", "%at_c = arith.constant 65536", "%at_c = arith.constant 65528", "bounds"),
    ("08_vector_micro", "pppp?p", "%at_c = arith.constant 65536", "%at_c = arith.constant 32800", "pipes"),
    ("08_vector_micro", "pppp?p", "pto.vlds %ub[%i]", "pto.vlds %ub[%lanes]", ""),
    ("08_vector_micro", "pppp?p", "to %count step %lanes", "to %count step %one_more", "bounds"),
    ("micro_softmax", "pppp?p", '        pto.mem_bar "VST_VLD"\n', "", "pipes"),
    ("micro_softmax", "pppp?p", '  pto.mem_bar "VST_VLD', '  pto.mem_bar "VLD_VST', "pipes"),
    ("micro_softmax", "pppp?p", "%four = arith.constant 4 : i64", "%four = arith.constant 8 : i64", "bounds"),
    ("row_sum", "pppp?p", "pto.vsts %total, %us[%r]", "pto.vsts %total, %ux[%r]", ""),
]


@pytest.mark.parametrize("name, known, old, new, prop", POINTERS)
def test_copies_and_vector_registers(name: str, known: str, old: str, new: str, prop: str) -> None:
    text = path_of(name).read_text(encoding="utf-8")
    broken = text.replace(old, new, 1)
    broken = broken.replace("    %zero =", "    %one_more = arith.constant 65 : index\n    %zero =", 1)
    assert text != broken
    if (name, old) in ((POINTERS[0][0], POINTERS[0][2]), (POINTERS[5][0], POINTERS[5][2])):
        found = verdicts(prove(pto.parse(text), assume=LIMITED[name]))
        assert all(k in ("?", v) for k, v in zip(known, found, strict=True)), found
    proof = prove(pto.parse(broken), assume=LIMITED[name])
    if prop:
        assert proof[prop].verdict == REFUTED, proof
    assert not missed(broken, proof, LIMITED[name], count=3)


def test_sizes_of_arrays() -> None:
    """A condition on the size of an array, instead of the size that the proof takes by itself."""
    text = PARTS.replace("pto.entry}", 'pto.entry, pto.assume = ["y.size >= 1024 * blocks"]}')
    assert prove(pto.parse(text)).ok
    kernel = pto.kernel(pto.parse(text))
    y = np.zeros(2048, np.float32)
    assert kernel.run(y, 0, 0, blocks=2).ok
    with pytest.raises(pto.DiagnosticError, match="assumes") as e:
        kernel.run(y, 0, 0, blocks=3)
    assert [d.got for d in e.value.diagnostics] == ["y.size = 2048, blocks = 3"]
    half = prove(pto.parse(text.replace("1024 * blocks", "512 * blocks")))["bounds"]
    assert half.counterexample is not None and half.counterexample.report.code == "PTO-E2101"


@pytest.mark.parametrize("name", some(ASSUMED, 2))
def test_examples(name: str) -> None:
    proof = prove(str(KERNELS / f"{name}.pto"), assume=ASSUMED[name])
    assert verdicts(proof) == "pppppp", proof
    if name == "topk":  # sorts of undefined data
        text = path_of(name).read_text(encoding="utf-8")
        for old in ("        pto.tload ins(%px", "        pto.tsort32", "      pto.texpands ins(%lowest"):
            found = prove(pto.parse(text.replace(old, "//", 1)), assume=ASSUMED[name], properties=("undef",))
            assert not found.ok, old
    if ASSUMED[name]:  # without its conditions, there are values that break it
        broken = prove(str(KERNELS / f"{name}.pto"), properties=("bounds",))
        assert broken.verdict == REFUTED
        if name == "layer_norm":
            assert suggested(broken, (), 600) == [*ASSUMED[name]]


def test_planted_faults() -> None:
    """No planted fault is proved absent, and no good program is refuted for the values of its own launch."""

    def check(name: str) -> None:
        tally = Tally()
        planted(name, tally)
        assert not tally.wrong

    each(check, some(corpus.NAMES, 8))


def test_mutants() -> None:
    """No launch breaks what is proved of a mutant."""

    def check(number: int) -> None:
        mutant = every[number]
        try:
            module = pto.parse(mutant.text)
            proof = prove(module, timeout=20)
        except pto.DiagnosticError:
            return
        assert not missed(mutant.text, proof, count=5), (mutant.line, mutant.change)

    every = list(mutants(SLOTS))
    each(check, some(range(len(every)), 24))


def test_proved_kernels_run() -> None:
    proof = prove(pto.parse(SLOTS))
    assert not missed(SLOTS, proof, count=10)


def test_few_launches_are_run() -> None:
    """A kernel without parameters has one launch: a run decides what the proof does not follow."""
    for name, verdict in (("cross_core_reuse.bad", REFUTED), ("fifo_pop_without_push.bad", REFUTED)):
        proof = prove(pto.parse(corpus.PROGRAMS / f"{name}.pto"))
        assert proof.verdict == verdict, name
        assert all(v.verdict == REFUTED for v in proof.verdicts.values() if v.counterexample is not None)
    assert prove(pto.parse(corpus.PROGRAMS / "fifo_wrap_after_free.good.pto"))["pipes"].ok
    # an address that depends on data is not decided by a run
    assert prove(pto.parse(corpus.PROGRAMS / "index_gather.good.pto"))["bounds"].verdict == UNKNOWN


# -- the tool ----------------------------------------------------------------------------------------------


def test_a_file_with_both_functions_of_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    path = KERNELS.parent / "09_fifo_push_pop.pto"
    assert main(["prove", str(path)]) == 0
    shown = capsys.readouterr().out
    assert (
        shown.count(": @exp_product") == 1 and "proved: bounds, flags, pipes, blocks, undef, overlap" in shown
    )


def test_the_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pto"
    path.write_text(SLOTS)
    assert main(["prove", str(path)]) == 0
    assert f"{path}: @slots: proved: bounds, flags, pipes, blocks, undef, overlap" in capsys.readouterr().out
    path.write_text(SLOTS.replace("arith.minsi %left, %c16", "arith.minsi %c16, %c16"))
    assert main(["prove", str(path), "--property", "bounds", "--save", str(tmp_path / "saved")]) == 1
    shown = capsys.readouterr()
    assert (
        "refuted: bounds" in shown.out
        and "for blocks = 1, rows = 1" in shown.out
        and "error[PTO-E2" in shown.err
    )
    line = (tmp_path / "saved" / "slots-bounds" / "command.txt").read_text().split()
    assert main(line[1:]) == 1  # the command that it saved
    assert "PTO-E2" in capsys.readouterr().err
    path.write_text(SLOTS.replace("      pto.tstore", "      pto.syncall\n      pto.tstore"))
    assert main(["prove", str(path)]) == 3
    assert main(["prove", str(path), "--allow-unknown"]) == 0
    capsys.readouterr()
    assert main(["prove", str(path), "--json"]) == 3
    (record,) = json.loads(capsys.readouterr().out)
    assert record["verdict"] == UNKNOWN and record["kernel"] == "slots"
    with pytest.raises(SystemExit, match="2"):
        main(["prove", str(path), "--property", "speed"])
