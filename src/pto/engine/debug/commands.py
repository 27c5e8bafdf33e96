"""Commands of the prompt: one table, from which help, completion and documentation follow.

A command is a method with `@command(..)`. `run` turns errors in user input into a line of text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from ...diag import Source, did_you_mean
from ...isa.dtypes import SPELLINGS
from ...isa.machine import LOCATION_OF
from ..memory import Buffer, Pointer
from ..reference.core import Core
from . import state, values
from .expressions import Expression, ExpressionError
from .follower import CONTINUE, FINISH, NEXT, STEP_LINE, STEP_OP
from .points import Breakpoint, PointError, Watchpoint, same_file
from .session import DebugSession
from .stop import END, STEP, Named, Stop, label, number, text_of

#: Lines that `list` shows; default and limit of the numbers that `x` shows.
LISTED = 11
SHOWN, MOST_SHOWN = 8, 1024


class Command(NamedTuple):
    names: tuple[str, ...]
    usage: str
    doc: str
    group: str
    method: str
    completes: str  # kind of its argument: names, points, info, cores, or nothing

    @property
    def name(self) -> str:
        return self.names[0]


COMMANDS: list[Command] = []
_Method = TypeVar("_Method", bound=Callable[..., object])
GROUPS = ("going on", "going back", "stopping", "looking", "else")


def command(
    names: str, group: str, doc: str, usage: str = "", completes: str = ""
) -> Callable[[_Method], _Method]:
    def add(method: _Method) -> _Method:
        COMMANDS.append(Command(tuple(names.split()), usage, doc, group, method.__name__, completes))
        return method

    return add


#: Topics of `info`: topic -> a line.
TOPICS = {
    "breakpoints": "breakpoints and watchpoints, and how often each was hit",
    "names": "the values that the operation sees",
    "args": "the arguments of the function",
    "loops": "loops around the operation, and their counters",
    "flags": "flags, tokens and semaphores that are set",
    "fifos": "FIFOs of the block and what is in them",
    "pipes": "what is queued on each pipe of the core",
    "cores": "all cores at work, and what they do",
    "waits": "waits of all cores and pipes, and their causes",
    "files": "files that operations come from",
}


class Quit(Exception):
    """The user leaves."""


class CommandInterpreter:
    """Commands of a session. `write` prints one line."""

    def __init__(self, session: DebugSession, write: Callable[[str], None]) -> None:
        self.session = session
        self.write = write
        self.displays: list[Expression] = []
        self._core: Core | None = None  # the core to show, if not the one that stopped
        self._listed: tuple[str, int] | None = None
        self._last = ""

    # -- position --------------------------------------------------------------------------------------

    @property
    def stop(self) -> Stop:
        found = self.session.stop
        if found is None:
            raise PointError("the launch has not begun: 'continue' or 'step' begins it")
        return found.on(self._core) if self._core is not None else found

    def show(self, stop: Stop | None) -> None:
        """Show a new stop."""
        self._core = self._listed = None
        if stop is None:
            return
        for text in stop.report():
            self.write(text)
        for expression in self.displays if stop.reason != END else ():
            self.write(f"  {expression.text} = {self._one_line(expression)}")

    def _one_line(self, expression: Expression) -> str:
        try:
            return shown_line(self.stop, self.stop.evaluate(expression))
        except ExpressionError as e:
            return self._plain(str(e))

    # -- running commands ------------------------------------------------------------------------------

    def run(self, text: str, repeat: bool = False) -> bool:
        """Run one command; return True if the session goes on. With `repeat` an empty line repeats the last
        command."""
        text = text.strip()
        if not text or text.startswith("#"):
            if text or not repeat or not self._last:
                return True
            text = self._last
        self._last = text
        try:
            self._run(text)
        except Quit:
            return False
        except (PointError, ExpressionError) as e:
            self.write(self._plain(str(e)))
        return True

    def _plain(self, text: str) -> str:
        return self.session.stop.grid.words.plain(text) if self.session.stop is not None else text

    def _run(self, text: str) -> None:
        m = re.match(r"([A-Za-z][\w-]*|\?)(/\w+)?\s*(.*)$", text, re.DOTALL)
        if m is None:
            raise PointError(f"unknown command '{text[:60]}'; try 'help'")
        found = find(m[1])
        getattr(self, found.method)(m[3].strip(), (m[2] or "/")[1:])

    # -- going on --------------------------------------------------------------------------------------

    def _go(self, kind: str) -> Stop | None:
        session = self.session
        if not session.begun:
            return session.start(entry=kind != CONTINUE)
        return session.go(session.order(kind, self._core))

    def _times(self, argument: str, move: Callable[[], Stop | None], stepping: bool = True) -> None:
        """Move so many times, unless another reason stops the launch; show the last stop."""
        if argument and not argument.isdigit():
            raise PointError(f"expected a number of times, got '{argument[:40]}'")
        stop = move()
        for _ in range(min(int(argument), 1 << 20) - 1 if argument else 0):
            if stop is None or stop.over or stop.note or (stepping and stop.reason != STEP):
                break
            stop = move()
        self.show(stop)

    @command("continue c", "going on", "Go on to the next breakpoint, watchpoint, finding or fault.", "[N]")
    def go_on(self, argument: str, option: str) -> None:
        self._times(argument, lambda: self._go(CONTINUE), stepping=False)

    @command("step s", "going on", "Go to the next line that this core comes to.", "[N]")
    def step(self, argument: str, option: str) -> None:
        self._times(argument, lambda: self._go(STEP_LINE))

    @command("stepi si", "going on", "Go to the next operation of this core, also on the same line.", "[N]")
    def stepi(self, argument: str, option: str) -> None:
        self._times(argument, lambda: self._go(STEP_OP))

    @command("next n", "going on", "The same as step, over the bodies of loops, calls and vecscopes.", "[N]")
    def next(self, argument: str, option: str) -> None:
        self._times(argument, lambda: self._go(NEXT))

    @command("finish fin", "going on", "Go on until the innermost loop, vecscope, section or call is left.")
    def finish(self, argument: str, option: str) -> None:
        self.show(self._go(FINISH))

    @command("until u", "going on", "Go on to a line, once.", "LINE", "lines")
    def until(self, argument: str, option: str) -> None:
        self._break(argument, temporary=True)
        self.show(self._go(CONTINUE))

    @command("run r", "going on", "Start the launch again, from its beginning.")
    def again(self, argument: str, option: str) -> None:
        self.session.restart()
        self.show(self._go(CONTINUE))

    # -- going back ------------------------------------------------------------------------------------

    def _back(self, way: str) -> Stop:
        return self.session.back(way, self._core or self.stop.at)

    @command("reverse-step rs", "going back", "Go back to the line that this core came to before.", "[N]")
    def reverse_step(self, argument: str, option: str) -> None:
        self._times(argument, lambda: self._back(STEP_LINE))

    @command(
        "reverse-next rn", "going back", "The same, over the bodies of loops, calls and vecscopes.", "[N]"
    )
    def reverse_next(self, argument: str, option: str) -> None:
        self._times(argument, lambda: self._back(NEXT))

    @command(
        "reverse-continue rc", "going back", "Go back to the last breakpoint, watchpoint or finding.", "[N]"
    )
    def reverse_continue(self, argument: str, option: str) -> None:
        self._times(argument, lambda: self._back(CONTINUE), stepping=False)

    # -- stopping --------------------------------------------------------------------------------------

    def _break(self, argument: str, temporary: bool = False) -> Breakpoint:
        session = self.session
        stop = session.stop
        file = self.stop.file if stop is not None else ""
        if argument.startswith("if ") or not argument:
            if stop is None or not self.stop.line:
                raise PointError("missing place: write LINE, LINE:N, FILE:LINE or @FUNCTION")
            argument = f"{self.stop.line} {argument}".strip()
        made = Breakpoint.parsed(argument, session.places, file, temporary)
        session.points.add(made, stop.moment if stop is not None else 0)
        session.changed()
        return made

    @command(
        "break b", "stopping", "Stop before a line: every time, the N-th time, or where a condition holds.",
        "[FILE:]LINE[:N] | @FUNCTION [if CONDITION]", "lines",
    )  # fmt: skip
    def break_(self, argument: str, option: str) -> None:
        made = self._break(argument)
        moved = f" (line {made.asked} has no operation)" if made.asked != made.line else ""
        self.write(f"Breakpoint {made.number} at {made}{moved}")

    @command("tbreak", "stopping", "The same, once.", "[FILE:]LINE[:N] | @FUNCTION [if CONDITION]", "lines")
    def tbreak(self, argument: str, option: str) -> None:
        made = self._break(argument, temporary=True)
        self.write(f"Temporary breakpoint at {made}")

    @command(
        "watch", "stopping", "Stop after a write to a part of a tile, or where a scalar changes.",
        "%TILE[R, C] | %SCALAR", "names",
    )  # fmt: skip
    def watch(self, argument: str, option: str) -> None:
        made = Watchpoint(argument)
        if self.session.stop is not None:
            found = self.stop.find(made.index.name)
            if isinstance(found.value, values.PLACES):
                matrix = values.ValueMatrix(found.value, found.type)
                rows, cols = matrix.part(made.index.slices)
                if len(rows) * len(cols) > values.MOST:
                    raise PointError(f"{len(rows)}x{len(cols)} elements: watch {values.MOST} at most")
                if matrix.place.__class__ is not None and len(rows) and len(cols):
                    matrix.byte(rows.start, cols.start)
        self.session.points.add(made)
        try:
            self.session.changed()
        except PointError:
            self.session.points.remove(made)
            raise
        self.write(f"Watchpoint {made.number}: {made}")

    @command(
        "delete d",
        "stopping",
        "Delete breakpoints and watchpoints, all of them without a number.",
        "[NUMBER ..]",
        "points",
    )
    def delete(self, argument: str, option: str) -> None:
        for point in self._points(argument):
            self.session.points.remove(point)
        self.session.changed()

    @command(
        "disable", "stopping", "Keep breakpoints and watchpoints, but pass them.", "[NUMBER ..]", "points"
    )
    def disable(self, argument: str, option: str) -> None:
        for point in self._points(argument):
            point.enabled = False
        self.session.changed()

    @command("enable", "stopping", "Stop at them again.", "[NUMBER ..]", "points")
    def enable(self, argument: str, option: str) -> None:
        for point in self._points(argument):
            point.enabled = True
        self.session.changed()

    def _points(self, argument: str) -> list[Breakpoint | Watchpoint]:
        if not argument:
            return list(self.session.points.visible)
        found: list[Breakpoint | Watchpoint] = []
        for word in argument.replace(",", " ").split():
            if not word.isdigit():
                raise PointError(
                    f"expected the number of a breakpoint, got '{word[:40]}'; 'info breakpoints' lists them"
                )
            found.append(self.session.points.find(int(word)))
        return found

    # -- looking ---------------------------------------------------------------------------------------

    @command(
        "print p", "looking", "Show a value, part of a tile, or the result of an expression; /x shows bits.",
        "[/x] EXPRESSION", "names",
    )  # fmt: skip
    def print_(self, argument: str, option: str) -> None:
        hex = self._hex(option)
        expression = Expression(argument)
        if expression.index is None:
            self.write(values.scalar(self.stop.evaluate(expression), hex=hex))
            return
        found = self.stop.find(expression.index.name)
        name = self.stop.spelled(found.name)
        if isinstance(found.value, values.PLACES):
            if all(s.single for s in expression.index.slices) and expression.index.slices:
                text = values.element(found.value, expression.index.slices, found.type, hex)
                self.write(f"{expression.text} = {text}")
                return
            try:
                shown = values.table(found.value, expression.index.slices, found.type, hex, name)
            except ExpressionError as e:
                raise ExpressionError(f"{name} {e}") from None
            for text in shown:
                self.write(self._plain(text))
        elif expression.index.slices:
            raise ExpressionError(f"{name} has no elements")
        else:
            self.write(f"{name} = {self.stop.shown(found, hex)}")
        if found.stale:
            self.write("  (of an earlier iteration: it is computed again after this line)")

    @staticmethod
    def _hex(option: str) -> bool:
        if option not in ("", "x"):
            raise PointError(f"'/{option}' is unknown: /x shows bits")
        return option == "x"

    @command(
        "x", "looking", "Show memory: from an address (vec:0x100, gm:0x10000000), or of a value.",
        "[/COUNT] SPACE:ADDRESS | %NAME [DTYPE]", "names",
    )  # fmt: skip
    def examine(self, argument: str, option: str) -> None:
        m = re.fullmatch(r"(\d*)(x?)", option)
        if m is None:
            raise PointError(
                f"'/{option}' is unknown: write a count, and x for bits, as in x/16x vec:0x100 f32"
            )
        count = min(int(m[1] or SHOWN), MOST_SHOWN)
        words = argument.rsplit(None, 1)
        dtype = ""
        if len(words) == 2 and words[1].lower() in SPELLINGS:
            argument, dtype = words[0], SPELLINGS[words[1].lower()].name
        at = self.address(argument, dtype)
        matrix = values.ValueMatrix(at)
        cols = range(min(count, matrix.shape[1]))
        if not cols:
            raise PointError(f"no memory there: {at.buffer.name} has {at.buffer.data.size} bytes")
        per = 8 if matrix.bits <= 32 else 4
        for first in range(0, len(cols), per):
            part = cols[first : first + per]
            texts = values.texts(matrix, range(1), part, bool(m[2]))[0]
            byte = at.buffer.base + at.offset + first * matrix.bits // 8
            self.write(f"{at.buffer.space}:{byte:#x}:  {'  '.join(texts)}")

    def address(self, text: str, dtype: str) -> Pointer:
        m = re.fullmatch(r"(\w+)\s*:\s*(0[xX][0-9a-fA-F]{1,16}|\d{1,18})", text)
        if m is not None:
            space, address = m[1].lower(), int(m[2], 0)
            if space == "gm":
                buffer = self.stop.at.gm.find(address)
                if buffer is None:
                    raise PointError(f"no array of the launch contains address {address:#x}")
                return Pointer(buffer, address - buffer.base, dtype or "u8")
            found: Buffer | None = self.stop.at.buffers.get(LOCATION_OF.get(space, ""))
            if found is None:
                hint = did_you_mean(space, ("gm", *LOCATION_OF))
                raise PointError(f"no memory '{space}'; {hint or 'spaces are gm, ' + ', '.join(LOCATION_OF)}")
            return Pointer(found, address, dtype or "u8")
        expression = Expression(text)
        if expression.index is None:
            raise PointError("expected SPACE:ADDRESS, as in vec:0x100, or a name, as in %t[0, 3]")
        value = self.stop.find(expression.index.name)
        if not isinstance(value.value, values.PLACES):
            raise ExpressionError(f"{self.stop.spelled(value.name)} has no address in memory")
        matrix = values.ValueMatrix(value.value, value.type)
        rows, cols = matrix.part(expression.index.slices)
        if not rows or not cols:
            raise ExpressionError("is empty")
        buffer, low, _ = matrix.byte(rows.start, cols.start)
        return Pointer(buffer, low, dtype or matrix.dtype)

    @command("info i", "looking", f"Tell about {', '.join(TOPICS)}.", "TOPIC", "info")
    def info(self, argument: str, option: str) -> None:
        names = {
            "locals": "names",
            "variables": "names",
            "threads": "cores",
            "b": "breakpoints",
            "watchpoints": "breakpoints",
        }
        topic = names.get(argument, argument)
        near = [t for t in TOPICS if topic and t.startswith(topic)]
        if len(near) != 1:
            for name, doc in TOPICS.items():
                self.write(f"  info {name:<12} {doc}")
            if argument:
                raise PointError(did_you_mean(argument, TOPICS) or f"unknown topic '{argument[:40]}' of info")
            return
        for text in getattr(self, f"_info_{near[0]}")():
            self.write(text)

    def _info_breakpoints(self) -> Iterator[str]:
        points = self.session.points.visible
        for p in points:
            kind = "break" if isinstance(p, Breakpoint) else "watch"
            off = "" if p.enabled else ", disabled"
            yield f"{p.number:>3}  {kind}  {p}, hit {p.hits} time{'' if p.hits == 1 else 's'}{off}"
        if not points:
            yield "no breakpoints and no watchpoints"

    def _info_names(self) -> Iterator[str]:
        found = list(self.stop.names())
        for name in found[:100]:
            stale = "  (of an earlier iteration)" if name.stale else ""
            yield f"{self.stop.spelled(name.name)}: {self.stop.shown(name)}{stale}"
        if len(found) > 100:
            yield f".. and {len(found) - 100} more"

    def _info_args(self) -> Iterator[str]:
        stop = self.stop
        frames = stop.frames
        for name, given, type in stop.grid.arguments(stop.rank):
            yield f"{stop.spelled(name)}: {stop.shown(Named(name, given, type))}"
        if self.session.places.open:  # further values of its code are operands of calls
            return
        for value in frames[0].code.function.regions[0].blocks[0].args if frames else ():
            now = frames[0].regs[frames[0].code.slots[value]]
            yield f"%{value.name}: {values.line(now, value.type)}"

    def _info_loops(self) -> Iterator[str]:
        return state.loops(self.stop)

    def _info_flags(self) -> Iterator[str]:
        return state.flags(self.stop.at)

    def _info_fifos(self) -> Iterator[str]:
        return state.fifos(self.stop.at)

    def _info_pipes(self) -> Iterator[str]:
        return state.pipes(self.stop.at)

    def _info_cores(self) -> Iterator[str]:
        found = self.session.stop
        return state.cores(found or self.stop, self.stop.at)

    def _info_waits(self) -> Iterator[str]:
        return state.waits(self.session.stop or self.stop)

    def _info_files(self) -> Iterable[str]:
        found = dict.fromkeys([*self.session.places.files, *(s.name for s in self.session.known)])
        return [name for name in found if name] or ["no operation has a source location"]

    @command(
        "core",
        "looking",
        "Look at another core: its number or name, as 'info cores' has them.",
        "[NUMBER | NAME]",
        "cores",
    )
    def core(self, argument: str, option: str) -> None:
        if argument:
            self._core = self._found(argument)
        self.write(f"core {number(self.stop.at)}: {label(self.stop.at)}")
        self._where_line(self.stop)

    def _found(self, argument: str) -> Core:
        active = state.all_cores(self.stop.grid)
        if argument.isdigit():
            match = [c for c in active if number(c) == int(argument)]
        else:
            match = [c for c in active if label(c).lower() == argument.lower()]
            match = match or [c for c in active if c.name.lower() == argument.lower()]
        if len(match) != 1:
            what = "is not active" if not match else "names several cores"
            raise PointError(f"'{argument[:40]}' {what}; 'info cores' lists them")
        return match[0]

    def _where_line(self, stop: Stop) -> None:
        if stop.op is None:
            self.write("  it has ended")
        else:
            self.write(f"  before {stop.call} at {stop.place}")
            if stop.source_line:
                self.write(f"{stop.line}\t{stop.source_line}")

    @command(
        "where bt backtrace", "looking", "Show the function, the loops around the operation, and who called."
    )
    def where(self, argument: str, option: str) -> None:
        stop = self.stop
        frames = stop.frames
        if not frames:
            self.write("nowhere: the launch has ended" if stop.over else "nowhere")
            return
        for n, (name, place, what) in enumerate(stop.stack):
            self.write(f"#{n}  {name} at {place}{f': {what}' if what else ''}")
        kernel = self.session.kernel.name
        if self.session.places.open and stop.stack[-1][0] != kernel:  # it was inlined into its caller
            self.write(f"    called by {kernel}, or by what it calls")
        for text in state.loops(stop):
            if "no loop" not in text:
                self.write(f"    in the loop of {text}")
        scope = stop.event.scope if stop.event is not None else None
        if scope is not None or stop.at.interval is not None:
            self.write("    in a vecscope, on PIPE_V")
        self.write(f"    {stop.core}, moment {stop.moment}")

    @command(
        "list l",
        "looking",
        "Show lines of the program: around the stop, around a line, or a range of lines.",
        "[[FILE:]LINE[, LINE]]",
        "lines",
    )
    def list_(self, argument: str, option: str) -> None:
        file, first, last = self._lines(argument)
        stop = self.session.stop
        source = self._source(file)
        if source is None or not source.text:
            raise PointError(f"cannot read the text of {file}")
        last = min(last, source.lines)
        if first > last:
            raise PointError(f"{os.path.basename(file)} has {source.lines} lines")
        breaks = {b.line for b in self.session.points.breaks if b.file == file and b.enabled}
        for n in range(first, last + 1):
            here = stop is not None and self.stop.line == n and self.stop.file == file
            mark = "->" if here else " *" if n in breaks else "  "
            self.write(f"{mark} {n}\t{source.line(n)}".rstrip())
        self._listed = file, last

    def _source(self, file: str) -> Source | None:
        for source in self.session.known:
            if source.name == file or same_file(source.name, file):
                return text_of(source)
        return None

    def _lines(self, argument: str) -> tuple[str, int, int]:
        places = self.session.places
        stop = self.session.stop
        file = self.stop.file if stop is not None and self.stop.file else places.main
        if not argument:
            if self._listed is not None:
                return self._listed[0], self._listed[1] + 1, self._listed[1] + LISTED
            line = self.stop.line if stop is not None else 1
            return file, max(1, line - LISTED // 2), max(1, line - LISTED // 2) + LISTED - 1
        m = re.fullmatch(r"(?:(.*\D.*?):)?(\d{1,9})(?:\s*,\s*(\d{1,9}))?", argument)
        if m is None:
            raise PointError("unknown lines: write LINE, FIRST,LAST or FILE:LINE")
        if m[1]:
            file = next((f for f in places.files if same_file(f, m[1])), "") or places.file(m[1])
        line = int(m[2])
        if m[3]:
            return file, max(1, line), int(m[3])
        first = max(1, line - LISTED // 2)
        return file, first, first + LISTED - 1

    @command(
        "display",
        "looking",
        "Show an expression at every stop; without one, those that are shown.",
        "[EXPRESSION]",
        "names",
    )
    def display(self, argument: str, option: str) -> None:
        if argument:
            self.displays.append(Expression(argument))
        for n, expression in enumerate(self.displays):
            self.write(f"{n}: {expression.text} = {self._one_line(expression)}")

    @command(
        "undisplay",
        "looking",
        "Stop showing an expression; without a number, stop showing all of them.",
        "[NUMBER]",
    )
    def undisplay(self, argument: str, option: str) -> None:
        if not argument:
            self.displays.clear()
        elif argument.isdigit() and int(argument) < len(self.displays):
            del self.displays[int(argument)]
        else:
            raise PointError(f"no display '{argument[:40]}'")

    # -- else ------------------------------------------------------------------------------------------

    @command("echo", "else", "Show a text: for scripts.", "TEXT")
    def echo(self, argument: str, option: str) -> None:
        self.write(argument)

    @command("help h ?", "else", "Show the commands, or the description of one.", "[COMMAND]", "commands")
    def help(self, argument: str, option: str) -> None:
        if argument:
            found = find(argument.split()[0])
            self.write(f"{' | '.join(found.names)} {found.usage}".rstrip())
            self.write(f"  {found.doc}")
            return
        for group in GROUPS:
            self.write(f"{group}:")
            for c in COMMANDS:
                if c.group == group:
                    short = f" ({', '.join(c.names[1:])})" if c.names[1:] else ""
                    self.write(f"  {c.name + short:<22} {c.doc}")

    @command("quit q exit", "else", "Leave; the launch ends where it stands.")
    def quit(self, argument: str, option: str) -> None:
        raise Quit

    # -- completion ------------------------------------------------------------------------------------

    def completions(self, text: str) -> list[str]:
        """Return the completions of a line, as whole lines."""
        head, _, last = text.rpartition(" ")
        if not head:
            return sorted(c.name + (" " if c.usage else "") for c in COMMANDS if c.name.startswith(text))
        try:
            found = find(head.split()[0].split("/")[0])
        except PointError:
            return []
        return [f"{head} {w}" for w in self._words(found.completes) if w.startswith(last)]

    def _words(self, kind: str) -> list[str]:
        if kind == "info":
            return list(TOPICS)
        if kind == "commands":
            return [c.name for c in COMMANDS]
        if kind == "points":
            return [str(p.number) for p in self.session.points.visible]
        if kind == "lines":
            return [f"@{name}" for name in self.session.places.functions]
        if self.session.stop is None:
            return []
        if kind == "names":
            return sorted(self.stop.spelled(n.name) for n in self.stop.names())
        if kind == "cores":
            return [label(c) for c in state.all_cores(self.stop.grid)]
        return []


def shown_line(stop: Stop, found: object) -> str:
    """Return the value of an expression at a stop in one line."""
    return stop.shown(found) if isinstance(found, Named) else values.scalar(found)


def find(word: str) -> Command:
    """Return a command by its name, a short name, or the beginning of its name."""
    for c in COMMANDS:
        if word in c.names:
            return c
    near = [c for c in COMMANDS if c.name.startswith(word)]
    if len(near) == 1:
        return near[0]
    if near:
        raise PointError(f"'{word}' may be {' or '.join(c.name for c in near)}")
    hint = did_you_mean(word, [n for c in COMMANDS for n in c.names])
    raise PointError(f"no command '{word[:40]}'; {hint or 'help lists them'}")
