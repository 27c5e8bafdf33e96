"""Operators that change no value: prefetches, and marks for tools."""

from __future__ import annotations

from ..ir.build import Build
from ..problems import TYPE
from .core import Array, operator
from .memory import tensor_value

#: Handles of prefetches, and the operators that make them.
_MADE_BY = {
    "context": "pl.prefetch.make_context()",
    "event": "pl.prefetch.async_prefetch(x, ctx)",
    "session": "pl.prefetch.session(ctx)",
}


def _handle(b: Build, given: object, kind: str, at: str) -> None:
    if given != kind:
        got = _MADE_BY.get(given, repr(given)) if isinstance(given, str) else repr(given)
        b.fail(TYPE, f"expected a prefetch {kind} for '{at}'", at, expected=_MADE_BY[kind], got=got)


@operator(level="prefetch")
def make_context(b: Build) -> str:
    """Make the context of prefetches."""
    return "context"


@operator(level="prefetch")
def async_prefetch(b: Build, src: Array, ctx: object) -> str:
    """Announce that a tensor will be read soon."""
    tensor_value(b, src, "src")
    _handle(b, ctx, "context", "ctx")
    return "event"


@operator(level="prefetch")
def session(b: Build, ctx: object) -> str:
    """Return the session that waits for prefetches."""
    _handle(b, ctx, "context", "ctx")
    return "session"


@operator(level="prefetch")
def wait(b: Build, event: object, session_handle: object) -> bool:
    """Return True, because a prefetch is always done."""
    _handle(b, event, "event", "event")
    _handle(b, session_handle, "session", "session_handle")
    return True


@operator
def dump_tag(b: Build, tensor: Array) -> Array:
    """Mark a tensor for tools that show its contents; return the tensor."""
    return tensor_value(b, tensor, "tensor")
