"""What an error message means: tables from words and HTTP statuses to outcomes.

**Sentences** that a CLI prints as its whole answer in text mode must match a whole line, because
the same words inside an honest answer mean nothing.  In **error messages** from a channel that
carries nothing else (an error event, a failed result, stderr of an empty run) a word is enough.

CLIs that name no epoch write when a limit resets: a time ("resets 10:27pm (UTC)"), a date ("resets
Nov 20, 11:34am (UTC)") or a span ("reset after 5h12m3s").  Without a zone it is local where the CLI
runs, and cut to the minute: it means the end of that minute.  A time just past is given as it is,
for another day would have been named; whoever waits tries again soon.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ralphloop.core.model import Outcome
from ralphloop.core.policy import JUST_PAST_S
from ralphloop.text.plain import LazyRegex, any_case, clean, one_line


class Verdict(NamedTuple):
    outcome: Outcome
    reason: str


_REST = r"(?: ?[·∙•|.—–:-].*)?"  # a sentence may go on after a mark, never after a mere blank

_SENTENCES: dict[Outcome, tuple[str, ...]] = {
    Outcome.USAGE_LIMIT: (
        rf"You['’](?:ve|re) (?:hit|reached|at) your (?:[\w'’-]+ ){{0,5}}limit{_REST}",
        rf"Claude (?:AI |Code )?usage limit reached{_REST}",
        rf"(?:5-hour|session|weekly|opus|sonnet|usage)(?: weekly)? limit reached{_REST}",
        rf"(?:You['’]re|Your org(?:anization)? is) out of (?:extra )?usage(?: credits)?{_REST}",
        rf".{{1,80}} requires usage credits{_REST}",
    ),
    Outcome.FATAL: (
        rf"(?:Invalid API key|Not logged in|Please run /login|Credit balance is too low){_REST}",
        r"Failed to authenticate\. .*|There['’]s an issue with the selected model .*",
        rf"(?:Your )?OAuth token (?:has expired|has been revoked|revoked){_REST}",
        rf"(?:.{{0,80}} )?usage allocation has been disabled by your admin{_REST}",
        rf"(?:This|Your) (?:account|organization) has been disabled{_REST}",
        rf"Your organization has disabled [\w ]{{1,60}}{_REST}",
    ),
    Outcome.LIMIT: (
        r"Error: Reached max turns \(\d+\)|Error: Exceeded USD budget \(.*\)",
        rf"Prompt is too long{_REST}",
    ),
    Outcome.INTERRUPTED: (r"Execution error",),
    Outcome.TRANSIENT: (r"Request timed out",),
}
_COMPILED = tuple(
    (any_case("|".join(sentences)), outcome) for outcome, sentences in _SENTENCES.items()
)
_API_ERROR = any_case(r"API Error(?::| \() ?.*")
_STATUS = any_case(r"API Error:? (?:[A-Za-z ]{0,40}\()?(\d{3})\b|\bstatus(?: code)?:? (\d{3})\b")

_USAGE_LIMIT = any_case(
    r"(?:hit|reached) your (?:(?!rate)[\w'’-]+ ){0,5}(?:limit|cap)\b|requires usage credits"
    r"|usage[ _]limit[ _](?:has been )?reached|(?:\bis|['’]re) out of (?:extra )?usage"
    r"|\bdaily (?:quota|limit)|(?:\bper[- ]|requestsper)day|quota will reset"
)
_OWN_LIMIT = any_case(
    r"context window|context[ _]length|maximum context|prompt is too long"
    r"|maximum number of tokens|too many tokens|output token maximum|max session turns"
    r"|(?:request|payload|entity|content)[ _]too[ _]large|\bstatus:? 413\b"
)
_BILLING = any_case(
    r"insufficient[ _](?:quota|credits|balance)|exceeded your current quota|quota exceeded\. check"
    r"|credit balance|\bplan, upgrade to|payment required|billing details"
    r"|billing_(?:hard_limit|not_active)"
)
_AUTH = any_case(
    r"\b40[13]\b|unauthori[sz]ed|forbidden|not logged in|authenticat"
    r"|(?:incorrect|invalid|missing|no|bad) api[ _]?key|missing environment variable"
    r"|api[ _]?key (?:not valid|is invalid|expired)|token (?:has )?expired"
    r"|(?:log|sign) ?in again|set an auth method"
)
_MODEL = any_case(
    r"(?:unknown|unsupported|unrecogni[sz]ed|no such|not a valid|invalid) model\b"
    r"|model_not_found|modelnotfound|llm provider not provided|no endpoints found for"
    r"|\bmodel (?:identifier|id|name)\b.{0,80}\b(?:invalid|not valid|unknown|isn't supported)"
    r"|\bmodel\b.{0,80}(?:not (?:found|exist|supported|valid)|end of (?:its )?life)"
    r"|\bmodel\b.{0,80}(?<!currently )(?<!temporarily )not available(?! right| at the| yet| now)"
)
_PASSING = any_case(
    r"\b(?:408|429|5\d\d)\b|too many requests|rate.?limit|overloaded|high demand|at capacity"
    r"|connect|stream error|network|timed? ?out|terminated|fetch failed|socket|econn"
    r"|enotfound|eai_again|temporar|server error|internal error|unavailable|try again"
    r"|resource has been exhausted"
)

# Key, money, permission, model; and a request that is too large, as one that is too long.
_BY_STATUS = {**dict.fromkeys((401, 402, 403, 404), Outcome.FATAL), 413: Outcome.LIMIT}
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


def sentence_verdict(line: str) -> Verdict | None:
    """What a CLI's sentence means if the whole line is one, else None."""
    line = clean(line[:2_000]).strip()
    for pattern, outcome in _COMPILED:
        if pattern.fullmatch(line):
            return Verdict(outcome, line)
    if _API_ERROR.fullmatch(line):
        named = [int(match[1] or match[2]) for match in _STATUS.finditer(line)]
        return failure_verdict(line, named[-1] if named and 100 <= named[-1] <= 599 else None)
    return None


def concerns_login(reason: str) -> bool:
    """Whether what is fatal is the key or the login: neither money nor the model's name."""
    return not (_BILLING.search(reason) or _MODEL.search(reason))


def failure_verdict(message: str, status: int | None = None) -> Verdict:
    """What an error means by its status and its words; `error` where neither says."""
    message = message[:4_000]
    table = _MESSAGES
    by_status = Outcome.ERROR
    if status in _PASSING_STATUS or (status or 0) >= 500:
        # a 429 may hide a quota, a 500 is never about the key
        table = _MESSAGES[:2]
        by_status = Outcome.TRANSIENT
    elif status is not None:
        table = _MESSAGES[:5]
        by_status = _BY_STATUS.get(status, Outcome.ERROR)
    outcome = next((outcome for words, outcome in table if words.search(message)), by_status)
    return Verdict(outcome, one_line(message, 1_000) or f"HTTP {status}")


_EPOCH = any_case(r"\|\s*(?P<epoch>\d{9,13})\b")
_LEAD = r"\b(?:resets?|(?:try|retry) again|available again)(?: (?:at|on))? "
_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]\.?m\b)?"
_ZONE = r"(?:[^()\n]{0,20}\((?P<zone>[A-Za-z][A-Za-z0-9_+/-]{1,40})\))?"
_DATED = any_case(
    rf"{_LEAD}(?P<month>[a-z]{{3}})[a-z]{{0,6}}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"(?:,? (?P<year>20\d\d)\b)?(?:(?:,| at|, at)? {_TIME})?{_ZONE}"
)
_TODAY = any_case(rf"{_LEAD}{_TIME}{_ZONE}")
_SPAN = any_case(
    r"\b(?:resets?|again|retry) (?:in|after) (?P<span>(?:\d{1,4} ?[a-z]{1,7}[ ,]{0,2}){1,4})"
)
_PART = any_case(r"(\d{1,4}) ?([dhms])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def reset_time(sentence: str, now: datetime | None) -> int | None:
    """The epoch second at which the limit resets, or None where it cannot be known; the zone of
    `now` is the one that the CLI speaks in."""
    sentence = sentence[:2_000]
    if match := _EPOCH.search(sentence):
        epoch = int(match["epoch"])
        return epoch // 1000 if epoch > 10**11 else epoch
    if now is None:
        return None
    span = _SPAN.search(sentence)
    parts = _PART.finditer(span["span"]) if span else ()
    seconds = sum(int(part[1]) * _SECONDS[part[2].lower()] for part in parts)
    try:
        return _from_clock(sentence, now) or (int(now.timestamp()) + seconds if seconds else None)
    except (ValueError, OverflowError):  # the 31st of February, 25:70, the year 10000
        return None


def _from_clock(sentence: str, now: datetime) -> int | None:
    dated = _DATED.search(sentence)
    match = dated or _TODAY.search(sentence)
    if match is None or not (dated or match["minute"] or match["half"]):
        return None
    zone = now.tzinfo
    if match["zone"]:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            zone = ZoneInfo(match["zone"])
        except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown here, or no zone at all
            zone = UTC
    here = now.astimezone(zone)
    hour = int(match["hour"] or 0)
    minute = int(match["minute"] or 0)
    if half := (match["half"] or "").lower()[:1]:
        hour = hour % 12 + (12 if half == "p" else 0)
    if dated:
        month = dated["month"].lower()
        year = int(dated["year"] or here.year)
        if month not in _MONTHS:
            return None
        when = (year, _MONTHS.index(month) + 1, int(dated["day"]), hour, minute)
        moment = datetime(*when, tzinfo=here.tzinfo)
        if not dated["year"] and moment < here - timedelta(days=30):
            moment = moment.replace(year=moment.year + 1)  # "Jan 2", said in December
        return int(moment.timestamp())
    today = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    moments = (
        int((today + timedelta(days=day)).replace(fold=fold).timestamp())
        for day in (-1, 0, 1)
        for fold in (0, 1)  # where clocks are set back a time comes twice
    )
    oldest = now.timestamp() - JUST_PAST_S
    return min(moment for moment in moments if moment > oldest) + (0 if match["zone"] else 60)
