"""What speaks against a pattern: its file, the attempts that carried it, another pattern.  Pure.

Four rules that a person can check, and no other score:

* Its files are gone: it is retired, for as long as they are.
* It names a file, and attempts that carried it and had to do with that file failed at least three
  times, and three times as often as the others: it is retired.
* Something else says the contrary.  What a person approved, or what was measured in two stories,
  retires the sentence against it; two later stories that say the contrary retire what was said
  before.  Otherwise both are disputed, and neither is carried until somebody settles it.
* A person says so (`SharedEntry`).

What is retired is gone from prompts and from published files.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from msgspec.structs import replace

from ralphloop.learning.model import Learning, NoteSource, Pattern, PatternStanding
from ralphloop.learning.wording import deny, forbids_change, paths_in, words_of

GONE = "its file is gone"
_ENOUGH_FAILURES = 3
_TIMES_AS_OFTEN = 3
_ENOUGH_OTHERS = 3
_MOST_OF_A_FILE = 40  # patterns that are compared with each other
_CORRECTED_BY = 2  # later stories
_SETTLED = (PatternStanding.RETIRED, PatternStanding.HELD_BACK)


def settle(
    patterns: Sequence[Pattern], learnings: Sequence[Learning], exists: Callable[[str], bool]
) -> Iterator[Pattern]:
    """The same patterns, with what speaks against them."""
    is_tried = any(one.files and one.carried >= _ENOUGH_FAILURES for one in patterns)
    attempts = []  # each with the files it changed, or that a check it failed names
    for learning in learnings if is_tried else ():
        errors = " ".join(note.text for note in learning.notes if note.source is NoteSource.CHECK)
        attempts.append((learning, {*learning.files, *paths_in(errors)}))
    judged: dict[str, Pattern] = {}
    for pattern in patterns:
        why = GONE if pattern.files and not any(map(exists, pattern.files)) else ""
        if not why and pattern.standing is not PatternStanding.APPROVED:
            why = _harm(pattern, attempts)
        known = pattern.standing is PatternStanding.RETIRED
        judged[pattern.id] = _retired(pattern, why) if why and not known else pattern
    by_file: dict[str, list[str]] = defaultdict(list)
    for pattern in judged.values():
        if pattern.standing not in _SETTLED:
            for path in _about(pattern):
                by_file[path].append(pattern.id)
    for ids in by_file.values():
        for one, other in combinations(ids[:_MOST_OF_A_FILE], 2):
            a, b = judged[one], judged[other]
            if PatternStanding.RETIRED not in (a.standing, b.standing) and _deny(a, b):
                judged[one], judged[other] = _settled(a, b), _settled(b, a)
    return iter(judged.values())


def _retired(pattern: Pattern, why: str) -> Pattern:
    return replace(pattern, standing=PatternStanding.RETIRED, reason=why)


def _about(pattern: Pattern) -> set[str]:
    named = {*pattern.files, *paths_in(pattern.sentence)}
    return named | {path.rpartition("/")[2] for path in named}


# --- the attempts that carried it ------------------------------------------------------------


def _harm(pattern: Pattern, attempts: Sequence[tuple[Learning, set[str]]]) -> str:
    """Why the attempts that carried it speak against it; empty where they do not."""
    if not pattern.files or pattern.carried < _ENOUGH_FAILURES:
        return ""
    files = set(pattern.files)
    with_it, others, elsewhere = list[bool](), list[bool](), list[bool]()
    for learning, concerned in attempts:
        failed = learning.outcome != "passed"
        if pattern.id not in learning.carried:
            elsewhere.append(failed)
            others += [failed] if files & concerned else []
        elif files & concerned:
            with_it.append(failed)
    compared = others if len(others) >= _ENOUGH_OTHERS else elsewhere
    failures = sum(with_it)
    if failures < _ENOUGH_FAILURES or not compared:
        return ""
    usual = (sum(compared) + 0.5) / (len(compared) + 1)  # a few that went well prove little
    if failures / len(with_it) < _TIMES_AS_OFTEN * usual:
        return ""
    return (
        f"{failures} of {len(with_it)} attempts that carried it and had to do with"
        f" {pattern.files[0]} failed, {sum(compared)} of {len(compared)} others"
    )


# --- another pattern -------------------------------------------------------------------------


def _deny(a: Pattern, b: Pattern) -> bool:
    """They cannot both be right; two measured ones can."""
    words = [one for one in (a, b) if one.source.is_free_text]
    if len(words) == 2:
        return deny(words_of(a.sentence), words_of(b.sentence))
    if not words:
        return False
    (said,) = words
    (measured,) = (one for one in (a, b) if one is not said)
    return bool(set(measured.files) & _about(said)) and forbids_change(said.sentence)


def _settled(pattern: Pattern, against: Pattern) -> Pattern:
    """The pattern after somebody heard both."""
    touched = max(pattern.touched, against.touched)
    pattern = replace(pattern, touched=touched)
    if pattern.standing is PatternStanding.APPROVED:
        return pattern
    measured, said = not pattern.source.is_free_text, against.source.is_free_text
    if against.standing is PatternStanding.APPROVED:
        return _retired(pattern, f"a person approved the contrary: [{against.id}]")
    if against.standing is PatternStanding.ESTABLISHED:
        return _retired(pattern, f"measured otherwise: [{against.id}]")
    if pattern.standing is PatternStanding.ESTABLISHED:
        return pattern
    if not measured and said and _corrected(pattern, against):
        return _retired(pattern, f"later stories say the contrary: [{against.id}]")
    if not measured and said and _corrected(against, pattern):
        return pattern
    reason = f"[{against.id}] says the contrary"
    return replace(pattern, standing=PatternStanding.DISPUTED, reason=reason)


def _corrected(older: Pattern, newer: Pattern) -> bool:
    return newer.story_count >= _CORRECTED_BY and newer.last_seen > older.last_seen
