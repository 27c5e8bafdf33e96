"""Directions of the arguments of an orchestration."""

from __future__ import annotations

import enum


class ArgDirection(enum.Enum):
    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3
