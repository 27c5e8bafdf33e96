"""Kernels of programs for all engines: the functions to run, their cores, and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..diag import Diagnostic, DiagnosticError, did_you_mean, has_errors
from ..driver import Lowered, Options, complete, lowered, verified
from ..ir.core import Module, Operation, Value
from ..ir.facts import SPMD, constant_of, entries, halves, module_profile
from ..isa.machine import SECTIONS, SUBBLOCKS
from ..isa.profiles import Profile
from . import registry
from .result import LaunchResult, sound

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .debug.stop import Stop
    from .options import LaunchOptions

#: Mark in `special` of pto_launch: each block has its own part. Follows marks of `SPMD`.
DEALT = len(SPMD) + 1


class Launchable:
    """A function that every core runs, or one for each kind of core; an engine adds `run`."""

    #: Name of the engine in the registry.
    engine: str = ""
    #: Other engines by name, for options that this one lacks; empty if the user chose the engine.
    others: Mapping[str, Callable[[], Launchable]] = {}

    def __init__(self, module: Module, entry: str | None, target: str | Profile | None, check: bool) -> None:
        self.module = module
        self.profile = module_profile(module, target)
        self.checked = check
        options = Options(check="all" if check else "structure", flags="off")
        problems = verified(module, self.profile, options)
        if has_errors(problems):
            raise DiagnosticError([p for p in problems if p.severity == "error"])
        self.name, self.functions = find_entry(module, entry)
        self.roles = find_roles(module, self.functions)
        #: Vector cores of a mixed kernel, unless a launch overrides it.
        self.subblocks = vector_cores(module)
        #: Positions of arguments that are split among the blocks.
        self.dealt = dealt(self.functions)

    def lowered(self, passes: str, insert_sync: bool = False) -> Lowered:
        """Lower the verified program with the driver; raise if that is impossible."""
        options = Options(check="none", passes=passes, insert_sync=insert_sync)
        return lowered(self.module, self.profile, options).sound()

    def lowered_as_run(self) -> Lowered:
        """Return the program for emission with ordered pipes. Missing addresses and flags are added, as on
        the reference engine."""
        return self.lowered("always", insert_sync=not any(complete(self.module)))

    def __repr__(self) -> str:
        return f"<Kernel @{self.name}({', '.join(f'%{a.name}: {a.type}' for a in self.args)})>"

    @property
    def args(self) -> list[Value]:
        """Return the arguments of the caller, in order."""
        return list(self.functions[0].regions[0].blocks[0].args)

    def run(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        raise NotImplementedError

    def debug(
        self,
        *args: object,
        breaks: Sequence[int | str] = (),
        watch: Sequence[str] = (),
        entry: bool = False,
        **options: Unpack[LaunchOptions],
    ) -> Iterator[Stop]:
        """Run one launch as an iterator of its stops. It stops before the lines of `breaks` (14, "14:3" the
        third time, "k.pto:14", "14 if %i == 2"), after writes to values of `watch` ("%acc[0, 1]"), at
        findings of sanitizers, at faults and deadlocks, and with `entry` before the first operation. Options
        are those of `run`; arrays hold the data written so far. Leaving the loop ends the launch."""
        kernel = self if "debug" in registry.ENGINES[self.engine].options else self.other({"debug": True})
        if kernel is None:
            self.refuse({"debug": True})
        assert kernel is not None
        return registry.ENGINES[kernel.engine].debugged(
            kernel, args, breaks=breaks, watch=watch, entry=entry, **options
        )

    def other(self, options: Mapping[str, object]) -> Launchable | None:
        """Return the kernel on another engine for a launch with options that this one lacks, or None."""
        if not self.others or not registry.lacking(self.engine, options):
            return None
        able = (make() for name, make in self.others.items() if not registry.lacking(name, options))
        return next(able, None)

    def refuse(self, options: Mapping[str, object]) -> None:
        """Raise an error that names the options of a launch that only other engines have."""
        unknown = next((name for name in options if name not in registry.options()), None)
        if unknown is not None:
            raise TypeError(f"run() got an unexpected keyword argument {unknown!r}")
        registry.refuse(self.engine, options)

    def __call__(self, *args: object, **options: Unpack[LaunchOptions]) -> LaunchResult:
        """Run, and raise `DiagnosticError` on any error; see `run`."""
        return sound(self.run(*args, **options))


def check_options(
    blocks: object, subblocks: object, schedule: object = None, max_steps: object = None,
    memory_map: object = False, timeout: object = None,
) -> None:  # fmt: skip
    """Check options of the caller, with errors that name them."""
    for name, value, least in (("blocks", blocks, 1), ("max_steps", max_steps, 1), ("schedule", schedule, 0)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ValueError(f"expected a whole number from {least} on for {name}, got {value!r}")
    if timeout is not None and not (
        isinstance(timeout, int | float) and not isinstance(timeout, bool) and 0 < timeout < 1e9
    ):
        raise ValueError(f"expected a number of seconds above 0 for timeout, got {timeout!r}")
    if subblocks not in (None, 1, SUBBLOCKS):
        raise ValueError(f"expected 1 or {SUBBLOCKS} for subblocks, got {subblocks!r}")
    if not isinstance(memory_map, bool):
        raise ValueError(
            f"expected True or False for memory_map, got {memory_map!r}; the result's memory_map can be drawn"
        )


def find_entry(module: Module, entry: str | None) -> tuple[str, list[Operation]]:
    functions = {str(f.attr("sym_name")): f for f in module.functions if f.regions and f.regions[0].blocks}
    pairs = halves(functions)
    if entry is not None:
        entry = entry.removeprefix("@")
        if entry in functions:
            return entry, [functions[entry]]
        if entry in pairs:
            return entry, [*pairs[entry]]
        known = [*pairs, *functions]
        raise DiagnosticError([
            Diagnostic("PTO-E2001", f"no function '@{entry}' to run", help=did_you_mean(entry, known)
                       or f"the program has {', '.join('@' + n for n in known) or 'no functions'}")
        ])  # fmt: skip
    marked = entries(functions)
    if len(marked) == 1:
        return str(marked[0].attr("sym_name")), marked
    if len(pairs) == 1 and len(functions) == 2:
        ((name, pair),) = pairs.items()
        return name, [*pair]
    known = ", ".join("@" + n for n in functions)
    what = "cannot choose one of several functions" if functions else "the program has no function to run"
    raise DiagnosticError(
        [Diagnostic("PTO-E2001", what, help=f"name one with --entry: {known}" if known else "")]
    )


def find_roles(module: Module, functions: list[Operation]) -> list[tuple[str, int, Operation]]:
    """Return (kind of core, sub-block, function) for every core of a block."""
    if len(functions) == 2:
        aic, aiv = functions
        return _mixed(aic, aiv)
    function = functions[0]
    kinds = _kinds(module, function)
    if kinds == {"cube", "vector"}:
        return _mixed(function, function)
    return [(kinds.pop() if len(kinds) == 1 else "mix", 0, function)]


def _mixed(cube: Operation, vector: Operation) -> list[tuple[str, int, Operation]]:
    return [("cube", 0, cube), *(("vector", sub, vector) for sub in range(SUBBLOCKS))]


def _kinds(module: Module, function: Operation) -> set[str]:
    """Return the kinds of core that a function names: its own, or its module's, sections' and callees'."""
    functions = {str(f.attr("sym_name")): f for f in module.functions}
    found: set[str] = set()
    waiting = [function]
    while waiting:
        at = waiting.pop()
        own = at.attr("pto.kernel_kind")
        if own is None and at.outer is not None:  # a module may declare it for all its functions
            own = at.outer.attr("pto.kernel_kind")
        if own is not None:
            found.add(str(own))
            continue
        for op in at.walk():
            if op.name in SECTIONS:
                found.add(SECTIONS[op.name])
            elif op.name == "func.call":
                callee = functions.pop(str(op.attr("callee")), None)
                if callee is not None:
                    waiting.append(callee)
    return found


def vector_cores(module: Module) -> int:
    """Return the vector cores of a block, unless a launch overrides it."""
    return 1 if _one_lane(module) else SUBBLOCKS


def _one_lane(module: Module) -> bool:
    """Return True if a mixed kernel is written for one vector core: its FIFOs split nothing, and it never
    reads the number of its vector core."""
    splits = [
        op.attr("split") or 0
        for op in module.walk()
        if op.row is not None and op.row.fifo in ("push", "pop") and "split" in op.row.attr_index
    ]
    asks = any(op.row is not None and op.row.lanes for op in module.walk())
    takes = any(
        a.name == SPMD[2] for f in module.functions for r in f.regions for b in r.blocks[:1] for a in b.args
    )
    return bool(splits) and not any(splits) and not asks and not takes


def dealt(functions: list[Operation]) -> frozenset[int]:
    """Return the positions of FIFO slots in global memory if a pair takes its block as an argument. The
    launch must give each block its own slots. A program that reads the block with an instruction splits
    the slots itself."""
    bodies = [f.regions[0].blocks[0].args for f in functions]
    if len(functions) != 2 or not any(a.name in SPMD[:2] for args in bodies for a in args):
        return frozenset()
    first, second = (
        {args.index(v) for v in map(_slots, f.walk()) if v in args}
        for f, args in zip(functions, bodies, strict=True)
    )
    return frozenset(first & second)


def _slots(op: Operation) -> Value | None:
    """Return the base of the FIFO slots of an operation, or None if their offset from it is not constant."""
    if op.name not in ("pto.aic_initialize_pipe", "pto.aiv_initialize_pipe"):
        return None
    value = op.get("gm_slot_buffer")
    while value is not None and value.op is not None and value.op.name == "pto.addptr":
        value, offset = value.op.operands
        if constant_of(offset) is None:
            return None
    return value
