"""`pto completion`: a script that completes verbs, options, instructions and codes in a shell."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from .common import OK, CommandParser

_EXAMPLES = """\
  source <(pto completion bash)                               in ~/.bashrc
  source <(pto completion zsh)                                in ~/.zshrc, after compinit
  pto completion fish > ~/.config/fish/completions/pto.fish
"""
#: Tools that are commands of their own.
_TOOLS = ("ptoas", "ptobc")


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto completion", "Print a script that completes pto, ptoas and ptobc in a shell.", _EXAMPLES
    )
    p.add_argument("shell", choices=tuple(_SHELLS))
    print(_SHELLS[p.parse_args(arguments).shell](_words()), end="")
    return OK


def _words() -> dict[str, tuple[str, ...]]:
    """Return the words that may follow a tool or verb: its options, and names that it explains."""
    from ..isa import rows
    from ..isa.errors import CATALOGUE
    from .main import VERBS

    found = {verb: _options(f"pto.cli.{verb}") for verb in VERBS}
    found["isa"] += tuple(r.name for r in rows())
    found["explain"] += tuple(CATALOGUE)
    return {"pto": ("--help", "--version", *VERBS), **found, **{t: _options(f"pto.cli.{t}") for t in _TOOLS}}


def _options(module: str) -> tuple[str, ...]:
    """Return the subcommands and options in the help of a tool."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        import_module(module).main(["--help"])
    help = said.getvalue().partition("\nexamples:")[0]
    words = re.findall(r"^    ([a-z][\w-]*)(?:  |$)", help, re.MULTILINE)  # subcommands
    words += [w for listed in re.findall(r"^  \{([\w,-]+)\}", help, re.MULTILINE) for w in listed.split(",")]
    return tuple(dict.fromkeys([*words, *re.findall(r"(?<![\w-])--[a-z][\w-]*", help)]))


def _cases(words: Mapping[str, Sequence[str]]) -> str:
    verbs = (verb for verb in words if verb not in ("pto", *_TOOLS))
    return "\n".join(f"    {verb}) words='{' '.join(words[verb])}' ;;" for verb in verbs)


def _bash(words: Mapping[str, Sequence[str]]) -> str:
    tools = "\n".join(
        f"""_{tool}() {{
  COMPREPLY=($(compgen -W '{" ".join(words[tool])}' -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _{tool} {tool}"""
        for tool in _TOOLS
    )
    return f"""\
# Completion of pto in bash, made by `pto completion bash`.
_pto() {{
  local words=''
  if [ "$COMP_CWORD" -eq 1 ]; then words='{" ".join(words["pto"])}'
  else case "${{COMP_WORDS[1]}}" in
{_cases(words)}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _pto pto
{tools}
"""


def _zsh(words: Mapping[str, Sequence[str]]) -> str:
    tools = "\n".join(
        f"_{tool}() {{ compadd -- {' '.join(words[tool])}; _files }}\ncompdef _{tool} {tool}"
        for tool in _TOOLS
    )
    return f"""\
# Completion of pto in zsh, made by `pto completion zsh`.
_pto() {{
  local found=''
  if (( CURRENT == 2 )); then found='{" ".join(words["pto"])}'
  else case "$words[2]" in
{_cases(words).replace("words=", "found=")}
  esac; fi
  compadd -- ${{=found}}
  (( CURRENT == 2 )) || _files
}}
compdef _pto pto
{tools}
"""


def _fish(words: Mapping[str, Sequence[str]]) -> str:
    from .main import VERBS

    out = ["# Completion of pto in fish, made by `pto completion fish`."]
    for verb, doc in VERBS.items():
        said = doc.replace("'", "\\'")
        out.append(f"complete -c pto -n __fish_use_subcommand -f -a {verb} -d '{said}'")
    for name, listed in words.items():
        where = f"-c {name}" if name in _TOOLS else f"-c pto -n '__fish_seen_subcommand_from {name}'"
        if name == "pto":
            where = "-c pto -n __fish_use_subcommand"
        out += [f"complete {where} -l {w[2:]}" for w in listed if w.startswith("--")]
        plain = [w for w in listed if not w.startswith("--")]
        if plain and name != "pto":
            out.append(f"complete {where} -a '{' '.join(plain)}'")
    return "\n".join(out) + "\n"


_SHELLS: dict[str, Callable[[Mapping[str, Sequence[str]]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
