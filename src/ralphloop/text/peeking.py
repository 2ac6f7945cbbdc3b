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
