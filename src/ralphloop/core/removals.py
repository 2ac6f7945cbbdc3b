"""Tests that went because their story asks for it: "Drop support for X" takes the tests of X along.

Where a story asks for something to be removed and a removed test speaks of just that by its name,
the test is gone together with its code: a person is shown it, and nobody is asked to explain.  Any
other test that fails on the new code and is no more stays what it was, also in such a story.
"""

import re

import msgspec

from ralphloop.core.proof import Fate, OldTest, Trial
from ralphloop.core.sentences import short_name

_ASKS = re.compile(
    r"\b(?:remov(?:e|es|ed|ing|al)|drop(?:s|ped|ping)?|delet(?:e|es|ed|ing|ion)|discontinu\w*"
    r"|retir(?:e|es|ed|ing)|no longer|get(?:s|ting)? rid of|stop(?:s|ped|ping)? support\w*)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z]{4,}")
# What names of tests and requests of any kind have in common.
_COMMON = frozenset(
    "test tests should with without when that this from into does support supported drop dropped"
    " remove removed delete deleted deprecated returning return returns passing value values error"
    " raise raises longer stop".split()
)


def asks_for_removal(words: str) -> bool:
    """Whether a story wants something to be there no more."""
    return _ASKS.search(words) is not None


def with_removals_asked_for(trial: Trial, words: str) -> Trial:
    """The same, where a story in these words asked for some of the tests to go."""
    if not asks_for_removal(words):
        return trial
    wanted = set(_WORD.findall(words.lower())) - _COMMON
    old = tuple(_as_asked(one, wanted) for one in trial.old)
    return msgspec.structs.replace(trial, old=old)


def _as_asked(one: OldTest, wanted: set[str]) -> OldTest:
    name = short_name(one.name).lower()
    if one.fate is not Fate.REMOVED or not any(word in name for word in wanted):
        return one
    return msgspec.structs.replace(one, fate=Fate.GONE)
