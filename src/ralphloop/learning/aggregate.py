"""From many learnings to few patterns: merge what says the same, count, judge.  Pure.

Notes are compared only with a bounded number of notes that share one of their rarest words or a
path, so time does not grow with their square.  Measured notes and words are never merged, and what
is like a `SharedEntry` is it.  Only stories that passed count; one that was *given* a pattern and
says it again has not found it: else one poisoned note would confirm itself.  Of several wordings
the shortest stands, so that nothing rides along with what two stories agree on.  Failures nobody
repaired, commands that worked, what comes with a change in the top directory and what the stories
themselves asked for are no patterns.

A pattern is retired from prompts and published files, by rules that a person can check, where

* its files are gone, for as long as they are;
* it names a file, and attempts that carried it and had to do with that file failed at least three
  times, and three times as often as the others;
* something that a person approved, or that was measured in two stories, or two later stories say
  the contrary; otherwise both are disputed, and neither is carried until somebody settles it;
* a person says so (`SharedEntry`).
"""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from msgspec.structs import replace

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
    are_about_the_same,
    category_of,
    deny,
    is_plain_path,
    is_same,
    match_words,
    paths_in,
    remedy,
    suspicion,
    words_of,
)
from ralphloop.text.durations import parse_iso
from ralphloop.text.plain import LazyRegex

MAX_PATTERNS = 1_000
ENOUGH_STORIES = 2
_HALF_LIFE_DAYS = 30.0
_MAX_CANDIDATES = 32  # per word
_SHOWN = 5
_RULE_FILES = 12
_MAX_RULES = 200
_RULE_CONFIDENCE = 0.6
_NO_ENTRY = SharedEntry(id="", word=EntryWord.OPEN)
GONE = "its file is gone"
_ENOUGH_FAILURES = 3
_TIMES_AS_OFTEN = 3
_ENOUGH_OTHERS = 3
_MOST_OF_A_FILE = 40  # patterns that are compared with each other
_CORRECTED_BY = 2  # later stories
# A sentence that says to leave its file as it is.
_FORBIDDEN = LazyRegex(
    r"\b(?:never|not|no|don't|without|avoid|nor) (?:[\w`./]+ ){0,4}?"
    r"(?:edit|chang|touch|modif|writ|add|list|updat|register)"
    r"|\b(?:is|are|gets?) (?!not\b)(?:\w+ )?(?:auto-?)?generated\b"
    r"|\bread-only\b|\bleave\b.{0,40}\balone\b",
    re.I,
)
_SETTLED = (PatternStanding.RETIRED, PatternStanding.HELD_BACK)
_Sort = tuple[bool, bool]  # a failure or not, words or measured


@dataclass
class _Cluster:
    id: str
    words: frozenset[str]
    first: Saying
    entry: SharedEntry = _NO_ENTRY
    told: list[tuple[Note, Learning]] = field(default_factory=list)
    stories: dict[str, str] = field(default_factory=dict)  # that found it and passed, by content

    @property
    def seen(self) -> str:
        return max((learning.timestamp for _, learning in self.told), default=self.entry.at)


def aggregate(
    learnings: Sequence[Learning],
    entries: Iterable[SharedEntry] = (),
    *,
    now: float,
    exists: Callable[[str], bool] = bool,
) -> Index:
    told = list(_told(learnings))
    merger = _Merger(Counter(word for note, _ in told for word in words_of(_said(note))))
    for entry in entries:
        merger.enter(entry)
    passed = {one.story for one in learnings if one.outcome == "passed"}
    for note, learning in told:
        cluster = merger.cluster_of(note)
        cluster.told.append((note, learning))
        # One that was given the words and repeats them has not found it.
        repeated = note.source.is_free_text and cluster.id in learning.carried
        if learning.story in passed and not repeated:
            cluster.stories[learning.story] = learning.task_id
    carriers: dict[str, list[Learning]] = defaultdict(list)  # of a pattern
    for learning in learnings:
        for key in learning.carried:
            carriers[key].append(learning)
    kept = [one for one in merger.clusters if one.entry.word is not EntryWord.FORGOTTEN]
    best = sorted(kept, key=lambda one: (-_score(one, now), one.id))[:MAX_PATTERNS]
    patterns = [_pattern(one, carriers[one.id], _score(one, now)) for one in best]
    return Index(
        learnings=len(learnings),
        patterns=tuple(settle(patterns, learnings, exists)),
        found_by=tuple(sorted({story for one in best for story in one.stories})),
    )


def _told(learnings: Sequence[Learning]) -> Iterator[tuple[Note, Learning]]:
    """Every note that may be a pattern, with the learning it is from."""
    touched: Counter[str] = Counter()
    together: dict[tuple[str, str], list[Learning]] = defaultdict(list)
    for learning in learnings:
        for note in learning.notes:
            unrepaired = note.kind is NoteKind.FAILURE and not note.lesson
            if note.source not in (NoteSource.FILES, NoteSource.COMMAND) and not unrepaired:
                yield note, learning
        if learning.outcome == "passed":
            files = [path for path in learning.files[:_RULE_FILES] if is_plain_path(path)]
            parents = {path: path.rpartition("/")[0] for path in files}
            touched.update(set(parents.values()))
            # What a story asked for comes with nothing but that story.
            unasked = [path for path in files if path not in learning.asked]
            for pair in {
                (parents[one], other) for one in files for other in unasked if one != other
            }:
                together[pair].append(learning)
    # Where a change in a directory mostly comes with a change in one file.
    likely = [
        (pair, told)
        for pair, told in together.items()
        if pair[0]  # with a change in the top directory comes everything
        and len({one.story for one in told}) >= ENOUGH_STORIES
        and len(told) >= _RULE_CONFIDENCE * touched[pair[0]]
    ]
    likely.sort(key=lambda rule: (-len(rule[1]), rule[0]))
    for (parent, path), told in likely[:_MAX_RULES]:
        rule = Note(
            text=f"a change in `{parent}/` mostly comes with one in `{path}`",
            category=category_of([f"{parent}/{path}"]),
            source=NoteSource.FILES,
            evidence=(f"file {path}",),
        )
        yield from ((rule, learning) for learning in told)


class _Merger:
    """Finds for each note the cluster it belongs to."""

    def __init__(self, frequency: Counter[str]) -> None:
        self.clusters: list[_Cluster] = []
        self._by_id: dict[str, _Cluster] = {}
        self._by_word: dict[tuple[_Sort, str], list[_Cluster]] = defaultdict(list)
        self._frequency = frequency

    def enter(self, entry: SharedEntry) -> None:
        """What everybody has; nothing is left of some but the id."""
        if _said(entry).strip():
            cluster = self.cluster_of(entry)
        else:
            cluster = _Cluster(entry.id, frozenset(), entry)
            self.clusters.append(cluster)
        if not cluster.entry.id:
            cluster.id = entry.id
            cluster.entry = entry
        self._by_id[entry.id] = cluster

    def cluster_of(self, note: Saying) -> _Cluster:
        made = id_of(note)
        sort = _sort(note)
        words = words_of(_said(note))
        if (known := self._by_id.get(made)) is not None:
            return known
        # So many of the rarest words that two sets alike enough share one of them; and paths.
        ordered = sorted(words, key=lambda word: (self._frequency[word], word))
        rarest = ordered[: len(words) - math.ceil(SAME * len(words)) + 1]
        telling = dict.fromkeys([*rarest, *(word for word in ordered if "/" in word)])
        near = (one for word in telling for one in self._by_word.get((sort, word), ()))
        known = next((one for one in near if is_same(words, one.words)), None)
        if known is None:
            known = _Cluster(made, words, note)
            self.clusters.append(known)
            for word in telling:
                if len(found := self._by_word[sort, word]) < _MAX_CANDIDATES:
                    found.append(known)
        self._by_id[made] = known
        return known


def _sort(note: Saying) -> _Sort:
    return note.kind is NoteKind.FAILURE, note.source.is_free_text


def _said(note: Saying) -> str:
    """What two stories must agree on: with a model's words the lesson too, ours is derived."""
    if isinstance(note, SharedEntry) and note.said:
        return note.said
    return f"{note.text} {note.lesson}" if note.source.is_free_text else note.text


def id_of(note: Saying) -> str:
    text = " ".join([str(_sort(note)), *sorted(words_of(_said(note)))])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def _pattern(cluster: _Cluster, carriers: Sequence[Learning], score: float) -> Pattern:
    notes = [note for note, _ in cluster.told]
    entry = cluster.entry
    # The shortest wording stands, unless everybody has another that holds: a person's, or that of
    # two stories told elsewhere.
    told_elsewhere = bool(entry.id) and len(cluster.stories) < ENOUGH_STORIES
    stands = told_elsewhere or entry.word is EntryWord.APPROVED
    shortest = min(notes, key=lambda one: len(one.sentence), default=cluster.first)
    note = cluster.first if stands else shortest
    evidence = [item.partition(" ") for said in notes for item in said.evidence]
    changed = Counter(path for kind, _, path in evidence if kind == "file" and is_plain_path(path))
    derived = not stands and not note.source.is_free_text
    lesson = _lesson(notes, changed) if derived else note.lesson
    # The files it is about: those its lesson names, else those it was seen with most.
    named = [path for path in changed if f"`{path}`" in lesson]
    most = [path for path, _ in changed.most_common(_SHOWN)]
    files = entry.files or tuple((named or most)[:_SHOWN])
    commits = (one.commit for _, one in cluster.told if one.commit and one.outcome == "passed")
    reason = suspicion(f"{note.text} {lesson}")
    return Pattern(
        id=cluster.id,
        kind=note.kind,
        text=note.text,
        lesson=lesson,
        category=entry.category or _category(notes) or category_of(files, note.text),
        source=note.source,
        standing=_standing(cluster, replace(note, lesson=lesson), reason),
        reason=entry.reason if entry.word is EntryWord.RETIRED else reason,
        stories=tuple(cluster.stories.values())[:_SHOWN],
        story_count=len(cluster.stories),
        last_seen=cluster.seen,
        stands_since=max(cluster.seen, entry.at),
        touched=max(cluster.seen, entry.at, *(one.timestamp for one in carriers)),
        files=files,
        commit=entry.commit or next(commits, ""),
        hunk=entry.hunk if entry.commit else "",
        carried=len(carriers),
        carried_passed=sum(one.outcome == "passed" for one in carriers),
        score=score,
        words=tuple(sorted(match_words(f"{note.text} {' '.join(files)}"))),
    )


def _lesson(notes: Sequence[Note], changed: Counter[str]) -> str:
    """For failures we measured, what changed, or was run, every time one of them went away."""
    lessons = [note.lesson for note in notes if note.lesson]
    always = sorted(path for path, count in changed.items() if count == len(lessons))
    ran = Counter(item for note in notes for item in note.evidence if item.startswith("command "))
    commands = [item[8:] for item, count in ran.items() if count == len(lessons)]
    if common := remedy(always[:3], commands[:1]):
        return common
    # Where nothing is common to them, it was something else each time.
    return lessons[0] if len(set(lessons)) == 1 else ""


def _category(notes: Sequence[Note]) -> str:
    counts = Counter(note.category for note in notes if note.category in CATEGORIES - {"general"})
    if not counts:
        return ""
    [(name, count)] = counts.most_common(1)
    if 2 * count > len(notes):
        return name
    return "general" if len(counts) > 1 else ""


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


def settle(
    patterns: Sequence[Pattern], learnings: Sequence[Learning], exists: Callable[[str], bool]
) -> Iterator[Pattern]:
    """The same patterns, with what speaks against them."""
    judged = _without_spoiled(patterns, learnings, exists)
    by_file: dict[str, list[str]] = defaultdict(list)
    for pattern in judged.values():
        if pattern.standing not in _SETTLED:
            for path in _about(pattern):
                by_file[path].append(pattern.id)
    for ids in by_file.values():
        for one, other in combinations(ids[:_MOST_OF_A_FILE], 2):
            a = judged[one]
            b = judged[other]
            if PatternStanding.RETIRED not in (a.standing, b.standing) and _deny(a, b):
                judged[one] = _settled(a, b)
                judged[other] = _settled(b, a)
    return iter(judged.values())


def _without_spoiled(
    patterns: Sequence[Pattern], learnings: Sequence[Learning], exists: Callable[[str], bool]
) -> dict[str, Pattern]:
    """The same by id; those whose files are gone or that did harm are retired."""
    is_tried = any(one.files and one.carried >= _ENOUGH_FAILURES for one in patterns)
    attempts = []  # each with the files it changed, or that a check it failed names
    for learning in learnings if is_tried else ():
        errors = " ".join(note.text for note in learning.notes if note.source is NoteSource.CHECK)
        attempts.append((learning, {*learning.files, *paths_in(errors)}))
    judged: dict[str, Pattern] = {}
    for pattern in patterns:
        why = ""
        if pattern.files and not any(exists(path) for path in pattern.files):
            why = GONE
        elif pattern.standing is not PatternStanding.APPROVED:
            why = _harm(pattern, attempts)
        known = pattern.standing is PatternStanding.RETIRED
        judged[pattern.id] = _retired(pattern, why) if why and not known else pattern
    return judged


def _retired(pattern: Pattern, why: str) -> Pattern:
    return replace(pattern, standing=PatternStanding.RETIRED, reason=why)


def _about(pattern: Pattern) -> set[str]:
    named = {*pattern.files, *paths_in(pattern.sentence)}
    return named | {path.rpartition("/")[2] for path in named}


def _harm(pattern: Pattern, attempts: Sequence[tuple[Learning, set[str]]]) -> str:
    """Why the attempts that carried it speak against it; empty where they do not."""
    if not pattern.files or pattern.carried < _ENOUGH_FAILURES:
        return ""
    files = set(pattern.files)
    with_it = list[bool]()
    others = list[bool]()
    elsewhere = list[bool]()
    for learning, concerned in attempts:
        failed = learning.outcome not in ("passed", "blocked")  # a question is no failure
        if pattern.id not in learning.carried:
            elsewhere.append(failed)
            if files & concerned:
                others.append(failed)
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


def _deny(a: Pattern, b: Pattern) -> bool:
    """They cannot both be right; two measured ones can."""
    said, other = (a, b) if a.source.is_free_text else (b, a)
    if other.source.is_free_text:
        words = words_of(a.sentence)
        others = words_of(b.sentence)
        return are_about_the_same(words, others) and deny(words, others)
    concerned = said.source.is_free_text and bool(set(other.files) & _about(said))
    return concerned and bool(_FORBIDDEN.search(said.sentence[:1000]))


def _settled(pattern: Pattern, against: Pattern) -> Pattern:
    """The pattern after somebody heard both."""
    touched = max(pattern.touched, against.touched)
    pattern = replace(pattern, touched=touched)
    if pattern.standing is PatternStanding.APPROVED:
        return pattern
    said = pattern.source.is_free_text and against.source.is_free_text
    if against.standing is PatternStanding.APPROVED:
        return _retired(pattern, f"a person approved the contrary: [{against.id}]")
    if against.standing is PatternStanding.ESTABLISHED:
        return _retired(pattern, f"measured otherwise: [{against.id}]")
    if pattern.standing is PatternStanding.ESTABLISHED:
        return pattern
    seen = pattern.last_seen
    since = against.last_seen
    if said and against.story_count >= _CORRECTED_BY and since > seen:
        return _retired(pattern, f"later stories say the contrary: [{against.id}]")
    if said and pattern.story_count >= _CORRECTED_BY and seen > since:
        return pattern
    reason = f"[{against.id}] says the contrary"
    return replace(pattern, standing=PatternStanding.DISPUTED, reason=reason)
