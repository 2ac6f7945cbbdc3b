"""How tests look in each language, as data: where one begins, what skips it, what asserts.

Patterns are tried on single lines, bounded by whoever reads them.  Python is not here: it has its
own reader, because its syntax tree is at hand.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NEVER = re.compile(r"(?!)")
_QUOTED = r"""(["'`])((?:\\.|(?!\1).){0,200})"""
_HELPERS = r"\b(?:assert|expect|should|check|verify|require|refute)\w*"


class Language(NamedTuple):
    """What to look for in one language."""

    test: re.Pattern[str]  # first line of a test; the last group that matched is its name
    asserts: re.Pattern[str]
    skipped: re.Pattern[str] = _NEVER  # on the first line or an attribute above it
    skips_inside: re.Pattern[str] = _NEVER
    skips_many: re.Pattern[str] = _NEVER  # a line that skips a group or a whole file
    focuses: re.Pattern[str] = _NEVER  # a line that leaves all other tests out
    attribute: re.Pattern[str] | None = None  # needed above the first line to make it a test
    table: re.Pattern[str] = _NEVER  # one test that stands for several cases


def _(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_JAVASCRIPT = Language(
    test=_(
        r"^\s*(?:[xf]?(?:it|test|specify)\b[\w.]*(?:\([^\"'`]{0,200}\))?|[\])}`]{1,3})"
        rf"\(\s*{_QUOTED}"
    ),
    asserts=_(rf"{_HELPERS}\b\s*[.(]|\bt\.\w+\("),
    skipped=_(r"^\s*x(?:it|test|specify)\b|^\s*\w+(?:\.\w+)*\.(?:skip|todo|fails|failing)\b"),
    skips_many=_(r"^\s*(?:x(?:describe|context)\b|(?:describe|context|suite)(?:\.\w+)*\.skip\b)"),
    focuses=_(r"^\s*(?:f(?:it|describe|context)\(|(?:it|test|describe|context|suite)\.only\b)"),
    table=_(r"\.each\b.*\)\(|^\s*[\])}`]{1,3}\("),
)
_GO = Language(
    test=_(r"^func ((?:Test|Fuzz)\w*)\("),
    asserts=_(r"\bt\.(?:Error|Fatal|Fail)\w*\(|\b(?:assert|require)\.\w+\("),
    skips_inside=_(r"^\s*t\.Skip(?:f|Now)?\("),
    skips_many=_(r"^//go:build (?:ignore|never)\b"),
    table=_(r"\bt\.Run\("),
)
_RUST = Language(
    test=_(r"^\s*(?:pub(?:\([^)]{0,50}\))? )?(?:async )?fn (\w+)"),
    asserts=_(r"\b(?:debug_)?assert\w*!|\bpanic!|#\[should_panic"),
    skipped=_(r"^\s*#\[ignore\b|cfg\(any\(\)\)"),
    attribute=_(r"^\s*#\[(?:\w+::)?(?:test|rstest|test_case|quickcheck)\b"),
    table=_(r"#\[(?:case|test_case)\b"),
)
_JVM = Language(
    test=_(r"^\s*(?:\w+ ){0,5}(?:void|fun|Unit) (\w+|`[^`]{1,200}`)\s*\("),
    asserts=_(rf"{_HELPERS}\s*[(.<{{]|\.should\w*"),
    skipped=_(r"^\s*@(?:Disabled|Ignore)\b|enabled\s*=\s*false"),
    skips_inside=_(r"\bassumeTrue\(\s*false\b"),
    attribute=_(r"^\s*@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b"),
    table=_(r"@(?:ParameterizedTest|RepeatedTest|TestFactory)\b"),
)
_CSHARP = Language(
    test=_(r"^\s*(?:public|internal|private) (?:async )?[\w<>]{1,60} (\w+)\s*\("),
    asserts=_(r"\bAssert\w*\.|\.Should\w*\(|\bVerify\w*\("),
    skipped=_(r"\[Ignore\b|\bSkip\s*="),
    attribute=_(r"^\s*\[(?:Fact|Theory|Test|TestMethod|TestCase|DataTestMethod)\b"),
    table=_(r"\[(?:InlineData|TestCase|DataRow|MemberData)\b"),
)
_RUBY = Language(
    test=_(
        rf"^\s*(?:[xf]?(?:it|specify|example|test|scenario)\b\s*\(?\s*{_QUOTED}|def (test_\w+))"
    ),
    asserts=_(rf"{_HELPERS}\b"),
    skipped=_(r"^\s*x(?:it|specify|example|scenario)\b|skip:\s*(?:true|[\"'])"),
    skips_inside=_(r"^\s*(?:skip|pending)\b"),
    skips_many=_(r"^\s*x(?:describe|context)\b"),
    focuses=_(r"^\s*f(?:it|describe|context)\b"),
)
_PHP = Language(
    test=_(r"function (test\w*)\s*\("),
    asserts=_(r"(?:->|::)assert\w+\(|expectException|expect\("),
    skips_inside=_(r"markTest(?:Skipped|Incomplete)"),
    table=_(r"@dataProvider|DataProvider\b"),
)
_ELIXIR = Language(
    test=_(r"""^\s*test\s+("[^"]{0,200})"""),
    asserts=_(r"\b(?:assert|refute)\w*"),
    skipped=_(r"^\s*@tag\s+:?skip\b"),
    skips_many=_(r"^\s*@moduletag\s+:?skip\b"),
)
_SWIFT = Language(
    test=_(r"^\s*(?:@\w+ )?(?:\w+ )?func (test\w*)\("),
    asserts=_(r"\bXCT(?:Assert|Fail|Unwrap)\w*\(|#expect\(|#require\("),
    skips_inside=_(r"\bXCTSkip\w*\("),
)
_BATS = Language(
    test=_(r"""^\s*@test\s+(["'].{0,200})"""),
    asserts=_(r"\[\[? |\bassert\w*|\brefute\w*|\brun\b"),
    skips_inside=_(r"^\s*skip\b"),
)
_C = Language(
    test=_(r"^\s*(?:TEST(?:_[FP]|_CASE)?|BOOST_AUTO_TEST_CASE|SCENARIO)\s*\(([^)]{1,200})\)"),
    asserts=_(r"\b(?:ASSERT|EXPECT|CHECK|REQUIRE|BOOST_CHECK|BOOST_TEST|BOOST_REQUIRE)\w*\s*\("),
    skipped=_(r"DISABLED_|\[\.\]"),
    skips_inside=_(r"\bGTEST_SKIP\b|\bSKIP\("),
)

LANGUAGES: dict[str, Language] = {
    **dict.fromkeys(("js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"), _JAVASCRIPT),
    "go": _GO,
    "rs": _RUST,
    **dict.fromkeys(("java", "kt", "kts", "groovy"), _JVM),
    "cs": _CSHARP,
    "rb": _RUBY,
    "php": _PHP,
    "exs": _ELIXIR,
    "swift": _SWIFT,
    "bats": _BATS,
    **dict.fromkeys(("c", "cc", "cpp", "cxx", "h", "hpp"), _C),
}
