"""Names that a text of code defines, in any language, as far as they can be told by their look.

Nothing is parsed but Python: the question is only whether a test may fail without a story because
a name is missing there, and a name too many costs no more than a closer look.
"""

import ast
import re
from collections.abc import Iterator

_WORD = re.compile(r"\w+")
_DEFINED = re.compile(
    r"\b(?:function|func|fn|const|let|var|static|class|struct|enum|trait|interface|type|record|mod"
    r"|module|def|namespace)\b[ \t*]{0,4}(?:\([^()\n]{0,200}\)[ \t]{0,4})?(\w{2,100})"
    r"|\bexports\.(\w{1,100})[ \t]{0,4}="
    r"|^[ \t]{0,40}(?:[\w<>\[\],]{1,60}[ \t]){0,6}(\w{2,100})\([^()\n]{0,400}\)[^;\n]{0,100}\{",
    re.MULTILINE,
)
_NO_NAMES = frozenset("if for while switch catch function return await do else match loop".split())
_READS = re.compile(
    r"\b(?:getsource|getsourcelines|read_text|read_bytes|readFileSync|readFile|ReadFile|open"
    r"|read_to_string|include_str|readString|readAllLines)\b"
)
_STARTS = re.compile(
    r"\b(?:subprocess|Popen|os\.system|CliRunner|pexpect|child_process|spawnSync|execFileSync|execa"
    r"|exec\.Command|assert_cmd|CARGO_BIN_EXE|process::Command|ProcessBuilder)\b"
)
_ITSELF = re.compile(r"\b(?:getsource|getsourcelines|__file__|__filename)\b")


def words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def defined_in(path: str, text: str) -> frozenset[str]:
    """The names of functions, classes, methods and values that a file defines."""
    if path.endswith(".py"):
        try:
            return frozenset(_of_python(ast.parse(text)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return frozenset()
    found = {name for names in _DEFINED.findall(text) for name in names if name}
    return frozenset(found - _NO_NAMES)


def _of_python(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def added_names(path: str, old: str | None, new: str) -> frozenset[str]:
    """Those that a file defines now, and that were no word of it before."""
    return defined_in(path, new) - words_of(old or "")


def added_lines(old: str | None, new: str) -> str:
    """The lines of a text that are in it now and were not before."""
    known = frozenset((old or "").splitlines())
    return "\n".join(line for line in new.splitlines() if line not in known)


def reads_text_of(test: str, code: str) -> bool:
    """Whether a text of tests seems to read the text of this file of code."""
    if _READS.search(test) is None:
        return False
    return code.rpartition("/")[2] in test or _ITSELF.search(test) is not None


def starts_programs(test: str) -> bool:
    """Whether a text of tests seems to start programs, and so to see the code from outside."""
    return _STARTS.search(test) is not None
