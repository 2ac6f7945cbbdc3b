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

from ralphloop.learning.caution import suspicion
from ralphloop.learning.model import (
    Decided,
    Index,
    Kind,
    Learning,
    Note,
    Pattern,
    Source,
    Standing,
)
from ralphloop.learning.words import (
    CATEGORIES,
    SAME,
    category_of,
    is_plain_path,
    is_same,
    match_words,
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

    note: Note
    words: frozenset[str]
    id: str
    decided: str = ""
    stories: dict[str, None] = field(default_factory=dict)
    seen: str = ""
    evident: bool = False
    fixed: int = 0  # how often a failure went away
    lesson: str = ""  # of the first of them
    categories: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    commits: dict[str, None] = field(default_factory=dict)


def aggregate(
    learnings: Sequence[Learning], decisions: Iterable[Decided] = (), *, now: float
) -> Index:
    """All patterns of these learnings, best first."""
    said = list(_told(learnings))
    known = {text: words_of(text) for text in {_said(note) for note, _ in said}}
    told = [(note, known[_said(note)], learning) for note, learning in said]
    merger = _Merger(Counter(word for _, words, _ in told for word in words))
    for decided in decisions:
        merger.decide(decided)
    for note, words, learning in told:
        merger.add(note, words, learning)
    return Index(
        learnings=len(learnings),
        patterns=tuple(_patterns(merger.clusters, _given(learnings), now)),
    )


def _told(learnings: Sequence[Learning]) -> Iterator[tuple[Note, Learning]]:
    """Every note with the learning it is from; what a file list says alone is no pattern."""
    for learning in learnings:
        for note in learning.notes:
            if note.source is not Source.FILES:
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

    def decide(self, decided: Decided) -> None:
        """A person's word comes first: what is like it is it."""
        note = Note(
            kind=decided.kind, text=decided.text, lesson=decided.lesson, source=decided.source
        )
        cluster = self._cluster_of(note, words_of(_said(note)))
        cluster.id, cluster.decided = decided.id, decided.word

    def add(self, note: Note, words: frozenset[str], learning: Learning) -> None:
        cluster = self._cluster_of(note, words)
        if not (note.source.is_free_text and cluster.id in learning.carried):
            cluster.stories[learning.task_id] = None
        _remember(cluster, note, learning)

    def _cluster_of(self, note: Note, words: frozenset[str]) -> _Cluster:
        sort = (note.kind is Kind.FAILURE, note.source.is_free_text)
        known = self._known.get((sort, words)) or self._like(words, sort)
        if known is None:
            known = _Cluster(note=note, words=words, id=_id(words, sort))
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


def _remember(cluster: _Cluster, note: Note, learning: Learning) -> None:
    """Add one note's facts; the shortest wording stands unless a person approved another."""
    if not cluster.decided and len(note.text + note.lesson) < len(
        cluster.note.text + cluster.note.lesson
    ):
        cluster.note = note
    cluster.seen = max(cluster.seen, learning.timestamp)
    cluster.evident = cluster.evident or bool(note.evidence)
    if note.lesson:
        cluster.fixed += 1
        cluster.lesson = cluster.lesson or note.lesson
    cluster.categories[note.category] = cluster.categories.get(note.category, 0) + 1
    for item in note.evidence:
        kind, _, path = item.partition(" ")
        if kind == "file" and is_plain_path(path):
            cluster.files[path] = cluster.files.get(path, 0) + 1
    if learning.commit:
        cluster.commits[learning.commit] = None


def _said(note: Note) -> str:
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
        touched.update({_parent(path) for path in files})
        for pair in {(_parent(one), other) for one in files for other in files if one != other}:
            together[pair].append(learning)
    likely = [
        (pair, told)
        for pair, told in together.items()
        if len({one.task_id for one in told}) >= ENOUGH_STORIES
        and len(told) >= _RULE_CONFIDENCE * touched[pair[0]]
    ]
    likely.sort(key=lambda rule: (-len(rule[1]), rule[0]))
    for (parent, path), told in likely[:_MAX_RULES]:
        yield _rule(parent, path), told


def _rule(parent: str, path: str) -> Note:
    where = f"`{parent}/`" if parent else "the top directory"
    return Note(
        kind=Kind.DISCOVERY,
        text=f"a change in {where} mostly comes with one in `{path}`",
        category=category_of([f"{parent}/{path}" if parent else path]),
        source=Source.FILES,
        evidence=(f"file {path}",),
    )


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


# --- patterns --------------------------------------------------------------------------------


def _given(learnings: Iterable[Learning]) -> dict[str, tuple[int, int]]:
    """For each pattern: attempts that were given it, and how many of them passed."""
    given, passed = Counter[str](), Counter[str]()
    for learning in learnings:
        given.update(learning.carried)
        if learning.outcome == "passed":
            passed.update(learning.carried)
    return {one: (count, passed[one]) for one, count in given.items()}


def _patterns(
    clusters: Iterable[_Cluster], given: dict[str, tuple[int, int]], now: float
) -> Iterator[Pattern]:
    scored = [
        (-_score(cluster, *given.get(cluster.id, (0, 0)), now), cluster.id, cluster)
        for cluster in clusters
        if cluster.decided != "forgotten"
    ]
    for score, _, cluster in sorted(scored, key=lambda entry: entry[:2])[:MAX_PATTERNS]:
        yield _pattern(cluster, *given.get(cluster.id, (0, 0)), -score)


def _pattern(cluster: _Cluster, carried: int, passed: int, score: float) -> Pattern:
    note = cluster.note
    files = tuple(sorted(cluster.files, key=lambda path: -cluster.files[path])[:_SHOWN])
    lesson = _lesson(cluster)
    reason = suspicion(f"{note.text} {lesson}")
    return Pattern(
        id=cluster.id,
        kind=note.kind,
        text=note.text,
        lesson=lesson,
        category=_category(cluster, files),
        source=note.source,
        standing=_standing(cluster, reason),
        reason=reason,
        stories=tuple(cluster.stories)[:_SHOWN],
        story_count=len(cluster.stories),
        last_seen=cluster.seen,
        evident=cluster.evident,
        files=files,
        commits=tuple(cluster.commits)[-2:],
        carried=carried,
        carried_passed=passed,
        score=score,
        words=tuple(sorted(match_words(f"{note.text} {' '.join(files)}"))),
    )


def _lesson(cluster: _Cluster) -> str:
    """A person's or a model's as it is; for failures we measured, what changed every time."""
    if cluster.decided or cluster.note.source.is_free_text:
        return cluster.note.lesson
    always = sorted(path for path, count in cluster.files.items() if count == cluster.fixed)
    if not always:
        return cluster.lesson
    return f"went away with a change in {', '.join(f'`{path}`' for path in always[:3])}"


def _category(cluster: _Cluster, files: tuple[str, ...]) -> str:
    known = {name: count for name, count in cluster.categories.items() if name in CATEGORIES}
    known.pop("general", None)
    if not known:
        return category_of(files, cluster.note.text)
    return min(known, key=lambda name: (-known[name], name))


def _standing(cluster: _Cluster, reason: str) -> Standing:
    if cluster.decided == "approved":
        return Standing.APPROVED
    if reason:
        return Standing.HELD_BACK
    return Standing.ESTABLISHED if len(cluster.stories) >= ENOUGH_STORIES else Standing.NOTED


def _score(cluster: _Cluster, carried: int, passed: int, now: float) -> float:
    """How often it was found, how recently, and how the stories went that were given it."""
    often = math.log2(1 + max(1, len(cluster.stories)))
    try:
        age_days = max(0.0, now - parse_iso(cluster.seen)) / 86_400
    except ValueError:
        age_days = _HALF_LIFE_DAYS  # a date nobody can read is neither new nor ancient
    recent = 0.25 + 0.75 * math.exp2(-age_days / _HALF_LIFE_DAYS)
    went = (passed + 1) / (carried + 1)
    return round(often * recent * went, 4)
