"""Replacement of `pypto.debug`: programs as Python scripts, and refused names that point to alternatives."""

from __future__ import annotations

from typing import Any

from .refused import missing

_SCRIPT = '''"""{name}, as Python executes it: operators work on arrays, in place."""

import pto.language as pl
from pto.language.programs.jit import JitFunction

_PROGRAM = pl.parse_program("""
{text}""")


def _function(name):
    """Return a function that changes its arrays or tensors, and returns the results of the program."""
    return JitFunction(_PROGRAM.methods[name].declared).interpret


{functions}
'''


def torch_codegen(node: Any, *, check_shapes: bool = False) -> str:
    """Return a script that executes a program or a function on tensors of torch or arrays of NumPy: `exec`
    it, and call its functions by their names. Shapes are always checked, also without `check_shapes`."""
    program = getattr(getattr(node, "declared", None), "owner", None) or node
    text = node.as_python()
    names = list(getattr(program, "methods", None) or [node.declared.name])
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    functions = "\n".join(f'{name} = _function("{name}")' for name in names)
    return _SCRIPT.format(name=getattr(program, "__name__", names[0]), text=escaped, functions=functions)


def __getattr__(name: str) -> Any:
    return missing("pypto.debug", name)
