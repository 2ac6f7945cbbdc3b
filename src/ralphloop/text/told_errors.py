"""Errors in prose: whether a sentence reports one that is there now.

It must say that it fails now ("the build still fails with `TypeError: x`"), and not that it is
solved, wished for, conditional or merely spoken of ("prints `Error: bad token` when the token is
old").  A line may also announce that a failure follows ("The build stops here:").
"""

import re
from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from ralphloop.text.lazy_regex import LazyRegex

_Found = TypeVar("_Found")
_MAX_SENTENCES = 80

# An exception's name: `TypeError`, `sqlite3.OperationalError`, `psycopg.errors.UndefinedTable`.
NAME = (
    r"(?:(?:[A-Za-z_$][\w$]*(?:\.|::|\\))*(?=[A-Z])[\w$]*(?:Error|Exception)\b"
    r"|(?:[a-z_]\w*\.)*(?:exceptions?|errors?|exc)\.[A-Z]\w+)"
)


def words(*patterns: str) -> LazyRegex:
    """Any of these as whole words, in any case."""
    return LazyRegex(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


_TOKEN = LazyRegex(
    r"(?<![\w.$/\\(\[{<-]"
    rf")(?:(?<=\s)\()?(?P<quote>[`\"'“‘])?(?P<token>{NAME}(?: \[\w+\])?:\s+\S|error\[\w+\](?=[:`])"
    r"|error [A-Z]{1,6}\d{2,5}\b|(?:[Ff]atal )?[Ee]rror:\s+\S|ERROR:\s+\S|[Ff]atal:\s+\S"
    r"|panic:\s+\S|FAILED \S*[./:]\S|--- FAIL: \S|CONFLICT \(\w)"
)
_SPAN = LazyRegex(r"`([^`\n]{8,400})`")
_MAX_SPANS = 20
_CLOSING = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’"}
_SENTENCE_END = LazyRegex(r"[.!?;]\s+(?=[A-Z`\"'*_(])")
_FAILS_NOW = words(
    r"still|again|fail(?:s|ed|ing|ures?)?|crash(?:es|ed|ing)?|break(?:s|ing)?|broken?|stuck|stops?",
    r"blocked|blocker|getting|got|hits?|hitting|seeing|abort(?:s|ed)|dies|died|red|complains?|left",
    r"end(?:s|ed) (?:in|with)|(?:i|we) get|keeps?|remain(?:s|ing)?|persists?|cannot|can't"
    r"|unable|won't|throwing",
    r"happens|occurs|blocks|(?:builds?|compil\w+|type ?check\w*|lint\w*|suite|tests?|ci|pipeline"
    r"|runs?|check)(?: [\w:.-]+){0,2} (?:now )?(?:reports?|says|prints|gives|shows)",
)
# A program by its name: in inline code, or small at the beginning of a sentence.
_PROGRAM_TELLS = LazyRegex(
    r"(?:`[a-z][^`]{0,40}`|^\W{0,4}[a-z][\w./-]*(?: [\w:./-]+){0,2})"
    r" (?:now )?(?:reports?|says)\b"
)
_UNSOLVED = words(
    r"still|remains?|persists?|keeps?|unable|tried to|attempted|attempts? to|trying to",
    r"could ?n[o']t|(?:not|n't) (?:yet |been |fully )*(?:fix|solv|resolv)\w*",
)
_NOT_NOW = words(
    r"fix(?:ed|es)|resolv(?:ed|es)|solv(?:ed|es)|gone|no longer|any ?more|went away|disappeared",
    r"corrected|repaired|addressed|eliminated|prevent(?:s|ed)?|avoid(?:s|ed)?|handle[sd]?",
    r"catch(?:es)?|caught|cleared|previously|formerly|used to|earlier|initially|at first",
    r"originally|(?:was|were) (?:failing|broken|crashing)|now (?:pass|work|green|succeed)\w*",
    r"(?:pass|work|green|succeed)(?:es|s)? now|instead of|rather than|without",
    r"as (?:it should|expected|intended)|(?:expected|supposed|meant) to fail|should fail",
    r"(?:does|do|did|will|would)(?: not|n't) (?:throw|raise|fail|crash|happen|occur|come)\w*",
    r"on purpose|by design|whenever|if|unless|for (?:an?|every|each|invalid|empty)",
    r"when(?! (?:(?:i|we) (?:run|build|start)|(?:running|building|compiling|starting)\b))",
)
# A sentence about work done, or a commit's subject, does not report what happens now.
_WORK = LazyRegex(
    r"(?i:(?:\W|\b(?:I|I've|we|we've|have|has|then|also|now|it|and)\b)*(?:(?:wrote|written|made"
    r"|fix|add|handle|improve|prevent|avoid|remove|rename|document|catch|support|(?!fail|crash"
    r"|stopp|block|end|remain)\w+ed)\b|(?:feat|fix|chore|docs|test|refactor|perf|style|revert"
    r"|build|ci)(?:\([^)]*\))?!?:))"
)
_TURN = words(r"but|however|although|though|yet|except")
# "The build stops here:", "make dies:", "Still red:"; what comes next is the tool's own word
_ANNOUNCED = LazyRegex(
    r"(?i:(?!\W*(?:where|how|why|what|which)\b).{0,150}(?<!that )(?<!which )(?<!must )(?<!should "
    r")(?<!can )(?<!to )\b(?:fail(?:s|ed|ing)?|crash(?:es|ed)?|breaks|stops|stopped|dies|died"
    r"|aborts|ends|red|broken|complains|exits|(?:cannot|can't|won't|doesn't|does not) (?:start"
    r"|build|run|compile|link|pass))(?: (?:here|there|with|in|at|on|because of|this|that"
    r"|the (?:same|following)|again|start|startup|as follows|as before|like this|an|error|output"
    r"|message))*:[*_]{0,3}$)"
)
_NOTHING = LazyRegex(
    r"[\"'`(\[{]*(?i:null|"
    r"none|nil|undefined|false|no|n/a|-+|ok|0+(?:\.0+)?|zero|\[\]|\{\}|\"\""
    r"|'')(?:[\"'`)\]},;.]*$|[,;] |\.\s| (?:errors?|failures?|found|so far|remaining)\b)"
)
_TYPE = LazyRegex(
    r"(?:string|str|number|int|bool|boolean|any|unknown|object|never|void"
    r"|[A-Z]\w*)(?:<[^>]*>)?(?:\s?[|&]\s?[\w\[\]]+)*\s?[?;,)\]}=]*$|.*(?:[,{(\[;]|=>)$"
)
_SHOWN = r"(?:shown|displayed|returned|raised|thrown|emitted|rendered|logged|reported|used|sent)"
_SPOKEN_OF = LazyRegex(
    rf"(?i:(?:now )?(?:fixed|resolved|solved|handled|gone|{_SHOWN}|when|if|the base class)\b"
    r"|.*\b(?:is|are|was|been|now|this|that|it) (?:now |already |all )?(?:fixed|solved|gone)\b"
    rf"|.*\b{_SHOWN} (?:when|if|unless|inline|to the (?:user|caller|client)|by the|for (?:an?"
    r"|every|each))\b)"
)


# Speech below an exhibit that speaks of it: "This is fixed", "Fixed by …", a heading "Fix".
_OF_THE_ABOVE = LazyRegex(
    r"(?i:\W{0,4}(?:(?:this|that|it|both|these|the (?:error|failure|crash|problem|exception))"
    r"(?: \w+)? (?:is|was|are|were|has been|have been|no longer|went)\b"
    r"|(?:now )?(?:fixed|resolved|solved)"
    r" (?:in|by|with|now)\b|i(?:'ve| have)? (?:\w+ )?(?:fixed|resolved|solved|corrected)"
    r" (?:it|this|that|both|these)\b))"
)


_FIX_HEADING = LazyRegex(r"(?i:(?:#{1,6}|\*\*)\s*(?:the )?(?:fix|solution|resolution)\b\W*$)")


def cured_below(said: str) -> bool:
    """True where speech says of what was just shown that it is solved."""
    if _FIX_HEADING.match(said):
        return True
    return bool(_OF_THE_ABOVE.match(said)) and says_solved(said) and not _TURN.search(said)


def says_solved(said: str) -> bool:
    """True where speech calls what it shows solved, or old."""
    return bool(_NOT_NOW.search(said)) and not _UNSOLVED.search(said)


def is_message(head: str, message: str) -> bool:
    """True where what follows `Error:` is a message: no zero, type, key, cure or description."""
    if _NOTHING.match(message) or _SPOKEN_OF.match(message):
        return False
    if head == "error":  # the one head that is also a common key and parameter name
        return not _TYPE.match(message)
    return not message.endswith((",", ";", "=>"))


def announces_failure(line: str) -> bool:
    """True where a line says that the build or the tests fail, and then comes how."""
    line = line.strip()
    return bool(_ANNOUNCED.match(line)) and not (_WORK.match(line) or _NOT_NOW.search(line))


def told_error(line: str, *, announced: bool) -> str | None:
    """The error message inside a line of prose, if the prose says that it happens now."""
    for sentence in _SENTENCE_END.split(line, maxsplit=_MAX_SENTENCES):
        match = _TOKEN.search(sentence)
        if match and (found := _told_in(sentence, match, announced=announced)):
            return found
    return None


def told_in_code(line: str, shaped: Callable[[str], _Found | None]) -> _Found | None:
    """The same for inline code that is an error by its shape."""
    for sentence in _SENTENCE_END.split(line, maxsplit=_MAX_SENTENCES):
        for span in islice(_SPAN.finditer(sentence), _MAX_SPANS):
            found, before = shaped(span[1]), sentence[: span.start()]
            if found and before.strip() and _happens_now(before, sentence[span.end() :]):
                return found
    return None


def _told_in(sentence: str, match: re.Match[str], *, announced: bool) -> str | None:
    start, closing = match.start("token"), _CLOSING.get(match["quote"] or "", "\n")
    end = sentence.find(closing, start)
    end = end if end > start else len(sentence)
    before, message, after = sentence[: match.start()], sentence[start:end], sentence[end:]
    head, _, rest = message.partition(":")
    if not is_message(head.strip(), rest.strip() or message):
        return None
    if not (announced or _happens_now(before, after)):
        return None
    return message.strip()


def _happens_now(before: str, after: str) -> bool:
    around = f"{before} {after}"
    if _UNSOLVED.search(around):
        return True
    if _NOT_NOW.search(around) or (_WORK.match(before) and not _TURN.search(before)):
        return False
    return bool(_FAILS_NOW.search(around) or _PROGRAM_TELLS.search(before))
