"""The checks of the built site find a broken link, anchor and record; `make docs` runs them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_broken_links_are_found(tmp_path: Path) -> None:
    sys.path.insert(0, str(DOCS))
    check = importlib.import_module("check")
    (tmp_path / "assets").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "assets/search-index.js").write_text(
        'window.ptoIndex=[["sub/b.html#here","t","page",[],""],["sub/b.html#gone","t","page",[],""]]\n'
    )
    good = '<a href="sub/b.html#here">1</a> <a href="#top">2</a> <a href="https://host/x#y">3</a> <p id="top"></p>'
    bad = '<a href="c.html">4</a> <a href="sub/b.html#there">5</a> <img src="d.png">'
    (tmp_path / "index.html").write_text(good + bad)
    (tmp_path / "sub/b.html").write_text('<h2 id="here"></h2><a href="../index.html">6</a>')
    assert list(check.problems(tmp_path)) == [
        "index.html: c.html", "index.html: sub/b.html#there", "index.html: d.png", "search: sub/b.html#gone",
    ]  # fmt: skip
