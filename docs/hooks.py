"""mkdocs events: adds the generated pages to the site and fills the markers of the written ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by path

import generate
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    for name, markdown in {**generate.instruction_pages(), **generate.error_pages()}.items():
        files.append(File.generated(config, name, content=markdown))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return generate.expand(markdown)
