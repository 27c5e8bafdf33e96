"""The search index of the site: names first, then headings and text.

    entries(pages)   records of every page, from its Markdown
    script(pages)    assets/search-index.js, which assets/pto.js loads when somebody searches

A record is [address, title, kind, names, text]. A query that is one of the names finds this record first. The
index has no text of instructions beyond their descriptions, as they are found by name.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import generate
import reference

from pto import isa
from pto.isa.dtypes import DTYPES
from pto.isa.errors import CATALOGUE
from pto.isa.row import Row
from pto.knobs import KNOBS
from pto.language import catalogue

Entry = tuple[str, str, str, list[str], str]

DOCS = Path(__file__).parent
_HEADING = re.compile(r"^(#{1,4}) (.*?)(?: \{:? *#([^} ]+) *\})?$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def entries(pages: Mapping[str, str]) -> list[Entry]:
    """Return the records of the site; `pages` are all pages, written and generated."""
    return [*_instructions(), *_codes(), *_operators(), *_options(), *_public(), *_types(), *_sections(pages)]


def script(pages: Mapping[str, str]) -> str:
    return f"window.ptoIndex={json.dumps(entries(pages), ensure_ascii=False, separators=(',', ':'))}\n"


def _instructions() -> Iterator[Entry]:
    for row in isa.rows():
        yield f"isa/{row.name}.html", row.full_name, "instruction", _names(row), row.doc


def _names(row: Row) -> list[str]:
    """Return the mnemonics of an instruction and the functions of its C++ spelling."""
    spelled = re.findall(r"\b([A-Z][A-Z0-9_]+)(?=[(<])", row.cpp)
    return list(dict.fromkeys((row.name, row.full_name, *row.aliases, *spelled)))


def _codes() -> Iterator[Entry]:
    for e in CATALOGUE.values():
        address = f"{generate.error_page(e.code).removesuffix('.md')}.html#{e.code.lower()}"
        yield address, f"{e.code}: {e.title}", "diagnostic", [e.code], f"{e.explain} Fix: {e.fix}"


def _operators() -> Iterator[Entry]:
    for family in catalogue.families().values():
        for o in family:
            name = reference.operator_name(o)
            last = name.rpartition(".")[2]
            others = re.findall(r"Also (.*)\.$", o.doc)
            also = re.findall(r"`([^`]+)`", others[0]) if others else []
            yield f"language-operators.html#{name}", o.call, "operator", [name, last, *also], o.doc
    for name, kind in reference.enumerations().items():
        members = [f"pl.{name}.{m}" for m in kind.__members__]
        address = f"language-operators.html#pl.{name}"
        yield address, f"pl.{name}", "enumeration", [f"pl.{name}", name, *members], " ".join(kind.__members__)


def _options() -> Iterator[Entry]:
    helps = {tool: generate.help_text(tool) for tool in generate.TOOLS}
    for name, uses in reference.every_option(helps).items():
        spelled = [n for _, words, _ in uses for n in reference.option_names(words)]
        names = list(dict.fromkeys((*spelled, *(n.lstrip("-") for n in spelled if n.startswith("--")))))
        tools = ", ".join(tool for tool, _, _ in uses)
        yield f"options.html#{name}", f"{uses[0][1]} ({tools})", "option", names, uses[0][2]
    for tool in generate.TOOLS:
        yield f"tools.html#{tool.replace(' ', '-')}", tool, "command", [tool], ""
    for k in KNOBS.values():
        yield f"options.html#{k.name}", k.name, "variable", [k.name], k.doc


def _public() -> Iterator[Entry]:
    for name in reference.public_names():
        yield f"api.html#{name}", name, "name", [name, name.rpartition(".")[2]], ""


def _types() -> Iterator[Entry]:
    written = {d: f"pl.{n}" for n, d in reference.element_names().items()}
    for d in DTYPES.values():
        names = [
            d.mlir,
            d.name,
            *d.spellings,
            *([written[d.name], written[d.name][3:]] if d.name in written else []),
        ]
        yield (
            f"text-forms.html#type-{d.name}",
            f"{d.mlir}: element type",
            "type",
            list(dict.fromkeys(names)),
            d.doc,
        )


def _sections(pages: Mapping[str, str]) -> Iterator[Entry]:
    own = {generate.page_name(r) for r in isa.rows()} | {generate.error_page(c) for c in CATALOGUE}
    for name, page in sorted(pages.items()):
        if name in own:  # with records above
            continue
        address = f"{name.removesuffix('.md')}.html"
        shown = _FENCE.sub(lambda m: "\n".join(m[0].splitlines()[1:-1]).replace("#", " "), page)
        if not (DOCS / name).exists():  # a generated page: its headings
            shown = re.sub(r"^[^#\n].*$", "", shown, flags=re.MULTILINE)
        found = list(_HEADING.finditer(shown))
        title = plain(found[0][2])
        for here, after in zip(found, [*found[1:], None], strict=True):
            if here[3] and here[3].startswith("p") and "." in here[3]:  # a public name
                continue
            text = plain(shown[here.end() : after.start() if after else len(shown)])
            heading = plain(here[2])
            if here is found[0]:
                yield address, title, "page", [title], text
            else:
                yield (
                    f"{address}#{here[3] or slug(here[2])}",
                    f"{heading} - {title}",
                    "section",
                    [heading],
                    text,
                )


def plain(markdown: str) -> str:
    """Return the words of a text without its markup."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", markdown)
    words = re.sub(r"<[^>]+>|[`*|]|-{3,}", " ", words)
    return " ".join(html.unescape(words).split())


def slug(heading: str) -> str:
    """Return the anchor that the toc extension makes of a heading."""
    shown = re.sub(r"\]\([^)]*\)|[\[`]", "", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", shown).strip().lower())
