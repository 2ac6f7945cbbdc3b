"""Which lines of a text are errors that are there now.

The text is read once, line by line.  A line is an error if it has one of the shapes that programs
share, whichever program it is:

* a name or a head and a message: `SomeError: message`, `error: message`, `[ERROR] message`, behind
  whatever machines put before it (times, places, programs: words that hold digits or marks);
* a place and a complaint: `main.go:3:2: undefined: total`;
* a failing test: `FAILED tests/x.py::test_y`, `--- FAIL: TestX`, `✕ adds up`;
* what systems say, a closed vocabulary: `prog: x: No such file or directory`, `Segmentation fault`;
* somebody who could not: `prog: cannot …`, `Failed to …: …`.

What a line means depends on where it stands, so the reader remembers a little: a traceback, a head
whose message stands below it, an announcement ("The build stops here:") after which anything
counts, an exhibit that the speech around it calls solved, or that ends in a passing count.  In
prose the sentence decides: it must say that it fails now ("the build still fails with
`TypeError: x`"), and not that it is solved, wished for, conditional or merely spoken of.

Each error has a rank, because noise around a failure must not change which failure it is.

Everything is bounded: the last `MAX_TEXT` characters are read (a run ends in its last words), of a
line the first `MAX_LINE`, and at most `MAX_ERRORS` different error lines are kept.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.lines import Kind, Line, scan
from ralphloop.text.plain import clean

MAX_TEXT = 100_000
MAX_LINE = 3_000
MAX_ERRORS = 50
MAX_ERROR_CHARS = 500
_MAX_SENTENCES = 80
_MAX_PREFIXES = 8

# An exception's name: `TypeError`, `sqlite3.OperationalError`, `psycopg.errors.UndefinedTable`.
NAME = (
    r"(?:(?:[A-Za-z_$][\w$]*(?:\.|::|\\))*(?=[A-Z])[\w$]*(?:Error|Exception)\b"
    r"|(?:[a-z_]\w*\.)*(?:exceptions?|errors?|exc)\.[A-Z]\w+)"
)


class Rank(IntEnum):
    """How much a line says about which failure it is."""

    TALLY = 0  # how many failed
    TOLD = 1  # the agent announced a failure and then showed this
    VAGUE = 2  # something failed somewhere, or a detail of what another line names
    SPECIFIC = 3  # names the failure


class ErrorLine(NamedTuple):
    text: str
    rank: Rank


def _any(*patterns: str, flags: int = 0) -> LazyRegex:
    return LazyRegex("|".join(f"(?:{pattern})" for pattern in patterns), flags)


def _words(*patterns: str) -> LazyRegex:
    return LazyRegex(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


# --- shapes ------------------------------------------------------------------------------------

# What strerror() and its relatives say: a closed vocabulary, so a list is right here.
_SYSTEM_SAYS = (
    r"(?:permission denied|no such file or directory|(?:command )?not found|(?:is|not) a directory"
    r"|file exists|connection (?:refused|reset by peer|timed out)|no space left on device"
    r"|operation (?:not permitted|timed out)|address already in use|broken pipe"
    r"|device or resource busy|read-only file system|too many open files|cannot allocate memory"
    r"|out of memory|text file busy|argument list too long|exec format error|directory not empty"
    r"|no route to host|network is unreachable|name or service not known|input/output error"
    r"|temporary failure in name resolution|invalid argument|disk quota exceeded"
    r"|cannot execute binary file|bad interpreter|access is denied|context deadline exceeded"
    r"|the system cannot find the (?:file|path) specified|unbound variable|bad substitution)"
)
# A superset of what error lines hold; a line without any of it needs no closer look, and a text
# without any such line needs nothing compiled.
_TRIGGER = LazyRegex(
    r"err|fail|exception|fatal|panic|abort|fault|kill|critical|undefined|conflict|reject|assert"
    r"|terminate|unresolved|unable|cannot|can't|could not|not ok|no module|module not|ld: |problem"
    rf"|{_SYSTEM_SAYS}|[✖✕✗✘×›]|\.go:|\w: \(\d|-\d{{3,}}: |sqlstate|illegal|exit|\*\*\*|\*\* \("
    r"|\b(?:stop(?:s|ped)|breaks|die[sd]|ends|complains|red|broken|won't|does ?n[o']t)"
    r"[^\n]{0,60}:[*_]{0,3}\s*(?:\n|$)|\[emerg|\[alert|\[crit|file \"|:\d+:\d+|-->"
)
_BULLET = LazyRegex(r"(?:[-*•·❌🔴💥⛔│┃║╷╵]\ufe0f?\s+|[│┃║]|\d{1,3}[.)]\s+)+")
_BOLD = LazyRegex(r"\*\*(?=[^\s*])([^*]{1,400})(?<=\S)\*\*(?!\*)")
_CODE_SPAN = LazyRegex(r"(`+)([^`].*?)\1[.,;:!]?$")
_NO_REPORT = _any(
    r"\||#(?!\d|#\[)|</?\w|\[[xX]\]",  # tables, headings, markup
    r"\+|-(?!\w*sh: )(?=[^\s-])|\d+\s*[|│→]|\d+\t|at \S|\$ ",  # diffs, listings, frames
    r"[✓✔√✅☑]|ok \d|PASS(?:ED)?\b",
    r"//|/\*|[})]|\{(?!.{0,300}\"level\")|@\w|[\w.]{1,40}!?\((?!\d)",  # code
    r"(?:raise|throw|except|catch|return|def|class|fn|pub|func|const|let|var|import|assert|echo|case)\b",
)
_NOT_SEVERE = LazyRegex(r"(?i:warning|warn|note|info|hint|help|remark|debug)\b")
# A word that only machines put before a message: it holds a digit or a mark, or is one.
_NOT_A_PROGRAM = (
    r"(?!(?i:feat|fix|chore|docs?|tests?|refactor|perf|style|revert|build|ci|expected|example"
    r"|message|shows|prints|returns|before|after|old|new|info|note|result|status|tip|todo|warning)"
    r"\b)"
)
_MACHINE = LazyRegex(
    r"[A-Z][a-z]{2} +\d+ [\d:]+ \S+ \S+:\s+|[\w.]+ ?[-.] ?(?=(?:ERROR|CRITICAL|FATAL)\b)|E {2,}"
    rf"|{_NOT_A_PROGRAM}(?!['\"`(+$])(?=\S*[\d:=|\]#])\S+\s+|[-|:]\s+"
)
_CLOCK = LazyRegex(r"\d\d:\d\d|\w\[\d+\]:")
_PLACE = LazyRegex(
    r"(?:file://)?(?:[A-Za-z]:)?(?=[^\s:()]*[./\\])[^\s:()\"'`]{1,300}"
    r"(?::\[?\d+(?P<column>(?:[:,]\d+)*)\]?(?:: ?|\s-\s|\s(?=[A-Za-z])|:(?=in ))"
    r"|\(\d+(?:,\d+)*\)\s?:\s+|: line \d+: )"
)
_CODE = r"(?: ?\[[^\]\s]{1,40}\]| \(?[A-Z]{1,6}-?\d{1,5}\)?| \d{3,5}(?: \([^)]{1,40}\))?)?"
_LEVEL = r"(?i:error|fatal|critical|err|emerg|alert|crit)"
_HEAD = _any(
    rf"(?:Caused by: )?(?P<lead>(?:[A-Za-z][\w+#./-]* ){{0,3}})"
    rf"(?:(?P<name>(?!(?:Error|Exception)\b){NAME})(?: \[[\w ]{{1,60}}\])?(?: ?\([^()]{{0,80}}\))?"
    rf"|(?:[Ff]atal )?(?:[Ee]rror|Exception){_CODE}(?: (?:near|at|on) line \d+)?|Error \([^()]{{1,60}}\)):\s+\S",
    r"(?:[Ff]atal(?: [Ee]rror)?|FATAL(?: ERROR)?|[Ee]rror|ERROR|ERR|[Cc]ritical|CRITICAL|Failure"
    rf"|FAILURE|panic|runtime error){_CODE}\s?[:!—-]\s+\S",
    r"error(?:\[\w+\]|\s+[A-Z]{1,6}\d{2,5}):|error\s{2,}\S|(?:ERROR|CRITICAL|FATAL):[\w.]+:\s?\S",
    r"Error (?:in|at|on|while|when|during|from|response from) [^:]{1,160}: \S",
    r"[Ee]rror (?!handling|reporting|logging|tracking|mapping|wrapping|formatting)[a-z]+ing"
    r" [^:]{1,160}: \S",
    r"(?!(?:an?|the|this|that|no|any|new|last) )(?:[a-z]+ )?(?:ERR! \S|error (?:code )?[A-Z]\w)",
    # as a log level; in capitals all through it is a title
    r"(?:ERROR|FATAL|CRITICAL) (?![A-Z]{3,}\b|(?i:fix|bug|issue|change|update)\w*\b)"
    r"(?:in |collecting )?(?:\S*[./:\\]\S*|[\"'`]\S+|[A-Z][a-z]\S*)(?=\s|$)",
    rf"\[{_LEVEL}\](?!:\s*(?:#|<|http|[./]))[:\s]*[^\s\[:].*\S|##\[error\]\S|::error[^:]*::\S",
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
    r"--- FAIL: \S|not ok \d+|(?:✘ )?● .*›|[✖✕✗✘×]\s+(?!0\b)\S|test \S+(?: - .{1,80})? \.\.\. FAILED"
    r"|\S{1,200} > .{1,200} FAILED$|\S{1,200}::\S.{0,300} (?:FAILED|ERROR)(?:\s+\[ *\d+%\])?$",
    r"Failure/Error: \S|Failed asserting that \S|\[\w+\] › \S",
    # crashes
    r"thread '[^']*' (?:\(\d+\) )?panicked at|terminate called after throwing|==\d+==\s?ERROR: \S",
    r"(?i:uncaught|unhandled) (?i:exception|rejection|promise rejection|error)\b.*\S"
    r"|Exception in thread \S",
    r"(?:\d+ )?(?:Killed|Segmentation fault|Aborted|Abort trap|Bus error|Illegal instruction"
    r"|Floating point exception)(?:\s*\(core dumped\)|: \S|\s{2,}|[.!]?$)",
    r"(?:[\w./-]+:(?:\d+:)? ){0,3}[Aa]ssertion\b.{0,200}\bfailed\b",
    # the name behind the message, or alone above its frames
    rf".{{1,200}}: .{{1,300}} \({NAME}\)$|\*\* \((?:[A-Z]\w*\.)*[A-Z]\w*\) \S",
    # somebody could not
    r"\w+(?:\[\d+\])?: \*\*\* \S|(?:\S{1,80}: ?(?:line )?){0,4}[Ss]yntax error(?:,| near| at| before| in| compiling|:) \S"
    r"|(?:\S{1,200}: ?){0,4}(?:in function \S{1,100}: )?undefined (?:reference|symbol)s? .{0,9}to\b",
    r"\S+: No module named \S|Module (?:not found|parse failed): \S|[Ff]ailed to \w+[^.]{0,200}?: \S"
    r"|Failed to compile|[a-z]: (?:file:|/)\S+:\d|[\w ]{3,40} verification failed[.!]?$",
    r"CONFLICT \(\w|! \[(?:remote )?rejected\]\s+\S|[a-z]+: \(\d+\) [A-Z]|[A-Z]{3,}-\d{3,}: \S"
    r"|SQLSTATE\[\w+\]|E[A-Z]{4,11}: \S|ERR_[A-Z]\w+(?::|\s{2,})\s*\S",
    rf"(?i:{_SYSTEM_SAYS})(?:[.!]?$|: ['\"./])|Permission denied \(",
    r"(?:\w+=(?:\"[^\"]*\"|[^\"\s]\S*)\s+)*level=(?:error|fatal|critical|panic)\b.*"
    r"\b(?:msg|message|err)=|\{.{0,300}\"level\"\s?:\s?\"(?:error|fatal|critical)\"",
)
_PROGRAM_SAYS = LazyRegex(
    rf"{_NOT_A_PROGRAM}(?P<program>(?:(?:dial|listen|lookup|exec|read|write) (?:\w+ )?)?"
    r"[\w./:@+\[\]-]{1,80}): (?!warning\b)(?:.{0,300}: )?"
    rf"(?:(?:\d{{3}} )?{_SYSTEM_SAYS}(?:: .{{0,200}}| while .{{0,200}}|[.!]?)$"
    r"|(?:(?<=\]: )\w+ )?(?:unable to|could not|cannot|can't|failed to) \w+ \S)",
    re.IGNORECASE,
)
_COMPLAINT = LazyRegex(
    r"(?i:(?:\W*\w+\W+){0,3}?(?:(?:un)?expected|unknown|undefined|undeclared|missing|invalid"
    r"|unresolved|cannot|can't|duplicate|redefinition|illegal|unterminated|mismatched|incompatible"
    r"|unused|imported|declared|not (?:found|defined|declared|assignable|allowed|used))\b)"
    r"|[A-Z]{1,4}\d{2,4}(?: \[\*\])? \S"
)
_THROWN = LazyRegex(r"(?:[a-z]\w*\.){2,8}[A-Z]\w*(?:Error|Exception)$")  # above its frames
# That something failed, and not what: wrappers, and details of what another line names.
_VAGUE = _any(
    r"\w+(?:\[\d+\])?: \*\*\* .*\bError \d+|[\w-]+: build stopped|automatic merge failed",
    r"[a-z]+ (?:ERR!|error) (?:code (?:ELIFECYCLE|\d+)|errno|exit status|signal|path|cwd|command"
    r"|lifecycle script|a complete log|/\S+)\b",
    r"(?:\[?(?:info|error)\]? )?(?:> )?(?:(?-i:BUILD|Build)|compilation|tests?|test (?:run|suite)"
    r"|lint(?:ing)?|type ?check(?:ing)?|command|job|pipeline|deploy(?:ment)?|[\w-]{1,30} hook"
    r"|task \S+) (?:failed|failure)[.!]?(?: in [\d.]+ ?m?s\b.{0,40}| with (?:an? |\d+ |exit |code )"
    r".{0,40}| \([^)]*\)|; see .{0,80})?$",
    r"failure: build failed|(?:● )?test suite failed to run|test result: failed|failures!$",
    r"(?:\w+: )?error: (?:could not compile|aborting due to|test failed, to rerun"
    r"|\w+ returned \d+ exit)|(?:error:? )?command failed(?::| with\b|[.!]?$)|failed \(\w+=\d+",
    r"(?:error:? )?(?:process|command|script|step|(?-i:[a-z./])[\w./-]*(?: [\w:./-]+){0,4})\b"
    r".{0,120}\b(?:exited|completed|finished|failed|returned|terminated) (?:with |\()?"
    r"(?:an? )?(?:non-?zero )?(?:exit )?(?:code|status)(?:$|:? [1-9]\d*[^.]{0,20}$)",
    r"exit (?:code|status):? [1-9]\d*[.!]?$|\*\* (?-i:[A-Z]+ )+FAILED \*\*|(?-i:FAIL(?:ED)?)[.!]?$",
    r"\[error\] (?:failed to execute|compilation error|tests run:|there are test|(?:failures"
    r"|errors):? *$)|(?-i:E {2,}(?![\w.]*Error)\w|FAIL\s+\S+(?:\s+(?:\[build failed\]|\(?[\d.]+s\)?))?$)",
    flags=re.IGNORECASE,
)
_MESSAGE_BELOW = LazyRegex(
    r"(?:[Ff]atal error|[Ff]atal|[Ee]rror|ERROR|What went wrong):$|\w+ Error at .*:$"
    r"|.*\bpanicked at \S+:$"
)
_POINTS_BACK = LazyRegex(r"\s*--> \S+:\d+:\d+$")
_FRAME = LazyRegex(r'(\s+)File "[^"]*", line \d+')
_RAISED = LazyRegex(r"\s*([A-Za-z_][\w.]*(?:: .*)?)$")
# Fences of output; in any other only what a compiler says with its place is no source.
_OUTPUT = LazyRegex(
    r"(?:txt|plain|bash|z?sh|logs?|ansi|pytb|cmd)?"
    r"|(?:text|shell|console|term|std|err|trace|power|out)[\w-]*"
)

# --- counts ------------------------------------------------------------------------------------

_SUMMARY = LazyRegex(
    r"(?i:\W*(?:\w+\]\s+)?(?:\d+ problems? \(\d+ errors?\b|(?:[a-z][\w -]{0,20}:\W*|(?:test )?(?:tests?|files|found|ran)\W+){0,2}\d+ [a-z]+"
    r"(?:[\s\d,;|().=!:✖]|(?<![a-z])(?:passed|failed|failing|passing|failures?|errors?|warnings?"
    r"|skipped|total|in|seconds?|s|ms|problems?|tests?|examples?|pending|todo|assertions?|of|and"
    r"|files?|checked|source|checks?|suites?|found)\b)*$))"
)
_BAD_COUNT = LazyRegex(r"(?i:\b(\d+)\s+(?:\w+\s+)?(?:failed|failing|failures?|errors?)\b)")
_COUNTED = LazyRegex(
    r"(?i:\b(?:errors?|failures|failed|fatal)\s?[:=]\s*(\d+)(?=\s*(?:[,;|)]|\.(?:\s|$)|$)))"
)
_PASSED = LazyRegex(r"(?i:\b[1-9]\d* (?:tests? )?pass(?:ed|ing)\b|\btest result: ok\b|^OK \(\d)")

# --- prose -------------------------------------------------------------------------------------

_TOKEN = LazyRegex(
    r"(?<![\w.$/\\(\[{<-])(?:(?<=\s)\()?(?P<quote>[`\"'“‘])?"
    rf"(?P<token>{NAME}(?: \[\w+\])?:\s+\S|error\[\w+\](?=[:`])|error [A-Z]{{1,6}}\d{{2,5}}\b"
    r"|(?:[Ff]atal )?[Ee]rror:\s+\S|ERROR:\s+\S|[Ff]atal:\s+\S|panic:\s+\S|FAILED \S*[./:]\S"
    r"|--- FAIL: \S|CONFLICT \(\w)"
)
_CLOSING = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’"}
_TEST = LazyRegex(r"(?<![\w./\\-])(?:[\w./\\-]+::[\w:]+|test_\w+)")
_SENTENCE_END = LazyRegex(r"[.!?;]\s+(?=[A-Z`\"'*_(])")
_FAILS_NOW = _words(
    r"still|again|fail(?:s|ed|ing|ures?)?|crash(?:es|ed|ing)?|break(?:s|ing)?|broken?|stuck|stops?",
    r"blocked|blocker|getting|got|hits?|hitting|seeing|abort(?:s|ed)|dies|died|red|complains?|left",
    r"ends (?:in|with)|keeps?|remain(?:s|ing)?|persists?|cannot|can't|unable|won't|throwing",
    r"happens|occurs|blocks|(?:builds?|compil\w+|type ?check\w*|lint\w*|suite|tests?|ci|pipeline"
    r"|runs?|check) (?:now )?(?:reports?|says|prints|gives|shows)",
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
    r"catch(?:es)?|caught|cleared|previously|formerly|used to|earlier|initially|at first",
    r"originally|(?:was|were) (?:failing|broken|crashing)|now (?:pass|work|green|succeed)\w*",
    r"(?:pass|work|green|succeed)(?:es|s)? now|instead of|rather than|without",
    r"as (?:it should|expected|intended)|(?:expected|supposed|meant) to fail|should fail",
    r"(?:does|do|did|will|would)(?: not|n't) (?:throw|raise|fail|crash|happen|occur|come)\w*",
    r"on purpose|by design|when|whenever|if|unless|for (?:an?|every|each|invalid|empty)",
)
# A sentence about work done, or a commit's subject, does not report what happens now.
_WORK = LazyRegex(
    r"(?i:(?:\W|\b(?:I|I've|we|we've|have|has|then|also|now|it|and)\b)*"
    r"(?:(?:wrote|written|made|fix|add|handle|improve|prevent|avoid|remove|rename|document|catch"
    r"|support|(?!fail|crash|stopp|block|end|remain)\w+ed)\b"
    r"|(?:feat|fix|chore|docs|test|refactor|perf|style|revert|build|ci)(?:\([^)]*\))?!?:))"
)
_TURN = _words(r"but|however|although|though|yet|except")
# "The build stops here:", "make dies:", "Still red:"; what comes next is the tool's own word
_ANNOUNCED = LazyRegex(
    r"(?i:(?!\W*(?:where|how|why|what|which)\b).{0,150}"
    r"(?<!that )(?<!which )(?<!must )(?<!should )(?<!can )(?<!to )"
    r"\b(?:fail(?:s|ed|ing)?|crash(?:es|ed)?|breaks|stops|stopped|dies|died|aborts|ends|red|broken"
    r"|complains|exits|(?:cannot|can't|won't|doesn't|does not) (?:start|build|run|compile|link"
    r"|pass))(?: (?:here|there|with|in|at|on|because of|this|that|the (?:same|following)|again"
    r"|start|startup|as follows|as before|like this|an|error|output|message))*:[*_]{0,3}$)"
)
_NOTHING = LazyRegex(
    r"[\"'`(\[{]*(?i:null|none|nil|undefined|false|no|n/a|-+|ok|0+(?:\.0+)?|zero|\[\]|\{\}|\"\"|'')"
    r"(?:[\"'`)\]},;.]*$|[,;] |\.\s| (?:errors?|failures?|found|so far|remaining)\b)"
)
_TYPE = LazyRegex(
    r"(?:string|str|number|int|bool|boolean|any|unknown|object|never|void|[A-Z]\w*)"
    r"(?:<[^>]*>)?(?:\s?[|&]\s?[\w\[\]]+)*\s?[?;,)\]}=]*$|.*(?:[,{(\[;]|=>)$"
)
_SHOWN = r"(?:shown|displayed|returned|raised|thrown|emitted|rendered|logged|reported|used|sent)"
_SPOKEN_OF = LazyRegex(
    rf"(?i:(?:now )?(?:fixed|resolved|solved|handled|gone|{_SHOWN}|when|if|the (?:base|parent) class)\b"
    r"|.*\b(?:is|are|was|were|been|now|got|this|that|it|[.;—–-]) (?:now |already |all )?"
    r"(?:fixed|solved|gone|resolved(?! (?:to|as|from|by|in)\b))\b"
    rf"|.*\b{_SHOWN} (?:when|whenever|if|unless|inline|to the (?:user|caller|client)|by the"
    r"|for (?:an?|every|each))\b"
    r"|.*\b(?:no longer (?:happens|occurs|appears)|does not (?:happen|occur) any ?more)\b)"
)


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
        cured = self._kind is Kind.QUOTE and any(
            _NOT_NOW.search(said) and not _UNSOLVED.search(said)
            for said in (self._spoken, next_spoken)
        )
        if not (cured or self._passed):
            for text, rank in self._shown.items():
                self.found.setdefault(text, rank)
        self._shown, self._passed, self._kind = {}, False, Kind.SPEECH

    def _found_in(self, text: str, line: Line) -> ErrorLine | None:
        in_fence = line.kind is Kind.CODE
        if not text.strip() or (in_fence and text.lstrip().startswith(("```", "~~~"))):
            return None
        waiting = self._frame_indent is not None or self._head is not None or self._announced
        if not waiting and not _TRIGGER.search(text.lower()):
            self._passed = self._passed or (in_fence and bool(_PASSED.search(text)))
            return None
        if frame := _FRAME.match(text):
            self._frame_indent = len(frame[1])
            return None
        if named := self._raised(text) or self._pointed_at(text):
            return ErrorLine(named, Rank.SPECIFIC)
        return self._reported(text, in_code=in_fence and not _OUTPUT.fullmatch(line.language))

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
        headline = self._previous.strip() if _POINTS_BACK.match(line) else ""
        return None if _NOT_SEVERE.match(headline) else headline or None

    def _reported(self, line: str, *, in_code: bool) -> ErrorLine | None:
        head, self._head = self._head, None
        announced, self._announced = self._announced, _announces_failure(line)
        bare, bulleted = _undressed(line)
        if _NO_REPORT.match(bare):
            self._announced = announced and bare.startswith("$ ")
            return None
        if _MESSAGE_BELOW.match(bare):
            self._head = bare
            return None
        failures = _counts_failures(bare)
        if failures is not None:
            self._passed = not failures and _PASSED.search(bare) is not None
            return ErrorLine(bare, Rank.TALLY) if failures else None
        self._announced = self._announced or (announced and bulleted)
        found = _shaped(bare, in_code=in_code, bulleted=bulleted)
        if not (found or in_code) and (told := _told(line, announced=announced)):
            found = ErrorLine(told, Rank.SPECIFIC)
        if head and not found and _is_message(head.rstrip(":"), bare):
            return ErrorLine(f"{head} {bare}", Rank.SPECIFIC)
        shown = announced and not (found or bulleted or in_code or self._announced)
        return ErrorLine(bare, Rank.TOLD) if shown else found


_READ = (Kind.SPEECH, Kind.QUOTE, Kind.CODE)


def _undressed(line: str) -> tuple[str, bool]:
    """The line without bullets and emphasis, and whether it had a bullet."""
    text = line.strip()
    bullet = _BULLET.match(text)
    bare = _BOLD.sub(r"\1", text[bullet.end() :] if bullet else text)
    span = _CODE_SPAN.match(bare)
    return (span[2].strip() if span else bare), bullet is not None


def _shaped(bare: str, *, in_code: bool, bulleted: bool) -> ErrorLine | None:
    """The line as an error by its shape alone."""
    place = _PLACE.match(bare)
    said = bare[place.end() :] if place else bare
    if _NOT_SEVERE.match(said) or (in_code and not place):
        return None  # source code is full of errors nobody made; only a compiler gives places
    if _VAGUE.match(said):
        return ErrorLine(said, Rank.VAGUE)
    if (headed := _headed(said)) is not None:
        head, _, message = headed.partition(": ")
        return ErrorLine(headed, Rank.SPECIFIC) if _is_message(head, message) else None
    complains = place and place["column"] and _COMPLAINT.match(said)
    named = (
        complains
        or _OTHERS.match(said)
        or (not bulleted and (_THROWN.match(said) or _program_says(said)))
    )
    return ErrorLine(said, Rank.SPECIFIC) if named else None


def _headed(text: str) -> str | None:
    """The error behind what machines put before it: times, tags, places, programs."""
    start = 0
    for _ in range(_MAX_PREFIXES):
        head = _HEAD.match(text, start)
        if head and not _NO_LEAD.search(head["lead"] or ""):
            return text[head.start("name") if head["name"] else start :]
        if start and _LOG_LEVEL.match(text, start) and _CLOCK.search(text[:start]):
            return text[start:]
        token = _MACHINE.match(text, start)
        if token is None:
            return None
        start = token.end()
    return None


def _program_says(text: str) -> bool:
    match = _PROGRAM_SAYS.match(text)
    program = match["program"] if match else ""
    return program.islower() or "/" in program  # a capital says label ("Result: not found")


def _counts_failures(text: str) -> bool | None:
    """Whether a summary of counts tells of failures; None where the line is no summary."""
    numbers = _COUNTED.findall(text[:300])
    if not numbers and len(text) < 200 and _SUMMARY.match(text):
        numbers = _BAD_COUNT.findall(text)
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


def _told(line: str, *, announced: bool) -> str | None:
    """The error message inside a line of prose, if the prose says that it happens now."""
    for sentence in _SENTENCE_END.split(line, maxsplit=_MAX_SENTENCES):
        match = _TOKEN.search(sentence)
        if match and (found := _told_in(sentence, match, announced=announced)):
            return found
    return None


def _told_in(sentence: str, match: re.Match[str], *, announced: bool) -> str | None:
    start, closing = match.start("token"), _CLOSING.get(match["quote"] or "", "\n")
    end = sentence.find(closing, start)
    end = end if end > start else len(sentence)
    before, message, after = sentence[: match.start()], sentence[start:end], sentence[end:]
    head, _, rest = message.partition(":")
    if not _is_message(head.strip(), rest.strip() or message):
        return None
    if not (announced or _happens_now(before, message, after)):
        return None
    tests = [] if message.startswith("FAIL") else _TEST.findall(before)
    return f"FAILED {tests[-1]} - {message.strip()}" if tests else message.strip()


def _happens_now(before: str, message: str, after: str) -> bool:
    around = f"{before} {after}"
    if _UNSOLVED.search(around):
        return True
    if _NOT_NOW.search(around) or (_WORK.match(before) and not _TURN.search(before)):
        return False
    by_a_compiler = _CODED.match(message) is not None and _TELLS.search(before) is not None
    return by_a_compiler or _FAILS_NOW.search(around) is not None
