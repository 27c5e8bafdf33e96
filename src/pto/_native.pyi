"""Compiled element conversion and tile packing; built from native/bindings/module.cpp."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

def dtypes() -> list[tuple[str, int]]: ...
def decode(dtype: str, codes: Array, wide: bool = False) -> Array: ...
def encode(
    dtype: str, values: Array, round: str = "RINT", saturate: bool = False, nan: str = "max"
) -> Array: ...
def convert(
    src: str, dst: str, codes: Array, round: str = "RINT", saturate: bool = False, nan: str = "max"
) -> Array: ...
def pack4(codes: Array) -> Array: ...
def unpack4(data: Array, count: int) -> Array: ...
def pack(
    matrix: Array,
    storage: Array,
    layout: str,
    rows: int,
    cols: int,
    box_rows: int,
    box_cols: int,
    pitch: int,
    bits: int,
) -> None: ...
def unpack(
    storage: Array,
    layout: str,
    rows: int,
    cols: int,
    box_rows: int,
    box_cols: int,
    pitch: int,
    bits: int,
    valid_rows: int,
    valid_cols: int,
) -> Array: ...
def number(name: str, x: float, y: float = 0.0, single: bool = False) -> float: ...
def exp_f32(x: Array, wide: bool = False) -> Array: ...
def log_f32(x: Array, wide: bool = False) -> Array: ...
def pow_f32(x: Array, y: Array, wide: bool = False) -> Array: ...
def pow_f64(x: Array, y: Array) -> Array: ...

class Launcher:
    def __init__(
        self, function: int, array: type, takes: list[Any], subblocks: int, program: int, print: int
    ) -> None: ...
    def __call__(
        self, args: tuple[Any, ...], blocks: int, threads: int
    ) -> int | tuple[int, bytes, int, int, int] | None: ...
