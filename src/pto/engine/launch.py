"""`pto.kernel`: a function of a program as something to call with arrays.

k = pto.kernel(pto.parse("k.pto"), "vec_add")
k(a, b, out, blocks=24)                      # NumPy arrays; raises pto.DiagnosticError
k.run(a, b, out, sanitize="all").diagnostics # what sanitizers found, without raising
k = pto.kernel(pto.parse("k.pto"), engine="cpp")  # compiled by the system's C++ compiler
k = pto.kernel("k.cpp", "softmax", target="a5")   # C++ written by hand
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from ..diag import DiagnosticError
from ..ir.core import Module
from ..isa.profiles import Profile
from .binding import Binding
from .entry import Launchable, Run
from .memory import GlobalMemory
from .prepare import complete, prepared
from .reference.control import Unsupported
from .reference.core import RunError
from .reference.grid import Grid
from .reference.lower import Program
from .reference.semantics import preset
from .watch import Watcher

ENGINES = ("reference", "cpp")


class Kernel(Launchable):
    """A kernel on the reference engine."""

    def __init__(
        self,
        module: Module,
        entry: str | None,
        target: str | Profile | None,
        check: bool,
        insert_sync: bool = False,
    ) -> None:
        super().__init__(module, entry, target, check)
        #: What is run: where tiles have no address, they got one and the pipes their flags.
        self.prepared = prepared(module, self.profile, insert_sync) if check else module
        #: Whether nothing orders its pipes: a plain run then goes in program order.
        self.in_order = not complete(self.prepared)[1]
        self._programs: dict[bool, Program] = {}
        self.program(False)

    def program(self, track: bool) -> Program:
        """The lowered functions; raises where one holds what cannot be executed."""
        found = self._programs.get(track)
        if found is None:
            found = Program(self.prepared, self.profile, track)
            try:
                for function in self.functions:
                    found.code(str(function.attr("sym_name")))
            except Unsupported as e:
                raise DiagnosticError(e.diagnostics) from None
            self._programs[track] = found
        return found

    def run(
        self,
        *args: Any,
        blocks: int = 1,
        subblocks: int | None = None,
        sanitize: str | Sequence[str] = (),
        schedule: int | None = None,
        shadow: str | None = None,
        memory_map: bool = False,
        out: TextIO | None = None,
        progress: Callable[[int, int, int], None] | None = None,
        max_steps: int | None = None,
        semantics: str = "hw",
        watchers: Sequence[Watcher] = (),
    ) -> Run:
        """One launch on `blocks` blocks.

        Arrays are used in place where they are contiguous. `subblocks` is the number of vector cores of a
        mixed kernel (default 2; 1 where its FIFOs split nothing and it does not ask which one it is on).
        `sanitize` names checks (`pto.engine.sanitize.NAMES`, or "all"); `schedule` seeds an adversarial order
        of the pipes; `shadow="f64"` runs a float64 shadow beside; `out` receives what the program prints
        (default: standard output); `max_steps` ends a run that takes more steps; `progress` is called now and
        then with the blocks begun, all blocks and the steps done. `semantics` ("hw" or "doc") says what
        vector instructions do where the manual and the hardware differ. `watchers` are told what happens, see
        `engine/watch.py`.
        """
        from .sanitize import parse_names, watching

        check_options(blocks, subblocks, schedule, max_steps, memory_map)
        result = Run()
        names = parse_names(sanitize)
        result.checked = names
        gm = GlobalMemory()
        binding = Binding(self, gm)
        problems = binding.bind(args)
        if problems:
            raise DiagnosticError(problems)
        watch = watching(names, shadow, memory_map, watchers)
        program = self.program(watch is not None and watch.tracks)
        roles = [
            (kind, sub, program.code(str(f.attr("sym_name"))))
            for kind, sub, f in self.roles
            if kind != "vector" or sub < (subblocks or self.subblocks) or len(self.roles) == 1
        ]
        order = None
        if schedule is not None:
            from .sanitize.schedule import Schedule

            order = Schedule(schedule)
        grid = Grid(
            program,
            self.profile,
            gm,
            roles,
            binding.values,
            blocks,
            out or sys.stdout,
            watch,
            order,
            progress,
            max_steps,
            self.in_order and order is None,
            preset(semantics),
        )
        try:
            grid.run()
        except RunError as e:
            result.diagnostics.append(e.diagnostic)
        except Exception as e:
            if self.checked:
                raise  # a bug of ours
            result.diagnostics.append(grid.unexpected(e))
        finally:
            binding.write_back()
        if watch is not None:
            watch.tell("launch_ended", result)
        return result


def check_options(blocks: Any, subblocks: Any, schedule: Any, max_steps: Any, memory_map: Any) -> None:
    """Options that a caller may get wrong, as errors that name them."""
    for name, value, least in (("blocks", blocks, 1), ("max_steps", max_steps, 1), ("schedule", schedule, 0)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ValueError(f"{name} is a whole number from {least} on, got {value!r}")
    if subblocks not in (None, 1, 2):
        raise ValueError(f"subblocks is 1 or 2, got {subblocks!r}")
    if not isinstance(memory_map, bool):
        raise ValueError(
            f"memory_map is True or False, got {memory_map!r}; the result's memory_map can be drawn"
        )


def kernel(
    module: Module | str | os.PathLike[str], entry: str | None = None, engine: str | None = None,
    target: str | Profile | None = None, check: bool = True, insert_sync: bool = False, checked: bool = False,
) -> Launchable:  # fmt: skip
    """A kernel of a module, or of the C++ file or library at a path; `entry` may be left out where there is
    only one. Modules run on the reference engine unless `engine` is "cpp", the others always on engine cpp.

    A program whose tiles have no addresses is planned and synchronised first; one with addresses runs as
    written, unless `insert_sync` asks for flags. `check=False` skips legality and planning. `checked`
    compiles run-time checks of bounds, capacity and validity into a kernel of engine cpp.
    """
    if engine not in (None, *ENGINES):
        raise ValueError(f"unknown engine {engine!r}; one of {', '.join(ENGINES)}")
    if not isinstance(module, Module):
        from .cpp.files import FileKernel, is_file

        if not is_file(module):
            raise TypeError(
                f"kernel takes a module, or the path of C++ or a library, got {type(module).__name__}: "
                "call pto.parse first"
            )
        if engine == "reference":
            raise ValueError("C++ and libraries run on engine 'cpp' only")
        return FileKernel(os.fspath(module), entry, target, checked)
    if engine == "cpp":
        from .cpp.kernel import CppKernel

        return CppKernel(module, entry, target, check, checked)
    if checked:
        raise ValueError("checked=True is for engine 'cpp': the reference engine always checks")
    return Kernel(module, entry, target, check, insert_sync)
