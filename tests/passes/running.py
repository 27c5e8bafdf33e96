"""Programs before and after passes: compiled, checked, and run with the same arguments."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import pto
from pto.diag import Diagnostic, has_errors
from pto.ir.core import Module
from pto.ir.facts import module_profile
from pto.passes import PASSES, Options, PassContext, compile, pipeline
from pto.verifier import verify


@contextmanager
def only(*names: str) -> Iterator[None]:
    """Run these passes and no others."""
    kept = pipeline.PASSES
    pipeline.PASSES = tuple(p for p in PASSES if p.name in names)
    try:
        yield
    finally:
        pipeline.PASSES = kept


def compiled(
    source: str | Module, *passes: str, target: str | None = None, **options: Any
) -> tuple[PassContext, list[Diagnostic]]:
    """Context and problems after all passes, or the named ones, of a legal program."""
    module = pto.parse(source) if isinstance(source, str) else source
    profile = module_profile(module, target)
    problems = [d for d in verify(module, profile, flags="warning") if d.severity == "error"]
    assert not problems, problems
    if not passes:
        return compile(module, profile, Options(**options))
    with only(*passes):
        return compile(module, profile, Options(**options))


def result(source: str | Module, *passes: str, target: str | None = None, **options: Any) -> Module:
    """The program after passes that find nothing wrong."""
    ctx, problems = compiled(source, *passes, target=target, **options)
    assert not has_errors(problems), problems
    check(ctx)
    return ctx.module


def check(ctx: PassContext) -> None:
    """Check that the output of passes is legal, and prints as the same program."""
    problems = [d for d in verify(ctx.module, ctx.profile, flags="warning") if d.severity == "error"]
    assert not problems, (problems, pto.to_text(ctx.module))
    text = pto.to_text(ctx.module)
    assert pto.to_text(pto.parse(text)) == text


def text(source: str | Module, *passes: str, target: str | None = None, **options: Any) -> str:
    return pto.to_text(result(source, *passes, target=target, **options))


def errors(source: str | Module, *passes: str, target: str | None = None, **options: Any) -> list[Diagnostic]:
    _, problems = compiled(source, *passes, target=target, **options)
    return [d for d in problems if d.severity == "error"]


def runs_alike(
    source: str | Module, args: Sequence[Any], *passes: str, entry: str | None = None,
    target: str | None = None, check_input: bool = True, compile_options: dict[str, Any] | None = None,
    **launch: Any,
) -> Module:  # fmt: skip
    """Run a program before and after passes; check that all writes and all findings are the same."""
    module = pto.parse(source) if isinstance(source, str) else source
    profile = module_profile(module, target)
    if passes:
        with only(*passes):
            ctx, problems = compile(module, profile, Options(**(compile_options or {})))
    else:
        ctx, problems = compile(module, profile, Options(**(compile_options or {})))
    assert not has_errors(problems), problems
    if check_input:
        check(ctx)
    before, first = _run(module, args, entry, profile, check_input, launch)
    # a parsed text runs as well: the passes keep no state on objects
    again = pto.parse(pto.to_text(ctx.module))
    after, second = _run(again, args, entry, profile, check_input, launch)
    assert second == first, (first, second)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(b, a)
    return ctx.module


def _run(
    module: Module,
    args: Sequence[Any],
    entry: str | None,
    profile: Any,
    checked: bool,
    launch: dict[str, Any],
) -> tuple[list[Any], list[str]]:
    mine = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    kernel = pto.kernel(module, entry, "reference", profile, check=checked)
    found = kernel.run(*mine, out=io.StringIO(), **launch)
    return mine, sorted(d.code for d in found.diagnostics)
