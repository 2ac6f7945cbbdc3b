"""From many learnings to few patterns: merge near-duplicates, count, score.  Pure.

Notes are compared only with notes that share one of their rarest words (two sets that are alike
enough must), and with a bounded number of those, so time grows with the number of notes and not
with its square, whatever they say.

A story that was *given* a pattern and says it again has not found it: its words do not count as a
second story.  Otherwise one poisoned note would confirm itself.  Of several wordings the shortest
stands, so that nothing rides along with what two stories agree on.  What models say and what we
measured are never merged: only the latter is published without a person.

Which files change together is read from the learnings as a whole.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ralphloop.learning.model import (
    Decided,
    Index,
    Learning,
    Note,
    NoteKind,
    NoteSource,
    Pattern,
    PatternStanding,
    Saying,
)
from ralphloop.learning.wording import (
    CATEGORIES,
    SAME,
    category_of,
    is_plain_path,
    is_same,
    match_words,
    suspicion,
    words_of,
)
from ralphloop.text.durations import parse_iso

MAX_PATTERNS = 1_000
ENOUGH_STORIES = 2
_HALF_LIFE_DAYS = 30.0
_MAX_CANDIDATES = 32  # per word
_SHOWN = 5
_RULE_FILES = 12
_MAX_RULES = 200
_RULE_CONFIDENCE = 0.6
_Sort = tuple[bool, bool]  # a failure or not, a model's words or not


@dataclass
class _Cluster:
    """Notes that say the same."""

    id: str
    words: frozenset[str]
    first: Saying
    decided: str = ""
    told: list[tuple[Note, Learning]] = field(default_factory=list)

    @property
    def stories(self) -> tuple[str, ...]:
        """Those that found it; one that was given it and says it again has not."""
        return tuple(
            dict.fromkeys(
                learning.task_id
                for note, learning in self.told
                if not (note.source.is_free_text and self.id in learning.carried)
            )
        )

    @property
    def seen(self) -> str:
        return max((learning.timestamp for _, learning in self.told), default="")


def aggregate(
    learnings: Sequence[Learning], decisions: Iterable[Decided] = (), *, now: float
) -> Index:
    """All patterns of these learnings, best first."""
    told = list(_told(learnings))
    known = {text: words_of(text) for text in {_said(note) for note, _ in told}}
    merger = _Merger(Counter(word for note, _ in told for word in known[_said(note)]))
    for decided in decisions:  # a person's word comes first: what is like it is it
        cluster = merger.cluster_of(decided, words_of(_said(decided)))
        cluster.id, cluster.decided = decided.id, decided.word
    for note, learning in told:
        merger.cluster_of(note, known[_said(note)]).told.append((note, learning))
    given, passed = Counter[str](), Counter[str]()
    for learning in learnings:
        given.update(learning.carried)
        passed.update(learning.carried if learning.outcome == "passed" else ())
    scored = [
        (-_score(one, given[one.id], passed[one.id], now), one.id, one)
        for one in merger.clusters
        if one.decided != "forgotten"
    ]
    best = sorted(scored, key=lambda entry: entry[:2])[:MAX_PATTERNS]
    patterns = (_pattern(one, given[key], passed[key], -score) for score, key, one in best)
    return Index(learnings=len(learnings), patterns=tuple(patterns))


def _told(learnings: Sequence[Learning]) -> Iterator[tuple[Note, Learning]]:
    """Every note with the learning it is from; what a file list says alone is no pattern."""
    for learning in learnings:
        for note in learning.notes:
            if note.source is not NoteSource.FILES:
                yield note, learning
    for rule, seen in _rules(learnings):
        yield from ((rule, learning) for learning in seen)


class _Merger:
    """Finds for each note the cluster it belongs to."""

    def __init__(self, frequency: Counter[str]) -> None:
        self.clusters: list[_Cluster] = []
        self._known: dict[tuple[_Sort, frozenset[str]], _Cluster] = {}
        self._by_word: dict[tuple[_Sort, str], list[_Cluster]] = defaultdict(list)
        self._frequency = frequency

    def cluster_of(self, note: Saying, words: frozenset[str]) -> _Cluster:
        sort = (note.kind is NoteKind.FAILURE, note.source.is_free_text)
        known = self._known.get((sort, words)) or self._like(words, sort)
        if known is None:
            known = _Cluster(_id(words, sort), words, note)
            self.clusters.append(known)
            for word in self._rarest(words):
                if len(found := self._by_word[sort, word]) < _MAX_CANDIDATES:
                    found.append(known)
        self._known[sort, words] = known
        return known

    def _like(self, words: frozenset[str], sort: _Sort) -> _Cluster | None:
        for word in self._rarest(words):
            for cluster in self._by_word.get((sort, word), ()):
                if is_same(words, cluster.words):
                    return cluster
        return None

    def _rarest(self, words: frozenset[str]) -> list[str]:
        """So many of the rarest words that two sets alike enough share one of them."""
        ordered = sorted(words, key=lambda word: (self._frequency[word], word))
        return ordered[: len(words) - math.ceil(SAME * len(words)) + 1]


def _said(note: Saying) -> str:
    """What two stories must agree on: with a model's words the lesson too, ours is derived."""
    return f"{note.text} {note.lesson}" if note.source.is_free_text else note.text


def _id(words: frozenset[str], sort: _Sort) -> str:
    text = " ".join([str(sort), *sorted(words)])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


# --- which files change together -------------------------------------------------------------


def _rules(learnings: Iterable[Learning]) -> Iterator[tuple[Note, list[Learning]]]:
    """Where a change in a directory mostly comes with a change in one file."""
    touched: Counter[str] = Counter()
    together: dict[tuple[str, str], list[Learning]] = defaultdict(list)
    for learning in learnings:
        if learning.outcome != "passed":
            continue
        files = [path for path in learning.files[:_RULE_FILES] if is_plain_path(path)]
        parents = {path: path.rpartition("/")[0] for path in files}
        touched.update(set(parents.values()))
        for pair in {(parents[one], other) for one in files for other in files if one != other}:
            together[pair].append(learning)
    likely = [
        (pair, told)
        for pair, told in together.items()
        if len({one.task_id for one in told}) >= ENOUGH_STORIES
        and len(told) >= _RULE_CONFIDENCE * touched[pair[0]]
    ]
    likely.sort(key=lambda rule: (-len(rule[1]), rule[0]))
    for (parent, path), told in likely[:_MAX_RULES]:
        where = f"`{parent}/`" if parent else "the top directory"
        yield (
            Note(
                kind=NoteKind.DISCOVERY,
                text=f"a change in {where} mostly comes with one in `{path}`",
                category=category_of([f"{parent}/{path}" if parent else path]),
                source=NoteSource.FILES,
                evidence=(f"file {path}",),
            ),
            told,
        )


# --- patterns --------------------------------------------------------------------------------


def _pattern(cluster: _Cluster, carried: int, passed: int, score: float) -> Pattern:
    notes = [note for note, _ in cluster.told]
    # The shortest wording stands, unless a person approved another.
    shortest = min(notes, key=lambda one: len(one.sentence), default=cluster.first)
    note = cluster.first if cluster.decided else shortest
    evidence = [item.partition(" ") for said in notes for item in said.evidence]
    changed = Counter(path for kind, _, path in evidence if kind == "file" and is_plain_path(path))
    files = tuple(path for path, _ in changed.most_common(_SHOWN))
    commits = [learning.commit for _, learning in cluster.told if learning.commit]
    lesson = note.lesson if cluster.decided or note.source.is_free_text else _lesson(notes, changed)
    reason = suspicion(f"{note.text} {lesson}")
    return Pattern(
        id=cluster.id,
        kind=note.kind,
        text=note.text,
        lesson=lesson,
        category=_category(notes) or category_of(files, note.text),
        source=note.source,
        standing=_standing(cluster, reason),
        reason=reason,
        stories=cluster.stories[:_SHOWN],
        story_count=len(cluster.stories),
        last_seen=cluster.seen,
        evident=bool(evidence),
        files=files,
        commits=tuple(dict.fromkeys([*commits[:1], *commits[-1:]])),
        carried=carried,
        carried_passed=passed,
        score=score,
        words=tuple(sorted(match_words(f"{note.text} {' '.join(files)}"))),
    )


def _lesson(notes: Sequence[Note], changed: Counter[str]) -> str:
    """For failures we measured, what changed every time one of them went away."""
    lessons = [note.lesson for note in notes if note.lesson]
    always = sorted(path for path, count in changed.items() if count == len(lessons))
    if not always:
        return lessons[0] if lessons else ""
    return f"went away with a change in {', '.join(f'`{path}`' for path in always[:3])}"


def _category(notes: Iterable[Note]) -> str:
    """What most of the notes are about."""
    counts = Counter(note.category for note in notes if note.category in CATEGORIES - {"general"})
    return min(counts, key=lambda name: (-counts[name], name), default="")


def _standing(cluster: _Cluster, reason: str) -> PatternStanding:
    if cluster.decided == "approved":
        return PatternStanding.APPROVED
    if reason:
        return PatternStanding.HELD_BACK
    return (
        PatternStanding.ESTABLISHED
        if len(cluster.stories) >= ENOUGH_STORIES
        else PatternStanding.NOTED
    )


def _score(cluster: _Cluster, carried: int, passed: int, now: float) -> float:
    """How often it was found, how recently, and how the stories went that were given it."""
    try:
        age_days = max(0.0, now - parse_iso(cluster.seen)) / 86_400
    except ValueError:
        age_days = _HALF_LIFE_DAYS  # a date nobody can read is neither new nor ancient
    often = math.log2(1 + max(1, len(cluster.stories)))
    recent = 0.25 + 0.75 * math.exp2(-age_days / _HALF_LIFE_DAYS)
    went = (passed + 1) / (carried + 1)
    return round(often * recent * went, 4)
