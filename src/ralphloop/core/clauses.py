"""Whether words that look like a statement are stated.

"The project is complete" states something; "once the project is complete", "the README says the
project is complete", "the project is complete except for the docs" do not.  A pattern for a
statement is therefore tried only where a clause can begin, and believed only if

* what stands before it neither makes it a condition, a wish or a guess, nor puts it into
  somebody else's mouth,
* what stands behind it neither narrows it to a part nor takes it back,
* the sentence is no question and carries no mark that says no.

Sentences are judged in plain form (`plain`): lower case, without emphasis, with everything in
quotation marks replaced by `…`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ralphloop.core.patterns import Pattern
from ralphloop.core.prose import ANYTHING

MAX_SENTENCE = 1500  # a longer "sentence" is not speech

_QUOTED = Pattern(
    r'"[^"\n]{1,400}"|“[^”\n]{1,400}”|«[^»\n]{1,400}»|„[^“”\n]{1,400}[“”]'
    r"|(?<!\w)'(?:[^'\n]|'(?=\w)){1,400}'(?!\w)"
)
_EMPHASIS = Pattern(r"\*+|(?<!\w)_+|_+(?!\w)|~~[^~\n]{1,400}~~|[\[\]]")
_ASIDE = Pattern(r"\s*\(([^()\n]{0,300})\)")
_SIGNS = Pattern(r"[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]+")
_NO_SIGN = Pattern(r"[❌✗✘❎☐⬜🔲⏳⌛🚧⚠🔴🟡🟠🛑⛔]")

_START = Pattern(
    r"(?P<mark>[;:,]\s+|\s-\s+|[—–]\s*)(?!then\b)(?:(?:and|so|thus|hence|therefore)\s+)?"
    r"|\s(?P<word>and|so|therefore|that|meaning|means)\s+"
)
_ADJUNCTS = Pattern(
    r"(?:(?:and|so|then|thus|hence|therefore|that|now|finally|at last|also|overall|currently"
    r"|indeed|again|yes|ok|okay|great|great news|good news|as of now|at this point|in short"
    r"|in summary|today|to summari[sz]e|it turns out|as a result|with this|with that"
    r"|with this change|with [^,;:]{1,40} (?:in place|merged|landed)"
    r"|with [a-z][a-z0-9]{0,9}-\d{1,6}|since|because|given that"
    r"|in the end|here|summary|results?|status|conclusion|update|verdict"
    r"|outcome|note|verification|tl;dr"
    r"|(?:final|current|test) (?:status|state|result|results|summary)"
    r"|(?:i|we) (?:can |have |hereby |also |now )*"
    r"(?:confirm|verified|checked|confirmed|report|state|note|declare)(?: that)?"
    r"|(?:verified|confirmed|checked)(?: that)?)[,:]?\s+(?:[-–—]\s+)?){0,4}"
)
_LABEL = Pattern(
    r"(?:.{0,40}\b)?(?:summary|results?|status|state|conclusion|update|verdict|outcome|note|news"
    r"|verification|progress|done|complete|completed|finished|short|end|tl;dr|green|clean|tests?)"
    r"|(?:i|we|ran|re-ran|all|yes|it'?s|that'?s|that was)\b.{0,120}|\w+ed\b.{0,120}"
)
_VOUCHED = Pattern(
    r"\b(?:confirms?|confirmed|verified|checked|means|meaning|clear|note|sure|shows|proves|proven|found)$"
)
_UNCERTAIN = Pattern(
    r"(?:once|when|whenever|if|until|unless|whether|while|before|as soon as|by the time|assuming"
    r"|provided|in case|so that|as long as|apparently|hopefully|maybe|perhaps|probably|presumably"
    r"|possibly|supposedly|ideally|eventually|soon|next|later|tomorrow|previously|earlier"
    r"|originally|initially|yesterday|in theory|in the future|in future|for example|for instance"
    r"|e\.g|according|as far as|let's|let me|make sure|ensure|verify|confirm|check|see|re-?run"
    r"|run)\b"
)
_OPEN_MOOD = Pattern(
    r"\b(?:once|when|whenever|if|until|unless|whether|before|as soon as|by the time|assuming"
    r"|provided|so that|will|would|should|could|might|may|must|shall|can|going to|want|wants|need"
    r"|needs|hope|expect|expects|plan|plans|ensure|ensures|make sure|think|believe|guess|doubt"
    r"|seems?|appears?|to (?:make|get|have|see|be|call|declare|mark|consider))\b|'ll\b|'d\b"
)
_SPEECH = Pattern(
    r"\b(?:says?|said|saying|claims?|claimed|states?|stated|asks?|asked|tells?|told|wants?|wanted"
    r"|expects?|expected|requires?|announces?|message|label|labels|string|strings|title|heading"
    r"|banner|badge|slogan|phrase|example|wording|criterion|criteria|acceptance|condition|conditions"
    r"|prompt|template|readme|changelog|user|gate|goal|expectation|definition)\b"
)
# a report about the criteria quotes none of them
_CRITERIA_MET = Pattern(
    r"\b(?:acceptance )?criteri(?:a|on) (?:is|are|has been|have been)(?: (?:now|all|fully)){0,2}"
    r" (?:met|satisfied|fulfilled|covered)\b"
)
_DISPLAY = Pattern(
    r"\b(?:prints?|printed|shows?|showed|displays?|reads?|logs?|logged|outputs?|returns?|writes?"
    r"|emits?|renders?|text|line|called|named|like|such as|as|to|be|with)\W*$"
)
_DENIAL = Pattern(
    r"(?:\bnot\b|n't\b|\bcannot\b|\bnever\b|\bno\b).{0,60}"
    r"\b(?:that|say|claim|confirm|guarantee|sure|mean|think|believe|consider|declare|true|proof)\b"
)

_BOUNDARY = Pattern(
    r"\s*(?:$|[.!;,—–]|-\s|:(?!\s*\d)|:\s*\d+ (?:tests? )?(?:passed|passing|green|ok)\b)"
    r"|\s+(?:and|so|because|since|as of|after|which|thanks|now that)\b"
)
_LISTING = Pattern(r"\s*:\s+(?!(?:all|every|each|everything|nothing|no|see|i|we|it)\b)")
_TAKEN_BACK = Pattern(
    r"[\s.!;,:—–-]*(?:and\s+)?(?:but|except|excepting|excluding|however|although|though|albeit"
    r"|apart from|aside from|other than|besides|save for|barring|beyond|bar|until|unless|if|once"
    r"|when|as soon as|as long as|as far as|assuming|provided|pending|modulo|minus|less|only|yet"
    r"|while|whereas|at least|for|in|on|not|or|subject to|leaving|awaiting|in theory|more or less"
    r"|sort of|kind of|i think|i guess|i believe|i hope|hopefully|probably|presumably|supposedly"
    r"|apparently|says|said|waiting|so far"
    r"|(?:the|my|your|its|his|her) (?:\w+ )?(?:says?|claims?)(?! so\b))\b"
)
_PLAIN_ADVERBS = Pattern(
    r"(?:\s(?:now(?! that)|again|today|successfully|too|overall|everywhere|cleanly|in full|already"
    r"|as (?:requested|planned|specified|required|expected|well|intended|asked|described|outlined)"
    r"|in \d[\d.]{0,6} ?(?:s|ms|secs?|seconds?|m|mins?|minutes?)\b|their (?:\w+ )?(?:tests|checks)"
    r"|at this point|end[- ]to[- ]end|locally|(?:on|in) ci|with \d[\d.]{0,5} ?% coverage"
    r"|(?:on|in|for|across) (?:all|every|both)(?: supported)? (?:platform|browser|environment"
    r"|version|package|module|target|database|workspace)s?"
    r"|with (?:all|no|zero|every)\b[^,;.]{0,60}|without (?:any )?(?:errors?|warnings?|issues?"
    r"|failures?|problems?|regressions?)))*"
)
_NARROWED = Pattern(
    r"\b(?:only|except|unit|backend|back end|front ?end|part|phase|step|module|so far|locally"
    r"|mostly|pending|to ?do|partial\w*|first|excluding|minus|for|not|untested|draft|excl)\b"
)


class Clause(msgspec.Struct, frozen=True):
    """A place in a plain sentence where a statement may begin."""

    start: int
    mark: str  # what separates it from the words before: "", ";", ",", ":", "and" …


class Plain(msgspec.Struct, frozen=True):
    """A sentence without its dress, and the asides that stood in brackets."""

    words: str
    asides: tuple[str, ...]


def plain(sentence: str) -> Plain | None:
    """The sentence as judged; None for questions, refusals by sign and what is no speech."""
    if len(sentence) > MAX_SENTENCE or _NO_SIGN.search(sentence):
        return None
    text = _QUOTED.sub(ANYTHING, sentence.replace("’", "'"))
    text = _SIGNS.sub(" ; ", _EMPHASIS.sub("", text)).lower()
    asides = tuple(aside[1] for aside in _ASIDE.finditer(text))
    text = " ".join(_ASIDE.sub("", text).split()).strip(" ;:-–—")
    return None if text.endswith("?") else Plain(text, asides)


def clauses(words: str) -> Iterator[Clause]:
    """Each place where a statement may begin and is not put in doubt by what precedes it."""
    yield Clause(_skipped(words, 0), "")
    for found in _START.finditer(words):
        mark = found["word"] or found["mark"].strip()
        if _is_stated(words[: found.start()], mark):
            yield Clause(_skipped(words, found.end()), mark)


def is_final(words: str, end: int, *, within: Pattern) -> bool:
    """True when nothing behind `end` narrows the statement beyond `within` or takes it back."""
    if scope := within.match(words, end):
        end = scope.end()
    if adverbs := _PLAIN_ADVERBS.match(words, end):
        end = adverbs.end()
    return _BOUNDARY.match(words, end) is not None and _TAKEN_BACK.match(words, end) is None


def is_listing(words: str, end: int) -> bool:
    """True when a list follows, so that "complete: lexer, parser" names the parts that are."""
    return _LISTING.match(words, end) is not None


def narrows(asides: tuple[str, ...]) -> bool:
    """True when an aside limits what the sentence states."""
    return any(_NARROWED.search(aside) for aside in asides)


def _skipped(words: str, start: int) -> int:
    adjuncts = _ADJUNCTS.match(words, start)
    return adjuncts.end() if adjuncts else start


def _is_stated(left: str, mark: str) -> bool:
    """Whether the words before a clause leave it a statement of its own."""
    left = left[left.rfind(";") + 1 :].strip() if mark != ";" else ""
    left = _CRITERIA_MET.sub("", left)
    if _UNCERTAIN.match(left) or _SPEECH.search(left) or _DISPLAY.search(left):
        return False
    if _DENIAL.search(f"{left} {mark}"):
        return False
    if mark == ":":
        return _LABEL.fullmatch(left) is not None
    if mark == "that" and not _VOUCHED.search(left):
        return False
    if mark.isalpha():
        # without a comma the clause shares the mood of the one before: "until A and B"
        return _OPEN_MOOD.search(left) is None
    return True
