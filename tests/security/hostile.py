"""Hostile inputs, by name: payloads of an attacker in a program, which would do more than the program.

Payloads make a file `pwned` (`watch.CANARY`) if anything executes them. A program has a kernel of
one `!pto.ptr<i64>`, so that it can be run if the tools accept it.
"""

from __future__ import annotations

PYTHON = '__import__("os").system("touch pwned")'
CPP = 'system("touch pwned");'


def program(body: str = "", head: str = "", name: str = "@k", attributes: str = "", module: str = "") -> str:
    """A program of one kernel; `head` stands before it in the module."""
    return f"""module {module} {{
  {head}
  func.func {name}(%out: !pto.ptr<i64>) {attributes} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    {body}
    return
  }}
}}
"""


def put(value: str) -> str:
    """Store an index, so that it is computed."""
    return f"%i = arith.index_cast {value} : index to i64\n    pto.store_scalar %i, %out[%c0] : !pto.ptr<i64>, i64"


def applied(map: str, operands: str = "(%c1)") -> str:
    return program(f"%x = affine.apply affine_map<{map}>{operands}\n    {put('%x')}")


def printed(format: str, type: str = "i32", value: str = "1") -> str:
    return program(f'%v = arith.constant {value} : {type}\n    pto.print ins("{format}", %v : {type})')


def loaded(type: str) -> str:
    """Read an element of a memref."""
    return (
        f"%m = memref.alloc() : {type}\n    %v = memref.load %m[%c0, %c1] : {type}\n"
        "    %i = arith.fptosi %v : f32 to i64\n    pto.store_scalar %i, %out[%c0] : !pto.ptr<i64>, i64"
    )


def placed(location: str, more: str = "") -> str:
    return program(f"%x = arith.addi %c1, %c1 : index {location}\n    {put('%x')}") + more


_ESCAPED_CPP = CPP.replace('"', '\\"')
_DOUBLED = (
    "".join(f"#a{n} = loc(fused[#a{n + 1}, #a{n + 1}])\n" for n in range(60)) + '#a60 = loc("k.py":1:1)\n'
)

PROGRAMS: dict[str, str] = {
    # -- affine maps and sets
    "map: a default of a symbol": applied(f"()[s0=(0).__class__.__base__.__subclasses__() or {PYTHON}] -> (s0)", "()[%c1]"),
    "map: the finding": applied('()[s0=().__class__.__base__.__subclasses__().__getitem__(155).__init__.__globals__.get("system")("touch pwned")] -> (s0)', "()[%c1]"),
    "map: a default of a dimension": applied(f"(d0={PYTHON}) -> (d0)"),
    "map: a call in its body": applied(f"(d0) -> ({PYTHON})"),
    "map: an attribute in its body": applied("(d0) -> (d0.__class__)"),
    "map: a comprehension": applied("(d0) -> ([x for x in (1,)][0])"),
    "map: a lambda": applied("(d0) -> ((lambda: d0)())"),
    "map: a name of Python": applied("(__import__) -> (__import__)"),
    "map: a power": applied("(d0) -> (9 ** 9 ** 9)"),
    "map: a shift": applied("(d0) -> (1 << 99999999999)"),
    "map: a constant of many digits": applied(f"(d0) -> ({'9' * 5000})"),
    "map: many parentheses": applied(f"(d0) -> ({'(' * 5000}d0{')' * 5000})"),
    "map: many signs": applied(f"(d0) -> ({'-' * 5000}d0)"),
    "map: a long sum": applied(f"(d0) -> ({'d0 + ' * 5000}d0)"),
    "map: many results": applied(f"(d0) -> ({'d0, ' * 5000}d0)"),
    "map: many dimensions": applied(f"({', '.join(f'x{n}' for n in range(3000))}) -> (x0)"),
    "map: a comment": applied(f"(d0) // {PYTHON}\n -> (d0)"),
    "map: other digits": applied("(d0) -> (d0 + \u0661\u00b2)"),
    "map: a name in another script": applied("(\u0434) -> (\u0434)"),
    "map: divides by zero": applied("(d0) -> (d0 floordiv 0)"),
    "map: divides by zero when it runs": applied("(d0)[s0] -> (d0 mod (s0 - s0))", "(%c1)[%c1]"),
    "map: divides by a negative number": applied("(d0)[s0] -> (d0 ceildiv (s0 - 2))", "(%c1)[%c1]"),
    "map: overflows": applied("(d0) -> (d0 * 9223372036854775807 * 9223372036854775807 + 9223372036854775807)"),
    "map: too few operands": applied("(d0, d1) -> (d1)"),
    "map: a string": program(f'%x = "affine.apply"(%c1) {{map = "affine_map<(d0) -> ({_ESCAPED_CPP})>"}} : (index) -> index'),
    "map: in an alias": f"#m = affine_map<(d0={PYTHON}) -> (d0)>\n" + program(f"%x = affine.apply #m(%c1)\n{put('%x')}"),
    "map: as a layout": program(head=f"func.func private @f(memref<4xf32, affine_map<(d0) -> ({PYTHON})>>)"),
    "map: as a foreign attribute": program(attributes=f"attributes {{x.y = affine_map<(d0={PYTHON}) -> (d0)>}}"),
    "set: a call": program(attributes=f"attributes {{x.y = affine_set<(d0) : (d0 - {PYTHON} == 0)>}}"),
    "set: opaque": program(attributes="attributes {x.y = affine_set<(d0)[s0] : (d0 + 1 == 0)>}"),
    # -- strings
    "print: writes through its arguments": printed("%n%n%n%n%s%s%s%s"),
    "print: a text of a number": printed("%s %s"),
    "print: widths from arguments": printed("%*d %.*f"),
    "print: a wide field": printed("%999999999d %.999999999f"),
    "print: ends the string": printed(f'\\"); {_ESCAPED_CPP} //'),
    "print: ends the string by a trigraph": printed(f'??/\\"); {_ESCAPED_CPP} // ??/'),
    "print: ends with a backslash": printed("\\\\"),
    "print: lines and directives": printed('\\0A#include \\22/etc/passwd\\22\\0A%d\\0A#error pwned'),
    "print: zeros and tokens": printed("\\00%d\\01\\011\\02\\031\\03\\7F"),
    "print: no UTF-8": printed("\\FF\\FE%d\\C0\\80"),
    "print: a float as a text": printed("%s %d", "f32", "1.5"),
    # -- symbols
    "symbol: C++": program(name=f'@"k(){{}} int x = {_ESCAPED_CPP} //"'),
    "symbol: ends a line": program(name=f'@"k\\0A{_ESCAPED_CPP}\\0A//"'),
    "symbol: ends a comment": program(name='@"k */ pwned /* \\\\"'),
    "symbol: a path": program(name='@"../../pwned"'),
    "symbol: an absolute path": program(name='@"/tmp/pwned"'),
    "symbol: an option": program(name='@"-o pwned"'),
    "symbol: nothing": program(name='@""'),
    "symbol: a zero": program(name='@"k\\00pwned"'),
    "symbol: bytes that are no UTF-8": program(name='@"k\\FF\\FE"'),
    "symbol: orders to a terminal": program(name='@"k\\1B]0;pwned\\07\\1B[2J"'),
    "symbol: orders to a terminal, twice": program(name='@"k\\1B[2J"') + program(name='@"k\\1B[2J"'),
    "symbol: a page": program(name='@"</script><script>alert(1)</script>"'),
    "symbol: a key word": program(name="@asm"),
    "symbol: a macro": program(name="@PTO_LAUNCHER"),
    "symbol: a letter of another script": program(name='@"k\u00e9\u00b2\u202e"'),
    "symbol: long": program(name="@k" + "a" * 50_000),
    "symbol: two that are one": program(head='func.func @"a b"() {\n    return\n  }', name="@a_b"),
    "symbol: of a module": program(module=f'@"{_ESCAPED_CPP}"'),
    "call: the C library": program("%v = arith.constant 7 : i32\n    func.call @exit(%v) : (i32) -> ()",
                                   head="func.func private @exit(i32)"),
    "call: a fork": program("%v = func.call @fork() : () -> i32", head="func.func private @fork() -> i32"),
    "call: C++": program(f'func.call @"f(); {_ESCAPED_CPP}"() : () -> ()',
                         head=f'func.func private @"f(); {_ESCAPED_CPP}"()'),
    "call: itself": program("func.call @k(%out) : (!pto.ptr<i64>) -> ()"),
    # -- locations
    "loc: C++": placed(f'loc("k.py\\22\\0A{_ESCAPED_CPP}\\0A#line 1 \\22":3:4)'),
    "loc: a file that never ends": placed('loc("/dev/zero":1:1)'),
    "loc: a file of others": placed('loc("/etc/shadow":1:1)'),
    "loc: a zero": placed('loc("k\\00.py":1:1)'),
    "loc: many digits": placed(f'loc("k.py":{"9" * 400}:{"9" * 400})'),
    "loc: a circle": placed("loc(#a)", "#a = loc(#b)\n#b = loc(#a)\n"),
    "loc: doubled sixty times": placed("loc(#a0)", _DOUBLED),
    "loc: nested": placed("loc(" + 'callsite("k.py":1:1 at ' * 300 + '"k.py":1:1' + ")" * 301),
    # -- attributes
    "attribute: an enum": program(f'pto.barrier #pto.pipe<PIPE_V); {CPP} //>'),
    "attribute: an enum as a string": program(f'"pto.barrier"() {{pipe = "PIPE_V); {_ESCAPED_CPP}"}} : () -> ()'),
    "attribute: a foreign one": program(f'"pto.barrier"() {{pipe = #foo<PIPE_V); {CPP} >}} : () -> ()'),
    "attribute: a predicate": program(f'%x = "arith.cmpi"(%c0, %c1) {{predicate = "{_ESCAPED_CPP}"}} : (index, index) -> i1'),
    "attribute: a number of many digits": program(attributes=f"attributes {{x.y = {'9' * 5000}}}"),
    "attribute: a hexadecimal number": program(attributes=f"attributes {{x.y = 0x{'F' * 5000} : i64}}"),
    "attribute: dictionaries": program(attributes=f"attributes {{a = {'{a = ' * 3000}1{'}' * 3000}}}"),
    "attribute: lists": program(attributes=f"attributes {{a = {'[' * 3000}{']' * 3000}}}"),
    "attribute: a kind of kernel": program(attributes="attributes {pto.kernel_kind = {a = 1}}"),
    "attribute: a tail": program(attributes=f'attributes {{pto.auto_sync_tail_hint = "{_ESCAPED_CPP}"}}'),
    "attribute: a target": program(module=f'attributes {{pto.target_arch = "a3\\22; {_ESCAPED_CPP}"}}'),
    "attribute: a key": program(attributes=f'attributes {{"x.{_ESCAPED_CPP}" = 1}}'),
    "attribute: no key": program(module='attributes {"" = "pwned"}'),
    "attribute: a comment in an opaque one": program(attributes="attributes {x.y = dense<// pwned\n 1> : vector<1xi16>}"),
    "attribute: a large constant": program("%x = arith.constant dense<0> : vector<99999999999xi16>"),
    "attribute: offsets of a window": program(
        '%m = memref.alloc() : memref<4xf32>\n    %v = "memref.subview"(%m) {operandSegmentSizes = array<i32: 1, 0, 0, 0>, '
        'static_offsets = ["pwned"], static_sizes = array<i64: 1>, static_strides = array<i64: 1>} '
        ": (memref<4xf32>) -> memref<1xf32>"),
    # -- types
    "type: a foreign one": program(head=f'func.func private @f(!foo.bar<"); {_ESCAPED_CPP}">)'),
    "type: C++ in a tile": program(f"%t = pto.alloc_tile : !pto.tile_buf<vec, 16x16xf32, blayout=x>(); {CPP} //>"),
    "type: signs in strides": program(loaded("memref<4x4xf32, strided<[--5, 1], offset: ?>, #pto.address_space<vec>>")),
    "type: strides of another rank": program(loaded("memref<4x4xf32, strided<[1]>, #pto.address_space<vec>>")),
    "type: strides far apart": program(loaded(f"memref<4x4xf32, strided<[{2**62}, -{2**62}], offset: {2**62}>, #pto.address_space<vec>>")),
    "type: strides of many digits": program(loaded(f"memref<4x4xf32, strided<[{'9' * 5000}, 1]>, #pto.address_space<vec>>")),
    "type: a map as the layout": program(loaded("memref<4x4xf32, affine_map<(d0, d1) -> (d1, d0 floordiv 0)>, #pto.address_space<vec>>")),
    "type: a tensor instead of a tile": program("%t = pto.alloc_tile : tensor<?x160xi128>"),
    "type: a large tile": program("%t = pto.alloc_tile : !pto.tile_buf<vec, 999999999999x999999999999xf32>"),
    "type: an empty tile": program("%t = pto.alloc_tile : !pto.tile_buf<vec, 0x0xf32>"),
    "type: many dimensions": program(head=f"func.func private @f(!pto.tensor_view<{'1x' * 5000}f32>)"),
    "type: nested": program(head=f"func.func private @f({'tuple<' * 3000}i1{'>' * 3000})"),
    "type: functions of functions": program(head=f"func.func private @f({'(' * 3000}{')' * 3000})"),
    "type: many bits": program(f"%x = arith.constant {'9' * 3000} : i9999999"),
    "type: many events": program("%e = pto.declare_eventid_array : !pto.eventid_array<999999999>"),
    "type: a large array": program("%a = pto.declare_local_array -> !pto.local_array<99999x99999xi64>"),
    "type: an alias of itself": "!a = !a\n" + program(head="func.func private @f(!a)"),
    # -- counts
    "count: regions": program("scf.if %t {\n" * 300 + "}\n" * 300),
    "count: results": program("%x:999999999 = func.call @k(%out) : (!pto.ptr<i64>) -> ()"),
    "count: segments": program('%t = "pto.alloc_tile"() {operandSegmentSizes = array<i32: 9, -9, 0>} : () -> !pto.tile_buf<vec, 16x16xf32>'),
    "count: cases": program('"scf.index_switch"(%c0) ({\n scf.yield\n}) {cases = array<i64: 1, 2, 3>} : (index) -> ()'),
}  # fmt: skip

#: The same kernel in the other two forms, with text of an attacker where the first form has none.
OTHER_FORMS: dict[str, str] = {
    "asm: a map": f".const %c1 = affine_map<(d0={PYTHON}) -> (d0)> : index\n",
    "asm: a directive": f'.kernel "{_ESCAPED_CPP}"\n.arg %a : !pto.ptr<i64>\n',
    "asm: a function": f'.func @"{_ESCAPED_CPP}"\n.arg %out : !pto.ptr<i64>\n',
    "generic: a map": f"""\
"builtin.module"() ({{
  "func.func"() ({{
  ^bb0(%out: !pto.ptr<i64>):
    %c = "arith.constant"() {{value = 1 : index}} : () -> index
    %x = "affine.apply"(%c) {{map = affine_map<(d0={PYTHON}) -> (d0)>}} : (index) -> index
    "func.return"() : () -> ()
  }}) {{sym_name = "k", function_type = (!pto.ptr<i64>) -> ()}} : () -> ()
}}) : () -> ()
""",
    "generic: properties": f"""\
"builtin.module"() ({{
  "func.func"() <{{sym_name = "{_ESCAPED_CPP}", function_type = (!pto.ptr<i64>) -> ()}}> ({{
  ^bb0(%out: !pto.ptr<i64>):
    "func.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
""",
}

#: Names of files with a harmless program in them.
PATHS = (
    "$(touch pwned).pto", "k;touch pwned;.pto", "`touch pwned`.pto", "-o pwned.pto", 'k".pto', "k\n#error pwned\n.pto",
    "k\\.pto", "%n%s.pto", "k\x1b]0;pwned\x07.pto",
)  # fmt: skip

#: What an image calls, in the C++ that is its name.
CALLS = (
    f'int64_t& a0; {CPP}',
    f'int64_t& a0; a0 = 7; __builtin_{CPP}',
    'int64_t& a0; }} static int x = system("touch pwned"); void f() {{',
    'std::remove_reference_t<decltype(system("touch pwned"))>& a0; a0 = 1;',
    'OpenTile<decltype(system("touch pwned"))>& a0; TADD(a0, a0, a0);',
)  # fmt: skip
