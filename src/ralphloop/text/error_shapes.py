"""How programs print a failure: the shapes of error lines, and what stands around them.

A line is first undressed to its *core* (`core_of`): bullets, emphasis, timestamps, tags and a
`file:line:` place come off.  The core is an error if it has one of the shapes that programs share:

* a name and a message: `SomeError: message`, `app.exceptions.Missing: message`;
* a head and a message: `error: message`, `fatal[CODE]: message`, `[ERROR] message`;
* a place and a complaint: `main.go:3:2: undefined: total`;
* a failing test: `FAILED tests/x.py::test_y`, `--- FAIL: TestX`, `✕ adds up`;
* what systems say, a closed vocabulary: `prog: x: No such file or directory`, `Segmentation fault`;
* somebody who could not: `prog: cannot …`, `Failed to …: …`.

Shapes describe forms and know no tool, so one nobody thought of is understood as long as it speaks
like the others; and what an agent announces as a failure counts whatever its form (`error_lines`).

Each shape has a rank, because noise around a failure must not change which failure it is: a wrapper
("make: *** [all] Error 2") counts where nothing better is said, a tally ("3 failed") where nothing
else is.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from ralphloop.text.lazy_regex import LazyRegex

# An exception's name: `TypeError`, `sqlite3.OperationalError`, `psycopg.errors.UndefinedTable`.
NAME = (
    r"(?:(?:[A-Za-z_$][\w$]*(?:\.|::|\\))*(?=[A-Z])[\w$]*(?:Error|Exception)\b"
    r"|(?:[a-z_]\w*\.)*(?:exceptions?|errors?|exc)\.[A-Z]\w+)"
)
_MAX_PREFIXES = 6


class Rank(IntEnum):
    """How much a line says about which failure it is."""

    TALLY = 0  # how many failed
    TOLD = 1  # the agent announced a failure and then showed this
    WRAPPER = 2  # something failed, somewhere
    DETAIL = 3  # belongs to a failure that another line names
    SPECIFIC = 4  # names the failure


class Core(NamedTuple):
    """What is left of a line without its decoration, and what the decoration told."""

    text: str
    place: str = ""  # the file of a `file:line:` prefix
    column: bool = False  # … that names a column too, as compilers do and listings do not
    logged: bool = False  # a timestamp, process id or logger name stood before it
    bulleted: bool = False


def _any(*patterns: str, flags: int = 0) -> LazyRegex:
    return LazyRegex("|".join(f"(?:{pattern})" for pattern in patterns), flags)


# --- what stands around ------------------------------------------------------------------------

_BULLET = LazyRegex(r"(?:[-*•·❌🔴💥⛔│┃║╷╵]\ufe0f?\s+|[│┃║]|\d{1,3}[.)]\s+)+")
_BOLD = LazyRegex(r"(\*{1,3}|__?)(?=[^\s*])(.{1,400}?)(?<=\S)\1")
_CODE_SPAN = LazyRegex(r"(`+)([^`].*?)\1[.,;:!]?$")
_STAMP = _any(
    r"\[?\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z"
    r"| ?[+-]\d\d:?\d\d)?\]?[\s:|-]+",
    r"\[?\d\d?:\d\d:\d\d(?:[.,]\d+)?\]?[\s:|-]+",
    r"[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \S{1,60} \S{1,60}?:\s+",  # syslog
    r"(?:pid|PID|tid|thread)[=: ]\d+[\s:|-]+|\(\w+:\d+\)\s+|\[\d+\]:?\s+|#\d+ (?:\d+\.\d+ )?",
    r"[\w.-]{1,40}(?:\[\d+\])?:? +\|\s+",  # the service that speaks
    r"[\w.]{1,60} - (?=(?:ERROR|CRITICAL|FATAL)\b)|\w{1,30}\.(?=(?:ERROR|CRITICAL):)",
)
_LEVEL = r"(?i:error|fatal|critical|err|ftl|emerg|alert|crit)"
_TAG = LazyRegex(rf"\[(?!x\]| *FAILED *\]|(?:[\d:.T -]+ )?{_LEVEL}\])[\w .:/@#-]{{1,40}}\]\s+(?!›)")
_NO_PROGRAM = (
    r"(?!(?i:feat|fix|chore|docs?|tests?|refactor|perf|style|revert|build|ci|expected|example"
    r"|message"
    r"|shows|prints|returns|before|after|old|new|info|note|result|status|tip|todo|warning)\b)"
)
_PROGRAM = LazyRegex(
    rf"{_NO_PROGRAM}(?!(?i:\w*(?:error|exception)|fatal)\b)[\w./@+-]{{1,60}} ?:"
    r"(?:(?=error )| (?=\[(?:emerg|alert|crit|error)\] "
    r"|(?:[Ff]atal )?(?:[Ee]rror|ERROR|[Ff]atal|FATAL)(?::|\[| [A-Z\d]| response from| [a-z]+ing )"
    rf"|{NAME}: "
    r"|\.{0,2}/\S+:\d+:\d+: ))|(?:/\S{1,60}/)?(?:ba|z|da|k)?sh: (?:(?:-c: )?line )?\d+: "
)
_LEAD_IN = LazyRegex(
    r"(?:(?i:uncaught(?: \(in promise\))?|unhandled exception|caused by"
    r"|exception in thread \"[^\"]{0,80}\""
    r"|\[cause\])[.:]? (?:Unhandled exception: )?|[A-Z]{3} (?=(?:Fatal|Parse) error)"
    r"|E {2,}(?=[A-Za-z_.]*(?:Error|Exception)\b)|_{3,} (?=ERROR)|={2,} (?=FAIL|ERROR))"
)
_PLACE = LazyRegex(
    r"(?P<file>(?:file://)?(?:[A-Za-z]:)?(?=[^\s:()]*[./\\])[^\s:()\"'`]{1,300})"
    r"(?::\[?\d+(?:[:,]\d+)*\]?(?:: ?|\s-\s|\s(?=[A-Za-z])|:(?=in ))"
    r"|\(\d+(?:,\d+)*\)\s?:\s+|: line \d+: )"
)
_COLUMN = LazyRegex(r"\d[:,]\d")
_BARE_PLACE = LazyRegex(r"\d+:\d+\s+[Ee]rror:?\s+")  # below the name of its file

_NO_REPORT = _any(
    r"\||#(?!\d|#\[)|</?\w|\[[xX]\]",  # tables, headings, markup
    r"\+|-(?!\w*sh: )(?=[^\s-])|\d+\s*[|│→]|\d+\t|at \S|\$ ",  # diffs, listings, frames
    r"[✓✔√✅☑]|ok \d|PASS(?:ED)?\b",
    r"//|/\*|[})]|\{(?!.{0,300}\"level\")|@\w|[\w.]{1,40}!?\((?!\d)",  # code
    r"(?:raise|throw|except|catch|return|def|class|fn|pub|func|const|let|var|import|assert|echo|case)\b",
)
_ENDS_PASSED = LazyRegex(r"\bPASSED(?:\s+\[ *\d+%\])?[.!]?$|\.\.\. ?ok$|[✓✔✅]$")

# --- shapes ------------------------------------------------------------------------------------

_CODE = r"(?:\[[^\]\s]{1,40}\]| \(?[A-Z]{1,6}-?\d{1,5}\)?| \d{3,5}(?: \([^)]{1,40}\))?)?"
# What strerror() and its relatives say: a closed vocabulary, so a list is right here.
_SYSTEM_SAYS = (
    r"(?:permission denied|no such file or directory|(?:command )?not found|(?:is|not) a directory"
    r"|file exists|connection (?:refused|reset by peer|timed out)|no space left on device"
    r"|operation (?:not permitted|timed out)|address already in use|broken pipe"
    r"|device or resource busy|read-only file system|too many open files|cannot allocate memory"
    r"|out of memory|text file busy|argument list too long|exec format error|directory not empty"
    r"|no route to host|network is unreachable|name or service not known"
    r"|temporary failure in name resolution|input/output error|invalid argument"
    r"|disk quota exceeded|cannot execute binary file|bad interpreter|access is denied"
    r"|the system cannot find the (?:file|path) specified|context deadline exceeded"
    r"|unbound variable|bad substitution)"
)
_ERRNO = (
    r"E(?:NOENT|ACCES|PERM|CONNREFUSED|CONNRESET|ADDRINUSE|TIMEDOUT|NOTFOUND|EXIST|ISDIR|NOTDIR"
    r"|MFILE|NOSPC|PIPE|BUSY|ROFS|NOMEM|INVAL|NOTEMPTY|HOSTUNREACH|NETUNREACH|AI_AGAIN|LOOP|XDEV)"
)
_HOW = (
    r"(?: in [\d.]+ ?m?s\b.{0,40}| with (?:an? |\d+ |exit |code ).{0,40}| \([^)]*\)|; see .{0,80})?"
)
_WRAPPER = _any(
    r"\w+(?:\[\d+\])?: \*\*\* .*\bError \d+|[\w-]+: build stopped|automatic merge failed",
    r"npm (?:ERR!|error) (?:code (?:ELIFECYCLE|\d+)|errno|exit status|signal|path|cwd|command"
    r"|lifecycle script|a complete log|/\S+)\b",
    r"(?:\[?(?:info|error)\]? )?(?-i:BUILD|Build) fail(?:ed|ure)[.!]?" + _HOW + "$",
    r"(?:compilation|tests?|test (?:run|suite)|lint(?:ing)?|type ?check(?:ing)?|command|job"
    r"|pipeline"
    r"|deploy(?:ment)?|[\w-]{1,30} hook) failed[.!]?" + _HOW + "$",
    r"failure: build failed|(?:> )?task \S+ failed|(?:● )?test suite failed to run"
    r"|test result: failed",
    r"error: (?:could not compile|aborting due to|test failed, to rerun|process didn't exit succ"
    r"|\w+ returned \d+ exit)",
    r"(?:error:? )?(?:process|command|script|step)\b.{0,120}"
    r"\b(?:exit(?:ed|s)?|completed|finished|failed|returned)\b.{0,30}\b(?:code|status):? [1-9]\d*",
    r"(?:error: )?command failed(?::| with\b|[.!]?$)|failures!$|failed \(\w+=\d+",
    r"(?-i:[a-z./])[\w./-]*(?: [\w:./-]+){0,4} (?:exited|failed|terminated) (?:with |\()"
    r"(?:exit )?(?:code|status) [1-9]\d*\)?[.!]?$|exit (?:code|status):? [1-9]\d*[.!]?$",
    r"\*\* (?-i:[A-Z]+ )+FAILED \*\*|(?-i:FAIL(?:ED)?)[.!]?$",
    r"\[error\] (?:failed to execute|compilation error|tests run:|there are test|(?:failures"
    r"|errors):? *$)",
    flags=re.IGNORECASE,
)
_DETAIL = _any(
    r"E {2,}\w",
    r"FAIL\s+\S+(?:\s+(?:\[build failed\]|\(?[\d.]+s\)?))?$",  # a file or package, not a test
)
_SPECIFIC = _any(
    rf"{NAME}(?: \[[\w ]{{1,60}}\])?(?: ?\([^()]{{0,80}}\))?:\s+\S",
    r"\*\* \((?:[A-Z]\w*\.)*[A-Z]\w*\) \S",
    rf"in .{{1,200}}: .{{1,300}} \({NAME}\)$",  # the name behind the message, after its place
    r"(?i:(?:uncaught|unhandled) (?:exception|rejection|promise rejection|error))\b.*\S",
    # heads
    r"(?:[Ff]atal(?: [Ee]rror)?|FATAL(?: ERROR)?|[Ee]rror|ERROR|ERR|[Cc]ritical|CRITICAL|Failure"
    rf"|FAILURE){_CODE}\s?(?::|!|-|—)\s+\S",
    r"error(?:\[\w+\]|\s+[A-Z]{1,6}\d{2,5}):|(?:ERROR|CRITICAL|FATAL):[\w.]+:\s?\S",
    r"Error (?:in|at|on|while|when|during|from|response from) [^:]{1,160}: \S",
    r"[Ee]rror (?!handling|reporting|logging|tracking|mapping|wrapping|formatting)[a-z]+ing"
    r" [^:]{1,160}:(?: \S|$)",
    r"error [A-Z][a-z]+ \S|E: [A-Z][a-z]+ \S+ \S",
    r"(?!(?:an?|the|this|that|no|any|new|last) )[a-z]+ (?:ERR! \S|error (?:code )?[A-Z]\w*)",
    # as a log level; in capitals all through it is a title
    r"(?:ERROR|FATAL|CRITICAL) (?![A-Z]{3,}\b|(?i:fix|bug|issue|change|update)\w*\b)"
    r"(?:in |collecting )?(?:\S*[./:\\]\S*|[\"'`]\S+|[A-Z][a-z]\S*)(?=\s|$)",
    rf"\[{_LEVEL}\](?!:\s*(?:#|<|http|[./]))[:\s]*[^\s\[:].*\S|##\[error\]\S|::error[^:]*::\S",
    r"(?:\w+=(?:\"[^\"]*\"|[^\"\s]\S*)\s+)*level=(?:error|fatal|critical|panic)\b.*"
    r"\b(?:msg|message|err)=",
    r"\{.{0,300}\"level\"\s?:\s?\"(?:error|fatal|critical)\"",
    # failing tests
    r"FAILED:? \S*[./:\\]\S*|\[ +FAILED +\] \S|FAIL:? +(?:\S*[./:\\]\S*|\w+ \()",
    r"--- FAIL: \S|not ok \d+|(?:✘ )?● .*›|[✖✕✗✘×]\s+(?!0\b)\S"
    r"|test \S+(?: - .{1,80})? \.\.\. FAILED"
    r"|\S{1,200} > .{1,200} FAILED$",
    r"\S{1,200}::\S.{0,300} (?:FAILED|ERROR)(?:\s+\[ *\d+%\])?$",
    r"Failure/Error: \S|Failed asserting that \S|\[\w+\] › \S",
    # crashes
    r"thread '[^']*' (?:\(\d+\) )?panicked at|panic: \S|terminate called after throwing",
    r"Killed(?:: \d+)?$|==\d+==\s?ERROR: \S|runtime error: \S",
    r"(?:\d+ )?(?:Segmentation fault|Aborted|Abort trap|Bus error|Illegal instruction"
    r"|Floating point exception)(?:\s*\(core dumped\)|: \S|\s{2,}| at |[.!]?$)",
    r"(?:[\w./-]+:(?:\d+:)? ){0,3}[Aa]ssertion\b.{0,200}\bfailed\b",
    # somebody could not
    r"\w+(?:\[\d+\])?: \*\*\* \S|[Ss]yntax error(?:,| near| at| before| in| compiling|:) \S"
    r"|\w+ Error at ",
    r"(?:\S*/)?ld(?:\.\w+)?: (?!warning)[a-z./\d]|(?:\S{1,200}: ?){0,4}(?:in function \S{1,100}: )?"
    r"undefined (?:reference|symbol)s? .{0,9}to\b|Undefined symbols? for",
    r"\S+: No module named \S|Module (?:not found|parse failed): \S|[a-z]: (?:file:|/)\S+:\d",
    r"[Ff]ailed to \w+[^.]{0,200}?: \S|Failed to compile",
    r"CONFLICT \(\w|! \[(?:remote )?rejected\]\s+\S|! [A-Z]\w+ \S"
    r"|[\w ]{3,40} verification failed[.!]?$",
    rf"\w+: \(\d+\) \S|[A-Z]{{3,}}-\d{{3,}}: \S|SQLSTATE\[\w+\]|{_ERRNO}: \S",
    r"ERR_[A-Z]\w+(?::|\s{2,})\s*\S",
    rf"(?i:{_SYSTEM_SAYS})(?:[.!]?$|: ['\"./])|Permission denied \(",
)
_PROGRAM_SAYS = LazyRegex(
    rf"{_NO_PROGRAM}(?P<program>(?:(?:dial|listen|lookup|exec|read"
    rf"|write) (?:\w+ )?)?[\w./:@+\[\]-]{{1,80}}):"
    r" (?!warning\b)(?:.{0,300}: )?"
    rf"(?:(?:\d{{3}} )?{_SYSTEM_SAYS}(?:: .{{0,200}}| while .{{0,200}}|[.!]?)$"
    r"|(?:(?<=\]: )\w+ )?(?:unable to|could not|cannot|can't|failed to) \w+ \S)",
    re.IGNORECASE,
)
_LED = LazyRegex(
    rf"(?P<lead>(?:[A-Za-z][\w+#./-]* ){{1,3}})(?:[Ee]rror|Exception){_CODE}"
    r"(?: (?:near|at|on) line \d+| \([^)]{1,60}\))?:\s+\S"
)
# "Fixed error: …", "on error: …": the words before say that this reports no error.
_NO_LEAD = LazyRegex(
    r"\b(?:an?|and|any|as|by|each|every|for|if|in|no|of|on|or|per|the|to|when|with|without|zero"
    r"|new|old"
    r"|known|common|custom|typed|inline|friendly|readable|possible|previous|expected|sample|example"
    r"|raises?|returns?|shows?|throws?|avoid|catch|clear|(?:add|document|fix|handl|improv|remov"
    r"|renam"
    r"|resolv|solv|updat|chang)\w*)\b",
    re.IGNORECASE,
)
_LINT_CODE = LazyRegex(r"[A-Z]{1,4}\d{2,4}(?: \[\*\])? \S")
_BARE_NAME = LazyRegex(rf"{NAME}$")
_COMPLAINT = LazyRegex(
    r"(?i:(?:\W*\w+\W+){0,3}?(?:(?:un)?expected|unknown|undefined|undeclared|missing|invalid"
    r"|unresolved|cannot|can't|duplicate|redefinition|illegal|unterminated|mismatched|incompatible"
    r"|unused|imported|declared|not (?:found|defined|declared|assignable|allowed|used))\b)"
)
_THROWN = LazyRegex(r"(?:[a-z]\w*\.){2,8}[A-Z]\w*(?:Error|Exception)$")  # above its frames
_NOT_SEVERE = LazyRegex(r"(?i:warning|warn|note|info|hint|help|remark|debug)\b")
_LOG_LEVEL = LazyRegex(r"(?:ERROR|FATAL|CRITICAL)\b[\s\]:-]*\S")


def core_of(line: str) -> Core:
    """The line without bullets, emphasis, timestamps and place."""
    text = line.strip()
    bare = _dropped(_BULLET, text)
    unmarked, logged = _without_prefixes(_without_emphasis(bare))
    place = _PLACE.match(unmarked)
    if place:
        unmarked = unmarked[place.end() :]
    elif found := _BARE_PLACE.match(unmarked):
        unmarked = f"error: {unmarked[found.end() :]}"
    return Core(
        _dropped(_LEAD_IN, unmarked.strip()),
        place["file"] if place else "",
        column=place is not None and _COLUMN.search(place[0]) is not None,
        logged=logged,
        bulleted=bare != text,
    )


def is_no_report(line: str) -> bool:
    """True for code, diffs, tables, headings and passed tests."""
    bare = _dropped(_BULLET, line.strip())
    return bool(_NO_REPORT.match(bare) or _ENDS_PASSED.search(bare[-200:]))


def rank_of(core: Core) -> Rank | None:
    """Which rank the line has as an error line, None where it has no such shape."""
    text = core.text
    if not is_severe(text):
        return None
    if _WRAPPER.match(text):
        return Rank.WRAPPER
    if _DETAIL.match(text) or (core.place and _BARE_NAME.match(text)):
        return Rank.DETAIL
    if _SPECIFIC.match(text) or _led(text) or _program_says(core):
        return Rank.SPECIFIC
    if (core.logged and _LOG_LEVEL.match(text)) or (_THROWN.match(text) and not core.bulleted):
        return Rank.SPECIFIC
    complains = core.column and (_COMPLAINT.match(text) or _LINT_CODE.match(text))
    return Rank.SPECIFIC if complains else None


def is_severe(text: str) -> bool:
    """False where a diagnostic calls itself a warning, a note or a hint."""
    return not _NOT_SEVERE.match(text)


def _led(text: str) -> bool:
    match = _LED.match(text)
    return match is not None and not _NO_LEAD.search(match["lead"])


def _program_says(core: Core) -> bool:
    match = None if core.bulleted else _PROGRAM_SAYS.match(core.text)
    program = match["program"] if match else ""
    return program.islower() or "/" in program  # a capital says label ("Result: not found")


def _dropped(prefix: LazyRegex, text: str) -> str:
    match = prefix.match(text)
    return text[match.end() :] if match else text


def _without_emphasis(text: str) -> str:
    span = _CODE_SPAN.match(text)
    if span:
        return span[2].strip()
    bold = _BOLD.match(text)
    return bold[2] + text[bold.end() :] if bold else text


def _without_prefixes(text: str) -> tuple[str, bool]:
    logged = False
    for _ in range(_MAX_PREFIXES):
        stamp = _STAMP.match(text)
        match = stamp or _TAG.match(text) or _PROGRAM.match(text)
        if not match:
            break
        logged = logged or stamp is not None
        text = text[match.end() :].lstrip()
    return text, logged
