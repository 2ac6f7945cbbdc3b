"""What shows that a criterion of a story is met: a named test that speaks of it, else its verify.

A test speaks of a criterion by its name or its text: a value that the criterion quotes, or most of
its words.  Where the criterion names an error or another type, or shows a call (`price(3, 50)`),
the test has to have that name, or the function and what is handed in, as well.  Where nothing
speaks of it, there is no evidence, and that is said.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from ralphloop.core import Value
from ralphloop.core.proof import CheckStatus, Trial
from ralphloop.core.sentences import short_name

VERIFY_SOURCE = "verify"
_MOST = 40
LONGEST_CRITERION = 300
_FEWEST_WORDS = 2
_QUOTED = re.compile(r"[`'\"]([^`'\"]{2,60})[`'\"]|\b(\d+(?:\.\d+)?)\b")
_NAME = re.compile(r"\b(?:[A-Z][a-z0-9]+){2,}\b")  # such as ValueError: a test of it has the name
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(([^()\n]{0,200})\)")
_LITERAL = re.compile(r"'[^'\n]{0,100}'|\"[^\"\n]{0,100}\"|\b\d+(?:\.\d+)?\b")
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?")
_RAISING = frozenset({"raise", "error"})
_WORD = re.compile(r"[a-z]{3,}|\d+")
_COMMON = frozenset(
    "the and for with that this are was not from into its has have can when then must should will"
    " test tests assert true false self return returns import def none each all any one".split()
)


class CriterionEvidence(Value, frozen=True, kw_only=True):
    criterion: str
    source: str = ""  # a test's name, or `verify`; empty: nothing speaks of it
    before: str = ""  # what it showed without the story
    after: str = ""  # and with it

    @property
    def words(self) -> str:
        """In one line; where there is none, that."""
        if not self.source:
            return "no test speaks of it"
        name = short_name(self.source)
        how = f": {self.before} before, {self.after} after" if self.before else f": {self.after}"
        return f"{name}{how}"


class Coverage(Value, frozen=True, kw_only=True):
    """How many criteria of a story something speaks of; without criteria it says nothing."""

    spoken_of: int = 0
    asked: int = 0
    by_verify: bool = False  # for some of them that is its verify command

    @property
    def has_gap(self) -> bool:
        return self.spoken_of < self.asked

    @property
    def words(self) -> str:
        """`2 of 3 criteria have a test`; empty where nobody looked."""
        if not self.asked:
            return ""
        what = "a test or the verify command" if self.by_verify else "a test"
        if self.asked == 1:
            return f"its criterion has {'no test' if self.has_gap else what}"
        return f"{self.spoken_of} of {self.asked} criteria have {what}"


def coverage_of(criteria: Iterable[CriterionEvidence]) -> Coverage:
    every = list(criteria)
    return Coverage(
        spoken_of=sum(1 for one in every if one.source),
        asked=len(every),
        by_verify=any(one.source == VERIFY_SOURCE for one in every),
    )


def evidence_for(
    criteria: Iterable[str],
    trial: Trial,
    texts: Mapping[str, str],
    *,
    verify: CheckStatus | None = None,
    verify_was: CheckStatus | None = None,
    turned_green: Collection[str] = (),
) -> tuple[CriterionEvidence, ...]:
    """One for each criterion; `texts` are those of the tests that pass, by name.

    `turned_green` are tests that were red before the run.
    """
    found = []
    for criterion in list(criteria)[:_MOST]:
        told = criterion[:LONGEST_CRITERION]
        test = _speaking_of(criterion, texts)
        if test:
            before = "fails" if test in turned_green else _before(test, trial)
            found.append(
                CriterionEvidence(criterion=told, source=test, before=before, after="passes")
            )
        elif verify is CheckStatus.PASSED:
            before = "red" if verify_was in (CheckStatus.FAILED, CheckStatus.NO_TESTS) else ""
            found.append(
                CriterionEvidence(
                    criterion=told, source=VERIFY_SOURCE, before=before, after="green"
                )
            )
        else:
            found.append(CriterionEvidence(criterion=told))
    return tuple(found)


def _before(test: str, trial: Trial) -> str:
    if test in trial.proven:
        return "fails"
    if test in (*trial.reached, *trial.unloadable):
        return "misses what is new"
    return "passes" if test in trial.vacuous else ""


def _speaking_of(criterion: str, texts: Mapping[str, str]) -> str:
    """The test that speaks most of a criterion; empty where none does."""
    values = [quoted or number for quoted, number in _QUOTED.findall(criterion)]
    names = _NAME.findall(criterion)
    calls = _calls_in(criterion)
    words = _words(_NAME.sub(" ", criterion)) - _RAISING if names else _words(criterion)
    fewest = min(1 if names else _FEWEST_WORDS, len(words))
    best = ""
    most = 0
    for name, text in texts.items():
        shared = len(words & _words(f"{short_name(name)} {text}"))
        quoted = sum(1 for value in values if value in text)
        is_named = not names or any(one in text for one in names)
        is_called = not calls or any(call <= _tokens(text) for call in calls)
        weight = 2 * quoted + shared
        if shared >= max(1, fewest) and is_named and is_called and weight > most:
            best = name
            most = weight
    return best


def _calls_in(criterion: str) -> list[frozenset[str]]:
    """The calls that a criterion shows, such as `price(3, 50)`: the name and what is handed in.
    One with words for arguments is no call that a test could make."""
    found = []
    for name, given in _CALL.findall(criterion):
        rest = _LITERAL.sub(" ", given)
        if given.strip() and not re.search(r"[A-Za-z]", rest):
            found.append(_tokens(f"{name} {given}"))
    return found


def _tokens(text: str) -> frozenset[str]:
    """Names, numbers and quoted texts of it."""
    quoted = {one[1:-1] for one in _LITERAL.findall(text) if one[0] in "'\""}
    return frozenset(quoted | set(_TOKEN.findall(_LITERAL.sub(_number_or_blank, text))))


def _number_or_blank(found: re.Match[str]) -> str:
    return " " if found[0][0] in "'\"" else found[0]


def _words(text: str) -> frozenset[str]:
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower().replace("_", " ")
    stems = (word.removesuffix("s").removesuffix("ed") for word in _WORD.findall(plain))
    return frozenset(stems) - _COMMON
