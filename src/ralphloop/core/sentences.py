"""The sentences in which a story's proof is told.

Each stands here once, so that console, report, review, page and pull request say the same.
"""

import re
from collections.abc import Sequence

from ralphloop.text.plain import counted, some

ASKED = "asked to explain: "  # how a reason begins that the agent has to answer
NOT_PROVEN = "not proven: "
NO_STATUS_BLOCK = "no status block (RALPH_STATUS) in the answer"
NO_PRICE = "no price is known for"
TO_ALLOW = "to allow it: [sandbox]"  # how a line begins that says what would let it be written
TO_LET_USE_GIT = "to let it use git: [sandbox]"
_MOST = 3
_PART = re.compile(r"::| > ")
# How a function of a test begins that stands behind its package (Go), or behind the module and the
# class in which pytest finds it, where that class comes from another file.
_BEHIND_DOTS = ("Test", "Example", "Fuzz", "test_")


def is_about_the_agent(warning: str) -> bool:
    """Whether it says something of an agent that holds for every start of it alike."""
    return warning.startswith((NO_STATUS_BLOCK, NO_PRICE, TO_ALLOW, TO_LET_USE_GIT))


def short_name(test: str) -> str:
    """A test without the file, the package and the class it stands in."""
    last = _PART.split(test)[-1] or test
    if last != test:
        return last
    function = test.rpartition(".")[2]
    is_function = function.isidentifier() and function.startswith(_BEHIND_DOTS)
    return function if is_function else test


def short_names(tests: Sequence[str], most: int = _MOST) -> str:
    return some(list(dict.fromkeys(short_name(test) for test in tests)), most)


def proved_by(tests: Sequence[str]) -> str:
    """By tests that fail without the story, by what the code does."""
    how = "(fails before, passes after)" if len(tests) == 1 else "(fail before, pass after)"
    return f"proved by {short_names(tests)} {how}"


def turned_green(names: Sequence[str]) -> str:
    """By checks, or tests of them, that were red when the run began."""
    how = "(was red before, is green after)" if len(names) == 1 else "(red before, green after)"
    return f"proved by {short_names(names)} {how}"


VERIFY_PROVES = "proved by its verify command (red before, green after)"
VERIFY_GREEN_WITHOUT = f"{NOT_PROVEN}its verify command is green without the story's code too"
IGNORED_WORK = (
    f"{NOT_PROVEN}its verify command is green only with files that git ignores: a fresh clone does"
    " not have them"
)


def vacuous(tests: Sequence[str]) -> str:
    return f"{NOT_PROVEN}the new tests pass without it too ({short_names(tests)})"


def moved(tests: Sequence[str]) -> str:
    """Of tests that stand elsewhere now; with what was there before they say the same."""
    return f"{NOT_PROVEN}tests were moved, and pass without it too ({short_names(tests)})"


def unloadable(tests: Sequence[str]) -> str:
    return f"{NOT_PROVEN}the tests only import the new file ({short_names(tests)})"


def reached(tests: Sequence[str]) -> str:
    words = (
        "without it the tests only miss a name or a command, which says nothing about what it does"
    )
    return f"{NOT_PROVEN}{words} ({short_names(tests)})"


def skipping(tests: Sequence[str]) -> str:
    return f"{NOT_PROVEN}the new tests are skipped without it ({short_names(tests)})"


def unseen(tests: Sequence[str]) -> str:
    return f"{NOT_PROVEN}the new tests were not run without it ({short_names(tests)})"


def unjudged(checks: Sequence[str]) -> str:
    """Of a change after which the old tests cannot even be run, or brought back."""
    words = "nobody knows what the old tests say of the new code"
    return f"{NOT_PROVEN}{words} ({some(checks, _MOST)})"


def unsteady(tests: Sequence[str]) -> str:
    """Of old tests that fail with the new code, and pass when they are run again."""
    verb = "fails" if len(tests) == 1 else "fail"
    words = f"as before the story {verb} with the new code, and not every time"
    return f"{NOT_PROVEN}{short_names(tests)} {words}"


def peeking(found: Sequence[str]) -> str:
    """Of code that may do something else where nobody looks."""
    return f"{NOT_PROVEN}{some(found, 2)}"


def idle(tests: Sequence[str]) -> str:
    return f"removed tests that would still pass: {short_names(tests)}"


def weakened(tests: Sequence[str]) -> str:
    old = "Its old version fails on the new code; the new version passes on the old code too"
    if len(tests) > 1:
        old = "Their old versions fail on the new code; the new versions pass on the old code too"
    return f"{_tests(tests)} weakened: {short_names(tests)}. {old}"


def removed(tests: Sequence[str]) -> str:
    return f"{_tests(tests)} removed: {short_names(tests)}. {_old_fails(tests)}"


def skipped(tests: Sequence[str]) -> str:
    return f"{_tests(tests)} skipped: {short_names(tests)}. {_old_fails(tests)}"


def lost(tests: Sequence[str]) -> str:
    return (
        f"{_tests(tests)} no longer run in full, though no test file changed: {short_names(tests)}"
    )


def unsolved(tests: Sequence[str]) -> str:
    return f"red {_tests(tests)} gone or skipped instead of green: {short_names(tests)}"


def gone(tests: Sequence[str]) -> str:
    return f"{_tests(tests)} gone together with the code: {short_names(tests)}"


def look_at(found: Sequence[str]) -> str:
    """What a person is to judge: the first of it, and that there is more."""
    more = f"; {len(found) - 1} more to look at" if len(found) > 1 else ""
    return f"look at: {found[0]}{more}"


def unclear(tests: Sequence[str]) -> str:
    words = "could not be compared with the old version"
    return f"{_tests(tests)} changed: {short_names(tests)}, and {words}"


def earlier(tests: Sequence[str]) -> str:
    """Of tests that an earlier story made easier, or took away, before a later one needed that."""
    was, fails, them = (
        ("it was", "fails", "it") if len(tests) == 1 else ("they were", "fail", "them")
    )
    words = f"{fails} with the new code and not without: an earlier story changed {them}"
    return f"{short_names(tests)}, as {was} when the run began, {words}"


def needed(files: Sequence[str]) -> str:
    words = "changed, and without that the verify command is red"
    return f"{some(files, _MOST)} {words}: is it what is asked for, or what is expected?"


def needed_by_tests(files: Sequence[str]) -> str:
    words = "changed, and without that old tests are red"
    return f"{some(files, _MOST)} {words}: is it what is asked for, or what is expected?"


def expects_otherwise(test: str, was: str, now: str) -> str:
    """A changed expectation, with what each form says of the other side's code."""
    told = f"{short_name(test)} expects something else now"
    values = []
    if was:
        values.append(f"the old test with the new code: {was}")
    if now:
        values.append(f"the new test with the old code: {now}")
    return f"{told} ({'; '.join(values)})" if values else told


def _tests(tests: Sequence[str]) -> str:
    return "test" if len(tests) == 1 else "tests"


def _old_fails(tests: Sequence[str]) -> str:
    if len(tests) == 1:
        return "Its old version fails on the new code"
    return "Their old versions fail on the new code"


def noticed(test: str, piece: str, what: str) -> str:
    """By a test that asserts otherwise where the new code does something else."""
    return f"proved by {short_name(test)}: it notices if {piece} {what}"


NO_TEST_NOTICES = "no test notices if "


def unnoticed(piece: str, what: str, place: str) -> str:
    return f"{NO_TEST_NOTICES}{piece} {what} ({place})"


def add_a_test(unnoticed: str) -> str:
    """What an agent is asked for, once."""
    return f"{unnoticed}: add a test that does, or say why there is none"


def answers(pieces: Sequence[str]) -> str:
    verb = "only hands" if len(pieces) == 1 else "only hand"
    whose = "its" if len(pieces) == 1 else "their"
    return f"{NOT_PROVEN}{some(pieces)} {verb} out answers that {whose} own tests repeat"


def too_many(functions: int) -> str:
    return (
        f"{NOT_PROVEN}{counted(functions, 'new function')} could not be tried: there are too many"
    )


def unwatched(places: Sequence[str], lines: int) -> str:
    """Lines of a story's change that could be wrong."""
    verb = "is" if len(places) == 1 else "are"
    of = counted(lines, "changed line")
    return f"{len(places)} of {of} {verb} watched by no test: {some(places)}"
