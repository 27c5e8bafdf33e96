"""Operators that change no value: prefetches, and marks for tools."""

from __future__ import annotations

from typing import Any

from ..build import Build
from ..ir import Value
from .core import operator
from .memory import tensor_value


@operator(level="prefetch")
def make_context(b: Build) -> str:
    """What prefetches belong to."""
    return "context"


@operator(level="prefetch")
def async_prefetch(b: Build, src: Any, ctx: Any) -> str:
    """Say that a tensor will be read soon."""
    tensor_value(b, src, "src")
    return "event"


@operator(level="prefetch")
def session(b: Build, ctx: Any) -> str:
    """What prefetches are waited for with."""
    return "session"


@operator(level="prefetch")
def wait(b: Build, event: Any, session_handle: Any) -> bool:
    """Whether a prefetch is done: always."""
    return True


@operator
def dump_tag(b: Build, tensor: Any) -> Value:
    """Mark a tensor for tools that show what it holds; the tensor is what it returns."""
    return tensor_value(b, tensor, "tensor")
