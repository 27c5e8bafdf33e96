"""As much of torch as the programs of these tests use, on NumPy: written to `torch/__init__.py` of a folder."""

TEXT = '''"""Arrays that look like torch's."""

import numpy as np

float32, float64, int32, int64 = map(np.dtype, ("float32", "float64", "int32", "int64"))


class Tensor(np.ndarray):
    def clone(self):
        return self.copy()

    def is_floating_point(self):
        return self.dtype.kind == "f"

    def to(self, dtype):
        return self.astype(dtype)

    def nonzero(self):
        return np.argwhere(np.asarray(self))

    def numel(self):
        return self.size


def _made(function):
    return lambda shape, *args, dtype=float32: function(shape, *args).astype(dtype).view(Tensor)


zeros, ones, full = _made(np.zeros), _made(np.ones), _made(np.full)
randn = _made(np.random.default_rng(0).standard_normal)
isclose = lambda a, b, rtol, atol: np.isclose(a, b, rtol, atol).view(Tensor)
isnan = lambda a: np.isnan(a)
'''
