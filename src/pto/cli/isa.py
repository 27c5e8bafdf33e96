"""`pto isa`: print the instruction table as an overview, as a list, or as the page of one instruction."""

from __future__ import annotations

import json
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from .. import isa
from ..diag import did_you_mean
from ..isa import describe
from ..isa.profiles import ISAS, PROFILES
from ..isa.row import Row
from .common import FAILED, OK, CommandParser, profile_name
from .terminal import Screen

_EXAMPLES = """\
  pto isa                        overview: sets, families and targets, with counts
  pto isa tadd                   one instruction: syntax, operands, legality, rules
  pto isa tadd --profile a5      only the facts for a5
  pto isa --family reduce-and-expand
  pto isa --set vector --search gather
  pto isa --json > isa.json      every row as JSON
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto isa", "Print instructions of the instruction table, as a page or a list.", _EXAMPLES
    )
    p.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="an instruction (tadd, pto.tadd, TADD, arith.addi), a family or a set",
    )
    p.add_argument("--family", metavar="F", help="list the instructions of one family")
    p.add_argument("--set", dest="set_", metavar="S", help="list the instructions of one set")
    p.add_argument(
        "--profile", metavar="P", type=profile_name, help="show only what exists on this target profile"
    )
    p.add_argument(
        "--search", metavar="WORD", help="list instructions with these words in name or description"
    )
    p.add_argument("--json", action="store_true", help="print complete rows as JSON")
    options = p.parse_args(arguments)
    table = isa.rows()
    families, sets = {r.family for r in table}, {s for r in table for s in (r.set, *r.also)}
    named = (options.name or "").lower()
    free = not (options.family or options.set_)
    # a family or a set is an option of its own
    if free and isa.row(named) is None and named in families | sets:
        if named in families:
            options.family, options.name = named, None
        else:
            options.set_, options.name = named, None
    if options.name is not None:
        if options.family or options.set_ or options.search:
            p.error("cannot combine NAME with --family, --set or --search")
        return _one(options.name, options.profile, options.json)
    for value, noun, known in (
        (options.family, "family", families),
        (options.set_, "set", sets),
    ):
        if value and value not in known:
            near = sorted(k for k in known if value.lower() in k)
            hint = f"one of {', '.join(near or sorted(known))}"
            return _complain(f"unknown {noun} '{value}'; {did_you_mean(value, known) or hint}")
    found = [
        r for r in table
        if (not options.family or r.family == options.family)
        and (not options.set_ or options.set_ in (r.set, *r.also))
        and (not options.profile or describe.exists_on(r, options.profile))
        and (not options.search or _matches(r, options.search))
    ]  # fmt: skip
    if options.json:
        rows = [describe.as_json(r) for r in found]
        _print_json(
            {"counts": describe.counts(found), "algorithms": describe.algorithms(found), "rows": rows}
        )
        return OK
    if not found:
        return _complain(f"no instruction matches '{options.search}'; pto isa lists sets and families")
    wanted = options.family or options.set_ or options.search
    screen = Screen()
    print("\n".join(listing(found, screen) if wanted else overview(found, screen)))
    return OK


def _one(name: str, profile: str | None, as_json: bool) -> int:
    row = isa.row(name) or isa.row(name.lower())
    if row is None:
        known = [n for r in isa.rows() for n in (r.name, *r.aliases, r.family, r.set)]
        known = list(dict.fromkeys(known))
        hint = (
            did_you_mean(name.lower().removeprefix("pto."), known)
            or "pto isa --search WORD searches descriptions"
        )
        return _complain(f"unknown instruction '{name}'; {hint}")
    if profile and not describe.exists_on(row, profile):
        return _complain(
            f"{row.name} does not exist on {profile}; it exists on {', '.join(describe.profiles(row))}"
        )
    if as_json:
        _print_json(describe.as_json(row))
        return OK
    columns = (PROFILES[profile].isa,) if profile else ISAS
    shown = examples(row, columns[0] if profile else row.isas[-1])
    print("\n".join(page_text(describe.page(row, shown, columns), Screen())))
    return OK


def _complain(message: str) -> int:
    print(f"pto isa: {message}", file=sys.stderr)
    return FAILED


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _matches(row: Row, words: str) -> bool:
    text = " ".join((row.name, *row.aliases, row.doc, row.family, row.cpp)).lower()
    return all(word in text for word in words.lower().split())


def examples(row: Row, isa_: str) -> Mapping[str, str]:
    """Return a concrete statement in each form, with its definitions. Identical forms appear once."""
    from ..witness import example_forms, example_text

    def shown(form: str, of: str = "") -> str:
        text = example_text(row, isa_, form, of).rstrip()
        return text if row.dialect in ("builtin", "func") else _body(text)

    out: dict[str, str] = {}
    for form in describe.FORMS:
        text = shown(form)
        if text not in out.values():
            out[form] = text
    others = [shown("pto", of) for of in example_forms(row, isa_)]
    out["pto"] = "\n".join(dict.fromkeys((out["pto"], *others)))
    return out


def _body(text: str) -> str:
    """Return the statements of the example's only function, without its final return."""
    lines = text.splitlines()
    head = next(k for k, line in enumerate(lines) if "func" in line and "example" in line)
    margin = lines[head][: len(lines[head]) - len(lines[head].lstrip())]
    closing = ".end" if lines[head].startswith(".func") else margin + "}"
    end = next(k for k in range(head + 1, len(lines)) if lines[k].startswith(closing))
    body = lines[head + 1 : end]
    while body and body[0].lstrip().startswith((".arg ", "^bb0(")):
        body.pop(0)
    if body and body[-1].strip() in ("return", '"func.return"() : () -> ()'):
        body.pop()
    return textwrap.dedent("\n".join(body))


# ------------------------------------------------------------------------------------------------- rendering


def overview(rows: Sequence[Row], screen: Screen) -> list[str]:
    """Return sets and families with counts, then the target profiles."""
    names = sum(1 + len(r.aliases) for r in rows)
    out = [screen.paint(f"{len(rows)} instructions, {names} names with aliases", "title"), ""]
    by_set = Counter(r.set for r in rows)
    families: dict[str, Counter[str]] = {}
    for r in rows:
        families.setdefault(r.set, Counter())[r.family] += 1
    for name, count in by_set.items():
        listed = ", ".join(f"{family} {n}" for family, n in families[name].items())
        head = f"{name:<10}{count:>4}  "
        lines = screen.paragraph(listed, indent=len(head))
        out.append(screen.paint(name, "name") + head[len(name) :] + lines[0].lstrip())
        out += lines[1:]
    out += ["", screen.paint("Target profiles", "title")]
    head = ("name", "also", "machine", "rules", *_CAPACITIES)
    table = [
        (
            p.name,
            " ".join(p.aliases),
            p.title,
            p.isa,
            *(f"{p.capacity[loc] // 1024}" for loc in _CAPACITIES.values()),
        )
        for p in PROFILES.values()
    ]
    out += screen.table(head, table)
    out += screen.paragraph("Buffers in KiB; 'rules' is the legality column of the instruction pages.")
    out += ["", "pto isa NAME shows an instruction; --family, --set, --profile and --search list them."]
    return out


#: Buffers in the overview -> the tile location that each of them backs.
_CAPACITIES = {"UB": "vec", "L1": "mat", "L0A": "left", "L0B": "right", "L0C": "acc"}


def listing(rows: Sequence[Row], screen: Screen) -> list[str]:
    """Return one line per instruction, grouped by set and family."""
    out: list[str] = []
    column = min(28, max(len(r.name) for r in rows)) + 2
    last = ""
    for r in rows:
        group = f"{r.set}: {r.family}"
        if group != last:
            out += [*([""] if out else []), screen.paint(group, "title")]
            last = group
        lines = screen.paragraph(r.doc, indent=2 + column)
        name = r.name.ljust(column)
        out.append("  " + screen.paint(name, "name") + lines[0].lstrip())
        out += lines[1:]
    out += ["", f"{len(rows)} instruction{'s' * (len(rows) != 1)}"]
    return out


def page_text(page: describe.Page, screen: Screen) -> list[str]:
    """Return the page of one instruction as lines."""
    first, *more = screen.paragraph(f"{page.name}  {page.doc}", indent=0, hang=len(page.name) + 2)
    head = screen.paint(page.name, "name") + first[len(page.name) :]
    out = [head, *more, "", screen.paint("Syntax", "title")]
    for form, lines in page.syntax.items():
        if form in ("ssa", "asm") and lines == page.syntax["pto"]:
            out += screen.code(f"{form:<9}", "as pto")
            continue
        for k, line in enumerate(lines):
            out += screen.code(f"{form if not k else '':<9}", line)
    if page.examples:
        out += ["", screen.paint("Example", "title")]
        for form, text in page.examples.items():
            for k, line in enumerate(text.splitlines()):
                out += screen.code(f"{form if not k else '':<9}", line)
    for section in page.sections:
        out += ["", screen.paint(section.title, "title")]
        for paragraph in section.text:
            out += screen.paragraph(paragraph, hang=2 if len(section.text) > 1 else 0)
        out += [f"  {line}" for line in section.code]
        if section.table and section.title == "Element types":
            out += _matrix(section.table, screen)
        elif section.table:
            out += screen.table(section.table.head, section.table.rows)
    return [*out, "", screen.paint("Facts", "title"), *screen.pairs(page.facts)]


def _matrix(table: describe.Table, screen: Screen) -> list[str]:
    """Return element types as columns and legality columns as rows, in bands that fit the width."""
    isas = table.head[1:]
    label = max(map(len, isas)) + 2
    bands: list[list[tuple[str, ...]]] = [[]]
    used = 0
    for row in table.rows:
        if used + len(row[0]) + 1 > screen.width - 2 - label:
            bands.append([])
            used = 0
        bands[-1].append(row)
        used += len(row[0]) + 1
    out: list[str] = []
    for band in bands:
        for k, name in enumerate(isas, 1):
            cells = (r[0] if r[k] == "yes" else ".".rjust(len(r[0])) for r in band)
            out.append("  " + screen.paint(name, "dim") + " " * (label - len(name)) + " ".join(cells))
    return out
