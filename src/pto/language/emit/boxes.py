"""Scales of products as boxes in memory: 16 rows of 2, or 2 rows of 16."""

from __future__ import annotations

from typing import Any

from ...ir.attrs import EnumAttr
from ...ir.core import Value as PtoValue
from ...ir.types import INDEX, ViewType
from .. import index
from ..ir import Value
from ..problems import UNSUPPORTED, fail
from .scalars import element

#: Mixin methods of `Emitter` (incore.py), which defines the other members.
Base: Any = object


class Boxes(Base):
    def boxes(self, tensor: Value, offsets: list[Any], sizes: list[Any]) -> PtoValue:
        """Return a window of scales: boxes of 16 rows (columns of a right operand), one after another."""
        t, ref = tensor.type, self.tensors[tensor]
        dims: list[Any] = [index.known(d) for d in t.shape]
        extents: list[Any] = [index.known(n) for n in sizes]
        if None in (*dims, *extents) or t.strides is not None:
            fail(UNSUPPORTED, "cannot load a window of scales with dynamic extents", self.loc, got=t)
        places = [self._plus(o, p) for o, p in zip(ref.offsets, offsets, strict=True)]
        if t.layout == "MX_B_NN":
            dims, extents, places = dims[::-1], extents[::-1], places[::-1]
        (long, wide), (rows, cols) = dims, extents
        shape, strides = [1, long // 16, wide // 2, 16, 2], [long * wide, 16 * wide, 32, 2, 1]
        view = self.build.op(
            "pto.make_tensor_view", [ViewType(element(t.dtype), tuple(shape), "tensor_view")],
            {"layout": EnumAttr("layout", t.layout.lower())}, ptr=ref.ptr,
            shape=[self.index(d) for d in shape], strides=[self.index(s) for s in strides],
        ).result  # fmt: skip
        at = [0, self._over(places[0], 16), self._over(places[1], 2), 0, 0]
        part = [1, rows // 16, cols // 2, 16, 2]
        return self.build.op(
            "pto.partition_view", [ViewType(element(t.dtype), tuple(part))], source=view,
            offsets=[self._index(o) for o in at], sizes=[self.index(n) for n in part],
        ).result  # fmt: skip

    def _over(self, a: Any, by: int) -> Any:
        if isinstance(a, int):
            return a // by
        return self.build.op("arith.divsi", [INDEX], lhs=self._index(a), rhs=self.index(by)).result
