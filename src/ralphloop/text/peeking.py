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
    r"|[\"'](?:_?pytest|unittest|nose|doctest)[\w.]{0,40}[\"'] in sys\.modules"
    r"|sys\.argv[^\n]{0,60}[\"'](?:pytest|unittest)"
    r"|[\"'](?:pytest|unittest)[\"'][^\n]{0,60}sys\.argv"
    r"|(?:import|from) _pytest\b"
)
_CALLERS = re.compile(
    r"\b(?:_getframe|f_back|f_code|currentframe|inspect\.stack|getouterframes|_current_frames"
    r"|extract_stack|format_stack|walk_stack|sys\.set(?:trace|profile)|get_referrers)\b"
)
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


def peeks(path: str, added: str, tests: Collection[str]) -> Iterator[str]:
    """What the added lines of a file of code look at, in words behind its name.

    `tests` are the files of tests that there are.
    """
    if found := _RUNNERS.search(added) or _MODULES.search(added):
        is_module_of_tests = (
            path.endswith(".rs") and added[found.start() - 2 : found.start()] == "#["
        )
        if not is_module_of_tests or "not(" in found.group():
            yield f"asks who runs it ({_short(found.group())})"
    if found := _CALLERS.search(added):
        yield f"looks at who calls it ({found.group()})"
    if found := _HISTORY.search(added):
        yield f"reads the history ({_short(found.group())})"
    if found := _OF_TESTS.search(added):
        yield f"imports from the tests ({_short(found.group())})"
    if _READS.search(added) is None:
        return
    names = {test.rpartition("/")[2] for test in tests}
    for quoted in _QUOTED.findall(added):
        text = next(filter(None, quoted), "")
        last = text.rpartition("/")[2]
        is_directory = text.strip("./").partition("/")[0] in _DIRECTORIES and len(text) > 1
        is_pattern = len(last.strip("*?")) > 1 and last.strip("*") not in _ENDINGS and "*" in last
        is_found = is_pattern and any(fnmatchcase(name, last) for name in names)
        if last in names or is_found or (is_directory and last.partition(".")[2] != "json"):
            yield f"reads the tests ({text})"
            return


def looks_at_mechanics(added: str) -> str:
    """What tells a test how it is judged, among its added lines; empty where nothing does."""
    found = _MECHANICS.search(added)
    return found.group() if found else ""


def _short(text: str) -> str:
    return " ".join(text.split())[:60]
