"""Safe markup for all HTML and SVG output, because names of programs, files and tasks may contain any text.

`escaped` encodes text, and `script_json` encodes data. `document` assembles a page. Its Content Security
Policy loads no external content, and runs no script except the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from typing import Any

from ..diag import visible

#: JSON escapes of a backslash, or of an invisible control, direction or joining character.
_ACTING = re.compile(
    r"\\(?:\\|u(00[01].|007f|00[89].|00ad|061c|180e|200[b-f]|202[89a-e]|206.|feff|fff[9ab]))"
)


def escaped(text: object) -> str:
    """Return text for an element or a quoted attribute, in HTML or SVG. Characters that XML forbids or that
    change the direction of text become visible escapes."""
    return escape(visible(str(text), layout=True))


def script_json(data: Any) -> str:
    """Return JSON for a script element. Strings have the same visible escapes as `escaped` text."""
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return _ACTING.sub(lambda m: "\\" + visible(chr(int(m[1], 16))) if m[1] else m[0], text)


def document(
    title: str,
    body: str,
    style: str,
    script: str = "",
    view: str = "",
    frames: str = "",
    served: bool = False,
) -> str:
    """Return a page from a title (text), a body (markup), a style sheet and a module; `view` names its view.
    `frames` is the script of pages inside the page. A `served` page may call its server."""
    attributes = f' data-view="{escaped(view)}"' if view else ""
    return f"""\
<!DOCTYPE html>
<html lang="en"{attributes}>
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="{_policy(script, frames, served)}"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escaped(title)}</title>
<style>
{style}
</style>
</head>
<body>
{body}
{f'<script type="module">{script}</script>' if script else ""}
</body>
</html>
"""


def _policy(script: str, frames: str, served: bool) -> str:
    """Return the Content Security Policy of a page. Trusted types allow the script to parse markup only
    through its own policy, `pto`."""
    rules = ["default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'"]
    if script:
        allowed = " ".join(_digest(text) for text in (script, frames) if text)
        rules += [f"script-src {allowed}", "require-trusted-types-for 'script'", "trusted-types pto"]
    if served:
        rules.append("connect-src 'self'")
    return "; ".join(rules)


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
