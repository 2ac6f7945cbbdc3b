"""Code that looks at who judges it: at the tests, at the runner, at whoever calls it.

By its words alone, and only those that were added.  Who wants to hide it can; who only took the
short way is shown.  Tests may look at all that, but for how they are judged themselves.
"""

import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

_RUNNERS = re.compile(
    r"PYTEST_CURRENT_TEST|PYTEST_VERSION|JEST_WORKER_ID|VITEST_WORKER_ID|NODE_TEST_CONTEXT"
    r"|NEXTEST\b|RALPH_[A-Z]|\btesting\.Testing\(|\bcfg!?\((?:not\()?test\b"
    r"|\bflag\.Lookup\(\"test\.|\bos\.Args\[0\][^\n]{0,60}\"[^\"\n]{0,60}\.test\""
    r"|\benv::var(?:_os)?\(\"CARGO\w{0,40}\"\)\s{0,40}\.is_\w"
    r"|\b(?:current_exe|env::args(?:_os)?)\(\)[^\"]{0,200}\"[^\"\n]{0,60}\bdeps\b"
    r"|\bforName\(\"(?:org|io)\.(?:junit|testng)|\"surefire\.|\"java\.class\.path\"[^\n]{0,60}junit"
)
_MODULES = re.compile(
    r"sys\.modules[^\n]{0,60}[\"'](?:_?pytest|unittest|nose|doctest)"
    r"|[\"'](?:_?pytest|unittest|nose|doctest)[\w.]{0,40}[\"'] in [^\n]{0,40}\bmodules\b"
    r"|sys\.argv[^\n]{0,60}[\"'](?:pytest|unittest)"
    r"|[\"'](?:pytest|unittest)[\"'][^\n]{0,60}sys\.argv"
    r"|(?:import|from) _pytest\b"
)
_CALLERS = re.compile(
    r"\b(?:_getframe|f_back|f_code|currentframe|inspect\.stack|getouterframes|_current_frames"
    r"|extract_stack|format_stack|walk_stack|sys\.set(?:trace|profile)|get_referrers)\b"
)
# Where the stack is at hand for every log, only what is held against the names of tests.
_STACKS = re.compile(
    r"\b(?:(?:runtime\.Callers?|(?:debug|runtime)\.Stack|CallersFrames|getStackTrace)\(|StackWalker\b)"
    r"[^\"]{0,300}\"[^\"\n]{0,60}(?:[tT]est|tRunner|junit|surefire)"
    r"|\bthread::current\(\)[^\"]{0,200}\bname\(\)[^\"]{0,80}(?:[=!]=|\bSome\()[^\"]{0,20}\""
)
# What runners say of a test that passed, in what may end the program before they say it.
_RESULTS = re.compile(
    r"--- PASS: |\btest result: ok\b|\btest [\w:]{1,100} \.\.\. ok\b"
    r"|\bsurefire-reports\b|<testcase\b"
)
_ENDS = re.compile(r"\b(?:os\.Exit|syscall\.Exit|process::exit|System\.exit|halt)\(")
_ASSERTIONS = re.compile(
    r"\bmacro_rules!\s{1,8}(?:assert|assert_eq|assert_ne|panic)\b"
    r"|\bas (?:assert|assert_eq|assert_ne)\s*;"
    r"|^package (?:org\.junit|junit\.framework|org\.testng|org\.hamcrest|org\.assertj)\b",
    re.MULTILINE,
)
# What every file of a package may call, and what a class beside the tests takes the name of.
_OF_LANGUAGES = {
    ".go": re.compile(
        r"^(?:(?:func|const|var|type) (?:len|cap|append|panic|recover|true|false|nil|int|string"
        r"|bool|error)\b|[ \t]+(?:true|false|nil)\s*=)",
        re.MULTILINE,
    ),
    ".java": re.compile(
        r"\bstatic (?:<[^>\n]{1,60}> )?void"
        r" assert(?:Equals|True|False|Same|Null|NotNull|ArrayEquals)\("
        r"|^(?:public |final |abstract ){0,3}(?:class|record|enum|interface)"
        r" (?:String|Integer|Long|Double|Boolean|Character|Math|Object)\b",
        re.MULTILINE,
    ),
}
_FRAMES = re.compile(r"\bf_(?:lineno|globals|locals)\b|\bFrameType\b")
_HISTORY = re.compile(
    r"[\"']git[\"' ,]{1,8}"
    r"(?:grep\b|(?:show|log|diff|cat-file|blame|archive)\b[^\n]{0,120}\btests?\b)"
)
_OF_TESTS = re.compile(
    r"^[ \t]*(?:from[ \t]+(?:tests?|conftest|test_\w+)\b"
    r"|import[ \t]+(?:tests?\b|conftest\b|test_))",
    re.MULTILINE,
)
_MECHANICS = re.compile(
    r"ralph_mutants|__ralph_|RALPH_MUTANT|\bco_(?:code|names|consts|filename)\b"
)
_READS = re.compile(
    r"\b(?:open|read_text|read_bytes|readFileSync|readFile|ReadFile|read_to_string|include_str"
    r"|readString|readAllLines|getsource|import_module|__import__)\b"
)
_QUOTED = re.compile(r"\"([^\"\n]{0,200})\"|'([^'\n]{0,200})'|`([^`\n]{0,200})`")
_ENDINGS = frozenset(".py .js .ts .mjs .cjs .go .rs .java .jsx .tsx".split())
_DIRECTORIES = ("tests", "test", "__tests__", "spec")
_OF_EVERY_DIRECTORY = frozenset("__init__.py __main__.py index.js index.ts mod.rs".split())
_WORDS = ("test", "spec")  # of the directories, those that are said of other things as well
_NAME = re.compile(r"(?:test_|Test)\w{3}")
_OPEN_PART = re.compile(r"\[[^\]]*\]|[*?]")  # of a pattern: what it leaves open
_EXPECTING = re.compile(r"expect|golden|snapshot|answer|solution", re.IGNORECASE)


def peeks(
    path: str,
    added: str,
    tests: Collection[str],
    names: Collection[str] = (),
    before: str = "",
) -> Iterator[str]:
    """What the added lines of a file of code look at, in words behind its name.

    `tests` are the files of tests that there are, `names` what a runner calls the tests, `before`
    is the file as it was: one that dealt with frames does so for its own sake.
    """
    if found := _RUNNERS.search(added) or _MODULES.search(added):
        is_module_of_tests = (
            path.endswith(".rs") and added[found.start() - 2 : found.start()] == "#["
        )
        if not is_module_of_tests or "not(" in found.group():
            yield f"asks who runs it ({_short(found.group())})"
    found = _CALLERS.search(added)
    if found and not (_CALLERS.search(before) or _FRAMES.search(before)):
        yield f"looks at who calls it ({found.group()})"
    yield from _in_other_words(path, added, before)
    if found := _HISTORY.search(added):
        yield f"reads the history ({_short(found.group())})"
    if found := _OF_TESTS.search(added):
        yield f"imports from the tests ({_short(found.group())})"
    quoted = [next(filter(None, it), "") for it in _QUOTED.findall(added)]
    functions = {_function_of(name) for name in names}
    if found_name := next((it for it in quoted if it in functions and _NAME.match(it)), ""):
        yield f"asks for a test by its name ({found_name})"
    if _READS.search(added) is None:
        return
    for text in quoted:
        if _is_in_tests(text) or any(_is_file_of_tests(text, test) for test in tests):
            yield f"reads the tests ({text})"
            return


def _in_other_words(path: str, added: str, before: str) -> Iterator[str]:
    """What languages that are compiled have for it: the stack, and words of the runner's own."""
    if found := _STACKS.search(added):
        yield f"looks at who calls it ({_short(found.group())})"
    found = _RESULTS.search(added)
    if found and _ENDS.search(added) and not _RESULTS.search(before):
        yield f"says what a runner says, and ends the program ({_short(found.group())})"
    of_language = _OF_LANGUAGES.get(f".{path.rpartition('.')[2]}", _ASSERTIONS)
    if found := _ASSERTIONS.search(added) or of_language.search(added):
        yield f"takes the place of what tests assert with ({_short(found.group())})"


def _function_of(name: str) -> str:
    """A test without its file, its class and its row."""
    return name.partition("[")[0].rpartition("::")[2].rpartition(" > ")[2].rpartition("/")[2]


def _is_in_tests(text: str) -> bool:
    """Whether a text leads into a directory of tests, to more than plain data there."""
    first, *rest = text.strip("./").split("/")
    if first not in _DIRECTORIES or (first in _WORDS and "/" not in text):
        return False
    is_data = bool(rest) and rest[-1].partition(".")[2] == "json"
    return not is_data or any(_EXPECTING.search(it) for it in rest)


def _is_file_of_tests(text: str, test: str) -> bool:
    """Whether a text names this file: data only with its directory, or as what is expected.

    A product reads data of its users by the same names and endings as the tests do.
    """
    *directories, last = text.split("/")
    *where, name = test.split("/")
    is_pattern = "*" in last
    if not (fnmatchcase(name, last) if is_pattern else name == last):
        return False
    plain = _OPEN_PART.sub("", last)
    is_mere_ending = is_pattern and (len(plain) < 2 or plain in _ENDINGS)
    is_code = any(name.endswith(ending) for ending in _ENDINGS)
    if is_code and name in _OF_EVERY_DIRECTORY:
        return bool(where) and directories[-1:] == where[-1:]
    if is_code:
        return not is_mere_ending
    if not is_pattern and _EXPECTING.search(name):
        return True
    is_there = bool(directories) and directories[-1] == (where or [""])[-1]
    return is_there and any(it in _DIRECTORIES or _EXPECTING.search(it) for it in directories)


def looks_at_mechanics(added: str) -> str:
    """What tells a test how it is judged, among its added lines; empty where nothing does."""
    found = _MECHANICS.search(added)
    return found.group() if found else ""


def _short(text: str) -> str:
    return " ".join(text.split())[:60]
