"""The same as `answers` for JavaScript, TypeScript, Go, Rust and Java: by their tokens alone.

No grammar is needed for it.  What is not understood counts as work, so that a table may be missed
and no honest function is taken for one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ralphloop.proof.answers import ChangedText

LANGUAGES = frozenset(".js .jsx .cjs .mjs .ts .mts .cts .tsx .go .rs .java".split())
_MOST_TOKENS = 100_000
_LONGEST_HEAD = 40  # tokens between the parameters of a function and its body
_LONGEST_TYPE = 30
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)"
    r"""|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)"""
    r"|(?P<number>\d[\w.]*)"
    r"|(?P<name>[A-Za-z_$][\w$]*)"
    r"|(?P<mark>===|!==|=>|==|!=|->|&&|\|\||<=|>=|\+\+|--|[+*/%-]=|\?\?|::|:=|\S)",
    re.DOTALL,
)
# Only Rust has them: elsewhere that is how a text in single quotes begins.
_LIFETIME = re.compile(rb"'[A-Za-z_]\w*(?![\w'])")
_IS_RUST = re.compile(rb"\bfn\s+\w")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CONTROL = frozenset("if for while switch catch match return loop select else do".split())
_WORKING_WORDS = frozenset(
    "for while loop do yield await function func fn try catch typeof instanceof in of range delete"
    " this self super".split()
)
_WORKING_MARKS = frozenset("+ * / % < > <= >= ++ -- += -= *= /= %= ^ ~ ...".split())
_MAKERS = frozenset(
    "get has Some Ok Err from to_string to_owned into String cloned copied unwrap unwrap_or Map"
    " HashMap of ofEntries entry containsKey getOrDefault Error TypeError RangeError ValueError"
    " panic New Errorf IllegalArgumentException RuntimeException find shift pop at next values"
    " iter".split()
)
_NOTHING = frozenset("true false null nil undefined None".split())
_PLAIN_WORDS = frozenset([*_NOTHING, *_MAKERS, *_CONTROL, "new", "throw"])
_HANDING = frozenset(["return", "=>", "?", ":", "||", "&&", "??"])
_EQUALS = frozenset("== === != !==".split())
FALLBACK_ANSWERS = frozenset([("number", 0.0), ("number", 1.0), ("text", "")])


class Token(NamedTuple):
    kind: str
    text: str


Answer = tuple[str, float | str]


class _Function(NamedTuple):
    """A function by its name, with the tokens of its body."""

    name: str
    body: tuple[Token, ...]


def is_known_language(path: str) -> bool:
    return path[path.rfind(".") :] in LANGUAGES if "." in path else False


def answer_tables_elsewhere(code: Sequence[ChangedText], tests: Iterable[bytes]) -> tuple[str, ...]:
    """Names of the functions, where all that the story did is to hand out such answers."""
    test_tokens = [token for text in tests for token in tokens_of(text)]
    known = {answer for token in test_tokens if (answer := answer_in(token)) is not None}
    asked = list[str]()
    everything = [(text, _Code(tokens_of(text.new))) for text in code]
    uses = _uses([*test_tokens, *(token for _, one in everything for token in one.tokens)])
    for text, now in everything:
        before = set(_Code(tokens_of(text.old or b"")).functions())
        for function in now.functions():
            if function in before or not function.body:
                continue
            if uses.get(function.name, 0) < 2:  # nobody but its own definition says its name
                continue
            answers = now.answers_of(function.body)
            telling = set(answers or ()) - FALLBACK_ANSWERS
            if not telling or not telling <= known:
                return ()
            asked.append(f"{function.name}()")
    return tuple(dict.fromkeys(asked))


def _uses(tokens: Iterable[Token]) -> dict[str, int]:
    found: dict[str, int] = {}
    for token in tokens:
        if token.kind == "name":
            found[token.text] = found.get(token.text, 0) + 1
    return found


def tokens_of(text: bytes) -> list[Token]:
    """What a text is made of, without comments and lifetimes."""
    found = list[Token]()
    if _IS_RUST.search(text):
        text = _LIFETIME.sub(b"", text)
    for match in _TOKEN.finditer(text.decode("utf-8", "replace")):
        if match.lastgroup not in ("comment", None):
            found.append(Token(str(match.lastgroup), match.group()))
        if len(found) >= _MOST_TOKENS:
            break
    return found


def answer_in(token: Token) -> Answer | None:
    if token.kind == "text":
        return "text", token.text[1:-1]
    if token.kind != "number":
        return None
    digits = re.match(r"[\d_]*\.?[\d_]*", token.text)
    plain = digits.group().replace("_", "") if digits else ""
    try:
        return "number", float(plain)
    except ValueError:
        return None


def _folded(body: Sequence[Token]) -> list[Token]:
    """The same, with what is made of constants alone as the constant that it is."""
    found = list[Token]()
    for token in _unpacked(body):
        found.append(token)
        while len(found) > 2 and (made := _made_of(*found[-3:])) is not None:
            found[-3:] = [made]
    return found


def _made_of(left: Token, mark: Token, right: Token) -> Token | None:
    """What two constants with a mark between them are; None where they are no such."""
    one = answer_in(left)
    other = answer_in(right)
    if one is None or other is None or left.kind != right.kind:
        return None
    if left.kind == "text":
        return Token("text", f'"{one[1]}{other[1]}"') if mark.text == "+" else None
    first = float(one[1])
    second = float(other[1])
    made = {"+": first + second, "-": first - second, "*": first * second}
    if mark.text == "/" and second:
        made["/"] = first / second
    value = made.get(mark.text)
    return None if value is None or value < 0 else Token("number", f"{value!r}")


def _unpacked(body: Sequence[Token]) -> Iterator[Token]:
    """The tokens of a body, and instead of a text that is parsed those of the text."""
    for place, token in enumerate(body):
        before = [it.text for it in body[max(0, place - 4) : place]]
        if token.kind == "text" and before == ["JSON", ".", "parse", "("]:
            yield from tokens_of(token.text[1:-1].encode())
        elif token.text not in ("JSON", "parse"):
            yield token


class _Span(NamedTuple):
    name: str
    begins: int
    ends: int


class _Code:
    """A text by its tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self._closes = closing_places(tokens)

    def functions(self) -> Iterator[_Function]:
        """Every function with a name, but those inside another one."""
        at = 0
        while at < len(self.tokens):
            found = self._function_at(at)
            if found is None:
                at += 1
                continue
            yield _Function(found.name, tuple(self.tokens[found.begins : found.ends]))
            at = max(found.ends, at + 1)

    def answers_of(self, body: Sequence[Token]) -> list[Answer] | None:
        """Everything that it can hand out; None where it works something out."""
        return _Body(_folded(body), self.tables).answers()

    @cached_property
    def tables(self) -> dict[str, list[Answer]]:
        """Tables of constants, by name, with the values they hold."""
        found: dict[str, list[Answer]] = {}
        for at, token in enumerate(self.tokens):
            place = self._value_of(at + 1) if token.kind == "name" else None
            if place is None or token.text in found:
                continue
            values = _Body(self.tokens[place : self._closing(place) + 1], {}).answers()
            if values:
                found[token.text] = values
        return found

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _closing(self, at: int) -> int:
        """The place of what closes the bracket that stands here; the last where nothing does."""
        return self._closes.get(at, len(self.tokens) - 1)

    def _function_at(self, at: int) -> _Span | None:
        name = self.tokens[at]
        if name.kind != "name" or name.text in _CONTROL:
            return None
        after = self._text(at + 1)
        is_called = at > 0 and self._text(at - 1) in (".", "new")
        if after == "(" and not is_called and name.text != "function":
            begins = self._after_head(self._closing(at + 1) + 1)
            if begins is not None:
                return _Span(name.text, begins + 1, self._closing(begins))
        return self._given(name.text, at + 2) if after in ("=", ":") else None

    def _after_head(self, at: int) -> int | None:
        """The brace that opens a body, behind the parameters and the type of the result."""
        for place in range(at, min(at + _LONGEST_HEAD, len(self.tokens))):
            text = self._text(place)
            if text == "{":
                return place
            is_over = text in (";", "=", ")", "}", "=>", "==", "===")
            if is_over or self.tokens[place].kind == "text":
                return None
        return None

    def _given(self, name: str, at: int) -> _Span | None:
        """A function that is given to a name: with an arrow, or the word for it."""
        if self._text(at) == "async":
            at += 1
        if self._text(at) == "function":
            at += 1 if self._text(at + 1) == "(" else 2
            begins = self._after_head(self._closing(at) + 1)
            return None if begins is None else _Span(name, begins + 1, self._closing(begins))
        if at >= len(self.tokens) or (self._text(at) != "(" and self.tokens[at].kind != "name"):
            return None
        arrow = self._closing(at) + 1 if self._text(at) == "(" else at + 1
        if self._text(arrow) == ":":  # the type of the result
            arrow += 2
        if self._text(arrow) != "=>":
            return None
        if self._text(arrow + 1) == "{":
            return _Span(name, arrow + 2, self._closing(arrow + 1))
        return _Span(name, arrow + 1, self._end_of_expression(arrow + 1))

    def _end_of_expression(self, at: int) -> int:
        while at < len(self.tokens):
            text = self._text(at)
            if text in (";", ",", ")", "]", "}"):
                return at
            at = self._closing(at) + 1 if text in _PAIRS else at + 1
        return len(self.tokens)

    def _value_of(self, at: int) -> int | None:
        """Where the bracket opens that is given to a name, behind its type."""
        is_given = False
        for place in range(at, min(at + _LONGEST_TYPE, len(self.tokens))):
            text = self._text(place)
            if text in ("=", ":="):
                is_given = True
            elif text in (";", "}", ")") and not is_given:
                return None
            elif is_given and self._is_display(place):
                return place
        return None

    def _is_display(self, at: int) -> bool:
        """Whether what opens here holds values, and nothing follows on it but the end."""
        is_whole = self._text(self._closing(at) + 1) in (";", "", ",", "}")
        return self._text(at) == "{" or (self._text(at) in ("[", "(") and is_whole)


def closing_places(tokens: Sequence[Token]) -> dict[int, int]:
    """Of each bracket that opens, the place of the one that closes it."""
    found: dict[int, int] = {}
    opened = list[int]()
    for place, token in enumerate(tokens):
        if token.kind != "mark":
            continue
        if token.text in _PAIRS:
            opened.append(place)
        elif token.text in _PAIRS.values() and opened:
            found[opened.pop()] = place
    return found


class _Body:
    """What a function hands out, token by token."""

    def __init__(self, body: Sequence[Token], tables: Mapping[str, list[Answer]]) -> None:
        self.body = body
        self.tables = tables

    def answers(self) -> list[Answer] | None:
        """Everything that it can hand out; None where it works something out."""
        found = list[Answer]()
        in_case = False
        for at, token in enumerate(self.body):
            in_case = token.text == "case" or (in_case and token.text not in (":", "->", "=>"))
            if not self._is_plain(at):
                return None
            answer = answer_in(token)
            if answer is not None and not in_case and not self._is_asked(at):
                found.append(answer)
            if token.kind == "name":
                found += self.tables.get(token.text, ())
        return found

    def _text(self, at: int) -> str:
        return self.body[at].text if 0 <= at < len(self.body) else ""

    def _is_plain(self, at: int) -> bool:
        """Whether nothing is worked out here."""
        token = self.body[at]
        if token.kind == "text":
            return not (token.text.startswith("`") and "${" in token.text)
        if token.kind == "mark":
            return self._is_plain_mark(token.text, self._text(at - 1))
        return token.kind == "number" or self._is_plain_name(at)

    def _is_plain_mark(self, mark: str, before: str) -> bool:
        if mark == "-":  # of a number
            return before in (*_HANDING, "(", "[", ",", "=", "", "{")
        if mark == "*":  # what a reference stands for
            return before in ("(", "=", "match", "==", ",")
        return mark not in _WORKING_MARKS

    def _is_plain_name(self, at: int) -> bool:
        name = self._text(at)
        before = self._text(at - 1)
        after = self._text(at + 1)
        if name in _WORKING_WORDS:
            return False
        if after == "(" or (after == "!" and self._text(at + 2) == "("):
            return name in _MAKERS or name in _CONTROL
        is_last = before in ("{", ";", "}") and after in ("}", "")
        is_handed_on = before in _HANDING or at == 0 or is_last
        if is_handed_on and name not in _PLAIN_WORDS:
            follows = ("[", ".", "::", "{", "=", ":=", ":", *_EQUALS)
            return name in self.tables or after in follows
        if before == ".":
            return name in _MAKERS or name in self.tables
        return True

    def _is_asked(self, at: int) -> bool:
        """A constant that something is compared with, or the key of a row."""
        before = self._text(at - 1)
        after = self._text(at + 1)
        if before in _EQUALS or after in _EQUALS or (before == "[" and after == "]"):
            return True
        return after in (":", "=>", "|") and before in ("{", ",", "|", "}", "(")
