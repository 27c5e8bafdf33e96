"""Example programs of instructions that structure a program and need other instructions around them."""

from __future__ import annotations


def _in_function(body: str, arguments: str = "") -> str:
    return f"func.func @example({arguments}) {{\n{body}\n  return\n}}\n"


_WHILE = _in_function(
    """\
  %r = scf.while (%x = %init) : (i32) -> i32 {
    scf.condition(%go) %x : i32
  } do {
  ^bb0(%y: i32):
    scf.yield %y : i32
  }""",
    "%init: i32, %go: i1",
)
_EXECUTE = _in_function(
    """\
  %r = scf.execute_region -> i32 {
    scf.yield %x : i32
  }""",
    "%x: i32",
)
_CALL = """\
func.func private @f(%x: i32) -> i32 {
  return %x : i32
}
func.func @example(%x: i32) attributes {pto.entry} {
  %r = func.call @f(%x) : (i32) -> i32
  return
}
"""

#: By name of the row.
PROGRAMS: dict[str, str] = {
    "scf.if": _in_function("  scf.if %c {\n  } else {\n  }", "%c: i1"),
    "scf.while": _WHILE,
    "scf.condition": _WHILE,
    "scf.execute_region": _EXECUTE,
    "scf.yield": _EXECUTE,
    "scf.index_switch": _in_function("""\
  scf.index_switch %i
  case 0 {
    scf.yield
  }
  default {
  }""", "%i: index"),
    "cf.br": _in_function("  cf.br ^next(%x : i32)\n^next(%y: i32):", "%x: i32"),
    "cf.cond_br": _in_function(
        "  cf.cond_br %c, ^next(%x : i32), ^next(%x : i32)\n^next(%y: i32):", "%c: i1, %x: i32"
    ),
    "cf.switch": _in_function("""\
  cf.switch %flag : i32, [
    default: ^next(%x : i32),
    1: ^next(%x : i32)
  ]
^next(%y: i32):""", "%flag: i32, %x: i32"),
    "func.func": _in_function("", ""),
    "func.call": _CALL,
    "func.return": _CALL,
    "builtin.module": "module {\n}\n",
}  # fmt: skip
