"""Texts as sets of words: what two notes have in common, and what a note is about.  Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ralphloop.text.test_paths import is_test_path

SAME = 0.75  # of all words, so many in common make two notes one

_WORD = re.compile(r"[^\W_][\w./@+-]*")
_PART = re.compile(r"[^\W_]{2,}")
_SAFE_PATH = re.compile(r"[\w@+-][\w.@+-]*(?:/[\w@+-.][\w.@+-]*)*")
_MAX_WORDS = 60
_STOP = frozenset(
    "a about after all also an and any are as at be been but by can could did do does each every"
    " for from had has have if in into is it its just may must need of on once one only or our out"
    " should since so than that the their them then there these they this to too use uses used was"
    " we were when where which while will with would you your".split()
)
_NEGATIONS = frozenset("no not never without avoid cannot dont don't neither nor nothing".split())

# What a path or a sentence is about, first match wins; the names become names of skills.
_CATEGORIES: dict[str, str] = {
    "database": "database databases db sql migration migrations schema schemas models orm sqlite",
    "api": "api apis endpoint endpoints route routes router controller controllers rest graphql",
    "swiftui": "swiftui",
    "watchos": "watchos watch",
    "frontend": "ui frontend component components view views page pages css html react vue svelte"
    " tsx jsx template templates",
    "cli": "cli command commands cmd terminal argv",
    "auth": "auth login password session sessions oauth permission permissions",
    "testing": "test tests testing pytest jest vitest fixture fixtures conftest coverage",
    "build": "build makefile docker dockerfile ci workflow workflows webpack vite package lockfile",
    "config": "config configuration settings toml yaml yml ini env",
    "docs": "docs doc documentation readme changelog md",
}
_LANGUAGES = dict(
    pair.split(":")
    for pair in "py:python ts:typescript js:javascript rs:rust go:go java:java kt:kotlin"
    " swift:swift rb:ruby php:php cs:csharp c:c h:c cpp:cpp ex:elixir sh:shell".split()
)
_ABOUT = {word: name for name, words in _CATEGORIES.items() for word in words.split()}
CATEGORIES = frozenset({*_CATEGORIES, *_LANGUAGES.values(), "general"})


def words_of(text: str) -> frozenset[str]:
    """The telling words of a text, paths whole, plurals as singulars."""
    found = _WORD.findall(text[:2000].lower())[: 2 * _MAX_WORDS]
    kept = dict.fromkeys(_stem(word.rstrip(".-+/")) for word in found if word not in _STOP)
    return frozenset(list(kept)[:_MAX_WORDS])


def _stem(word: str) -> str:
    plural = word[-1:] == "s" and word[-2:] != "ss" and len(word) > 3 and word.isalpha()
    return word[:-1] if plural else word


def is_same(a: frozenset[str], b: frozenset[str]) -> bool:
    """Near-duplicates; opposites and notes about different files are not."""
    common = len(a & b)
    if not common or common < SAME * (len(a) + len(b) - common):
        return False
    if bool(a & _NEGATIONS) != bool(b & _NEGATIONS):
        return False
    mine, theirs = ({word for word in words if "/" in word or "." in word} for words in (a, b))
    return not (mine and theirs) or bool(mine & theirs)


def match_words(text: str) -> frozenset[str]:
    """Words and parts of words (of paths and names), for finding what belongs together."""
    whole = words_of(text)
    return whole | {_stem(part) for word in whole for part in _PART.findall(word)} - _STOP


def category_of(paths: Iterable[str], text: str = "") -> str:
    """What the paths are about, else what the text is about, else the language of the paths."""
    known = [path.lower() for path in paths]
    return (
        _commonest(_area_of(path) for path in known)
        or _commonest(_ABOUT.get(word, "") for word in match_words(text))
        or _commonest(_LANGUAGES.get(path.rpartition(".")[2], "") for path in known)
        or "general"
    )


def _area_of(path: str) -> str:
    areas = [_ABOUT[part] for part in _PART.findall(path) if part in _ABOUT]
    first = next((area for area in areas if area != "testing"), "")
    return first or ("testing" if is_test_path(path) else "")


def _commonest(names: Iterable[str]) -> str:
    counts = Counter(name for name in names if name)
    return min(counts, key=lambda name: (-counts[name], name)) if counts else ""


def is_plain_path(path: str) -> bool:
    """True for a relative path of ordinary characters: it can stand in a sentence as it is."""
    return len(path) <= 150 and bool(_SAFE_PATH.fullmatch(path)) and ".." not in path.split("/")
