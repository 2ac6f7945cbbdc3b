"""Which of the blocks in an answer counts."""

from __future__ import annotations

import pytest

from ralphloop.text.status_block import Status, find_block
from tests.text.blocks import TEMPLATE, block

TRUE, FALSE = block(), block(EXIT_SIGNAL="false", STATUS="IN_PROGRESS")
YAML = "RALPH_STATUS:\n  STATUS: COMPLETE\n  EXIT_SIGNAL: true"
HEADING = "## RALPH_STATUS\n- **STATUS:** COMPLETE\n- **EXIT_SIGNAL:** true"


def fenced(text: str, info: str = "") -> str:
    """The text in a code fence."""
    return f"```{info}\n{text}\n```"


COUNTS_AS_TRUE = {
    "canonical": TRUE,
    "after prose": f"Done.\n\n{TRUE}\n",
    "after inline code": f"```like `this`\n{TRUE}\n\nA few notes follow.\n",
    "before prose": f"{TRUE}\n\nA few notes follow.\n- one\n- two\n",
    "crlf": TRUE.replace("\n", "\r\n"),
    "lone carriage returns": TRUE.replace("\n", "\r"),
    "ansi": block(line="\x1b[1m{key}\x1b[0m: \x1b[32m{value}\x1b[0m"),
    "ansi markers": f"\x1b[36m{TRUE}\x1b[0m",
    "bold keys": block(line="**{key}:** {value}"),
    "bold keys, colon outside": block(line="**{key}**: {value}"),
    "bullets": block(line="- {key}: {value}"),
    "star bullets": block(line="* {key}: {value}"),
    "numbered": block(line="1. {key}: {value}"),
    "no space": block(line="{key}:{value}"),
    "tab": block(line="{key}:\t{value}"),
    "nbsp": block(line="{key}:\u00a0{value}"),
    "zero width": block(line="\u200b{key}: {value}\u200b"),
    "quoted values": block(line='{key}: "{value}"'),
    "code values": block(line="{key}: `{value}`"),
    "indented by three": TRUE.replace("\n", "\n   ").join(["   ", ""]),
    "blank lines": TRUE.replace("\n", "\n\n"),
    "lower-case keys": "\n".join(
        line.split(":")[0].lower() + ":" + line.split(":")[1] if ":" in line else line
        for line in TRUE.split("\n")
    ),
    "spaced markers": TRUE.replace("---RALPH_STATUS---", "--- RALPH_STATUS ---"),
    "nul byte before": f"a\x00b\n{TRUE}",
    "two blocks, last true": f"{FALSE}\n\n{TRUE}",
    "unclosed then whole": f"---RALPH_STATUS---\nSTATUS: IN_PROGRESS\nTASKS_COMPLE\n\nAgain:\n{TRUE}",
    "template echoed first": f"{TEMPLATE}\n\n{TRUE}",
    "template quoted after": f"{TRUE}\n\nThe format was:\n{TEMPLATE}",
    "fenced at the end": f"Done.\n\n{fenced(TRUE)}\n",
    "tilde fence at the end": f"Done.\n\n~~~text\n{TRUE}\n~~~",
    "unclosed fence at the end": f"Done.\n\n```\n{TRUE}\n",
    "yaml at the end": f"Done.\n\n{YAML}\n",
    "fenced yaml at the end": f"Done.\n\n{fenced(YAML, 'yaml')}",
    "heading at the end": f"Done.\n\n{HEADING}\n",
    "fenced, then the promise": f"{fenced(TRUE)}\n\n<promise>COMPLETE</promise>\n",
    "fenced, then a comment": f"{fenced(TRUE)}\n\n<!-- end of the answer -->\n",
    "yaml, then a comment": f"Done.\n\n{YAML}\n<!-- end of the answer -->",
    "bold around all of it": f"**{TRUE}**",
    "a bold line before and after": f"**\n{TRUE}\n**",
    "every line bold": "\n".join(f"**{line}**" for line in TRUE.split("\n")),
    "signs before values": block(STATUS="✅ COMPLETE", TESTS_STATUS="🟢 PASSING"),
    "extra fields": block(line="{key}: {value}", NOTE="see above", REVIEWER="none"),
    "prose that mentions it": f"I am setting EXIT_SIGNAL: true because all is done.\n{TRUE}",
    "apostrophes after": f"{TRUE}\nNote: I don't set EXIT_SIGNAL: lightly, it's important.",
    "fence closed before": f"```\ncode\n```\n{TRUE}",
    "inline code is no fence": f"```not a fence``` here\n{TRUE}",
    "25 KB after it": TRUE + "\n" + "[001] GET /items 200\n" * 1_300,
}

COUNTS_AS_FALSE = {
    "canonical false": FALSE,
    "two blocks, last false": f"{TRUE}\n\n{FALSE}",
    "recommendation says true": block(
        EXIT_SIGNAL="false", RECOMMENDATION="when done answer EXIT_SIGNAL: true"
    ),
    "fenced example, then a real one": f"{fenced(TRUE)}\n\n{FALSE}",
    "cut": block(end=False),
    "cut, with words after": block(end=False) + "\n\nI had to stop here.",
    "only in the exit line": block(EXIT_SIGNAL="false | true"),
}

NO_BLOCK = {
    "prose": "I will set EXIT_SIGNAL: true once US-004 is through.",
    "blockquote": "\n".join(f"> {line}" for line in TRUE.split("\n")),
    "line numbers": "\n".join(f"    {n}\t{line}" for n, line in enumerate(TRUE.split("\n"), 40)),
    "grep numbers": "\n".join(f"{n}:{line}" for n, line in enumerate(TRUE.split("\n"), 40)),
    "added diff lines": "\n".join(f"+{line}" for line in TRUE.split("\n")),
    "removed diff lines": "\n".join(f"-{line}" for line in TRUE.split("\n")),
    "diff fence at the end": fenced("\n".join(f"+{line}" for line in TRUE.split("\n")), "diff"),
    "diff fence, context lines": fenced("\n".join(f" {line}" for line in TRUE.split("\n")), "diff"),
    "indented code": "\n".join(f"    {line}" for line in TRUE.split("\n")),
    "fenced in the middle": f"The format:\n{fenced(TRUE)}\nI am not finished yet.",
    "a fence in a fence in the middle": f"Write:\n````\n{fenced(TRUE)}\n````\nI am not finished yet.",
    "yaml in the middle": f"{YAML}\n\nI am not finished yet.",
    "heading in the middle": f"{HEADING}\n\nI am not finished yet.",
    "template": TEMPLATE,
    "fenced template": fenced(TEMPLATE),
    "markers in a sentence": "End with ---RALPH_STATUS--- and ---END_RALPH_STATUS--- please.",
    "begin only": "---RALPH_STATUS---\n\nSorry.",
    "end only": "STATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---",
    "too long to be one": "---RALPH_STATUS---\n" + "log line\n" * 5_000 + "EXIT_SIGNAL: true\n"
    "---END_RALPH_STATUS---",
}  # fmt: skip


@pytest.mark.parametrize("text", COUNTS_AS_TRUE.values(), ids=COUNTS_AS_TRUE.keys())
def test_S03_AC2_the_block_counts_and_is_true(text: str) -> None:
    """Tolerated dress, last block, end-of-answer forms: EXIT_SIGNAL true is read."""
    found = find_block(text)
    assert found is not None
    assert found.exit_signal is True
    assert found.status is Status.COMPLETE


@pytest.mark.parametrize("text", COUNTS_AS_FALSE.values(), ids=COUNTS_AS_FALSE.keys())
def test_SKILL_errors_the_block_counts_and_is_false(text: str) -> None:
    """A block is there, and it does not ask to stop."""
    found = find_block(text)
    assert found is not None
    assert found.exit_signal is False


@pytest.mark.parametrize("text", NO_BLOCK.values(), ids=NO_BLOCK.keys())
def test_quotations_and_echoes_are_no_block(text: str) -> None:
    """Quoted, listed, diffed, templated or merely mentioned blocks are nobody's word."""
    assert find_block(text) is None


def test_SKILL_errors_multiple_status_blocks_use_the_last_one() -> None:
    """Of three whole blocks the last one is read."""
    texts = [block(RECOMMENDATION=word) for word in ("one", "two", "three")]
    found = find_block("\nthen\n".join(texts))
    assert found is not None
    assert found.recommendation == "three"


def test_a_cut_block_says_so() -> None:
    """Fields of a block without its end marker are read, marked truncated."""
    found = find_block(block(end=False))
    assert found is not None
    assert found.truncated is True
    assert found.files_modified == 3


@pytest.mark.parametrize(
    "fields",
    ["STATUS: IN_PROGRESS | COMPLETE | BLOCKED\n  EXIT_SIGNAL: false | true", "SOMETHING: else"],
    ids=["echoed template", "nothing required"],
)
def test_a_title_alone_is_no_block(fields: str) -> None:
    """The YAML form of the template, or one without any of the fields that matter, is none."""
    assert find_block(f"Done.\n\nRALPH_STATUS:\n  {fields}\n") is None
