"""Pages and page parts made from the instruction table, the profiles and the error catalogue.

    instruction_pages()   {"isa/tadd.md": markdown, ...}, with an index and one page per instruction set
    error_pages()         {"errors/sa.md": markdown, ...}, with an index
    reference_pages()     {"options.md": markdown, "api.md": markdown}
    PARTS                 the text for a marker line `<!-- generate: NAME -->` of a written page

This module does not need mkdocs, and its output is not kept in the repository.
"""

from __future__ import annotations

import html
import inspect
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import drawings
import floors
import reference
import tiles
from markup import anchor, code, fence, table, text

from pto import isa
from pto.engine.reference.semantics import Semantics
from pto.engine.registry import ENGINES, INPUTS
from pto.engine.sanitize import SANITIZERS
from pto.isa import describe, meaning
from pto.isa.algorithms import ALGORITHMS, kind_of
from pto.isa.dtypes import DTYPES
from pto.isa.enums import ENUMS
from pto.isa.errors import CATALOGUE
from pto.isa.profiles import LOCATIONS, PROFILES
from pto.isa.row import OVER, STARTS, STORES, Row
from pto.runtime.overheads import OVERHEADS

#: Instruction sets in the order of the index, with a description.
SETS: dict[str, str] = {
    "tile": "Tile instructions: the unit of work is a tile in an on-chip buffer.",
    "vector": "Vector registers: 256 bytes each, inside a `vecscope`.",
    "predicate": "Masks of vector registers.",
    "cube": "Micro-operations of the cube core.",
    "micro": "Pointers, scopes, alignment and queries for code below the tile level.",
    "scalar": "Scalar arithmetic, control flow, synchronization and DMA.",
    "comm": "Communication between ranks.",
    "system": "Sections, FIFOs between cores, scheduling and debugging.",
    "ptoas": "Operations of the assembler itself.",
}

_COMBOS_IN_FULL = 24  # longer lists of element type combinations are grouped by their first operand


_CODE = re.compile(r"\b(?:PTO-E|[A-Z]{1,2}-?)\d{3,4}\b")


def linked(value: str) -> str:
    """Text of an instruction page, its diagnostic codes as links to their entries."""

    def link(m: re.Match[str]) -> str:
        return f"[{m[0]}](../{error_page(m[0])}#{m[0].lower()})" if m[0] in CATALOGUE else m[0]

    return _CODE.sub(link, text(value))


# ----------------------------------------------------------------------------------------- instruction pages


def page_name(row: Row) -> str:
    return f"isa/{row.name}.md"


def example_isa(row: Row) -> str:
    """The legality column an example is written for: A2/A3 where it exists there."""
    return next(i for i in ("a2a3", "a5", "cpu") if i in row.isas)


def examples(row: Row) -> dict[str, str]:
    """A smallest legal program with the instruction, by text form; identical forms are given once."""
    from pto.witness import example_text

    found: dict[str, str] = {}
    for form in describe.FORMS:
        shown = example_text(row, example_isa(row), form).rstrip()
        if shown not in found.values():
            found[form] = shown
    return found


def instruction_pages() -> dict[str, str]:
    rows = isa.rows()
    pages = {page_name(r): instruction_page(r) for r in rows}
    by_set: defaultdict[str, list[Row]] = defaultdict(list)
    for r in rows:
        by_set[r.set].append(r)
    names = [*(s for s in SETS if s in by_set), *(s for s in by_set if s not in SETS)]
    pages |= {f"isa/set-{name}.md": _set_page(name, by_set[name]) for name in names}
    pages["isa/meaning.md"] = _meaning_page(rows)
    pages["isa/index.md"] = _isa_index(names, by_set)
    pages["isa/drawings.md"] = _drawings_page()
    return pages


def instruction_page(row: Row) -> str:
    page = describe.page(row)
    family = f"[{text(row.family)}](set-{row.set}.md#{_slug(row.family)})"
    out = [
        f"# {text(page.name)}", "",
        f"[Instructions](index.md) / [{row.set}](set-{row.set}.md) / {family}", "",
        text(page.doc), "", "## Syntax", "", *_syntax(page), "## Facts", "",
        table(("fact", "value"), ((label, _fact(label, value)) for label, value in page.facts)), "",
    ]  # fmt: skip
    for section in page.sections:
        out += [f"## {section.title}", "", *_section(row, section)]
        if section.title == "Meaning" and row.name in tiles.DRAWN:
            out += [tiles.drawing(row.name), ""]
    out += ["## Example", "", *_examples(row)]
    return "\n".join(out)


def _syntax(page: describe.Page) -> list[str]:
    """One block per form; a form that equals the canonical one only says so."""
    out: list[str] = []
    same: list[str] = []
    for form, lines in page.syntax.items():
        if form != "pto" and lines == page.syntax["pto"]:
            same.append(form)
        else:
            out += [fence(lines, "mlir", f"{form}: {describe.FORMS[form]}"), ""]
    if same:
        out += [f"The {' and '.join(same)} form{'s have' if len(same) > 1 else ' has'} the same text.", ""]
    return out


def _fact(label: str, value: str) -> str:
    if label == "C++" and not value.startswith("none"):
        return "<br>".join(code(part) for part in value.split(" | "))
    if label == "algorithm":
        return f"{text(value)} [All of them](meaning.md#algorithms)"
    return code(value) if label in ("bytecode", "aliases") else text(value)


def _section(row: Row, section: describe.Section) -> list[str]:
    out: list[str] = []
    if section.title == "Meaning":
        out += _meaning(section.text[0])
    elif section.title == "Notes":
        out += [*(f"- {linked(note)}" for note in section.text), ""]
    else:
        out += [line for paragraph in section.text for line in (linked(paragraph), "")]
    if section.table is None:
        return out
    head, rows = section.table.head, section.table.rows
    if section.title == "Element type combinations" and len(rows) > _COMBOS_IN_FULL:
        head, rows = _grouped(head, rows)
    first_is_code = section.title in ("Operands", "Results", "Attributes")
    lines = ([code(c) if first_is_code and not i else linked(c) for i, c in enumerate(r)] for r in rows)
    return [*out, table([text(h) for h in head], lines), ""]


def _meaning(meaning: str) -> list[str]:
    lines = meaning.split("\n")
    if len(lines) == 1 and len(meaning) <= 100 and not meaning.endswith("."):
        return [fence(lines), ""]
    return [line for part in lines for line in (linked(part), "")]


def _grouped(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Group a long combination table by its first operand, with the other operands per column."""
    isas = head[-3:]
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        cells = found.setdefault(row[0], {i: [] for i in isas})
        for name, legal in zip(isas, row[-3:], strict=True):
            if legal == "yes":
                cells[name].append("/".join(row[1:-3]))
    others = "/".join(head[1:-3])
    return (head[0], *(f"{others} on {i}" for i in isas)), tuple(
        (first, *(" ".join(cells[i]) or "-" for i in isas)) for first, cells in found.items()
    )


def _examples(row: Row) -> list[str]:
    out: list[str] = []
    for form, program in examples(row).items():
        out += [fence(program.split("\n"), "mlir", f"{form}, legal on {example_isa(row)}"), ""]
    return out


def _slug(value: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")


def _set_page(name: str, rows: Sequence[Row]) -> str:
    families: defaultdict[str, list[Row]] = defaultdict(list)
    for r in rows:
        families[r.family].append(r)
    out = [
        f"# {name.capitalize()} instructions",
        "",
        f"[Instructions](index.md) / {name}",
        "",
        SETS.get(name, ""),
        "",
    ]
    for family, members in families.items():
        lines = ((f"[{text(r.name)}]({r.name}.md)", text(r.doc), " ".join(r.isas)) for r in members)
        out += [
            f"## {text(family)} {{#{_slug(family)}}}",
            "",
            table(("name", "effect", "legality columns"), lines),
            "",
        ]
    return "\n".join(out)


def _meaning_page(rows: Sequence[Row]) -> str:
    """The page of meanings: operations of expressions, their ranges, and the algorithms."""
    expressed = sum(bool(r.expr) for r in rows)
    out = [
        "# Meanings", "", "[Instructions](index.md) / meanings", "",
        f"{expressed} instructions compute an expression over their operands. The others have "
        "an algorithm, or only describe, order or structure.", "",
        "## Operations {#operations}", "",
        "All engines give the same bits. The largest error of a function is in units in the last place of "
        "an f32; 0.5 means correctly rounded.", "",
        table(("written", "name", "meaning", "result", "error"), _operations()), "",
        "## Decided by an attribute {#choices}", "",
        table(("function", "value", "of a and b"), _choices()), "",
    ]  # fmt: skip
    for title, what, words in (
        ("Range", "over", OVER), ("Start of a fold", "start", STARTS), ("Store", "store", STORES)
    ):  # fmt: skip
        lines = ((code(name) if name else "-", text(doc)) for name, doc in words.items())
        out += [f"## {title}", "", table((what, "meaning"), lines), ""]
    lines = _algorithms(rows)
    out += ["## Algorithms {#algorithms}", "", table(("algorithm", "meaning", "instructions"), lines), ""]
    return "\n".join(out)


def _operations() -> Iterable[Sequence[str]]:
    for o in meaning.OPERATIONS.values():
        args = [*"abc"[: o.arity]]
        call = f"{o.name}({', '.join(args)})"
        if o.sign:
            call = f" {o.sign} ".join(args) if o.arity == 2 else f"{o.sign}{args[0]}"
        error = str(o.error or "")
        yield code(call), o.name.replace("_", " "), text(o.doc), text(meaning.GIVES[o.gives]), error


def _choices() -> Iterable[Sequence[str]]:
    for function, values in meaning.CHOICES.items():
        for value, expression in values.items():
            yield code(function), code(value), code(expression)


def _algorithms(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    users: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        users[kind_of(row)[0]].append(row)
    for a in ALGORITHMS.values():
        links = " ".join(f"[{text(r.name)}]({r.name}.md)" for r in users[a.name])
        yield text(a.name), text(a.doc), links


def _drawings_page() -> str:
    """The page with the drawings of tile instructions, by family."""
    out = [
        "# Tile instructions in drawings", "", "[Instructions](index.md) / drawings", "",
        "Each drawing shows tiles before and after an instruction, computed by the reference engine. "
        "A color follows a row, a column or an element from the operands to the result. Zeros are grey, and "
        "hatched elements are not stored. [Micro level: reference](../micro-reference.md) draws the modes of "
        "vector instructions.", "",
    ]  # fmt: skip
    for family, names in tiles.families().items():
        out += [f"## {text(family)} {{#{_slug(family)}}}", ""]
        for name in names:
            out += [f"### {text(name)} {{#{name}}}", "", _drawn(name), tiles.drawing(name), ""]
    return "\n".join(out)


def _drawn(name: str) -> str:
    row = isa.row(name)
    assert row is not None
    return f"[{text(row.full_name)}]({name}.md): {text(row.doc)} Here {code(tiles.shown(name))}.\n"


def _isa_index(names: Sequence[str], by_set: dict[str, list[Row]]) -> str:
    total = sum(len(by_set[n]) for n in names)
    sets = ((f"[{n}](set-{n}.md)", str(len(by_set[n])), SETS.get(n, "")) for n in names)
    out = [
        "# Instructions", "",
        f"The instruction table has {total} instructions. Each has a page, generated from the table: syntax, "
        "operands, legality per profile, rules with their diagnostics, an example, the C++ spelling and the "
        "bytecode number. `pto isa NAME` shows the same in a terminal.", "",
        table(("set", "instructions", "content"), sets), "",
        "[Meanings](meaning.md) has the operations of the expressions, with their errors. "
        "[Drawings](drawings.md) show tile instructions of every family.", "",
    ]  # fmt: skip
    out += ["## All instructions {#all}", "", reference.instructions(isa.rows()), ""]
    return "\n".join(out)


# ------------------------------------------------------------------------------------------------ error pages

#: Code prefix -> page, title, description. The longest matching prefix counts.
ERROR_GROUPS: dict[str, tuple[str, str, str]] = {
    "PTO-E": ("pto", "PTO-E: our own codes", "Codes of the tools of this project."),
    "SA": (
        "sa",
        "SA: static assertions",
        "Documented ids of checks at compile time. Our diagnostics use the same codes.",
    ),
    "PA": ("pa", "PA: run-time assertions", "Checks on the device at run time."),
    "CA": ("ca", "CA: simulator assertions", "Checks of a CPU simulator."),
    "": ("general", "General codes", "Groups of the ISA manual: E, F, L, M, N, P and R."),
}


def _error_group(code_: str) -> tuple[str, str, str]:
    return ERROR_GROUPS[max((p for p in ERROR_GROUPS if code_.startswith(p)), key=len)]


def error_page(code_: str) -> str:
    return f"errors/{_error_group(code_)[0]}.md"


def raised_by() -> dict[str, list[Row]]:
    """Instructions whose rules name a code."""
    found: defaultdict[str, dict[str, Row]] = defaultdict(dict)
    for r in isa.rows():
        codes = {r.dtype_code, *(c.code for c in r.combos), *(rule.code for rule in r.rules)}
        for code_ in codes - {""}:
            found[code_][r.name] = r
    return {c: list(rows.values()) for c, rows in found.items()}


def error_pages() -> dict[str, str]:
    users = raised_by()
    out = {page: [f"# {title}", "", intro, ""] for page, title, intro in ERROR_GROUPS.values()}
    groups = (
        (f"[{title}]({page}.md)", str(sum(_error_group(c)[0] == page for c in CATALOGUE)), intro)
        for page, title, intro in ERROR_GROUPS.values()
    )
    codes = (
        (f"[{e.code}]({_error_group(e.code)[0]}.md#{e.code.lower()})", text(e.title))
        for e in CATALOGUE.values()
    )
    index = [
        "# Diagnostics", "",
        f"This page lists every code that a tool can print or a document mentions, {len(CATALOGUE)} in all. "
        "`pto explain CODE` shows an entry in a terminal.", "",
        table(("page", "codes", "content"), groups), "",
        table(("code", "title"), codes), "",
    ]  # fmt: skip
    for entry in CATALOGUE.values():
        lines = out[_error_group(entry.code)[0]]
        lines += [
            f"## {entry.code}: {text(entry.title)} {{#{entry.code.lower()}}}",
            "",
            text(entry.explain),
            "",
        ]
        lines += [f"**Fix:** {text(entry.fix)}", ""]
        if entry.code in users:
            links = ", ".join(f"[{text(r.name)}](../{page_name(r)})" for r in users[entry.code])
            lines += [f"Checked by {links}.", ""]
    return {
        "errors/index.md": "\n".join(index),
        **{f"errors/{p}.md": "\n".join(lines) for p, lines in out.items()},
    }


# ------------------------------------------------------------------------------------- parts of written pages


def _capacities() -> str:
    def size(n: int) -> str:
        return f"{n // 1024} KiB" if n else "-"

    head = ("location", "buffer", *PROFILES)
    lines = [
        (code(loc), buffer, *(size(p.capacity[loc]) for p in PROFILES.values()))
        for loc, buffer in LOCATIONS.items()
    ]
    return table(head, lines)


def _sanitizers() -> str:
    rows = (f"| [{s.name}](#{s.name}) | {text(s.finds)} | {s.cost} |" for s in SANITIZERS)
    return "\n".join(["| sanitizer | finds | time, relative to a plain run |", "| --- | --- | --- |", *rows])


def _debugger() -> str:
    """Commands of the prompt, from its help."""
    from pto.engine.debug.commands import COMMANDS

    lines = [
        (code(f"{c.name} {c.usage}".strip()), " ".join(map(code, c.names[1:])), text(c.doc)) for c in COMMANDS
    ]
    return table(("command", "short", "effect"), lines)


def _profiles() -> str:
    lines = (
        (code(p.name), " ".join(map(code, p.aliases)) or "-", p.title, code(p.isa), f"{p.align} bytes",
         code(p.left_blayout), str(p.max_rows))
        for p in PROFILES.values()
    )  # fmt: skip
    head = (
        "profile",
        "also",
        "machine",
        "legality column",
        "alignment",
        "block layout of Left tiles",
        "largest number of rows of a tile",
    )
    return table(head, lines)


def _differences() -> str:
    rows = isa.rows()
    lines = ((code(c), str(sum(c in r.isas for r in rows))) for c in ("cpu", "a2a3", "a5"))
    return table(("legality column", "instructions"), lines)


def _dtypes() -> str:
    lines = (
        (
            anchor(f"type-{d.name}") + code(d.mlir),
            d.name,
            str(d.bits),
            " ".join(map(code, d.spellings)) or "-",
            text(d.doc),
        )
        for d in DTYPES.values()
    )
    return table(("in text", "name in tables", "bits", "also accepted", "meaning"), lines)


def _enums() -> str:
    lines = (
        (
            code(f"#pto<{e.name} V>" if e.spaced else f"#pto.{e.name}<V>"),
            " ".join(map(code, e.values)),
            text(e.doc),
        )
        for e in ENUMS.values()
    )
    return table(("written", "values V", "meaning"), lines)


def _semantics() -> str:
    """The switches of `--semantics`, from the comments at their fields."""
    lines: list[tuple[str, ...]] = []
    for comment, name in re.findall(r"((?: +#: .*\n)+) +(\w+): str\n", inspect.getsource(Semantics)):
        words = " ".join(line.strip()[3:] for line in comment.splitlines())
        parts = re.fullmatch(r"(.+): hw (.+)[,;] doc (.+)\.", words)
        assert parts, f"a comment of the form 'what: hw .., doc ..', got {words!r}"
        lines.append((code(name), *(text(p) for p in parts.groups())))
    return table(("switch", "concerns", "`hw`", "`doc`"), lines)


def _engines() -> str:
    """The inputs of each engine, and its special options of a launch."""
    lines = [
        (code(e.name), e.doc, ", ".join(INPUTS[kind] for kind in e.takes), ", ".join(map(code, e.options)))
        for e in ENGINES.values()
    ]
    return table(("engine", "executes", "inputs", "options"), lines)


def _overheads() -> str:
    """Overheads of the task runtime in virtual time, with their evidence."""
    lines = [(code(o.name), str(o.ns), text(f"{o.who}: {o.what}"), text(o.evidence)) for o in OVERHEADS]
    return table(("overhead", "ns", "for", "evidence"), lines)


#: Commands whose help is shown in docs/tools.md.
TOOLS: dict[str, tuple[str, ...]] = {
    "ptoas": ("pto.cli.ptoas",),
    "ptobc": ("pto.cli.ptobc",),
    "pto": ("pto.cli.main",),
    "pto run": ("pto.cli.main", "run"),
    "pto debug": ("pto.cli.main", "debug"),
    "pto build": ("pto.cli.main", "build"),
    "pto record": ("pto.cli.main", "record"),
    "pto fix": ("pto.cli.main", "fix"),
    "pto runtime run": ("pto.cli.main", "runtime", "run"),
    "pto examples": ("pto.cli.main", "examples"),
    "pto tune": ("pto.cli.main", "tune"),
    "pto cost": ("pto.cli.main", "cost"),
    "pto objdump": ("pto.cli.main", "objdump"),
    "pto ranks": ("pto.cli.main", "ranks"),
    "pto python": ("pto.cli.main", "python"),
    "pto check": ("pto.cli.main", "check"),
    "pto prove": ("pto.cli.main", "prove"),
    "pto fmt": ("pto.cli.main", "fmt"),
    "pto lsp": ("pto.cli.main", "lsp"),
    "pto explore": ("pto.cli.main", "explore"),
    "pto completion": ("pto.cli.main", "completion"),
    "pto isa": ("pto.cli.main", "isa"),
    "pto explain": ("pto.cli.main", "explain"),
    "pto doctor": ("pto.cli.main", "doctor"),
    "pto cache": ("pto.cli.main", "cache"),
}


@cache
def help_text(tool: str) -> str:
    """`TOOL --help` at a fixed width."""
    module, *verb = TOOLS[tool]
    command = [sys.executable, "-m", module, *verb, "--help"]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout.rstrip()


_TONES = {"31": "bad", "32": "good", "35": "warn", "33": "warn", "36": "note"}


def _finding() -> str:
    """A finding of a sanitizer as the terminal shows it."""
    words = "run examples/12_race.pto --sanitize race -- f32:64x128 f32:64x128 f32:64x128"
    done = subprocess.run(
        [sys.executable, "-m", "pto.cli.main", *words.split()], cwd=Path(__file__).parents[1], text=True,
        stderr=subprocess.STDOUT, stdout=subprocess.PIPE, env={**os.environ, "PTO_COLOR": "always"},
    )  # fmt: skip
    shown = html.escape(done.stdout.rstrip(), quote=False)
    shown = re.sub(r"\x1b\[1;(\d+)m", lambda m: f'<span class="{_TONES.get(m[1], "note")}">', shown)
    shown = shown.replace("\x1b[0m", "</span>")
    lines = "".join(f'<span id="finding-{n}">{line}\n</span>' for n, line in enumerate(shown.splitlines()))
    return f'<div class="finding"><pre><code>{lines}</code></pre></div>'


def reference_pages() -> dict[str, str]:
    """Return the pages of options and of public names."""
    helps = {tool: help_text(tool) for tool in TOOLS}
    return {"options.md": reference.options_page(helps), "api.md": reference.api_page()}


def pages() -> dict[str, str]:
    """Return every generated page."""
    return {**instruction_pages(), **error_pages(), **reference_pages()}


def _help(tool: str) -> Callable[[], str]:
    return lambda: fence(help_text(tool).split("\n"))


PARTS: dict[str, Callable[[], str]] = {
    "capacities": _capacities,
    "profiles": _profiles,
    "differences": _differences,
    "dtypes": _dtypes,
    "enums": _enums,
    "sanitizers": _sanitizers,
    "debugger": _debugger,
    "semantics": _semantics,
    "engines": _engines,
    "overheads": _overheads,
    "finding": _finding,
    "floors": floors.floors,
    "operators": reference.operators,
    **{f"drawing {name}": make for name, make in drawings.DRAWINGS.items()},
    **{f"help {tool}": _help(tool) for tool in TOOLS},
}


def written() -> dict[str, str]:
    """Return the pages of the repository, without what markers stand for."""
    folder = Path(__file__).parent
    return {p.name: MARKER.sub("", p.read_text(encoding="utf-8")) for p in folder.glob("*.md")}


#: A marker, with the line below that replaces it for readers of the repository.
MARKER = re.compile(r"^<!-- generate: (.+?) -->(\n\*In the repository: .+\*)?$", re.MULTILINE)


def expand(markdown: str) -> str:
    """A written page with its markers replaced; `KeyError` for an unknown one."""
    return MARKER.sub(lambda m: PARTS[m[1]](), markdown)
