"""Is the error spoken of there now, or is it only spoken of?

The same words can report a failure ("the build still fails with `TypeError: x`"), a solved one
("fixed the `TypeError: x`"), a feature ("fails with `Error: bad token` when the token is old") or
nothing at all ("Errors: 0").  The words *around* the message decide, sentence by sentence; the
message itself may hold any word.
"""

from __future__ import annotations

import re
from itertools import zip_longest

from ralphloop.core.error_shapes import NAME

_MAX_SENTENCES = 80


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


_TOKEN = re.compile(
    r"(?<![\w.$/\\(\[{<-])(?:(?<=\s)\()?(?P<quote>[`\"'“‘])?"
    rf"(?P<token>{NAME}(?: \[\w+\])?:\s+\S|error\[\w+\]:\s|error [A-Z]{{1,6}}\d{{2,5}}:\s"
    r"|(?:[Ff]atal )?[Ee]rror:\s+\S|ERROR:\s+\S|[Ff]atal:\s+\S|panic:\s+\S|FAILED \S*[./:]\S"
    r"|npm ERR! \S|--- FAIL: \S|CONFLICT \(\w)"
)
_CLOSING = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’"}
_TEST = re.compile(r"(?<![\w./\\-])(?:[\w./\\-]+::[\w:]+|test_\w+)")
_SENTENCE_END = re.compile(r"[.!?;]\s+(?=[A-Z`\"'*_(])")

_FAILS_NOW = _words(
    r"still|again|fail(?:s|ed|ing|ures?)?|crash(?:es|ed|ing)?|break(?:s|ing)?|broken?|stuck|stops?",
    r"blocked|blocker|getting|got|hits?|hitting|seeing|abort(?:s|ed)|dies|died|red|complains?",
    r"ends (?:in|with)|keeps?|remain(?:s|ing)?|persists?|cannot|can't|unable|won't|throwing",
)
_GOES_ON = re.compile(
    r"(?i:\W*(?:(?:is|are|was) )?(?:still|again|happens|occurs|appears|shows up|comes? (?:up|back)"
    r"|keeps?|remains?|persists?|fails?|blocks|stops|breaks|crashes|left)\b)"
)
_UNSOLVED = _words(
    r"still|remains?|persists?|keeps?|unable|tried to|attempted|attempts? to|trying to",
    r"could ?n[o']t|(?:not|n't) (?:yet |been |fully )*(?:fix|solv|resolv)\w*",
)
_SOLVED = _words(
    r"fix(?:ed|es)|resolv(?:ed|es)|solv(?:ed|es)|gone|no longer|any ?more|went away|disappeared",
    r"corrected|repaired|addressed|eliminated|prevent(?:s|ed)?|avoid(?:s|ed)?|handle[sd]?",
    r"catch(?:es)?|caught|cleared|previously|formerly|used to|earlier|initially|at first",
    r"originally|(?:was|were) (?:failing|broken|crashing)|now (?:pass|work|green|succeed)\w*",
    r"(?:pass|work|green|succeed)(?:es|s)? now|instead of|rather than|without",
    r"(?:does|do|did|will|would)(?: not|n't) (?:throw|raise|fail|crash|happen|occur|come)\w*",
)
_SOLVED_NEXT = re.compile(
    r"(?i:(?:(?:this|that|it|which|both|all|now|i|we)\b.{0,20}?\b)?(?:fixed|solved|resolved|gone)\b)"
)
_ON_PURPOSE = _words(
    r"as (?:it should|expected|intended|planned|desired)|(?:expected|supposed|meant) to fail",
    r"should fail|red (?:phase|step|first)|on purpose|by design",
)
# A sentence about work done, or a commit's subject, does not report what happens now.
_WORK = re.compile(
    r"(?i:(?:\W|\b(?:I|I've|we|we've|have|has|then|also|now|it|and)\b)*"
    r"(?:(?:wrote|written|made|fix|add|handle|improve|prevent|avoid|remove|rename|document|catch"
    r"|support|(?:add|implement|renam|remov|delet|document|updat|chang|refactor"
    r"|introduc|cover|extend|improv|replac|rework|mov|creat|clean|mapp|wrapp|convert|describ|test"
    r"|check|verifi|logg|return|rais)ed)\b"
    r"|(?:feat|fix|chore|docs|test|refactor|perf|style|revert|build|ci)(?:\([^)]*\))?!?:))"
)
_TURN = _words(r"but|however|although|though|yet|except")
_CONDITION = _words(r"when|whenever|if|unless|for (?:an?|every|each|invalid|empty)")
_SHOWN = _words(
    r"shows?|shown|displays?|renders?|message|label|toast|banner|string|reads?|returns?|prints?"
)
_LABEL = re.compile(
    r"(?i:\b(?:before|after|old|new|was|now|example|e\.g\.|expected|output)\W*:\W*$)"
)

# "The build stops here:", "make dies:", "Still red:"; what comes next is the tool's own word
_ANNOUNCED = re.compile(
    r"(?i:(?!\W*(?:where|how|why|what|which)\b)(?P<what>.{0,150})"
    r"(?<!that )(?<!which )(?<!must )(?<!should )(?<!can )(?<!to )"
    r"\b(?:fail(?:s|ed|ing)?|crash(?:es|ed)?|breaks|stops|stopped|dies|died|aborts|ends|red|broken"
    r"|complains|exits"
    r"|(?:cannot|can't|won't|doesn't|does not) (?:start|build|run|compile|link|pass))"
    r"(?: (?:here|there|with|in|at|on|because of|this|that|the (?:same|following)|again|start"
    r"|startup|as follows|as before|like this|an|error|output|message))*:[*_]{0,3}$)"
)
_MACHINERY = _words(
    r"builds?|tests?|suite|run|compil\w+|lint\w*|checks?|ci|pipeline|job|install\w*|deploy\w*|it",
    r"migrations?|step|make|npm|npx|yarn|pnpm|bun|cargo|go|docker|pytest|gradlew?|mvn|node|tsc|still",
)

_NOTHING = re.compile(
    r"[\"'`(\[{]*(?i:null|none|nil|undefined|false|no|n/a|-+|ok|0+(?:\.0+)?|zero|\[\]|\{\}|\"\"|'')"
    r"(?:[\"'`)\]},;.]*$|[,;] |\.\s| (?:errors?|failures?|found|so far|remaining)\b)"
)
_TYPE = re.compile(
    r"(?:string|str|number|int|bool|boolean|any|unknown|object|never|void|[A-Z]\w*)"
    r"(?:<[^>]*>)?(?:\s?[|&]\s?[\w\[\]]+)*\s?[?;,)\]}=]*$"
)
_CODE_END = re.compile(r"(?:[,{(\[;]|=>)$")
_SETTLED = re.compile(
    r"(?i:(?:now )?(?:fixed|resolved|solved|handled|gone)\b"
    r"|.*\b(?:is|are|was|were|been|now|got) (?:now |already |all )?"
    r"(?:fixed|solved|gone|resolved(?! (?:to|as|from|by|in)\b))\b"
    r"|.*[.;—–-]\s+(?:now |this |that |it )?(?:is |was |has been )?(?:fixed|solved|resolved)\b"
    r"|.*\b(?:no longer (?:happens|occurs|appears)|does not (?:happen|occur) any ?more)\b)"
)
_DESCRIBED = re.compile(
    r"(?i:.*\b(?:shown|displayed|returned|raised|thrown|emitted|rendered|logged|reported|used|sent)"
    r" (?:when|whenever|if|unless|inline|to the (?:user|caller|client)|by the"
    r"|for (?:an?|every|each))\b"
    r"|(?:shown|displayed|returned|raised|thrown|emitted|rendered|when|if"
    r"|the (?:base|parent) class)\b)"
)


def is_message(head: str, message: str) -> bool:
    """True where what follows `Error:` is a message: no zero, type, key, cure or description."""
    if _NOTHING.match(message) or _SETTLED.match(message) or _DESCRIBED.match(message):
        return False
    if head == "error":  # the one head that is also a common key and parameter name
        return not (_TYPE.match(message) or _CODE_END.search(message))
    return not message.endswith((",", ";", "=>"))


def announces_failure(line: str) -> bool:
    """True where a line says that the build or the tests fail, and then comes how."""
    said = _ANNOUNCED.match(line.strip())
    if not said or not _MACHINERY.search(said["what"]) or _WORK.match(line):
        return False
    return not any(about.search(line) for about in (_SOLVED, _ON_PURPOSE, _CONDITION))


def reported_error(line: str) -> str | None:
    """The error message inside a line of prose, if the prose says that it happens now."""
    sentences = _SENTENCE_END.split(line, maxsplit=_MAX_SENTENCES)
    for sentence, following in zip_longest(sentences, sentences[1:], fillvalue=""):
        match = _TOKEN.search(sentence)
        found = _reported_in(sentence, match) if match else None
        if found and not _SOLVED_NEXT.match(following):
            return found
    return None


def _reported_in(sentence: str, match: re.Match[str]) -> str | None:
    start, end = _extent(sentence, match)
    before, message, after = sentence[: match.start()], sentence[start:end], sentence[end:]
    head, _, rest = message.partition(":")
    if not is_message(head.strip(), rest.strip() or message):
        return None
    happens_now = _happens_now(before, after, quoted=bool(match["quote"]))
    return _with_its_test(before, message.strip()) if happens_now else None


def _with_its_test(before: str, message: str) -> str:
    """The message as a test runner would print it, where the sentence names the test."""
    tests = _TEST.findall(before)
    return f"FAILED {tests[-1]} - {message}" if tests and message[:4] != "FAIL" else message


def _extent(sentence: str, match: re.Match[str]) -> tuple[int, int]:
    """Where the message begins and ends: its quotes if it has some, else the sentence."""
    start = match.start("token")
    closing = _CLOSING.get(match["quote"] or "")
    end = sentence.find(closing, start) if closing else -1
    return start, end if end > start else len(sentence)


def _happens_now(before: str, after: str, *, quoted: bool) -> bool:
    around = f"{before} {after}"
    if _UNSOLVED.search(around):
        return True
    if _SOLVED.search(around) or _ON_PURPOSE.search(around) or _CONDITION.search(around):
        return False
    if _WORK.match(before) and not _TURN.search(before):
        return False
    if _FAILS_NOW.search(before) or _GOES_ON.match(after.lstrip("`\"'”’")):
        return True
    led_in = before.rstrip(" `\"'*_(").endswith((":", "—", "–", "→", "->", "=>"))
    return led_in and not _LABEL.search(before) and not (quoted and _SHOWN.search(before))
