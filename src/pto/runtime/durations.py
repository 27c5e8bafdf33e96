"""Durations of kernels in virtual time: from a table, a function, a measured run, or the cost model.

A table is a mapping of names of kernels (or their numbers) to microseconds, or a file: CSV with a column
`kernel` and one of `us` and `cycles`, TOML with a table `durations`, or the records of a run (`.npz`, or
`.json` of a device's profile or of ours). Records give the mean duration of each kernel. A function is called
for each task (with a `TaskInfo`), once for the same kernel, shapes and numbers, and returns microseconds or
None. The cost model gives the remaining durations: of programs in advance (`modelled`), of C++ kernels from
the traces of their tasks (`task_times`).
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from ..diag import Diagnostic, DiagnosticError
from ..isa.timing import shown
from ..perf.tables import CORE_TYPES
from .extension import extension
from .overheads import read_toml
from .tensors import DTYPES, signed, values_of


class Executed(Protocol):
    """The microseconds of executed tasks; None for a block without a trace."""

    def us(self, task: int, block: int) -> float | None: ...


class TaskInfo(NamedTuple):
    """A task whose kernel is about to start. `args` has the shape and element type of a tensor and the
    integer of a number (a float is its bits); in a graph with explicit edges, integers only."""

    name: str
    func_id: int
    core: str
    args: tuple[Any, ...]
    block: int = 0
    blocks: int = 1


#: Durations as users pass them.
Given = Mapping[Any, Any] | Callable[[TaskInfo], "float | None"] | str | os.PathLike[str] | None
#: Returns the microseconds of a task from its slots, the bits that describe them, and its number of blocks.
Model = Callable[[list[int], int, int, int], "float | None"]

_LONGEST = 1e12  # microseconds: eleven days


class Durations:
    """Durations of the kernels of a run. `says` names their origin."""

    def __init__(self, given: Given = None, clock_mhz: float = 1850.0, says: str = "") -> None:
        self._table: dict[Any, float] = {}
        self._call: Callable[[TaskInfo], float | None] | None = None
        self._clock = clock_mhz
        self.says = says
        if given is None:
            self.says = says or "the cost model"
        elif isinstance(given, Mapping):
            self._table = {k: self._us(v, f"durations of {k!r}") for k, v in given.items()}
            self.says = says or "a table"
        elif callable(given):
            self._call = given
            self.says = says or "a function"
        else:
            self._read(os.fspath(given))
        self._models: dict[int, Model] = {}
        self._timed: dict[int, Executed] = {}
        self._names: dict[int, str] = {}

    # -- files -----------------------------------------------------------------------------------------

    def _read(self, path: str) -> None:
        self.says = self.says or path
        kind = os.path.splitext(path)[1].lower()
        if kind == ".toml":
            table = read_toml(path).get("durations")
            if not isinstance(table, dict):
                raise refuse(f"{path}: missing table [durations]", "[durations], then kernel = microseconds")
            self._table = {k: self._us(v, f"{path}: {k}") for k, v in table.items()}
        elif kind in (".json", ".npz"):
            self._table = measured(path)
        elif kind == ".csv":
            self._read_csv(path)
        else:
            raise refuse(
                f"unknown format of a table of durations: '{path}'", "use .csv, .toml, .json or .npz"
            )

    def _read_csv(self, path: str) -> None:
        try:
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(line for line in file if not line.lstrip().startswith("#")))
        except OSError as e:
            problem = Diagnostic("PTO-E0001", f"cannot read '{path}': {(e.strerror or str(e)).lower()}")
            raise DiagnosticError([problem]) from None
        except (UnicodeDecodeError, csv.Error) as e:
            raise refuse(f"{path}: {e}") from None
        for row in rows:
            name, unit = row.get("kernel"), "us" if row.get("us") else "cycles"
            if not name or not row.get(unit):
                raise refuse(f"{path}: a line lacks its kernel, or both us and cycles", "kernel,us")
            try:
                number = float(row[unit])
            except ValueError:
                raise refuse(f"{path}: expected a number for {unit} of {name}, got '{row[unit]}'") from None
            self._table[name.strip()] = self._us(
                number if unit == "us" else {"cycles": number}, f"{path}: {name}"
            )

    def _us(self, value: Any, where: str) -> float:
        """Return the microseconds of a number, or of `{"cycles": n}`."""
        if isinstance(value, Mapping) and set(value) in ({"cycles"}, {"us"}):
            ((unit, number),) = value.items()
            return self._us(number, where) / (self._clock if unit == "cycles" else 1)
        if isinstance(value, bool | Mapping) or not hasattr(value, "__float__") or not 0 <= value <= _LONGEST:
            raise refuse(f"{where}: expected microseconds, got {shown(value)}")
        return float(value)

    # -- kernels of a run ------------------------------------------------------------------------------

    def has(self, func_id: int, name: str) -> bool:
        """Return True if the table has a kernel."""
        return any(key in self._table for key in (name, func_id, str(func_id)))

    def know(
        self, run: Any, func_id: int, name: str, model: Model | None = None, timed: Executed | None = None,
        why: str = "",
    ) -> None:  # fmt: skip
        """Register a kernel of a run. Set its duration, or let the run ask for the duration of each task. For
        `task_times` the run asks after the task was executed. Raise if no source has a duration.
        """
        self._names[func_id] = name
        self._models.pop(func_id, None)
        self._timed.pop(func_id, None)
        for key in (name, func_id, str(func_id)):
            if key in self._table:
                run.set_duration(func_id, round(self._table[key] * 1e3))
                return
        if timed is not None:
            self._timed[func_id] = timed
            run.set_by_doing(func_id)
        elif model is not None:
            self._models[func_id] = model
        elif self._call is None:
            raise unknown(name, self.says if self._table else "", why)

    def attach(self, run: Any) -> None:
        """Answer the requests of a run."""
        run.ask_durations(self._of)

    def _of(
        self, func_id: int, core: int, slots: list[int], tensors: int, inputs: int, block: int, blocks: int,
        one_of_blocks: bool, task: int,
    ) -> int:  # fmt: skip
        name, found = self._names.get(func_id, f"Func_{func_id}"), None
        if self._call is not None:
            count = len(slots) - (2 if one_of_blocks else 0)
            args = tuple(_shape(s) if tensors >> i & 1 else signed(s) for i, s in enumerate(slots[:count]))
            found = self._call(TaskInfo(name, func_id, CORE_TYPES[core], args, block, blocks))
        if found is None and func_id in self._timed:
            try:
                found = self._timed[func_id].us(task, block)
            except DiagnosticError as e:
                raise unknown(name, "", f"; the cost model, of task {task}: {e}") from e
        if found is None and func_id in self._models:
            given = slots[: len(slots) - 2] if one_of_blocks else slots
            try:
                found = self._models[func_id](given, tensors, inputs, blocks)
            except (DiagnosticError, TypeError, ValueError) as e:
                raise unknown(name, "", f"; the cost model: {e}") from e
        if found is None:
            raise unknown(name, self.says if self._table else "")
        return round(self._us(found, f"the duration of {name}") * 1e3)


def _shape(slot: int) -> tuple[tuple[int, ...], str]:
    tensor = extension().slot_tensor(slot)
    return tuple(tensor.shape), DTYPES[tensor.dtype]


def measured(path: str) -> dict[str, float]:
    """Return the mean microseconds of the kernels of a recorded run."""
    from ..perf.records import Records

    return mean_durations(Records.load(path))


def mean_durations(records: Any) -> dict[str, float]:
    """Return the mean microseconds from start to end of each kernel, by its name."""
    import numpy as np

    tasks = records.tasks[records.ran & (records.tasks["core"] >= 0)]
    kernels, group, count = np.unique(tasks["func_id"], return_inverse=True, return_counts=True)
    spent = np.bincount(group, tasks["end"] - tasks["start"], len(kernels)) / count / 1e3
    return {records.name(int(k)): float(us) for k, us in zip(kernels, spent, strict=True)}


class Guess(NamedTuple):
    """The share of a kernel's busy time that rests on guessed costs, and the instructions with these
    costs."""

    share: float
    names: tuple[str, ...]


def guess_of(timeline: Any) -> Guess:
    ranked = sorted(timeline.guessed, key=lambda name: -timeline.guessed[name])
    return Guess(timeline.guessed_share, tuple(ranked))


class Guessed:
    """The guessed shares in the durations of a run: for each kernel, the largest share among its tasks."""

    def __init__(self) -> None:
        self._of: dict[str, Guess] = {}

    def clear(self) -> None:
        self._of.clear()

    def note(self, kernel: str, guess: Guess) -> None:
        if guess.names and guess.share > self._of.get(kernel, Guess(0.0, ())).share:
            self._of[kernel] = guess

    def __bool__(self) -> bool:
        return bool(self._of)

    def __str__(self) -> str:
        ranked = sorted(self._of.items(), key=lambda item: -item[1].share)
        words = [
            f"{guess.share:.0%} of {kernel} ({', '.join(guess.names[:3])}{', ..' if guess.names[3:] else ''})"
            for kernel, guess in ranked[:4]
        ]
        return ", ".join(words) + (f", and of {len(ranked) - 4} more" if len(ranked) > 4 else "")


def modelled(
    name: str, program: Any, entry: str | None, floats: frozenset[int], machine: str | None, guessed: Guessed
) -> Model:
    """Return the cost model of a kernel that is a program (a module, or its path): the duration of a launch
    of all its blocks, without the launch overhead."""
    made: list[Any] = []
    known: dict[tuple[Any, ...], tuple[float, Guess]] = {}

    def us(slots: list[int], tensors: int, inputs: int, blocks: int) -> float | None:
        from ..engine.launch import plain
        from ..reading import parse

        if not tensors and slots:
            return None  # addresses without shapes
        values = [_whole(v) if hasattr(v, "shape") else v for v in values_of(slots, tensors, inputs, floats)]
        key = (blocks, *((v.shape, str(v.dtype)) if hasattr(v, "shape") else v for v in values))
        if key not in known:
            if not made:
                module = parse(program) if isinstance(program, str | os.PathLike) else program
                made.append(plain(module, entry))
            timed = {"blocks": blocks, "timeline": machine or True}
            try:
                result = made[0].run(*values, **timed, dry=True)
            except DiagnosticError:  # its control flow depends on data
                result = made[0].run(*values, **timed)
            if not result.ok:
                raise DiagnosticError(result.diagnostics)
            found = result.timeline
            known[key] = found.machine.us(found.kernel_cycles), guess_of(found)
        spent, guess = known[key]
        guessed.note(name, guess)
        return spent

    return us


def _whole(array: Any) -> Any:
    """Copy the memory that a kernel may reach from the first element of an array: rows may have gaps."""
    import ctypes

    import numpy as np

    if array.flags.c_contiguous:
        return np.array(array)
    last = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    memory = (ctypes.c_char * (last + array.itemsize)).from_address(array.ctypes.data)
    return np.frombuffer(bytearray(memory), array.dtype)


def unknown(name: str, table: str, why: str = "") -> DiagnosticError:
    """Return the error for a kernel without a duration; `table` names the source that lacks it, if any."""
    message = f"missing duration of kernel {name}" + (f": {table} does not have it" if table else "") + why
    help = f"durations={{{name!r}: microseconds}}, --durations FILE.csv, or --measure for times of this host"
    return DiagnosticError([Diagnostic("PTO-E2626", message, help=help)])


def refuse(message: str, help: str = "") -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2627", message, help=help)])
