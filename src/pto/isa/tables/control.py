"""Program structure: modules, functions, structured control flow (`scf`) and branches between blocks (`cf`).

Rows with `format="custom"` have their own parser and printer; their notes contain the text. Regions are
listed in the order of the generic form, and a region ends with the terminator that its row names. Loop and
branch results are values: inside a vecscope, they may also be vector registers, masks and alignment state.
"""

from __future__ import annotations

from ..row import Attr, Family
from ..rules import R

_scf = Family("shared-scf", "scalar", effect="control", scope="any", format="custom")
_end = Family(
    "shared-scf", "scalar", effect="control", scope="any", terminator=True, operands="values=any*",
    format="attr-dict [$values... : type($values...)]", types={"values": "i32"},
)  # fmt: skip
_cf = Family("shared-scf", "scalar", effect="control", scope="any", format="custom", terminator=True)
_func = Family("shared-func", "scalar", effect="control", scope="any")

STRUCTURED = (
    _scf(
        "scf.for", opcode=0x4000, operands="lb=int ub=int step=int init=any*", results="results=any*",
        regions="body", rules=(R("ub.type == lb.type"), R("step.type == lb.type"), R("step.const > 0")),
        attrs=Attr("llvm.loop.aivector_scope", "unit", doc="makes a one-trip loop a vecscope (older form)"),
        types={"lb": "index", "ub": "index", "step": "index"},
        doc="Counted loop over a half-open range, with optional carried values.",
        meaning="carried = init; i = lb; while i < ub: carried = body(i, *carried); i += step; "
                "results = carried. Bounds are signed and read once; zero trips give init.",
        cpp="for (size_t $iv = $lb; $iv < $ub; $iv += $step) { $body }",
        notes=(
            "Text: `scf.for %i = %lb to %ub step %s [iter_args(%a = %init, ..) -> (T, ..)] [: T] { .. } "
            "[attr-dict]`; `: T` gives the type of the bounds when it is not index.",
            "The body's block arguments are the induction variable and the carried values.",
            "The body ends in scf.yield; the text may leave out one without values.",
            "Yielded types equal the types of init and of the results.",
            "C++ loops over size_t for index bounds; carried values are variables declared before the loop.",
            "The v0 bytecode cannot carry iter_args.",
        ),
    ),
    _scf(
        "scf.if", opcode=0x4001, operands="condition=i1", results="results=any*", regions="then else",
        types={"condition": "i1"}, doc="Structured branch on an i1, with optional results.",
        meaning="results = then() if condition else else(); a missing else does nothing",
        cpp="if ($condition) { $then } else { $else }",
        notes=(
            "Text: `scf.if %c [-> (T, ..)] { .. } [else { .. }] [attr-dict]`.",
            "Results need both branches; each ends in scf.yield of the result types.",
            "The text may leave out an scf.yield without values. A missing else is a region without blocks.",
            "The v0 bytecode cannot carry results.",
        ),
    ),
    _scf(
        "scf.while", opcode=0x4010, operands="init=any*", results="results=any*", regions="before after",
        types={"init": "i32", "results": "i32"},
        doc="General loop: a region that decides, a region that repeats.",
        meaning="args = init; loop: (go, values) = before(*args); if not go: results = values, stop; "
                "args = after(*values)",
        cpp="while (true) { $before if (!$condition) break; $after }",
        notes=(
            "Text: `scf.while (%a = %init, ..) : (T, ..) -> (U, ..) { .. scf.condition(%c) %v : U } do "
            "{ ^bb0(%x: U): .. scf.yield %y : T } [attributes {..}]`.",
            "The before region takes T and ends in scf.condition; the after region takes U and yields T.",
            "The reference assembler emits it as labels and gotos.",
        ),
    ),
    _scf(
        "scf.execute_region", opcode=0x4011, results="results=any*", regions="region",
        types={"results": "i32"}, doc="Run a region of one or more blocks once, in place.",
        meaning="results = region()", cpp="{ $region }",
        notes="Text: `scf.execute_region [-> T | -> (T, ..)] { .. } [attr-dict]`; every exit is scf.yield.",
    ),
    _scf(
        "scf.index_switch", opcode=0x4012, operands="arg=index", results="results=any*",
        regions="default case_regions",
        attrs=Attr("cases", "ints", required=True, doc="one value per case region"),
        types={"arg": "index", "attr:cases": "[0]"}, doc="Multi-way structured branch on an index.",
        meaning="results = cases[k]() for the k whose value equals arg, else default()",
        cpp="switch ($arg) { case $cases: { $case_regions } default: { $default } }",
        notes=(
            "Text: `scf.index_switch %i [attr-dict] [-> T, ..] case 2 { .. } case 5 { .. } default { .. }`.",
            "`case_regions` stands for one region per value, after the default region. Values are distinct.",
            "Every region ends in scf.yield of the result types.",
        ),
    ),
    _end(
        "scf.condition", opcode=0x4013, operands="condition=i1 args=any*",
        format="($condition) attr-dict [$args... : type($args...)]", types={"condition": "i1", "args": "i32"},
        doc="End the before region of scf.while: go on or leave, passing values.",
        meaning="run the after region on args if condition, else leave the loop with args as its results",
        cpp="if (!$condition) break;", notes="Only as the last operation of the before region of scf.while.",
    ),
    _end(
        "scf.yield", opcode=0x4002, doc="End a structured region, passing its values on.",
        meaning="values become the carried values or results of the enclosing scf operation",
        cpp="$result = $value;", notes="Types match the enclosing operation.",
    ),
)  # fmt: skip

BRANCHES = (
    _cf(
        "cf.br", opcode=0x4014, operands="dest_operands=any*", types={"dest_operands": "i32"},
        doc="Jump to a block, passing its arguments.", meaning="go to dest with dest_operands",
        cpp="$arg = $dest_operands; goto $dest;",
        notes="Text: `cf.br ^dest[(%a, .. : T, ..)]`. One successor.",
    ),
    _cf(
        "cf.cond_br", opcode=0x4015, operands="condition=i1 true_operands=any* false_operands=any*",
        types={"condition": "i1", "true_operands": "i32", "false_operands": "i32"},
        doc="Jump to one of two blocks by an i1, passing that block's arguments.",
        meaning="go to true_dest with true_operands if condition, else to false_dest with false_operands",
        cpp="if ($condition) { goto $true_dest; } else { goto $false_dest; }",
        notes="Text: `cf.cond_br %c, ^t[(%a : T)], ^f[(%b : U)]`. Two successors.",
    ),
    _cf(
        "cf.switch", opcode=0x4016, operands="flag=int default_operands=any* case_operands=any*",
        attrs=(
            Attr("case_values", "any", doc="one integer per case, `dense<..> : vector<NxT>`"),
            Attr("case_operand_segments", "ints", doc="how many of case_operands each case takes"),
        ),
        types={"flag": "i32", "default_operands": "i32", "case_operands": "i32"},
        doc="Jump to the block of the matching integer case, or to the default block.",
        meaning="go to the destination of the k whose case_values[k] equals flag, else to the default one",
        cpp="switch ($flag) { case $case_values: goto $case_dest; default: goto $default_dest; }",
        notes="Text: `cf.switch %f : T, [ default: ^d[(%a : T)], 42: ^c[(%b : T)] ]`. "
              "Successors: the default, then the cases.",
    ),
)  # fmt: skip

_SYMBOL = "sym_name"

FUNCTIONS = (
    _func(
        "func.func", opcode=0x6000, regions="body", format="custom",
        attrs=(
            Attr(_SYMBOL, "symbol", required=True, doc="name"),
            Attr("function_type", "type", required=True, doc="argument and result types"),
            Attr("sym_visibility", "str", choices=("public", "private", "nested"), keyword=True,
                 doc="private functions are emitted static"),
            Attr("pto.entry", "unit", doc="kernel entry; a module with one definition needs no mark"),
            Attr("pto.kernel", "unit", doc="newer spelling of pto.entry"),
            Attr("hacc.entry", "unit", doc="older spelling of pto.entry"),
            Attr("pto.aicore", "unit", doc="older spelling of pto.entry"),
            Attr("pto.kernel_kind", "kernel_kind", doc="core kind the whole body runs on"),
            Attr("pto.auto_sync_tail_hint", "str",
                 doc="end of automatic synchronization: barrier-all or mte3-to-s-event0"),
            Attr("pto.assume", "any", inert=True,
                 doc="conditions on parameters, as texts: proofs rely on them, and launches check them"),
        ),
        types={"attr:sym_name": "@f", "attr:function_type": "() -> ()"},
        doc="A function: a kernel entry, a helper, or the declaration of an external one.",
        meaning="body runs with the arguments bound to its entry block; func.return gives the results",
        cpp="AICORE $T $sym_name($args) { $body }",
        notes=(
            "Text: `func.func [private] @name(%a: T {attrs}, ..) [-> T | -> (T, ..)] [attributes {..}] "
            "[{ body }]`; no body means a declaration.",
            "An entry returns nothing and has a body.",
            "C++ prefix: `__global__ AICORE` entry, `static AICORE` private, `AICORE` other, "
            "`extern` declaration. C++ has at most one result.",
        ),
    ),
    _func(
        "func.call", opcode=0x4017, operands="args=any*", results="results=any*", format="custom",
        attrs=Attr("callee", "symbol", required=True, doc="the function"),
        types={"args": "i32", "results": "i32", "attr:callee": "@f"},
        doc="Call a function of this module.", meaning="results = callee(*args)", cpp="$callee($args)",
        notes=(
            "Text: `[func.]call @f(%a, ..) [attr-dict] : (T, ..) -> T`, `-> ()` or `-> (T, ..)`.",
            "Argument and result types are those of the callee. C++ emission needs an acyclic call graph.",
        ),
    ),
    _func(
        "func.return", opcode=0x6001, operands="values=any*", terminator=True,
        format="attr-dict [$values... : type($values...)]", types={"values": "i32"},
        doc="End a function and give its results.", meaning="leave the function with values",
        cpp="return $values;",
        notes=("Also spelled `return`. Types match the function's.", "The v0 bytecode cannot carry values."),
    ),
    _func(
        "builtin.module", opcode=0x4018, regions="body", format="custom",
        attrs=(
            Attr(_SYMBOL, "symbol", doc="name"),
            Attr("pto.target_arch", "str", doc="target: a5 in any case, everything else is A2/A3"),
            Attr("pto.device-spec", "str",
                 doc="device name; Ascend950.. and Ascend910_95.. choose A5 pipes for tinsert and tscatter"),
            Attr("pto.kernel_kind", "kernel_kind", doc="core kind of functions without their own"),
        ),
        doc="The file: functions and what they are compiled for.",
        meaning="a list of functions; nothing runs at module level",
        no_cpp="a module is the translation unit itself",
        notes="Text: `module [@name] [attributes {..}] { func* }`; the wrapper may be left out.",
    ),
    _func(
        "builtin.unrealized_conversion_cast", opcode=0x4019, operands="inputs=any*", results="outputs=any*",
        format="[$inputs... : type($inputs...)] to type($outputs...) attr-dict", effect="alias", names="inputs",
        types={"inputs": "index", "outputs": "i32"},
        doc="A value seen as another type, left over from a partial conversion.",
        meaning="outputs are inputs under other types, unchanged", cpp="($T)$inputs",
        notes="Appears in dumps; legal where the two types have the same representation.",
    ),
)  # fmt: skip

ROWS = (*STRUCTURED, *BRANCHES, *FUNCTIONS)
