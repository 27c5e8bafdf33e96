"""Tile instructions whose spelling depends on more than the present operands and attributes."""

from __future__ import annotations

from ...ir.core import Operation
from ...ir.types import LocalArrayType, PtrType, TileBufType, ViewType
from ...isa.dtypes import SPELLINGS
from ...isa.enums import ENUMS
from .function import CppFunction, handles


def _by_row(op: Operation, data: str) -> str:
    """Return the mode of indices, rows or elements; in mode auto the shapes decide."""
    mode = str(op.attr("coalesce"))
    if mode != "auto":
        return mode.title()
    idx, tile = op.group("idx")[0].type, op.group(data)[0].type
    assert isinstance(tile, TileBufType)
    shape = (tile.v_row, tile.v_col)
    if isinstance(idx, TileBufType):
        same = (idx.v_row, idx.v_col) == shape
    else:
        same = isinstance(idx, ViewType) and tuple(idx.dims[-2:]) == shape
    return "Elem" if same and tile.v_col != 1 else "Row"


@handles("pto.mgather")
def _mgather(f: CppFunction, op: Operation) -> None:
    oob = str(op.attr("gatherOob"))
    given = op.attrs.keys() & {"coalesce", "gather_exec"} or oob != "undefined"
    types: list[str] = []
    if given or op.group("scratch"):
        types.append(f"Coalesce::{_by_row(op, 'dst')}")
        if oob != "undefined" or op.attr("gather_exec") != "scalar":
            types.append(ENUMS["gather_oob"].spelling(oob))
        if op.attr("gather_exec") != "scalar":
            types.append("GatherExec::Simt")
    _indexed(f, op, "MGATHER", types, ("dst", "mem", "idx", "scratch"))


@handles("pto.mscatter")
def _mscatter(f: CppFunction, op: Operation) -> None:
    atomic, oob, conflict = (str(op.attr(n)) for n in ("scatterAtomicOp", "scatterOob", "conflict"))
    types: list[str] = []
    if atomic != "none" or oob != "undefined" or conflict != "last" or op.attr("coalesce") != "auto":
        types = [f"Coalesce::{_by_row(op, 'src')}", ENUMS["scatter_atomic_op"].spelling(atomic)]
        if oob != "undefined" or conflict != "last":
            types.append(ENUMS["scatter_oob"].spelling(oob))
        if conflict != "last":
            types.append(f"ScatterConflict::{conflict.title()}")
    _indexed(f, op, "MSCATTER", types, ("mem", "src", "idx"))


def _indexed(f: CppFunction, op: Operation, call: str, types: list[str], names: tuple[str, ...]) -> None:
    values = ", ".join(f.text(v) for name in names for v in op.group(name))
    f.line(f"{call}{'<' + ', '.join(types) + '>' if types else ''}({values});")


@handles("pto.tfillpad")
def _tfillpad(f: CppFunction, op: Operation) -> None:
    """Emit a fill: the pad value of a Mat tile is a template argument, the pad value of a Vec tile is in its
    type.
    """
    src, dst = op.operands
    if isinstance(dst.type, TileBufType) and dst.type.loc == "mat" and dst.type.pad:
        pad = ENUMS["pad_value"].spelling(tuple(ENUMS["pad_value"].values)[min(dst.type.pad, 3)])
        f.line(f"TFILLPAD<{f.type_of(dst)}, {pad}>({f.text(dst)}, {f.text(src)});")
    else:
        f.line(f"TFILLPAD({f.text(dst)}, {f.text(src)});")


@handles("pto.set_quant_scalar")
def _set_quant_scalar(f: CppFunction, op: Operation) -> None:
    to = SPELLINGS.get(str(op.attr("out_type")).lower())
    if to is None:
        f.unit.no_spelling(op, "without 'out_type'")
    else:
        f.line(f"SET_QUANT_SCALAR<{to.cpp}>({f.text(op.operands[0])});")


@handles("pto.syncall")
def _syncall(f: CppFunction, op: Operation) -> None:
    """Convert a workspace pointer to the tensor of one line that the call takes."""
    workspace = op.get("gm_workspace")
    if workspace is None or not isinstance(workspace.type, PtrType):
        f.regular(op)
        return
    mode = ENUMS["sync_all_mode"].spelling(str(op.attr("mode")))
    cores = ENUMS["sync_core_type"].spelling(str(op.attr("core_type")))
    shape, stride = "pto::Shape<1, 1, 1, 1, 16>", "pto::Stride<16, 16, 16, 16, 1>"
    type = f"GlobalTensor<{f.types.scalar(workspace.type.elem)}, {shape}, {stride}, pto::Layout::ND>"
    token = f.token()
    f.line(f"{type} {token} = {type}({f.text(workspace)}, {shape}(), {stride}());")
    used = op.get("used_cores")
    f.line(f"SYNCALL<{mode}, {cores}>({token}{', ' + f.text(used) if used is not None else ''});")


@handles("pto.declare_eventid_array")
def _event_ids(f: CppFunction, op: Operation) -> None:
    f.declare(op.results[0], f.types(op.results[0].type))


@handles("pto.declare_local_array")
def _local_array(f: CppFunction, op: Operation) -> None:
    array = op.results[0]
    assert isinstance(array.type, LocalArrayType)
    extents = "".join(f"[{n}]" for n in array.type.dims)
    f.declare(array, f.types.scalar(array.type.elem), extents=extents)


@handles("pto.local_array_get")
def _local_array_get(f: CppFunction, op: Operation) -> None:
    """Emit a separate variable: the element may change before the value is used."""
    f.declare(op.results[0], f.types(op.results[0].type), _local_element(f, op))


@handles("pto.local_array_set")
def _local_array_set(f: CppFunction, op: Operation) -> None:
    f.line(f"{_local_element(f, op)} = {f.text(op.group('value')[0])};")


def _local_element(f: CppFunction, op: Operation) -> str:
    indices = "".join(f"[{f.text(i)}]" for i in op.group("indices"))
    return f"{f.text(op.operands[0])}{indices}"


@handles("pto.tmrgsort")
def _tmrgsort(f: CppFunction, op: Operation) -> None:
    """Emit a merge of lists, with the counts of taken elements in an operand or in a spare variable."""
    if not op.group("src1") or op.group("excuted"):
        f.regular(op)
        return
    name = "pto::MrgSortExecutedNumList"
    sources = [v for n in ("src", "src1", "src2", "src3") for v in op.group(n)]
    dst, tmp = op.group("dst")[0], op.group("tmp")
    if not tmp:
        f.unit.no_spelling(op, "with 'src1'")
        return
    types = ", ".join(f.type_of(v) for v in (dst, *tmp, *sources))
    values = ", ".join(f.text(v) for v in sources)
    counts = f.helper(name, f"{name}{{0, 0, 0, 0}}")
    done = "true" if op.attr("exhausted") else "false"
    f.line(f"TMRGSORT<{types}, {done}>({f.text(dst)}, {counts}, {f.text(tmp[0])}, {values});")
