"""A longer search than the tests can afford: `python -m tests.fuzz.run --minutes 10 [--seed 0] [--keep DIR]`.

Mutants run until the time is over. Each kind of failure is shown once, cut down to a small input, which `--keep`
also writes to a folder; such an input belongs in tests/regress together with the fix.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from .mutations import mutant, programs, shrink
from .properties import check


def failure(data: bytes) -> tuple[str, str] | None:
    """What goes wrong with an input: the place where it surfaces, and the message."""
    try:
        check(data)
    except RecursionError:
        return "RecursionError", ""
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        kind = str(error).partition(":")[0] if isinstance(error, AssertionError) else type(error).__name__
        return f"{kind} at {Path(last.filename).name}:{last.lineno}", str(error)
    return None


def main() -> int:
    p = argparse.ArgumentParser(
        prog="python -m tests.fuzz.run", description="Fuzz the text tools for a while."
    )
    p.add_argument("--minutes", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=0, help="first seed (default: 0)")
    p.add_argument("--keep", type=Path, help="folder for the inputs that fail")
    options = p.parse_args()
    end = time.monotonic() + 60 * options.minutes
    seen: Counter[str] = Counter()
    seed = options.seed
    while time.monotonic() < end:
        data = mutant(seed, programs())
        found = failure(data)
        if found:
            where, message = found
            seen[where] += 1
            if seen[where] == 1:
                small = shrink(data, lambda d, where=where: (failure(d) or ("",))[0] == where)
                print(
                    f"seed {seed}: {where}\n{message[:500]}\n---- {len(small)} bytes\n{small.decode('utf-8', 'replace')}\n"
                )
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"seed-{seed}.pto").write_bytes(small)
        seed += 1
    print(f"{seed - options.seed} inputs, {sum(seen.values())} failures of {len(seen)} kinds")
    for where, count in seen.most_common():
        print(f"{count:6}  {where}")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
