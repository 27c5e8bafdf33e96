"""The shape of one instruction row, and `Family`, which holds what its members share.

Operands and results are written as a short list, in the order of the generic form:

    "src0 src1 tmp:tmp? dst:out"        name[=kind][:role][?][*]

`kind` defaults to `tile` (see KINDS), `role` to `in`; `?` marks an optional and `*` a variadic operand.
The C++ and PTO-AS orders (destinations first) follow from the roles.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from .dtypes import names
from .enums import ENUMS
from .format import Item, parse_format
from .machine import C2V, V2C
from .profiles import ISAS
from .record import Record
from .rules import Rule

#: Operand kinds: what class of type an operand may have. Alternatives are joined with `|`.
KINDS: dict[str, str] = {
    "tile": "an on-chip tile (!pto.tile_buf, or a memref in a local space)",
    "conv_tile": "a convolution tile",
    "multi_tile": "a tile of several slots (!pto.multi_tile_buf)",
    "view": "a window of global memory (!pto.partition_tensor_view, !pto.tensor_view or a GM memref)",
    "tensor_view": "a strided view of global memory (!pto.tensor_view or a GM memref)",
    "ptr": "a typed pointer (!pto.ptr)",
    "memref": "a memref",
    "scalar": "an integer or floating-point scalar",
    "int": "an integer or index scalar",
    "float": "a floating-point scalar",
    "index": "an index scalar",
    "i1": "an i1 scalar", "i8": "an i8 scalar", "i16": "an i16 scalar", "i32": "an i32 scalar",
    "i64": "an i64 scalar",
    "vreg": "a vector register (!pto.vreg)",
    "mask": "a predicate mask (!pto.mask)",
    "align": "alignment state (!pto.align)",
    "event": "an event (!pto.event)",
    "eventid_array": "an array of event ids",
    "local_array": "an array of scalars on the stack of a core (!pto.local_array)",
    "pipe": "a FIFO handle (!pto.pipe)",
    "async_session": "an asynchronous session",
    "prefetch_async_context": "a context of asynchronous prefetches",
    "async_event": "an asynchronous event",
    "group": "a group of ranks",
    "vector": "a builtin vector",
    "any": "any type",
}  # fmt: skip

ROLES = ("in", "out", "inout", "tmp")

#: What an instruction does to the state of the machine, besides its operands' roles.
EFFECTS: dict[str, str] = {
    "memory": "reads its in operands and writes its out and tmp operands",
    "pure": "computes a value, touches nothing",
    "alias": "gives another name to existing storage",
    "alloc": "creates storage",
    "sync": "orders pipes, cores or ranks",
    "config": "sets a mode register of the core",
    "control": "structures the program",
    "io": "observable outside the program",
}

#: How much of a destination an instruction replaces.
WRITES: dict[str, str] = {
    "all": "all of its storage",
    "valid": "all of its valid region",
    "column0": "column 0 of its valid region",
    "row0": "row 0 of its valid region",
    "part": "some of it; the rest keeps its contents",
}

#: Effects of instructions that use what their operands hold.
TOUCHING = ("memory", "sync", "io")

#: What the expression of a row ranges over. `acc` in a fold is the value so far.
OVER: dict[str, str] = {
    "": "every element of the destination, or every active lane",
    "columns": "every element of the destination; operands with fewer columns repeat theirs",
    "row": "every element of the destination; of operands but the first, row 0",
    "column 0": "every element of the destination, with column 0 of its row",
    "row 0": "every element of the destination, with row 0 of its column",
    "storage": "every element of the destination; of one outside vec, of its storage",
    "parts": "every element of the destination that both sources have; what one has is copied, the rest is 0",
    "fold columns": "the columns of each row, in order, into column 0",
    "fold rows": "the rows of each column, in order, into row 0",
    "part": "every lane of the result; of narrower operands, and of the mask, the lane of each pair that the "
    "attribute part names",
    "front": "every lane of the operands, into the front lanes of the result; the rest is 0",
    "fold lanes": "the active lanes, neighbours first, then neighbours of these, into lane 0; one that is "
    "off counts as the start",
    "fold groups": "the lanes of each group of 32 bytes, as fold lanes does, into one lane per group",
}
#: Names of start values that a type decides.
STARTS: dict[str, str] = {
    "first": "the first element",
    "least": "minus infinity, or the least integer",
    "greatest": "infinity, or the greatest integer",
}

#: How a result becomes an element of the destination.
STORES: dict[str, str] = {
    "": "floats are rounded to nearest even, integers keep their low bits",
    "saturate": "where the type is another: rounded to the type that computes, then to nearest even and held "
    "in the range of the destination",
    "narrow": "rounded to the type that computes, then to nearest even; integers are held in the range of "
    "the destination, where NaN is 0",
}

SCOPES: dict[str, str] = {
    "any": "anywhere in a function",
    "tile": "outside a vecscope",
    "vec": "inside exactly one vecscope",
}


#: What an instruction does to the order of pipes and cores.
ORDERS: dict[str, str] = {
    "set": "raises a flag between two pipes",
    "wait": "waits for such a flag and lowers it",
    "get": "takes a buffer token for a pipe",
    "release": "gives it back",
    "barrier": "drains a pipe, or all of them",
    "fence": "orders accesses within a vecscope",
    "signal": "raises a semaphore of another core",
    "await": "waits for such a semaphore",
}

#: What an instruction does to a FIFO between cores.
FIFO: dict[str, str] = {
    "open": "initialises one end of it",
    "alloc": "takes a free slot, to be written in place",
    "push": "hands an entry on",
    "pop": "takes the next entry",
    "free": "gives the slot of an entry back",
}


_NO_WORDS: dict[str, str] = {}


class Operand(Record):
    name: str
    kind: str = "tile"
    role: str = "in"
    optional: bool = False
    variadic: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.kind.split("|"))

    @property
    def reads(self) -> bool:
        return self.role in ("in", "inout")

    @property
    def writes(self) -> bool:
        return self.role != "in"


class Attr(Record):
    """An attribute. `kind` is an enum name, or int, bool, str, float, ints, type, symbol, unit, any."""

    name: str
    kind: str = "int"
    default: Any = None
    required: bool = False
    choices: tuple[Any, ...] = ()
    keyword: bool = False  # printed as a bare word where a format names it
    many: bool = False  # a comma-separated list of its choices
    hint: bool = False  # changes no result, so that a spelling may leave it out
    alias: str = ""  # another name that text may have for it
    inert: bool = False  # changes no result, and yet a spelling has to say it
    unencoded: tuple[Any, ...] = ()  # choices that no encoding has: legal, with a warning
    words: dict[str, str] = _NO_WORDS  # choices that C++ has another word for
    assumed: Any = None  # what a C++ call without it means, where a program has to say it
    doc: str = ""

    def admits(self, value: Any) -> bool:
        """Whether a plain value is one of the choices (a list of them where `many`)."""
        if self.many:
            return all(word.strip() in self.choices for word in str(value).split(","))
        return not self.choices or value in self.choices

    @property
    def domain(self) -> tuple[Any, ...]:
        """Every legal value, where the attribute is enumerable."""
        if self.choices:
            return self.choices
        if self.kind in ENUMS:
            return tuple(ENUMS[self.kind].values)
        return (False, True) if self.kind == "bool" else ()


class Combos(Record):
    """Legal dtype combinations: `Combos("dst lhs rhs", a2a3="i32,i8,i8 f32,f16,f16", ...)`."""

    operands: tuple[str, ...]
    legal: dict[str, tuple[tuple[str, ...], ...]]
    code: str = ""
    when: str = ""

    @staticmethod
    def of(operands: str, code: str = "", when: str = "", **by_isa: str) -> Combos:
        legal = {
            isa: tuple(tuple(combo.split(",")) for combo in text.split()) for isa, text in by_isa.items()
        }
        return Combos(tuple(operands.split()), legal, code, when)


_NO_VALUES: dict[str, Any] = {}


class Form(Record):
    """One C++ overload of an instruction. Operands are those its call names, `$dst`; so are attributes, and
    those that it neither names nor fixes have their defaults."""

    cpp: str  # the call; codegen/cpp/template.py says how it is written
    fixes: dict[str, Any] = _NO_VALUES  # attributes that the overload decides
    scalars: tuple[str, ...] = ()  # operands that are numbers here, where they may also be tiles
    scratch: bool = False  # its scratch is checked: it tells the overload from others
    written: bool = False  # a function of the row's name computes it, its expression gives no C++
    by_hand: str = ""  # why its call frame is written by hand
    types: str = ""  # element types that it is for, or combinations of them as "f32,f16"; empty: all
    ignores: str = ""  # attributes and operands that change nothing here
    check: str | None = None  # what the name of its check ends in; None: what it has beside the required


def forms(calls: str, **same: Any) -> tuple[Form, ...]:
    """Overloads that differ in their calls only, which ` | ` separates."""
    return tuple(Form(call, **same) for call in calls.split(" | "))


_SPEC = re.compile(r"(\w+)(?:=([\w|]+))?(?::(\w+))?([?*]*)$")


@cache
def operand_list(spec: str) -> tuple[Operand, ...]:
    out: list[Operand] = []
    for word in spec.split():
        m = _SPEC.match(word)
        if not m:
            raise ValueError(f"bad operand {word!r}")
        name, kind, role, flags = m.groups()
        out.append(Operand(name, kind or "tile", role or "in", "?" in flags, "*" in flags))
    return tuple(out)


#: A pipe is a name, or cases `((condition, pipe), ..., ("", pipe))` over operands and `isa`.
Pipe = str | tuple[tuple[str, str], ...]


_NO_DTYPES: dict[str, tuple[str, ...]] = {}
_NO_TEXTS: dict[str, str] = {}


class Row(Record):
    name: str  # mnemonic as printed after `pto.` (or with its dialect: `arith.addi`)
    set: str
    family: str
    doc: str  # one line
    opcode: int  # frozen bytecode number
    meaning: str = ""  # what it does, for readers; of a row with an expression it follows from that
    expr: str = ""  # what it computes, over its operands: see isa/meaning.py
    expr_on: dict[str, str] = _NO_TEXTS  # where it is another: by column, element type or both, "a2a3 i32"
    algorithm: str = ""  # what it does where that is no expression: see isa/algorithms.py
    over: str = ""  # what the expression or the algorithm ranges over: see OVER
    packed: str = ""  # operands that hold a bit per element, the first one lowest; rows start a new word
    stream_on: tuple[
        str, ...
    ] = ()  # columns in which packed operands are bytes, an element each, row after row
    floats: str = ""  # scalar operands that are f32 whatever type computes
    single: str = ""  # operands of which a tile stands for its first element
    start: str = ""  # of a fold: the value before the first element, a number or one of STARTS
    steps: str = ""  # of a fold: the type in which 16-bit floats accumulate; empty: each step rounds
    pairs: str = (
        ""  # of a fold: the attribute with which it is a tree: sums of neighbours, then sums of these
    )
    odd_one: dict[str, str] = _NO_TEXTS  # columns that have such trees: the pair that one left over joins
    gate: str = ""  # the mask operand whose lanes that are off take no part; they give 0
    skip: str = ""  # where this holds of the scalars, nothing is written
    store: str = ""  # how the result becomes an element: see STORES
    operands: tuple[Operand, ...] = ()
    results: tuple[Operand, ...] = ()
    attrs: tuple[Attr, ...] = ()
    regions: tuple[str, ...] = ()
    format: str | tuple[str, ...] = ""  # empty = derived from the operands
    dtypes: dict[str, tuple[str, ...]] = _NO_DTYPES
    dtype_of: tuple[str, ...] = ()  # operands the dtype list speaks of
    dtype_code: str = ""
    combos: tuple[Combos, ...] = ()
    rules: tuple[Rule, ...] = ()
    isas: tuple[str, ...] = ISAS  # legality columns it exists in
    pipe: Pipe = ""
    effect: str = "memory"
    in_place: str = ""  # "any", "none", or the sources the destination may share storage with
    in_place_on: tuple[str, ...] = ()  # columns in which in_place restricts; empty = all
    tmp_on: tuple[str, ...] = ()  # columns that write the tmp operands, others leave them; empty = all
    own_tmp_on: tuple[str, ...] = ()  # columns that take Profile.own_tmp where tmp is left out
    domain: str = ""  # elements the instruction defines, for readers
    writes: str = "part"  # how much of its destinations it replaces: see WRITES
    part_with: str = ""  # an optional operand with which it replaces a part only
    filled_by: str = ""  # the operand that, unless as large as the destination, leaves a part of it
    accumulates: str = ""  # the operand that hardware takes to be the destination, to which it adds
    names: str = ""  # the operand whose storage its result, or else what it rebinds, is another name of
    window: bool = False  # of that storage, another part or other strides than its type says
    rebinds: str = ""  # the operand that names other storage from here on
    lanes: bool = False  # it asks which vector core of its block it runs on, or of how many
    repeatable: bool = False  # pure, and one result may stand for all that are computed alike
    touches: bool | None = None  # whether it uses what its operands hold; None: as its effect says
    element_at: str = ""  # it touches one element only: the operand that says which
    order: str = ""  # what it does to the order of pipes and cores: see ORDERS
    fifo: str = ""  # what it does to a FIFO: see FIFO
    opens: str = ""  # the scope that its regions are: see SCOPES
    keeps: bool = False  # later instructions use its operands without naming them
    cpp: str = ""  # C++ spelling: the calls of its forms
    forms: tuple[Form, ...] = ()  # C++ overloads; left out where the spelling says it all
    no_cpp: str = ""  # why there is none
    py: str = ""  # the function of Python that it is, where that does not follow: see isa/python.py
    variant: int | None = None  # variant byte where several rows share an opcode
    core: str = ""  # "cube" or "vector" where it runs on one kind of core only
    scope: str = "tile"
    terminator: bool = False
    aliases: tuple[str, ...] = ()  # further accepted mnemonics
    also: tuple[str, ...] = ()  # further instruction sets that list it
    infer: dict[str, str] = _NO_TEXTS  # result type where the text omits it
    types: dict[str, str] = _NO_TEXTS  # witness types, see pto.witness
    notes: tuple[str, ...] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, field: str) -> Any:
            """A field that is not there yet: a family completes its rows when they are first used, by several
            threads perhaps. Each completes it then: they find the same."""
            values = self.__dict__
            made = values.get("_made_by")
            if made is not None and not field.startswith("_"):
                made(self)
                values.pop("_made_by", None)
            try:
                return values[field]  # or another thread has completed it since
            except KeyError:
                raise AttributeError(field) from None

        def _key(self) -> tuple[Any, ...]:
            _ = self.family
            return super()._key()

        def __repr__(self) -> str:
            return f"<Row {self.name}>"

    @cached_property
    def dialect(self) -> str:
        head = self.name.split(".", 1)[0]
        return head if head in DIALECTS else "pto"

    @cached_property
    def full_name(self) -> str:
        """Name in the text forms, dialect included."""
        return self.name if self.dialect != "pto" else f"pto.{self.name}"

    @cached_property
    def formats(self) -> tuple[tuple[Item, ...], ...]:
        texts = (self.format,) if isinstance(self.format, str) else self.format
        return tuple(parse_format(t or default_format(self)) for t in texts)

    @cached_property
    def is_dps(self) -> bool:
        """Written `ins(...) outs(...)`: no results, at least one destination operand."""
        return not self.results and any(o.role in ("out", "inout") for o in self.operands)

    @cached_property
    def is_ins_outs(self) -> bool:
        """Written `ins(...) outs(...)`, which a flat operand list can replace."""
        first = self.format if isinstance(self.format, str) else self.format[0]
        return self.is_dps and (not first or first.startswith(("ins(", "outs(")))

    @cached_property
    def has_segments(self) -> bool:
        """Operand groups vary, so an operation records how many values each group holds."""
        return any(o.optional or o.variadic for o in self.operands)

    @cached_property
    def operand_index(self) -> dict[str, int]:
        return {o.name: i for i, o in enumerate(self.operands)}

    @cached_property
    def attr_index(self) -> dict[str, Attr]:
        return {a.name: a for a in self.attrs}

    @cached_property
    def uses_contents(self) -> bool:
        """Whether it reads or writes what its operands hold, and not only where that is."""
        return self.effect in TOUCHING if self.touches is None else self.touches

    def scratch_on(self, isa: str) -> tuple[str, ...]:
        """Operands whose valid region a target writes with nobody knows what: scratch that it uses."""
        if self.tmp_on and isa not in self.tmp_on:
            return ()
        return self.scratch

    def takes_own_scratch(self, isa: str) -> bool:
        """Whether a target uses memory of its own (`Profile.own_tmp`) where no scratch is given."""
        return isa in self.own_tmp_on

    @cached_property
    def fifo_direction(self) -> int:
        """The direction of a FIFO that it serves (a bit of `dir_mask`), where its kind of core decides: the
        cube pushes and the vector cores take from C2V. 0 where it serves either."""
        if not self.core or self.fifo not in ("alloc", "push", "pop", "free"):
            return 0
        return C2V if (self.core == "cube") == (self.fifo in ("alloc", "push")) else V2C

    @cached_property
    def scratch(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.operands if o.role == "tmp")

    @cached_property
    def typed(self) -> str:
        """The operand whose element type its lists of types speak of first; empty where it has none."""
        listed = self.dtype_of or (self.combos[0].operands if self.combos else ())
        return listed[0] if listed else ""

    def expr_at(self, isa: str, dtype: str) -> str:
        """The expression in one legality column, where `typed` has this element type."""
        found = [k for k in self.expr_on if set(k.split()) <= {isa, dtype}]
        return self.expr_on[max(found, key=len)] if found else self.expr

    @cached_property
    def outs(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands if o.role in ("out", "inout"))

    @cached_property
    def ins(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands if o.role in ("in", "tmp"))


#: Dialects other than `pto` that real files use.
DIALECTS = (
    "arith",
    "scf",
    "cf",
    "func",
    "memref",
    "math",
    "builtin",
    "affine",
    "emitc",
    "llvm",
    "vector",
    "tensor",
)


def _list(operands: tuple[Operand, ...]) -> tuple[str, str]:
    """Format text of an operand list and of its types, optional ones in groups."""
    names_text, types_text = "", ""
    for i, o in enumerate(operands):
        many = "..." if o.variadic else ""
        sep = ", " if i else ""
        name, typ = f"{sep}${o.name}{many}", f"{sep}type(${o.name}{many})"
        if o.optional or (o.variadic and i):
            name, typ = f" [{name}]", f" [{typ}]"
        names_text += name
        types_text += typ
    return names_text, types_text


def default_format(row: Row) -> str:
    """`ins(..) outs(..)` for destination-style rows, `operands : types -> types` for the others."""
    names_text, types_text = _list(row.operands)
    if row.is_dps:
        ins, ins_types = _list(row.ins)
        outs, outs_types = _list(row.outs)
        head = f"ins({ins} : {ins_types}) " if row.ins else ""
        return f"{head}outs({outs} : {outs_types}) attr-dict"
    result_types = ", ".join(f"type(${r.name})" if not r.optional else "" for r in row.results)
    if row.results and not row.operands:
        return f"attr-dict : {result_types}"
    if row.results:
        return f"{names_text} attr-dict : {types_text} -> {result_types}"
    return f"{names_text} attr-dict : {types_text}" if row.operands else "attr-dict"


_FIELDS = set(Row.field_names())
_JOINED = ("attrs", "rules", "notes", "combos")


class Family:
    """What the rows of one family share; calling it with a row's own facts makes the row."""

    def __init__(self, family: str, set: str, **shared: Any) -> None:
        self._shared: dict[str, Any] = {"family": family, "set": set, **shared}

    def but(self, **changes: Any) -> Family:
        """A variation: `changes` replace what the family shares."""
        merged = {**self._shared, **changes}
        return Family(merged.pop("family"), merged.pop("set"), **merged)

    def __call__(self, name: str, **own: Any) -> Row:
        """The row, which is completed on first use: a program uses few of the table's."""
        row = Row.__new__(Row)
        aliases = own.get("aliases", self._shared.get("aliases", ()))

        def complete(made: Row) -> None:
            made.__dict__.update(self._facts(name, own))

        row.__dict__.update(
            name=name,
            aliases=tuple(aliases.split()) if isinstance(aliases, str) else aliases,
            _made_by=complete,
        )
        return row

    def _facts(self, name: str, own: dict[str, Any]) -> dict[str, Any]:
        """Every field of a row."""
        facts: dict[str, Any] = {**self._shared, **own, "name": name}
        for key in _JOINED:
            facts[key] = (*_tuple(self._shared.get(key, ())), *_tuple(own.get(key, ())))
        facts["rules"] = tuple(made for r in facts["rules"] for made in _rules(r))
        for key in ("operands", "results"):
            if isinstance(facts.get(key), str):
                facts[key] = operand_list(facts[key])
        for key in (
            "isas",
            "regions",
            "aliases",
            "also",
            "dtype_of",
            "in_place_on",
            "tmp_on",
            "own_tmp_on",
            "stream_on",
        ):
            if isinstance(facts.get(key), str):
                facts[key] = tuple(facts[key].split())
        dtypes = {isa: names(facts.pop(isa)) for isa in ISAS if isa in facts}
        if dtypes:
            facts["dtypes"] = dtypes
            if not facts.get("dtype_of"):
                facts["dtype_of"] = ("dst",)
        if facts.get("expr") and not facts.get("meaning"):
            facts["meaning"] = _described(facts)
        if isinstance(facts.get("forms"), dict):  # those of a family, by name
            facts["forms"] = facts["forms"].get(name, ())
        if facts.get("forms"):
            facts["cpp"] = " | ".join(dict.fromkeys(form.cpp for form in facts["forms"]))
        elif facts.get("cpp"):
            facts["forms"] = forms(facts["cpp"])
        by_hand = facts.pop("by_hand", "")
        if by_hand:
            facts["forms"] = tuple(f.replace(by_hand=f.by_hand or by_hand) for f in facts["forms"])
        unknown = set(facts) - _FIELDS
        if unknown:
            raise TypeError(f"{name}: unknown row field {', '.join(sorted(unknown))}")
        return Row(**facts).__dict__


def _described(facts: dict[str, Any]) -> str:
    """The meaning of a row with an expression, in words."""
    expr, over, start = facts["expr"], facts.get("over", ""), facts.get("start", "")
    written = [o.name for o in facts.get("operands", ()) if o.role in ("out", "inout")]
    target = (written or [r.name for r in facts.get("results", ())] or [""])[0]
    if start:
        first = STARTS.get(start, start)
        text = [f"acc = {first}; for {OVER.get(over, '')}: acc = {expr}; {target} = acc"]
        if facts.get("pairs"):
            text.append(f"with {facts['pairs']} a tree instead, neighbours in pairs, level by level")
            text += [f"{isa}: one left over joins the {pair} pair" for isa, pair in facts["odd_one"].items()]
        return "; ".join(text)
    text = [expr if " = " in expr else f"{target} = {expr}"]
    text += [f"{isa}: {target} = {other}" for isa, other in facts.get("expr_on", {}).items()]
    if over:
        text.append(f"for {OVER.get(over, '')}")
    if facts.get("gate"):
        text.append(f"0 in lanes that are off in {facts['gate']}")
    if facts.get("packed"):
        text.append(f"{facts['packed']} has a bit per element, the first one lowest; rows start a new word")
    if facts.get("stream_on"):
        text.append(f"{', '.join(facts['stream_on'])}: it is one stream of bytes, an element each")
    if facts.get("single"):
        text.append(f"a tile as {facts['single']} stands for its first element")
    if facts.get("skip"):
        text.append(f"nothing is written where {facts['skip']}")
    if facts.get("store"):
        text.append(STORES.get(facts["store"], ""))
    return "; ".join(text)


def _rules(given: str | Rule | Callable[[], tuple[Rule, ...]]) -> tuple[Rule, ...]:
    """A rule; or several, from a function that needs other rows."""
    if isinstance(given, str):
        return (Rule(given),)
    return (given,) if isinstance(given, Rule) else given()


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)  # type: ignore[reportUnknownVariableType]
