"""mkdocs events: adds the generated pages and the search index to the site, and fills the markers of the
written pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by path

import generate
import search
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    made = generate.pages()
    for name, markdown in made.items():
        files.append(File.generated(config, name, content=markdown))
    index = search.script({**generate.written(), **made})
    files.append(File.generated(config, "assets/search-index.js", content=index))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return generate.expand(markdown)
