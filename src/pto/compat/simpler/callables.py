"""Orchestrations and kernels: sources until a callable is built of them, then libraries.

Programs compile sources one by one and wrap what they get; an orchestration is compiled when it is known how
its entry is called, and its kernels with it, several at a time. What they get meanwhile stands for a source.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...engine.sanitize import asked
from ...isa.profiles import PLATFORMS
from ...runtime.compile import CHIP, CompiledJob, Job, compile_all
from .directions import ArgDirection
from .refused import refuse

RUNTIMES = ("tensormap_and_ringbuffer", "host_build_graph")
ENTRY, CONFIG = "aicpu_orchestration_entry", "aicpu_orchestration_config"


class Source(bytes):
    """What compiling gives here: the name of a source, with all that is needed to compile it."""

    path: str
    platform: str
    core_type: str
    include_dirs: tuple[str, ...]

    def __new__(
        cls, path: str, platform: str, core_type: str = "", include_dirs: Sequence[str] = ()
    ) -> Source:
        text = Path(path).read_bytes() if os.path.isfile(path) else b""
        made = super().__new__(cls, f"{path}\0{core_type}\0".encode() + hashlib.sha256(text).digest())
        made.path, made.platform, made.core_type = os.path.abspath(path), platform, core_type
        made.include_dirs = tuple(include_dirs)
        return made


def _source(binary: Any, what: str) -> Source:
    if isinstance(binary, Source):
        return binary
    raise refuse(
        f"{what} is built of bytes that come from elsewhere: machine code of a device does not run here",
        "give it what KernelCompiler.compile_incore and compile_orchestration return",
    )


class KernelCompiler:
    """Takes sources; they are compiled with the callable that they are part of."""

    def __init__(self, platform: str = "a2a3sim") -> None:
        self.platform = platform_of(platform)
        self.project_root = Path.cwd()

    def compile_incore(
        self,
        source_path: Any,
        core_type: str = "aiv",
        pto_isa_root: Any = None,
        extra_include_dirs: Sequence[Any] = (),
        **_: Any,
    ) -> Source:
        if core_type not in ("aic", "aiv"):
            raise ValueError(f"core_type is {core_type!r}, expected 'aic' or 'aiv'")
        folders = [os.fspath(f) for f in extra_include_dirs or () if os.path.isdir(f)]
        return Source(os.fspath(source_path), self.platform, core_type, folders)

    def compile_orchestration(self, runtime_name: str, source_path: Any = None, **_: Any) -> Source:
        runtime_of(runtime_name)
        return Source(os.fspath(source_path), self.platform)

    def get_orchestration_include_dirs(self, runtime_name: str) -> list[str]:
        """None: sources find the headers of our runtime."""
        runtime_of(runtime_name)
        return []

    def get_incore_include_dirs(self) -> list[str]:
        return []


def platform_of(name: str) -> str:
    """A platform that kernels are compiled for; a device is simulated."""
    known = name if name in PLATFORMS else f"{name}sim"
    if known not in PLATFORMS:
        raise refuse(f"platform '{name}' is unknown", f"there are {', '.join(PLATFORMS)}")
    return known


def runtime_of(name: str) -> str:
    if name not in RUNTIMES:
        raise refuse(f"runtime '{name}' is unknown", f"there are {', '.join(RUNTIMES)}")
    return name


def extract_text_section(binary: Any) -> Any:
    """What a device needs of a kernel: here it is the same."""
    return binary


def ensure_pto_isa_root(*_: Any, **__: Any) -> str:
    """Where kernels find the headers of instructions: they find ours."""
    from ...engine.cpp import compiler

    return str(compiler.include_dir())


def read_pto_isa_pin() -> str:
    return "pto"


class RuntimeBuilder:
    """Runtimes are part of this package."""

    def __init__(self, platform: str = "a2a3sim", **_: Any) -> None:
        self.platform = platform_of(platform)

    def get_binaries(self, runtime: str, **_: Any) -> Any:
        return SimpleNamespace(runtime=runtime_of(runtime), platform=self.platform)

    build = get_binaries


class CoreCallable:
    """A kernel and what it does with its arguments."""

    def __init__(self, signature: Sequence[ArgDirection], source: Source, name: str = "") -> None:
        self.signature, self.source = list(signature), source
        self.name = name or os.path.basename(source.path).partition(".")[0]

    @classmethod
    def build(cls, signature: Sequence[ArgDirection] = (), binary: Any = None, **_: Any) -> CoreCallable:
        return cls(signature, _source(binary, "a CoreCallable"))


class ChipCallable:
    """An orchestration with its kernels, compiled."""

    def __init__(
        self,
        signature: Sequence[ArgDirection],
        func_name: str,
        source: Source,
        children: Sequence[tuple[int, CoreCallable]],
        config_name: str = "",
    ) -> None:
        self.signature, self.func_name, self.config_name = list(signature), func_name, config_name
        self.source, self.children = source, [(int(n), core) for n, core in children]
        self.name = os.path.basename(source.path).partition(".")[0]
        self._made: dict[bool, list[CompiledJob]] = {}
        self._lock = threading.Lock()
        self.compiled(bool(asked()))

    @property
    def binary_size(self) -> int:
        return os.path.getsize(self.compiled()[0].path)

    @classmethod
    def build(
        cls,
        signature: Sequence[ArgDirection] = (),
        func_name: str = ENTRY,
        binary: Any = None,
        children: Sequence[tuple[int, CoreCallable]] = (),
        config_name: str = "",
        **_: Any,
    ) -> ChipCallable:
        return cls(signature, func_name, _source(binary, "a ChipCallable"), children, config_name)

    def compiled(self, traced: bool = False) -> list[CompiledJob]:
        """The orchestration, then the kernels; with `traced` their calls tell of themselves."""
        with self._lock:
            if traced not in self._made:
                profile = PLATFORMS[self.source.platform]
                jobs = [
                    Job(
                        "orchestration",
                        self.source.path,
                        "",
                        RUNTIMES[0],
                        profile,
                        self.func_name,
                        self.source.include_dirs,
                        CHIP,
                        self.config_name or CONFIG,
                        traced=traced,
                    )
                ]
                for _, core in self.children:
                    jobs.append(
                        Job(
                            core.name,
                            core.source.path,
                            core.source.core_type,
                            RUNTIMES[0],
                            profile,
                            include_dirs=core.source.include_dirs,
                            form=CHIP,
                            traced=traced,
                        )
                    )
                self._made[traced] = compile_all(jobs)
            return self._made[traced]


class CallableHandle:
    """What a worker gives for a callable that it knows."""

    def __init__(self, target: Any, worker: Any, number: int) -> None:
        self.target, self.worker, self.number = target, worker, number
        self.unregistered = False

    def __repr__(self) -> str:
        return f"<callable {self.number}: {getattr(self.target, 'name', None) or self.target!r}>"
