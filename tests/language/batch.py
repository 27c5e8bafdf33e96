"""Compilation of many kernels at once: most of the time to compile one goes to the headers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pto.engine.entry import Launchable
from pto.engine.native import machine
from pto.engine.native.kernel import image_of
from pto.language.programs.call import specialised


def compile_together(launches: Iterable[tuple[Any, Sequence[Any], str]]) -> None:
    """Compile what engine native lacks for functions of the language, each with its arguments and its target."""
    made = [specialised(function, tuple(args), {}, None, target)[0] for function, args, target in launches]
    modules = [item for compiled in made for item in compiled.lowered.modules.items()]
    images = [image_of(Launchable(module, name, None, True)) for name, module in modules]
    machine.functions(list(dict.fromkeys(call for image in images for call in image.calls)))
