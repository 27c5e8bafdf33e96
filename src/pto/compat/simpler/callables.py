"""Orchestrations and kernels: sources at first, libraries after a callable is built from them.

Programs compile sources one by one and wrap the results. But an orchestration is only compiled when the name
of its entry is known, together with its kernels, in parallel. Until then, a `SimplerSource` stands for the
binary.
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
from ...runtime.compile import CHIP, ENTRY, CompiledJob, Job, compile_all
from .directions import ArgDirection
from .refused import refuse

RUNTIMES = ("tensormap_and_ringbuffer", "host_build_graph")
CONFIG = "aicpu_orchestration_config"


class SimplerSource(bytes):
    """Result of a compile function: the name of a source, with everything that is needed to compile it."""

    path: str
    platform: str
    core_type: str
    include_dirs: tuple[str, ...]

    def __new__(
        cls, path: str, platform: str, core_type: str = "", include_dirs: Sequence[str] = ()
    ) -> SimplerSource:
        text = Path(path).read_bytes() if os.path.isfile(path) else b""
        made = super().__new__(cls, f"{path}\0{core_type}\0".encode() + hashlib.sha256(text).digest())
        made.path, made.platform, made.core_type = os.path.abspath(path), platform, core_type
        made.include_dirs = tuple(include_dirs)
        return made


def _source(binary: object, what: str) -> SimplerSource:
    if isinstance(binary, SimplerSource):
        return binary
    raise refuse(
        f"cannot build {what} from machine code of a device",
        "use the results of KernelCompiler.compile_incore and compile_orchestration",
    )


class KernelCompiler:
    """Collector of sources, which are compiled with their callable."""

    def __init__(self, platform: str = "a2a3sim") -> None:
        self.platform = platform_of(platform)
        self.project_root = Path.cwd()

    def compile_incore(
        self,
        source_path: Any,
        core_type: str = "aiv",
        pto_isa_root: object = None,
        extra_include_dirs: Sequence[Any] = (),
        **_: object,
    ) -> SimplerSource:
        if core_type not in ("aic", "aiv"):
            raise ValueError(f"expected core_type 'aic' or 'aiv', got {core_type!r}")
        folders = [os.fspath(f) for f in extra_include_dirs or () if os.path.isdir(f)]
        return SimplerSource(os.fspath(source_path), self.platform, core_type, folders)

    def compile_orchestration(self, runtime_name: str, source_path: Any = None, **_: object) -> SimplerSource:
        runtime_of(runtime_name)
        return SimplerSource(os.fspath(source_path), self.platform)

    def get_orchestration_include_dirs(self, runtime_name: str) -> list[str]:
        """Return no folders: sources find the headers of this package's runtime."""
        runtime_of(runtime_name)
        return []

    def get_incore_include_dirs(self) -> list[str]:
        return []


def platform_of(name: str) -> str:
    """Return the platform that kernels are compiled for; a device platform is simulated."""
    known = name if name in PLATFORMS else f"{name}sim"
    if known not in PLATFORMS:
        raise refuse(f"unknown platform '{name}'", f"use one of {', '.join(PLATFORMS)}")
    return known


def runtime_of(name: str) -> str:
    if name not in RUNTIMES:
        raise refuse(f"unknown runtime '{name}'", f"use one of {', '.join(RUNTIMES)}")
    return name


def extract_text_section(binary: object) -> object:
    """Return a binary unchanged, because the simulator needs no text section."""
    return binary


def ensure_pto_isa_root(*_: object, **__: object) -> str:
    """Return the folder of this package's headers instead of those of pto-isa."""
    from ...engine.cpp import compiler

    return str(compiler.include_dir())


def read_pto_isa_pin() -> str:
    return "pto"


class RuntimeBuilder:
    """Builder of runtimes, which are part of this package."""

    def __init__(self, platform: str = "a2a3sim", **_: object) -> None:
        self.platform = platform_of(platform)

    def get_binaries(self, runtime: str, **_: object) -> SimpleNamespace:
        return SimpleNamespace(runtime=runtime_of(runtime), platform=self.platform)

    build = get_binaries


class CoreCallable:
    """A kernel and the directions of its arguments."""

    def __init__(self, signature: Sequence[ArgDirection], source: SimplerSource, name: str = "") -> None:
        self.signature, self.source = list(signature), source
        self.name = name or os.path.basename(source.path).partition(".")[0]

    @classmethod
    def build(
        cls, signature: Sequence[ArgDirection] = (), binary: object = None, **_: object
    ) -> CoreCallable:
        return cls(signature, _source(binary, "a CoreCallable"))


class ChipCallable:
    """A compiled orchestration with its kernels."""

    def __init__(
        self,
        signature: Sequence[ArgDirection],
        func_name: str,
        source: SimplerSource,
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
        binary: object = None,
        children: Sequence[tuple[int, CoreCallable]] = (),
        config_name: str = "",
        **_: object,
    ) -> ChipCallable:
        return cls(signature, func_name, _source(binary, "a ChipCallable"), children, config_name)

    def compiled(self, traced: bool = False) -> list[CompiledJob]:
        """Return the orchestration, then the kernels. With `traced`, their calls are recorded."""
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
    """Handle of a callable that is registered at a worker."""

    def __init__(self, target: object, worker: object, number: int) -> None:
        self.target, self.worker, self.number = target, worker, number
        self.unregistered = False

    def __repr__(self) -> str:
        return f"<callable {self.number}: {getattr(self.target, 'name', None) or self.target!r}>"
