"""Programs are data: what could run text as code, or start a process, is listed here with its reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src/pto"

_BUILTINS = {"eval", "exec", "compile", "__import__"}
_MODULES = {
    "pickle", "marshal", "shelve", "dill", "cloudpickle", "subprocess", "multiprocessing", "runpy", "pty", "code",
    "codeop",
}  # fmt: skip
_OF_OS = ("system", "popen", "exec", "spawn", "posix_spawn", "fork", "startfile")

_PYTHON = "a Python file of the user is code already"
_TABLES = "expressions of our tables alone: programs and files of machines give values, never texts"
_TOOL = "a list of arguments without a shell; the program is fixed or the user's own"
#: (file, what) -> why no text of a program reaches it.
ALLOWED = {
    ("cli/python.py", "compile"): "pto python -c: " + _PYTHON,
    ("cli/python.py", "exec"): "pto python -c: " + _PYTHON,
    ("cli/python.py", "runpy"): "pto python: " + _PYTHON,
    ("cli/ptoas.py", "os.fork"): "workers of ptoas -j",
    ("cli/error_programs.py", "subprocess"): "runs our own tools on a program of the package",
    ("cli/error_programs.py", "runpy"): "a program of the package, in Python",
    ("compat/report.py", "subprocess"): "runs the user's own Python files for a report",
    ("engine/cpp/compiler.py", "subprocess"): "the C++ compiler: " + _TOOL,
    ("engine/reference/meaning.py", "exec"): _TABLES,
    ("engine/compiled/processes.py", "multiprocessing"): "its pipes, which carry bytes of wire.py",
    ("engine/compiled/processes.py", "os.fork"): "a process of this program per rank",
    ("isa/meaning.py", "compile"): "to a tree only, of " + _TABLES,
    ("host/launch.py", "subprocess"): "starts the ranks of the user's own C++ program: " + _TOOL,
    ("isa/rules.py", "compile"): _TABLES,
    ("isa/rules.py", "eval"): _TABLES,
    ("language/declare.py", "eval"): "annotations: " + _PYTHON,
    ("language/interpreter/executable.py", "compile"): _PYTHON,
    ("language/interpreter/executable.py", "exec"): _PYTHON,
    ("language/graphs/orchestrate.py", "compile"): "generated: names are identifiers, everything else a repr",
    ("language/graphs/orchestrate.py", "exec"): "generated: names are identifiers, everything else a repr",
    ("language/ir/text.py", "compile"): "pl.parse: " + _PYTHON,
    ("language/ir/text.py", "exec"): "pl.parse: " + _PYTHON,
    ("trials.py", "multiprocessing"): "workers that get values of parameters, by our own code",
    ("tune/source.py", "compile"): "pto tune k.py: " + _PYTHON,
    ("tune/source.py", "exec"): "pto tune k.py: " + _PYTHON,
}


#: A text without any of it uses nothing: few modules are parsed.
_WORDS = re.compile(
    rf"(?<!\.)\b({'|'.join(_BUILTINS)})\b|\bbuiltins\b|\b(import|from)\s.*\b({'|'.join(_MODULES)})\b"
    rf"|\b(os|posix)\s*\.\s*({'|'.join(_OF_OS)})|\bfrom\s+os\s+import\b|\b(shell|allow_pickle)\s*="
)


def uses(text: str) -> set[str]:
    """Return the uses of all this in a module, called or passed on."""
    found: set[str] = set()
    if not _WORDS.search(text):
        return found
    nodes = list(ast.walk(ast.parse(text)))
    own = {a.asname or a.name for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
    own |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    for node in nodes:
        match node:
            case ast.Name(id=name) if name in _BUILTINS and name not in own:
                found.add(name)
            case ast.Attribute(value=ast.Name("os" | "posix"), attr=attr) if attr.startswith(_OF_OS):
                found.add(f"os.{attr}")
            case ast.Attribute(value=ast.Name("builtins"), attr=attr) if attr in _BUILTINS:
                found.add(attr)
            case ast.Import(names=names):
                found |= {a.name.partition(".")[0] for a in names} & _MODULES
            case ast.ImportFrom(module=str(module), level=0):
                found |= {module.partition(".")[0]} & _MODULES
                if module == "os":
                    found |= {f"os.{a.name}" for a in node.names if a.name.startswith(_OF_OS)}
            case ast.keyword(arg="shell" | "allow_pickle" as arg, value=value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    found.add(arg)
            case _:
                pass
    return found


def test_nothing_else_runs_text_as_code() -> None:
    found = {
        (path.relative_to(SOURCES).as_posix(), what)
        for path in sorted(SOURCES.rglob("*.py"))
        for what in uses(path.read_text(encoding="utf-8"))
    }
    assert sorted(found - ALLOWED.keys()) == [], "not allowed: use a table or walk a tree"
    assert sorted(ALLOWED.keys() - found) == [], "allowed, but not used any more"


def test_each_use_is_seen() -> None:
    seen = {
        "eval('1')": "eval", "f = exec": "exec", "import builtins; builtins.eval('1')": "eval", "__import__('os')": "__import__",
        "import os; os.system('x')": "os.system", "os.execvp('x', [])": "os.execvp", "from os import popen": "os.popen",
        "import subprocess as s": "subprocess", "from pickle import loads": "pickle", "run('x', shell=True)": "shell",
        "np.load(p, allow_pickle=flag)": "allow_pickle", "import multiprocessing.pool": "multiprocessing",
    }  # fmt: skip
    assert {text: uses(text) for text in seen} == {text: {what} for text, what in seen.items()}
    assert not uses("from .passes import compile\ncompile(module)\nre.compile('x')\nrun('x', shell=False)")
