"""Definition of an instruction row, and `Family` with the shared facts of its members.

Operands and results are written as a short list, in the order of the generic form:

    "src0 src1 tmp:tmp? dst:out"        name[=kind][:role][?][*]

`kind` defaults to `tile` (see KINDS), `role` to `in`; `?` marks an optional and `*` a variadic operand. The
C++ and PTO-AS orders (destinations first) follow from the roles.
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

#: Operand kinds: classes of types. Alternatives are joined with `|`.
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

#: Effects of an instruction on the state of the machine, besides its operands' roles.
EFFECTS: dict[str, str] = {
    "memory": "reads its in operands and writes its out and tmp operands",
    "pure": "computes a value without other effects",
    "alias": "gives another name to existing storage",
    "alloc": "creates storage",
    "sync": "orders pipes, cores or ranks",
    "config": "sets a mode register of the core",
    "control": "structures the program",
    "io": "observable outside the program",
}

#: Part of a destination that an instruction replaces.
WRITES: dict[str, str] = {
    "all": "all of its storage",
    "valid": "all of its valid region",
    "column0": "column 0 of its valid region",
    "row0": "row 0 of its valid region",
    "part": "a part of it; the rest keeps its contents",
}

#: Effects of instructions that access the contents of their operands.
TOUCHING = ("memory", "sync", "io")

#: Ranges of the expression of a row. `acc` in a fold is the value so far.
OVER: dict[str, str] = {
    "": "every element of the destination, or every active lane",
    "columns": "every element of the destination; operands with fewer columns repeat theirs",
    "row": "every element of the destination; row 0 of all operands except the first",
    "column 0": "every element of the destination, with column 0 of its row",
    "row 0": "every element of the destination, with row 0 of its column",
    "storage": "every element of the destination; outside vec, every element of its storage",
    "parts": "every element of both sources; elements of only one source are copied, the rest is 0",
    "fold columns": "the columns of each row, in order, into column 0",
    "fold rows": "the rows of each column, in order, into row 0",
    "part": "every lane of the result; for narrower operands and the mask, the lane of each pair that the "
    "attribute part names",
    "front": "every lane of the operands, into the front lanes of the result; the rest is 0",
    "fold lanes": "the active lanes into lane 0, as a tree of neighbors; inactive lanes count as the start",
    "fold groups": "the lanes of each group of 32 bytes into one lane per group, as in 'fold lanes'",
}
#: Start values that depend on the type.
STARTS: dict[str, str] = {
    "first": "the first element",
    "least": "minus infinity, or the least integer",
    "greatest": "infinity, or the greatest integer",
}

#: Conversions of a result to an element of the destination.
STORES: dict[str, str] = {
    "": "floats are rounded to nearest even, integers keep their low bits",
    "saturate": "if the types differ: rounded to the type that computes, then to nearest even, and clamped "
    "to the range of the destination",
    "narrow": "rounded to the type that computes, then to nearest even; integers are clamped to the range "
    "of the destination, and NaN becomes 0",
}

SCOPES: dict[str, str] = {
    "any": "anywhere in a function",
    "tile": "outside a vecscope",
    "vec": "inside exactly one vecscope",
}


#: Effects of an instruction on the order of pipes and cores.
ORDERS: dict[str, str] = {
    "set": "raises a flag between two pipes",
    "wait": "waits for a flag and clears it",
    "get": "takes a buffer token for a pipe",
    "release": "releases a buffer token",
    "barrier": "drains a pipe, or all of them",
    "fence": "orders accesses within a vecscope",
    "signal": "raises a semaphore of another core",
    "await": "waits for a semaphore",
}

#: Effects of an instruction on a FIFO between cores.
FIFO: dict[str, str] = {
    "open": "initializes one end",
    "alloc": "takes a free slot, to be written in place",
    "push": "sends an entry",
    "pop": "takes the next entry",
    "free": "releases the slot of an entry",
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
    keyword: bool = False  # printed as a bare word if a format names it
    many: bool = False  # a comma-separated list of its choices
    hint: bool = False  # does not change results, and a spelling may omit it
    alias: str = ""  # alternative name in program text
    inert: bool = False  # does not change results, but a spelling must have it
    unencoded: tuple[Any, ...] = ()  # choices without an encoding: legal, with a warning
    words: dict[str, str] = _NO_WORDS  # choices with another word in C++
    assumed: Any = None  # value of a C++ call without it, if a program must have it
    doc: str = ""

    def admits(self, value: Any) -> bool:
        """Return True if a plain value is one of the choices, or a list of them for `many`."""
        if self.many:
            return all(word.strip() in self.choices for word in str(value).split(","))
        return not self.choices or value in self.choices

    @property
    def domain(self) -> tuple[Any, ...]:
        """Every legal value if the attribute is enumerable, else an empty tuple."""
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
    """One C++ overload of an instruction. Its call names the operands and attributes, as `$dst`; attributes
    that it neither names nor fixes have their defaults."""

    cpp: str  # the call; see codegen/cpp/template.py
    fixes: dict[str, Any] = _NO_VALUES  # attributes with fixed values in the overload
    scalars: tuple[str, ...] = ()  # operands that are numbers in this overload, and may otherwise be tiles
    scratch: bool = False  # its scratch is checked, because it distinguishes the overload
    written: bool = False  # computed by a function with the row's name, not generated from the expression
    by_hand: str = ""  # reason why its call frame is written by hand
    types: str = ""  # element types of the overload, or combinations
    ignores: str = ""  # attributes and operands without an effect here
    check: str | None = None  # suffix of the name of its check; None: its operands besides the required ones


def forms(calls: str, **same: Any) -> tuple[Form, ...]:
    """Return overloads that differ only in their calls, which ` | ` separates."""
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
    meaning: str = ""  # meaning as text; derived if the row has an expression
    expr: str = ""  # expression over its operands: see isa/meaning.py
    expr_on: dict[str, str] = _NO_TEXTS  # other expressions, by column, element type or both, "a2a3 i32"
    algorithm: str = ""  # algorithm, if it has no expression: see isa/algorithms.py
    over: str = ""  # range of the expression or the algorithm: see OVER
    packed: str = ""  # operands with a bit per element, the first in the lowest bit; rows start a new word
    stream_on: tuple[
        str, ...
    ] = ()  # columns in which packed operands are a stream of bytes, one element each, row after row
    floats: str = ""  # scalar operands that are always f32
    single: str = ""  # operands whose tile stands for its first element
    start: str = ""  # for a fold: the start value, a number or one of STARTS
    steps: str = ""  # for a fold: the type in which 16-bit floats accumulate; empty: each step rounds
    pairs: str = ""  # for a fold: the attribute that makes it a tree of sums of neighbors
    odd_one: dict[str, str] = _NO_TEXTS  # column with such trees -> the pair that an odd element joins
    gate: str = ""  # the mask operand; its inactive lanes do not take part and give 0
    skip: str = ""  # condition over the scalars for which the instruction writes no result
    store: str = ""  # conversion of the result to an element: see STORES
    operands: tuple[Operand, ...] = ()
    results: tuple[Operand, ...] = ()
    attrs: tuple[Attr, ...] = ()
    regions: tuple[str, ...] = ()
    format: str | tuple[str, ...] = ""  # empty = derived from the operands
    dtypes: dict[str, tuple[str, ...]] = _NO_DTYPES
    dtype_of: tuple[str, ...] = ()  # operands of the dtype list
    dtype_code: str = ""
    combos: tuple[Combos, ...] = ()
    rules: tuple[Rule, ...] = ()
    isas: tuple[str, ...] = ISAS  # legality columns with this instruction
    pipe: Pipe = ""
    effect: str = "memory"
    in_place: str = ""  # "any", "none", or the sources the destination may share storage with
    in_place_on: tuple[str, ...] = ()  # columns in which in_place restricts; empty = all
    tmp_on: tuple[str, ...] = ()  # columns that write the tmp operands; empty = all
    own_tmp_on: tuple[str, ...] = ()  # columns that use Profile.own_tmp without a tmp operand
    domain: str = ""  # elements the instruction defines, for readers
    writes: str = "part"  # replaced part of its destinations: see WRITES
    part_with: str = ""  # an optional operand; with it, only a part is replaced
    filled_by: str = ""  # the operand that fills only a part of a larger destination
    accumulates: str = ""  # the operand that hardware uses as destination, to which it adds
    # the operand whose storage is aliased by its result, or else by the operand that it rebinds
    names: str = ""
    window: bool = False  # the alias is another part of that storage, or has other strides
    rebinds: str = ""  # the operand that names other storage afterwards
    lanes: bool = False  # depends on the number of its vector core in the block, or of vector cores
    repeatable: bool = False  # pure, and equal computations may share a result
    # True if it accesses the contents of its operands; None: depends on its effect
    touches: bool | None = None
    element_at: str = ""  # accesses one element only: the operand with its index
    order: str = ""  # effect on the order of pipes and cores: see ORDERS
    fifo: str = ""  # effect on a FIFO: see FIFO
    opens: str = ""  # the scope of its regions: see SCOPES
    keeps: bool = False  # later instructions use its operands implicitly
    cpp: str = ""  # C++ spelling: the calls of its forms
    forms: tuple[Form, ...] = ()  # C++ overloads; derived from the spelling if omitted
    no_cpp: str = ""  # reason for having no C++ spelling
    py: str = ""  # its Python function, if it cannot be derived: see isa/python.py
    variant: int | None = None  # variant byte if several rows share an opcode
    core: str = ""  # "cube" or "vector" if it runs on only one kind of core
    scope: str = "tile"
    terminator: bool = False
    aliases: tuple[str, ...] = ()  # further accepted mnemonics
    also: tuple[str, ...] = ()  # further instruction sets that list it
    infer: dict[str, str] = _NO_TEXTS  # result type if the text omits it
    types: dict[str, str] = _NO_TEXTS  # witness types, see pto.witness
    notes: tuple[str, ...] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, field: str) -> Any:
            """Return a field that does not exist yet: a family completes its rows at first use. Several
            threads may do this concurrently, with the same result."""
            values = self.__dict__
            made = values.get("_made_by")
            if made is not None and not field.startswith("_"):
                made(self)
                values.pop("_made_by", None)
            try:
                return values[field]  # another thread may have completed the row
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
        """Name in the text forms, with the dialect."""
        return self.name if self.dialect != "pto" else f"pto.{self.name}"

    @cached_property
    def formats(self) -> tuple[tuple[Item, ...], ...]:
        texts = (self.format,) if isinstance(self.format, str) else self.format
        return tuple(parse_format(t or default_format(self)) for t in texts)

    @cached_property
    def is_dps(self) -> bool:
        """True if written `ins(...) outs(...)`: no results, and at least one destination operand."""
        return not self.results and any(o.role in ("out", "inout") for o in self.operands)

    @cached_property
    def is_ins_outs(self) -> bool:
        """True if written `ins(...) outs(...)` in a form that a flat operand list can replace."""
        first = self.format if isinstance(self.format, str) else self.format[0]
        return self.is_dps and (not first or first.startswith(("ins(", "outs(")))

    @cached_property
    def has_segments(self) -> bool:
        """True if operand groups vary, so that an operation records the number of values of each group."""
        return any(o.optional or o.variadic for o in self.operands)

    @cached_property
    def operand_index(self) -> dict[str, int]:
        return {o.name: i for i, o in enumerate(self.operands)}

    @cached_property
    def attr_index(self) -> dict[str, Attr]:
        return {a.name: a for a in self.attrs}

    @cached_property
    def uses_contents(self) -> bool:
        """True if it reads or writes the contents of its operands, not only their addresses."""
        return self.effect in TOUCHING if self.touches is None else self.touches

    def scratch_on(self, isa: str) -> tuple[str, ...]:
        """Return the scratch operands whose valid region a target overwrites with unspecified values."""
        if self.tmp_on and isa not in self.tmp_on:
            return ()
        return self.scratch

    def takes_own_scratch(self, isa: str) -> bool:
        """Return True if a target uses its own memory (`Profile.own_tmp`) without a scratch operand."""
        return isa in self.own_tmp_on

    @cached_property
    def fifo_direction(self) -> int:
        """The direction of the FIFO that it uses (a bit of `dir_mask`), if its kind of core determines it:
        the cube pushes to C2V and the vector cores take from C2V. 0 if both directions are possible."""
        if not self.core or self.fifo not in ("alloc", "push", "pop", "free"):
            return 0
        return C2V if (self.core == "cube") == (self.fifo in ("alloc", "push")) else V2C

    @cached_property
    def scratch(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.operands if o.role == "tmp")

    @cached_property
    def typed(self) -> str:
        """The first operand of its lists of types, or an empty text."""
        listed = self.dtype_of or (self.combos[0].operands if self.combos else ())
        return listed[0] if listed else ""

    def expr_at(self, isa: str, dtype: str) -> str:
        """Return the expression in a legality column, for an element type of `typed`."""
        found = [k for k in self.expr_on if set(k.split()) <= {isa, dtype}]
        return self.expr_on[max(found, key=len)] if found else self.expr

    @cached_property
    def outs(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands if o.role in ("out", "inout"))

    @cached_property
    def ins(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands if o.role in ("in", "tmp"))


#: Dialects other than `pto` that files use.
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
    """Return the format text of an operand list and of its types, with optional operands in groups."""
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
    """Return `ins(..) outs(..)` for destination-style rows, `operands : types -> types` for other rows."""
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
    """Shared facts of the rows of a family; a call with the facts of one row makes that row."""

    def __init__(self, family: str, set: str, **shared: Any) -> None:
        self._shared: dict[str, Any] = {"family": family, "set": set, **shared}

    def but(self, **changes: Any) -> Family:
        """Return a variation: `changes` replace shared facts."""
        merged = {**self._shared, **changes}
        return Family(merged.pop("family"), merged.pop("set"), **merged)

    def __call__(self, name: str, **own: Any) -> Row:
        """Return a row that is completed at first use, because a program uses few rows of the table."""
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
        """Return every field of a row."""
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
        if isinstance(facts.get("forms"), dict):  # forms of a family, by name
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
    """Return the meaning of a row with an expression as text."""
    expr, over, start = facts["expr"], facts.get("over", ""), facts.get("start", "")
    written = [o.name for o in facts.get("operands", ()) if o.role in ("out", "inout")]
    target = (written or [r.name for r in facts.get("results", ())] or [""])[0]
    if start:
        first = STARTS.get(start, start)
        text = [f"acc = {first}; for {OVER.get(over, '')}: acc = {expr}; {target} = acc"]
        if facts.get("pairs"):
            text.append(f"with {facts['pairs']} a tree instead: neighbors in pairs, level by level")
            text += [f"{isa}: an odd element joins the {pair} pair" for isa, pair in facts["odd_one"].items()]
        return "; ".join(text)
    text = [expr if " = " in expr else f"{target} = {expr}"]
    text += [f"{isa}: {target} = {other}" for isa, other in facts.get("expr_on", {}).items()]
    if over:
        text.append(f"for {OVER.get(over, '')}")
    if facts.get("gate"):
        text.append(f"0 in lanes that are inactive in {facts['gate']}")
    if facts.get("packed"):
        text.append(
            f"{facts['packed']} has a bit per element, the first in the lowest bit; rows start a new word"
        )
    if facts.get("stream_on"):
        text.append(f"{', '.join(facts['stream_on'])}: a stream of bytes, one element each")
    if facts.get("single"):
        text.append(f"a tile as {facts['single']} stands for its first element")
    if facts.get("skip"):
        text.append(f"nothing is written if {facts['skip']}")
    if facts.get("store"):
        text.append(STORES.get(facts["store"], ""))
    return "; ".join(text)


def _rules(given: str | Rule | Callable[[], tuple[Rule, ...]]) -> tuple[Rule, ...]:
    """Return a rule as a tuple, or several rules from a function that needs other rows."""
    if isinstance(given, str):
        return (Rule(given),)
    return (given,) if isinstance(given, Rule) else given()


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)  # type: ignore[reportUnknownVariableType]
