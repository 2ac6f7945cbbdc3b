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
prose the sentence decides (`told_errors`).

Each error has a rank, because noise around a failure must not change which failure it is.

Everything is bounded: the last `MAX_TEXT` characters are read (a run ends in its last words), of a
line the first `MAX_LINE`, and at most `MAX_ERRORS` different error lines are kept.
"""

import re
from enum import IntEnum
from typing import NamedTuple

from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.lines import Kind, Line, scan
from ralphloop.text.plain import clean
from ralphloop.text.told_errors import (
    NAME,
    announces_failure,
    cured_below,
    is_message,
    says_solved,
    told_error,
    told_in_code,
    words,
)

MAX_TEXT = 100_000
MAX_LINE = 3_000
MAX_ERRORS = 50
MAX_ERROR_CHARS = 500
_MAX_PREFIXES = 8


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


# --- shapes ------------------------------------------------------------------------------------

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
    r"|terminate|unresolved|unable|cannot|can't|could not|not ok|no module|module not|ld: "
    rf"|problem|{_SYSTEM_SAYS}|[✖✕✗✘×›]|\.go:|\w: \(\d|-\d{{3,}}: |sqlstate|illegal|exit|\*\*\*"
    r"|\*\* \(|\b(?:stop(?:s|ped)|breaks|die[sd]|ends|complains|red|broken|won't"
    r"|does ?n[o']t)[^\n]{0,60}:[*_]{0,3}\s*(?:\n|$)|\[emerg|\[alert|\[crit|file \"|:\d+:\d+|-->"
)
_BULLET = LazyRegex(r"(?:[-*•·❌🔴💥⛔│┃║╷╵]\ufe0f?\s+|[│┃║]|\d{1,3}[.)]\s+)+")
_BOLD = LazyRegex(r"\*\*(?=[^\s*])([^*]{1,400})(?<=\S)\*\*(?!\*)")
_CODE_SPAN = LazyRegex(r"(`+)([^`].*?)\1[.,;:!]?$")
_NO_REPORT = _any(
    r"\||#(?!\d|#\[)|</?\w|\[[xX]\]",  # tables, headings, markup
    r"\+|-(?!\w*sh: )(?=[^\s-])|\d+\s*[|│→]|\d+\t|at \S|\$ ",  # diffs, listings, frames
    r"[✓✔√✅☑]|ok \d|PASS(?:ED)?\b",
    r"//|/\*|[})]|\{(?!.{0,300}\"level\")|@\w|[\w.]{1,40}!?\((?!\d)",  # code
    r"(?:raise|throw|except|catch|return|def|class|fn|pub|func|const|let|var|import|assert|echo"
    r"|case)\b",
)
_NOT_SEVERE = LazyRegex(r"(?i:warning|warn|note|info|hint|help|remark|debug)\b")
# A word that only machines put before a message: it holds a digit or a mark, or is one.
_NOT_A_PROGRAM = (
    r"(?!(?i:feat|fix|chore|docs?|tests?|refactor|perf|style|revert|build|ci|expected|example"
    r"|message|shows|prints|returns|before|after|old|new|info|note|result|status|tip|todo"
    r"|warning)\b)"
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
_LEVEL = r"(?i:error|fatal|critical|err|emerg|alert|crit)"
_HEAD = _any(
    r"(?:Caused by: )?(?P<lead>(?:[A-Za-z][\w+#./-]* ){0,3})(?:(?P<name>(?!(?:Error"
    rf"|Exception)\b){NAME})(?: \[[\w ]{{1,60}}\])?(?: ?\([^()]{{0,80}}\))?"
    rf"|(?:[Ff]atal )?(?:[Ee]rror|Exception){_CODE}(?: (?:near|at|on) line \d+)?"
    r"|Error \([^()]{1,60}\)):\s+\S",
    r"(?:[Ff]atal(?: [Ee]rror)?|FATAL(?: ERROR)?|[Ee]rror|ERROR|ERR|[Cc]ritical|CRITICAL|Failure"
    rf"|FAILURE|panic|runtime error){_CODE}\s?[:!—-]\s+\S",
    r"error(?:\[\w+\]|\s+[A-Z]{1,6}\d{2,5}):|error\s{2,}\S|(?:ERROR|CRITICAL|FATAL):[\w.]+:\s?\S",
    r"[Ee]rror (?:in|at|on|while|when|during|from|response from|(?!handl|report|logg|track|mapp"
    r"|wrapp|formatt)[a-z]+ing) [^:]{1,160}: \S",
    r"(?!(?:an?|the|this|that|no|any|new|last) )(?:[a-z]+ )?(?:ERR! \S|error (?:code )?[A-Z]\w)",
    # as a log level; in capitals all through it is a title
    r"(?:ERROR|FATAL|CRITICAL) (?![A-Z]{3,}\b|(?i:fix|bug|issue|change|update)\w*\b)(?:in "
    r"|collecting )?(?:\S*[./:\\]\S*|[\"'`]\S+|[A-Z][a-z]\S*)(?=\s|$)",
    rf"\[{_LEVEL}\](?!:\s*(?:#|<|http|[./]))[:\s]*[^\s\[:].*\S",
)
_CLOCK = LazyRegex(r"\d\d:\d\d|\w\[\d+\]:")
_LOG_LEVEL = LazyRegex(r"(?:ERROR|FATAL|CRITICAL)\b[\s\]:-]*\S")
# "Fixed error: …", "on error: …": the words before say that this reports no error.
_NO_LEAD = words(
    r"an?|and|any|as|by|each|every|for|if|in|no|of|on|or|per|the|to|when|with|without|zero|new|old",
    r"known|common|custom|typed|inline|friendly|readable|possible|previous|expected|sample|example",
    r"raises?|returns?|shows?|throws?|avoid|catch|clear|is|are|says|prints|was",
    r"(?:add|document|fix|handl|improv|remov|renam|resolv|solv|updat|chang)\w*",
)
_OTHERS = _any(
    # failing tests
    r"FAILED:? \S*[./:\\]\S*|\[ +FAILED +\] \S|FAIL: +\S|FAIL +\S+ > ",
    r"--- FAIL: \S|not ok \d+|(?:✘ )?● .*›|[✖✕✗✘×]\s+(?!0\b)\S"
    r"|test \S+(?: - .{1,80})? \.\.\. FAILED|\S{1,200} > .{1,200} FAILED$"
    r"|\S{1,200}::\S.{0,300} (?:FAILED|ERROR)(?:\s+\[ *\d+%\])?$",
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
    rf"(?i:{_SYSTEM_SAYS})(?:[.!]?$|: ['\"./])|Permission denied \(",
    r"(?:\w+=(?:\"[^\"]*\"|[^\"\s]\S*)\s+)*level=(?:error|fatal|critical|panic)\b.*\b(?:msg"
    r"|message|err)=|\{.{0,300}\"level\"\s?:\s?\"(?:error|fatal|critical)\"",
)
_PROGRAM_SAYS = LazyRegex(
    rf"{_NOT_A_PROGRAM}(?P<program>(?:(?:dial|listen|lookup|exec|read"
    r"|write) (?:\w+ )?)?[\w./:@+\[\]-]{1,80}): (?!warning\b)(?:.{0,300}: )?(?:(?:\d{3} "
    rf")?{_SYSTEM_SAYS}(?:: .{{0,200}}| while .{{0,200}}|[.!]?)$|(?:(?<=\]: )\w+ )?(?:unable to"
    r"|could not|cannot|can't|failed to) \w+ \S)",
    re.IGNORECASE,
)
_COMPLAINT = LazyRegex(
    r"(?i:(?:\W*\w+\W+){0,3}?(?:(?:un)?expected|unknown|undefined|undeclared|missing|invalid"
    r"|unresolved|cannot|can't|duplicate|redefinition|illegal|unterminated|mismatched"
    r"|incompatible|unused|imported|declared|not (?:found|defined|declared|assignable|allowed"
    r"|used))\b)|[A-Z]{1,4}\d{2,4}(?: \[\*\])? \S"
)
# That something failed, and not what: wrappers, and details of what another line names.
_VAGUE = _any(
    r"\w+(?:\[\d+\])?: \*\*\* .*\bError \d+|[a-z]+ (?:ERR!|error) (?:code (?:ELIFECYCLE|\d+)|errno"
    r"|exit status|path|cwd|command|a complete log)\b|(?:\w+: )?error: (?:could not compile"
    r"|aborting due to|test failed, to rerun|\w+ returned \d+ exit)|(?:error:? )?command failed\b",
    r"(?:\[?(?:info|error)\]? |> )?(?:(?-i:BUILD|Build)|compilation|tests?|test (?:run|suite)|lint"
    r"|command|job|[\w-]{1,30} hook|task \S+) (?:failed|failure)[.!]?(?: (?:in|with|\().{0,60}"
    r"|; see .{0,80})?$|failure: build failed|test result: failed|failures!$|failed \(\w+=\d+",
    r"(?:error:? )?(?:(?:process|command|script|step)\b.{0,120}|(?-i:[a-z./])[\w./-]*"
    r"(?: [\w:./-]+){0,4}) (?:exited|completed|failed|returned) (?:with |\()?(?:an? )?"
    r"(?:non-?zero )?(?:exit )?(?:code|status)(?:$|:? [1-9]\d*[^.]{0,20}$)"
    r"|exit (?:code|status):? [1-9]\d*[.!]?$",
    r"\[error\] (?:failed to execute|compilation error)|(?-i:(?:\*\* (?:[A-Z]+ )+)?FAIL(?:ED)?"
    r"[.!]?(?: \*\*)?$|E {2,}(?![\w.]*Error)\w|FAIL\s+\S+(?:\s+(?:\[build failed\]|[\d.]+s))?$)",
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
    r"(?:txt|plain|bash|z?sh|logs?|ansi|pytb|cmd)?|(?:text|shell|console|term|std|err|trace|power"
    r"|out)[\w-]*"
)

# --- counts ------------------------------------------------------------------------------------

_SUMMARY = LazyRegex(
    r"(?i:\W*(?:\w+\]\s+)?(?:\d+ problems? \(\d+ errors?\b|(?:[a-z][\w -]{0,20}:\W*"
    r"|(?:test )?(?:tests?|files|found|ran)\W+){0,2}\d+ [a-z]+(?:[\s\d,;|().=!:✖]"
    r"|(?<![a-z])(?:passed|failed|failing|passing|failures?|errors?|warnings?|skipped|total|in"
    r"|seconds?|s|ms|problems?|tests?|examples?|pending|todo|assertions?|of|and|files?|checked"
    r"|source|checks?|suites?|found)\b)*$))"
)
_BAD_COUNT = LazyRegex(r"(?i:\b(\d+)\s+(?:\w+\s+)?(?:failed|failing|failures?|errors?)\b)")
_RUN_ENDED = LazyRegex(r"test result: (?:ok|FAILED)\b|(?:OK|FAILED)(?: \(\w+=\d.*)?$")
_PASSED = LazyRegex(r"(?i:\b[1-9]\d* (?:tests? )?pass(?:ed|ing)\b|^OK \(\d)")


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
        self._passed: bool | None = None  # it counts tests that passed; False: some that failed
        self._frame_indent: int | None = None  # of the last `File "…", line n`
        self._head: str | None = None  # its message stands on the next line
        self._previous = ""
        self._announced = False  # "The build stops here:"; what comes next is why

    def read(self, line: Line) -> None:
        """Take one more line into account."""
        text = line.text[:MAX_LINE]
        if line.kind is Kind.SPEECH and text.strip():
            self.leave_exhibit(text)
        elif line.kind is not self._kind and line.kind is not Kind.SPEECH:
            self.leave_exhibit("")
            self._kind = line.kind
        found = self._found_in(text, line) if line.kind in _READ else None
        self._previous = text
        if found:
            kept = self.found if self._kind is Kind.SPEECH else self._shown
            kept.setdefault(found.text[:MAX_ERROR_CHARS].rstrip(), found.rank)

    def leave_exhibit(self, next_spoken: str) -> None:
        """Keep what an exhibit held, unless it passed or the speech below it cures it."""
        quoted_and_solved = self._kind is Kind.QUOTE and says_solved(next_spoken)
        if not (self._passed or quoted_and_solved or cured_below(next_spoken)):
            for text, rank in self._shown.items():
                self.found.setdefault(text, rank)
        self._shown, self._passed, self._kind = {}, None, Kind.SPEECH

    def _found_in(self, text: str, line: Line) -> ErrorLine | None:
        in_fence = line.kind is Kind.CODE
        if not text.strip() or (in_fence and text.lstrip().startswith(("```", "~~~"))):
            return None
        waiting = self._frame_indent is not None or self._head is not None or self._announced
        if in_fence and self._passed is not False and _RUN_ENDED.match(text):
            self._passed = not text.lower().startswith(("failed", "test result: f"))
        if not waiting and not _TRIGGER.search(text.lower()):
            if in_fence and self._passed is None and _PASSED.search(text):
                self._passed = True
            return None
        if frame := _FRAME.match(text):
            self._frame_indent = len(frame[1])
            return None
        # The headline of a diagnostic whose place stands below it, as ruff and rustc print them.
        pointed_at = self._previous.strip() if _POINTS_BACK.match(text) else ""
        if pointed_at and not _NOT_SEVERE.match(pointed_at):
            return ErrorLine(pointed_at, Rank.SPECIFIC)
        if raised := self._raised(text):
            return ErrorLine(raised, Rank.SPECIFIC)
        return self._reported(text, in_code=in_fence and not _OUTPUT.fullmatch(line.language))

    def _raised(self, line: str) -> str | None:
        """The exception that ends a traceback: the first line left of its frames."""
        indent = len(line) - len(line.lstrip())
        if self._frame_indent is None or indent >= self._frame_indent:
            return None  # source lines stand right of their frame
        self._frame_indent = None
        match = _RAISED.match(line)
        return match[1].strip() if match else None

    def _reported(self, line: str, *, in_code: bool) -> ErrorLine | None:
        head, self._head = self._head, None
        announced, self._announced = self._announced, announces_failure(line)
        bare, bulleted = _undressed(line)
        if _NO_REPORT.match(bare):
            self._announced = announced and bare.startswith("$ ")
            return None
        if _MESSAGE_BELOW.match(bare):
            self._head = bare
            return None
        failures = _counts_failures(bare)
        if failures is not None:
            # One count of failures outweighs any that passed.
            if failures or (self._passed is None and _PASSED.search(bare)):
                self._passed = not failures
            return ErrorLine(bare, Rank.TALLY) if failures else None
        self._announced = self._announced or (announced and bulleted)
        found = _shaped(bare, in_code=in_code, bulleted=bulleted)
        if not (found or in_code):
            told = told_error(line, announced=announced)
            found = ErrorLine(told, Rank.SPECIFIC) if told else told_in_code(line, _shaped)
        if head and not found and is_message(head.rstrip(":"), bare):
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


def _shaped(bare: str, *, in_code: bool = False, bulleted: bool = False) -> ErrorLine | None:
    """The line as an error by its shape alone."""
    place = _PLACE.match(bare)
    said = bare[place.end() :] if place else bare
    if _NOT_SEVERE.match(said) or (in_code and not place):
        return None  # source code is full of errors nobody made; only a compiler gives places
    if _VAGUE.match(said):
        return ErrorLine(said, Rank.VAGUE)
    if (headed := _headed(said)) is not None:
        head, _, message = headed.partition(": ")
        return ErrorLine(headed, Rank.SPECIFIC) if is_message(head, message) else None
    complains = place and place["column"] and _COMPLAINT.match(said)
    named = complains or _OTHERS.match(said) or (not bulleted and _program_says(said))
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
    is_summary = len(text) < 200 and _SUMMARY.match(text)
    numbers = _BAD_COUNT.findall(text) if is_summary else []
    return any(number.strip("0") for number in numbers) if numbers else None
