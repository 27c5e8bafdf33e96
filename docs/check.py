"""Check the built site: every internal link and anchor, and every address of the search index.

python docs/check.py site
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def problems(site: Path) -> Iterator[str]:
    """Yield each link without a file or an anchor."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        if path.name != "404.html":  # with addresses from the root
            yield from (
                f"{path.relative_to(site)}: {link}" for link in page.links if _broken(path, link, pages)
            )
    index = site / "assets/search-index.js"
    records = json.loads(index.read_text(encoding="utf-8").partition("=")[2])
    yield from (f"search: {r[0]}" for r in records if _broken(site / "index.html", r[0], pages))


def _broken(page: Path, link: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target not in pages:
        return not target.is_file() and not (target / "index.html").is_file()
    return bool(parts.fragment) and unquote(parts.fragment) not in pages[target].anchors


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1]).resolve()))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(f"error: {len(found)} links lead nowhere" if found else 0)
