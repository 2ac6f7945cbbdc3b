"""What an error message means: tables from words and HTTP statuses to outcomes.

**Sentences** that a CLI prints as its whole answer in text mode must match a whole line, because
the same words inside an honest answer mean nothing.  In **error messages** from a channel that
carries nothing else (an error event, a failed result) a word is enough.  **stderr** of a start that
failed or said nothing stands between the two: a line of it counts where it tells of the provider,
and not where it tells of a wrong option or a missing file on this machine.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ralphloop.core.model import Outcome
from ralphloop.text.plain import LazyRegex, any_case, clean, one_line


class Verdict(NamedTuple):
    outcome: Outcome
    reason: str
    crash: str = ""  # what the agent died of, where it gave up by itself


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
_API_ERROR = any_case(r"\[?API Error(?::| \() ?.*")
# How programs for many providers begin what is theirs to say, and no answer does.
_PROGRAM_ERROR = LazyRegex(r"litellm\.(?:exceptions\.)?\w{1,60}(?:Error|Exception): .*")
_STATUS = any_case(r"API Error:? (?:[A-Za-z ]{0,40}\()?(\d{3})\b|\bstatus(?: code)?:? (\d{3})\b")

_USAGE_LIMIT = any_case(
    r"(?:hit|reached|exceeded) your (?:(?!rate|current)[\w'’-]+ ){0,5}(?:limits?|cap|allowance)\b"
    r"|exceeded your (?:daily|weekly|monthly) (?:[\w'’-]+ ){0,3}quota\b|requires usage credits"
    r"|exhausted your (?:[\w'’-]+ ){0,4}quota\b"
    r"|usage[ _]limit[ _](?:has been )?(?:reached|exceeded)"
    r"|(?:\bis|['’]re|\bare) out of (?:extra |premium )?(?:usage|requests)"
    r"|\b(?:weekly|monthly|5-hour) (?:usage )?(?:quota|limit|allowance) (?:reached|exceeded)"
    r"|\bdaily (?:quota|limit)|(?:\bper[- ]|requestsper)day|quota will reset"
    r"|rate.?limit.{0,200}(?:try again|retry|resets?) (?:in|after) (?:about )?\d{1,3}"
    r"(?:h| hours?| days?)\b"
)
_OWN_LIMIT = any_case(
    r"context ?window|context[ _](?:length|limit)|maximum context|input tokens exceed"
    r"|(?:prompt|input|request) is too long"
    r"|maximum number of tokens|too many tokens(?!, please wait)|output token maximum"
    r"|max session turns"
    r"|(?:request|payload|entity|content)[ _]too[ _]large|\bstatus:? 413\b"
)
_BILLING = any_case(
    r"insufficient[ _](?:quota|credits|balance)|exceeded your current quota|quota exceeded\. check"
    r"|credit balance|\bplan, upgrade to|payment required|billing details"
    r"|billing_(?:hard_limit|not_active|error)|requires more credits|can only afford"
    r"|(?:used all|no) available credits|\bspending limit|\bkey limit exceeded"
    r"|\bhave no quota|free (?:allocated )?quota (?:has been )?(?:exceeded|exhausted|used up)"
)
# A quota of the next minute, told in the words of an account that is used up.
_SOON = any_case(
    r"\bretry in \d{1,3}(?:\.\d{1,12})?s\b|\bquota (?:exceeded|metric)\b.{0,300}\bper minute\b"
)
_AUTH = any_case(
    r"\b40[13]\b|unauthori[sz]ed|forbidden|not logged in|authenticat"
    r"|(?:incorrect|invalid|missing|no|bad) (?:x-)?api[ _]?key|missing environment variable"
    r"|api[ _]?key (?:not valid|is invalid|expired)|token (?:has )?expired"
    r"|(?:log|sign) ?in again|set an auth method|\bpermission_(?:error|denied)"
    r"|not have (?:permission|access)\b|n['’]t have (?:permission|access)\b|accessdenied"
    r"|access denied (?:due|by|to)\b|permission '[^'\n]{1,120}' denied|invalid subscription key"
    r"|security token included|unregistered callers|(?:no|default|load) (?:auth )?credentials"
    r"|could not load (?:the )?(?:default )?credentials|locate credentials"
    r"|\bsession\b.{0,60}\bhas expired|\b(?:account|consumer|access)\b.{0,60}"
    r"\b(?:suspended|deactivated|was terminated)|organization must be|member of an organization"
    r"|\b(?:country|region|territory|location)\b.{0,30}not supported|^\W*user not found\W*$"
    r"|has not been used in project|(?:organization|account|workspace) has been disabled"
)
_OUTDATED = any_case(r"\bclient (?:version )?(?:\S{1,30} )?is no longer supported\b")
_CERTIFICATE = any_case(
    r"certificate (?:has expired|verify failed|signed by unknown)|verify the first certificate"
    r"|self[_ -]signed[_ ]cert|unable_to_verify_leaf|unable to get (?:local )?issuer certificate"
)
_MODEL = any_case(
    r"(?:unknown|unsupported|unrecogni[sz]ed|no such|not a valid|invalid) model\b"
    r"|model_not_found|modelnotfound|llm provider not provided|no endpoints found\b"
    r"|\bnot_found_error|deploymentnotfound|\bdeployment\b.{0,60}does not exist|no models? loaded"
    r"|is not found for api version|not support tool|\bmodel requires more system memory"
    r"|\bmodel\b.{0,80}(?:decommissioned|retired|no longer (?:supported|available))"
    r"|\bmodel (?:identifier|id|name)\b.{0,80}\b(?:invalid|not valid|unknown|isn't supported)"
    r"|\bmodel\b.{0,80}(?:not (?:found|exist|supported|valid)|end of (?:its )?life)"
    r"|\bmodel\b.{0,80}(?<!currently )(?<!temporarily )not available(?! right| at the| yet| now)"
)
# The model, or a filter before it, would not: another request may be answered.
_FILTERED = any_case(
    r"content[ _](?:management|filter|policy)|prohibited[ _]content"
    r"|safety (?:filter|system|settings)"
)
_PASSING = any_case(
    r"\b(?:408|429|5\d\d)\b|too many requests|rate.?limit|overloaded|high demand|at capacity"
    r"|connect|stream error|network|timed? ?out|terminated|fetch failed|socket|econn"
    r"|enotfound|eai_again|temporar|server error|internal error|unavailable|try again"
    r"|resource (?:has been )?exhausted|resource_exhausted|had an error while|capacity exceeded"
    r"|provider returned error|premature close|model has crashed|unable to process your request"
    r"|\bthrottl|no capacity available"
)

# Key, money, permission, model; and a request that is too large, as one that is too long.
_BY_STATUS = {**dict.fromkeys((401, 402, 403, 404), Outcome.FATAL), 413: Outcome.LIMIT}
_PASSING_STATUS = (408, 409, 425, 429)

# What the words mean where the status does not settle it, most telling first.
_Meanings = tuple[tuple[LazyRegex, Outcome], ...]
_QUOTAS: _Meanings = (
    (_USAGE_LIMIT, Outcome.USAGE_LIMIT),
    (_SOON, Outcome.TRANSIENT),
    (_BILLING, Outcome.FATAL),
)
_REFUSALS: _Meanings = (
    (_OWN_LIMIT, Outcome.LIMIT),
    (_CERTIFICATE, Outcome.FATAL),
    (_AUTH, Outcome.FATAL),
    (_MODEL, Outcome.FATAL),
    (_OUTDATED, Outcome.FATAL),
    (_FILTERED, Outcome.ERROR),
)
_MESSAGES: _Meanings = (*_QUOTAS, *_REFUSALS, (_PASSING, Outcome.TRANSIENT))


def sentence_verdict(line: str) -> Verdict | None:
    """What a CLI's sentence means if the whole line is one, else None."""
    line = clean(line[:2_000]).strip()
    for pattern, outcome in _COMPILED:
        if pattern.fullmatch(line):
            return Verdict(outcome, line)
    if _API_ERROR.fullmatch(line):
        named = [int(match[1] or match[2]) for match in _STATUS.finditer(line)]
        return failure_verdict(line, named[-1] if named and 100 <= named[-1] <= 599 else None)
    if _PROGRAM_ERROR.fullmatch(line):
        return failure_verdict(line)
    return None


# What a machine says of itself: whatever else stands in such a line, no provider said it.
_OF_THIS_MACHINE = any_case(
    r"\b(?:unknown|unrecogni[sz]ed|invalid|unexpected|missing|no such) (?:required )?"
    r"(?:option|argument|flag|command|subcommand|parameter|setting|file|module|directory)"
    r"|^\W*usage:|command not found|\bENOENT\b|\bEACCES\b|permission denied(?!: consumer)"
    r"|cannot find module|ModuleNotFoundError|ImportError|SyntaxError|\brequires? --"
    r"|DeprecationWarning"
)
# What passes, said aloud: words that are no part of a name or a path.
_PASSING_ALOUD = any_case(
    r"(?<![\w./:-])(?:408|429|50[0-4]|52[0-9])(?![\w/-])|too many requests|rate.?limit|overloaded"
    r"|high demand|at capacity|fetch failed|econn(?:refused|reset|aborted)|etimedout|enotfound"
    r"|eai_again|connection (?:error|refused|reset|aborted|closed|timed out)|connectionerror"
    r"|network error|service unavailable|internal server error|request timed out|apitimeouterror"
    r"|temporarily unavailable|resource (?:has been )?exhausted|resource_exhausted"
    r"|serviceunavailable|modeltimeout|a timeout occurred|could not connect to|upstream connect"
    r"|premature close|provider returned error|server had an error|capacity exceeded"
    r"|model has crashed|\bthrottl(?:ed|ing)|no capacity available|error sending request"
    r"|stream (?:disconnected|closed) before"
)
# What an API calls an error in its JSON body, where its sentence says less.
_KINDS: _Meanings = (
    (any_case(r"\b(?:authentication|permission|billing|not_found)_error\b"), Outcome.FATAL),
    (any_case(r"\b(?:overloaded|rate_limit)_error\b"), Outcome.TRANSIENT),
)
_CALLS_ITSELF_ERROR = any_case(
    r"\W{0,4}(?:\w+ )?(?:error|fatal|failed|failure)\b|[\w.]{1,80}(?:error|exception)\b"
    r"|\W{0,3}\d{3} "
)
_IN_JSON = LazyRegex(r'"message\\?": ?\\?"([^"\\{][^"\\]{0,999})')
_MOST_LINES = 400


def sentence_inside(message: str) -> str:
    """The sentence inside an API's JSON body, or the message as it is."""
    inner = _IN_JSON.search(message)
    return one_line(inner[1] if inner else message, 1_000)


def complaint_verdict(stderr: str) -> Verdict | None:
    """What stderr of a start that failed, or said nothing, tells of the provider; its last word
    counts, and None is what tells of this machine alone."""
    lines = clean(stderr[-20_000:]).split("\n")[-_MOST_LINES:]
    for line in reversed(lines):
        if not line.strip() or line[:1] in (" ", "\t"):  # frames of a traceback, and advice
            continue
        verdict = _provider_verdict(line)
        if verdict is not None:
            return verdict
    return None


def last_words_verdict(text: str) -> Verdict | None:
    """What the last lines of a failed start's answer tell: a CLI's sentence, or a line that calls
    itself an error."""
    for line in _last_lines(text, 5):
        if meaning := sentence_verdict(line):
            return meaning
        if _CALLS_ITSELF_ERROR.match(line) and (meaning := _provider_verdict(line)):
            return meaning
    return None


def program_error(text: str) -> Verdict | None:
    """What a program says of its provider as its last word, though it ends with exit code 0."""
    for line in _last_lines(text, 10):
        if _PROGRAM_ERROR.fullmatch(line):
            return failure_verdict(line)
    return None


def _last_lines(text: str, most: int) -> Iterator[str]:
    lines = [line.strip() for line in clean(text[-8_000:]).split("\n")]
    said = [line for line in lines if line]
    yield from reversed(said[-most:])


def _provider_verdict(line: str) -> Verdict | None:
    """What one line of stderr tells of the provider, or None."""
    if _OF_THIS_MACHINE.search(line):
        return None
    said = sentence_inside(line)
    meaning = sentence_verdict(said)
    if meaning is not None:
        return meaning
    for words, outcome in (*_QUOTAS, *_REFUSALS, (_PASSING_ALOUD, Outcome.TRANSIENT)):
        if words.search(said):
            return Verdict(outcome, said)
    for words, outcome in _KINDS:
        if words.search(line):
            return Verdict(outcome, said)
    whole = sentence_verdict(line)  # its status says what the words of its body do not
    return whole if whole is not None and whole.outcome is not Outcome.ERROR else None


_RETIRED = any_case(
    r"[^\n]{0,80}\b(?:is|has been|are)(?: now)? (?:discontinued|deprecated|sunset|retired|archived"
    r"|no longer (?:maintained|supported|developed|available))\b[^\n]{0,300}"
)
_INSTEAD = any_case(r"\b(?:install|upgrade|update|migrate|switch|use|visit|see)\b|https?://")
_MOST_OF_A_NOTICE = 800


def retired_notice(text: str) -> str:
    """The sentence by which a program says that it is no longer maintained and does nothing; empty
    where it said more than that."""
    text = clean(text[: _MOST_OF_A_NOTICE + 1]).strip()
    if not text or len(text) > _MOST_OF_A_NOTICE:
        return ""
    lines = [line.strip(" \t│┃║╭╮╰╯─") for line in text.split("\n")]
    said = [line for line in lines if line]
    names_another = any(_INSTEAD.search(line) for line in said)
    first = said[0] if said else ""
    return one_line(first) if names_another and _RETIRED.fullmatch(first) else ""


def concerns_login(reason: str) -> bool:
    """Whether what is fatal is the key or the login: no money, no model's name, no certificate."""
    others = (_BILLING, _MODEL, _CERTIFICATE, _OUTDATED)
    return not any(words.search(reason) for words in others)


def is_too_long(reason: str) -> bool:
    """Whether a request was refused for its length: another answer would not help it."""
    return _OWN_LIMIT.search(reason[:4_000]) is not None


def failure_verdict(message: str, status: int | None = None) -> Verdict:
    """What an error means by its status and its words; `error` where neither says."""
    message = message[:4_000]
    table = _MESSAGES
    by_status = Outcome.ERROR
    if status in _PASSING_STATUS or (status or 0) >= 500:
        # a 429 may hide a quota, a 500 is never about the key
        table = _QUOTAS
        by_status = Outcome.TRANSIENT
    elif status is not None:
        table = (*_QUOTAS, *_REFUSALS)
        by_status = _BY_STATUS.get(status, Outcome.ERROR)
    outcome = next((outcome for words, outcome in table if words.search(message)), by_status)
    return Verdict(outcome, one_line(message, 1_000) or f"HTTP {status}")
