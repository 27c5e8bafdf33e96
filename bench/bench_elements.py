"""Element conversion: native loops against the casts of NumPy and ml_dtypes, in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from pto.engine import elements

COUNT = 1 << 20


def best(f: Callable[[], object], repeat: int = 7) -> float:
    """Seconds of the fastest of several runs."""
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


def line(what: str, ours: Callable[[], object], peer: Callable[[], object], name: str) -> None:
    a, b = best(ours), best(peer)
    print(f"{what:28} {COUNT / a / 1e6:8.0f} M/s   {b / a:6.1f} x {name}")


def main() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(COUNT).astype(np.float32)
    for name in ("f16", "bf16", "f8e4m3", "f8e5m2"):
        peer = elements.ARRAY_DTYPES[name]
        codes = elements.encode(name, values)
        line(
            f"encode {name}",
            lambda n=name: elements.encode(n, values),
            lambda p=peer: values.astype(p),
            "cast",
        )
        line(
            f"decode {name}",
            lambda n=name, c=codes: elements.decode(n, c),
            lambda p=peer, c=codes: c.view(p).astype(np.float32),
            "cast",
        )


if __name__ == "__main__":
    main()
