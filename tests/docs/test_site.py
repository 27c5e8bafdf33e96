"""The generated pages: one per row and per diagnostic code, with links that resolve. No mkdocs needed."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from tests.docs.conftest import DOCS
from tests.made import ROOT
from tests.sampling import some

import pto
from pto import isa
from pto.isa.errors import CATALOGUE

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*?)(?: \{#([\w-]+)\})?$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(generate: ModuleType, generated: dict[str, str]) -> dict[str, str]:
    """Every page of the site, markers filled except for the help texts."""
    written = {p.name: p.read_text() for p in DOCS.glob("*.md")}
    return {**generated, **written}


def test_every_row_has_a_complete_page(generated: dict[str, str]) -> None:
    for row in isa.rows():
        page = generated[f"isa/{row.name}.md"]
        for heading in ("Syntax", "Facts", "Meaning", "Example"):
            assert f"\n## {heading}\n" in page, (row.name, heading)
        assert f"0x{row.opcode:04X}" in page, row.name
        for title, present in (("Operands", row.operands), ("Attributes", row.attrs), ("Rules", row.rules)):
            assert (f"\n## {title}\n" in page) == bool(present), (row.name, title)
        for operand in (*row.operands, *row.results):
            assert operand.name.replace("_", "&#95;") in page, (row.name, operand.name)


def test_every_row_is_listed(generated: dict[str, str]) -> None:
    for row in isa.rows():
        assert f"]({row.name}.md)" in generated["isa/index.md"], row.name
        assert f"]({row.name}.md)" in generated[f"isa/set-{row.set}.md"], row.name


def test_every_code_has_an_entry(generate: ModuleType, generated: dict[str, str]) -> None:
    for code, entry in CATALOGUE.items():
        page = generated[generate.error_page(code)]
        assert page.count(f"{{#{code.lower()}}}") == 1, code
        assert generate.text(entry.fix) in page, code
        assert f"#{code.lower()})" in generated["errors/index.md"], code


def test_a_rule_leads_to_its_code_and_back(generated: dict[str, str]) -> None:
    assert "[SA-0153](../errors/sa.md#sa-0153)" in generated["isa/texp.md"]
    assert "[texp](../isa/texp.md)" in generated["errors/sa.md"]


def anchors(page: str) -> set[str]:
    """Explicit ids, and the ones the toc extension makes of plain headings."""
    found: set[str] = set()
    for title, explicit in _HEADING.findall(_FENCE.sub("", page)):
        found.add(explicit or re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()))
    return found


def test_links_resolve(site: dict[str, str]) -> None:
    broken: list[str] = []
    places = {name: anchors(page) for name, page in site.items()}
    for name, page in site.items():
        for target in _LINK.findall(_FENCE.sub("", page)):
            if target.startswith(("http:", "https:")):
                continue
            path, _, anchor = target.partition("#")
            where = _join(name, path) if path else name
            if where.startswith("img/"):
                if not (DOCS / where).exists():
                    broken.append(f"{name}: {target}")
                continue
            if where not in places or (anchor and anchor not in places[where]):
                broken.append(f"{name}: {target}")
    assert not broken


def _join(page: str, path: str) -> str:
    parts = page.split("/")[:-1]
    for step in path.split("/"):
        parts = parts[:-1] if step == ".." else [*parts, step]
    return "/".join(parts)


def test_navigation_names_existing_pages(site: dict[str, str]) -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r"[\w/-]+\.md", text[text.index("\nnav:") : text.index("\nnot_in_nav:")])
    assert set(named) <= set(site)
    rows = {f"isa/{row.name}.md" for row in isa.rows()}
    assert set(site) - rows == set(named)


def test_pages_are_short() -> None:
    """A longer page is a guide and a reference: cut it in two."""
    long = {p.name: n for p in DOCS.glob("*.md") if (n := len(p.read_text().splitlines())) > 400}
    assert not long


def test_tables_are_rectangular(generated: dict[str, str]) -> None:
    """A stray `|` of the content would tear a row."""
    for name, page in generated.items():
        width = 0
        for line in _FENCE.sub("", page).splitlines():
            cells = line.count("|") if line.startswith("|") else 0
            assert not cells or not width or cells == width, f"{name}: {line}"
            width = cells


def test_examples_are_legal(generate: ModuleType) -> None:
    """Spot check over all sets, in every form shown; the matrix test covers the table."""
    for row in isa.rows()[::12]:
        for form, program in generate.examples(row).items():
            module = pto.parse(program + "\n")
            problems = pto.verify(module, generate.example_isa(row), flags="off")
            assert not [d for d in problems if d.severity == "error"], (row.name, form)


def test_markers_are_known_and_filled(generate: ModuleType) -> None:
    used: list[str] = []
    for page in DOCS.glob("*.md"):
        found = generate.MARKER.findall(page.read_text())
        used += [name for name, _ in found]
        assert all(instead for _, instead in found), f"{page.name}: what its repository page shows instead"
    assert "In the repository" not in generate.expand((DOCS / "sanitizers.md").read_text())
    assert sorted(used) == sorted(generate.PARTS)
    for name, make in generate.PARTS.items():
        if not name.startswith("help "):
            assert generate.expand(f"<!-- generate: {name} -->\n") == make() + "\n"
    with pytest.raises(KeyError):
        generate.expand("<!-- generate: nothing -->")


def test_capacities_are_those_of_the_profiles(generate: ModuleType) -> None:
    assert (
        "| <code>vec</code> | UB | 512 KiB | 192 KiB | 256 KiB | 128 KiB | 128 KiB |"
        in generate.PARTS["capacities"]()
    )


def test_help_of_every_tool(generate: ModuleType) -> None:
    for tool in some(generate.TOOLS, 4):
        assert generate.help_text(tool).startswith(f"usage: {tool}"), tool


def test_text_means_nothing_else(generate: ModuleType) -> None:
    assert (
        generate.text("a | b <c> *d* _e_ [f](g)")
        == "a &#124; b &lt;c&gt; &#42;d&#42; &#95;e&#95; &#91;f&#93;(g)"
    )
    assert generate.text("see `x | y`") == "see <code>x &#124; y</code>"
    assert generate.text("one ` tick") == "one &#96; tick"


def test_long_combination_lists_are_grouped(generate: ModuleType) -> None:
    row = isa.row("tcvt")
    assert row is not None
    page = generate.instruction_page(row)
    combinations = page[page.index("## Element type combinations") : page.index("## Rules")]
    assert "| src | dst on cpu | dst on a2a3 | dst on a5 |" in combinations
    assert combinations.count("\n| ") < 20


def test_pictures_are_small_and_used(site: dict[str, str]) -> None:
    pictures = sorted((DOCS / "img").iterdir())
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 100_000, picture.name
        assert any(f"(img/{picture.name})" in page for page in site.values()), picture.name
