"""Operators of FIFOs between the cube core and the vector cores of a cluster.

The pass `mixed` makes them; programs with separate cube and vector functions use them directly.
"""

from __future__ import annotations

from ..dtypes import INT32, DataType
from ..ir import Dim, ScalarType, TileType, Value, is_tile
from ..ir.build import Build
from ..problems import ARGUMENTS, TYPE
from .core import Array, Extents, Function, Scalar, Tile, operator
from .memory import in_core

#: FIFOs by their bit in `dir_mask`: cube to vector, vector to cube.
C2V, V2C = 1, 2
#: An address that the tools choose.
AUTO = -1
ARRIVES = {C2V: "vec", V2C: "mat"}


def _push(name: str, side: str) -> Function:
    def push(b: Build, tile: Tile, *, split: int, id: int | None = None) -> None:
        in_core(b)
        if not is_tile(tile):
            b.fail(
                TYPE,
                "expected a tile for 'tile'",
                "tile",
                got=tile.type if isinstance(tile, Value) else repr(tile),
            )
        b.append(name, [], {"tile": tile, "split": split, "id": id})

    push.__doc__ = f"Put a tile into a FIFO to {side}; wait while it is full."
    return operator(push, name=name)


def _pop(name: str, side: str, space: str) -> Function:
    def pop(
        b: Build, *, shape: Extents | None = None, dtype: DataType | None = None, split: int = 0,
        id: int | None = None,
    ) -> Tile:  # fmt: skip
        in_core(b)
        said = b.said  # `x: pl.Tile[shape, dtype] = pl.tpop..`
        shape = shape if shape is not None or said is None else list(said.shape or ())
        dtype = dtype if dtype is not None or said is None else said.dtype
        if not shape or dtype is None:
            b.fail(ARGUMENTS, f"missing shape and element type of {name}",
                   help=f"x: pl.Tile[[rows, cols], dtype] = pl.{name}(split=..)")  # fmt: skip
        sizes = b.static(shape, "shape")
        view = (
            next((e for e in said.extras if getattr(e, "valid_shape", None)), None)
            if said is not None
            else None
        )
        valid = None if view is None else tuple(b.as_index(d) for d in b.dims(view.valid_shape, "shape"))
        return b.op(
            name, [TileType(dtype, tuple(sizes), valid, space)], shape=sizes, dtype=dtype, split=split, id=id
        )

    pop.__doc__ = f"Pop the next tile of a FIFO from {side}; wait until there is one."
    return operator(pop, name=name)


def _free(name: str, side: str) -> Function:
    def free(b: Build, tile: Tile, *, split: int | None = None, id: int | None = None) -> None:
        in_core(b)
        popped = tile.op if isinstance(tile, Value) else None
        if split is None and popped is not None:
            split = popped.args.get("split")
        b.append(name, [], {"tile": tile, "split": split, "id": id})

    free.__doc__ = f"Free the slot of a tile that came from {side}."
    return operator(free, name=name)


for _me, _other, _space in (("aic", "aiv", "mat"), ("aiv", "aic", "vec")):
    _who = {"aic": "the cube core", "aiv": "the vector cores"}[_other]
    _push(f"tpush_to_{_other}", _who)
    _pop(f"tpop_from_{_other}", _who, _space)
    _free(f"tfree_to_{_other}", _who)


def _initialize(name: str) -> None:
    def initialize(
        b: Build, c2v_consumer_buf: Dim | None = None, v2c_consumer_buf: Dim | None = None, *, dir_mask: int,
        slot_size: int, slot_num: int | None = None, local_slot_num: int | None = None, id: int | None = None,
        gm_slot_buffer: Array | None = None, gm_offset: Dim = 0,
    ) -> None:  # fmt: skip
        in_core(b)
        b.append(name, [], {
            "c2v_consumer_buf": c2v_consumer_buf, "v2c_consumer_buf": v2c_consumer_buf, "dir_mask": dir_mask,
            "slot_size": slot_size, "slot_num": slot_num, "local_slot_num": local_slot_num, "id": id,
            "gm_slot_buffer": gm_slot_buffer, "gm_offset": gm_offset,
        })  # fmt: skip

    initialize.__doc__ = (
        "Initialize this side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."
    )
    operator(initialize, name=name)


_initialize("aic_initialize_pipe")
_initialize("aiv_initialize_pipe")


@operator
def reserve_buffer(b: Build, *, name: str, size: int, base: int | None = AUTO) -> Scalar:
    """Reserve memory for the tiles that arrive in a FIFO. The tools choose the address if `base` is `pl.AUTO`
    or left out."""
    in_core(b)
    return b.op("reserve_buffer", [ScalarType(INT32)], name=name, size=size, base=base)


@operator
def import_peer_buffer(b: Build, *, name: str, peer_func: object) -> Scalar:
    """Return the address of the FIFO memory of the other side."""
    in_core(b)
    peer = getattr(getattr(peer_func, "declared", None), "name", peer_func)
    return b.op("import_peer_buffer", [ScalarType(INT32)], name=name, peer_func=peer)


#: Operators that are also in `pl.system`.
BUFFERS = (
    "aic_initialize_pipe", "aiv_initialize_pipe", "reserve_buffer", "import_peer_buffer", "tfree_to_aic",
    "tfree_to_aiv",
)  # fmt: skip
#: Operations with effects besides their result.
EFFECTS = {f"{word}_{way}" for word, way in (
    ("tpush", "to_aiv"), ("tpush", "to_aic"), ("tpop", "from_aic"), ("tpop", "from_aiv"), ("tfree", "to_aic"),
    ("tfree", "to_aiv"), ("aic", "initialize_pipe"), ("aiv", "initialize_pipe"),
)}  # fmt: skip
