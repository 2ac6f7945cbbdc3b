"""Typed access to one object of a story file; what has the wrong type is a named problem.

Absent and null mean the same everywhere: generators write both for "nothing".  Each method takes
alternative names for a field and uses the first one present.  `Problems` collects what
is wrong, each with its place.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from ralphloop.errors import InputError
from ralphloop.stories.names import quoted

_UNUSABLE = re.compile("[\x00\ud800-\udfff]")  # cannot be stored, printed or passed to a process
_NUMBER_LIMIT = 2**53  # beyond it, other tools that read the file see another number
_SHELL_WORDS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "<<", "2>&1", "2>"})


class Fields:
    """One JSON or YAML object and its place in the file."""

    def __init__(self, raw: Mapping[object, object], place: str, problems: Problems) -> None:
        self._raw = raw
        self._place = place
        self._problems = problems

    def value(self, *names: str) -> tuple[object, str]:
        """The first of these fields that is not null, and its place."""
        for name in names:
            if (value := self._raw.get(name)) is not None:
                return value, self._at(name)
        return None, self._at(names[0])

    def problem(self, place: str, reason: str) -> None:
        self._problems.add(place, reason)

    def text(self, *names: str) -> str:
        """A text, empty where absent."""
        value, place = self.value(*names)
        return "" if value is None else self._text(value, place)

    def required_text(self, name: str) -> str:
        """A text that says something."""
        value, place = self.value(name)
        if value is None:
            self.problem(place, "missing" if name not in self._raw else "is null")
            return ""
        text = self._text(value, place)
        if isinstance(value, str) and not text.strip():
            self.problem(place, "is empty")
        return text

    def flag(self, name: str) -> bool:
        """True or false, false where absent."""
        value, place = self.value(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.problem(place, f"must be true or false, found {found(value)}")
        return False

    def number(self, name: str) -> int | float | None:
        """A finite number."""
        value, place = self.value(name)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            if -_NUMBER_LIMIT < value < _NUMBER_LIMIT:
                return value
            self.problem(place, "is out of range")
            return None
        self.problem(place, f"must be a number (the lowest comes first), found {found(value)}")
        return None

    def inner(self, name: str) -> Fields:
        """The fields of an object inside this one; none where it is absent or something else."""
        value = self._raw.get(name)
        raw = value if isinstance(value, dict) else {}
        return Fields(raw, self._at(name), self._problems)

    def items(self, *names: str) -> list[tuple[object, str]]:
        """The entries of a list with their places; a lone text counts as one entry."""
        value, place = self.value(*names)
        if value is None:
            return []
        if isinstance(value, str):
            return [(value, place)] if value.strip() else []
        if isinstance(value, list):
            return [(entry, f"{place}[{at}]") for at, entry in enumerate(value)]
        self.problem(place, f"must be a list, found {found(value)}")
        return []

    def lines(self, *names: str) -> list[str]:
        """A list of texts or of objects that carry one, as plain lines."""
        lines: list[str] = []
        for entry, place in self.items(*names):
            lines.extend(line for raw in self._line(entry, place) if (line := raw.strip()))
        return lines

    def argv(self, name: str) -> tuple[str, ...] | None:
        """A command: a list of arguments, or a text that is split like a shell would split it."""
        value, place = self.value(name)
        if value is None or value in ("", []):
            return None
        words = self._split(value, place) if isinstance(value, str) else self._arguments(name)
        return tuple(words) or None

    def _at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def _text(self, value: object, place: str) -> str:
        if not isinstance(value, str):
            self.problem(place, f"must be text, found {found(value)}")
            return ""
        if bad := _UNUSABLE.search(value):
            self.problem(place, f"holds a character that cannot be used: {quoted(bad[0])}")
        return value

    def _line(self, entry: object, place: str) -> list[str]:
        if not isinstance(entry, dict):
            return self._text(entry, place).splitlines()
        fields = Fields(entry, place, self._problems)
        value, at = fields.value("description", "text", "title")
        text = self._text(value, at) if value is not None else ""
        if value is None:
            self.problem(place, "has no description")
        number = entry.get("id")
        return [f"{number}: {text}" if isinstance(number, str | int) and number != "" else text]

    def _arguments(self, name: str) -> list[str]:
        entries = self.items(name)
        for program, place in entries[:1]:
            if isinstance(program, str):
                self._check_program(program, place)
        return [self._text(entry, place) for entry, place in entries]

    def _check_program(self, program: str, place: str) -> None:
        words = program.split()
        if not words:
            self.problem(place, "names no program")
        elif len(words) > 1 and "/" not in program:
            hint = f"write the whole command as one text, or {quoted(words[0])} alone"
            self.problem(place, f"the program is {quoted(program)}: {hint}")

    def _split(self, value: str, place: str) -> list[str]:
        try:
            words = shlex.split(self._text(value, place))
        except ValueError as error:
            self.problem(place, f"cannot be split into arguments: {str(error).lower()}")
            return []
        if operators := [word for word in words if word in _SHELL_WORDS]:
            hint = 'no shell runs it; write ["sh", "-c", "…"] if you want one'
            self.problem(place, f"uses {quoted(operators[0])}: {hint}")
        return words


_SHOWN = 10


class Problems:
    """Mistakes of one file, in the order they were found; only the first few are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: list[tuple[str, str]] = []
        self._count = 0

    @property
    def wants_detail(self) -> bool:
        """False once further problems are only counted, so that costly hints can be left out."""
        return len(self._found) < _SHOWN

    def add(self, place: str, reason: str) -> None:
        """Note one mistake."""
        self._count += 1
        if self.wants_detail:
            self._found.append((place, reason))

    def fail(self, place: str, reason: str) -> InputError:
        """Note a mistake that makes reading on pointless, and give the error to raise."""
        self.add(place, reason)
        return self.error()

    def raise_if_any(self) -> None:
        """Stop with everything found so far."""
        if self._count:
            raise self.error()

    def error(self) -> InputError:
        """All that was found, as one error."""
        name = self._path.name
        if self._count == 1:
            place, reason = self._found[0]
            return InputError(reason, self._next_step, place=f"{name}: {place}" if place else name)
        lines = [f"{place}: {reason}" if place else reason for place, reason in self._found]
        if self._count > _SHOWN:
            lines.append(f"and {self._count - _SHOWN} more")
        listing = "\n".join(f"  {line}" for line in lines)
        return InputError(f"{self._count} problems\n{listing}", self._next_step, place=name)

    @property
    def _next_step(self) -> str:
        return f"Correct {self._path} and run the command again. Nothing was changed."


def found(value: object) -> str:
    """Name a value of the wrong kind, for "must be …, found …"."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if value.bit_length() > 64:
            return "a number out of range"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {quoted(value)}"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__} (quote it to make it text)"
