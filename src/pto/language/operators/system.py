"""Operators that synchronize pipes and cores: `pl.system`."""

from __future__ import annotations

from ..enums import PipeType
from ..ir import Dim, Value, index, is_scalar, is_tensor
from ..ir.build import Build
from ..problems import ARGUMENTS, TYPE
from .core import Array, Extents, operator
from .memory import in_core

# ---- pipes ----


def _barrier(name: str, pipe: PipeType, doc: str) -> None:
    def function(b: Build) -> None:
        in_core(b)
        b.append(f"system.{name}", [], {})

    function.__doc__ = doc
    function.pipe = pipe  # type: ignore[attr-defined]
    operator(function, name=name, level="system")


_barrier("bar_v", PipeType.V, "Let later vector work wait for all earlier vector work.")
_barrier("bar_m", PipeType.M, "Let later work of the cube wait for all its earlier work.")
_barrier("bar_all", PipeType.ALL, "Let every pipe of the core wait for all earlier work.")


@operator(level="system")
def sync_src(b: Build, *, set_pipe: PipeType, wait_pipe: PipeType, event_id: int) -> None:
    """Set a flag when a pipe has finished its work so far. The tools add no flags to a kernel that sets
    flags.
    """
    _flag(b, "sync_src", set_pipe, wait_pipe, event_id)


@operator(level="system")
def sync_dst(b: Build, *, set_pipe: PipeType, wait_pipe: PipeType, event_id: int) -> None:
    """Let a pipe wait for a flag."""
    _flag(b, "sync_dst", set_pipe, wait_pipe, event_id)


def _flag(b: Build, name: str, set_pipe: object, wait_pipe: object, event_id: object) -> None:
    in_core(b)
    for at, pipe in (("set_pipe", set_pipe), ("wait_pipe", wait_pipe)):
        _pipe(b, pipe, at)
    if not isinstance(event_id, int) or not 0 <= event_id <= 7:
        b.fail(ARGUMENTS, "unknown flag", "event_id", expected="0 to 7", got=_shown(event_id))
    b.append(f"system.{name}", [], {"set_pipe": set_pipe, "wait_pipe": wait_pipe, "event_id": event_id})


def _pipe(b: Build, pipe: object, at: str) -> PipeType:
    if not isinstance(pipe, PipeType):
        b.fail(TYPE, f"expected a pipe for '{at}'", at, expected="a pl.PipeType", got=_shown(pipe))
    return pipe


# ---- cores ----


@operator(level="system")
def sync_set(
    b: Build, event_id: Dim, *, pipe: PipeType, ffts_mode: int | None = None, core_type: str | None = None
) -> None:
    """Signal the other cores of the block when a pipe has finished its work so far."""
    in_core(b)
    _event(b, event_id)
    b.append(
        "system.sync_set",
        [],
        {
            "event_id": event_id,
            "pipe": _pipe(b, pipe, "pipe"),
            "ffts_mode": ffts_mode,
            "core_type": core_type,
        },
    )


@operator(level="system")
def sync_wait(b: Build, event_id: Dim, *, pipe: PipeType, core_type: str | None = None) -> None:
    """Wait for the signal of another core of the block."""
    in_core(b)
    _event(b, event_id)
    b.append(
        "system.sync_wait", [], {"event_id": event_id, "pipe": _pipe(b, pipe, "pipe"), "core_type": core_type}
    )


def _event(b: Build, event_id: object) -> None:
    known = index.known(event_id) if is_scalar(event_id) and not isinstance(event_id, float) else -1
    if known is not None and not 0 <= known <= 13:
        b.fail(ARGUMENTS, "unknown signal", "event_id", expected="0 to 13", got=_shown(event_id))


@operator(level="system")
def syncall(
    b: Build,
    *,
    core_type: str = "mix",
    mode: str = "hard",
    gm_workspace: Array | None = None,
    used_cores: Dim | None = None,
) -> None:
    """Wait until all cores have arrived."""
    in_core(b)
    for at, given, words in (
        ("core_type", core_type, ("mix", "aiv_only", "aic_only")),
        ("mode", mode, ("hard", "soft")),
    ):
        if given not in words:
            b.fail(ARGUMENTS, f"unknown value {given!r} of '{at}'", at, expected=", ".join(words))
    if (mode == "soft") != is_tensor(gm_workspace):
        b.fail(ARGUMENTS, "expected a workspace for a soft syncall, and none for a hard one", "gm_workspace",
               expected="a zeroed tensor of 16 INT32" if mode == "soft" else "none")  # fmt: skip
    b.append("system.syncall", [], {"core_type": core_type, "mode": mode, "gm_workspace": gm_workspace,
                                    "used_cores": used_cores})  # fmt: skip


@operator(level="system")
def fence(b: Build) -> None:
    """Make the memory writes of this core visible to other cores."""
    in_core(b)
    b.append("system.fence", [], {})


operator(fence.function, name="fence", level="pld.system")


@operator(level="system")
def cacheinvalid(
    b: Build, tensor: Array | None = None, shapes: Extents | None = None, offsets: Extents | None = None
) -> None:
    """Invalidate the cache of the scalar unit, so that later reads see writes of other cores."""
    in_core(b)
    b.append("system.cacheinvalid", [], {})


@operator(level="system")
def set_ffts(b: Build, workspace: Array) -> None:
    """Set the memory of signals between cores, which is not needed here."""
    in_core(b)
    if not is_tensor(workspace):
        b.fail(TYPE, "expected a tensor for 'workspace'", "workspace", got=_shown(workspace))


def _shown(value: object) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)
