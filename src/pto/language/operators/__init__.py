"""Operators of the language: those that are instructions (rows.py) and those that are more than one."""

from . import casts, compute, gather, memory, shapes
from .core import OPERATORS, Operator
from .rows import add_all

add_all()

__all__ = ["OPERATORS", "Operator", "casts", "compute", "gather", "memory", "shapes"]
