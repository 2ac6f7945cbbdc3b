"""Which lines of a text are errors that are there now.

A line is an error if it has one of the shapes that programs share, whichever program it is:

* a name or a head and a message: `SomeError: message`, `error: message`, `[ERROR] message`, behind
  whatever machines put before it (times, places, programs: words that hold digits or marks);
* a place and a complaint: `main.go:3:2: undefined: total`;
* a failing test: `FAILED tests/x.py::test_y`, `--- FAIL: TestX`, `✕ adds up`;
* what systems say, a closed vocabulary: `prog: x: No such file or directory`, `Segmentation fault`;
* somebody who could not: `prog: cannot …`, `Failed to …: …`.

What a line means depends on where it stands: in a traceback, below a head, after an announcement
("The build stops here:"), in an exhibit that the speech below it calls solved.  In prose the
sentence must say that it fails now ("the build still fails with `TypeError: x`"), and not that it
is solved, wished for, conditional or merely spoken of ("prints `Error: bad token` when it is old").

The last `MAX_TEXT` characters are read, because a run ends in its last words.
"""

import re
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

from ralphloop.text.lines import Kind, Line, scan
from ralphloop.text.plain import LazyRegex, any_case, clean

MAX_TEXT = 100_000
MAX_LINE = 3_000
MAX_ERRORS = 50


class Rank(IntEnum):
    """How much a line says about which failure it is; noise around it must not change that."""

    TALLY = 0  # how many failed
    TOLD = 1  # the agent announced a failure and then showed this
    VAGUE = 2  # something failed somewhere, or a detail of what another line names
    SPECIFIC = 3  # names the failure


class _Error(NamedTuple):
    text: str
    rank: Rank


def _any(*patterns: str, flags: int = 0) -> LazyRegex:
    return LazyRegex("|".join(f"(?:{pattern})" for pattern in patterns), flags)


def _words(*patterns: str) -> LazyRegex:
    return any_case(rf"\b(?:{'|'.join(patterns)})\b")


# An exception's name: `TypeError`, `sqlite3.OperationalError`, `psycopg.errors.UndefinedTable`.
NAME = (
    r"(?:(?:[A-Za-z_$][\w$]*(?:\.|::|\\))*(?=[A-Z])[\w$]*(?:Error|Exception)\b"
    r"|(?:[a-z_]\w*\.)*(?:exceptions?|errors?|exc)\.[A-Z]\w+)"
)
# What strerror() and its relatives say: a closed vocabulary, so a list is right here.
_SYSTEM_SAYS = (
    r"(?:permission denied|no such file or directory|(?:command )?not found|(?:is"
    r"|not) a directory|file exists|connection (?:refused|reset by peer|timed out)"
    r"|no space left on device|operation (?:not permitted|timed out)|address already in use"
    r"|broken pipe|device or resource busy|read-only file system|too many open files"
    r"|cannot allocate memory|out of memory|text file busy|argument list too long"
    r"|exec format error|directory not empty|no route to host|network is unreachable"
    r"|name or service not known|input/output error|temporary failure in name resolution"
    r"|invalid argument|disk quota exceeded|cannot execute binary file|bad interpreter"
    r"|access is denied|context deadline exceeded|the system cannot find the (?:file"
    r"|path) specified|unbound variable|bad substitution)"
)
# A superset of what error lines hold; a line without any of it needs no closer look, and a text
# without any such line needs nothing compiled.
_TRIGGER = LazyRegex(
    r"err|fail|exception|fatal|panic|abort|fault|kill|critical|undefined|conflict|reject|assert"
    r"|terminate|unresolved|unable|cannot|can't|could not|\bok\b|pass|no module|module not|ld: "
    rf"|problem|{_SYSTEM_SAYS}|[✖✕✗✘×›]|\.go:|\w: \(\d|-\d{{3,}}: |sqlstate|illegal|exit|\*\*\*"
    r"|\*\* \(|\b(?:stop(?:s|ped)|breaks|die[sd]|ends|complains|red|broken|won't"
    r"|does ?n[o']t)[^\n]{0,60}:[*_]{0,3}\s*(?:\n|$)|\[emerg|\[alert|\[crit|file \"|:\d+:\d+|-->"
)
_BULLET = LazyRegex(r"(?:[-*•·❌🔴💥⛔│┃║╷╵]\ufe0f?\s+|[│┃║]|\d{1,3}[.)]\s+)+")
_BOLD = LazyRegex(r"\*\*(?=[^\s*])([^*]{1,400})(?<=\S)\*\*(?!\*)")
_CODE_SPAN = LazyRegex(r"(`+)([^`].*?)\1[.,;:!]?$")
_NO_REPORT = LazyRegex(
    r"\||#(?!\d|#\[)|</?\w|\[[xX]\]"  # tables, headings, markup
    r"|\+|-(?!\w*sh: )(?=[^\s-])|\d+\s*[|│→]|\d+\t|at \S|\$ "  # diffs, listings, frames
    r"|(?:class|def|raise|throw|return|except|catch)\b"
)
_NOT_SEVERE = LazyRegex(r"(?i:warning|warn|note|info|hint|help|remark|debug)\b")
# A word that only machines put before a message: it holds a digit or a mark, or is one.
_NOT_A_PROGRAM = (
    r"(?!(?i:feat|fix|chore|docs?|tests?|refactor|info|note|warning|expected|example|result|status"
    r"|before|after)\b)"
)
_MACHINE = LazyRegex(
    r"[A-Z][a-z]{2} +\d+ [\d:]+ \S+ \S+:\s+|[\w.]+ ?[-.] ?(?=(?:ERROR|CRITICAL|FATAL)\b)"
    rf"|E {{2,}}|{_NOT_A_PROGRAM}(?!['\"`(+$])(?=\S*[\d:=|\]#])\S+\s+|[-|:]\s+"
)
_PLACE = LazyRegex(
    r"(?:file://)?(?:[A-Za-z]:)?(?=[^\s:()]*[./\\])[^\s:()\"'`]{1,300}(?::\[?\d+(?P<column>(?:"
    r"[:,]\d+)*)\]?(?:: ?|\s-\s|\s(?=[A-Za-z])|:(?=in ))|\(\d+(?:,\d+)*\)\s?:\s+|: line \d+: )"
)
_CODE = r"(?: ?\[[^\]\s]{1,40}\]| \(?[A-Z]{1,6}-?\d{1,5}\)?| \d{3,5}(?: \([^)]{1,40}\))?)?"
_HEAD = _any(
    r"(?:Caused by: )?(?P<lead>(?:[A-Za-z][\w+#./-]* ){0,3})(?:(?P<name>(?!(?:Error|Exception)\b)"
    rf"{NAME})(?: \[[\w ]{{1,60}}\])?(?: ?\([^()]{{0,80}}\))?"
    rf"|(?i:(?:fatal )?(?:err(?:or)?|exception|fatal|critical|failure|panic)){_CODE}"
    r"(?: (?:near|at|on) line \d+)?|Error \([^()]{1,60}\))\s?[:!—-]\s+\S",
    r"error\[\w+\](?::|$)|error\s{2,}\S|(?:ERROR|CRITICAL|FATAL):[\w.]+:\s?\S",
    r"[Ee]rror (?:in|at|on|while|when|during|from|response from|(?!handl|report|logg)[a-z]+ing)"
    r" [^:]{1,160}: \S",
    r"(?!(?:an?|the|this|that|no|any|new|last) )(?:[a-z]+ )?(?:ERR! \S|error (?:code )?[A-Z]\w)",
    # as a log level; in capitals all through it is a title
    r"(?:ERROR|FATAL|CRITICAL) (?![A-Z]{3,}\b)(?:in |collecting )?"
    r"(?:\S*[./:\\]\S*|[\"'`]\S+|[A-Z][a-z]\S*)(?=\s|$)",
    r"\[(?i:error|fatal|critical|err|emerg|alert|crit)\][:\s]*[^\s\[:].*\S",
)
_LOG_LEVEL = LazyRegex(r"(?:ERROR|FATAL|CRITICAL)\b[\s\]:-]*\S")
# "Fixed error: …", "on error: …": the words before say that this reports no error.
_NO_LEAD = _words(
    r"an?|and|any|as|by|each|every|for|if|in|no|of|on|or|per|the|to|when|with|without|zero|new|old",
    r"known|common|custom|typed|inline|friendly|readable|possible|previous|expected|sample|example",
    r"raises?|returns?|shows?|throws?|avoid|catch|clear|is|are|says|prints|was",
    r"(?:add|document|fix|handl|improv|remov|renam|resolv|solv|updat|chang)\w*",
)
_OTHERS = _any(
    # failing tests
    r"FAILED:? \S*[./:\\]\S*|\[ +FAILED +\] \S|FAIL: +\S|FAIL +\S+ > ",
    r"--- FAIL: \S|not ok \d+|(?:✘ )?● .*›|[✖✕✗✘×]\s+(?!0\b)\S"
    r"|\S{1,200}(?:::| )\S.{0,300} (?:FAILED|ERROR)(?:\s+\[ *\d+%\])?$",
    r"Failure/Error: \S|Failed asserting that \S|\[\w+\] › \S",
    # crashes
    r"thread '[^']*' (?:\(\d+\) )?panicked at|Exception in thread \S|==\d+==\s?ERROR: \S",
    r"(?:\d+ )?(?:Killed|Segmentation fault|Aborted|Abort trap|Bus error|Illegal instruction"
    r"|Floating point exception)(?:\s*\(core dumped\)|: \S|\s{2,}|[.!]?$)",
    r"(?:[\w./-]+:(?:\d+:)? ){0,3}[Aa]ssertion\b.{0,200}\bfailed\b",
    # the name behind the message, or alone above its frames
    rf".{{1,200}}: .{{1,300}} \({NAME}\)$|\*\* \((?:[A-Z]\w*\.)*[A-Z]\w*\) \S",
    # somebody could not
    r"\w+(?:\[\d+\])?: \*\*\* \S|(?:(?:line )?[^\s:]{1,80}: ?){0,4}(?:[Ss]yntax error(?:[,:]"
    r"| near| at| before| in) \S|(?:in function \S{1,99}: )?undefined (?:reference|symbol)s? to\b)",
    r"\S+: No module named \S|Module (?:not found|parse failed): \S"
    r"|[Ff]ailed to \w+[^.]{0,200}?: \S|[a-z]: (?:file:|/)\S+:\d",
    r"CONFLICT \(\w|! \[(?:remote )?rejected\]\s+\S|[a-z]+: \(\d+\) [A-Z]|[A-Z]{3,}-\d{3,}: \S"
    r"|SQLSTATE\[\w+\]|E[A-Z]{4,11}: \S|ERR_[A-Z]\w+(?::|\s{2,})\s*\S",
    rf"(?i:{_SYSTEM_SAYS})(?:[.!]?$|: ['\"./])",
    r"(?=.*\b(?:msg|message|err)\b[\"=])(?:(?:\w+=|\{).{0,300})?\blevel\"?\s?[:=]\s?\"?(?:error"
    r"|fatal|critical|panic)\b",
)
_PROGRAM_SAYS = any_case(
    rf"{_NOT_A_PROGRAM}(?P<program>(?:(?:dial|listen|lookup|exec|read"
    r"|write) (?:\w+ )?)?[\w./:@+\[\]-]{1,80}): (?!warning\b)(?:.{0,300}: )?(?:(?:\d{3} "
    rf")?{_SYSTEM_SAYS}(?:: .{{0,200}}| while .{{0,200}}|[.!]?)$|(?:(?<=\]: )\w+ )?(?:unable to"
    r"|could not|cannot|can't|failed to) \w+ \S)"
)
_COMPLAINT = LazyRegex(
    r"(?i:(?:\W*\w+\W+){0,3}?(?:(?:un)?expected|un(?:known|defined|declared|resolved|terminated"
    r"|used)|missing|invalid|cannot|can't|duplicate|redefinition|illegal|mismatched|incompatible"
    r"|imported|declared|not)\b)|[A-Z]{1,4}\d{2,4}(?: \[\*\])? \S"
)
# That something failed, and not what: wrappers, and details of what another line names.
_VAGUE = _any(
    r"\w+(?:\[\d+\])?: \*\*\* .*\bError \d+|[a-z]+ (?:ERR!|error) (?:code (?:ELIFECYCLE|\d+)|errno"
    r"|exit status|path|cwd|command|a complete log)\b|(?:\w+: )?error: (?:could not compile"
    r"|aborting due to|test failed, to rerun|\w+ returned \d+ exit)|(?:error:? )?command failed\b",
    r"(?:\[?(?:info|error)\]? |> )?(?:build|compilation|tests?|test (?:run|suite)|lint|command|job"
    r"|[\w-]{1,30} hook|task \S+) (?:failed|failure)[.!]?(?: (?:in|with|\().{0,60})?$"
    r"|failure: build failed|\[error\] (?:failed to execute|compilation error)",
    r"(?:error:? )?(?:(?:process|command|script|step)\b.{0,120}|(?-i:[a-z./])[\w./-]*"
    r"(?: [\w:./-]+){0,4}) (?:exited|completed|failed|returned) (?:with |\()?(?:an? )?"
    r"(?:non-?zero )?(?:exit )?(?:code|status)(?:$|:? [1-9]\d*[^.]{0,20}$)"
    r"|exit (?:code|status):? [1-9]\d*[.!]?$",
    r"(?-i:(?:\*\* (?:[A-Z]+ )+)?FAIL(?:ED)?[.!]?(?: \*\*)?$|E {2,}(?![\w.]*Error)\w"
    r"|FAIL\s+\S+(?:\s+(?:\[build failed\]|[\d.]+s))?$)",
    flags=re.IGNORECASE,
)
_MESSAGE_BELOW = LazyRegex(
    r"(?i:fatal error|fatal|error|what went wrong):$|\w+ Error at .*:$|.*\bpanicked at \S+:$"
)
_POINTS_BACK = LazyRegex(r"\s*--> \S+:\d+:\d+$")
_FRAME = LazyRegex(r'(\s+)File "[^"]*", line \d+')
_RAISED = LazyRegex(r"\s*([A-Za-z_][\w.]*(?:: .*)?)$")
# Fences of output; in any other only what a compiler says with its place is no source.
_OUTPUT = LazyRegex(r"(?:txt|text|plain\w*|bash|z?sh|shell\w*|console|term\w*|out\w*|logs?|pytb)?")

_SUMMARY = LazyRegex(
    r"(?i:\W*(?:\w+\]\s+)?(?:\d+ problems? \(\d+ errors?\b|(?:[a-z][\w -]{0,20}:\W*"
    r"|(?:test )?(?:tests?|files|found|ran)\W+){0,2}\d+ [a-z]+(?:[\s\d,;|().=!:✖]"
    r"|(?<![a-z])(?:passed|failed|failing|passing|failures?|errors?|warnings?|skipped|total|in"
    r"|seconds?|s|ms|problems?|tests?|examples?|pending|todo|assertions?|of|and|files?|checked"
    r"|source|checks?|suites?|found)\b)*$))"
)
_BAD_COUNT = LazyRegex(r"(?i:\b(\d+)\s+(?:\w+\s+)?(?:failed|failing|failures?|errors?)\b)")
_RUN_ENDED = LazyRegex(
    r"(?:test result: )?(?:(?:ok|OK)|FAILED)(?:\.| \(\w+=\d.*| \(\d.*)?(?=$| \d)"
)
_PASSED = LazyRegex(r"(?i:\b[1-9]\d* (?:tests? )?pass(?:ed|ing)\b)")

# What may be told: a span of inline code, or from a head to the closing quote or the end.
_TOLD = LazyRegex(
    r"`(?P<code>[^`\n]{1,400})`|(?<![\w.$/\\(\[{<`-])(?:(?<=\s)\()?(?P<quote>[\"'“‘])?"
    rf"(?P<said>(?:{NAME}(?: \[\w+\])?:\s+\S|error\[\w+\]:|error [A-Z]{{1,6}}\d{{2,5}}\b"
    r"|(?:[Ff]atal )?[Ee]rror:\s+\S|ERROR:\s+\S|[Ff]atal:\s+\S|panic:\s+\S|FAILED \S*[./:]\S"
    r"|--- FAIL: \S|CONFLICT \(\w)(?(quote)[^\"”’\n]*|.*))"
)
_SENTENCE_END = LazyRegex(r"[.!?;]\s+(?=[A-Z`\"'*_(])")
_FAILS = (
    r"fail(?:s|ed|ing)?|crash(?:es|ed|ing)?|breaks|broken|stops|stopped|abort(?:s|ed)|dies|died"
    r"|red|complains?|(?:cannot|can't|won't|doesn't|does not) (?:start|build|run|compile|link|pass)"
)
_FAILS_NOW = _words(
    _FAILS,
    r"still|again|failures?|break(?:ing)?|stuck|stop|blocked|blocker|getting|got|hits?|hitting",
    r"seeing|left|end(?:s|ed) (?:in|with)|(?:i|we) get|keeps?|remain(?:s|ing)?|persists?|cannot",
    r"can't|unable|won't|throwing|happens|occurs|blocks",
    r"(?:builds?|compil\w+|type ?check\w*|lint\w*|suite|tests?|ci|pipeline|runs?|check)"
    r"(?: [\w:.-]+){0,2} (?:now )?(?:reports?|says|prints|gives|shows)",
)
# A program by its name: in inline code, or small at the beginning of a sentence.
_PROGRAM_TELLS = LazyRegex(
    r"(?:`[a-z][^`]{0,40}`|^\W{0,4}[a-z][\w./-]*(?: [\w:./-]+){0,2})"
    r" (?:now )?(?:reports?|says)\b"
)
_UNSOLVED = _words(
    r"still|remains?|persists?|keeps?|unable|tried to|attempted|attempts? to|trying to",
    r"could ?n[o']t|(?:not|n't) (?:yet |been |fully )*(?:fix|solv|resolv)\w*",
)
_NOT_NOW = _words(
    r"fix(?:ed|es)|(?:re)?solv(?:ed|es)|gone|no longer|any ?more|went away|disappeared|corrected",
    r"prevent(?:s|ed)?|avoid(?:s|ed)?|handle[sd]?|catch(?:es)?|caught|previously|formerly|used to",
    r"earlier|initially|originally|at first|(?:was|were) (?:failing|broken|crashing)",
    r"now (?:pass|work|green|succeed)\w*|(?:pass|work|green|succeed)(?:es|s)? now|instead of",
    r"rather than|without|as (?:it should|expected|intended)|(?:expected|supposed|meant) to fail",
    r"should fail|(?:not|n't) (?:throw|raise|fail|crash|happen|occur|come)\w*|on purpose",
    r"by design|whenever|if|unless|for (?:an?|every|each|invalid|empty)",
    r"when(?! (?:(?:i|we) (?:run|build|start)|(?:running|building|compiling|starting)\b))",
)
# A sentence about work done, or a commit's subject, does not report what happens now.
_WORK = LazyRegex(
    r"(?i:(?:\W|\b(?:I|I've|we|we've|have|has|then|also|now|it|and)\b)*(?:(?:wrote|written|made"
    r"|fix|add|handle|improve|document|(?!fail|crash|stopp|block|end|remain)\w+ed)\b"
    r"|(?:feat|fix|chore|docs|test|refactor)(?:\([^)]*\))?!?:))"
)
_TURN = _words(r"but|however|although|though|yet|except")
# "The build stops here:", "make dies:", "Still red:"; what comes next is the tool's own word
_ANNOUNCED = LazyRegex(
    r"(?i:(?!\W*(?:where|how|why|what|which)\b).{0,150}(?<!that )(?<!which )(?<!must )(?<!should )"
    rf"(?<!can )(?<!to )\b(?:{_FAILS}|ends|exits)(?: (?:here|there|with|in|at|on|because of|this"
    r"|that|the (?:same|following)|again|start|startup|as follows|as before|like this|an|error"
    r"|output|message))*:[*_]{0,3}$)"
)
_NOTHING = LazyRegex(
    r"[\"'`(\[{]*(?i:null|none|nil|undefined|false|no|n/a|-+|ok|0+(?:\.0+)?|zero|\[\]|\{\}|\"\""
    r"|'')(?:[\"'`)\]},;.]*$|[,;] |\.\s| (?:errors?|failures?|found|so far|remaining)\b)"
)
_TYPE = LazyRegex(
    r"(?:string|str|number|int|bool|boolean|any|unknown|object|never|void"
    r"|[A-Z]\w*)(?:<[^>]*>)?(?:\s?[|&]\s?[\w\[\]]+)*\s?[?;,)\]}=]*$|.*(?:[,{(\[;]|=>)$"
)
_SPOKEN_OF = LazyRegex(
    r"(?i:(?:now )?(?:fixed|resolved|solved|handled|gone|shown|displayed|returned|raised|thrown"
    r"|emitted|rendered|logged|reported|used|sent|when|if|the base class)\b|.*\b(?:is|are|was|been"
    r"|now|this|that|it) (?:now |already |all )?(?:fixed|solved|gone)\b)"
)
# Speech below an exhibit that speaks of it: "This is fixed", "Fixed by …", a heading "Fix".
_OF_THE_ABOVE = LazyRegex(
    r"(?i:\W{0,4}(?:(?:this|that|it|both|these|the \w+)(?: \w+)? (?:is|was|are|were|has been|went"
    r"|have been|no longer)\b|(?:now )?(?:fixed|resolved|solved)(?:[.!]?$| (?:in|by|with|now)\b)"
    r"|i(?:'ve| have)? (?:\w+ )?(?:fixed|resolved|solved|corrected) (?:it|this|that|both|these)\b))"
)
_FIX_HEADING = LazyRegex(r"(?i:(?:#{1,6}|\*\*)\s*(?:the )?(?:fix|solution|resolution)\b\W*$)")


def find_error_lines(text: str) -> dict[str, Rank]:
    """The errors a text tells of, in its order, each with how much it says."""
    text = clean(text[-MAX_TEXT:])
    if not _TRIGGER.search(text.lower()):
        return {}
    reader = _Reader()
    for line in scan(text):
        reader.read(line)
        if len(reader.found) >= MAX_ERRORS:
            break
    reader.leave_exhibit("")
    return reader.found


class _Reader:
    def __init__(self) -> None:
        self.found: dict[str, Rank] = {}
        self._kind = Kind.SPEECH
        self._shown: dict[str, Rank] = {}  # found in the fence or quotation that is open
        self._passed: bool | None = None  # it counts tests that passed; False: some that failed
        self._frame_indent: int | None = None  # of the last `File "…", line n`
        self._head: str | None = None  # its message stands on the next line
        self._previous = ""
        self._announced = False  # "The build stops here:"; what comes next is why

    def read(self, line: Line) -> None:
        """Take in the next line."""
        text = line.text[:MAX_LINE]
        if line.kind is Kind.SPEECH and text.strip():
            self.leave_exhibit(text)
        elif line.kind is not self._kind and line.kind is not Kind.SPEECH:
            self.leave_exhibit("")
            self._kind = line.kind
        fenced = line.kind is Kind.CODE and text.lstrip().startswith(("```", "~~~"))
        readable = line.kind in (Kind.SPEECH, Kind.QUOTE, Kind.CODE) and not fenced and text.strip()
        found = self._found_in(text, line) if readable else None
        self._previous = text
        if found:
            kept = self.found if self._kind is Kind.SPEECH else self._shown
            kept.setdefault(found.text[:500].rstrip(), found.rank)

    def leave_exhibit(self, said: str) -> None:
        """Keep what an exhibit held, unless it passed or what is said below calls it solved."""
        if self._shown and not self._passed:
            solved = _NOT_NOW.search(said) and not (_UNSOLVED.search(said) or _TURN.search(said))
            is_cured = _FIX_HEADING.match(said) or (solved and _OF_THE_ABOVE.match(said))
            kept = {} if is_cured else self._shown
            for text, rank in kept.items():
                self.found.setdefault(text, rank)
        self._shown = {}
        self._passed = None
        self._kind = Kind.SPEECH

    def _found_in(self, text: str, line: Line) -> _Error | None:
        """The error that stands in a line, by what stood before it."""
        waiting = self._frame_indent is not None or self._head is not None or self._announced
        if not waiting and not _TRIGGER.search(text.lower()):
            return None
        if frame := _FRAME.match(text):
            self._frame_indent = len(frame[1])
            return None
        # The headline of a diagnostic whose place stands below it, as ruff and rustc print them.
        pointed_at = self._previous.strip() if _POINTS_BACK.match(text) else ""
        if pointed_at and not _NOT_SEVERE.match(pointed_at):
            return _Error(pointed_at, Rank.SPECIFIC)
        # A traceback ends with the first line left of its frames; source lines stand right of them.
        indent = len(text) - len(text.lstrip())
        if self._frame_indent is not None and indent < self._frame_indent:
            self._frame_indent = None
            if raised := _RAISED.match(text):
                return _Error(raised[1].strip(), Rank.SPECIFIC)
        in_code = line.kind is Kind.CODE and not _OUTPUT.fullmatch(line.language)
        return self._reported(text, in_code=in_code)

    def _reported(self, line: str, *, in_code: bool) -> _Error | None:
        """The error that a line reports by itself or below its head."""
        head = self._head
        self._head = None
        text = line.strip()
        # The build or the tests fail, and then comes how.
        announces = _ANNOUNCED.match(text) and not (_WORK.match(text) or _NOT_NOW.search(text))
        announced = self._announced
        self._announced = bool(announces)
        bullet = _BULLET.match(text)
        bulleted = bullet is not None
        bare = _BOLD.sub(r"\1", text[bullet.end() :] if bullet else text)
        if span := _CODE_SPAN.match(bare):
            bare = span[2].strip()
        if _NO_REPORT.match(bare):
            self._announced = announced and bare.startswith("$ ")
            return None
        if _MESSAGE_BELOW.match(bare):
            self._head = bare
            return None
        failed = _run_failed(bare)
        if failed is not None:  # one count of failures outweighs any that passed
            self._passed = self._passed is not False and not failed
            return _Error(bare, Rank.TALLY) if failed else None
        self._announced = self._announced or (announced and bulleted)
        found = _shaped(bare, in_code=in_code, bulleted=bulleted)
        if not (found or in_code):
            found = _told(line, announced=announced)
        if head and not found and _is_message(head.rstrip(":"), bare):
            return _Error(f"{head} {bare}", Rank.SPECIFIC)
        shown = announced and not (found or bulleted or in_code or self._announced)
        return _Error(bare, Rank.TOLD) if shown else found


def _run_failed(text: str) -> bool | None:
    """Whether the last line of a run tells of failures; None where it is no such line."""
    if ended := _RUN_ENDED.match(text):
        return "FAILED" in ended[0]
    if len(text) >= 200 or not _SUMMARY.match(text):
        return None
    numbers = _BAD_COUNT.findall(text)
    if not (numbers or _PASSED.search(text)):
        return None
    return any(number.strip("0") for number in numbers)


def _shaped(bare: str, *, in_code: bool = False, bulleted: bool = False) -> _Error | None:
    """The error that a line is by its shape, without the place before it."""
    place = _PLACE.match(bare)
    said = bare[place.end() :] if place else bare
    if _NOT_SEVERE.match(said) or (in_code and not place):
        return None  # source code is full of errors nobody made; only a compiler gives places
    if _VAGUE.match(said):
        return _Error(said, Rank.VAGUE)
    if (headed := _headed(said)) is not None:
        head, _, message = headed.partition(": ")
        return _Error(headed, Rank.SPECIFIC) if _is_message(head, message) else None
    complains = place and place["column"] and _COMPLAINT.match(said)
    if complains or _OTHERS.match(said):
        return _Error(said, Rank.SPECIFIC)
    says = None if bulleted else _PROGRAM_SAYS.match(said)
    program = says["program"] if says else ""
    is_program = program.islower() or "/" in program  # a capital says label ("Result: not found")
    return _Error(said, Rank.SPECIFIC) if is_program else None


def _headed(text: str) -> str | None:
    """The error behind what machines put before it: times, tags, places, programs."""
    start = 0
    for _ in range(8):
        head = _HEAD.match(text, start)
        if head and not _NO_LEAD.search(head["lead"] or ""):
            return text[head.start("name") if head["name"] else start :]
        if start and _LOG_LEVEL.match(text, start):
            return text[start:]
        token = _MACHINE.match(text, start)
        if token is None:
            return None
        start = token.end()
    return None


def _is_message(head: str, message: str) -> bool:
    """True where what follows `Error:` is a message: no zero, type, key, cure or description."""
    if _NOTHING.match(message) or _SPOKEN_OF.match(message):
        return False
    if head == "error":  # the one head that is also a common key and parameter name
        return not _TYPE.match(message)
    return not message.endswith((",", ";", "=>"))


def _told(line: str, *, announced: bool) -> _Error | None:
    """The error inside a line of prose, if the prose says that it happens now."""
    for sentence in _SENTENCE_END.split(line, maxsplit=80):
        for told in islice(_TOLD.finditer(sentence), 20):
            said = (told["code"] or told["said"]).strip()
            found = _shaped(said) if len(said) >= 8 else None
            before = sentence[: told.start()]
            after = sentence[told.end() :]
            if not (found and before.strip()):
                continue
            around = f"{before} {after}"
            is_done = _WORK.match(before) and not _TURN.search(before)
            fails = _FAILS_NOW.search(around) or _PROGRAM_TELLS.search(before)
            is_now = fails and not (is_done or _NOT_NOW.search(around))
            if announced or is_now or _UNSOLVED.search(around):
                return found
    return None
