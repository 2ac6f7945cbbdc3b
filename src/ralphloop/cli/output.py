"""All that ralph prints: stdout has what was asked for, stderr what people should know besides.

Colour appears only on a terminal and never when `NO_COLOR` is set.  Nothing heavy is imported:
every command passes through here.  Words of files or agents may carry terminal control sequences:
everything printed passes one gate, which leaves nothing but colours; `safe` takes those off, too.
Only `emit_bytes` is exact, for `ralph log --raw`.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_STDOUT = 1
_STDERR = 2
_LABEL_WIDTH = 13
_NARROWEST = 50
_WIDEST = 110
_LONGEST_TEXT = 1_000
ANSWER_S = 60.0  # then nobody is there
_GLANCE_S = 0.2
_COMMAND = re.compile(r"`[^`]{1,100}`")
_MOMENT = re.compile(r"[a-z]+_at|since|until|last_activity")
CIRCUIT = {"CLOSED": "green", "HALF_OPEN": "yellow", "OPEN": "red"}  # its colours
_GLUE = "\x1f"  # a character that no text has here: they are all cleaned
_C1 = range(0x7F, 0xA0)
_IN_JSON = (*_C1, 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPED = {code: f"\\u{code:04x}" for code in _IN_JSON}


def emit_json(value: object, *, indent: int | None = 2) -> None:
    """Print a value as JSON; structs and enums are values like any other."""
    import msgspec

    plain = msgspec.to_builtins(value, str_keys=True)
    text = json.dumps(plain, indent=indent, ensure_ascii=not speaks_unicode(sys.stdout))
    sys.stdout.write(text.translate(_ESCAPED) + "\n")


def picked(value: object, *names: str) -> dict[str, object]:
    """Some fields of a value under their own names, for JSON; moments as ISO 8601."""
    from ralphloop.text.durations import iso

    found = {name: getattr(value, name) for name in names}
    moments = {name: at for name, at in found.items() if _MOMENT.fullmatch(name)}
    return found | {name: iso(at) if at else None for name, at in moments.items()}


def show(lines: Iterable[str], data: object, *, as_json: bool, indent: int | None = 2) -> None:
    """The same for people or for programs; what is costly is a function that makes it."""
    if as_json:
        emit_json(data() if callable(data) else data, indent=indent)
    else:
        emit_lines(lines)


def emit_lines(lines: Iterable[str]) -> None:
    """Print lines that were asked for; whatever is in them, they do no more than that."""
    for line in lines:
        sys.stdout.write(safe(line, colours=True) + "\n")


def emit_markdown(text: str) -> None:
    """Rendered and paged on a terminal, as git does; in a pipe as it is."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        emit_lines([text.rstrip("\n")])
        return
    import io

    from rich.console import Console
    from rich.markdown import Markdown

    columns = min(os.get_terminal_size(sys.stdout.fileno()).columns, _WIDEST)
    colours = not os.environ.get("NO_COLOR")
    drawn = Console(file=io.StringIO(), width=columns, force_terminal=True, no_color=not colours)
    with drawn.capture() as shown:
        drawn.print(Markdown(text, hyperlinks=False))
    os.environ.setdefault("LESS", "FRX")
    emit_paged(safe(shown.get(), colours=True), colours=True)


def emit_paged(text: str, *, colours: bool | None = None) -> None:
    """In the person's pager, which is never one that an agent put on PATH."""
    import click

    from ralphloop.proc.programs import only_trusted

    with only_trusted():
        click.echo_via_pager(text, color=colours)


def emit_text(text: str) -> None:
    sys.stdout.write(safe(text))


def row(label: str, text: str, *styles: str, width: int = _LABEL_WIDTH) -> Iterator[str]:
    """One labelled text; the label is coloured, further lines are indented below it."""
    lines = wrapped(text, indent=width)
    head = paint(label, *styles) + " " * max(1, width - len(label))
    yield head + lines[0] if lines else head.rstrip()
    yield from (" " * width + line for line in lines[1:])


def wrapped(text: str, *, indent: int = 0) -> list[str]:
    """The text as lines that fit beside an indentation; words and `commands` are left whole."""
    import shutil
    import textwrap

    from ralphloop.text.plain import one_line

    shown = _COMMAND.sub(lambda found: found[0].replace(" ", _GLUE), one_line(text, _LONGEST_TEXT))
    columns = min(max(shutil.get_terminal_size((80, 24)).columns, _NARROWEST), _WIDEST)
    lines = textwrap.wrap(shown, columns - indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines]


def key(prompt: str, known: str, *, err: bool = False) -> str:
    """One of these keys, waited for; the end of input is `q`."""
    import click

    click.echo(prompt, err=err, nl=False)
    pressed = " "
    while pressed not in known:
        try:
            pressed = click.getchar().lower() or "q"
        except EOFError:
            pressed = "q"
    click.echo(pressed, err=err)
    return pressed


def answers_yes(
    question: str, over: Callable[[], bool] = lambda: False, *, within_s: float = ANSWER_S
) -> bool:
    """Whether a person says yes on the terminal; no answer in time is a no.

    What was typed before is no answer.  It ends early once `over` says so.
    """
    import select
    import termios
    import time

    with suppress(OSError, termios.error):  # it is no terminal after all
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    choices = " [y/N] "
    sys.stderr.write("\n".join(wrapped(question, indent=len(choices))) + choices)
    sys.stderr.flush()
    deadline = time.monotonic() + within_s
    while not over() and (left := deadline - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], min(left, _GLANCE_S))[0]:
            return sys.stdin.readline().strip().lower() in ("y", "yes")
    note("no answer")
    return False


def emit_bytes(chunk: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(chunk)


def note(message: str) -> None:
    _beside(safe(message))


def warn(message: str) -> None:
    """Say what a person should look at, without stopping."""
    _beside(f"{paint('warning:', 'yellow', stream=sys.stderr)} {safe(message)}")


def error(message: str, next_step: str = "") -> None:
    _beside(f"{paint('error:', 'red', stream=sys.stderr)} {safe(message)}")
    if next_step:
        _beside(f"  next: {safe(next_step)}")


def paint(text: str, *styles: str, stream: TextIO | None = None) -> str:
    """The text in colour where the stream (stdout by default) shows colour, else as it is."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if not styles or plain or not (stream or sys.stdout).isatty():
        return text
    codes = ";".join(_STYLES[style] for style in styles)
    return f"\x1b[{codes}m{text}\x1b[0m"


def safe(text: str, *, colours: bool = False) -> str:
    """The text without characters that could move the cursor or change the terminal."""
    from ralphloop.text.plain import on_screen

    return on_screen(text, colours=colours)


def prepare_streams() -> None:
    """Let no character a terminal cannot show, and no stream that is closed, end the program."""
    # Started with `>&-`: without a stand-in, the next file opened would become our output.
    descriptor = -1
    while descriptor < _STDERR:
        descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor > _STDERR:
        os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = os.fdopen(_STDOUT, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(_STDERR, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # absent on replaced streams
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """Give the interpreter's last flush a place to go after the reader has left."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)


def _beside(line: str) -> None:
    """What stands beside the result ends nothing, also where nobody reads it any more."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def speaks_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"
