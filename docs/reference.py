"""Reference tables and pages that people filter and search: instructions, operators with examples,
enumerations, options, environment variables, and the public names of the package.

    options_page(helps)  the page of options and variables
    api_page()           the page of public names
    instructions(rows)   the table of isa/index.md
    operators()          the table of language-operators.md
"""

from __future__ import annotations

import ast
import contextlib
import enum
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from markup import anchor, code, filtered, table, text

import pto
import pto.language as pl
from pto.isa.dtypes import DTYPES
from pto.isa.profiles import PROFILES
from pto.isa.row import Row
from pto.knobs import KNOBS
from pto.language import catalogue
from pto.language.operators import Namespace, Operator

ROOT = Path(__file__).parents[1]


# ----------------------------------------------------------------------------------------------- instructions


def element_types(row: Row) -> list[str]:
    """Return every element type that an operand of an instruction can have, in any column."""
    found = {d for of in row.dtypes.values() for d in of}
    found |= {d for c in row.combos for legal in c.legal.values() for combo in legal for d in combo}
    return [d for d in DTYPES if d in found]


def pipes(row: Row) -> list[str]:
    """Return the pipes that an instruction can run on."""
    cases = [row.pipe] if isinstance(row.pipe, str) else [pipe for _, pipe in row.pipe]
    return [pipe for pipe in dict.fromkeys(cases) if pipe]


def instructions(rows: Iterable[Row]) -> str:
    head = ("name", "effect", "set", "family", "pipe", "profiles", "element types")
    lines = (
        (
            f"[{text(r.name)}]({r.name}.md)",
            text(r.doc),
            r.set,
            r.family,
            " ".join(p if p.isupper() else "operand" for p in pipes(r)),
            " ".join(p.name for p in PROFILES.values() if p.isa in r.isas),
            " ".join(element_types(r)),
        )
        for r in sorted(rows, key=lambda r: r.name)
    )
    return filtered(head, lines, ("set", "family", "pipe", "profiles", "element types"))


# -------------------------------------------------------------------------------------------------- operators


@cache
def calls() -> dict[str, str]:
    """Return the shortest call of each operator in the examples, the pages and the tests, which all run."""
    found: dict[str, str] = {}
    for source in _sources():
        for name, shown in _calls_of(source):
            if name not in found or (len(shown), shown) < (len(found[name]), found[name]):
                found[name] = shown
    return found


@cache
def _sources() -> tuple[ast.AST, ...]:
    """Return the parts of programs that run without an error: tests of errors are left out."""
    found: list[ast.AST] = []
    for folder in ("examples/python", "tests/language", "tests/runtime", "tests/proof"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name in ("test_problems.py", "test_said.py"):
                continue
            for part in ast.parse(path.read_text(encoding="utf-8")).body:
                if re.search(r"raises\(|PTO-E|problem", ast.unparse(part)):
                    continue
                found.append(part)
                for node in ast.walk(part):  # programs in strings
                    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "(" in node.value:
                        found += _parsed(node.value)
    for path in sorted((ROOT / "docs").glob("*.md")):
        for block in re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S):
            found += _parsed(block)
    return tuple(found)


def _parsed(program: str) -> Iterator[ast.AST]:
    with contextlib.suppress(SyntaxError, ValueError):
        yield ast.parse(inspect.cleandoc(program))


def _calls_of(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield operators and their calls, with the names that results are assigned to."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and isinstance(node.targets[0], ast.Name)
        ):
            yield _dotted(node.value.func), ast.unparse(node)
        elif isinstance(node, ast.Call):
            yield _dotted(node.func), ast.unparse(node)


@cache
def templates() -> list[tuple[re.Pattern[str], str]]:
    """Return the calls of tests that are written once for several operators, as `pl.row_{n}(f)`: the names
    that they stand for, and the arguments."""
    found: list[tuple[re.Pattern[str], str]] = []
    for tree in _sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    v.value if isinstance(v, ast.Constant) else f"{{{ast.unparse(v.value)}}}"
                    for v in node.values
                ]
                call = re.fullmatch(
                    r"(pl\.[\w.{}]+)(\([^(){}]*(?:\{\w+\})?[^(){}]*\))", "".join(map(str, parts))
                )
                if call and "{" in call[1]:
                    name = re.sub(r"\\\{\w+\\\}", "[a-z]+", re.escape(call[1]))
                    found.append((re.compile(name), re.sub(r"[{}]", "", call[2])))
    return found


def _dotted(function: ast.expr) -> str:
    name = ast.unparse(function)
    return name if re.fullmatch(r"pld?(\.\w+)+|v\w+", name) else ""


def operator_name(entry: catalogue.Entry) -> str:
    return entry.call.partition("(")[0]


def example(entry: catalogue.Entry) -> str:
    """Return a call of an operator, or of the same operator in the namespace of a level."""
    name = operator_name(entry)
    prefix, _, last = name.rpartition(".")
    levels = {"pl": ("pl.tensor", "pl.tile"), "pl.tile": ("pl",), "pl.tensor": ("pl", "pl.tile")}
    found = calls()
    for each in (name, *(f"{p}.{last}" for p in levels.get(prefix, ()))):
        if each in found:
            return found[each]
    if prefix == "pl.micro" and last in found:  # tests of vector operators leave the prefix out
        return f"{prefix}.{found[last]}"
    return next((name + words for pattern, words in templates() if pattern.fullmatch(name)), "")


def operators() -> str:
    """Return the operators of the Python language, and the enumerations that they take."""
    head = ("operator", "what it does", "example", "family", "instruction", "targets")
    lines = [
        (
            anchor(operator_name(o)) + code(o.call),
            text(o.doc),
            code(example(o)) if example(o) else "",
            title,
            " ".join(f"[{code(r.name)}](isa/{r.name}.md)" for r in o.rows),
            " ".join(o.targets),
        )
        for title, entries in catalogue.families().items()
        for o in entries
    ]
    named = sorted(enumerations().items())
    rows = [
        (
            anchor(f"pl.{name}") + code(f"pl.{name}"),
            text(" ".join((kind.__doc__ or "").split())),
            " ".join(code(v) for v in kind.__members__),
        )
        for name, kind in named
    ]
    return "\n".join(
        (
            "## All operators",
            "",
            filtered(head, lines, ("family", "targets")),
            "",
            "Examples are calls of the pages, the examples and the tests.",
            "",
            "## Enumerations",
            "",
            "A member is written with its enumeration, as in `pl.PadValue.zero`.",
            "",
            table(("enumeration", "meaning", "members"), rows),
            "",
            "## Element types",
            "",
            table(
                ("name", "element type of the instruction table"),
                ((anchor(f"pl.{n}") + code(f"pl.{n}"), code(d)) for n, d in element_names().items()),
            ),
        )
    )


def enumerations() -> dict[str, type[enum.Enum]]:
    """Return the enumerations of `pl` by their public names."""
    return {
        n: v for n, v in vars(pl).items() if inspect.isclass(v) and issubclass(v, enum.Enum) and n != "Mem"
    }


def element_names() -> dict[str, str]:
    """Return the element types of `pl` with their names in the instruction table."""
    return {n: v.isa for n, v in vars(pl).items() if isinstance(v, pl.DataType)}


# ---------------------------------------------------------------------------------------------------- options

_OPTION = re.compile(r"^  (--?[a-zA-Z].*?)(?:  +(\S.*))?$")


def option_names(spelled: str) -> list[str]:
    """Return the names in the spelling of an option: `-j N, --jobs N` has two."""
    return re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", spelled)


def options(help_text: str) -> Iterator[tuple[str, str]]:
    """Yield the spelling and the description of each option in the help of a tool."""
    spelled, words = "", []
    for line in [*help_text.partition("\nexamples:")[0].splitlines(), ""]:
        start = _OPTION.match(line)
        if (start or not line.startswith("      ")) and spelled:
            yield spelled, " ".join(words)
            spelled, words = "", []
        if start:
            spelled, words = start[1], [start[2]] if start[2] else []
        elif spelled:
            words.append(line.strip())


def every_option(helps: dict[str, str]) -> dict[str, list[tuple[str, str, str]]]:
    """Return each option by name: its tools, its spelling and its description there."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for tool, help_text in helps.items():
        for spelled, words in options(help_text):
            names = option_names(spelled)
            name = next((n for n in names if n.startswith("--")), names[0])
            if name != "--help":
                found.setdefault(name, []).append((tool, spelled, words))
    return dict(sorted(found.items()))


def options_page(helps: dict[str, str]) -> str:
    lines: list[tuple[str, str, str]] = []
    for name, uses in every_option(helps).items():
        tools: dict[tuple[str, str], list[str]] = {}
        for tool, spelled, words in uses:
            tools.setdefault((spelled, words), []).append(tool)
        for n, ((spelled, words), of) in enumerate(tools.items()):
            links = " ".join(f"[{code(tool)}](tools.md#{tool.replace(' ', '-')})" for tool in of)
            lines.append(((anchor(name) if n == 0 else "") + code(spelled), text(words), links))
    knobs = [
        (
            anchor(k.name) + code(k.name),
            text(k.doc),
            code(k.default) if k.default else "-",
            " ".join(map(code, k.choices)),
        )
        for k in KNOBS.values()
    ]
    return "\n".join([
        "# Options and variables", "",
        "This page lists every option of every command, and the environment variables. [Tools](tools.md) has "
        "the help of each command.", "",
        filtered(("option", "effect", "command"), lines, ("command",)), "",
        "## Environment variables", "",
        table(("variable", "meaning", "default", "values"), knobs), "",
    ])  # fmt: skip


# -------------------------------------------------------------------------------------------- public names


def public_names() -> dict[str, Any]:
    """Return the documented names of the package, except the operators of the language."""
    found: dict[str, Any] = {f"pto.{n}": getattr(pto, n) for n in pto.__all__ if not n.startswith("_")}
    for module in (pto.runtime, pto.tune):
        found |= {f"{module.__name__}.{n}": getattr(module, n) for n in module.__all__}
    return dict(sorted(found.items())) | {f"pl.{n}": v for n, v in sorted(language_names().items())}


def api_page() -> str:
    """Return the public names of `pto`, and those of `pl` that are no operators, from their docstrings."""
    out = [
        "# Python interface", "",
        "This page lists the public names of the package, from their docstrings. The operators of "
        "`pto.language` have [a page of their own](language-operators.md).", "",
    ]  # fmt: skip
    module = ""
    for name, value in public_names().items():
        of = name.rpartition(".")[0]
        if of != module:
            module = of
            out += [f"## {'pto.language (pl)' if of == 'pl' else of}", ""]
        out += _described(name, value)
    return "\n".join(out)


def language_names() -> dict[str, Any]:
    """Return the documented names of `pl` that are neither operators, enumerations nor element types."""
    found = {n: getattr(pl, n) for n in dir(pl)}
    others = (Operator, Namespace, pl.DataType, enum.Enum)
    return {
        n: v
        for n, v in found.items()
        if not isinstance(v, others) and n not in (*enumerations(), "Mem") and callable(v) and _doc(v)
    }


def _doc(value: Any) -> str:
    """Return the docstring of a class, a function or a module; else that of its class."""
    own = inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)
    return inspect.getdoc(value if own else type(value)) or ""


def _described(full: str, value: Any) -> list[str]:
    out = [f"### {text(full)} {{#{full}}}", ""]
    if callable(value) and not isinstance(value, ModuleType):
        out += ["```python", f"{full}{_signature(value)}", "```", ""]
    out += _paragraphs(_doc(value))
    if inspect.isclass(value):
        members = [
            (n, v)
            for n, v in vars(value).items()
            if not n.startswith("_")
            and (isinstance(v, property) or inspect.isroutine(v))
            and inspect.getdoc(v)
        ]
        rows = (
            (
                code(n + ("" if isinstance(v, property) else _signature(v))),
                text((inspect.getdoc(v) or "").split("\n\n")[0].replace("\n", " ")),
            )
            for n, v in members
        )
        out += [table(("member", "meaning"), rows), ""] if members else []
    return out


def _signature(value: Any) -> str:
    try:
        return str(inspect.signature(value)).replace("'", "")
    except (TypeError, ValueError):
        return "(...)"


def _paragraphs(doc: str) -> list[str]:
    """Return a docstring as Markdown; indented lines are code."""
    out: list[str] = []
    for part in doc.split("\n\n"):
        if any(line.startswith("    ") for line in part.splitlines()):
            plain = [line for line in part.splitlines() if not line.startswith("    ")]
            out += [text(" ".join(plain)), ""] if plain else []
            out += [
                "```text",
                *(line[4:] for line in part.splitlines() if line.startswith("    ")),
                "```",
                "",
            ]
        else:
            out += [text(" ".join(part.split())), ""]
    return out
