"""Regular expressions that are compiled when they are first used.

The grammars that read prose are large and most starts of the program never need them; compiling
them at import would cost every command what only an analysis should pay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property


class LazyRegex:
    """A regular expression that costs nothing until it is asked something."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        return self._regex.match(text, start)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._regex.fullmatch(text)

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        return self._regex.search(text, start)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._regex.finditer(text)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self._regex.sub(replacement, text)

    def findall(self, text: str) -> list[str]:
        return self._regex.findall(text)

    def split(self, text: str, maxsplit: int = 0) -> list[str]:
        return self._regex.split(text, maxsplit)
