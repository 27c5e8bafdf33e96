"""Replacement of `pypto.ir` and its passes: compilation and its options."""

from __future__ import annotations

import enum
import os
from typing import Any

from ...language import DataType, FunctionType, RunConfig, TensorLayout, TileLayout
from ...language.dtypes import DATA_TYPES
from ...language.enums import (
    AtomicType,
    BackendType,
    ForKind,
    Level,
    MemorySpace,
    PadValue,
    PipeType,
    Role,
    SplitMode,
)
from ...language.ir import Function, Program
from ...language.programs import folder  # noqa: F401
from ...language.programs.callable import CallableProgram
from ...language.programs.compiled import Compiled
from ...language.programs.lower import LoweredProgram
from .backend import CoreType, platform_of
from .distributed import DistributedCompiledProgram, DistributedConfig
from .refused import missing, refuse
from .several import Several, orchestrations

globals().update(DATA_TYPES)

#: Compiled programs, in memory or from folders.
CompiledProgram = CallableProgram


class OptimizationStrategy(enum.Enum):
    """Strategies of pypto. This package has only one, and all names select it."""

    Default = "Default"
    PTOAS = "Default"
    CCE = "Default"
    SuperscalarNPU = "Default"


class MemoryPlanner(enum.Enum):
    """Memory planners of pypto. This package always uses its own planner."""

    PYPTO = "pypto"
    DSA_RP = "dsa-rp"
    PTOAS = "ptoas"


class PassDumpLevel(enum.IntEnum):
    NONE = 0
    CONCISE = 1
    EXPLICIT = 2


class ParamDirection(enum.Enum):
    In = "in"
    Out = "out"
    InOut = "inout"


class VerificationLevel(enum.Enum):
    NONE = 0
    Basic = 1
    Full = 2


class VerificationMode(enum.Enum):
    NONE = 0
    BEFORE = 1
    AFTER = 2
    BEFORE_AND_AFTER = 3


class DiagnosticPhase(enum.Enum):
    NONE = 0
    POST_PASS = 1
    POST_PIPELINE = 2


def compile(
    program: Any,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: object = None,
    dump_passes: object = False,
    backend_type: BackendType | None = None,
    platform: str | None = None,
    *,
    skip_ptoas: bool = False,
    distributed_config: DistributedConfig | None = None,
    memory_planner: object = None,
    dump_ptoas_passes: bool = False,
    diagnostic_phase: object = None,
    disabled_diagnostics: object = None,
    profiling: bool = False,
    verification_level: object = None,
    analyze_auto_scopes_for_deps: bool = False,
    enable_pypto_l0c_double_buffer: object = None,
    save_kernels: bool = False,
) -> CompiledProgram:
    """Return a program that is ready to run, for the types of its parameters. The output folder is written
    now if `output_dir` is given, else on demand."""
    config = RunConfig(platform=platform or platform_of(backend_type), distributed_config=distributed_config)
    several = orchestrations(program)
    if len(several) > 1:
        whole = Several(program.name, several, config)
        if output_dir is not None:
            whole.save(output_dir, dumps=bool(dump_passes))
        return whole
    if isinstance(program, LoweredProgram):
        made = Compiled(program.verify(), config.platform)
    elif hasattr(program, "compile"):
        made = Compiled(program.compile(config=config).lowered, config.platform)
    else:
        raise refuse(f"ir.compile of a {type(program).__name__}", "give a @pl.program or a @pl.jit function")
    made.lowered.verify()
    if output_dir is not None:
        made.save(output_dir, dumps=bool(dump_passes))
    return made


def python_print(program: Any, prefix: str = "pl", concise: bool = False) -> str:
    """Return the text of a program."""
    return program.as_python(concise)


def __getattr__(name: str) -> Any:
    return missing("pypto.ir", name)


__all__ = [
    "AtomicType",
    "BackendType",
    "CompiledProgram",
    "CoreType",
    "DataType",
    "DiagnosticPhase",
    "DistributedCompiledProgram",
    "DistributedConfig",
    "ForKind",
    "Function",
    "FunctionType",
    "Level",
    "MemoryPlanner",
    "MemorySpace",
    "OptimizationStrategy",
    "PadValue",
    "ParamDirection",
    "PassDumpLevel",
    "PipeType",
    "Program",
    "Role",
    "SplitMode",
    "TensorLayout",
    "TileLayout",
    "VerificationLevel",
    "VerificationMode",
    "compile",
    "python_print",
]
