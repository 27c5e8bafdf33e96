"""Run kernels of this folder on NumPy arrays, and compare with what NumPy makes of the same data.

python 11_run.py
"""

from pathlib import Path

import numpy as np

import pto

HERE = Path(__file__).parent
rng = np.random.default_rng(0)

# A kernel is a function of a parsed program; arrays are used in place, so results are in `c` afterwards.
a, b = rng.standard_normal((2, 64, 128), dtype=np.float32)
c = np.zeros_like(a)
add = pto.kernel(HERE / "02_manual_flags.pto")
add(a, b, c)
print("vec_add_manual", np.array_equal(c, a + b))

# Cube and vector cores of one mixed kernel.
x, w = rng.standard_normal((2, 64, 64)).astype(np.float16)
product, y = np.zeros((2, 64, 64), np.float32)
pto.kernel(HERE / "07_mixed_sections.pto")(x, w, product, y)
print("matmul_double", np.allclose(y, 2.0 * (x.astype(np.float32) @ w.astype(np.float32)), atol=1e-4))

# Many blocks; each takes the tiles that are its own.
n = 100_000
p, q = rng.standard_normal((2, n), dtype=np.float32)
s = np.zeros_like(p)
pto.kernel(HERE / "kernels/vector_add.pto")(p, q, s, n, blocks=20)
print("vector_add", np.array_equal(s, p + q))

# `run` returns what sanitizers found instead of raising it.
found = pto.kernel(HERE / "12_race.pto").run(a, b, c, sanitize="all")
print("vec_add_race", [d.code for d in found.diagnostics])
