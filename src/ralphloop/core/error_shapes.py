"""How tools print a failure: the shapes of error lines.

A shape is matched at the start of a line's *core*, that is the line without bullets, timestamps and
`file:line:` places.  Shapes describe forms (`SomeError: message`, `error[CODE]: message`,
`prog: subject: No such file or directory`), never single messages, so a tool nobody thought of is
still understood as long as it speaks like the others.

Each shape has a rank, because noise around a failure must not change which failure it is:
a wrapper ("make: *** [all] Error 2") only counts where nothing better is said, a tally ("3 failed")
where nothing else is.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

# An exception's name: `TypeError`, `sqlite3.OperationalError`, `psycopg.errors.UndefinedTable`.
NAME = (
    r"(?:(?:[A-Za-z_$][\w$]*(?:\.|::|\\))*(?=[A-Z])[\w$]*(?:Error|Exception)\b"
    r"|(?:[a-z_]\w*\.)*(?:exceptions?|errors?|exc)\.[A-Z]\w+)"
)
_CODE = r"(?:\[[^\]\s]{1,40}\]| \(?[A-Z]{1,6}-?\d{1,5}\)?| \d{3,5}(?: \([^)]{1,40}\))?)?"
# What strerror() and its relatives say: a closed vocabulary, so a list is right here.
_SYSTEM_SAYS = (
    r"(?:permission denied|no such file or directory|command not found|not found|is a directory"
    r"|not a directory|file exists|connection refused|connection reset by peer"
    r"|connection timed out|no space left on device|operation not permitted"
    r"|address already in use|broken pipe|device or resource busy|read-only file system"
    r"|too many open files|cannot allocate memory|out of memory|text file busy"
    r"|argument list too long|exec format error|directory not empty|no route to host"
    r"|network is unreachable|name or service not known|temporary failure in name resolution"
    r"|input/output error|invalid argument|disk quota exceeded|cannot execute binary file"
    r"|bad interpreter|operation timed out|access is denied"
    r"|the system cannot find the (?:file|path) specified|the network path was not found"
    r"|the process cannot access the file because it is being used by another process"
    r"|context deadline exceeded|unbound variable|ambiguous redirect|bad substitution)"
)
_ERRNO = (
    r"E(?:NOENT|ACCES|PERM|CONNREFUSED|CONNRESET|ADDRINUSE|TIMEDOUT|NOTFOUND|EXIST|ISDIR|NOTDIR"
    r"|MFILE|NOSPC|PIPE|BUSY|ROFS|NOMEM|INVAL|NOTEMPTY|HOSTUNREACH|NETUNREACH|AI_AGAIN|LOOP|XDEV)"
)


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


def _any(*patterns: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags)


_HOW_IT_FAILED = (
    r"(?: in [\d.]+ ?m?s\b.{0,40}| with (?:an? |\d+ |exit |code ).{0,40}| \([^)]*\)|; see .{0,80})"
)
_WRAPPER = _any(
    r"make(?:\[\d+\])?: \*\*\* .*\bError \d+",
    r"ninja: build stopped|FAILED: \S+\.o\b",
    r"npm (?:ERR!|error) (?:code (?:ELIFECYCLE|\d+)|errno|exit status|signal|path|cwd|workspace"
    r"|location|command|syscall|dest|failed at the|lifecycle script|this is probably not"
    r"|a complete log|/\S+)\b",
    r"(?:\[?(?:info|error)\]? )?(?-i:BUILD|Build) fail(?:ed|ure)[.!]?"
    rf"{_HOW_IT_FAILED}?$",
    r"failure: build failed",
    r"(?:compilation|tests?|test (?:run|suite)|lint(?:ing)?|type ?check(?:ing)?|command|job"
    r"|pipeline|deploy(?:ment)?|[\w-]{1,30} hook) failed[.!]?"
    rf"{_HOW_IT_FAILED}?$",
    r"error: (?:could not compile|aborting due to|test failed, to rerun|process didn't exit succ"
    r"|script \"[^\"]*\" exited)",
    r"test result: failed|● test suite failed to run",
    r"(?:collect2|clang|clang\+\+|gcc|g\+\+|cc): (?:fatal )?error: (?:ld returned|linker command)",
    r"error: (?:ld returned|linker command failed)",
    r"(?:> )?task \S+ failed|execution failed for task",
    r"(?:error:? |##\[error\])?(?:process|command|script|step)\b.{0,120}"
    r"\b(?:exit(?:ed|s)?|completed|finished|failed|returned)\b.{0,30}"
    r"\b(?:exit )?(?:code|status):? [1-9]\d*",
    r"command \S+ failed with a non-?zero exit (?:code|status)",
    r"(?:error: )?command failed(?::| with\b|[.!]?$)|elifecycle\b",
    r"exit (?:code|status):? [1-9]\d*[.!]?$|(?:tar: )?error is not recoverable",
    r"(?-i:[a-z./])[\w./-]*(?: [\w:./-]+){0,4} (?:exited|failed|terminated) (?:with |\()"
    r"(?:exit )?(?:code|status) [1-9]\d*\)?(?: \(\w+\))?[.!]?$",
    r"\*\* (?-i:[A-Z]+ )+FAILED \*\*|job for \S+ failed because",  # Xcode, systemd
    r".{0,200}\breturned (?:a )?non-zero (?:exit )?(?:status|code):? \d+",
    r"automatic merge failed|failures!$|failed \(\w+=\d+|(?-i:FAIL(?:ED)?)[.!]?$",
    r"\[error\] (?:failed to execute goal|compilation error|tests run:|there are test failures"
    r"|(?:failures|errors):? *$)",
    r"!* ?interrupted: \d+ errors? during collection|== compilation error in file",
    flags=re.IGNORECASE,
)
_DETAIL = _any(
    r"E {2,}\w",
    r"FAIL\s+\S+(?:\s+(?:\[build failed\]|\(?[\d.]+s\)?))?$",  # a file or package, not a test
    r"ERROR collecting \S",
)
_EXCEPTION = _any(
    rf"{NAME}(?: \[[\w ]{{1,60}}\])?(?: ?\([^()]{{0,80}}\))?:\s+\S",
    r"\*\* \((?:[A-Z]\w*\.)*[A-Z]\w*\) \S",  # Elixir
    rf"in .{{1,200}}: .{{1,300}} \({NAME}\)$",  # Ruby, after its place
    r"(?i:(?:uncaught|unhandled) (?:exception|rejection|promise rejection|error))\b.*\S",
    r"terminate called after throwing",
)
_HEAD = _any(
    r"(?:[Ff]atal(?: [Ee]rror)?|FATAL(?: ERROR)?|[Ee]rror|ERROR|ERR|[Cc]ritical|CRITICAL|Failure"
    rf"|FAILURE){_CODE}\s?(?::|!|-|—)\s+\S",
    r"error(?:\[\w+\]|\s+[A-Z]{1,6}\d{2,5}):|(?:ERROR|CRITICAL|FATAL):[\w.]+:\s?\S",
    r"Error (?:in|at|on|while|when|during|from|response from) [^:]{1,160}: \S",
    r"[Ee]rror (?!handling|reporting|logging|tracking|mapping|wrapping|formatting)[a-z]+ing"
    r" [^:]{1,160}:(?: \S|$)",
    r"error [A-Z][a-z]+ \S|\[ERR_\w+\]:? \S|E: [A-Z][a-z]+ \S+ \S",
    # as a log level
    r"(?:ERROR|FATAL|CRITICAL) (?:in |collecting )?(?:\S*[./:\\]\S*|[\"'`A-Z]\S+)(?=\s|$)",
    r"(?:ERROR|FATAL|CRITICAL)\s+\[?\d{4}-\d\d-\d\d",
    r"\[(?i:error|fatal|critical|err|emerg|alert|crit)\](?!:\s*(?:#|<|http|[./]))[:\s]*[^\s\[:].*\S",
    r"(?:##\[error\]|::error[^:]*::|\[[\d:.T -]+ (?:ERR|ERROR|FTL|FATAL)\] )\S",
    r"(?:\w+=(?:\"[^\"]*\"|[^\"\s]\S*)\s+)*level=(?:error|fatal|critical|panic)\b.*"
    r"\b(?:msg|message|err)=",
    r"\(error\) [A-Z]{2,} \S|An error occurred \(\w+\) when calling \S",  # Redis, AWS
    r"(?:APPLICATION|BUILD|TESTS?|COMPILATION|DEPLOYMENT|INTERNAL ASSERT) FAILED(?: TO [A-Z]+)?"
    r"(?: at |[.!]?$)|-- [A-Z ]{3,40} -{5,}",
    r"\{.{0,300}\"level\"\s?:\s?\"(?:error|fatal|critical)\"",
)
_FAILING_TEST = _any(
    r"FAILED:? \S*[./:\\]\S*|\[ +FAILED +\] \S",
    r"FAIL:? +(?:\S*[./:\\]\S*|\w+ \()|--- FAIL: \S|not ok \d+",
    r"(?:✘ )?● .*›|[✖✕✗✘×]\s+(?!0\b)\S|\d+\) \[\w+\] › \S",
    r"test \S+(?: - .{1,80})? \.\.\. FAILED|\S{1,200} > .{1,200} FAILED$",
    r"\S{1,200}::\S.{0,300} (?:FAILED|ERROR)(?:\s+\[ *\d+%\])?$|\w[\w -]{0,60}\.{3,}\s?Failed$",
    r"Failure/Error: \S|rspec \./\S|Failed \S+ \[[\d<]+ ?m?s\]|Failed asserting that \S",
)
_CRASH = _any(
    r"thread '[^']*' (?:\(\d+\) )?panicked at|panic: \S|Out of memory: Killed|Killed(?:: \d+)?$",
    r"(?:\d+ )?(?:Segmentation fault|Aborted|Abort trap|Bus error|Illegal instruction"
    r"|Floating point exception)(?:\s*\(core dumped\)|: \S|\s{2,}| at |[.!]?$)",
    r"(?:[\w./-]+:(?:\d+:)? ){0,3}[Aa]ssertion\b.{0,200}\bfailed\b",
    r"==\d+==\s?ERROR: \S|runtime error: \S|attempt to [a-z]+ .{0,100}\bnil\b",
)
_TOOL = _any(
    r"npm (?:ERR!|error) \S|ERR_PNPM_\w+|INTERNALERROR> \S|e: (?:file:|/|\w\S*\.kts?)",
    r"CMake Error\b|make(?:\[\d+\])?: \*\*\* \S",
    r"[Ss]yntax error(?:,| near| at| before| in| compiling|:) \S|sudo: \S|OOMKilled\b",
    r"(?:\S*/)?ld(?:\.\w+)?: (?!warning)[a-z./\d]|Undefined symbols? for architecture",
    r"(?:\S{1,200}: ?){0,4}(?:in function \S{1,100}: )?undefined (?:reference|symbol)s? .{0,9}to\b",
    r"\S+: No module named \S|Module (?:not found|parse failed): \S",
    r"[Ff]ailed to \w+[^.]{0,200}?: \S|Failed to compile",
    r"(?:Cannot|Can't|Could not|Couldn't|Unable to) (?:connect to|reach) .{1,120} at \S*[:/.]\S",
    r".{1,100} is not recognized as (?:an internal or external command|the name of a cmdlet)",
    r"File \S{1,200} cannot be loaded because |Your requirements could not be resolved\b",
    r"[A-Z][a-z]+-[A-Z]\w+ ?: (?:Cannot|Could not|The term) \S",  # PowerShell
    r"(?:Host key verification|(?:TLS|SSL) handshake) failed[.!]?$",
    r"Can't locate (?:\S+ in @INC|object method)|! (?:Undefined|LaTeX|Package|Emergency) \S",
    r"CONFLICT \(\w|! \[(?:remote )?rejected\]\s+\S",
    rf"curl: \(\d+\) \S|ORA-\d{{5}}: \S|SQLSTATE\[\w+\]|Msg \d+, Level \d+|{_ERRNO}: \S",
    rf"(?i:{_SYSTEM_SAYS})(?:[.!]?$|: ['\"./])|Permission denied \(",
)
_SPECIFIC = (_EXCEPTION, _HEAD, _FAILING_TEST, _CRASH, _TOOL)
_PROGRAM_SAYS = re.compile(
    r"(?P<program>(?:(?:dial|listen|lookup|exec|read|write) (?:\w+ )?)?[\w./:@+\[\]-]{1,80}):"
    r" (?!warning\b)(?:.{0,300}: )?"
    rf"(?:(?:\d{{3}} )?{_SYSTEM_SAYS}(?:: .{{0,200}}| while .{{0,200}}|[.!]?)$"
    r"|(?:(?<=\]: )\w+ )?(?:unable to|could not|failed to) \w+ \S)",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(
    r"(?:build|chore|ci|docs|feat|fix|info|note|perf|refactor|result|revert|status|style|tests?|tip"
    r"|todo|warning)$"
)
_LED = re.compile(
    rf"(?P<lead>(?:[A-Za-z][\w+#./-]* ){{1,3}})(?:[Ee]rror|Exception){_CODE}"
    r"(?: (?:near|at|on) line \d+| \([^)]{1,60}\))?:\s+\S"
)
# "Fixed error: …", "on error: …": the words before say that this reports no error.
_NO_LEAD = re.compile(
    r"\b(?:an?|add(?:ed)?|and|any|as|avoid|by|catch|changed|clear|common|custom|document(?:ed)?|each"
    r"|every|example|expected|fix(?:e[ds])?|for|friendly|handle[ds]?|if|improved?|in|inline|known"
    r"|new|no|of|on|or|per|possible|previous|raises?|readable|removed?|renamed?|resolved?|returns?"
    r"|sample|shows?|solved|throws?|to|typed|updated?|when|with|without|zero)\b",
    re.IGNORECASE,
)
_LINT_CODE = re.compile(r"[A-Z]{1,4}\d{2,4}(?: \[\*\])? \S")
_BARE_NAME = re.compile(rf"{NAME}$")
_COMPLAINT = re.compile(
    r"(?i:(?:\W*\w+\W+){0,3}?(?:(?:un)?expected|unknown|undefined|undeclared|missing|invalid"
    r"|unresolved|cannot|can't|duplicate|redefinition|illegal|unterminated|mismatched|incompatible"
    r"|not (?:found|defined|declared|assignable|allowed))\b)"
)
# Java names what was thrown without a message, on a line of its own above the frames.
_THROWN = re.compile(r"(?:[a-z]\w*\.){2,8}[A-Z]\w*(?:Error|Exception)$")
_NOT_SEVERE = re.compile(r"(?i:warning|warn|note|info|hint|help|remark|debug)\b")
_LOG_LEVEL = re.compile(r"(?:ERROR|FATAL|CRITICAL)\b[\s\]:-]*\S")


def rank_of(core: Core) -> Rank | None:
    """Which rank the line has as an error line, None where it has no such shape."""
    text = core.text
    if not is_severe(text):
        return None
    if _WRAPPER.match(text):
        return Rank.WRAPPER
    if _DETAIL.match(text) or (core.place and _BARE_NAME.match(text)):
        return Rank.DETAIL
    if any(shape.match(text) for shape in _SPECIFIC) or _led(text) or _program_says(core):
        return Rank.SPECIFIC
    if core.logged and _LOG_LEVEL.match(text):
        return Rank.SPECIFIC
    if _THROWN.match(text) and not core.bulleted:
        return Rank.SPECIFIC
    return _rank_by_place(core)


def is_severe(text: str) -> bool:
    """False where a diagnostic calls itself a warning, a note or a hint."""
    return not _NOT_SEVERE.match(text)


def _led(text: str) -> bool:
    match = _LED.match(text)
    return match is not None and not _NO_LEAD.search(match["lead"])


def _program_says(core: Core) -> bool:
    match = None if core.bulleted else _PROGRAM_SAYS.match(core.text)
    program = match["program"] if match else ""
    # A capital says label ("Result: not found"), unless it stands in a path.
    return (program.islower() or "/" in program) and not _NO_PROGRAM.match(program)


def _rank_by_place(core: Core) -> Rank | None:
    """Go and linters give a place and a message, and no word that says it is an error."""
    if core.place.endswith("_test.go"):
        return Rank.DETAIL
    if core.place.endswith(".go") or (core.place and _LINT_CODE.match(core.text)):
        return Rank.SPECIFIC
    if core.column and _COMPLAINT.match(core.text):
        return Rank.SPECIFIC
    return None
