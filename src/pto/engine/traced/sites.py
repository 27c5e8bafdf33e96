"""Turns records into steps: each call site has one operation, lowered once, and each record only has values.

A site is a call in the C++ text with its constant facts: its row, its attributes and the types of its
operands. Its operation is in a function of a module that grows as sites are found. Its step comes from the
lowering of programs, so observers see no difference to programs.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...diag import Diagnostic
from ...ir.attrs import ArrayAttr, Attribute, BoolAttr, EnumAttr, IntAttr, StrAttr
from ...ir.builder import Builder
from ...ir.core import Block, Module, Operation, Value
from ...ir.types import (
    INDEX,
    ConvTileType,
    MaskType,
    ScalarType,
    TileBufType,
    TokenType,
    Type,
)
from ...isa import row as find_row
from ...isa.dtypes import DTYPES
from ...isa.enums import ENUMS
from ...isa.machine import C2V, EVERY_PIPE, PIPES, V2C
from ...isa.micro_tags import TAGS
from ...isa.row import Row
from ..cpp.places import LibraryPlaces
from ..elements import decode
from ..memory import ConvTile, Pointer, Storage, Tile, View, array_of
from ..reference import fifo, transfers
from ..reference.code import Code, Step
from ..reference.core import Core, RunError
from ..reference.handles import check_edge, make_tile
from ..reference.lower import Lower, LoweredModule
from ..registers import maker
from .memory import TracedMemory
from .types import (
    CONV,
    COUNTS,
    ELEMENTS,
    FRAMES,
    GROUP,
    LOCATIONS,
    MASK,
    MEMBERS,
    NUMBER,
    PIPE,
    POINTER,
    TENSOR,
    TILE,
    VECTOR,
    Kind,
    kind_at,
)

_UNBOUND = (1 << 64) - 1

#: Makes the value of an operand from the words of a record at an offset.
Load = Callable[[Any, list[int], int], Any]


def attribute(row: Row, name: str, word: int) -> Attribute | None:
    """Return the attribute for a number of C++; None if it has no name."""
    name, _, tag = name.partition("@")
    if tag:
        numbers = {**TAGS[tag].words, **TAGS[tag].unnamed}
        named = [w for w, n in numbers.items() if n == word and w in row.attr_index[name].choices]
        return StrAttr(named[0]) if named else None
    kind = row.attr_index[name].kind
    if kind == "pipe":
        found = next((p for p in (*PIPES.values(), EVERY_PIPE) if p.cpp == word), None)
        return None if found is None else EnumAttr(kind, f"PIPE_{found.name}")
    if kind == "quant_type":
        return EnumAttr(kind, _QUANTISATIONS[word]) if word < len(_QUANTISATIONS) else None
    if kind in ENUMS:
        value = next((v for v, n in ENUMS[kind].values.items() if n == word), None)
        return None if value is None else EnumAttr(kind, value)
    if kind == "bool":
        return BoolAttr(bool(word))
    choices = row.attr_index[name].choices
    if choices and isinstance(choices[0], str):
        return StrAttr(choices[word])
    return IntAttr(word - (1 << 64) if word >> 63 else word, ScalarType("i64"))


def spelled(row: Row) -> tuple[str, ...]:
    """Return the names of the C++ functions for a row."""
    return _spelled(row.full_name)


@cache
def _spelled(name: str) -> tuple[str, ...]:
    row = find_row(name)
    assert row is not None
    if row.name == "alloc_tile":
        return ("TASSIGN",)
    found = [m for form in row.forms for m in re.findall(r"(?<![\w$])([A-Za-z_]\w*)\s*[<(]", form.cpp)]
    return (*dict.fromkeys(found), *_ALSO.get(row.name, ()))


#: Further C++ functions that make calls of a row.
_ALSO = {
    "set_flag": ("PtoSetWaitFlag",), "wait_flag": ("PtoSetWaitFlag",),
    "twait": ("TTEST",),
    "mte_gm_ub": ("copy_gm_to_ubuf", "create_cbuf_matrix", "create_cbuf_matrix_bf16"),
    "mte_ub_gm": ("copy_ubuf_to_gm", "copy_cbuf_to_gm"),
    "mte_gm_l1": ("copy_gm_to_cbuf",),
    "mte_gm_l1_frac": ("copy_gm_to_cbuf_multi_nd2nz", "copy_gm_to_cbuf_multi_dn2nz"),
}  # fmt: skip


def _in_order(row: Row, names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return the arguments of a call with pointers in the order of the operands `names`: C++ has the
    destination first."""
    given = [re.findall(r"\$(\w+)", part) for part in row.forms[0].cpp.partition("(")[2].split(",")]
    places = {words[0]: at for at, words in enumerate(given) if len(words) == 1}
    return [texts[places[n]] if places.get(n, len(texts)) < len(texts) else "" for n in names]


#: A name in C++: of a variable, a member or an element.
_WORD = re.compile(r"[A-Za-z_][\w.]*(?:\[[^\[\]]*\][\w.]*)*")


# -- sites ---------------------------------------------------------------------------------------------------


class CallSite:
    """A call: its step, and the functions that load its registers from a record."""

    __slots__ = ("after", "loads", "op", "pc", "scope", "step", "waits")

    def __init__(self, op: Operation, pc: int, step: Step, loads: list[tuple[int, int, Load]]) -> None:
        self.op = op
        self.pc = pc
        self.step = step
        #: The register, the offset of its words, and the function that makes the value.
        self.loads = loads
        #: A function to call after the step.
        self.after: Callable[[Any, list[int], int], None] | None = None
        #: "begin" or "end" of a vector scope, or "inside" of one.
        self.scope = ""
        #: It waits for all pipes, and all pipes wait for it.
        self.waits = False

    def load(self, core: Any, words: list[int], at: int) -> None:
        regs = core.regs
        for slot, offset, make in self.loads:
            regs[slot] = make(core, words, at + offset)


def _nothing(core: object) -> None: ...


#: Calls that only load registers, and accesses of the scalar unit.
_LOADS = re.compile(r"vld|plds|vsld|vgather|scalar access")
#: The values of `QuantType`.
_QUANTISATIONS = ("MXFP8", "MXFP4_E2M1", "INT8_SYM", "INT8_ASYM")
#: The values of `MxQuantAlg`: the type of quantisation and the algorithm of its scale.
_ALGORITHMS = (("MXFP8", "OCP"), ("MXFP8", "NV"), ("MXFP4_E2M1", "OCP"), ("MXFP4_E2M1", "NV"))


def _quantised(said: Sequence[int]) -> tuple[str, str, tuple[int, ...]]:
    """Return the row, the attributes and their numbers for TQUANT with an axis and an algorithm."""
    axis, algorithm, *interleaves = said
    if axis:
        return "tquant_hif4", "", ()
    kind, scale = _ALGORITHMS[algorithm]
    number = _QUANTISATIONS.index(kind)
    if interleaves:
        return "tquant_dn", f" quant_type interleave scale_alg={scale}", (number, interleaves[0])
    return "tquant", f" quant_type grp_axis scale_alg={scale}", (number, 0)


#: Instructions of the scalar unit that wait for the vector pipe, which then waits for them.
_ORDERED = {("tscatter", "S"): "V"}
#: Instructions on pipes of transfers that, on A5, threads of the vector unit perform for tiles in UB.
_OF_THREADS = ("mgather", "mscatter")
#: Copies from UB to L1, which the assembler counts as vector or fix-pipe instructions.
_TO_L1 = ("tmov", "textract")
#: In C++ the scalar unit of A2 and A3 performs these, between flags to and from all pipes that access UB.
_WAITS = ("mgather", "mscatter")


class _Lower(Lower):
    """Lowering of calls: in C++ some of them synchronize with the vector pipe, and rules do not cover scratch
    operands (`codegen/checks.py`)."""

    def unasked(self, row: Row) -> Collection[str]:
        return [operand.name for operand in row.operands if operand.role == "tmp"]

    def pipe(self, op: Operation) -> str:
        found = super().pipe(op)
        assert op.row is not None
        name = op.row.name
        if self.is_text or self.program.profile.isa != "a5" or name not in (*_OF_THREADS, *_TO_L1):
            return _ORDERED.get((name, found), found)
        locs = {o.name: getattr(v.type, "loc", "") for o, v in op.named()}
        if name in _OF_THREADS:
            return "V" if "vec" in (locs.get("dst"), locs.get("src")) else found
        return "MTE3" if (locs["src"], locs["dst"]) == ("vec", "mat") else found


class Sites:
    """The sites of a kernel on one kind of core."""

    def __init__(
        self, program: LoweredModule, code: Code, block: Block, places: LibraryPlaces, memory: TracedMemory,
        like: Module | None = None, auto: bool = False, shift: int = 0,
    ) -> None:  # fmt: skip
        """`shift` is the distance from the address of a constant in a record to that in this process."""
        self._shift = shift
        self._lower = _Lower(program, code)
        self._lower.is_text = like is not None
        self.isa = program.profile.isa
        #: Tiles have private storage, beyond the capacity.
        self.auto = auto
        self._program = program
        self._code = code
        self._block = block
        self._places = places
        self._memory = memory
        self._found: dict[tuple[int, ...], CallSite] = {}
        #: By operation: the return addresses of the call and its callers.
        self.frames: dict[Operation, tuple[int, ...]] = {}
        #: By line: the operations of the program that the C++ was emitted from.
        self._like: dict[int, Operation] = {}
        for op in like.walk() if like is not None else ():
            if op.loc is not None and op.row is not None and not op.regions:
                self._like[op.loc.line] = op

    def of(self, words: list[int], at: int) -> tuple[CallSite, int]:
        """Return the site of a record, and the start of the values of its operands."""
        counts = words[at + COUNTS]
        start = at + COUNTS + 1 + (counts & 0xFFFFFFFF) + (counts >> 32)
        key = tuple(words[at + 1 : start])
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._make(key)
            self.frames[found.op] = key[1 : 1 + FRAMES]
        return found, start

    def slots(self, site: CallSite) -> list[int]:
        """Return the registers of the operands of a site, then those of its results."""
        return [self._lower.slot(v) for v in (*site.op.operands, *site.op.results)]

    def _scope(self, key: tuple[int, ...], name: str) -> CallSite:
        """Make the site of the begin or end of a vector scope."""
        call = self._places.call(key[1 : 1 + FRAMES], ("__VEC_SCOPE__",))
        row = find_row("vecscope")
        assert row is not None
        op = self._block.append(Operation(row.full_name, row, [], [], None, None, call.span))
        site = CallSite(op, self._lower.emit(op, _nothing), _nothing, [])
        site.scope = "begin" if name.endswith("begin") else "end"
        return site

    def _untold(self, key: tuple[int, ...], name: str) -> CallSite:
        """Make the site of a call without a description. Loads of registers need no description; other calls
        are refused.
        """
        row = find_row("trap")
        assert row is not None
        call = self._places.call(key[1 : 1 + FRAMES], (name.partition(" ")[0],))
        op = self._block.append(Operation(row.full_name, row, [], [], None, None, call.span))
        step = _nothing
        if not _LOADS.match(name):

            def step(core: Any) -> None:
                message = f"cannot observe {name}: its effect on memory is unknown"
                help = "run it without --sanitize, or leave this kernel out"
                raise RunError(Diagnostic("PTO-E2003", message, call.span, help=help))

        site = CallSite(op, self._lower.emit(op, step), step, [])
        site.scope = "inside" if name.startswith("v") else ""
        return site

    def _make(self, key: tuple[int, ...]) -> CallSite:
        form = ctypes.string_at(key[0] + self._shift).decode()
        head, _, attrs = form.partition(":")
        name, *operands = head.split()
        if name.startswith("vecscope."):
            return self._scope(key, name)
        middle = COUNTS + (key[COUNTS - 1] >> 32)
        said, given = key[COUNTS:middle], key[middle:]
        if name == "untold":
            return self._untold(key, ctypes.string_at(said[0] + self._shift).decode())
        name = name.removesuffix(".within")
        if name == "tquant_axis":
            name, attrs, said = _quantised(said)
        row = find_row(name)
        assert row is not None, form
        call = self._places.call(key[1 : 1 + FRAMES], spelled(row))
        spelled_out = dict(a.split("=") for a in attrs.split() if "=" in a)
        counted = [a for a in attrs.split() if "=" not in a]
        made_attrs = {
            n.partition("@")[0]: attribute(row, n, w)
            for n, w in zip(counted, said, strict=True)
            if not n.startswith("#")
        }
        made_attrs |= {n: StrAttr(word) for n, word in spelled_out.items()}
        if made_attrs.get("event_id", 0) is None:  # an id without a name
            row = find_row(f"{name}_dyn")
            assert row is not None
            made_attrs.pop("event_id")
        builder = Builder(self._block).at(call.span)
        kinds = [kind_at(address + self._shift) for address in given]
        like = self._like.get(call.span.line) if call.span is not None else None
        making = _Making(self, row, builder, made_attrs, operands, kinds, call.arguments, said, like)
        making.within = form.startswith("alloc_tile.within")
        return making.site()


class _Making:
    """A site under construction."""

    def __init__(
        self, sites: Sites, row: Row, builder: Builder, attrs: dict[str, Attribute | None], names: list[str],
        kinds: list[Kind], texts: Sequence[str], said: Sequence[int], like: Operation | None,
    ) -> None:  # fmt: skip
        self.sites = sites
        self.row = row
        self.builder = builder
        self.attrs: dict[str, Attribute] = {n: a for n, a in attrs.items() if a is not None}
        self.said = said
        self.kinds = kinds
        scratch = [o.name for o in row.operands if o.role == "tmp" and o.name not in names]
        extra = iter(scratch)
        #: Names of operands by position; operands after those of the form are scratch, or events.
        self.names = [
            n if n is not None else (next(extra, "") if k.kind == TILE else "")
            for n, k in zip([*names, *[None] * (len(kinds) - len(names))], kinds, strict=True)
        ]
        if any(k.kind == POINTER for k in kinds):
            texts = _in_order(row, self.names, texts)
        self.texts = [t if _WORD.fullmatch(t) else "" for t in texts]
        #: For emitted C++: the operation of the program.
        self.like = like
        #: The tile is placed inside the storage of another tile.
        self.within = False
        self.values: dict[str, Value | list[Value]] = {}
        self.loads: list[tuple[Value, int, Load]] = []

    def site(self) -> CallSite:
        special = _SPECIAL.get(self.row.name)
        if special is not None:
            return special(self)
        if any(k.kind in (VECTOR, MASK) for k in self.kinds):
            return self.vector()
        self.operands()
        if self.row.name == "mem_bar":
            site = self.made()
            site.scope = "inside"
            return site
        if self.row.name in _WAITS and self.like is None and self.sites.isa == "a2a3":
            site = self.made()
            site.waits = True
            return site
        if self.row.name.endswith("_flag_dyn"):
            id = signed(self.said[2])
            self.values["event_id"] = self.value(INDEX, "", 0, lambda core, words, at: id)
        return self.made()

    def written(self, at: int) -> str:
        """Return the text of an operand, if it is a name."""
        if self.like is not None:
            if self.row.name == "alloc_tile":
                return self.like.results[0].name if self.like.results else ""
            name = self.names[at] if at < len(self.names) else ""
            value = (
                self.like.get(name) if self.like.row is self.row and name in self.row.operand_index else None
            )
            return value.name if value is not None else ""
        return self.texts[at] if at < len(self.texts) else ""

    def called(self, at: int) -> str:
        """Return the name of an operand: as written, else from the table."""
        return self.written(at) or self.names[at]

    def value(self, type: Type, name: str, offset: int, load: Load) -> Value:
        value = self.sites._block.add_arg(type, name)
        self.loads.append((value, offset, load))
        return value

    def operands(self) -> None:
        offset = 0
        for at, kind in enumerate(self.kinds):
            name = self.names[at]
            if kind.kind == GROUP:
                each = kind.words // MEMBERS
                called = self.called(at)
                self.values[name] = [
                    self.value(
                        kind.type or INDEX,
                        f"{called}[{n}]",
                        offset + n * each,
                        self.tensor(kind, f"{called}[{n}]"),
                    )
                    for n in range(self.said[-1])
                ]
            elif name and kind.type is not None:
                declared = self.row.operands[self.row.operand_index[name]]
                made = self.operand(at, kind, declared.kinds, offset)
                if declared.variadic:
                    listed = self.values.setdefault(name, [])
                    assert isinstance(listed, list)
                    listed.append(made)
                else:
                    self.values[name] = made
            offset += kind.words

    def operand(self, at: int, kind: Kind, wanted: Sequence[str], offset: int) -> Value:
        called = self.called(at)
        type = kind.type
        assert type is not None
        if kind.kind == NUMBER:
            index = "index" in wanted and not DTYPES[kind.dtype].is_float
            return self.value(INDEX if index else type, called, offset, number(kind.dtype))
        if kind.kind == POINTER:
            return self.value(type, called, offset, self.pointer(kind, called))
        if kind.kind == TENSOR:
            return self.value(type, called, offset, self.tensor(kind, called))
        if kind.kind == CONV:
            return self.value(type, called, offset, conv_tile(kind, called))
        if kind.kind == PIPE:
            return self.value(type, called, offset, self.pipe(kind))
        return self.value(
            type, called, offset, tile(kind, self.written(at), self.names[at], bool(self.row.fifo))
        )

    def vector(self) -> CallSite:
        """Make the site of a call with registers. Result registers are found by their contents, because C++
        may copy registers without a traced call."""
        results = [(at, n[1:]) for at, n in enumerate(self.names) if n.startswith(">")]
        offsets = [sum(k.words for k in self.kinds[:at]) for at in range(len(self.kinds))]
        for at, kind in enumerate(self.kinds):
            name = self.names[at]
            if name.startswith(">") or kind.type is None:
                continue
            declared = self.row.operands[self.row.operand_index[name]]
            if kind.kind in (VECTOR, MASK):
                type = self.typed(kind)
                self.values[name] = self.value(
                    type, self.called(at), offsets[at], register(type, self.called(at))
                )
            else:
                self.values[name] = self.operand(at, kind, declared.kinds, offsets[at])
        types = [self.typed(self.kinds[at]) for at, _ in results]
        lower = self.sites._lower
        lower.inside = True
        site = self.made(types)
        lower.inside = False
        site.scope = "inside"
        kept = []
        for (at, _), value in zip(results, site.op.results, strict=True):
            value.name = self.called(at).removeprefix(">")
            kept.append((lower.slot(value), offsets[at], self.kinds[at].words))

        def keep(core: Any, words: list[int], at: int) -> None:
            if len(core.vectors) > _MOST_VECTORS:
                core.vectors.clear()
            for slot, offset, count in kept:
                here = at + offset
                contents = tuple(words[here + 1 : here + count])
                core.vectors[words[here]] = core.vectors[contents] = (contents, core.regs[slot])

        site.after = keep
        return site

    def typed(self, kind: Kind) -> Type:
        """Return the type of a register; the name of the call has the element size of a mask."""
        if kind.kind != MASK:
            assert kind.type is not None
            return kind.type
        named = re.search(r"_(b8|b16|b32)$", self.row.name)
        if named:
            return MaskType(named[1])
        sized = next((k for k in self.kinds if k.kind == VECTOR), None)
        return MaskType(f"b{DTYPES[sized.dtype].bits}") if sized is not None else MaskType()

    def pointer(self, kind: Kind, called: str) -> Load:
        at = self.sites._memory.at
        dtype = kind.dtype or "u8"

        def load(core: Any, words: list[int], place: int) -> Pointer:
            space, address = words[place], words[place + 1]
            if space < len(LOCATIONS):
                return Pointer(core.buffers[LOCATIONS[space]], address, dtype, called)
            buffer, offset = at(address, core.rank)
            return Pointer(buffer, offset, dtype, called)

        return load

    def pipe(self, kind: Kind) -> Load:
        """Return a function that finds a FIFO; the ends on a core are made at their first use."""
        flag, direction, size, slots, local, nosplit = kind.facts[:6]
        attrs: dict[str, Attribute] = {
            name: IntAttr(value, ScalarType("i32"))
            for name, value in (
                ("dir_mask", direction), ("slot_size", size), ("slot_num", slots), ("local_slot_num", local),
                ("flag_base", flag),
            )
        }  # fmt: skip
        made = Operation("pto.initialize_l2g2l_pipe", find_row("initialize_l2g2l_pipe"), [], [])
        made.attrs = {**attrs, "nosplit": BoolAttr(bool(nosplit))}
        at = self.sites._memory.at
        key = f"flag {flag}"

        def load(core: Any, words: list[int], place: int) -> Any:
            found = core.pipes.get((flag, direction))
            if found is None:
                address, c2v, v2c = words[place : place + 3]
                memory = Pointer(*at(address, core.rank), "u8", "") if address else None
                found = core.pipes[flag, direction] = fifo.open_ends(
                    core, made, key, memory, {C2V: c2v, V2C: v2c}
                )
            return found

        return load

    def tensor(self, kind: Kind, called: str) -> Load:
        at, dtype, layout = self.sites._memory.at, kind.dtype, kind.layout
        fresh = bool(self.row.fifo)  # FIFO instructions change their operands

        def load(core: Any, words: list[int], place: int) -> View:
            key = (called, dtype, layout, *words[place : place + 11])
            found = core.views.get(key)
            if found is None or fresh:
                buffer, offset = at(words[place], core.rank)
                shape, strides = (tuple(map(signed, words[place + n : place + n + 5])) for n in (1, 6))
                found = View(buffer, offset, shape, strides, dtype, layout, called)
                if len(core.views) < _MOST_VIEWS and not fresh:
                    core.views[key] = found
            return found

        return load

    def made(self, results: Sequence[Type] = ()) -> CallSite:
        """Return the site of the operation with the operands that were found."""
        op = self.builder.op(self.row.full_name, list(results), self.attrs, **self.values)
        lower, code = self.sites._lower, self.sites._code
        lower.missing.clear()
        lower.instruction(op)
        if lower.missing:
            raise RunError(lower.missing[0])
        pc = len(code.steps) - 1
        return CallSite(op, pc, code.steps[pc], [(lower.slot(v), at, load) for v, at, load in self.loads])


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def number(dtype: str) -> Load:
    """Return a function that makes a number from the bits of a word."""
    info = DTYPES[dtype]
    if not info.is_float:
        return lambda core, words, at: signed(words[at])
    if dtype == "f32":
        return lambda core, words, at: struct.unpack("<f", struct.pack("<I", words[at] & 0xFFFFFFFF))[0]
    if dtype == "f64":
        return lambda core, words, at: struct.unpack("<d", struct.pack("<Q", words[at]))[0]
    code = np.dtype(f"u{max(1, info.bits // 8)}")
    mask = (1 << info.bits) - 1
    return lambda core, words, at: float(decode(dtype, np.array([words[at] & mask], code))[0])


def tile(kind: Kind, called: str, name: str, fresh: bool = False) -> Load:
    """Return a function that makes a tile from its address, its object in C++, and its valid rows and
    columns; `fresh` is for instructions that change the tile. Its name is `called`, the name of its storage,
    or `name`."""
    type = kind.type
    assert isinstance(type, TileBufType)
    loc, id = type.loc, -kind.id  # a negative number is not the address of an object

    def load(core: Any, words: list[int], at: int) -> Tile:
        address, this, rows, cols = words[at : at + 4]
        last = id, called, address, this, rows, cols
        found = core.latest.get(last)
        if found is not None:
            return found
        placed = core.placed.get((loc, address, this)) or core.placed.get((loc, address, id))
        key = (id, called, address, rows, cols)
        edge = core.edges.get(this)
        found = core.tiles.get(key)
        if fresh or found is None or found.storage is not placed or found.edge is not edge:
            bound = None if address == _UNBOUND else signed(address)
            found = make_tile(
                core, type, bound, (rows, cols), called or (placed.name if placed else "") or name
            )
            found.storage, found.edge = placed, edge
            if core.auto and bound is not None:
                _own(found)
            if not fresh:
                core.tiles[key] = found
        if not fresh:
            core.latest[last] = found
        return found

    return load


#: The number of registers and views that are kept.
_MOST_VECTORS = 4096
_MOST_VIEWS = 4096


def register(type: Type, called: str) -> Load:
    """Return a function that finds a register: the result of a call in this object, or one with the same
    contents. If there is none, it makes a register with the contents from C++."""
    mask = isinstance(type, MaskType)
    count = 4 if mask else 32
    new = maker(type, called)

    def load(core: Any, words: list[int], at: int) -> Any:
        contents = tuple(words[at + 1 : at + 1 + count])
        known = core.vectors.get(words[at])
        if known is None or known[0] != contents:
            known = core.vectors.get(contents)
        made = new()
        if known is not None and known[1].dtype == made.dtype:
            return known[1]
        data = np.array(contents, np.uint64)
        if mask:
            made.keep(np.unpackbits(data.view(np.uint8), bitorder="little"))
        else:
            made.keep(data.view(array_of(made.dtype)))
        made.buffer.given = True
        return made

    return load


def _own(made: Tile | ConvTile) -> None:
    """Reserve storage of auto mode, beyond the capacity of its memory."""
    assert made.address is not None
    buffer, end = made.buffer, made.address + made.size
    if made.address >= buffer.limit:
        buffer.unplaced = max(buffer.unplaced, end)
        buffer.grow(end)


def conv_tile(kind: Kind, called: str) -> Load:
    type = kind.type
    assert isinstance(type, ConvTileType)

    def load(core: Any, words: list[int], at: int) -> ConvTile:
        address = words[at]
        made = ConvTile(
            type, core.buffers[type.loc], None if address == _UNBOUND else signed(address), called
        )
        made.dims = tuple(signed(w) for w in words[at + 2 : at + 2 + len(type.dims)])
        if core.auto and made.address is not None:
            _own(made)
        return made

    return load


# -- calls that need special operations ---------------------------------------------------------------------


def _assigned(m: _Making) -> CallSite:
    """Make the site of TASSIGN: a tile with an address."""
    kind = m.kinds[0]
    called = m.called(0)
    type = kind.type
    assert type is not None
    m.values["addr"] = m.value(ScalarType("i64"), "addr", 0, lambda core, words, at: signed(words[at]))
    if isinstance(type, TileBufType):
        if type.v_row is None:
            m.values["valid_row"] = m.value(INDEX, "valid_row", 2, lambda core, words, at: words[at])
        if type.v_col is None:
            m.values["valid_col"] = m.value(INDEX, "valid_col", 3, lambda core, words, at: words[at])
    site = m.made([type])
    site.op.result.name = called
    slot = m.sites._lower.slot(site.op.result)
    within = m.within

    def place(core: Any, words: list[int], at: int) -> None:
        made = core.regs[slot]
        if isinstance(made, Tile) and isinstance(type, TileBufType):
            address, storage = words[at], made.storage
            around = core.storages.setdefault(type.loc, {})
            if within:
                storage = _around(around.values(), made) or storage
            if storage is made.storage and storage is not None:
                around.pop((storage.low, storage.size), None)  # the latest comes last
                around[storage.low, storage.size] = storage
            core.latest.clear()
            core.placed[type.loc, address, words[at + 1]] = storage
            core.placed[type.loc, address, -kind.id] = storage

    site.after = place
    return site


def _around(storages: Iterable[Storage], part: Tile) -> Storage | None:
    """Return the latest storage that contains the valid region of a part: a window has the row length of the
    whole."""
    low, high = part.region(*part.valid).bounds
    found = [s for s in storages if s.low <= low and high <= s.low + s.size] if all(part.valid) else []
    return found[-1] if found else None


def _renamed(m: _Making) -> CallSite:
    """Make the site of TRESHAPE and TSUBVIEW: another name for bytes of a tile. Records have the address of
    every tile. The site adds its storage, and reports a window that leaves its source."""
    into, load = (tile(kind, m.written(at), m.names[at]) for at, kind in enumerate(m.kinds[:2]))
    made, of = (kind.type for kind in m.kinds[:2])
    assert isinstance(made, TileBufType) and isinstance(of, TileBufType)
    types = made, of
    window = m.row.name == "subview"
    name, loc = m.called(0), types[0].loc
    m.values["source" if window else "src"] = m.value(types[1], m.called(1), 4, load)
    if window:
        m.values["offsets"] = [m.value(INDEX, "", 8 + n, number("i64")) for n in range(2)]
        m.attrs["sizes"] = ArrayAttr(
            tuple(IntAttr(n, ScalarType("i64")) for n in (types[0].rows, types[0].cols))
        )
    op = m.builder.op(m.row.full_name, [types[0]], m.attrs, **m.values)
    op.result.name = name
    lower = m.sites._lower
    from_slot = lower.slot(op.operands[0])

    def step(core: Any) -> None:
        return None

    def place(core: Any, words: list[int], at: int) -> None:
        source = core.regs[from_slot]
        if source.storage is not None:
            core.placed[loc, words[at], words[at + 1]] = source.storage
            core.placed[loc, words[at], -m.kinds[0].id] = source.storage
        core.latest.clear()
        core.edges.pop(words[at + 1], None)
        if window:
            r, c = words[at + 8], words[at + 9]
            if r + types[0].rows > source.rows or c + types[0].cols > source.cols:
                core.edges[words[at + 1]] = (source, r, c)
        check_edge(core, op, into(core, words, at))

    pc = lower.emit(op, step)
    site = CallSite(op, pc, step, [(lower.slot(v), at, load) for v, at, load in m.loads])
    site.after = place
    return site


def _element(m: _Making) -> CallSite:
    """Make the site of a read of one element, whose value only C++ uses."""
    m.operands()
    kind = m.kinds[0].type
    assert isinstance(kind, TileBufType)
    site = m.made([kind.elem])
    slot = m.sites._lower.slot(site.op.result)

    def use(core: Core, words: list[int], at: int) -> None:
        if slot in core.poison:
            core.grid.undefined_use(core, site.op, core.poison.pop(slot), "a value that C++ uses")

    site.after = use
    return site


def _resized(m: _Making) -> CallSite:
    """Make the site of SetValidShape. Records have the valid region of every tile; the site reports a window
    that leaves its source now."""
    made = tile(m.kinds[0], m.written(0), m.names[0])
    kind = m.kinds[0].type
    assert kind is not None
    m.values["source"] = m.value(kind, m.called(0), 0, made)
    m.values["valid_row"] = m.value(INDEX, "", 2, number("i64"))
    m.values["valid_col"] = m.value(INDEX, "", 3, number("i64"))
    op = m.builder.op(m.row.full_name, [], m.attrs, **m.values)
    lower = m.sites._lower
    slot = lower.slot(op.operands[0])

    def step(core: Any) -> None:
        check_edge(core, op, core.regs[slot])

    return CallSite(op, lower.emit(op, step), step, [(lower.slot(v), at, load) for v, at, load in m.loads])


def _tested(m: _Making) -> CallSite:
    """Make the site of TTEST; C++ uses its result."""
    m.operands()
    return m.made([ScalarType("i1")])


def _transfer(m: _Making) -> CallSite:
    """Make the site of a transfer of a session, or of a wait. Sessions are found by their object in C++. A
    wait is for the last transfer of its session, because C++ may copy events without a traced call."""
    kinds = m.kinds
    m.kinds = kinds[:-1]
    m.operands()
    offset = sum(k.words for k in m.kinds)
    waits = m.row.name.endswith("_async_event")

    def session(core: Any, words: list[int], at: int) -> Any:
        found = core.sessions.get(words[at])
        if found is None:
            found = core.sessions[words[at]] = transfers.build(core, site.op, {})
        return found

    def event(core: Any, words: list[int], at: int) -> Any:
        found = core.sessions.get(words[at])
        return (found, found.started) if found is not None and found.started else 0

    m.values["session"] = m.value(TokenType("async_session"), "session", offset, session)
    if waits:
        m.values["event"] = m.value(TokenType("async_event"), "event", offset, event)
    site = m.made([ScalarType("i1") if waits else TokenType("async_event")])
    return site


def _scale(m: _Making) -> CallSite:
    """Make the site of the scale of pushes, with the element type from C++."""
    m.operands()
    m.attrs["out_type"] = StrAttr(ELEMENTS[m.said[0]])
    return m.made()


_SPECIAL: dict[str, Callable[[_Making], CallSite]] = {
    "alloc_tile": _assigned,
    "treshape": _renamed,
    "subview": _renamed,
    "set_validshape": _resized,
    "tgetval": _element,
    "ttest": _tested,
    "set_quant_scalar": _scale,
    "tput_async": _transfer,
    "tget_async": _transfer,
    "wait_async_event": _transfer,
    "test_async_event": _transfer,
}
