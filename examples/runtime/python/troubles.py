"""Three things that go wrong with task graphs, and how they are found: a deadlock, a hazard, a lucky order.

python troubles.py
"""

import numpy as np

import pto
from pto import runtime


def fill(out: np.ndarray, value: int) -> None:
    out[:] = value


def copy(x: np.ndarray, out: np.ndarray) -> None:
    out[:] = x


def double(x: np.ndarray) -> None:
    x *= 2


FILL = runtime.kernel(fill, "out scalar")
COPY = runtime.kernel(copy, "in out")
DOUBLE = runtime.kernel(double, "inout")


def large_scope(rt: runtime.Runtime) -> None:
    """A scope of 20 tasks: none of them gives its slot back before the scope ends."""
    with rt.scope():
        for i in range(20):
            rt.submit(FILL, rt.tensor(16), i)


def overwrite(rt: runtime.Runtime, out: np.ndarray) -> None:
    """`x` is read, then doubled. Nothing makes the second wait for the first: readers are not tracked."""
    x = rt.tensor(16)
    rt.submit(FILL, x, 21)
    rt.submit(COPY, x, out)
    rt.submit(DOUBLE, x)


def deadlock() -> None:
    print("== A scope that does not fit in the task ring")
    try:
        runtime.run(large_scope, block_dim=1, task_window=16)
    except pto.DiagnosticError as e:
        print(e)


def hazard() -> None:
    print("\n== A task that overwrites what another one reads")
    out = np.zeros(16, np.float32)
    for found in runtime.run(overwrite, out, block_dim=3, check_hazards=True).hazards:
        print(found)
    left = runtime.run(overwrite, out, block_dim=3, check_hazards=True, track_war=True).hazards
    print(f"with track_war: {len(left)} hazards, out is {out[0]:g}")


def replay() -> None:
    print("\n== The same graph in many orders, each of which can be repeated")
    seen: dict[float, int] = {}
    for seed in range(40):
        out = np.zeros(16, np.float32)
        runtime.run(overwrite, out, block_dim=3, seed=seed)
        seen.setdefault(float(out[0]), seed)
    for value, seed in sorted(seen.items()):
        again = np.zeros(16, np.float32)
        runtime.run(overwrite, again, block_dim=3, seed=seed)
        print(f"out is {value:g} with seed {seed}, and again {again[0]:g}")


if __name__ == "__main__":
    deadlock()
    hazard()
    replay()
