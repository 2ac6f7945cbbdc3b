"""The same as `shams` for JavaScript, TypeScript, Go, Rust and Java: work that only looks like it.

The code is read by its grammar, which comes with the extra for mutants, and the tests by their
tokens alone: there are many ways to assert, and what is not understood counts as honest.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ralphloop.proof.answers import ChangedText
from ralphloop.proof.answers_elsewhere import (
    FALLBACK_ANSWERS,
    Answer,
    Token,
    answer_in,
    closing_places,
    tokens_of,
)
from ralphloop.proof.trees import (
    Grammar,
    NoGrammar,
    functions_of,
    grammar_of,
    returned_by,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_VALUES = 3
_LONGEST_TYPE = 20  # tokens, between a name and the values it is given
_SCRIPTS = frozenset({"JavaScript", "TypeScript"})
_MODULES = ("exports.", "module.exports.")  # a function of a module, and of no object
_OF_COMPARING = frozenset(
    "eq ne equals Equal Equals equal isEqual compareTo cmp partial_cmp Cmp Compare".split()
)
_THROWN_AWAY = re.compile(r"\b(?:let\s+)?_\s*=\s*&?\w+\s*;?")
_IFS = frozenset({"if_statement", "if_expression"})
_CHOICES = frozenset({"ternary_expression"})
_SWITCHES = frozenset(
    "switch_statement expression_switch_statement switch_expression match_expression".split()
)
_ARMS = frozenset(
    "switch_case expression_case switch_block_statement_group switch_rule match_arm".split()
)
_FORMS = frozenset("{ } ( ) ; , return else => -> _".split())  # that say nothing of what is done
_UNEQUAL = frozenset("< > <= >= != !== + * / % ! ~ ^".split())
_ANYWHERE = frozenset("equals includes contains has get".split())  # methods that compare
_YES_OR_NO = re.compile(
    r"\.(?:includes|test|startsWith|endsWith|some|every|has|contains|starts_with|ends_with"
    r"|isEmpty|is_empty|equals)\([^()]*\)$|^Boolean\("
)
_COMPARING = frozenset("== != === !== < > <= >= && || instanceof in".split())
_NOT_YET = re.compile(
    r"^(?:throw new \w*(?:Error|Exception)|panic!?|todo!|unimplemented!)\s*\(", re.IGNORECASE
)
_NOT_YET_WORDS = re.compile(r"not.{0,4}implemented|unimplemented|todo|not (?:there|done) yet", re.I)
_AS_IT_CAME = re.compile(
    r"^(?:String::from|string|String)?\(?(\w+)\)?(?:\.(?:clone|to_string|to_owned|into)\(\))?$"
)


class _Changed(NamedTuple):
    """A function that a story added or changed, where it stands, and how it was."""

    path: str
    name: str
    node: "Node"
    old: "Node | None"
    grammar: Grammar

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_of_a_module(self) -> bool:
        plain = self.name
        for before in _MODULES:
            plain = plain.removeprefix(before)
        return "." not in plain

    @property
    def told(self) -> str:
        return f"{self.path}: {self.short_name}()"


def shams_elsewhere(
    code: Sequence[ChangedText], asking: Sequence[bytes], own: Sequence[bytes] = ()
) -> tuple[str, ...]:
    """What is a sham, in words; `asking` are all tests, `own` those that the story brought.

    Nothing is said of languages whose grammar is not installed.
    """
    found = list[_Changed]()
    try:
        for text in code:
            found += _changed_in(text)
    except (NoGrammar, RecursionError):
        return ()
    working = [one for one in found if not _is_nothing_yet(one)]
    words = [token for text in code for token in tokens_of(text.new)]
    told = [*_handing_back(working), *_missing_parts(found, words), *_empty_parts(found, words)]
    told += _blind(found)
    told += _special_cases(working, code, [tokens_of(text) for text in asking])
    told += _only_agreeing(found, [token for text in own for token in tokens_of(text)])
    return tuple(dict.fromkeys(told))


def _changed_in(text: ChangedText) -> Iterator[_Changed]:
    grammar = grammar_of(text.path)
    if grammar is None:
        return
    known = dict(functions_of(grammar, text.old)) if text.old is not None else {}
    for name, node in functions_of(grammar, text.new):
        before = known.get(name)
        if before is None or before.text != node.text:
            yield _Changed(text.path, name.partition(" ")[0], node, before, grammar)


def _below(node: "Node") -> Iterator["Node"]:
    """A node and everything in it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.named_children))


def _statements(node: "Node") -> list["Node"]:
    """What the body of a function is made of; of an arrow to an expression, that."""
    body = node.child_by_field_name("body")
    if body is None:
        return []
    if not body.type.endswith("block"):
        return [body]
    return [it for it in body.named_children if "comment" not in it.type]


# What is handed back


def _handing_back(working: Sequence[_Changed]) -> Iterator[str]:
    """Functions that are all of a story's work, and give back one argument as it came."""
    if working and all(_hands_back(one) for one in working):
        yield from (f"{one.told} only hands back what it is given" for one in working)


def _hands_back(one: _Changed) -> bool:
    results = list(returned_by(one.grammar, one.node))
    if len(results) != 1 or len(_statements(one.node)) != 1:
        return False
    came = _AS_IT_CAME.match(text_of(results[0]))
    given = one.node.child_by_field_name("parameters") or one.node.child_by_field_name("parameter")
    if came is None or given is None or came[1] == "self":
        return False
    is_plain = text_of(results[0]) == came[1]
    is_text = re.search(rf"\b{came[1]}\s*:\s*(?:&(?:'\w+\s+)?str|&?String)\b", text_of(given))
    is_same = is_plain or ".clone()" in text_of(results[0]) or bool(is_text)
    return is_same and came[1] in re.findall(r"\w+", text_of(given))


# What compares without looking


def _blind(found: Sequence[_Changed]) -> Iterator[str]:
    """Methods that say how something compares with something else, and never look at that."""
    for one in found:
        given = [_given_name(it) for it in _parameters(one)]
        others = [name for name in given if name not in ("self", "this", "")]
        is_method = one.node.type == "method_declaration" or not one.is_of_a_module
        if one.short_name not in _OF_COMPARING or not is_method or len(others) != 1:
            continue
        body = text_of(one.node.child_by_field_name("body"))
        if others[0] not in re.findall(r"\w+", _THROWN_AWAY.sub("", body)):
            yield f"{one.told} does not look at what it is compared with"


def _parameters(one: _Changed) -> list["Node"]:
    given = one.node.child_by_field_name("parameters")
    return [it for it in given.named_children if "comment" not in it.type] if given else []


def _given_name(parameter: "Node") -> str:
    """What a parameter is called; empty where it has no name, or is taken apart."""
    if parameter.type == "self_parameter":
        return "self"
    named = parameter.child_by_field_name("pattern") or parameter.child_by_field_name("name")
    name = text_of(named or parameter)
    return name if name.isidentifier() else ""


# What is not there yet, or empty


def _missing_parts(found: Sequence[_Changed], words: Sequence[Token]) -> Iterator[str]:
    """Functions of a module that others call, and that only say that they are not there yet."""
    called = list(_called_names(words))
    for one in found:
        is_new = one.old is None and one.is_of_a_module
        # Its own definition looks like a call, too.
        if is_new and _is_nothing_yet(one) and called.count(one.short_name) > _defining(one):
            yield f"{one.told} is called, and is not there yet"


def _defining(one: _Changed) -> int:
    """How often a definition says the name as a call does."""
    return 1 if one.node.child_by_field_name("name") is not None else 0


def _called_names(words: Sequence[Token]) -> Iterator[str]:
    for place, token in enumerate(words[:-1]):
        if token.kind == "name" and words[place + 1].text == "(":
            yield token.text


def _is_nothing_yet(one: _Changed) -> bool:
    statements = _statements(one.node)
    if len(statements) != 1:
        return False
    text = text_of(statements[0]).strip()
    return bool(_NOT_YET.match(text) and _NOT_YET_WORDS.search(text))


def _empty_parts(found: Sequence[_Changed], words: Sequence[Token]) -> Iterator[str]:
    """Functions of scripts that came with the story, return nothing, and whose result is used."""
    for one in found:
        is_new = one.old is None and one.is_of_a_module and one.grammar.name in _SCRIPTS
        if is_new and _is_empty(one) and _is_asked(one.short_name, words):
            yield f"{one.told} is empty, and its result is used"


def _is_empty(one: _Changed) -> bool:
    if "void" in text_of(one.node.child_by_field_name("return_type")):
        return False
    told = [text_of(it).strip().rstrip(";") for it in _statements(one.node)]
    return all(it in ("return", "return null", "return undefined") for it in told)


def _is_asked(name: str, words: Sequence[Token]) -> bool:
    """Whether something is done with what a call gives."""
    before = {"=", "+", "-", "*", "/", "return", "(", ",", "==", "===", "?", "&&", "||", "=>"}
    for place, token in enumerate(words[:-1]):
        if token.text != name or words[place + 1].text != "(":
            continue
        start = _start(words, place)
        is_defined = words[start - 1].text in ("function", "async")
        if not is_defined and start and words[start - 1].text in before:
            return True
    return False


# What is done for the values of a test alone


def _special_cases(
    working: Sequence[_Changed], code: Sequence[ChangedText], asking: Sequence[Sequence[Token]]
) -> Iterator[str]:
    """Functions that do what they did, but for values that their tests ask for."""
    tables = {text.path: _new_tables(text) for text in code}
    cases = list[str]()
    for one in working:
        if one.old is None:
            return
        asked = {it for words in asking for it in _handed_to(one.short_name, words)}
        taken_out = _WithoutCases(asked, tables[one.path])
        left = taken_out.text_without(one.node.child_by_field_name("body"))
        was = text_of(one.old.child_by_field_name("body"))
        if not taken_out.values or _plain(left) != _plain(was):
            return
        told = sorted({_shown(value) for value in taken_out.values})[:_MOST_VALUES]
        cases.append(f"{one.told} has a case for just what its tests ask ({', '.join(told)})")
    yield from cases


def _shown(value: Answer) -> str:
    kind, content = value
    return repr(content) if kind == "text" else f"{content:g}"


def _plain(text: str) -> list[str]:
    """What is done, however it is written down."""
    return [it.text for it in tokens_of(text.encode()) if it.text not in _FORMS]


def _handed_to(function: str, words: Sequence[Token]) -> Iterator[Answer]:
    """Telling constants that tests hand to a function; of all the file, where it takes rows."""
    closes = closing_places(words)
    handed = list[Token]()
    takes_rows = False
    for place, token in enumerate(words[:-1]):
        if token.text != function or words[place + 1].text != "(":
            continue
        given = words[place + 2 : closes.get(place + 1, place + 2)]
        handed += given
        takes_rows = takes_rows or not any(answer_in(it) for it in given)
    yield from _telling(words if takes_rows else handed)


def _telling(words: Iterable[Token]) -> Iterator[Answer]:
    for token in words:
        found = answer_in(token)
        if found is None:
            continue
        parts = str(found[1]).split(",") if token.kind == "text" else []
        for part in parts if len(parts) > 1 else []:  # a row of values as text
            number = answer_in(Token("number", part.strip()))
            yield number or ("text", part.strip())
        if found not in FALLBACK_ANSWERS:
            yield found


def _new_tables(text: ChangedText) -> Mapping[str, frozenset[Answer]]:
    """Names that came with the story and are given values in brackets, with all constants there."""
    words = tokens_of(text.new)
    before = {token.text for token in tokens_of(text.old or b"")}
    closes = closing_places(words)
    found: dict[str, frozenset[Answer]] = {}
    for place, token in enumerate(words):
        if token.kind != "name" or token.text in before or token.text in found:
            continue
        near = range(place + 1, min(place + _LONGEST_TYPE, len(words)))
        opened = [it for it in near if words[it].text in ("[", "{", "(")]
        if opened and any(it.text in ("=", ":=") for it in words[place : opened[-1]]):
            held = (words[it : closes.get(it, it)] for it in opened)  # of types and of values
            found[token.text] = frozenset(answer for part in held for answer in _telling(part))
    return found


class _WithoutCases:
    """A function without the parts that are for some values alone."""

    def __init__(self, asked: Collection[Answer], tables: Mapping[str, frozenset[Answer]]) -> None:
        self.asked = asked
        self.tables = tables
        self.values = set[Answer]()

    def text_without(self, node: "Node | None") -> str:
        """What is left of a body."""
        if node is None:
            return ""
        instead = self._instead(node)
        if instead is not None:
            return instead
        text = (node.text or b"").decode("utf-8", "replace") if not node.named_children else ""
        if text:
            return text
        source = node.text or b""
        parts = list[str]()
        at = node.start_byte
        for child in node.named_children:
            before = source[at - node.start_byte : child.start_byte - node.start_byte]
            parts += [before.decode("utf-8", "replace"), self.text_without(child)]
            at = child.end_byte
        parts.append(source[at - node.start_byte :].decode("utf-8", "replace"))
        return "".join(parts)

    def _instead(self, node: "Node") -> str | None:
        """What stands for a case; None where it is none."""
        if node.type in _IFS or node.type in _CHOICES:
            asked = [node.child_by_field_name(it) for it in ("initializer", "condition")]
            if self._is_case(" ".join(text_of(it) for it in asked)):
                rest = self.text_without(node.child_by_field_name("alternative"))
                return rest.strip().removeprefix("else")
        elif node.type in _SWITCHES:
            return self._of_switch(node)
        elif node.type == "binary_expression":
            operator = node.child_by_field_name("operator")
            left = text_of(node.child_by_field_name("left"))
            if operator is not None and operator.type in ("??", "||") and self._is_case(left):
                return self.text_without(node.child_by_field_name("right"))
        return None

    def _of_switch(self, node: "Node") -> str | None:
        """What is done where none of the cases holds, if all of them are for values of tests."""
        arms = [it for it in _below(node) if it.type in _ARMS]
        last = [it for it in _below(node) if it.type in ("switch_default", "default_case")]
        default = last[0] if last else next((it for it in arms if _is_default(it)), None)
        cases = [it for it in arms if it is not default and it != default]
        heads = [_head_of(it) for it in cases]
        if default is None or not cases or not all(self._is_case(f"== {it}") for it in heads):
            return None
        text = self.text_without(default)
        found = re.match(r"\s*(?:default\s*(?::|->)|_\s*=>)", text)
        return text[found.end() :].rstrip().rstrip(",") if found else None

    def _is_case(self, condition: str) -> bool:
        """Whether it is asked if something is one of the values that tests hand over."""
        words = tokens_of(condition.encode())
        texts = {it.text for it in words}
        is_compared = not texts.isdisjoint({"==", "===", "[", "in", "let", *_ANYWHERE})
        called = set(_called_names(words)) - _ANYWHERE - {"Some", "if"}
        if not is_compared or not texts.isdisjoint(_UNEQUAL) or called:
            return False
        values = set(_telling(words))
        for name in texts & self.tables.keys():
            values |= self.tables[name] & set(self.asked)  # its answers are not asked for
        if not values or not values.issubset(self.asked):
            return False
        self.values |= values
        return True


def _is_default(arm: "Node") -> bool:
    return bool(re.match(r"\s*(?:default\b|_\s*=>)", text_of(arm)))


def _head_of(arm: "Node") -> str:
    """What a case is for."""
    found = re.match(r"\s*(?:case\s+)?(.{1,200}?)\s*(?:=>|->|:)", text_of(arm), re.DOTALL)
    return found[1] if found else "!"


# What is only asked for one answer, or whether it agrees with itself

_SAME = frozenset(
    "toBe toEqual toStrictEqual strictEqual equal deepEqual deepStrictEqual assert_eq Equal"
    " assertEquals assertSame is eql isEqualTo Equals".split()
)
_YES = frozenset("assert ok assertTrue True isTrue toBeTruthy is_true debug_assert".split())
_NO = frozenset("assertFalse False isFalse toBeFalsy notOk is_false".split())
_FAILS = frozenset("Fatal Fatalf Error Errorf Fail FailNow".split())
_TRUTHS = {"true": True, "false": False}


def _only_agreeing(found: Sequence[_Changed], words: Sequence[Token]) -> Iterator[str]:
    """Functions whose results are compared with each other alone, or asked for one answer."""
    added = {one.short_name: one for one in found if one.old is None}
    places = [place for place in _calls(words) if words[place].text in added]
    names = sorted({words[place].text for place in places})
    if not names:
        return
    first = added[names[0]]
    answers = {_answer_wanted(words, place) for place in places}
    if len(names) > 1 and set(places) <= _agreeing(words, frozenset(names)):
        told = " and ".join(f"{name}()" for name in names[:_MOST_VALUES])
        yield f"{first.path}: {told} are compared with each other alone"
    elif all(_is_predicate(added[name]) for name in names) and answers in ({True}, {False}):
        answer = "yes" if True in answers else "no"
        yield f"{first.told} is asked only where it says {answer}"


def _calls(words: Sequence[Token]) -> Iterator[int]:
    for place in range(len(words) - 1):
        if words[place].kind == "name" and words[place + 1].text == "(":
            yield place


def _start(words: Sequence[Token], place: int) -> int:
    """Where an expression begins that ends in this name: what the name is taken from."""
    while place > 1 and words[place - 1].text in (".", "::"):
        place -= 2
    while place > 0 and words[place - 1].text in ("await", "&", "new"):
        place -= 1
    return place


def _answer_wanted(words: Sequence[Token], place: int) -> bool | None:
    """Which answer a test wants of the call that stands here; None: nobody can tell."""
    closes = closing_places(words)
    end = closes.get(place + 1)
    if end is None:
        return None
    start = _start(words, place)

    def at(where: int) -> str:
        return words[where].text if 0 <= where < len(words) else ""

    turned = at(start - 1) == "!" and at(start - 2) in ("(", ",", "if")
    start -= turned
    wanted: bool | None = None
    if at(start - 1) == "if" and at(end + 1) == "{":
        fails = {at(it) for it in range(end + 1, end + 12)} & _FAILS
        return turned if fails else None
    if at(start - 1) == ":=" and at(end + 1) == ";":
        asked = at(end + 2)
        is_plain = at(end + 3) == "{" or (asked == "!" and at(end + 4) == "{")
        fails = {at(it) for it in range(end + 3, end + 16)} & _FAILS
        return (asked == "!") if is_plain and fails else None
    if at(start - 1) == "(":
        callee = at(start - 3) if at(start - 2) == "!" else at(start - 2)
        wanted = _wanted_by(callee, at(end + 1), at(end + 2))
        if callee in ("expect", "assertThat") and at(end + 1) == ")":
            wanted = _wanted_by_chain(words, end + 2)
    elif at(start - 1) == "," and at(start - 3) == "(":
        before = at(start - 2)
        callee = at(start - 5) if at(start - 4) == "!" else at(start - 4)
        if before == "t":
            wanted = _wanted_by(callee, at(end + 1), at(end + 2))
        elif callee in _SAME:
            wanted = _TRUTHS.get(before)
    return wanted if wanted is None else wanted != turned


def _wanted_by(callee: str, behind: str, then: str) -> bool | None:
    if callee in _YES:
        return True
    if callee in _NO:
        return False
    return _TRUTHS.get(then) if callee in _SAME and behind == "," else None


def _wanted_by_chain(words: Sequence[Token], place: int) -> bool | None:
    """What `.not.toBe(true)` behind an expectation wants."""
    names = [it.text for it in words[place : place + 8]]
    turned = names[:2] == [".", "not"]
    names = names[2:] if turned else names
    if len(names) < 4 or names[0] != ".":
        return None
    wanted = True if names[1] in _YES else False if names[1] in _NO else None
    if names[1] in _SAME:
        wanted = _TRUTHS.get(names[3])
    return wanted if wanted is None else wanted != turned


def _agreeing(words: Sequence[Token], names: frozenset[str]) -> set[int]:
    """Calls that stand where results of some of these functions are compared with others'."""
    found = set[int]()
    for pair in _compared(words):
        sides = [{it for it in _calls(words) if it in side} for side in pair]
        used = [{words[it].text for it in side} & names for side in sides]
        if all(used) and used[0].isdisjoint(used[1]):
            found |= sides[0] | sides[1]
    return found


def _compared(words: Sequence[Token]) -> Iterator[tuple[range, range]]:
    """Both sides of each comparison that a test makes."""
    closes = closing_places(words)
    for place, token in enumerate(words):
        opened = place + 2 if words[place + 1 : place + 2] == [Token("mark", "!")] else place + 1
        end = closes.get(opened)
        if token.text == "expect" and end is not None:
            behind = end + 3
            if words[end + 2 : end + 3] and words[end + 2].text in _SAME and behind in closes:
                yield range(opened, end), range(behind, closes[behind])
        elif token.text in _SAME and end is not None and words[opened].text == "(":
            middle = _comma(words, closes, opened + 1, end)
            if middle is not None and words[opened + 1].text == "t" and middle == opened + 2:
                opened = middle
                middle = _comma(words, closes, opened + 1, end)
            if middle is not None:
                yield range(opened, middle), range(middle, end)
        elif token.text == "if":
            ends = next((it for it in range(place, len(words)) if words[it].text == "{"), None)
            marks = ("!=", "!==")
            middles = [it for it in range(place, ends or place) if words[it].text in marks]
            if ends is not None and len(middles) == 1:
                yield range(place, middles[0]), range(middles[0], ends)


def _comma(words: Sequence[Token], closes: Mapping[int, int], start: int, end: int) -> int | None:
    """The first comma between two places that stands in no bracket."""
    place = start
    while place < end:
        if words[place].text == ",":
            return place
        place = closes.get(place, place) + 1
    return None


def _is_predicate(one: _Changed) -> bool:
    """Whether a function only ever says yes or no."""
    declared = one.node.child_by_field_name(one.grammar.type_field)
    if text_of(declared).strip(":-> ") in ("bool", "boolean", "Boolean"):
        return True
    results = list(returned_by(one.grammar, one.node))
    return bool(results) and all(_is_yes_or_no(it) for it in results)


def _is_yes_or_no(node: "Node") -> bool:
    if node.type == "parenthesized_expression" and node.named_children:
        return _is_yes_or_no(node.named_children[0])
    operator = node.child_by_field_name("operator")
    if node.type == "unary_expression":
        return operator is not None and operator.type == "!"
    if node.type == "binary_expression":
        return operator is not None and operator.type in _COMPARING
    return node.type in ("true", "false") or bool(_YES_OR_NO.search(text_of(node)))
