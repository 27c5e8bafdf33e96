"""Operators of the language: those that are instructions (rows.py) and those that are more than one."""

from . import cube, directives, fifo, memory
from .core import OPERATORS, Operator
from .rows import add_all

add_all()

__all__ = ["OPERATORS", "Operator", "cube", "directives", "fifo", "memory"]
