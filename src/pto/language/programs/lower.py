"""Lower a function and its arguments to kernels and an orchestration, stage by stage.

program = read(declared, types, profile)     # the program as written
stages(program)                              # pass by pass
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ... import driver
from ...diag import Diagnostic, DiagnosticError, has_errors
from ...engine import journal
from ...ir.core import Module
from ...isa.profiles import PROFILES, Profile
from ..advice import in_language_terms
from ..checks.mistakes import check, unordered
from ..declare import Declared
from ..emit.incore import emit, parts_of
from ..graphs.orchestrate import orchestration_text
from ..ir import FOREIGN, Function, Program
from ..ir.build import BufferUse
from ..ir.printer import program_text
from ..passes.clean import clean
from ..passes.copies import copies
from ..passes.flatten import flatten
from ..passes.matmul import matmul
from ..passes.mixed import mixed
from ..passes.order import order
from ..passes.outline import outline
from ..passes.results import results
from ..passes.spaces import spaces
from ..passes.tiles import tiles
from ..passes.windows import windows
from ..problems import UNSUPPORTED, Problem
from ..reader.calls import read_entry, read_exactly
from ..reader.frame import ProgramReader

#: The stages, in order. Each takes a program and returns a program.
STAGES: tuple[tuple[str, Callable[[Program], Program]], ...] = (
    ("clean", clean),
    ("results", results),
    ("copies", copies),
    ("windows", windows),
    ("outline", outline),
    ("order", order),
    ("clean", clean),
    ("tiles", tiles),
    ("clean", clean),
    ("matmul", matmul),
    ("flatten", flatten),
    ("clean", clean),
    ("spaces", spaces),
    ("clean", clean),
    ("mixed", mixed),
)


def read(
    declared: Declared, types: Sequence[object], profile: Profile, world: int = 1
) -> tuple[Program, list[Diagnostic]]:
    """Return the program of a function for a number of ranks, with warnings; raise its errors. If a host
    gives windows of a buffer only to some devices, these devices form a group: then the program is read
    again, with the ranks of the group. The program is also read again if parameters take windows in another
    shape.
    """
    unit = _read(declared, types, profile, world, ())
    if uses := unit.buffer_uses():
        unit = _read(declared, types, profile, world, uses)
    if has_errors(unit.diagnostics):
        raise DiagnosticError(unit.diagnostics)
    return unit.program, [*unit.diagnostics, *check(unit.program)]


def _read(
    declared: Declared, types: Sequence[object], profile: Profile, world: int, uses: Sequence[BufferUse]
) -> ProgramReader:
    unit = ProgramReader(Program(declared.name, profile), profile, world, uses)
    try:
        read_entry(unit, declared, types)
    except Problem as problem:
        unit.report(problem)
    return unit


def exact(owner: Any, profile: Profile | None = None) -> Program:
    """Return the program of functions whose types are all annotated, without inference."""
    unit = ProgramReader(Program(owner.__name__), profile or PROFILES["a2a3"])
    try:
        read_exactly(unit, [m.declared for m in owner.methods.values()])
    except Problem as problem:
        unit.report(problem)
    if has_errors(unit.diagnostics):
        raise DiagnosticError(unit.diagnostics)
    return unit.program


def stages(program: Program) -> Iterator[tuple[str, Program]]:
    """Yield the program after each stage."""
    _check_types(program)
    for name, stage in STAGES:
        try:
            program = stage(program)
        except Problem as problem:
            raise DiagnosticError([problem.diagnostic]) from None
        yield name, program


def _check_types(program: Program) -> None:
    """Reject element types that no instruction supports; such programs can only be read and printed."""
    for function in program.functions.values():
        values = [(v, function.loc) for v in function.body.args]
        values += [(r, op.loc) for op in function.walk() for r in op.results]
        for value, place in values:
            dtype = getattr(value.type, "dtype", None)
            if dtype is not None and dtype.only_named:
                found = Diagnostic(UNSUPPORTED, f"unsupported element type {dtype}", place,
                                   expected="pl.FP4 for four bits", got=str(value.type),
                                   help="convert the array before the call")  # fmt: skip
                raise DiagnosticError([found])


class LoweredProgram:
    """A program that is ready to be emitted and run."""

    def __init__(self, program: Program, profile: Profile, diagnostics: Sequence[Diagnostic] = ()) -> None:
        self.program = program
        self.profile = profile
        self.diagnostics = list(diagnostics)  # warnings
        # the function and the types that it was made from
        self.source: tuple[Declared, Sequence[object]] | None = None
        self.world = 1  # number of ranks
        self.fixed = False  # True if dynamic extents are fixed to those of given arguments

    @property
    def functions(self) -> dict[str, Function]:
        return self.program.functions

    def as_python(self, concise: bool = False) -> str:
        return program_text(self.program, concise)

    @cached_property
    def modules(self) -> dict[str, Module]:
        """Return the PTO program of every function that runs on cores."""
        try:
            parts = {part for f in self.functions.values() if f.kind == "mixed" for part in parts_of(f)}
            made = {
                n: emit(f, self.profile)
                for n, f in self.functions.items()
                if f.kind not in ("orchestration", *FOREIGN) and f not in parts
            }
        except Problem as problem:
            raise DiagnosticError([problem.diagnostic]) from None
        journal.note("lowered", self.program.name)
        return made

    def verify(self) -> LoweredProgram:
        """Return the program; raise all errors of its kernels on their target."""
        found: list[Diagnostic] = []
        entry = self.program.entry
        if entry is not None and entry.kind == "orchestration":
            try:
                orchestration_text(entry)
            except Problem as problem:
                found.append(problem.diagnostic)
        for module in self.modules.values():
            found += [d for d in driver.lowered(module).diagnostics if d.severity == "error"]
        if found:
            raise DiagnosticError(in_language_terms(found))
        return self

    def as_pto(self) -> str:
        """Return the text of every kernel."""
        from ...asm import to_text

        return "\n".join(to_text(m) for m in self.modules.values())

    def dump(self, folder: str | os.PathLike[str]) -> None:
        """Write the text of every kernel to the folder with the dumps of stages."""
        from ...asm import to_text

        for name, module in self.modules.items():
            Path(folder, f"{len(STAGES):02}_after_{STAGES[-1][0]}_{name}.pto").write_text(to_text(module))


def lowered(
    declared: Declared, types: Sequence[object], profile: Profile, dump: str | os.PathLike[str] | None = None,
    world: int = 1,
) -> LoweredProgram:  # fmt: skip
    """Run every stage. `dump` is a folder for the program after each stage, as Python:
    `NN_after_STAGE.py`."""
    journal.note("reading", declared.name)
    program, found = read(declared, types, profile, world)
    journal.note("parsed", declared.name)

    def leave(number: int, name: str) -> None:
        if dump is not None:
            Path(dump).mkdir(parents=True, exist_ok=True)
            Path(dump, f"{number:02}_after_{name}.py").write_text(program_text(program))

    leave(0, "read")
    for number, (name, after) in enumerate(stages(program), 1):
        program = after
        leave(number, name)
    done = LoweredProgram(program, profile, [*found, *unordered(program)])
    done.source, done.world = (declared, types), world
    return done


def texts(done: LoweredProgram) -> Iterator[tuple[str, str]]:
    """Lower the program again, and yield its Python text after each stage."""
    if done.source is None:
        return
    program, _ = read(*done.source, done.profile, done.world)
    yield "read", program_text(program)
    for name, after in stages(program):
        yield name, program_text(after)
