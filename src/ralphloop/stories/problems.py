"""What is wrong with a story file, collected so that one look is enough to repair it.

A person fixing a file at 22:00 wants all mistakes at once, each with its place; a file with ten
thousand mistakes must not print ten thousand lines.
"""

from __future__ import annotations

from pathlib import Path

from ralphloop.errors import InputError
from ralphloop.stories.names import quoted

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
