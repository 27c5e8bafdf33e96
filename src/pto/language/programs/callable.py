"""The common part of programs that were compiled in this process or loaded from a folder: their parameters
and calls.

compiled(a, b, out)     all parameters: arrays are used in place
out = compiled(a, b)    without outputs: they are made and returned
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...ir.assumptions import Assumption
from ...isa.record import Record
from ..dtypes import DataType
from ..enums import BackendType
from ..ir import IN, OUT
from . import arguments

if TYPE_CHECKING:
    from ...engine.elements import Array
    from ...isa.profiles import Profile
    from ...runtime.runs import Run
    from ..ir import Function
    from .lower import LoweredProgram


class CallParam(Record):
    """A parameter. `shape` is None for a number; a name in `shape` is an extent that each call determines."""

    name: str
    dtype: DataType | None
    shape: tuple[int | str, ...] | None
    direction: str


class CallableProgram:
    """A program for given shapes."""

    name: str
    platform: str
    params: list[CallParam]
    from_dir: ClassVar[Callable[..., CallableProgram]]  # load a saved program; defined in folder.py

    @property
    def output_dir(self) -> Path:
        """Return the folder of the program; save the program if it has none."""
        raise NotImplementedError

    def launch(self, values: Sequence[object], config: object = None) -> None:
        """Run the program on a value per parameter."""
        raise NotImplementedError

    @property
    def backend_type(self) -> BackendType:
        return BackendType.Ascend950 if self.platform.startswith("a5") else BackendType.Ascend910B

    @property
    def param_names(self) -> list[str]:
        return [p.name for p in self.params]

    def _get_metadata(self) -> tuple[list[CallParam], None, None]:
        """Return the parameters, in the form that pypto's harnesses expect."""
        return self.params, None, None

    @property
    def output_indices(self) -> list[int]:
        """Return the indices of the parameters that are only written."""
        return [i for i, p in enumerate(self.params) if p.direction == OUT and p.shape is not None]

    @property
    def has_return(self) -> bool:
        return bool(self.output_indices)

    @property
    def orchestration_names(self) -> list[str]:
        return [self.name]

    def __getitem__(self, name: str) -> CallableProgram:
        if name != self.name:
            raise KeyError(f"unknown orchestration {name!r}; expected {', '.join(self.orchestration_names)}")
        return self

    def __call__(self, *args: object, config: object = None) -> Any:
        """Run the program. Of `config`, only options for the records of a run have an effect."""
        outputs = self.output_indices
        if len(args) == len(self.params):
            program = self.made_for(args)
            program.check(args)
            program.launch(list(args), config)
            return None
        if len(args) != len(self.params) - len(outputs) or not outputs:
            wanted = f"{len(self.params)} arguments"
            if outputs:
                wanted += f", or {len(self.params) - len(outputs)} to get the outputs as results"
            raise TypeError(f"{self.name}({', '.join(self.param_names)}) takes {wanted}; got {len(args)}")
        given = iter(args)
        values = [None if i in outputs else next(given) for i in range(len(self.params))]
        made = self._completed(values)
        self.check(made)
        self.launch(made, config)
        found = [made[i] for i in outputs]
        return found[0] if len(found) == 1 else tuple(found)

    def made_for(self, values: Sequence[object]) -> CallableProgram:
        """Return the program for these arguments. This is the program itself, or a variant of it if its
        parameters use one name for two extents, and these differ in the arguments.
        """
        return self

    def _completed(self, values: Sequence[object]) -> list[object]:
        """Add an array of zeros for each missing value: torch or NumPy, as the first given array."""
        extents: dict[str, int] = {}
        arrays = [v for v in values if arguments.is_array(v)]
        for p, v in zip(self.params, values, strict=True):
            if v is not None and p.shape is not None:
                extents.update(
                    (d, n)
                    for d, n in zip(p.shape, getattr(v, "shape", ()), strict=False)
                    if isinstance(d, str)
                )
        out: list[object] = []
        for p, v in zip(self.params, values, strict=True):
            if v is None:
                assert p.shape is not None and p.dtype is not None
                shape = [extents[d] if isinstance(d, str) else d for d in p.shape]
                v = zeros(shape, p.dtype, arrays[0] if arrays else None)
            out.append(v)
        return out

    @property
    def assumed(self) -> Sequence[Assumption]:
        """Return the conditions that every call satisfies."""
        return ()

    def check(self, values: Sequence[object]) -> None:
        """Reject values that do not match the parameters."""
        if len(values) != len(self.params):
            names = ", ".join(self.param_names)
            raise TypeError(f"{self.name}({names}) takes {len(self.params)} arguments, got {len(values)}")
        extents: dict[str, int] = {}
        for p, v in zip(self.params, values, strict=True):
            if p.shape is None:
                continue
            if not arguments.is_array(v):
                raise arguments.refuse(
                    f"expected a tensor for '{p.name}' of {self.name}", got=type(v).__name__
                )
            self._check_array(p, arguments.as_numpy(v), arguments.element_type(v), extents)
        self.check_assumed(values)

    def check_assumed(self, values: Sequence[object]) -> None:
        """Reject values that break a condition of the program."""
        if not self.assumed:
            return
        named: dict[str, int] = {}
        for p, v in zip(self.params, values, strict=True):
            if p.shape is None and isinstance(v, int):
                named[p.name] = v
            for d, n in zip(p.shape or (), getattr(v, "shape", ()), strict=False):
                if isinstance(d, str):
                    named[d] = int(n)
        for one in self.assumed:
            if named.keys() >= {*one.names} and not one.holds(named):
                got = ", ".join(f"{n} = {named[n]}" for n in one.names)
                raise arguments.refuse(f"{self.name} assumes {one.text}", got=got)

    def _check_array(
        self, p: CallParam, array: Array, dtype: DataType | None, extents: dict[str, int]
    ) -> None:
        where = f"'{p.name}' of {self.name}"
        wanted = p.dtype
        assert wanted is not None and p.shape is not None
        alike = dtype is not None and dtype.is_int and wanted.is_int and dtype.bits == wanted.bits
        if dtype != wanted and not alike and {dtype and dtype.isa, wanted.isa} != {"u8", "i1"}:
            raise arguments.refuse(f"expected {wanted.isa} for {where}", got=str(array.dtype))
        shape = arguments.extents_of(array, dtype)
        sizes = [extents.setdefault(d, n) if isinstance(d, str) else d
                 for d, n in zip(p.shape, shape, strict=False)]  # fmt: skip
        if shape != sizes or len(p.shape) != array.ndim:
            raise arguments.refuse(f"shape of {where} does not match", expected=str(list(p.shape)),
                                   got=str(list(array.shape)))  # fmt: skip
        arguments.in_place(array, p.name, p.direction != IN)

    def __fspath__(self) -> str:
        return os.fspath(self.output_dir)


def zeros(shape: Sequence[int], dtype: DataType, like: object = None) -> Any:
    """Return an array of zeros: a torch tensor if `like` is a torch tensor, else a NumPy array."""
    import numpy as np

    from ...engine.elements import ARRAY_DTYPES

    if type(like).__module__.partition(".")[0] == "torch":
        torch = sys.modules["torch"]
        name = next((n for n, isa in arguments.NAMES.items() if isa == dtype.isa and hasattr(torch, n)), None)
        if name is not None:
            return torch.zeros(tuple(shape), dtype=getattr(torch, name))
    return np.zeros(tuple(shape), ARRAY_DTYPES[dtype.isa])


class SavableProgram(CallableProgram):
    """A program that was compiled in this process and can be saved to a folder."""

    lowered: LoweredProgram
    entry: Function
    profile: Profile

    def execute(self, values: Sequence[object], **options: Any) -> Run:
        """Run the program on a value per parameter, and return the run."""
        raise NotImplementedError
