"""Ways to spoil a document of values: JSON, lines of JSON, TOML, CSV, and templates with expressions.

A value becomes one of another type, of another size or of another shape, in a document that is otherwise right.
Pure functions of a `Random`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from . import fragments
from .binary import damaged
from .mutations import MUTATIONS

_TEXT = tuple(
    MUTATIONS[name]
    for name in ("flip_byte", "truncate", "delete", "duplicate", "swap", "number", "unicode", "lines")
)
_DEEP = 100_000


def _odd(r: Random) -> Any:
    """A value that no document of ours has at that place."""
    return r.choice((
        None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**30, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"),
        -float("inf"), "", "x", "0", "nan", "1e9", "aic", [], {}, [[]], {"": {}}, [1, "a", None], {"1": 1}, "\ud800", "\0", "x" * 10000,
        list(range(300)), {str(n): n for n in range(50)}, r.choice(fragments.CODE), r.choice(fragments.PATHS), r.randrange(1000),
    ))  # fmt: skip


def _changed(value: Any, r: Random) -> Any:
    """The value with one place of it changed, chosen at any depth."""
    if isinstance(value, dict) and value and r.random() < 0.9:
        out = dict(value)
        key = r.choice(list(out))
        act = r.randrange(8)
        if act == 0:
            del out[key]
        elif act == 1:
            other = r.choice(("", "x", "version", "format", "-1", "1e9", *out))
            out[other] = out.pop(key)
        elif act == 2:
            out[r.choice(("more", "0", key + " "))] = _odd(r)
        else:
            out[key] = _changed(out[key], r)
        return out
    if isinstance(value, list) and value and r.random() < 0.9:
        out = list(value)
        at = r.randrange(len(out))
        act = r.randrange(8)
        if act == 0:
            del out[at]
        elif act == 1:
            out.insert(at, r.choice(out))
        elif act == 2:
            out *= 3
        else:
            out[at] = _changed(out[at], r)
        return out
    return _odd(r)


def _nested(r: Random) -> bytes:
    """Return a document of pure nesting."""
    opening, closing = r.choice((("[", "]"), ('{"a":', "}"), ('{"otherData":', "}")))
    depth = r.choice((50, 990, 1100, _DEEP))
    return (opening * depth + "0" + closing * (depth if r.random() < 0.5 else 0)).encode()


def _dumped(value: Any, r: Random) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=r.random() < 0.7).encode("utf-8", "surrogatepass")
    except ValueError:  # an integer with more digits than Python prints
        return b"1" * 6000


def json_document(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    kind = r.random()
    if kind < 0.03:
        return _nested(r)
    if kind < 0.15:
        return damaged(data, r, others)
    if kind < 0.25:
        return r.choice(_TEXT)(data, r)
    value = json.loads(data)
    for _ in range(r.choice((1, 1, 1, 2, 4))):
        value = _changed(value, r)
    made = _dumped(value, r)
    return made.replace(b"Infinity", b"1e999") if r.random() < 0.1 else made


def json_lines(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    lines = data.splitlines()
    for at in r.sample(range(len(lines)), k=min(len(lines), r.choice((1, 1, 2)))):
        lines[at] = json_document(lines[at], r, others)
    return b"\n".join(lines) + r.choice((b"\n", b""))


_TOML = (
    "true", "false", "nan", "inf", "-inf", "-1", "0", "1e400", "0x10", "1979-05-27", "07:32:00", "'x'", '"a2a3"', "[]", "[1, 2]", "{}",
    "{ a = 1 }", "{ cycles = 3 }", "{ us = -1 }", "{ cycles = { us = 1 } }", "[[]]", "1" * 400, "1" * 6000, "1_000", "0.0", "'''", '"\\u0000"', "",
    '["a2a3"]', "[" * 400, "[" * _DEEP, "{a=" * 300, "9223372036854775808", "1e308", "1e15", "1e12",
)  # fmt: skip


def toml(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    if r.random() < 0.2:
        return r.choice((*_TEXT, damaged))(data, r)
    lines = data.decode().splitlines()
    for _ in range(r.choice((1, 1, 2))):
        at = r.randrange(len(lines) or 1)
        key, _, value = lines[at].partition(" = ") if lines else ("x", "=", "1")
        act = r.randrange(8)
        if act == 0:
            lines.insert(
                at,
                r.choice(
                    (
                        "[runtime]",
                        "[durations]",
                        "[mhz]",
                        "[[runtime]]",
                        "[a.b]",
                        "machine.x = 1",
                        "machine = ['a']",
                        "runtime = 1",
                    )
                ),
            )
        elif act == 1:
            lines.insert(r.randrange(len(lines) + 1), lines[at])
        elif act == 2:
            key = r.choice(
                ("x", "machine", "mhz", "clock_mhz", "'a b'", '"\\u0000"', "a.b", "completion", "1")
            )
            lines[at : at + 1] = [f"{key} = {value or 1}"]
        elif act == 3:
            del lines[at : at + 1]
        else:
            lines[at : at + 1] = [f"{key} = {r.choice(_TOML)}"]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


_CELLS = (
    "", "0", "-1", "nan", "inf", "1e308", "1e400", "9" * 400, "9" * 5000, "x", '"', '""', "\0", "é", "a=b", "src0=f32:0x0@vec", "src0=f99:1@gm",
    "src0=f32:99999999999999x99999999999@vec", "src0=f32:1x1x1x1x1x1@gm dst=f32:1@nowhere", "tadd", "tmatmul", "tload", "trowsum", "@/dev/zero",
    "f32:4x4", "f32:99999x99999", "f32:0", "1", "12x12", "../../pwned.pto", "/dev/zero", "a" * 200_000, ",,,,", "\r", "#", "  #", "1_0", "０１", "1e-400",
)  # fmt: skip


def csv(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    if r.random() < 0.2:
        return r.choice((*_TEXT, damaged))(data, r)
    rows = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(r.choice((1, 1, 2))):
        row = rows[r.randrange(len(rows))] if rows else []
        act = r.randrange(6)
        if act == 0:
            rows.append(list(row))
        elif act == 1 and row:
            del row[r.randrange(len(row))]
        elif act == 2:
            row.insert(r.randrange(len(row) + 1), r.choice(_CELLS))
        elif row:
            row[r.randrange(len(row))] = r.choice(_CELLS)
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass") + b"\n"


_TERMS = (
    "ROWS", "COLS", "x", "1", "0", "-1", "3.5", "1e308", "1e400", "10**9", "1 << 99999999999", "1 << 200", "'a' * 999999999999", "'%999999999d' % 1",
    "'a'", "9" * 5000, "min()", "max(1)", "min('a', 1)", "(" * 300, "-" * 3000 + "1", "not " * 2000 + "1", "[1]", "ROWS.real", "1 if 0 else 2", "1j", "b'a'",
    "None", "...", "True", "''", "f'{1}'", "lambda: 1", "1 // 0", "1 % 0", "1 / 3", "ROWS = 3", "x := 1", "1 < 2 < 3", "1 == 'a'", "1 < 'a'", "\0", "ＲＯＷＳ",
)  # fmt: skip


def expression(r: Random, depth: int = 2) -> str:
    """An expression over parameters, as `${...}` has it."""
    if depth == 0 or r.random() < 0.4:
        return r.choice((*_TERMS, *fragments.CODE)) if r.random() < 0.7 else r.choice(("ROWS", "2", "64"))
    a, b = expression(r, depth - 1), expression(r, depth - 1)
    return r.choice(
        (
            f"({a}) {r.choice(('+', '-', '*', '/', '//', '%', '<<', '>>', '<', 'and', '**'))} ({b})",
            f"max({a}, {b})",
            f"{a} if {b} else 1",
        )
    )


def template(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    """A program with expressions where it has numbers."""
    parts = data.split(b"${")
    for _ in range(r.choice((1, 1, 2))):
        at = r.randrange(len(parts))
        name = r.choice(("", "", "ROWS=", "x=", "COLS = ", "a b=", "1="))
        parts[at] += f"${{{name}{expression(r)}}}".encode("utf-8", "surrogatepass")
    return b"${".join(parts)


def framed(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    """Messages with headers, of the Debug Adapter Protocol."""
    if r.random() < 0.3:
        return damaged(data, r, others)
    out = b""
    for _ in range(r.randrange(1, 4)):
        body = json_document(b'{"seq": 1, "type": "request", "command": "initialize", "arguments": {}}', r)
        size: object = len(body)
        if r.random() < 0.4:
            size = r.choice(
                (
                    0,
                    -1,
                    len(body) + 1,
                    1 << 24,
                    10**11,
                    "",
                    "²",
                    "٣",
                    "1e3",
                    " 5 ",
                    "0x10",
                    "1_0",
                    "x" * 20000,
                )
            )
        head = r.choice(
            (
                "Content-Length: {}",
                "content-length:{}",
                "Content-Length {}",
                "X: y\r\nContent-Length: {}",
                "{}",
                ": {}",
            )
        )
        out += (head.format(size) + r.choice(("\r\n\r\n", "\n\n", "\r\n", "\r\n\r\n\r\n"))).encode(
            "latin-1", "replace"
        ) + body
    return out
