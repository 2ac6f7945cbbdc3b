"""What stands around an error line and is no part of it.

Agents put tool output into bullets, bold type, backticks and block quotes; tools put timestamps,
process ids, logger names and `file:line:` places before it.  `core_of` takes all of that off.
`is_no_report` names the lines that are no report whatever words they hold: source code, diffs,
tables, headings, passed tests.
"""

from __future__ import annotations

import re

from ralphloop.core.error_shapes import Core

_MAX_PREFIXES = 6

_BULLET = re.compile(r"(?:[-*•·>❌🔴💥⛔│┃║╷╵]\ufe0f?\s+|[│┃║]|\d{1,3}[.)]\s+(?!\[\w+\] ›))+")
_BOLD = re.compile(r"(\*{1,3}|__?)(?=[^\s*])(.{1,400}?)(?<=\S)\1")
_CODE_SPAN = re.compile(r"(`+)([^`].*?)\1[.,;:!]?$")
_STAMP = re.compile(
    r"\[?\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z| ?[+-]\d\d:?\d\d)?\]?[\s:|-]+"
    r"|\[?\d\d?:\d\d:\d\d(?:[.,]\d+)?\]?[\s:|-]+"
    r"|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \S{1,60} \S{1,60}?:\s+"  # syslog
    r"|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\s+"  # Go's log
    r"|(?:pid|PID|tid|thread)[=: ]\d+[\s:|-]+|\(\w+:\d+\)\s+|\[\d+\]:?\s+"
    r"|[\w.-]{1,40}(?:\[\d+\])?:? +\|\s+|#\d+ (?:\d+\.\d+ )?"  # docker compose, docker build
    r"|[\w.]{1,60} - (?=(?:ERROR|CRITICAL|FATAL)\b)|\w{1,30}\.(?=(?:ERROR|CRITICAL):)"
)
_TAG = re.compile(
    r"\[(?!x\]| *FAILED *\]|(?:[\d:.T -]+ )?(?i:error|fatal|critical|err|ftl|emerg|alert|crit)\])"
    r"[\w .:/@#-]{1,40}\]\s+"
)
_PROGRAM = re.compile(
    r"(?!(?i:feat|fix|chore|docs|test|refactor|perf|style|revert|expected|example|message|shows"
    r"|prints|returns|before|old|\w*(?:error|exception)|fatal)\b)[\w./@+-]{1,60} ?:"
    r"(?:(?=error )| (?=\[(?:emerg|alert|crit|error)\] "
    r"|(?:[Ff]atal )?(?:[Ee]rror|ERROR|[Ff]atal|FATAL)(?::|\[| [A-Z]| response from| [a-z]+ing )"
    r"|\.{0,2}/\S+:\d+:\d+: ))"
    r"|(?:/\S{1,60}/)?(?:ba|z|da|k)?sh: (?:(?:-c: )?line )?\d+: |lua[\w.]*: (?=\S+:\d+: )"
)
_LEAD_IN = re.compile(
    r"(?:Uncaught(?: \(in promise\))?:? |Unhandled exception[.:] (?:Unhandled exception: )?"
    r"|Caused by: |Exception in thread \"[^\"]{0,80}\" |\[cause\]: |PHP (?=Fatal|Parse)"
    r"|E {2,}(?=[A-Za-z_.]*(?:Error|Exception)\b)|_{3,} (?=ERROR)|={2,} (?=FAIL|ERROR))"
)
_PLACE = re.compile(
    r"(?P<file>(?:file://)?(?:[A-Za-z]:)?(?=[^\s:()]*[./\\])[^\s:()\"'`]{1,300})"
    r"(?::\[?\d+(?:[:,]\d+)*\]?(?:: ?|\s-\s|\s(?=[A-Za-z])|:(?=in ))"
    r"|\(\d+(?:,\d+)*\)\s?:\s+|: line \d+: )"
)
_COLUMN = re.compile(r"\d[:,]\d")
_ESLINT = re.compile(r"\d+:\d+\s+(error)\s+")

_MARKUP = r"\||#(?!\d|#\[)|<!--|</?\w|\[[xX]\]"
_DIFF = r"\+|-(?!\w*sh: )(?=[^\s-])"
_LISTING = r"\d+\s*[|│→]|\d+\t|at \S|\$ "
_PASSED_TEST = r"[✓✔√✅☑]|ok \d|PASS(?:ED)?\b"
_CODE = (
    r"//|/\*|\*/|\"\"\"|'''|[})]|\{(?!.{0,300}\"level\")|@\w"
    r"|(?:raise|throw|except|catch|return|yield|await|async|def|class|fn|pub|impl|func|function"
    r"|const|let|var|import|export|elif|assert|echo|case)\b"
    r"|self\.|this\.|print\w*!?\(|console\.|log(?:ger|ging)?[.(]|if \(|if err\b|for \("
    r"|(?:expect|it|test|describe)\("
)
_NO_REPORT = re.compile(rf"{_MARKUP}|{_DIFF}|{_LISTING}|{_PASSED_TEST}|{_CODE}")
_ENDS_PASSED = re.compile(r"\bPASSED(?:\s+\[ *\d+%\])?[.!]?$|\.\.\. ?ok$|[✓✔✅]$")


def core_of(line: str) -> Core:
    """The line without bullets, emphasis, timestamps and place."""
    text = line.strip()
    bare = _dropped(_BULLET, text)
    unmarked, logged = _without_prefixes(_without_emphasis(bare))
    lint = _ESLINT.match(unmarked)
    place = None if lint else _PLACE.match(unmarked)
    if lint:
        unmarked = f"{lint[1]}: {unmarked[lint.end() :]}"
    elif place:
        unmarked = unmarked[place.end() :]
    core = _dropped(_LEAD_IN, unmarked.strip())
    return Core(
        core,
        place["file"] if place else "",
        column=place is not None and _COLUMN.search(place[0]) is not None,
        logged=logged,
        bulleted=bare != text,
    )


def is_no_report(line: str) -> bool:
    """True for code, diffs, tables, headings and passed tests."""
    bare = _dropped(_BULLET, line.strip())
    return bool(_NO_REPORT.match(bare) or _ENDS_PASSED.search(bare[-200:]))


def _dropped(prefix: re.Pattern[str], text: str) -> str:
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
        match = _STAMP.match(text) or _TAG.match(text) or _PROGRAM.match(text)
        if not match:
            break
        logged = logged or match.re is _STAMP
        text = text[match.end() :].lstrip()
    return text, logged
