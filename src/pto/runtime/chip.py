"""Arguments of orchestrations whose entry takes ChipTaskArgs, as the words that the runtime passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .tensors import MAX_DIMS

#: Address, bytes, number of the element type, shape.
Placed = tuple[int, int, int, Sequence[int]]


def words(tensors: Iterable[Placed], scalars: Iterable[int]) -> list[int]:
    """Encode arguments; see ChipTaskArgs::read in pto2/chip/pto_orchestration_api.h."""
    out: list[int] = [0]
    for address, nbytes, dtype, shape in tensors:
        extents = [*shape, *[1] * (MAX_DIMS - len(shape))]
        out += [address, nbytes, dtype, len(shape), *extents]
        out[0] += 1
    return [*out, *scalars]
