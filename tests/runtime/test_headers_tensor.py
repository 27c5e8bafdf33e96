"""Tensors of orchestration code: descriptors, views, and whether two of them share memory.

The other formulation is NumPy: a buffer is an array that holds its own element numbers, a view is a slice of
it, and two tensors share memory if the sets of numbers meet.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from .header_build import COMPILER, TMR, build

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

NO_OVERLAP, COVERED, OTHER = range(3)
ADDRESS = 0x10000
TYPES = {
    "FLOAT32": 4, "FLOAT16": 2, "INT32": 4, "INT16": 2, "INT8": 1, "UINT8": 1, "BFLOAT16": 2, "INT64": 8, "UINT64": 8,
    "UINT16": 2, "UINT32": 4, "BOOL": 1, "FP8E4M3FN": 1, "FP8E8M0": 1, "FP4E2M1": 1,
}  # fmt: skip


class Descriptor(ctypes.Structure):
    ref_count: int
    version: int
    addr: int
    size: int
    start_offset: int
    ndims: int
    dtype: int
    _fields_ = [
        ("ref_count", ctypes.c_int32),
        ("version", ctypes.c_int32),
        ("addr", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("raw_shapes", ctypes.c_uint64 * 5),
        ("shapes", ctypes.c_uint64 * 5),
        ("offsets", ctypes.c_uint64 * 5),
        ("start_offset", ctypes.c_uint64),
        ("ndims", ctypes.c_uint64),
        ("dtype", ctypes.c_uint32),
    ]

    def extents(self, name: str) -> list[int]:
        return list(getattr(self, name))[: self.ndims]


def numbers(values: Any) -> Any:
    return (ctypes.c_uint64 * 5)(*values)


class Pool:
    """A pool of the compiled headers; indices are the content of a Tensor."""

    def __init__(self, capacity: int = 1 << 17) -> None:
        self.lib: Any = ctypes.CDLL(str(build("headers/tensors.cpp", TMR, "-fsanitize=undefined")))
        self.lib.make_pool.restype = self.lib.descriptor.restype = ctypes.c_void_p
        self.lib.message.restype = self.lib.dtype_name.restype = ctypes.c_char_p
        self.lib.numel.restype = self.lib.element_size.restype = ctypes.c_uint64
        self.pool = ctypes.c_void_p(self.lib.make_pool(capacity))

    def close(self) -> None:
        self.lib.drop_pool(self.pool)

    def checked(self, result: int) -> int:
        if result < 0:
            raise ValueError(self.lib.message().decode())
        return result

    def make(self, shapes: Any, dtype: int = 0, version: int = 0, addr: int = ADDRESS) -> int:
        made = self.lib.make(
            ctypes.c_uint64(addr), numbers(shapes[:5]), ctypes.c_uint64(len(shapes)), dtype, version
        )
        return self.checked(made)

    def view(self, index: int, shapes: Any, offsets: Any) -> int:
        return self.checked(self.lib.view(index, numbers(shapes), numbers(offsets)))

    def reshape(self, index: int, shapes: Any) -> int:
        return self.checked(self.lib.reshape(index, numbers(shapes), ctypes.c_uint64(len(shapes))))

    def transpose(self, index: int, x: int, y: int) -> int:
        return self.checked(self.lib.transpose(index, ctypes.c_uint64(x), ctypes.c_uint64(y)))

    def copy(self, index: int) -> int:
        return self.checked(self.lib.copy(index))

    def at(self, index: int) -> Descriptor:
        place: int = self.lib.descriptor(self.pool, index)
        return Descriptor.from_address(place)

    def live(self) -> int:
        return int(self.lib.live(self.pool))


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


def test_data_types(pool: Pool) -> None:
    """pto2-runtime 2.2: numbers, sizes and names of the element types."""
    for number, (name, size) in enumerate(TYPES.items()):
        assert pool.lib.element_size(number) == size and pool.lib.dtype_name(number).decode() == name
    assert pool.lib.element_size(15) == 0 and pool.lib.dtype_name(15) == b"UNKNOWN" == pool.lib.dtype_name(77)


def test_made_tensors(pool: Pool) -> None:
    """pto2-runtime 2.2: make_tensor has no address, make_tensor_external has one; sizes are bytes."""
    outside = pool.at(pool.make([3, 5], dtype=1, version=2))
    assert (outside.addr, outside.size, outside.ndims, outside.dtype, outside.version) == (
        ADDRESS,
        30,
        2,
        1,
        2,
    )
    assert outside.extents("raw_shapes") == outside.extents("shapes") == [3, 5]
    assert outside.extents("offsets") == [0, 0] and outside.start_offset == 0 and outside.ref_count == 1
    assert pool.at(pool.make([7], addr=0)).addr == 0


def test_dump(pool: Pool) -> None:
    """pto2-runtime 2.4: the text of dump()."""
    text = ctypes.create_string_buffer(1000)
    part = pool.view(pool.make([4, 6], dtype=6, version=3), [2, 3], [1, 2])
    pool.lib.dump(part, text, len(text))
    assert text.value.decode().splitlines() == [
        "{",
        f"    buffer.addr: {ADDRESS}",
        "    buffer.size: 48 bytes",
        "    dtype: BFLOAT16",
        "    ndims: 2",
        "    version: 3",
        "    raw_shapes: [4, 6]",
        "    shapes: [2, 3]",
        "    offsets: [1, 2]",
        "}",
    ]


def test_handles(pool: Pool) -> None:
    """pto2-runtime 2.2 and 2.3: copies share the descriptor, moves leave an empty handle, counts return to zero."""
    assert pool.lib.handles(pool.pool) == 0 and pool.live() == 0


def test_assertions(pool: Pool) -> None:
    """pto2-runtime 2.2: AssertionError has condition, file and line."""
    assert pool.lib.assertion_parts() == 0 and pool.lib.asserted(1) == 1
    with pytest.raises(ValueError, match=r"tensors\.cpp:\d+: assertion failed: value == 1"):
        pool.checked(pool.lib.asserted(2))


def test_reshape_keeps_the_place(pool: Pool) -> None:
    """pto2-runtime 2.4: the documented runtime loses the offset here."""
    rows = pool.view(pool.make([8, 6]), [2, 6], [3, 0])
    flat = pool.at(pool.reshape(rows, [4, 3]))
    assert flat.extents("raw_shapes") == flat.extents("shapes") == [4, 3] and flat.extents("offsets") == [
        0,
        0,
    ]
    assert flat.start_offset == 18 and flat.addr == ADDRESS and flat.size == 8 * 6 * 4


def test_transpose_is_of_the_descriptor(pool: Pool) -> None:
    """pto2-runtime 2.4: raw_shapes, shapes and offsets change places; the first element stays where it is."""
    part = pool.view(pool.make([4, 7]), [2, 3], [1, 2])
    turned = pool.at(pool.transpose(part, 0, 1))
    assert [turned.extents(n) for n in ("raw_shapes", "shapes", "offsets")] == [[7, 4], [3, 2], [2, 1]]
    assert turned.start_offset == pool.at(part).start_offset == 1 * 7 + 2


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (
            lambda p: p.view(p.make([4, 6]), [2, 5], [0, 2]),
            "view: dimension 1: offset 2 and shape 5 do not fit in 6",
        ),
        (lambda p: p.view(p.make([4]), [1], [2**64 - 1]), "view: dimension 0: offset 18446744073709551615"),
        (lambda p: p.view(p.view(p.make([8]), [4], [0]), [4], [1]), "do not fit in 4"),
        (lambda p: p.reshape(p.make([4, 6]), [5, 5]), "reshape: the new shape must have 24 elements"),
        (
            lambda p: p.reshape(p.view(p.make([4, 6]), [4, 3], [0, 0]), [12]),
            "reshape: the tensor is not contiguous",
        ),
        (lambda p: p.transpose(p.make([4, 6]), 0, 2), "transpose: no dimensions 0 and 2 in a tensor of 2"),
        (lambda p: p.make([1] * 6), "at most 5 dimensions, got 6"),
        (lambda p: p.make([2**33, 2**33]), "more than 2\\^64 bytes"),
        (lambda p: p.make([4], dtype=15), "unknown data type"),
        (
            lambda p: p.checked(p.lib.param(0, p.make([4], addr=0))),
            "INPUT param must have a non-NULL buffer address",
        ),
        (
            lambda p: p.checked(p.lib.param(2, p.make([4], addr=0))),
            "INOUT param must have a non-NULL buffer address",
        ),
        (lambda p: p.checked(p.lib.empty_tensor()), "the Tensor is empty"),
    ],
)
def test_mistakes_are_named(pool: Pool, mistake: Any, text: str) -> None:
    """pto2-runtime 2.2 and 2.4; checks that the documented runtime lacks are made here."""
    with pytest.raises(ValueError, match=rf"tensors\.cpp:\d+: .*{text}"):
        mistake(pool)


def test_parameters(pool: Pool) -> None:
    """pto2-runtime 2.2: an output needs no address."""
    assert pool.lib.param(1, pool.make([4], addr=0)) == 1
    assert [pool.lib.param(k, pool.make([4])) for k in range(3)] == [0, 1, 2]


# --- shared memory -------------------------------------------------------------------------------------------


@dataclass
class Model:
    """A tensor twice: its index in the pool, and the numbers of its elements. Tensors of one frame were cut
    from the same tensor by views alone."""

    index: int
    elements: Any
    frame: object
    whole: bool = True

    def all(self) -> set[int]:
        return set(self.elements.ravel().tolist())


def expected(access: Model, earlier: Model) -> int:
    mine, theirs = access.all(), earlier.all()
    if not mine & theirs:
        return NO_OVERLAP
    return COVERED if theirs <= mine else OTHER


@st.composite
def extents(draw: st.DrawFn, size: int) -> list[int]:
    """Numbers with this product, at most five."""
    found: list[int] = []
    while size > 1 and len(found) < 4:
        factor = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        found.append(factor)
        size //= factor
    return [*found, size]


def cut(draw: st.DrawFn, pool: Pool, parent: Model) -> Model:
    offsets = [draw(st.integers(0, n - 1)) for n in parent.elements.shape]
    shapes = [draw(st.integers(1, n - o)) for n, o in zip(parent.elements.shape, offsets, strict=True)]
    part = parent.elements[tuple(slice(o, o + s) for o, s in zip(offsets, shapes, strict=True))]
    return Model(pool.view(parent.index, shapes, offsets), part, parent.frame, False)


def change(draw: st.DrawFn, pool: Pool, parent: Model) -> Model:
    """One operation on a tensor."""
    what = draw(st.sampled_from(["view", "view", "view", "reshape", "transpose", "copy"]))
    if what == "view":
        return cut(draw, pool, parent)
    if what == "copy":
        return Model(pool.copy(parent.index), parent.elements, parent.frame)
    if what == "transpose":
        x, y = (draw(st.integers(0, parent.elements.ndim - 1)) for _ in range(2))
        return Model(pool.transpose(parent.index, x, y), np.swapaxes(parent.elements, x, y), object())
    shapes = draw(extents(parent.elements.size))
    if not pool.lib.is_contiguous(parent.index):
        with pytest.raises(ValueError, match="not contiguous"):
            pool.reshape(parent.index, shapes)
        return parent
    # Memory order: a reshape does not see a transposition.
    return Model(
        pool.reshape(parent.index, shapes), np.sort(parent.elements, axis=None).reshape(shapes), object()
    )


@examples(150)
@given(data=st.data())
def test_descendants_of_one_buffer(data: st.DataObject) -> None:
    """Views, reshapes and transpositions of one buffer, pair by pair: within a frame the answer is exact (spec
    2.5), between frames an overlap is never missed and never called covered when it is not."""
    pool = Pool()
    try:
        shapes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
        dtype = data.draw(st.sampled_from([0, 1, 4, 7]))
        every = np.arange(np.prod(shapes)).reshape(shapes)
        made = [Model(pool.make(shapes, dtype), every, object())]
        for _ in range(data.draw(st.integers(1, 6))):
            made.append(change(data.draw, pool, data.draw(st.sampled_from(made))))  # pyright: ignore[reportArgumentType]
        for model in made:
            descriptor = pool.at(model.index)
            assert descriptor.extents("shapes") == list(model.elements.shape)
            assert descriptor.start_offset == model.elements.flat[0]
            assert pool.lib.numel(model.index) == model.elements.size
            if pool.lib.is_contiguous(model.index):
                assert np.ptp(model.elements) + 1 == model.elements.size
        for access in made:
            for earlier in made:
                got, truth = pool.lib.overlap(access.index, earlier.index), expected(access, earlier)
                if access.frame is earlier.frame:
                    assert pool.lib.is_overlap(access.index, earlier.index) == got == truth
                elif got == NO_OVERLAP:
                    assert truth == NO_OVERLAP
                elif got == COVERED:
                    assert truth == COVERED
    finally:
        pool.close()


def test_overlap_is_found_where_dimensions_mislead(pool: Pool) -> None:
    """pto2-runtime 2.5: dimension by dimension, tensors of different extents may seem apart; tensor_overlap is
    the helper that does not miss it. Here: a column block after a transposition, and a flat view."""
    base = pool.make([8, 8])
    turned = pool.transpose(pool.view(base, [4, 8], [4, 0]), 0, 1)
    corner = pool.view(base, [4, 4], [4, 0])
    assert pool.lib.is_overlap(turned, corner) == NO_OVERLAP and pool.lib.overlap(turned, corner) == OTHER
    flat = pool.view(pool.reshape(base, [64]), [32], [32])
    assert pool.lib.is_overlap(flat, corner) == NO_OVERLAP and pool.lib.overlap(flat, corner) == COVERED


def test_reshaped_parts_are_told_apart(pool: Pool) -> None:
    """Two rows, each as a matrix of its own: the same extents and offsets, other elements."""
    base = pool.make([2, 6])
    first, second = (pool.reshape(pool.view(base, [1, 6], [row, 0]), [2, 3]) for row in range(2))
    assert pool.lib.overlap(first, second) == NO_OVERLAP and pool.lib.overlap(first, first) == COVERED


def test_part_of_a_transposed_tensor_is_not_contiguous(pool: Pool) -> None:
    """pto2-runtime 2.4: by the extents alone it would be; its rows are columns of the buffer."""
    turned = pool.transpose(pool.make([4, 6]), 0, 1)
    assert pool.lib.is_contiguous(turned) and not pool.lib.is_contiguous(pool.view(turned, [2, 4], [0, 0]))
    assert pool.lib.is_contiguous(pool.view(pool.make([4, 6]), [2, 6], [1, 0]))


def test_versions(pool: Pool) -> None:
    """pto2-runtime 2.4: of a later version the regions do not matter; an earlier one is an error."""
    new, old = (pool.view(pool.make([8], version=v), [2], [o]) for v, o in ((1, 0), (0, 4)))
    assert pool.lib.is_overlap(new, old) == OTHER == pool.lib.overlap(new, old)
    for overlap in (pool.lib.is_overlap, pool.lib.overlap):
        with pytest.raises(
            ValueError, match="version 0 of a tensor is used after version 1 of the same buffer"
        ):
            pool.checked(overlap(old, new))
    assert pool.at(pool.view(new, [1], [0])).version == pool.at(pool.copy(new)).version == 1


def test_buffers_are_told_apart_by_their_address(pool: Pool) -> None:
    """pto2-runtime 2.5: the key is the base address, exactly."""
    near = pool.make([8], addr=ADDRESS + 4)
    assert pool.lib.is_overlap(pool.make([8]), near) == NO_OVERLAP == pool.lib.overlap(pool.make([8]), near)


# --- the pool ------------------------------------------------------------------------------------------------


def test_pool_is_full_at_its_capacity() -> None:
    """pto2-runtime 2.4: index 0 is reserved, so one less than TENSOR_DATA_MAX_SIZE descriptors."""
    pool = Pool()
    made = [pool.make([1]) for _ in range((1 << 17) - 1)]
    assert sorted(made) == list(range(1, 1 << 17)) and pool.live() == len(made)
    with pytest.raises(ValueError, match="the tensor pool is full: 131071 tensors are in use"):
        pool.make([1])
    pool.lib.release(pool.pool, made[70])
    assert pool.make([1]) == made[70]
    pool.close()


def test_pool_asks_before_it_gives_up() -> None:
    pool = Pool(4)
    made = [pool.make([1]) for _ in range(3)]
    pool.lib.reclaim_once(pool.pool, made[1])
    assert pool.make([1]) == made[1]
    with pytest.raises(ValueError, match="pool is full"):
        pool.make([1])
    pool.lib.reset(pool.pool)
    assert pool.live() == 0 and pool.make([1]) == 1
    pool.close()


@examples(50)
@given(st.lists(st.tuples(st.sampled_from(["make", "retain", "release"]), st.integers(0, 30)), max_size=60))
def test_pool_counts(steps: list[tuple[str, int]]) -> None:
    """Against a dictionary: an index is used again only after its last reference, contents stay until then."""
    pool, counts, places = Pool(64), dict[int, int](), dict[int, int]()
    peak = 0
    for number, (step, which) in enumerate(steps):
        if step == "make":
            index = pool.make([number + 1])
            assert index not in counts and index != 0
            counts[index] = 1
            places[index] = number + 1
        elif counts:
            index = sorted(counts)[which % len(counts)]
            counts[index] += 1 if step == "retain" else -1
            getattr(pool.lib, step)(pool.pool, index)
            if counts[index] == 0:
                del counts[index]
        peak = max(peak, len(counts))
        assert pool.live() == len(counts) and pool.lib.peak(pool.pool) == peak
        for index, count in counts.items():
            assert (pool.at(index).ref_count, pool.at(index).extents("shapes")) == (count, [places[index]])
    pool.close()
