"""`make prove-corpus`: verdicts on all corpora as a table.

Planted faults and their good twins, examples, mutants of all of them, and proved kernels at random parameters.
`PROGRAMS` limits the programs by parts of their names, `MUTANTS` the mutants of each.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from tests.proof.mutants import missed, mutants
from tests.sanitize import corpus

import pto
from pto.proof.findings import PROPERTIES
from pto.proof.prove import PROVED, REFUTED, Proof, prove
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
#: Bad programs that give an array smaller than their own views say: a proof assumes that arrays hold these.
SMALL_ARRAYS = ("gm_beyond_array", "gm_stride", "pointer_arithmetic")
_SECONDS = 20.0


@dataclass
class Tally:
    """Counts of one program, and findings that must not be."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, proof: Proof) -> None:
        self.counts[what, proof.verdict] += 1
        self.seconds.append(proof.seconds)
        for v in proof.verdicts.values():
            for d in v.reasons[:1]:
                self.reasons[d.message.partition(": ")[2][:60]] += 1


def planted(name: str, tally: Tally) -> None:
    """Count the verdicts on a planted fault and its twin: those on the properties that the fault breaks."""
    bad, good = corpus.load(f"{name}.bad"), corpus.load(f"{name}.good")
    ranks = "ranks, " * ("ranks" in bad.options)
    broken = [p for p in PROPERTIES if any(is_of(p, c.code) for c in bad.checks)]
    for program in (bad, good):
        kind = program.name.rpartition(".")[2]
        most = int(str(program.options.get("blocks", 0)))
        proof = prove(
            pto.parse(corpus.PROGRAMS / f"{program.name}.pto"), timeout=_SECONDS,
            assume=[f"blocks <= {most}"] if most else (), subblocks=program.options.get("subblocks"),
        )  # fmt: skip
        tally.add(f"{ranks}{kind}, all properties", proof)
        for prop in broken:
            tally.counts[f"{ranks}{kind}, the broken property", proof[prop].verdict] += 1
            if kind == "bad" and proof[prop].ok and name not in SMALL_ARRAYS:
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
    path = next(EXAMPLES.rglob(f"{name}.pto"))
    try:
        proof = prove(str(path), assume=ASSUMED.get(name, ()), timeout=60)
    except pto.DiagnosticError:
        return
    tally.add("examples", proof)


def mutated(name: str, tally: Tally) -> None:
    """Count the verdicts on mutants; what a launch breaks must not be proved."""
    at = corpus.PROGRAMS / f"{name}.good.pto"
    path = (
        at
        if at.exists()
        else next(iter([*EXAMPLES.rglob(f"{name}.pto"), *Path(__file__).parent.glob(f"{name}.pto")]))
    )
    assume = ASSUMED.get(name, ())
    every = list(mutants(path.read_text(encoding="utf-8")))
    random.Random(name).shuffle(every)
    for mutant in every[: int(os.environ.get("MUTANTS", "1000"))]:
        try:
            proof = prove(pto.parse(mutant.text), assume=assume, timeout=_SECONDS)
            wrong = missed(mutant.text, proof, assume, count=6)
        except pto.DiagnosticError:
            continue
        tally.add("mutants", proof)
        if wrong:
            tally.wrong.append(
                f"{path.name}:{mutant.line}: {mutant.change}: {', '.join(sorted(wrong))} missed"
            )


def sampled(name: str, tally: Tally) -> None:
    """Run a proved kernel with random parameters."""
    path = next(iter([*EXAMPLES.rglob(f"{name}.pto"), *Path(__file__).parent.glob(f"{name}.pto")]))
    assume = ASSUMED.get(name, ())
    text = path.read_text(encoding="utf-8")
    proof = prove(pto.parse(text), assume=assume, timeout=60)
    if proof.verdict == PROVED:
        tally.counts["proved kernels, sampled", PROVED] += 1
        for prop in missed(text, proof, assume, count=100):
            tally.wrong.append(f"{path.name}: {prop} is proved, and broken by a launch")


def work() -> Iterator[tuple[str, str]]:
    wanted = os.environ.get("PROGRAMS", "").split()
    kernels = [p.stem for p in sorted(EXAMPLES.glob("*.pto")) + sorted((EXAMPLES / "kernels").glob("*.pto"))]
    kernels = [k for k in kernels if "." not in k]
    for kind, names in (
        ("planted", corpus.NAMES),
        ("example", kernels),
        ("sampled", ["slots", *ASSUMED]),
        ("mutated", ["slots", *corpus.NAMES, *kernels]),
    ):
        for name in names:
            if not wanted or any(w in (kind, name) for w in wanted):
                yield kind, name


def count(item: tuple[str, str]) -> Tally:
    kind, name = item
    tally = Tally()
    try:
        {"planted": planted, "example": example, "mutated": mutated, "sampled": sampled}[kind](name, tally)
    except Exception as e:
        tally.wrong.append(f"{kind} {name}: {type(e).__name__}: {e}")
    return tally


def main() -> int:
    started, total = monotonic(), Tally()
    with ProcessPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        for tally in pool.map(count, list(work())):
            total.counts += tally.counts
            total.reasons += tally.reasons
            total.seconds += tally.seconds
            total.wrong += tally.wrong
            for line in tally.wrong:
                print("WRONG", line, flush=True)
    print("| corpus | proved | refuted | unknown | decided |\n| --- | --- | --- | --- | --- |")
    for what in dict.fromkeys(key for key, _ in sorted(total.counts)):
        proved, refuted, unknown = (total.counts[what, v] for v in (PROVED, REFUTED, "unknown"))
        part = (proved + refuted) / max(1, proved + refuted + unknown)
        print(f"| {what} | {proved} | {refuted} | {unknown} | {part:.0%} |")
    for reason, n in total.reasons.most_common(12):
        print(f"  {n} {reason}")
    if total.seconds:
        found = sorted(total.seconds)
        late = found[int(len(found) * 0.95)]
        print(f"seconds: median {statistics.median(found):.2f}, 95 % {late:.2f}, most {found[-1]:.1f}")
    print(f"{len(total.wrong)} wrong, {monotonic() - started:.0f} s")
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
