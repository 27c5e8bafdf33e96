"""`pto prove`: properties of kernels for all values of their parameters, or values that break them."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..asm import parse_source
from ..diag import Diagnostic, DiagnosticError, has_errors, visible
from ..files import write_whole
from ..ir.core import Module
from ..ir.facts import entries, halves
from ..isa.machine import SUBBLOCKS
from ..proof.findings import EVERY, PROPERTIES
from ..proof.prove import REFUTED, UNKNOWN, Proof, Verdict, prove, suggested
from .common import FAILED, OK, CommandParser, add_diagnostics, add_target, read_input, seconds, show, tell

UNDECIDED = 3

_EXAMPLES = """\
  pto prove k.pto
  pto prove k.pto --assume 'rows % 16 == 0' --assume 'blocks <= 24'
  pto prove k.pto --property bounds --save broken/
  pto prove --allow-unknown kernels/*.pto
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto prove",
        "Prove that a kernel has no error of these kinds, for all values of its parameters, or show values "
        "that cause one. Exit status: 0 proved, 1 refuted, 3 undecided.",
        _EXAMPLES,
    )
    p.add_argument("inputs", nargs="+", metavar="FILE", help="program text; '-' for standard input")
    p.add_argument(
        "--assume", action="append", default=[], metavar="EXPR",
        help="condition on parameters that every launch satisfies, e.g. 'rows %% 16 == 0' (repeatable)",
    )  # fmt: skip
    p.add_argument(
        "--property", action="append", default=[], metavar="LIST",
        help=f"properties to prove: {', '.join(EVERY)} (default: all)",
    )  # fmt: skip
    p.add_argument("--entry", metavar="NAME", help="prove this function only (default: each kernel entry)")
    p.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="S", help="seconds for each kernel (default: 60)"
    )
    p.add_argument(
        "--subblocks", type=int, choices=(1, SUBBLOCKS), help="vector cores per block, as for pto run"
    )
    p.add_argument("--allow-unknown", action="store_true", help="exit with 0 if nothing is refuted")
    p.add_argument(
        "--save", metavar="DIR", help="write arguments and command of each refutation into a folder"
    )
    p.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    add_target(p, capacity=False)
    add_diagnostics(p)
    options = p.parse_args(arguments)
    wanted = [w.strip() for text in options.property for w in text.split(",") if w.strip()] or list(EVERY)
    unknown = next((w for w in wanted if w not in EVERY), None)
    if unknown is not None:
        p.error(f"argument --property: unknown property '{unknown}', expected one of {', '.join(EVERY)}")
    status, records = OK, list[dict[str, Any]]()
    for path in options.inputs:
        proofs, problems = prove_file(path, options, wanted)
        show(problems, options.diagnostics)
        if has_errors(problems):
            status = FAILED
        for proof in proofs:
            records.append({"file": path, **as_json(proof)})
            if not options.json:
                report(path, proof, options)
            if options.save:
                save(Path(options.save), path, proof, options)
            if proof.verdict == REFUTED:
                status = FAILED
            elif proof.verdict == UNKNOWN and status == OK and not options.allow_unknown:
                status = UNDECIDED
    if options.json:
        print(json.dumps(records, indent=2))
    return status


def prove_file(path: str, options: Namespace, wanted: list[str]) -> tuple[list[Proof], list[Diagnostic]]:
    """Return the proofs of the kernels of a file, and what is wrong with it."""
    source, problems = read_input(path)
    if source is None:
        return [], problems
    module, problems = parse_source(source)
    if module is None or has_errors(problems):
        return [], problems
    proofs: list[Proof] = []
    for entry in [options.entry] if options.entry else _entries(module):
        try:
            proofs.append(
                prove(
                    module, assume=options.assume, entry=entry, target=options.arch, properties=wanted,
                    timeout=options.timeout, subblocks=options.subblocks,
                )
            )  # fmt: skip
        except DiagnosticError as e:
            problems = [*problems, *e.diagnostics]
            break
    return proofs, problems


def _entries(module: Module) -> list[str | None]:
    """Return the kernels of a program, both functions of a mixed one as one; None stands for the only one."""
    functions = {str(f.attr("sym_name")): f for f in module.functions if f.regions and f.regions[0].blocks}
    pairs = halves(functions)
    inside = {f for pair in pairs.values() for f in pair}
    found = [*pairs, *(str(f.attr("sym_name")) for f in entries(functions) if f not in inside)]
    return [*found] if len(found) > 1 else [None]


def report(path: str, proof: Proof, options: Namespace) -> None:
    """Print the verdicts on a kernel."""
    for line in proof.lines:
        tell(f"{visible(path)}: {line}" if line.startswith("@") else line)
    for v in proof.verdicts.values():
        if v.counterexample is not None:
            show([v.counterexample.report], options.diagnostics)
            tell(f"  {v.prop}: {v.counterexample.candidate.why}, for {_values(v)}")
            tell(f"  replay: {command(path, proof, v)}")
            if v.prop == "bounds" and (conditions := suggested(proof, options.assume)):
                shown = " ".join(f"--assume '{c}'" for c in conditions)
                tell(f"  help: the bounds hold with {shown}")
    show(proof.notes, options.diagnostics)


def _values(v: Verdict) -> str:
    assert v.counterexample is not None
    values = v.counterexample.launch.values
    return ", ".join(f"{n} = {x}" for n, x in values.items()) or "every launch"


def command(path: str, proof: Proof, v: Verdict, arrays: str = "") -> str:
    """Return the command that runs a counterexample."""
    assert v.counterexample is not None
    launch = v.counterexample.launch
    words = ["pto", "run", path, "--engine", "reference", "--sanitize", PROPERTIES[v.prop][0]]
    if launch.blocks > 1:
        words += ["--blocks", str(launch.blocks)]
    if launch.subblocks:
        words += ["--subblocks", str(launch.subblocks)]
    return " ".join([*words, "--entry", proof.name, "--", arrays or " ".join(launch.texts)])


def save(folder: Path, path: str, proof: Proof, options: Namespace) -> None:
    """Write the arguments of refutations, and the commands that run them."""
    for v in proof.verdicts.values():
        if v.counterexample is None:
            continue
        into = folder / f"{proof.name}-{v.prop}"
        into.mkdir(parents=True, exist_ok=True)
        words: list[str] = []
        for n, (value, text) in enumerate(
            zip(v.counterexample.launch.args, v.counterexample.launch.texts, strict=True)
        ):
            if isinstance(value, np.ndarray):
                np.save(into / f"{n}.npy", value)
                words.append(f"@{into / f'{n}.npy'}")
            else:
                words.append(text)
        line = command(path, proof, v, " ".join(words))
        write_whole(str(into / "command.txt"), f"{line}\n".encode())


def as_json(proof: Proof) -> dict[str, Any]:
    """Return a proof for programs."""
    verdicts: dict[str, Any] = {}
    for v in proof.verdicts.values():
        found: dict[str, Any] = {"verdict": v.verdict}
        if v.reasons:
            found["reasons"] = [d.as_json() for d in v.reasons]
        if v.counterexample is not None:
            launch = v.counterexample.launch
            found["values"], found["arguments"] = launch.values, launch.texts
            found["blocks"], found["why"] = launch.blocks, v.counterexample.candidate.why
            found["report"] = v.counterexample.report.as_json()
        verdicts[v.prop] = found
    return {
        "kernel": proof.name,
        "verdict": proof.verdict,
        "properties": verdicts,
        "assumptions": proof.assumptions,
        "seconds": round(proof.seconds, 3),
        "questions": proof.questions,
        "states": proof.states,
    }
