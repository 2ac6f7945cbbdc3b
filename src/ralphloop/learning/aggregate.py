"""From many learnings to few patterns: merge what says the same, count, judge.  Pure.

Notes are compared only with a bounded number of notes that share one of their rarest words or a
path, so time does not grow with their square.  Measured notes and words are never merged.

Only stories that passed count.  One that was *given* a pattern and says it again has not found it:
else one poisoned note would confirm itself.  Of several wordings the shortest stands, so that
nothing rides along with what two stories agree on.  No pattern are failures nobody has repaired,
commands that worked, and what comes with a change in the top directory.  What everybody has
(`SharedEntry`) comes first: what is like it is it.  `doubts` has the last word.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from ralphloop.learning.doubts import settle
from ralphloop.learning.model import (
    EntryWord,
    Index,
    Learning,
    Note,
    NoteKind,
    NoteSource,
    Pattern,
    PatternStanding,
    Saying,
    SharedEntry,
)
from ralphloop.learning.wording import (
    CATEGORIES,
    SAME,
    category_of,
    is_plain_path,
    is_same,
    match_words,
    remedy,
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
_NO_ENTRY = SharedEntry(id="", word=EntryWord.OPEN)
_Sort = tuple[bool, bool]  # a failure or not, words or measured


@dataclass
class _Cluster:
    """Notes that say the same."""

    id: str
    words: frozenset[str]
    first: Saying
    entry: SharedEntry = _NO_ENTRY
    told: list[tuple[Note, Learning]] = field(default_factory=list)
    stories: tuple[str, ...] = ()  # that found it and passed

    @property
    def seen(self) -> str:
        return max((learning.timestamp for _, learning in self.told), default=self.entry.at)

    @property
    def stands(self) -> bool:
        """The words everybody has hold: a person's, or those of two stories told elsewhere."""
        told_elsewhere = bool(self.entry.id) and len(self.stories) < ENOUGH_STORIES
        return told_elsewhere or self.entry.word is EntryWord.APPROVED


def aggregate(
    learnings: Sequence[Learning],
    entries: Iterable[SharedEntry] = (),
    *,
    now: float,
    exists: Callable[[str], bool] = bool,
) -> Index:
    told = list(_told(learnings))
    known = {text: words_of(text) for text in {_said(note) for note, _ in told}}
    merger = _Merger(Counter(word for note, _ in told for word in known[_said(note)]))
    for entry in entries:
        merger.enter(entry)
    for note, learning in told:
        merger.cluster_of(note, known[_said(note)]).told.append((note, learning))
    passed = {one.story for one in learnings if one.outcome == "passed"}
    use = _Use(learnings)
    scored = []
    for cluster in merger.clusters:
        if cluster.entry.word is not EntryWord.FORGOTTEN:
            cluster.stories = _finders(cluster, passed)
            scored.append((-_score(cluster, now), cluster.id, cluster))
    best = sorted(scored, key=lambda entry: entry[:2])[:MAX_PATTERNS]
    patterns = [_pattern(cluster, use, -score) for score, _, cluster in best]
    return Index(
        learnings=len(learnings),
        patterns=tuple(settle(patterns, learnings, exists)),
        found_by=tuple(sorted({story for _, _, one in best for story in one.stories})),
    )


def _finders(cluster: _Cluster, passed: set[str]) -> tuple[str, ...]:
    """Stories that passed and found it; one that was given the words and repeats them has not."""
    found = (
        learning.story
        for note, learning in cluster.told
        if learning.story in passed
        and not (note.source.is_free_text and cluster.id in learning.carried)
    )
    return tuple(dict.fromkeys(found))


def _told(learnings: Sequence[Learning]) -> Iterator[tuple[Note, Learning]]:
    """Every note that may be a pattern, with the learning it is from."""
    for learning in learnings:
        for note in learning.notes:
            unrepaired = note.kind is NoteKind.FAILURE and not note.lesson
            if note.source not in (NoteSource.FILES, NoteSource.COMMAND) and not unrepaired:
                yield note, learning
    for rule, seen in _rules(learnings):
        yield from ((rule, learning) for learning in seen)


class _Use:
    """How often patterns were carried, and how that went."""

    def __init__(self, learnings: Iterable[Learning]) -> None:
        self.given, self.passed, self.last = Counter[str](), Counter[str](), dict[str, str]()
        for learning in learnings:
            self.given.update(learning.carried)
            self.passed.update(learning.carried if learning.outcome == "passed" else ())
            self.last.update(dict.fromkeys(learning.carried, learning.timestamp))


class _Merger:
    """Finds for each note the cluster it belongs to."""

    def __init__(self, frequency: Counter[str]) -> None:
        self.clusters: list[_Cluster] = []
        self._by_id: dict[str, _Cluster] = {}
        self._by_word: dict[tuple[_Sort, str], list[_Cluster]] = defaultdict(list)
        self._frequency = frequency

    def enter(self, entry: SharedEntry) -> None:
        """What everybody has; nothing is left of some but the id."""
        said = entry.said or _said(entry)
        if said.strip():
            cluster = self.cluster_of(entry, words_of(said))
        else:
            cluster = _Cluster(entry.id, frozenset(), entry)
            self.clusters.append(cluster)
        if not cluster.entry.id:
            cluster.id, cluster.entry = entry.id, entry
        self._by_id[entry.id] = cluster

    def cluster_of(self, note: Saying, words: frozenset[str]) -> _Cluster:
        sort = (note.kind is NoteKind.FAILURE, note.source.is_free_text)
        made = _id(words, sort)
        known = self._by_id.get(made) or self._like(words, sort)
        if known is None:
            known = _Cluster(made, words, note)
            self.clusters.append(known)
            for word in self._telling(words):
                if len(found := self._by_word[sort, word]) < _MAX_CANDIDATES:
                    found.append(known)
        self._by_id[made] = known
        return known

    def _like(self, words: frozenset[str], sort: _Sort) -> _Cluster | None:
        for word in self._telling(words):
            for cluster in self._by_word.get((sort, word), ()):
                if is_same(words, cluster.words):
                    return cluster
        return None

    def _telling(self, words: frozenset[str]) -> list[str]:
        """So many of the rarest words that two sets alike enough share one of them; and paths."""
        ordered = sorted(words, key=lambda word: (self._frequency[word], word))
        rarest = ordered[: len(words) - math.ceil(SAME * len(words)) + 1]
        return list(dict.fromkeys([*rarest, *(word for word in ordered if "/" in word)]))


def _said(note: Saying) -> str:
    """What two stories must agree on: with a model's words the lesson too, ours is derived."""
    return f"{note.text} {note.lesson}" if note.source.is_free_text else note.text


def id_of(note: Saying) -> str:
    return _id(words_of(_said(note)), (note.kind is NoteKind.FAILURE, note.source.is_free_text))


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
        if pair[0]  # with a change in the top directory comes everything
        and len({one.story for one in told}) >= ENOUGH_STORIES
        and len(told) >= _RULE_CONFIDENCE * touched[pair[0]]
    ]
    likely.sort(key=lambda rule: (-len(rule[1]), rule[0]))
    for (parent, path), told in likely[:_MAX_RULES]:
        yield (
            Note(
                kind=NoteKind.DISCOVERY,
                text=f"a change in `{parent}/` mostly comes with one in `{path}`",
                category=category_of([f"{parent}/{path}"]),
                source=NoteSource.FILES,
                evidence=(f"file {path}",),
            ),
            told,
        )


# --- patterns --------------------------------------------------------------------------------


def _pattern(cluster: _Cluster, use: _Use, score: float) -> Pattern:
    notes, entry, key = [note for note, _ in cluster.told], cluster.entry, cluster.id
    # The shortest wording stands, unless everybody has another.
    shortest = min(notes, key=lambda one: len(one.sentence), default=cluster.first)
    note = cluster.first if cluster.stands else shortest
    evidence = [item.partition(" ") for said in notes for item in said.evidence]
    changed = Counter(path for kind, _, path in evidence if kind == "file" and is_plain_path(path))
    derived = not cluster.stands and not note.source.is_free_text
    lesson = _lesson(notes, changed) if derived else note.lesson
    files = entry.files or _named(changed, lesson)
    commits = (one.commit for _, one in cluster.told if one.commit and one.outcome == "passed")
    reason = suspicion(f"{note.text} {lesson}")
    called = {learning.story: learning.task_id for _, learning in cluster.told}
    return Pattern(
        id=key,
        kind=note.kind,
        text=note.text,
        lesson=lesson,
        category=entry.category or _category(notes) or category_of(files, note.text),
        source=note.source,
        standing=_standing(cluster, msgspec.structs.replace(note, lesson=lesson), reason),
        reason=entry.reason if entry.word is EntryWord.RETIRED else reason,
        stories=tuple(called[story] for story in cluster.stories[:_SHOWN]),
        story_count=len(cluster.stories),
        last_seen=cluster.seen,
        touched=max(cluster.seen, use.last.get(key, ""), entry.at),
        files=files,
        commit=entry.commit or next(commits, ""),
        hunk=entry.hunk if entry.commit else "",
        carried=use.given[key],
        carried_passed=use.passed[key],
        score=score,
        words=tuple(sorted(match_words(f"{note.text} {' '.join(files)}"))),
    )


def _named(changed: Counter[str], lesson: str) -> tuple[str, ...]:
    """The files it is about: those its lesson names, else those it was seen with most."""
    named = [path for path in changed if f"`{path}`" in lesson]
    return tuple(named or [path for path, _ in changed.most_common(_SHOWN)])[:_SHOWN]


def _lesson(notes: Sequence[Note], changed: Counter[str]) -> str:
    """For failures we measured, what changed, or was run, every time one of them went away."""
    lessons = [note.lesson for note in notes if note.lesson]
    always = sorted(path for path, count in changed.items() if count == len(lessons))
    ran = Counter(item for note in notes for item in note.evidence if item.startswith("command "))
    commands = [item[8:] for item, count in ran.items() if count == len(lessons)]
    # Where nothing is common to them, it was something else each time.
    return remedy(always[:3], commands[:1]) or (lessons[0] if len(set(lessons)) == 1 else "")


def _category(notes: Sequence[Note]) -> str:
    """What more than half of the notes are about."""
    counts = Counter(note.category for note in notes if note.category in CATEGORIES - {"general"})
    name, count = next(iter(counts.most_common(1)), ("", 0))
    return name if 2 * count > len(notes) else "general" if len(counts) > 1 else ""


def _standing(cluster: _Cluster, note: Saying, reason: str) -> PatternStanding:
    word = cluster.entry.word
    if word in (EntryWord.APPROVED, EntryWord.RETIRED):
        return PatternStanding(word)
    if reason:
        return PatternStanding.HELD_BACK
    if note.source.is_free_text:
        return PatternStanding.PROPOSED
    unrepaired = note.kind is NoteKind.FAILURE and not note.lesson
    if word is EntryWord.ESTABLISHED or (len(cluster.stories) >= ENOUGH_STORIES and not unrepaired):
        return PatternStanding.ESTABLISHED
    return PatternStanding.NOTED


def _score(cluster: _Cluster, now: float) -> float:
    """How often it was found, and how recently."""
    try:
        age_days = max(0.0, now - parse_iso(cluster.seen)) / 86_400
    except ValueError:
        age_days = _HALF_LIFE_DAYS  # a date nobody can read is neither new nor ancient
    least = ENOUGH_STORIES if cluster.entry.id else 1
    often = math.log2(1 + max(least, len(cluster.stories)))
    recent = 0.25 + 0.75 * math.exp2(-age_days / _HALF_LIFE_DAYS)
    return round(often * recent, 4)
