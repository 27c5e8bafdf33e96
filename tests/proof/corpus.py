"""`make prove-corpus`: verdicts on all corpora as a table.

Planted faults and their good twins, examples, mutants of all of them, and proved kernels at random parameters.
`--record` keeps the results of a run that is cut off, `--part 2/3` takes every third piece of work.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from time import monotonic, process_time

import numpy as np
from tests.proof.mutants import launches_of, missed, mutants
from tests.sanitize import corpus

import pto
from pto.ir.types import PtrType
from pto.proof.findings import PROPERTIES
from pto.proof.prove import PROVED, REFUTED, UNKNOWN, Proof, prove
from pto.proof.replay import is_of

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Kernels of the examples, and the conditions in their comments.
ASSUMED: dict[str, tuple[str, ...]] = {
    "vector_add": (),
    "softmax": (),
    "layer_norm": ("rows % 16 == 0",),
    "topk": ("cols % 2048 == 0",),
    "quantised_matmul": ("rows == 128 * blocks",),
    "gemm": ("m % 128 == 0", "n % 128 == 0", "k % 128 == 0", "k > 0"),
}
#: Limits for kernels that a buffer of the core bounds: without them, large numbers refute the kernels.
LIMITED: dict[str, tuple[str, ...]] = {
    "08_vector_micro": ("n <= 8192",),
    "chain": ("n <= 8192",),
    "micro_layer_norm": ("n <= 32768", "rows <= 1000"),
    "micro_softmax": ("n <= 32768", "rows <= 1000"),
    "row_sum": ("n <= 32768", "rows <= 32768"),
    "to_bf16": ("n <= 32768",),
}
_SECONDS = 20.0
#: Mutants of one piece of work.
_PIECE = 8


@dataclass
class Tally:
    """Results of one piece of work, and findings that must not be."""

    #: Corpus and verdict of each program.
    verdicts: list[tuple[str, str]] = field(default_factory=list)
    #: Processor seconds of each proof.
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    #: Digests of mutants, so that equal ones count once.
    mutants: list[str] = field(default_factory=list)
    launches: int = 0

    def prove(self, what: str, program: object, **options: object) -> Proof:
        started = process_time()
        proof = prove(program, **options)  # type: ignore[arg-type]
        self.seconds.append(process_time() - started)
        self.verdicts.append((what, proof.verdict))
        self.reasons += [
            d.message.partition(": ")[2][:60] for v in proof.verdicts.values() for d in v.reasons[:1]
        ]
        return proof


def path_of(name: str) -> Path:
    """Return the program of a name; `micro_` tells names of examples/micro from those of kernels."""
    program = corpus.PROGRAMS / (f"{name}.pto" if name.endswith(".bad") else f"{name}.good.pto")
    if program.exists():
        return program
    if name.startswith("micro_"):
        return EXAMPLES / "micro" / f"{name.removeprefix('micro_')}.pto"
    return next(iter([*EXAMPLES.rglob(f"{name}.pto"), *Path(__file__).parent.glob(f"{name}.pto")]))


def planted(name: str, tally: Tally) -> None:
    """Count the verdicts on a planted fault and its twin: those on the properties that the fault breaks."""
    bad, good = corpus.load(f"{name}.bad"), corpus.load(f"{name}.good")
    ranks = "ranks, " * ("ranks" in bad.options)
    broken = [p for p in PROPERTIES if any(is_of(p, c.code) for c in bad.checks)]
    for program in (bad, good):
        kind = program.name.rpartition(".")[2]
        most = int(str(program.options.get("blocks", 0)))
        limits = [f"blocks <= {most}"] if most else []
        if kind == "bad" and not ranks:  # the arrays of its launch
            limits += [
                f"{a.name}.size == {value.nbytes * 8 // (a.type.bits or 8)}"
                for a, value in zip(program.kernel.args, program.values(), strict=False)
                if isinstance(a.type, PtrType) and a.type.space == "gm" and isinstance(value, np.ndarray)
            ]
        proof = tally.prove(
            f"{ranks}{kind}, all properties", pto.parse(corpus.PROGRAMS / f"{program.name}.pto"),
            timeout=_SECONDS, assume=limits, subblocks=program.options.get("subblocks"),
        )  # fmt: skip
        for prop in broken:
            tally.verdicts.append((f"{ranks}{kind}, the broken property", proof[prop].verdict))
            if kind == "bad" and proof[prop].ok:
                tally.wrong.append(f"{program.name}: {prop} is proved")
        for v in proof.verdicts.values():
            if kind == "good" and v.counterexample is not None and own_launch(program, v):
                tally.wrong.append(f"{program.name}: {v.prop} is refuted for its own launch")


def own_launch(program: corpus.Program, v: object) -> bool:
    """Return whether a counterexample has the numbers of the launch of a program."""
    launch = v.counterexample.launch  # type: ignore[attr-defined]
    mine = [str(n) for n in launch.args if isinstance(n, int)]
    given = [a for a in program.arguments if a.lstrip("-").isdigit()]
    same = launch.blocks == program.options.get("blocks", 1) and "ranks" not in program.options
    return same and launch.subblocks == program.options.get("subblocks") and mine == given


def example(name: str, tally: Tally) -> None:
    path = path_of(name)
    if not any(d.severity == "error" for d in pto.verify(pto.parse(path))):
        tally.prove("examples", str(path), assume=ASSUMED.get(name, ()), timeout=60)


def public(name: str, tally: Tally) -> None:
    """Count the verdicts on a program of other people; those that `pto check` refuses do not count."""
    try:
        proof = tally.prove("public programs", pto.parse(Path(name)), timeout=_SECONDS)
    except pto.DiagnosticError:
        return
    for v in proof.verdicts.values():
        if v.counterexample is not None:
            tally.reasons.append(f"{v.prop} refuted: {v.counterexample.candidate.why[:40]}")


def shuffled(name: str) -> list[str]:
    """Return the mutants of a program in an order that depends on its name alone."""
    every = [m.text for m in mutants(path_of(name).read_text(encoding="utf-8"))]
    random.Random(name).shuffle(every)
    return every


def mutated(name: str, tally: Tally) -> None:
    """Count the verdicts on mutants; what a launch breaks must not be proved."""
    name, _, first = name.partition(" from ")
    assume = (*ASSUMED.get(name, ()), *LIMITED.get(name, ()))
    for text in shuffled(name)[int(first) :][:_PIECE]:
        try:
            proof = tally.prove("mutants", pto.parse(text), assume=assume, timeout=_SECONDS)
            wrong = missed(text, proof, assume, count=6)
        except pto.DiagnosticError:
            continue
        tally.mutants.append(sha256(text.encode()).hexdigest()[:16])
        if wrong:
            tally.wrong.append(f"{name} {tally.mutants[-1]}: {', '.join(sorted(wrong))} missed")


def sampled(name: str, tally: Tally) -> None:
    """Run a kernel with properties that are proved at random parameters, under random schedules."""
    path = path_of(name)
    assume = (*ASSUMED.get(name, ()), *LIMITED.get(name, ()))
    text = path.read_text(encoding="utf-8")
    try:
        proof = prove(pto.parse(text), assume=assume, timeout=60)
    except pto.DiagnosticError:
        return
    proved = {v.prop for v in proof.verdicts.values() if v.ok}
    if proved:
        tally.verdicts.append(("kernels at random parameters", proof.verdict))
        for broken in launches_of(text, proof, assume, count=100):
            tally.launches += 1
            for prop in broken & proved:
                tally.wrong.append(f"{path.name}: {prop} is proved, and broken by a launch")


def work(wanted: list[str], files: list[str], most: int) -> Iterator[tuple[str, str]]:
    paths = sorted(p for d in (".", "kernels", "micro") for p in (EXAMPLES / d).glob("*.pto"))
    kernels = ["micro_" * (p.parent.name == "micro" and p.stem in ASSUMED) + p.stem for p in paths]
    kernels = [k for k in kernels if "." not in k]
    single = [n for n in corpus.NAMES if not n.startswith("rank_")]
    pieces = (
        f"{name} from {n}"
        for name in ["slots", *kernels, *single, *[f"{n}.bad" for n in single]]
        for n in range(0, min(most, len(shuffled(name))), _PIECE)
    )
    for kind, names in (
        ("planted", corpus.NAMES),
        ("example", kernels),
        ("sampled", ["slots", *kernels]),
        ("public", files),
        ("mutated", pieces),
    ):
        for name in names:
            if (not wanted and not files) or kind == "public" or {kind, name.split()[0]} & {*wanted}:
                yield kind, name


def count(item: tuple[str, str]) -> Tally:
    kind, name = item
    tally = Tally()
    how = {"planted": planted, "example": example, "mutated": mutated, "sampled": sampled, "public": public}
    try:
        how[kind](name, tally)
    except Exception as e:
        tally.wrong.append(f"{kind} {name}: {type(e).__name__}: {e}")
    return tally


def tables(every: list[Tally]) -> Iterator[str]:
    """Yield the lines of a report."""
    counts = Counter(one for t in every for one in t.verdicts)
    yield "| corpus | proved | refuted | unknown | decided |\n| --- | --- | --- | --- | --- |"
    for what in dict.fromkeys(key for key, _ in sorted(counts)):
        proved, refuted, unknown = (counts[what, v] for v in (PROVED, REFUTED, UNKNOWN))
        part = (proved + refuted) / max(1, proved + refuted + unknown)
        yield f"| {what} | {proved} | {refuted} | {unknown} | {part:.0%} |"
    for reason, n in Counter(r for t in every for r in t.reasons).most_common(12):
        yield f"  {n} {reason}"
    found = sorted(n for t in every for n in t.seconds)
    if found:
        late = found[int(len(found) * 0.95)]
        yield f"processor seconds: median {statistics.median(found):.2f}, 95 % {late:.2f}, most {found[-1]:.1f}"
    yield f"{len({m for t in every for m in t.mutants})} different mutants, {sum(t.launches for t in every)} launches"


def main() -> int:
    started = monotonic()
    p = argparse.ArgumentParser("python -m tests.proof.corpus", description=__doc__)
    p.add_argument("names", nargs="*", help="kinds of work (planted, example, sampled, mutated) or programs")
    p.add_argument("--mutants", type=int, default=1000, metavar="N", help="most mutants of a program")
    p.add_argument("--part", default="1/1", metavar="K/N", help="the K-th of N parts of the work")
    p.add_argument(
        "--record", type=Path, metavar="FILE", help="keep results, and go on from those in the file"
    )
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    p.add_argument("--public", nargs="*", default=[], metavar="FILE", help="programs of other people")
    p.add_argument("--seconds", type=float, default=float("inf"), help="start no more work after this time")
    options = p.parse_args()
    part, parts = map(int, options.part.split("/"))
    done: dict[str, Tally] = {}
    if options.record is not None and options.record.exists():
        for line in options.record.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            record["tally"]["verdicts"] = [tuple(v) for v in record["tally"]["verdicts"]]
            done[record["item"]] = Tally(**record["tally"])
    every = list(work(options.names, options.public, options.mutants))[part - 1 :: parts]
    waiting = [item for item in every if " ".join(item) not in done]
    with ProcessPoolExecutor(options.jobs) as pool:
        for n in range(0, len(waiting), 4 * options.jobs):
            if monotonic() - started > options.seconds:
                break
            some = waiting[n : n + 4 * options.jobs]
            for item, tally in zip(some, pool.map(count, some), strict=True):
                done[" ".join(item)] = tally
                for line in tally.wrong:
                    print("WRONG", line, flush=True)
                if options.record is not None:
                    with options.record.open("a", encoding="utf-8") as f:
                        f.write(json.dumps({"item": " ".join(item), "tally": asdict(tally)}) + "\n")
    print(*tables(list(done.values())), sep="\n")
    wrong = sum(len(t.wrong) for t in done.values())
    print(f"{len(every)} pieces of work, {len(done)} done, {wrong} wrong, {monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
