"""Regular expressions that are compiled when they are first used.

The grammars that read prose are large and most starts of the program never need them; compiling
them at import would cost every command what only an analysis should pay.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

_Matches = Callable[..., re.Match[str] | None]


class LazyRegex:
    """A regular expression that costs nothing until it is asked something."""

    match: _Matches
    fullmatch: _Matches
    search: _Matches
    finditer: Callable[..., Iterator[re.Match[str]]]
    sub: Callable[..., str]
    findall: Callable[..., list[str]]
    split: Callable[..., list[str]]

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        """The first question compiles it; from then on its own methods answer, without us."""
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)
        return method


def any_case(source: str) -> LazyRegex:
    return LazyRegex(source, re.IGNORECASE)
