"""What an error message means: tables from words and HTTP statuses to outcomes.

Two kinds of message:

* **Sentences** a CLI prints as its whole answer in text mode.  They must match a whole line,
  because the same words inside an honest answer mean nothing.
* **Error messages** from a channel that carries nothing but errors (an error event, a failed
  result, stderr of a run that printed nothing).  There a word is enough.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ralphloop.core.model import Outcome
from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.plain import clean, one_line


class Verdict(NamedTuple):
    """How a start ended, and why in one line."""

    outcome: Outcome
    reason: str


_REST = r"(?: ?[·∙•|.—–:-].*)?"  # a sentence may go on after a mark, never after a mere blank

_SENTENCES: tuple[tuple[str, Outcome], ...] = (
    (
        rf"You['’](?:ve|re) (?:hit|reached|at) your (?:[\w'’-]+ ){{0,5}}limit{_REST}",
        Outcome.USAGE_LIMIT,
    ),
    (rf"Claude (?:AI |Code )?usage limit reached{_REST}", Outcome.USAGE_LIMIT),
    (
        rf"(?:5-hour|session|weekly|opus|sonnet|usage)(?: weekly)? limit reached{_REST}",
        Outcome.USAGE_LIMIT,
    ),
    (rf"You['’]re out of (?:extra )?usage(?: credits)?{_REST}", Outcome.USAGE_LIMIT),
    (
        rf"Your org(?:anization)? is out of (?:extra )?usage(?: credits)?{_REST}",
        Outcome.USAGE_LIMIT,
    ),
    (rf".{{1,80}} requires usage credits{_REST}", Outcome.USAGE_LIMIT),
    (rf"Invalid API key{_REST}", Outcome.FATAL),
    (rf"Not logged in{_REST}", Outcome.FATAL),
    (rf"Please run /login{_REST}", Outcome.FATAL),
    (rf"Credit balance is too low{_REST}", Outcome.FATAL),
    (r"Failed to authenticate\. .*", Outcome.FATAL),
    (rf"(?:Your )?OAuth token (?:has expired|has been revoked|revoked){_REST}", Outcome.FATAL),
    (rf"(?:.{{0,80}} )?usage allocation has been disabled by your admin{_REST}", Outcome.FATAL),
    (rf"(?:This|Your) (?:account|organization) has been disabled{_REST}", Outcome.FATAL),
    (rf"Your organization has disabled [\w ]{{1,60}}{_REST}", Outcome.FATAL),
    (r"There['’]s an issue with the selected model .*", Outcome.FATAL),
    (r"Error: Reached max turns \(\d+\)", Outcome.LIMIT),
    (r"Error: Exceeded USD budget \(.*\)", Outcome.LIMIT),
    (rf"Prompt is too long{_REST}", Outcome.LIMIT),
    (r"Execution error", Outcome.INTERRUPTED),
    (r"Request timed out", Outcome.TRANSIENT),
)
_COMPILED = tuple((LazyRegex(words, re.IGNORECASE), outcome) for words, outcome in _SENTENCES)
_LIMIT_START = LazyRegex(
    r"You['’]ve (?:hit|reached) your |You['’]re out of (?:extra )?usage"
    r"|Your org(?:anization)? is out of usage|.{1,80} requires usage credits",
    re.IGNORECASE,
)
_API_ERROR = LazyRegex(r"API Error(?::| \() ?.*", re.IGNORECASE)
_STATUS = LazyRegex(
    r"API Error:? (?:[A-Za-z ]{0,40}\()?(\d{3})\b|\bstatus(?: code)?:? (\d{3})\b", re.IGNORECASE
)

_USAGE_LIMIT = LazyRegex(
    r"(?:hit|reached) your (?:[\w-]+ ){0,2}usage limit|usage limit (?:has been )?reached"
    r"|usage_limit_reached|\bdaily (?:quota|limit)|(?:\bper[- ]|requestsper)day|quota will reset",
    re.IGNORECASE,
)
_OWN_LIMIT = LazyRegex(
    r"context window|context[ _]length|maximum context|prompt is too long"
    r"|maximum number of tokens|too many tokens|output token maximum|max session turns",
    re.IGNORECASE,
)
_BILLING = LazyRegex(
    r"insufficient[ _](?:quota|credits|balance)|exceeded your current quota|quota exceeded\. check"
    r"|credit balance|\bplan, upgrade to|payment required|billing details"
    r"|billing_(?:hard_limit|not_active)",
    re.IGNORECASE,
)
_AUTH = LazyRegex(
    r"\b40[13]\b|unauthori[sz]ed|unauthenticated|forbidden|not logged in|authenticat"
    r"|(?:incorrect|invalid|missing|no|bad) api[ _]?key|missing environment variable"
    r"|api[ _]?key (?:not valid|is invalid|expired)|token (?:has )?expired"
    r"|(?:log|sign) ?in again|set an auth method",
    re.IGNORECASE,
)
_MODEL = LazyRegex(
    r"(?:unknown|unsupported|unrecogni[sz]ed|no such|not a valid|invalid) model\b"
    r"|model_not_found|modelnotfound|llm provider not provided|no endpoints found for"
    r"|\bmodel (?:identifier|id|name)\b.{0,80}\b(?:invalid|not valid|unknown|isn't supported)"
    r"|\bmodel\b.{0,80}(?:not (?:found|exist|supported|valid)|end of (?:its )?life)"
    r"|\bmodel\b.{0,80}(?<!currently )(?<!temporarily )not available(?! right| at the| yet| now)",
    re.IGNORECASE,
)
_PASSING = LazyRegex(
    r"\b(?:408|429|5\d\d)\b|too many requests|rate.?limit|overloaded|high demand|at capacity"
    r"|disconnected|connect|stream error|network|timed? ?out|terminated|fetch failed|socket|econn"
    r"|enotfound|eai_again|temporar|server error|internal error|unavailable|try again"
    r"|resource has been exhausted",
    re.IGNORECASE,
)

_FATAL_STATUS = (401, 402, 403, 404)  # key, money, permission, model
_PASSING_STATUS = (408, 409, 425, 429)

# What the words mean where the status does not settle it, most telling first.
_MESSAGES: tuple[tuple[LazyRegex, Outcome], ...] = (
    (_USAGE_LIMIT, Outcome.USAGE_LIMIT),
    (_BILLING, Outcome.FATAL),
    (_OWN_LIMIT, Outcome.LIMIT),
    (_AUTH, Outcome.FATAL),
    (_MODEL, Outcome.FATAL),
    (_PASSING, Outcome.TRANSIENT),
)
_FOR_PASSING_STATUS = _MESSAGES[:2]  # a 429 may hide a quota, a 500 is never about the key
_FOR_CLIENT_STATUS = _MESSAGES[:5]


def sentence_verdict(line: str) -> Verdict | None:
    """What a CLI's sentence means if the whole line is one, else None."""
    line = clean(line[:2_000]).strip()
    for pattern, outcome in _COMPILED:
        if pattern.fullmatch(line):
            return Verdict(outcome, line)
    if _API_ERROR.fullmatch(line):
        return failure_verdict(line, status_in(line))
    return None


def announces_limit(message: str) -> bool:
    """Whether an error message of Claude Code begins like those it uses for usage limits."""
    return _LIMIT_START.match(message[:400]) is not None


def status_in(message: str) -> int | None:
    """The last HTTP status an error message names."""
    found = [match[1] or match[2] for match in _STATUS.finditer(message)]
    return int(found[-1]) if found and 100 <= int(found[-1]) <= 599 else None


def failure_verdict(message: str, status: int | None = None) -> Verdict:
    """What an error means by its status and its words; `error` where neither says."""
    message = message[:4_000]
    table = _MESSAGES
    if status is not None:
        table = _FOR_PASSING_STATUS if is_passing(status) else _FOR_CLIENT_STATUS
    by_words = next((outcome for words, outcome in table if words.search(message)), None)
    outcome = by_words or outcome_of_status(status)
    return Verdict(outcome, one_line(message, 1_000) or f"HTTP {status}")


def is_passing(status: int) -> bool:
    return status in _PASSING_STATUS or status >= 500


def outcome_of_status(status: int | None) -> Outcome:
    if status is None:
        return Outcome.ERROR
    if is_passing(status):
        return Outcome.TRANSIENT
    return Outcome.FATAL if status in _FATAL_STATUS else Outcome.ERROR
