"""Arguments of a kernel on a command line: arrays from files, new arrays, and numbers. In a launch with
several ranks, each rank has its own arrays.

    @FILE.npy             an array, copied in; {rank} in the name is the number of the rank
    @+FILE.npy            the same, written back to the file
    DTYPE:DIMS[=FILE]     zeros, saved after the run; with ranks one file per {rank}, or all ranks in one file
    window:DTYPE:DIMS     with ranks: memory that the other ranks can access, initially zero
    context, rank, ranks  with ranks: the communicator, the number of the rank, the number of ranks
    12, 0x10, 1.5         a scalar
"""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, did_you_mean
from ..perf.arrays import read_npy
from .common import write_output

if TYPE_CHECKING:
    from ..engine.ranks import World

_FRESH = re.compile(r"([A-Za-z]\w*):(\d+(?:x\d+)*)(?:=(.+))?$")
_WINDOW = "window:"
#: Placeholder for the number of the rank in a file name.
RANK = "{rank}"
#: Arguments that only a launch with several ranks can have.
OF_RANKS = ("context", "rank", "ranks")


class Argument:
    """One argument: its value for each rank (one value without ranks), and the file for its array after the
    run."""

    def __init__(self, text: str, world: World | None = None) -> None:
        self.text = text
        self.world = world
        self.values: list[Any] = []
        self.path: str | None = None
        self.problem: Diagnostic | None = None
        if text.startswith(_WINDOW) or text in OF_RANKS:
            self._of_ranks(text)
        elif text.startswith("@"):
            back = text.startswith("@+")
            path = text[2:] if back else text[1:]
            self._load(path)
            self.path = path if back else None
        elif m := _FRESH.match(text):
            self._fresh(*m.groups())
        else:
            self._number(text)

    @property
    def count(self) -> int:
        return self.world.ranks if self.world is not None else 1

    def arrays(self) -> list[Any]:
        """Return the array of each rank, or an empty list if the argument is not an array."""
        found = [v[n] if _is_window(v) else v for n, v in enumerate(self.values)]
        return found if all(hasattr(v, "dtype") and hasattr(v, "shape") for v in found) else []

    def _bad(self, message: str, help: str = "") -> None:
        self.problem = Diagnostic("PTO-E2010", f"argument '{self.text}': {message}", help=help)

    def _of_ranks(self, text: str) -> None:
        if self.world is None:
            self._bad("needs a launch with several ranks", "add --ranks N")
        elif text.startswith(_WINDOW):
            self._window(text.removeprefix(_WINDOW))
        else:
            one = {"context": self.world.context, "ranks": self.world.ranks}
            self.values = [one.get(text, rank) for rank in range(self.count)]

    def _window(self, text: str) -> None:
        assert self.world is not None
        m = _FRESH.match(text)
        made = self._zeros(m[1], m[2]) if m is not None else None
        if m is None:
            self._bad(
                "expected window:TYPE:ROWSxCOLS", "write window:TYPE:ROWSxCOLS, such as window:f32:1x256"
            )
        elif made is not None:
            try:
                self.values = [self.world.window(*made)] * self.count
            except ValueError as e:
                what = str(e).partition(":")[0]
                self._bad(what, "ask for less; pto.ranks in Python takes window_bytes")
            self.path = m[3]

    def _load(self, path: str) -> None:
        own = RANK in path and self.world is not None
        for rank in range(self.count if own else 1):
            found = self._read(path.replace(RANK, str(rank)) if own else path)
            if found is None:
                return
            self.values.append(found)
        if not own:  # each rank has a memory of its own
            self.values += [self.values[0].copy() for _ in range(self.count - 1)]
            if self.count > 1 and self.text.startswith("@+"):
                self._bad(
                    "cannot write the arrays of all ranks to one file",
                    f"name one file per rank: @+FILE{RANK}.npy",
                )

    def _read(self, path: str) -> Any:
        try:
            with open(path, "rb") as file:
                if file.read(2) == b"PK":
                    return self._bad(
                        f"'{path}' contains several arrays", "save each array as a .npy file of its own"
                    )
                file.seek(0)
                found = read_npy(file, os.fstat(file.fileno()).st_size)
        except OSError as e:
            return self._bad(f"cannot read '{path}': {(e.strerror or str(e)).lower()}", "check the path")
        except ValueError as e:
            help = "save it with numpy.save, one array per file and no objects"
            return self._bad(f"'{path}' is not a .npy array: {e}", help)
        kind, size = found.dtype.kind, found.dtype.itemsize
        if kind == "V" and found.dtype.names is None and size in (1, 2, 4, 8):
            return found.view(f"u{size}")  # bfloat16 and similar types lose their name in .npy files
        if kind not in "biufc":
            return self._bad(f"'{path}' contains {found.dtype}", "save an array of numbers")
        return found

    def _zeros(self, dtype: str, dims: str) -> tuple[list[int], str] | None:
        """Return the shape and element type of a new array; None after a problem."""
        from ..isa.dtypes import SPELLINGS

        found = SPELLINGS.get(dtype.lower())
        if found is None:
            return self._bad(f"unknown element type '{dtype}'", did_you_mean(dtype, SPELLINGS))
        if len(dims) > 200:
            return self._bad("too many digits", "ask for fewer elements")
        shape = [int(n) for n in dims.split("x")]
        total = 1
        for n in shape:
            total *= n
        if total * found.bits // 8 > 1 << 36:
            return self._bad("larger than 64 GiB", "ask for fewer elements")
        return shape, found.name

    def _fresh(self, dtype: str, dims: str, path: str | None) -> None:
        import numpy as np

        from ..engine.memory import array_of, stored_shape

        made = self._zeros(dtype, dims)
        if made is None:
            return
        shape, name = made
        try:
            self.values = [np.zeros(stored_shape(shape, name), array_of(name)) for _ in range(self.count)]
        except MemoryError:
            return self._bad("larger than the free memory", "ask for fewer elements")
        self.path = path

    def _number(self, text: str) -> None:
        value: float
        try:
            value = int(text, 0)
        except ValueError:
            try:
                value = float(text)
            except ValueError:
                hint = "see 'pto run --help' for the forms of arguments"
                if os.path.exists(text):
                    hint = f"did you mean the array in the file: '@{text}'?"
                elif ":" in text:
                    hint = "write a new array as TYPE:ROWSxCOLS, such as f32:16x64 or f32:16x64=out.npy"
                return self._bad("expected an array or a number", hint)
        self.values = [value] * self.count

    def save(self) -> list[Diagnostic]:
        """Write arrays to their files. With ranks, each rank has its own file, or one file contains the
        stacked arrays."""
        arrays = self.arrays()
        if self.path is None or not arrays:
            return []
        if self.world is None:
            return _write(self.path, arrays[0])
        if RANK in self.path:
            files = [(self.path.replace(RANK, str(rank)), array) for rank, array in enumerate(arrays)]
            return [problem for path, array in files for problem in _write(path, array)]
        import numpy as np

        return _write(self.path, np.stack(arrays))


def _is_window(value: Any) -> bool:
    return hasattr(value, "world") and hasattr(value, "offset")


def _write(path: str, array: Any) -> list[Diagnostic]:
    import numpy as np

    data = io.BytesIO()
    plain = array.dtype.kind in "fiub" and array.dtype.isbuiltin == 1
    np.save(data, array if plain else array.view(f"u{array.dtype.itemsize}"))
    return write_output(path, data.getvalue())
