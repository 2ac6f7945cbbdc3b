"""The prompt: stable first, bounded, and never closing its own fences."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ralphloop.core.model import Story, StoryList
from ralphloop.core.run_state import (
    StoryNotes,
    StoryState,
)
from ralphloop.prompts import (
    STATUS_SECTION,
    OtherLane,
    Parts,
    ProgressEntry,
    build_prompt,
    other_checks,
    room_besides,
    without_dots,
)
from ralphloop.text.status_block import find_block

STORY = Parts(
    story=Story(
        id="US-1",
        title="Add login",
        index=0,
        description="As a user I want to log in.",
        criteria=("Form works", "Tests pass"),
    ),
    checks=(("pytest", "-q"),),
)
SHORT = Story(id="A", title="b", index=0)


def failed(output: str) -> StoryState:
    """A story whose checks said this last."""
    return StoryState(notes=StoryNotes(failure=output))


def entry(summary: str) -> ProgressEntry:
    """An entry of progress.txt."""
    return ProgressEntry(task="A: b", outcome="passed", summary=summary)


def test_S03_AC6_the_status_section_is_in_every_prompt() -> None:
    """Format and example of the mandatory block are there when the prompt file has none."""
    text = build_prompt(STORY).text
    assert STATUS_SECTION.strip() in text
    assert "EXIT_SIGNAL: false | true" in text


def test_a_prompt_file_with_its_own_section_gets_no_second_one() -> None:
    """PROMPT.md is included as it is."""
    own = "# Mine\n\nEnd with a RALPH_STATUS block as described in docs/format.md.\n"
    text = build_prompt(Parts(instructions=own, story=SHORT)).text
    assert text.startswith(own.strip())
    assert STATUS_SECTION.strip() not in text


def test_what_never_changes_comes_first() -> None:
    """Instructions and spec precede the story, the story precedes what happened lately."""
    parts = Parts(spec="THE SPEC", story=SHORT, state=failed("FAILED"), progress=[entry("LATELY")])
    text = build_prompt(parts).text
    order = [
        text.index(word) for word in ("How to work", "THE SPEC", "Your story", "FAILED", "LATELY")
    ]
    assert order == sorted(order)


def test_two_stories_share_their_beginning() -> None:
    """A provider's prompt cache hits up to the story."""
    spec = "spec line\n" * 200
    first, second = (
        build_prompt(Parts(spec=spec, story=Story(id=s, title=s, index=0))).text for s in ("A", "B")
    )
    shared = first.index("# Your story")
    assert first[:shared] == second[:shared]


def test_parts_are_cut_by_whole_lines_and_it_is_said() -> None:
    """A spec over its share loses whole lines at the end, check output at the start."""
    spec = "".join(f"line {n} of the spec\n" for n in range(5_000))
    failure = "".join(f"output {n}\n" for n in range(5_000))
    prompt = build_prompt(Parts(spec=spec, state=failed(failure), story=SHORT), budget=20_000)
    assert len(prompt.text) < 25_000
    assert [part.split(":")[0] for part in prompt.left_out] == ["specification", "check output"]
    assert "left out here" in prompt.text
    assert "output 4999\n" in prompt.text
    kept = [line for line in prompt.text.split("\n") if re.match(r"line \d", line)]
    assert all(line.endswith("of the spec") for line in kept)


@pytest.mark.parametrize("mark", ["#", "##", "###"])
def test_a_spec_is_cut_between_its_sections(mark: str) -> None:
    """A section that does not fit whole is left out whole, heading and all."""
    section = f"{mark} Part {{}}\n\n" + "a line of it\n" * 40
    spec = "\n".join(section.format(n) for n in range(20))
    prompt = build_prompt(Parts(spec=spec, story=SHORT), budget=8_000)
    kept = prompt.text.split("# Specification")[1].split("[")[0]
    parts = kept.count("Part ")
    assert parts == 7  # half of the budget holds seven, and a piece of the eighth
    assert kept.count("a line of it\n") == 40 * parts


def test_a_section_too_long_for_its_share_is_cut_by_lines() -> None:
    """Where the last heading that fits stands early, most of its section is kept."""
    spec = "# One\n\nshort\n\n# Two\n\n" + "".join(f"line {n}\n" for n in range(2_000))
    prompt = build_prompt(Parts(spec=spec, story=SHORT), budget=8_000)
    kept = [line for line in prompt.text.split("\n") if re.fullmatch(r"line \d+", line)]
    assert "\n# Two\n" in prompt.text
    assert len("\n".join(kept)) > 3_000
    assert kept == [f"line {n}" for n in range(len(kept))]


@given(st.text(), st.text(), st.text(max_size=50))
def test_the_prompt_stays_within_its_budget(spec: str, failure: str, title: str) -> None:
    """Whatever the parts contain, the size is bounded."""
    parts = Parts(
        spec=spec * 500, state=failed(failure * 500), progress=[entry(failure * 500)],
        story=Story(id="x", title=title, index=0, description=spec * 500), learned=spec * 500,
    )  # fmt: skip
    assert len(build_prompt(parts, budget=4_000).text) < 4_000 * 2 + len(STATUS_SECTION) + 2_000


@given(st.text(alphabet="`~a\n", max_size=80))
def test_untrusted_output_cannot_leave_its_fence(output: str) -> None:
    """Check output with fences of its own stays data."""
    text = build_prompt(Parts(state=failed(f"x\n{output}\ny"), story=SHORT)).text
    section = text.split("as data:\n\n")[1]
    fence = section.split("\n")[0]
    assert set(fence) == {"`"}
    assert section.count(f"\n{fence}\n") + section.endswith(f"\n{fence}\n") >= 1
    body = section[len(fence) : section.rindex(fence)]
    assert fence not in body


def test_a_prompt_echoed_by_an_agent_is_no_claim() -> None:
    """Template and example in our own prompt are never read as the agent's word."""
    assert find_block(build_prompt(STORY).text) is None


def test_a_plain_loop_has_no_story() -> None:
    """`--prompt FILE` sends the file, the status section and nothing of stories."""
    text = build_prompt(Parts(instructions="Do the thing.")).text
    assert "Your story" not in text
    assert text.startswith("Do the thing.")


def test_a_first_prompt_is_about_its_story() -> None:
    """Whatever others know, the story has a third of what is not the same for all."""
    lanes = [OtherLane(story=f"L-{n}", title="x" * 90, files=("src/a.py",) * 8) for n in range(2)]
    parts = Parts(
        story=Story(
            id="US-1",
            title="Add login",
            index=0,
            description="As a user I want to log in. " * 12,
            criteria=("The form works as the specification says, with a test",) * 5,
        ),
        checks=(("pytest", "-q"),),
        lanes=lanes,
        progress=[entry("did something long " * 12) for _ in range(50)],
    )
    room = room_besides(parts)
    prompt = build_prompt(replace(parts, learned="l" * (room // 2)))
    variable = prompt.text[prompt.rules :]
    story = variable[: variable.index("# Worked on beside you")]
    assert len(story) >= len(variable) / 3
    assert "# Recent progress" in variable


def test_recent_progress_has_a_small_fixed_room() -> None:
    """Fifty entries are not longer than a few; the newest come first."""
    story = Story(id="US-1", title="t", index=0, description="d" * 5_000)
    entries = [entry(f"number {n} " + "w" * 200) for n in range(50)]
    text = build_prompt(Parts(story=story, progress=entries)).text
    told = text.partition("# Recent progress")[2]
    assert len(told) < 2_000
    assert "number 0 " in told
    assert "number 49 " not in told


def test_what_an_earlier_attempt_left_is_told() -> None:
    """Its work in the tree, its whole answer, red tests by name, criteria that are met."""
    notes = StoryNotes(
        advised="ask for the old password",
        said="I wrote the form.\n\nThe password check is half done in auth.py.",
        failing=("tests/test_auth.py::test_password",),
        met=(1,),
        failure="$ pytest -q\n....F [100%]\nE   assert 1 == 2",
    )
    parts = replace(STORY, state=StoryState(notes=notes), work=" auth.py | 12 ++++")
    text = build_prompt(parts).text
    assert "# What lies in the work tree already" in text
    assert " auth.py | 12 ++++" in text
    assert "The password check is half done in auth.py.\n\nnext: ask for the old password" in text
    assert "- tests/test_auth.py::test_password" in text
    assert "- [met] Form works" in text
    assert text.count("Form works") == 1
    assert "[met]: seen so when the checks ran last" in text
    assert "[100%]" not in text


def test_lanes_are_one_line_each() -> None:
    """Story, title and the files it touches so far; beside nobody nothing is said."""
    lanes = [OtherLane(story="US-7", title="Reset", files=("src/auth.py", "tests/test_auth.py"))]
    text = build_prompt(replace(STORY, lanes=lanes)).text
    assert "- US-7: Reset, so far in src/auth.py, tests/test_auth.py\n" in text
    assert "Worked on beside you" not in build_prompt(STORY).text


def test_rows_of_dots_are_left_out() -> None:
    """What a runner prints while it runs says nothing; words and code stay."""
    output = "....F..s [ 50%]\ntests/test_a.py ..F [100%]\nE  assert x\n...and more\nFAILED a\n"
    assert without_dots(output) == "E  assert x\n...and more\nFAILED a\n"


def test_the_project_is_described_once() -> None:
    """What the prompt file says of the project is not said again."""
    stories = StoryList(stories=(), source="prd.json", project="Shop", description="Sells tea.")
    own = "# Shop\n\nSells tea.\n\nEnd with RALPH_STATUS.\n"
    assert (
        build_prompt(Parts(instructions=own, stories=stories, story=SHORT)).text.count("tea") == 1
    )
    assert "Sells tea." in build_prompt(Parts(stories=stories, story=SHORT)).text


def test_an_old_list_of_checks_in_the_prompt_file_is_noticed() -> None:
    """Where it differs it is named; where it is the true one, or none, nothing is said."""
    old = (
        "After you have ended, these commands are run, and a story passes only if they are"
        " green:\n\n    pytest -q\n    ruff check .\n\n## Task\n"
    )
    assert other_checks(old, (("pytest", "-q"), ("ruff", "check", "."))) == ""
    assert other_checks("# Mine\n", (("pytest",),)) == ""
    assert "pytest -q; ruff check ." in other_checks(old, ((".venv/bin/pytest", "-q"),))


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ([False], "0 of 1 story has passed"),
        ([True, False], "1 of 2 stories has passed"),
        ([False, False, False], "0 of 3 stories have passed"),
    ],
)
def test_how_far_the_list_is_stands_in_a_sentence(marks: list[bool], said: str) -> None:
    """Whatever the numbers are."""
    stories = tuple(
        replace(SHORT, id=f"A{n}", index=n, passes=passes) for n, passes in enumerate(marks)
    )
    listed = StoryList(stories=stories, source="prd.json")
    assert said in build_prompt(Parts(story=stories[-1], stories=listed)).text
