"""Operators of the language: those that are instructions (rows.py) and those that are more than one."""

from . import casts, compute, cube, directives, fifo, memory, shapes, tasks
from .core import OPERATORS, Operator
from .rows import add_all

add_all()

__all__ = [
    "OPERATORS",
    "Operator",
    "casts",
    "compute",
    "cube",
    "directives",
    "fifo",
    "memory",
    "shapes",
    "tasks",
]
