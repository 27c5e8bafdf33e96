"""One run of a callable on a chip: copy host data in, run the task runtime, and copy results back.

As on a device, an orchestration works on copies of host memory: IN is never copied back, and OUT and INOUT
are copied back completely. OUT starts with the host data, so that elements that no task writes keep their
values. Memory of chips and windows is used directly.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence

import numpy as np

from ... import knobs
from ...cache import opened
from ...diag import Diagnostic, DiagnosticError
from ...engine import journal
from ...engine.sanitize import OF_GRAPHS, WARN, asked, checks, summary
from ...isa.profiles import PLATFORMS, PROFILES
from ...perf.hazards import as_errors
from ...perf.hazards import problems as unordered
from ...runtime.chip import words
from ...runtime.compile import ENTRY
from ...runtime.engine import TaskEngine
from ...runtime.failures import RunFailure
from ...runtime.golden import GoldenTensor as HostTensor
from ...runtime.memory import TensorMemory
from ...runtime.task_sanitizers import Watch
from ...runtime.task_traces import TraceCollector
from .buffers import AddressSpace, Tensor
from .callables import ChipCallable
from .directions import ArgDirection
from .task_interface import CallConfig, TaskArgs

SIDE_EFFECT = "PTO-E2607"


class RunFailed(DiagnosticError, RuntimeError):
    """A run that ended early. `code` is the code of the runtime, negative as programs expect it."""

    def __init__(self, diagnostics: Sequence[Diagnostic], code: int = 0) -> None:
        super().__init__(diagnostics)
        self.code = code

    def __str__(self) -> str:
        text = super().__str__()
        return f"run failed with code {self.code}: {text}" if self.code else text


class Libraries:
    """Copies of orchestration libraries, one file for each chip, because every chip needs its own state of
    the library."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="pto-chips-")
        self._gone = weakref.finalize(self, shutil.rmtree, self._folder, True)
        self._copies: dict[tuple[str, int], str] = {}

    def path(self, library: str, chip: int) -> str:
        if chip == 0:
            return library
        key = library, chip
        if key not in self._copies:
            copy = os.path.join(self._folder, f"{len(self._copies)}-{chip}.so")
            with open(opened(library), "rb") as source, open(copy, "xb") as target:
                shutil.copyfileobj(source, target)
            self._copies[key] = copy
        return self._copies[key]


class Chip:
    """A chip that runs one callable at a time."""

    def __init__(self, number: int = 0, libraries: Libraries | None = None) -> None:
        self.number, self._libraries = number, libraries
        self.runs = 0

    def run(
        self,
        target: ChipCallable,
        args: TaskArgs | None,
        config: CallConfig | None,
        company: object = None,
        member: int = -1,
    ) -> None:
        config = config if config is not None else CallConfig()
        config.validate()
        args = args if args is not None else TaskArgs()
        staged = _Staged(target, args)
        names = asked()
        options: dict[str, object] = {
            "runtime": "tensormap_and_ringbuffer",
            "aicpu_thread_num": config.aicpu_thread_num,
            "check_hazards": OF_GRAPHS in names or knobs.get("PTO_SANITIZE") == WARN,
            "poison": "undef" in names,
            "callers": bool(names),
            **config.runtime_env.sizes(),
        }
        if config.block_dim:
            options["block_dim"] = config.block_dim
        if company is not None:
            options.update(company=company, member=member)
        engine = TaskEngine(options)
        hearing = TraceCollector(PROFILES[PLATFORMS[target.source.platform]])
        watch = Watch(hearing, checks(names)) if names else None
        made = target.compiled(watch is not None)
        for (number, core), library in zip(target.children, made[1:], strict=True):
            path = library.path if watch is None else self._own(library.path)
            engine.add_kernel(number, core.name, core.source.core_type, path)
            if watch is not None:
                hearing.hear(path, core.name, library.files)
        if watch is not None:
            staged.tell(watch, company is None)
        path = self._own(made[0].path)
        self.runs += 1
        try:
            engine.run_orchestration(path, ENTRY, staged.words)
        except RunFailure as e:
            e.stand_at(hearing.failed_at())
            raise RunFailed(e.diagnostics, -e.number) from e
        except (RuntimeError, ValueError) as e:
            raise RunFailed([Diagnostic("PTO-E2609", f"cannot finish the run: {e}")]) from e
        finally:
            hearing.stop()
        staged.bring_back()
        wrong = [] if watch is None else watch.problems(engine.sites, engine.blank_reads)
        hazards = engine.hazards if watch is None else watch.hazards(engine.hazards)
        found = [*unordered(hazards, engine.unseen), *staged.side_effects()]
        if watch is None:
            for d in found:
                d.severity = "warning" if d.code != SIDE_EFFECT else d.severity
        else:
            found = [*wrong, *(as_errors(found) if OF_GRAPHS in names else found)]
            journal.note("checked", target.name, text=summary(names, watch.unchecked))
        journal.note("run", target.name, tuple(found))

    def _own(self, library: str) -> str:
        """Return a library with state of its own for this chip."""
        return library if self._libraries is None else self._libraries.path(library, self.number)


class _Staged:
    """Memory of a run."""

    def __init__(self, target: ChipCallable, args: TaskArgs) -> None:
        directions = [d for d in target.signature if d is not ArgDirection.SCALAR]
        if len(args.tensors) > len(directions) > 0:
            raise ValueError(
                f"{target.name}: expected at most {len(directions)} tensors by its signature, "
                f"got {len(args.tensors)}"
            )
        self._name = target.name
        self._back: list[tuple[str, Tensor]] = []
        host: list[HostTensor] = []
        placed: list[tuple[Tensor, str]] = []  # with a name if the tensor is copied
        for i, tensor in enumerate(args.tensors):
            direction = directions[i] if i < len(directions) else ArgDirection.INOUT
            if tensor.buffer.closed:
                raise ValueError(f"cannot use argument {i}: its buffer has been released")
            if tensor.buffer.address_space is AddressSpace.DEVICE:
                placed.append((tensor, ""))
                continue
            name = f"argument {i}"
            comes_back = direction is not ArgDirection.IN
            host.append(HostTensor(name, None, _bytes(tensor), comes_back))
            placed.append((tensor, name))
            if comes_back:
                self._back.append((name, tensor))
        self._memory = TensorMemory(host)
        self._all = len(host) == len(placed)
        #: Arguments in memory of chips: addresses and sizes.
        self._device = [(t.address, t.nbytes) for t, name in placed if not name]
        addresses = self._memory.addresses
        self.words = words(
            (
                (
                    addresses[name] if name else t.address,
                    t.nbytes if name else t.buffer.nbytes - t.byte_offset,
                    t.dtype.value,
                    t.shapes,
                )
                for t, name in placed
            ),
            args.scalars,
        )

    def tell(self, watch: Watch, alone: bool) -> None:
        """Report the memory of the caller to the sanitizers. Its initial state is known, except in a run with
        memory of chips, which may have contents from earlier runs and from other chips.
        """
        memory = self._memory
        host = [(at, memory.array(name).nbytes) for name, at in memory.addresses.items()]
        if self._all and alone:
            watch.begin(host)
        watch.outside([*host, *self._device])

    def bring_back(self) -> None:
        for name, tensor in self._back:
            _bytes(tensor)[:] = self._memory.array(name)

    def side_effects(self) -> list[Diagnostic]:
        out = []
        for name, offset in self._memory.strays():
            size = self._memory.array(name).nbytes
            where = f"{-offset} bytes before its start" if offset < 0 else f"byte {offset}"
            out.append(
                Diagnostic(
                    SIDE_EFFECT,
                    f"{self._name}: write outside {name}: {where}, of {size} bytes",
                    help="correct the shapes or offsets of the kernel, which do not fit the tensor",
                )
            )
        for name in self._memory.changed_inputs():
            out.append(
                Diagnostic(
                    SIDE_EFFECT,
                    f"{self._name}: write to {name}, which is IN: the result is not copied back",
                    severity="warning",
                    help="declare it INOUT in the signature if the write is intended",
                )
            )
        return out


def _bytes(tensor: Tensor) -> np.ndarray:
    """Return the bytes of a host tensor."""
    count = math.prod(tensor.shapes) * tensor.dtype.nbytes
    if count == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_char * count).from_address(tensor.address)), np.uint8)
