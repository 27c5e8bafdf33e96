"""Replacement of `simpler_setup` itself."""

from __future__ import annotations

import importlib
from typing import Any

from .callables import KernelCompiler, RuntimeBuilder, ensure_pto_isa_root, extract_text_section
from .interop import make_chip_tensor_arg, make_tensor_arg, torch_dtype_to_datatype
from .modules import MODULES
from .scene import (
    CallableNamespace,
    Scalar,
    SceneTestCase,
    SceneTestLevel,
    TaskArgsBuilder,
    TensorArg,
    scene_level,
    scene_test,
)

#: An earlier name.
Tensor = TensorArg


def __getattr__(name: str) -> Any:
    if f"simpler_setup.{name}" in MODULES:
        return importlib.import_module(f"simpler_setup.{name}")
    raise AttributeError(f"module 'simpler_setup' has no attribute '{name}'")


__all__ = [
    "CallableNamespace",
    "KernelCompiler",
    "RuntimeBuilder",
    "Scalar",
    "SceneTestCase",
    "SceneTestLevel",
    "TaskArgsBuilder",
    "Tensor",
    "TensorArg",
    "ensure_pto_isa_root",
    "extract_text_section",
    "make_chip_tensor_arg",
    "make_tensor_arg",
    "scene_level",
    "scene_test",
    "torch_dtype_to_datatype",
]
