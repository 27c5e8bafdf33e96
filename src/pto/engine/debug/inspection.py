"""Data of a stop for an editor: threads, stacks, scopes, variables, memory.

References of frames and variables are valid for one stop. Tiles come in pages: rows, and elements of a row,
as many as the client requests.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from ...diag import Span, render
from ...ir.core import Operation
from ..reference.core import Core
from . import state, values
from .commands import CommandInterpreter, find
from .expressions import Expression, ExpressionError
from .points import PointError, line_of, same_file
from .requests import Answer, Body, RefusedRequest, arg, request
from .session import DebugSession
from .stop import Named, Stop, label, number

_T = TypeVar("_T")
#: Default and limit of the children in one answer.
CHILDREN, MOST_CHILDREN = 100, 5000
#: Bytes of memory in one answer.
MOST_BYTES = 1 << 20

#: Some children of a variable: the first one, their number, and True for bits.
Children = Callable[[int, int, bool], list[Body]]


class Inspector:
    """Answers the read-only requests. `standing` returns the session and its stop, `line` a line in the count
    of the client."""

    def __init__(
        self, standing: Callable[[], tuple[DebugSession, Stop | None]], line: Callable[[int], int]
    ) -> None:
        self._standing = standing
        self._line = line
        self._refs: dict[int, Children] = {}
        self._parents: dict[int, str] = {}
        self._frames: dict[int, tuple[Stop, int]] = {}
        self._last_threads: list[Body] = []

    def forget(self) -> None:
        """Drop references after the launch has moved."""
        self._refs.clear()
        self._parents.clear()
        self._frames.clear()

    @property
    def session(self) -> DebugSession:
        return self._standing()[0]

    @property
    def stop(self) -> Stop:
        session, found = self._standing()
        if found is None:
            raise RefusedRequest("the launch is running" if session.begun else "the launch has not begun")
        return found

    def core(self, arguments: Body) -> Core | None:
        """Return the core that a request names; None for the one that stopped."""
        wanted = arg(arguments, "threadId", int, 0)
        stop = self.stop
        if not wanted or wanted == number(stop.at) + 1:
            return None
        for core in stop.grid.active:
            if number(core) + 1 == wanted:
                return core
        raise RefusedRequest(f"thread {wanted} is not active")

    def expression(self, parent: int, name: str) -> str:
        """Return a child of a variable as an expression."""
        of, inner = self._parents.get(parent, ""), name.strip("[]")
        if not of:
            return name.rpartition("= ")[2]
        return f"{of[:-1]}, {inner}]" if of.endswith("]") else f"{of}[{inner}]"

    @request("threads")
    def threads(self, arguments: Body) -> Answer:
        try:
            _, stop = self._standing()
        except RefusedRequest:
            stop = None
        if stop is not None:
            cores = state.all_cores(stop.grid)
            cores = cores if stop.at in cores else [*cores, stop.at]
            self._last_threads = [{"id": number(c) + 1, "name": label(c)} for c in cores]
        return {"threads": self._last_threads or [{"id": 1, "name": "core 0"}]}

    @request("stackTrace")
    def stack_trace(self, arguments: Body) -> Answer:
        core = self.core(arguments)
        stop = self.stop.on(core) if core is not None else self.stop
        found: list[Body] = []
        for n, frame in enumerate(stop.frames):
            calls = stop.grid.callers(frame.op) if n == 0 else ()
            if calls:
                found += [
                    self._frame(name if level else f"{name}: {stop.call}", at, stop, n)
                    for level, (name, at) in enumerate(calls)
                ]
                continue
            view = stop if n == 0 else stop.at_op(frame.op)
            name = f"{stop.grid.words.function(frame.code.name)}: {view.name}"
            found.append(self._frame(name, frame.op, stop, n))
            for op in _around(frame.op):
                name = op.name
                if op in frame.code.counters:
                    counter, slot, bound = frame.code.counters[op]
                    name = f"loop %{counter} = {frame.regs[slot]}, below {frame.regs[bound]}"
                found.append(self._frame(name, op, stop, n, subtle=True))
        start = max(0, arg(arguments, "startFrame", int, 0))
        levels = arg(arguments, "levels", int, 0) or MOST_CHILDREN
        return {"stackFrames": found[start : start + max(0, levels)], "totalFrames": len(found)}

    def _frame(self, name: str, op: Operation | Span, stop: Stop, n: int, subtle: bool = False) -> Body:
        id = len(self._frames) + 1
        self._frames[id] = stop, n
        body: Body = {"id": id, "name": name, "line": 0, "column": 0}
        if op.source is not None:
            line, column = op.source.place(op.start)
            path = os.path.abspath(op.source.name)
            body["line"], body["column"] = self._line(line), column
            body["source"] = {"name": os.path.basename(path), "path": path}
        if subtle:
            body["presentationHint"] = "subtle"
        return body

    def _ref(self, children: Children, parent: str = "") -> int:
        id = len(self._refs) + 1
        self._refs[id] = children
        self._parents[id] = parent
        return id

    @request("scopes")
    def scopes(self, arguments: Body) -> Answer:
        stop, n = self._of_frame(arguments)
        out: list[Body] = []

        def scope(name: str, found: Sequence[_T], make: Callable[[_T, bool], Body], hint: str = "") -> None:
            if found:
                ref = self._ref(
                    lambda start, count, hex: [make(f, hex) for f in found[start : start + count]]
                )
                body: Body = {"name": name, "variablesReference": ref, "expensive": False}
                out.append({**body, "presentationHint": hint} if hint else body)

        if n == 0:
            operands = [
                (f"{role} = {stop.spelled(found.name)}" if role else stop.spelled(found.name), found)
                for role, found in stop.shown_operands()
            ]
            scope("Operands", operands, lambda f, hex: self._variable(f[1], hex, f[0]), "arguments")
        names = list(stop.names(n))
        places = [v for v in names if isinstance(v.value, values.PLACES)]
        scope(
            "Values", [v for v in names if v not in places], lambda f, hex: self._variable(f, hex), "locals"
        )
        scope("Tiles and views", places, lambda f, hex: self._variable(f, hex), "locals")
        for title, lines in (
            ("Flags", list(state.flags(stop.at))),
            ("FIFOs", list(state.fifos(stop.at)) if stop.at.cluster.fifos else []),
            ("Pipes", list(state.pipes(stop.at))),
            ("Who waits for whom", list(state.waits(self.stop))),
        ):
            scope(title, list(enumerate(lines)), lambda f, hex: _text(*f))
        return {"scopes": out}

    def _of_frame(self, arguments: Body) -> tuple[Stop, int]:
        id = arg(arguments, "frameId", int, 0)
        if not id:
            return self.stop, 0
        found = self._frames.get(id)
        if found is None:
            raise RefusedRequest(f"no frame {id}: it belonged to another stop")
        return found

    def _variable(self, found: Named, hex: bool = False, name: str = "") -> Body:
        expression = self.stop.spelled(found.name)
        body = self._value(found, expression, hex)
        body["value"] = body.pop("result")
        return {"name": name or expression, "evaluateName": expression, **body}

    def _value(self, found: Named, expression: str, hex: bool) -> Body:
        value = found.value
        body: Body = {
            "result": self.stop.shown(found, hex), "type": str(found.type), "variablesReference": 0,
        }  # fmt: skip
        if isinstance(value, values.PLACES):
            matrix = values.ValueMatrix(value, found.type)
            rows, cols = matrix.shape
            flat = len(matrix.dims) == 1
            children = self._elements(matrix, 0, expression) if flat else self._rows(matrix, expression)
            body["variablesReference"] = self._ref(children, expression)
            body["indexedVariables"] = cols if flat else rows
            try:
                buffer, low, _ = matrix.byte(0, 0)
                body["memoryReference"] = f"{buffer.space}:{buffer.base + low:#x}"
            except (ExpressionError, LookupError):
                pass
        return body

    def _rows(self, matrix: values.ValueMatrix, expression: str) -> Children:
        def rows(start: int, count: int, hex: bool) -> list[Body]:
            out: list[Body] = []
            for r in range(start, min(start + count, matrix.shape[0])):
                name = f"{expression}[{r}]"
                try:
                    shown = range(min(8, matrix.shape[1]))
                    text = " ".join(values.texts(matrix, range(r, r + 1), shown, hex)[0])
                except ExpressionError as e:
                    text = str(e)
                more = " .." if matrix.shape[1] > 8 else ""
                ref = self._ref(self._elements(matrix, r, name), name)
                out.append(
                    {
                        "name": f"[{r}]", "value": text + more, "variablesReference": ref,
                        "indexedVariables": matrix.shape[1], "evaluateName": name,
                    }
                )  # fmt: skip
            return out

        return rows

    def _elements(self, matrix: values.ValueMatrix, row: int, expression: str) -> Children:
        def elements(start: int, count: int, hex: bool) -> list[Body]:
            cols = range(start, min(start + count, matrix.shape[1]))
            if not cols:
                return []
            try:
                texts = values.texts(matrix, range(row, row + 1), cols, hex)[0]
            except ExpressionError as e:
                return [{"name": "", "value": str(e), "variablesReference": 0}]
            inner = expression[:-1] + ", " if expression.endswith("]") else expression + "["
            return [
                {"name": f"[{c}]", "value": t, "variablesReference": 0, "evaluateName": f"{inner}{c}]"}
                for c, t in zip(cols, texts, strict=True)
            ]

        return elements

    @request("variables")
    def variables(self, arguments: Body) -> Answer:
        _ = self.stop
        ref = arg(arguments, "variablesReference", int, 0)
        children = self._refs.get(ref)
        if children is None:
            raise RefusedRequest(f"no variables {ref}: they belonged to another stop")
        start = max(0, arg(arguments, "start", int, 0))
        count = arg(arguments, "count", int, 0)
        count = min(count, MOST_CHILDREN) if count > 0 else CHILDREN
        hex = bool(arg(arg(arguments, "format", dict, {}), "hex", bool, False))
        return {"variables": children(start, count, hex)}

    @request("evaluate")
    def evaluate(self, arguments: Body) -> Answer:
        text = arg(arguments, "expression", str, "")
        stop, _ = self._of_frame(arguments)
        hex = bool(arg(arg(arguments, "format", dict, {}), "hex", bool, False))
        if arg(arguments, "context", str, "") == "repl" and re.match(r"\s*[A-Za-z?]", text):
            answered = self._typed(text)
            if answered is not None:
                return {"result": answered, "variablesReference": 0}
        expression = Expression(text)
        if expression.index is not None:
            found = stop.find(expression.index.name)
            if not expression.index.slices:
                return self._value(found, stop.spelled(found.name), hex)
            if isinstance(found.value, values.PLACES):
                text = values.element(found.value, expression.index.slices, found.type, hex)
                return {"result": text, "type": found.value.dtype, "variablesReference": 0}
        return {"result": values.scalar(stop.evaluate(expression), hex=hex), "variablesReference": 0}

    def _typed(self, text: str) -> str | None:
        """Return the output of a command of the prompt; None for other text."""
        word = re.split(r"[\s/]", text.strip(), maxsplit=1)[0]
        try:
            command = find(word)
        except PointError:
            return None
        if command.group.startswith("going") or command.name in ("quit", "core"):
            raise RefusedRequest(f"use the button of the editor for '{command.name}'")
        lines: list[str] = []
        interpreter = CommandInterpreter(self.session, lines.append)
        interpreter.run(text)
        return "\n".join(lines)

    @request("completions")
    def completions(self, arguments: Body) -> Answer:
        text = arg(arguments, "text", str, "")
        column = arg(arguments, "column", int, len(text) + 1)
        head = text[: max(0, column - 1)]
        word = re.search(r"'[^']*$|%?[\w.$]*$", head)
        start = word.start() if word is not None else len(head)
        try:
            _, stop = self._standing()
        except RefusedRequest:
            stop = None
        if stop is None:
            return {"targets": []}
        names = [n for n in map(stop.spelled, (n.name for n in stop.names())) if n.startswith(head[start:])]
        targets = [{"label": n, "start": start, "length": len(head) - start} for n in names[:CHILDREN]]
        return {"targets": targets}

    @request("exceptionInfo")
    def exception_info(self, arguments: Body) -> Answer:
        found = self.stop.diagnostic
        if found is None:
            raise RefusedRequest("nothing is wrong here")
        details = {"message": found.message, "typeName": found.code, "stackTrace": render([found])}
        about = {"exceptionId": found.code, "description": found.message}
        return {**about, "breakMode": "always", "details": details}

    @request("readMemory")
    def read_memory(self, arguments: Body) -> Answer:
        reference = arg(arguments, "memoryReference", str, "")
        offset, count = arg(arguments, "offset", int, 0), arg(arguments, "count", int, 0)
        interpreter = CommandInterpreter(self.session, lambda text: None)
        _ = self.stop
        at = interpreter.address(reference, "u8")
        low = max(0, at.offset + offset)
        high = min(low + max(0, min(count, MOST_BYTES)), at.buffer.data.size)
        data = at.buffer.data[low:high].tobytes() if low < high else b""
        address = f"{at.buffer.space}:{at.buffer.base + low:#x}"
        return {
            "address": address,
            "data": base64.b64encode(data).decode(),
            "unreadableBytes": max(0, count - len(data)),
        }

    @request("source")
    def source(self, arguments: Body) -> Answer:
        path = arg(arg(arguments, "source", dict, {}), "path", str, "")
        for source in self.session.known:
            if source.text and same_file(source.name, path):
                return {"content": source.text}
        raise RefusedRequest(f"cannot read the text of '{path[:200]}'")


def _around(op: Operation) -> list[Operation]:
    """Return the loops, vecscopes and sections around an operation, innermost first."""
    found: list[Operation] = []
    at = op.outer
    while at is not None and at.name != "func.func":
        if line_of(at):
            found.append(at)
        at = at.outer
    return found


def _text(n: int, text: str) -> Body:
    name, colon, rest = text.strip().partition(": ")
    if not colon:
        name, rest = str(n), text.strip()
    return {"name": name, "value": rest, "variablesReference": 0}
