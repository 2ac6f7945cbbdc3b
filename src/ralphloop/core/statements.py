"""What an agent's own words state about the work.

These are claims, read from prose where a status block is silent; they never pass a story by
themselves.  Three kinds of statement:

* **whole**: all of the work is finished ("all stories are complete", "nothing left to do");
* **piece**: the story at hand is finished ("US-004 is done", "all acceptance criteria are met");
* **no work**: it was there before ("already implemented", "no changes needed").

Which words say so is in `wording`, what makes them a statement at all in `clauses`, what takes a
statement back in `unfinished`.  "All tests pass" speaks for the whole, as one indicator next to
others, but claims no story: half a story can have green tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ralphloop.core import clauses, wording
from ralphloop.core.patterns import Pattern
from ralphloop.core.prose import Sentence, last_sentences, own_lines, prose, sentences
from ralphloop.core.questions import is_polite_closing, question_to_person
from ralphloop.core.text import clean, one_line
from ralphloop.core.unfinished import goes_on, is_elsewhere, is_unfinished, takes_back

__all__ = [
    "claims_completion",
    "has_promise",
    "prose",
    "question_to_person",
    "says_already_done",
    "says_done",
]

PROMISE = "<promise>COMPLETE</promise>"
_SHOWN = 300  # characters of a sentence that are handed back
_FIELD = Pattern(r"\bstatus\W{0,4}:")
# "Status: done" reports; the same words as a key (`status:`, `STATUS:`) or in a sentence show one
_REPORT = Pattern(
    r"[^\w/#<]*(?:Status|(?:Final|Current|Overall|Story|Task|Project) [Ss]tatus)\W{0,4}:"
)

_Judge = Callable[[Sentence, clauses.Plain], int | None]  # where the statement ends


def says_done(text: str) -> str | None:
    """The sentence that states that the whole work is finished, anywhere in the prose."""
    return _first_that_stands(sentences(text), _states_whole, whole=True)


def claims_completion(text: str) -> str | None:
    """A statement in the last paragraph that the piece at hand is finished or needed no work."""
    last = _last_paragraphs(last_sentences(text), 1)
    return _first_that_stands(last, _claims_piece) or _no_work(last)


def says_already_done(text: str) -> str | None:
    """A statement in the last two paragraphs that the work was there before."""
    return _no_work(_last_paragraphs(last_sentences(text), 2))


def has_promise(text: str) -> bool:
    """The completion promise is the last line outside fences and status blocks."""
    for line in reversed(list(own_lines(clean(text)))):
        if line.strip():
            return not line.startswith(("    ", "\t")) and line.strip(" \t*_") == PROMISE
    return False


# --- which statement stands -------------------------------------------------------------------


def _first_that_stands(
    found: Sequence[Sentence], judge: _Judge, *, whole: bool = False
) -> str | None:
    """The first sentence that states it and is not taken back, shortened for a report."""
    plains = [clauses.plain(sentence.text) for sentence in found]
    stated = [
        (index, end)
        for index, (sentence, plain) in enumerate(zip(found, plains, strict=True))
        if plain and not sentence.wished and wording.HINT.search(plain.words)
        if (end := judge(sentence, plain)) is not None
    ]
    begin = _after_denials(found, plains, stated[0][0], whole=whole) if stated else 0
    for index, end in stated:
        if index >= begin and not _is_taken_back(plains[index : index + 2], end, whole=whole):
            return one_line(found[index].text, _SHOWN)
    return None


def _after_denials(
    found: Sequence[Sentence],
    plains: Sequence[clauses.Plain | None],
    first: int,
    *,
    whole: bool,
) -> int:
    """The index behind the last sentence that says the work is not at its end."""
    for index in range(len(found) - 1, first - 1, -1):
        plain = plains[index]
        if found[index].kind == "open" or (plain and _denies(plain.words, whole=whole)):
            return index + 1
    return 0


def _denies(words: str, *, whole: bool) -> bool:
    if whole:
        return is_unfinished(words) or goes_on(words)
    return is_unfinished(words) and not is_elsewhere(words)


def _is_taken_back(pair: Sequence[clauses.Plain | None], end: int, *, whole: bool) -> bool:
    """Whether the rest of the sentence, its asides or the next sentence withdraw it."""
    plain, after = pair[0], pair[1] if len(pair) > 1 else None
    if plain is None:
        return False
    doubts = [plain.words[end:].lstrip(" ,;:—–-"), *plain.asides, *([after.words] if after else [])]
    return any(
        takes_back(doubt) and (whole or not is_elsewhere(doubt, plain.words)) for doubt in doubts
    )


# --- what a sentence states -------------------------------------------------------------------


def _states_whole(sentence: Sentence, plain: clauses.Plain) -> int | None:
    if sentence.kind == "text" and wording.SHOUT.fullmatch(plain.words):
        return len(plain.words)
    if clauses.narrows(plain.asides):
        return None
    return _stated(plain.words, (wording.WHOLE, wording.TESTS), wording.WITHIN_ALL)


def _claims_piece(sentence: Sentence, plain: clauses.Plain) -> int | None:
    words = plain.words
    if _FIELD.search(words) and not _REPORT.match(sentence.text):
        return None
    if sentence.kind != "heading" and (end := _lone(words)) is not None:
        return end
    return _stated(words, (wording.WHOLE, wording.PIECE), wording.WITHIN_PIECE)


def _lone(words: str) -> int | None:
    """The end of a bare "Done", which speaks of the piece at hand."""
    for clause in clauses.clauses(words):
        lone = wording.LONE.match(words, clause.start)
        if lone and clause.mark not in {",", "and"} and wording.AFTER_LONE.match(words, lone.end()):
            return lone.end()
    return None


def _stated(words: str, grammars: Sequence[Pattern], within: Pattern) -> int | None:
    """Where the statement ends, if the sentence makes one."""
    for clause in clauses.clauses(words):
        for grammar in grammars:
            found = grammar.match(words, clause.start)
            if found is None or (grammar is wording.WHOLE and not _is_all(words, found)):
                continue
            if clauses.is_final(words, found.end(), within=within):
                return found.end()
    return None


def _is_all(words: str, found: re.Match[str]) -> bool:
    """Whether the counts of "12 of 12 stories" agree and no list narrows the statement."""
    return found["part"] == found["total"] and not clauses.is_listing(words, found.end())


def _no_work(found: Sequence[Sentence]) -> str | None:
    """A statement that nothing had to be done, which no report of work contradicts."""
    plains = [clauses.plain(sentence.text) for sentence in found]
    worked = any(plain and wording.OTHER_WORK.search(plain.words) for plain in plains)
    weak = () if worked else (wording.SOMETHING_WAS_THERE,)

    def states(_: Sentence, plain: clauses.Plain) -> int | None:
        return _stated(plain.words, (wording.NO_WORK, *weak), wording.WITHIN_PAST)

    return _first_that_stands(found, states)


def _last_paragraphs(found: Sequence[Sentence], count: int) -> list[Sentence]:
    """The sentences of the last paragraphs, after closing courtesies are left out."""
    end = len(found)
    while end and is_polite_closing(found[end - 1].text):
        end -= 1
    start, numbers = end, set[int]()
    while start and len(numbers | {found[start - 1].paragraph}) <= count:
        start -= 1
        numbers.add(found[start].paragraph)
    return list(found[start:end])
