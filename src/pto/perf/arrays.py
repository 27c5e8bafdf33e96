"""Array files of unknown origin: read NumPy's `.npy` and `.npz` without trust in their content.

Malformed content raises `ValueError`, and memory is allocated only for data that the file contains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Maximum unpacked size of an archive: a thousand times the records of a large run.
MOST_UNPACKED = 1 << 30


def read_npy(stream: IO[bytes], size: int) -> Array:
    """Read an array in NumPy's format from a stream of `size` bytes. The header must describe numbers or
    records of numbers, and the stream must contain all of them."""
    import numpy as np
    from numpy.lib import format

    headers = {(1, 0): format.read_array_header_1_0, (2, 0): format.read_array_header_2_0}
    try:
        shape, by_columns, dtype = headers[format.read_magic(stream)](stream)
    except Exception as e:  # NumPy parses the header as Python, and does not catch errors of the parser
        raise ValueError(f"malformed header: {e}"[:200]) from None
    count = 1
    for extent in shape:
        if isinstance(extent, bool) or extent < 0:
            raise ValueError(f"malformed header: expected an extent, got {extent}")
        count *= extent
    if dtype.hasobject or not dtype.itemsize or len(shape) > 32:
        raise ValueError(f"cannot read {len(shape)} dimensions of {dtype}")
    wanted, left = count * dtype.itemsize, size - stream.tell()
    if wanted > left:
        raise ValueError(f"expected {wanted} bytes of elements, got {left}")
    data = bytearray(wanted)
    got = stream.readinto(data) if wanted else 0  # type: ignore[attr-defined]
    if got != wanted:
        raise ValueError(f"expected {wanted} bytes of elements, got {got}")
    return np.frombuffer(data, dtype, count).reshape(shape, order="F" if by_columns else "C")


def read_npz(stream: IO[bytes], names: Iterable[str]) -> dict[str, Array]:
    """Read some arrays of a NumPy archive. Together they may unpack to at most `MOST_UNPACKED` bytes."""
    import zipfile

    with zipfile.ZipFile(stream) as archive:
        known = {info.filename: info for info in archive.infolist()}
        wanted = {name: known.get(f"{name}.npy") for name in names}
        missing = [name for name, info in wanted.items() if info is None]
        if missing:
            raise ValueError(f"missing table '{missing[0]}'")
        found = {name: info for name, info in wanted.items() if info is not None}
        if sum(info.file_size for info in found.values()) > MOST_UNPACKED:
            raise ValueError(f"expected at most {MOST_UNPACKED} unpacked bytes")
        out: dict[str, Array] = {}
        for name, info in found.items():
            with archive.open(info) as member:
                out[name] = read_npy(member, info.file_size)
        return out
