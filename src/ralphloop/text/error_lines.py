"""Which lines of a text are errors that are there now.

The text is read once, line by line.  Most lines are let go by one cheap search; the rest are
compared with the shapes programs use (`error_shapes`).  What a line means depends on where it
stands, so the reader remembers a little: a traceback, a head whose message stands on the next line,
an announcement ("The build stops here:") after which anything counts, an exhibit that the speech
around it calls solved, or that ends in a passing count.

In prose the words *around* a message decide, sentence by sentence: it counts where they say that it
fails now ("the build still fails with `TypeError: x`"), and not where it is solved, wished for,
conditional, or merely spoken of ("prints `Error: bad token` when the token is old").

Everything is bounded: the last `MAX_TEXT` characters are read (a run ends in its last words), of a
line the first `MAX_LINE`, and at most `MAX_ERRORS` different error lines are kept.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import NamedTuple

from ralphloop.text.error_shapes import NAME, Core, Rank, core_of, is_no_report, is_severe, rank_of
from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.lines import Kind, Line, scan
from ralphloop.text.plain import clean

MAX_TEXT = 100_000
MAX_LINE = 3_000
MAX_ERRORS = 50
MAX_ERROR_CHARS = 500
_MAX_SENTENCES = 80

# A superset of what error lines hold; a line without any of it needs no closer look, and a text
# without any such line needs nothing compiled.
_TRIGGER = LazyRegex(
    r"err|fail|exception|fatal|panic|denied|not found|no such|undefined|conflict|reject|abort"
    r"|fault|kill|critical|refused|traceback|unresolved|not ok|assert|terminate|curl: |ld: |module"
    r"|[✖✕✗✘×›]|\be: |\.go:|ora-|sqlstate|msg |illegal|directory|exists|exit|timed out|reset by"
    r"|no space|not permitted|in use|broken pipe|busy|read-only|too many|memory|too long|no route"
    r"|unreach|not known|resolution|invalid argument|quota|interpreter|cross-device|eai_|enotfound"
    r"|\*\*\*|\*\* \(|problem|wrong|unable|cannot|can't|could not|couldn't"
    r"|deadline exceeded"
    r"|\b(?:stop(?:s|ped)|crash\w*|breaks|die[sd]|ends|complains|red|broken|won't|does ?n[o']t)"
    r"[^\n]{0,60}:[*_]{0,3}\s*(?:\n|$)|\[emerg|\[alert|\[crit"
    r"|```|~~~|@@ |diff --git|file \"|:\d+:\d+|-->"
)
# Fences of output; in any other only what a compiler says with its place is no source.
_OUTPUT = LazyRegex(
    r"(?:txt|plain|bash|z?sh|logs?|ansi|pytb|cmd)?"
    r"|(?:text|shell|console|term|std|err|trace|power|out)[\w-]*"
)
_POINTS_BACK = LazyRegex(r"\s*--> \S+:\d+:\d+$")
_FRAME = LazyRegex(r'(\s+)File "[^"]*", line \d+')
_RAISED = LazyRegex(r"\s*([A-Za-z_][\w.]*(?:: .*)?)$")
_MESSAGE_BELOW = LazyRegex(
    r"(?:[Ff]atal error|[Ff]atal|[Ee]rror|ERROR|What went wrong):$|\w+ Error at .*:$"
    r"|.*\bpanicked at \S+:$"
)
_HEAD_AND_MESSAGE = LazyRegex(
    r"([Ff]atal(?: error)?|[Ee]rror|ERROR|[Cc]ritical|CRITICAL|\w*(?:Error|Exception))\W*?:\s+(.*)$"
)

# --- counts ------------------------------------------------------------------------------------

_SUMMARY = LazyRegex(
    r"(?i:\W*(?:\d+ problems? \(\d+ errors?\b|(?:(?:[a-z][\w-]{0,20}(?=:)|errors?|tests?"
    r"|test (?:suites?"
    r"|files?)|suites?|results?|summary|totals?|found|ran|lint|build)\b:?\W*\s+){0,2}\d+ [a-z]+"
    r"(?:[\s\d,;|().=!:✖]|(?<![a-z])(?:passed|failed|failing|passing|failures?|errors?|warnings?"
    r"|skipped|total|in|seconds?|s|ms|problems?|tests?|examples?|pending|todo|assertions?|of|and"
    r"|files?|checked|source|checks?|suites?|found)\b)*$))"
)
_BAD_COUNT = LazyRegex(r"(?i:\b(\d+)\s+(?:\w+\s+)?(?:failed|failing|failures?|errors?)\b)")
_PROBLEMS = LazyRegex(r"(?i:\b(\d+)\s+(?:\w+\s+)?problems?\b)")  # may all be warnings
_COUNTED = LazyRegex(
    r"(?i:\b(?:errors?|failures|failed|fatal)\s?[:=]\s*(\d+)(?=\s*(?:[,;|)]|\.(?:\s|$)|$)))"
)
_PASSED = LazyRegex(r"(?i:\b[1-9]\d* (?:tests? )?pass(?:ed|ing)\b|\btest result: ok\b|^OK \(\d)")

# --- prose -------------------------------------------------------------------------------------


def _words(*patterns: str) -> LazyRegex:
    return LazyRegex(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


_TOKEN = LazyRegex(
    r"(?<![\w.$/\\(\[{<-])(?:(?<=\s)\()?(?P<quote>[`\"'“‘])?"
    rf"(?P<token>{NAME}(?: \[\w+\])?:\s+\S|error\[\w+\](?=[:`])|error [A-Z]{{1,6}}\d{{2,5}}\b"
    r"|(?:[Ff]atal )?[Ee]rror:\s+\S|ERROR:\s+\S|[Ff]atal:\s+\S|panic:\s+\S|FAILED \S*[./:]\S"
    r"|--- FAIL: \S|CONFLICT \(\w)"
)
_CLOSING = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’"}
_TEST = LazyRegex(r"(?<![\w./\\-])(?:[\w./\\-]+::[\w:]+|test_\w+)")
_SENTENCE_END = LazyRegex(r"[.!?;]\s+(?=[A-Z`\"'*_(])")
_MACHINE = r"(?:builds?|compil\w+|type ?check\w*|lint\w*|suite|tests?|ci|pipeline|runs?|check)"
_FAILS_NOW = _words(
    r"still|again|fail(?:s|ed|ing|ures?)?|crash(?:es|ed|ing)?|break(?:s|ing)?|broken?|stuck|stops?",
    r"blocked|blocker|getting|got|hits?|hitting|seeing|abort(?:s|ed)|dies|died|red|complains?|left",
    r"ends (?:in|with)|keeps?|remain(?:s|ing)?|persists?|cannot|can't|unable|won't|throwing",
    rf"happens|occurs|blocks|{_MACHINE} (?:now )?(?:reports?|says|prints|gives|shows)",
)
_CODED = LazyRegex(r"error(?:\[\w+\]| [A-Z]{1,6}\d{2,5}\b)")  # only a compiler speaks so
_TELLS = _words(r"reports?|says|prints|gives|shows")
_UNSOLVED = _words(
    r"still|remains?|persists?|keeps?|unable|tried to|attempted|attempts? to|trying to",
    r"could ?n[o']t|(?:not|n't) (?:yet |been |fully )*(?:fix|solv|resolv)\w*",
)
_NOT_NOW = _words(
    r"fix(?:ed|es)|resolv(?:ed|es)|solv(?:ed|es)|gone|no longer|any ?more|went away|disappeared",
    r"corrected|repaired|addressed|eliminated|prevent(?:s|ed)?|avoid(?:s|ed)?|handle[sd]?",
    r"catch(?:es)?|caught|cleared|previously|formerly|used to|earlier|initially|at first"
    r"|originally",
    r"(?:was|were) (?:failing|broken|crashing)|now (?:pass|work|green|succeed)\w*|instead of",
    r"(?:pass|work|green|succeed)(?:es|s)? now|rather than|without|as (?:it should|expected"
    r"|intended)",
    r"(?:does|do|did|will|would)(?: not|n't) (?:throw|raise|fail|crash|happen|occur|come)\w*",
    r"(?:expected|supposed|meant) to fail|should fail|on purpose|by design",
    r"when|whenever|if|unless|for (?:an?|every|each|invalid|empty)",
)
# A sentence about work done, or a commit's subject, does not report what happens now.
_WORK = LazyRegex(
    r"(?i:(?:\W|\b(?:I|I've|we|we've|have|has|then|also|now|it|and)\b)*"
    r"(?:(?:wrote|written|made|fix|add|handle|improve|prevent|avoid|remove|rename|document|catch"
    r"|support|(?!fail|crash|stopp|block|end|remain)\w+ed)\b"
    r"|(?:feat|fix|chore|docs|test|refactor|perf|style|revert|build|ci)(?:\([^)]*\))?!?:))"
)
_TURN = _words(r"but|however|although|though|yet|except")
_SOLVED_NEXT = LazyRegex(
    r"(?i:(?:(?:this|that|it|which|both|all|now|i|we)\b.{0,20}?\b)?(?:fixed|solved|resolved"
    r"|gone)\b)"
)
# "The build stops here:", "make dies:", "Still red:"; what comes next is the tool's own word
_ANNOUNCED = LazyRegex(
    r"(?i:(?!\W*(?:where|how|why|what|which)\b).{0,150}"
    r"(?<!that )(?<!which )(?<!must )(?<!should )(?<!can )(?<!to )"
    r"\b(?:fail(?:s|ed|ing)?|crash(?:es|ed)?|breaks|stops|stopped|dies|died|aborts|ends|red|broken"
    r"|complains|exits|(?:cannot|can't|won't|doesn't|does not) (?:start|build|run|compile|link"
    r"|pass))"
    r"(?: (?:here|there|with|in|at|on|because of|this|that|the (?:same|following)|again|start"
    r"|startup|as follows|as before|like this|an|error|output|message))*:[*_]{0,3}$)"
)
_NOTHING = LazyRegex(
    r"[\"'`(\[{]*(?i:null|none|nil|undefined|false|no|n/a|-+|ok|0+(?:\.0+)?|zero|\[\]|\{\}|\"\"|'')"
    r"(?:[\"'`)\]},;.]*$|[,;] |\.\s| (?:errors?|failures?|found|so far|remaining)\b)"
)
_TYPE = LazyRegex(
    r"(?:string|str|number|int|bool|boolean|any|unknown|object|never|void|[A-Z]\w*)"
    r"(?:<[^>]*>)?(?:\s?[|&]\s?[\w\[\]]+)*\s?[?;,)\]}=]*$|.*(?:[,{(\[;]|=>)$"
)
_SPOKEN_OF = LazyRegex(
    r"(?i:(?:now )?(?:fixed|resolved|solved|handled|gone|shown|displayed|returned|raised|thrown"
    r"|emitted"
    r"|rendered|when|if|the (?:base|parent) class)\b"
    r"|.*\b(?:is|are|was|were|been|now|got|this|that|it|[.;—–-]) (?:now |already |all )?"
    r"(?:fixed|solved|gone|resolved(?! (?:to|as|from|by|in)\b))\b"
    r"|.*\b(?:shown|displayed|returned|raised|thrown|emitted|rendered|logged|reported|used|sent)"
    r" (?:when|whenever|if|unless|inline|to the (?:user|caller|client)|by the|for (?:an?|every"
    r"|each))\b"
    r"|.*\b(?:no longer (?:happens|occurs|appears)|does not (?:happen|occur) any ?more)\b)"
)


class ErrorLine(NamedTuple):
    text: str
    rank: Rank


def find_error_lines(text: str) -> tuple[ErrorLine, ...]:
    """The different error lines of a text in order of appearance."""
    text = clean(text[-MAX_TEXT:])
    if not _TRIGGER.search(text.lower()):
        return ()
    reader = _Reader()
    for line in scan(text):
        reader.read(line)
        if len(reader.found) >= MAX_ERRORS:
            break
    reader.leave_exhibit("")
    return tuple(ErrorLine(text, rank) for text, rank in reader.found.items())


class _Reader:
    """Reads a text line by line and remembers where it is."""

    def __init__(self) -> None:
        self.found: dict[str, Rank] = {}
        self._kind = Kind.SPEECH
        self._shown: dict[str, Rank] = {}  # found in the fence or quotation that is open
        self._passed = False  # it counts tests that passed and none that failed
        self._spoken = ""  # the last line of speech
        self._frame_indent: int | None = None  # of the last `File "…", line n`
        self._head: str | None = None  # its message stands on the next line
        self._announced = False  # "The build stops here:"; what comes next is why
        self._previous = ""

    def read(self, line: Line) -> None:
        """Take one more line into account."""
        text = line.text[:MAX_LINE]
        if line.kind is Kind.SPEECH and text.strip():
            self.leave_exhibit(text)
            self._spoken = text
        elif line.kind is not self._kind and line.kind is not Kind.SPEECH:
            self.leave_exhibit("")
            self._kind = line.kind
        found = self._found_in(text, line) if line.kind in _READ else None
        self._previous = text
        if found:
            kept = self.found if self._kind is Kind.SPEECH else self._shown
            kept.setdefault(found.text[:MAX_ERROR_CHARS].rstrip(), found.rank)

    def leave_exhibit(self, next_spoken: str) -> None:
        """Keep what an exhibit held, unless it passed or the speech around a quotation cures it."""
        quoted = self._kind is Kind.QUOTE
        cured = quoted and any(
            _NOT_NOW.search(said) and not _UNSOLVED.search(said)
            for said in (self._spoken, next_spoken)
        )
        if not (cured or self._passed):
            self.found = self.found | {k: v for k, v in self._shown.items() if k not in self.found}
        self._shown, self._passed, self._kind = {}, False, Kind.SPEECH

    def _found_in(self, text: str, line: Line) -> ErrorLine | None:
        waiting = self._frame_indent is not None or self._head is not None or self._announced
        if not text.strip() or (
            line.kind is Kind.CODE and text.lstrip().startswith(("```", "~~~"))
        ):
            return None
        if not waiting and not _TRIGGER.search(text.lower()):
            self._passed = self._passed or (line.kind is Kind.CODE and bool(_PASSED.search(text)))
            return None
        if frame := _FRAME.match(text):
            self._frame_indent = len(frame[1])
            return None
        named = self._raised(text) or self._pointed_at(text)
        in_code = line.kind is Kind.CODE and not _OUTPUT.fullmatch(line.language)
        return ErrorLine(named, Rank.SPECIFIC) if named else self._reported(text, in_code=in_code)

    def _raised(self, line: str) -> str | None:
        """The exception that ends a traceback: the first line left of its frames."""
        indent = len(line) - len(line.lstrip())
        if self._frame_indent is None or indent >= self._frame_indent:
            return None  # source lines stand right of their frame
        self._frame_indent = None
        match = _RAISED.match(line)
        return match[1].strip() if match else None

    def _pointed_at(self, line: str) -> str | None:
        """The headline of a diagnostic whose place stands below it (`--> file:line:column`)."""
        headline = core_of(self._previous).text if _POINTS_BACK.match(line) else ""
        return headline if headline and is_severe(headline) else None

    def _reported(self, line: str, *, in_code: bool) -> ErrorLine | None:
        head, self._head = self._head, None
        announced, self._announced = self._announced, _announces_failure(line)
        if is_no_report(line):
            self._announced = announced and line.lstrip().startswith("$ ")
            return None
        core = core_of(line)
        if _MESSAGE_BELOW.match(core.text):
            self._head = core.text
            return None
        failures = _counts_failures(core.text)
        if failures is not None:
            self._passed = not failures and _PASSED.search(core.text) is not None
            return ErrorLine(core.text, Rank.TALLY) if failures else None
        self._announced = self._announced or (announced and core.bulleted)
        found = _error_in(line, core, in_code=in_code, announced=announced)
        if head and not found and _is_message(head.rstrip(":"), core.text):
            return ErrorLine(f"{head} {core.text}", Rank.SPECIFIC)
        told = announced and not (found or core.bulleted or in_code or self._announced)
        return ErrorLine(core.text, Rank.TOLD) if told else found


_READ = (Kind.SPEECH, Kind.QUOTE, Kind.CODE)


def _error_in(line: str, core: Core, *, in_code: bool, announced: bool) -> ErrorLine | None:
    rank = rank_of(core)
    if in_code:  # source code is full of errors nobody made; only a compiler gives places
        return ErrorLine(core.text, rank) if rank is not None and core.place else None
    if rank is None:
        told = _reported_error(line, announced=announced)
        return ErrorLine(told, Rank.SPECIFIC) if told else None
    said = _HEAD_AND_MESSAGE.match(core.text)
    return None if said and not _is_message(said[1], said[2]) else ErrorLine(core.text, rank)


def _counts_failures(text: str) -> bool | None:
    """Whether a summary of counts tells of failures; None where the line is no summary."""
    numbers = _COUNTED.findall(text[:300])
    if not numbers and len(text) < 200 and _SUMMARY.match(text):
        numbers = _BAD_COUNT.findall(text) or _PROBLEMS.findall(text)
    return any(number.strip("0") for number in numbers) if numbers else None


def _is_message(head: str, message: str) -> bool:
    """True where what follows `Error:` is a message: no zero, type, key, cure or description."""
    if _NOTHING.match(message) or _SPOKEN_OF.match(message):
        return False
    if head == "error":  # the one head that is also a common key and parameter name
        return not _TYPE.match(message)
    return not message.endswith((",", ";", "=>"))


def _announces_failure(line: str) -> bool:
    """True where a line says that the build or the tests fail, and then comes how."""
    line = line.strip()
    return bool(_ANNOUNCED.match(line)) and not (_WORK.match(line) or _NOT_NOW.search(line))


def _reported_error(line: str, *, announced: bool) -> str | None:
    """The error message inside a line of prose, if the prose says that it happens now."""
    sentences = _SENTENCE_END.split(line, maxsplit=_MAX_SENTENCES)
    for sentence, following in zip_longest(sentences, sentences[1:], fillvalue=""):
        match = _TOKEN.search(sentence)
        found = _reported_in(sentence, match, announced=announced) if match else None
        if found and not _SOLVED_NEXT.match(following):
            return found
    return None


def _reported_in(sentence: str, match: re.Match[str], *, announced: bool) -> str | None:
    start, closing = match.start("token"), _CLOSING.get(match["quote"] or "", "\n")
    end = sentence.find(closing, start)
    end = end if end > start else len(sentence)
    before, message, after = sentence[: match.start()], sentence[start:end], sentence[end:]
    head, _, rest = message.partition(":")
    happens_now = _happens_now(before, message, after, announced=announced)
    if not happens_now or not _is_message(head.strip(), rest.strip() or message):
        return None
    tests = [] if message.startswith("FAIL") else _TEST.findall(before)
    return f"FAILED {tests[-1]} - {message.strip()}" if tests else message.strip()


def _happens_now(before: str, message: str, after: str, *, announced: bool) -> bool:
    around = f"{before} {after}"
    if _UNSOLVED.search(around):
        return True
    if _NOT_NOW.search(around) or (_WORK.match(before) and not _TURN.search(before)):
        return False
    if _FAILS_NOW.search(around) or announced:
        return True
    return _CODED.match(message) is not None and _TELLS.search(before) is not None
