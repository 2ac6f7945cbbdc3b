"""A command that is typed as one text and that no shell will ever see.

It is split into words like a shell would.  What only a shell understands is looked for in the text
itself and not in the words: in quotes it is an argument like any other (`grep 'a|b'`), and so is
what stands in the middle of an address (`https://…?a=1&b=2`).
"""

import re

NO_SHELL = "no shell runs it"
_QUOTES = "'\""
_OPERATORS = frozenset("|&;<>`")
_EXPANSION = re.compile(r"\$(?:[({]|[A-Za-z_])")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def word_for_a_shell(line: str) -> str:
    """The first word of a line that only a shell would understand; empty where there is none."""
    for place, word in enumerate(_outside_of_quotes(line)):
        is_setting = place == 0 and _ASSIGNMENT.match(word) is not None
        if is_setting or _has_operator(word) or _EXPANSION.search(word):
            return word
    return ""


def _has_operator(word: str) -> bool:
    if "://" in word and not word.endswith("&"):
        word = word.replace("&", "")
    return not _OPERATORS.isdisjoint(word)


def _outside_of_quotes(line: str) -> list[str]:
    """The words of a line, each without what is quoted in it."""
    kept: list[str] = []
    quote = ""
    is_escaped = False
    for char in line:
        if is_escaped:
            is_escaped = False
        elif char == "\\" and quote != "'":
            is_escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        else:
            kept.append(char)
    return "".join(kept).split()
