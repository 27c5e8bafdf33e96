"""Debug information of machine code: source lines, for `objdump -dl`, debuggers and profilers."""

from __future__ import annotations

from collections.abc import Callable

#: Position in an image -> file, line and column, or None if they are unknown.
Lines = Callable[[int], tuple[str, int, int] | None]


class Debug:
    """Metadata of LLVM, numbered in the order of first use."""

    def __init__(self, quoted: Callable[[str], str], source: str, first: int) -> None:
        self._quoted = quoted
        self._first = first
        self._made: dict[str, int] = {}
        self._unit = self._node(
            f'distinct !DICompileUnit(language: DW_LANG_C11, file: {self._file(source)}, producer: "ptoas", '
            "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)"
        )
        self._type = self._node(f"!DISubroutineType(types: {self._node('!{null}')})")

    def _node(self, text: str) -> str:
        return f"!{self._made.setdefault(text, self._first + len(self._made))}"

    def _file(self, name: str) -> str:
        return self._node(f'!DIFile(filename: {self._quoted(name)}, directory: "")')

    def function(self, name: str, file: str, line: int) -> str:
        """Return a function that begins at a line."""
        at = self._file(file)
        return self._node(
            f"distinct !DISubprogram(name: {self._quoted(name)}, scope: {at}, file: {at}, line: {line}, "
            f"type: {self._type}, unit: {self._unit}, spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )

    def place(self, function: str, file: str, line: int, column: int) -> str:
        """Return a source location in a function, which may be in another file."""
        block = self._node(
            f"!DILexicalBlockFile(scope: {function}, file: {self._file(file)}, discriminator: 0)"
        )
        return self._node(f"!DILocation(line: {line}, column: {min(column, 65535)}, scope: {block})")

    def text(self) -> str:
        flags = [self._node(f'!{{i32 {how}, !"{name}", i32 {value}}}')
                 for how, name, value in ((2, "Debug Info Version", 3), (7, "Dwarf Version", 4))]  # fmt: skip
        lines = [f"!{number} = {text}\n" for text, number in self._made.items()]
        named = [f"!llvm.dbg.cu = !{{{self._unit}}}\n", f"!llvm.module.flags = !{{{', '.join(flags)}}}\n"]
        return "".join((*named, *lines))
