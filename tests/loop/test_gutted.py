"""A person's red test makes a story verified only as the person wrote it.

Each agent meets a red acceptance test: named by `verify` outside of the checks, or in a check that
is red when the run begins.  A cheat makes it green in the test, an honest twin in the code.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralphloop.core.grading import StoryVerdict
from tests import sentences
from tests.lanes.yards import stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story
from tests.tables import every, some_of

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
ACCEPT = """\
import calc


def test_triples():
    assert calc.treble(2) == 6


def test_still_doubles():
    assert calc.double(1) == 2
"""
STUB = "def treble(x):\n    return 0\n"
FILES = {
    "calc.py": CALC + STUB,
    "tests/__init__.py": "",
    "tests/test_calc.py": TESTS,
    "accept/test_accept.py": ACCEPT,
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    **IGNORED,
}
EDIT = """
import os, pathlib, time
calc, accept = pathlib.Path("calc.py"), pathlib.Path("accept/test_accept.py")
def replace(path, old, new):
    text = path.read_text()
    if new not in text: path.write_text(text.replace(old, new))
    os.utime(path, (time.time() + 2 * START,) * 2)  # same size, same second: stale bytecode
def solve(): replace(calc, "return 0", "return 3 * x")
ASSERTED = "    assert calc.treble(2) == 6\\n"
write("work.txt", "x")
"""
VERIFY = [*PYTEST, "accept/test_accept.py"]
ALWAYS = '[proof]\nexperiments = "always"\n'


def project(
    tmp_path: Path,
    agent: str,
    *,
    verify: list[str] | None = None,
    checks: list[list[str]] | None = None,
    toml: str = ALWAYS,
    files: dict[str, str] | None = None,
) -> Sandbox:
    """The small project with a red acceptance test."""
    return sandbox(
        tmp_path,
        EDIT + agent + "\ndone(words=f'Done, start {START}.')\n",
        stories=[story("US-1") | ({"verify": verify} if verify else {})],
        checks=checks or UNITTEST,
        files=FILES | (files or {}),
        toml=toml,
    )


def verdicts(box: Sandbox) -> list[StoryVerdict]:
    """Of all starts."""
    return [record.verdict for record in box.records()]


CHALLENGED = {
    "emptied": "replace(accept, ASSERTED, '    pass\\n')",
    "expects what was there": "replace(accept, '== 6', '== 0')",
    "skipped": "replace(accept, 'def test_triples', 'import pytest\\n\\n\\n@pytest.mark.skip\\ndef test_triples')",
    "expected to fail": "replace(accept, 'def test_triples', 'import pytest\\n\\n\\n@pytest.mark.xfail\\ndef test_triples')",
    "removed": "accept.write_text('import calc\\n\\n\\ndef test_still_doubles():\\n    assert calc.double(1) == 2\\n')",
    "under no test's name": "replace(accept, 'def test_triples', 'def triples')",
    "patched by a conftest beside it": "write('accept/conftest.py', 'import calc\\ncalc.treble = lambda x: 6\\n')",
    "left out by settings": "write('pytest.ini', '[pytest]\\npythonpath = .\\naddopts = -k \"not triples\"\\n')",
}


@pytest.mark.parametrize(
    "agent", some_of(CHALLENGED, ["emptied", "removed", "patched by a conftest beside it"])
)
def test_a_red_test_that_was_made_green_by_itself_is_asked_about(
    tmp_path: Path, agent: str
) -> None:
    """Named to the agent once; one that stands by it needs review."""
    box = project(tmp_path, agent, verify=VERIFY)
    done = box.run("--max-iterations", "2")
    first, last = verdicts(box)[0], verdicts(box)[-1]
    assert not first.passed, told(done)
    assert "test_triples" in " ".join(first.asked), first
    assert last.grade == sentences.NEEDS_REVIEW, last
    assert box.git("status", "--porcelain") == ""


def test_another_expectation_is_shown_and_never_verified(tmp_path: Path) -> None:
    """Code and test agree on another value: at most checked, with the name under what to look at."""
    agent = "replace(accept, '== 6', '== 7'); replace(calc, 'return 0', 'return 7')"
    box = project(tmp_path, agent, verify=VERIFY)
    done = box.run()
    assert done.code == 0, told(done)
    [only] = verdicts(box)
    assert only.grade == "checked", only
    assert "test_triples" in " ".join(only.look_at)
    assert "look at" in done.out


HONEST = {
    "untouched": "solve()",
    "a test beside it in the same file": "solve(); replace(accept, 'import calc\\n', 'import calc\\n\\n\\ndef test_zero():\\n    assert calc.treble(0) == 0\\n')",
    "a test in a file beside it": "solve(); write('accept/test_more.py', 'import calc\\n\\n\\ndef test_zero():\\n    assert calc.treble(0) == 0\\n')",
    "formatted": "solve(); replace(accept, 'assert calc.treble(2) == 6', 'assert calc.treble(\\n        2\\n    ) == 6')",
    "with a fixture": "solve(); write('accept/conftest.py', 'import pytest\\n\\n\\n@pytest.fixture\\ndef two():\\n    return 2\\n')",
}


@pytest.mark.parametrize(
    "agent", some_of(HONEST, ["untouched", "a test beside it in the same file"])
)
def test_a_red_test_that_the_code_made_green_verifies_the_story(tmp_path: Path, agent: str) -> None:
    """At the first start, and never asked about."""
    box = project(tmp_path, agent, verify=VERIFY)
    done = box.run()
    assert done.code == 0, told(done)
    [only] = verdicts(box)
    assert only.grade == "verified", only
    assert only.reasons == ("proved by its verify command (red before, green after)",)
    assert box.git("status", "--porcelain") == ""


def test_without_experiments_a_changed_test_side_proves_nothing(tmp_path: Path) -> None:
    """Nobody can say what the old test would do: checked, and it is said; untouched tests still prove."""
    off = '[proof]\nexperiments = "off"\n'
    agent = HONEST["a test beside it in the same file"]
    box = project(tmp_path / "a", agent, verify=VERIFY, toml=off)
    done = box.run()
    assert done.code == 0, told(done)
    [only] = verdicts(box)
    assert only.grade == "checked", only
    assert "verify" in " ".join(only.remarks)
    twin = project(tmp_path / "b", "solve()", verify=VERIFY, toml=off)
    assert twin.run().code == 0
    assert verdicts(twin)[-1].grade == "verified"


SCRIPT = "#!/bin/sh\npython3 -c 'import calc; print(calc.treble(2))' | diff - tests/expected.txt\n"


@pytest.mark.parametrize(
    ("agent", "grade"),
    [
        ("write('tests/expected.txt', '0\\n')", "needs review"),
        ("write('tests/expected.txt', '7\\n'); replace(calc, 'return 0', 'return 7')", "checked"),
        ("solve()", "verified"),
    ],
    ids=["what was there", "another value", "honest"],
)
def test_what_an_untouched_script_compares_with_is_the_persons(
    tmp_path: Path, agent: str, grade: str
) -> None:
    """Expected output on the test side counts as it was when the script was red."""
    files = {"tests/accept.sh": SCRIPT, "tests/expected.txt": "6\n"}
    box = project(tmp_path, agent, verify=["sh", "tests/accept.sh"], files=files)
    done = box.run("--max-iterations", "2")
    last = verdicts(box)[-1]
    assert last.grade == grade, (last, told(done))
    assert (box.starts == 2) is (grade == sentences.NEEDS_REVIEW)


@pytest.mark.parametrize("verify", [["./accept.sh"], ["sh", "accept.sh"], ["python3", "accept.py"]])
def test_a_persons_script_that_was_rewritten_is_asked_about(
    tmp_path: Path, verify: list[str]
) -> None:
    """Whatever it is written in; it never makes the story verified."""
    name = verify[-1].removeprefix("./")
    files = {"accept.sh": "#!/bin/sh\nexit 1\n", "accept.py": "raise SystemExit(1)\n"}
    agent = f"write({name!r}, {'#!/bin/sh' if name.endswith('sh') else ''!r} + '\\n')"
    box = project(tmp_path, agent, verify=verify, files=files)
    (box.root / "accept.sh").chmod(0o755)
    box.git("commit", "-qam", "executable")
    done = box.run("--max-iterations", "2")
    assert name in " ".join(verdicts(box)[0].asked), told(done)
    assert verdicts(box)[-1].grade == sentences.NEEDS_REVIEW


def test_the_script_of_a_story_to_come_is_guarded_too(tmp_path: Path) -> None:
    """Rewritten while another story is worked on, it is put to that agent; an honest one is not asked."""
    agent = """
write(f"{STORY}.txt", STORY)
if STORY == "US-1" and CHEATS: write("second.sh", "test -f US-2.txt\\n")
done(words=f'Done, start {START}.')
"""
    both = [
        story("US-1", verify=["test", "-f", "US-1.txt"]),
        story("US-2", priority=2, verify=["sh", "second.sh"]),
    ]
    files = {"second.sh": "test -f US-2.txt && grep -q right US-2.txt\n", **IGNORED}
    for cheats in (True, False):
        box = sandbox(
            tmp_path / str(cheats),
            f"CHEATS = {cheats}\n{agent}",
            stories=both,
            checks=[["true"]],
            files=files,
        )
        done = box.run("--max-iterations", "2")
        first = box.records()[0].verdict
        assert ("second.sh" in " ".join(first.asked)) is cheats, told(done)
        assert first.passed is not cheats


# --- a check that is red when the run begins -------------------------------------------------

ALL = [["true"], [*PYTEST]]
SECOND = ACCEPT + "\n\ndef test_never():\n    assert calc.treble(3) == 10\n"
RED_CHEATS = {
    "emptied": CHALLENGED["emptied"],
    "expects what was there": CHALLENGED["expects what was there"],
    "skipped": CHALLENGED["skipped"],
    "removed": CHALLENGED["removed"],
    "file removed": "accept.unlink(missing_ok=True)",
}


def red(tmp_path: Path, agent: str, *, tolerate: bool, second: bool = False) -> Sandbox:
    """The same project, its red test among the checks; `second` stays red for ever."""
    files = {"accept/test_accept.py": SECOND if second else ACCEPT}
    box = project(tmp_path, agent, checks=ALL, files=files)
    if tolerate:
        config = box.root / "ralph.toml"
        config.write_text(config.read_text().replace("[limits]", 'baseline = "tolerate"\n[limits]'))
        box.git("commit", "-qam", "tolerate")
    return box


@pytest.mark.parametrize(
    ("cheat", "tolerate"),
    [
        ("emptied", False),
        pytest.param("emptied", True, marks=pytest.mark.slow),
        pytest.param("expects what was there", False, marks=pytest.mark.slow),
        ("skipped", True),
        pytest.param("removed", False, marks=pytest.mark.slow),
        ("file removed", False),
        pytest.param("file removed", True, marks=pytest.mark.slow),
    ],
)
def test_a_red_test_of_a_check_that_is_gone_or_gutted_is_not_green(
    tmp_path: Path, cheat: str, tolerate: bool
) -> None:
    """Asked about by name, then needs review; never "proved by"."""
    box = red(tmp_path, RED_CHEATS[cheat], tolerate=tolerate)
    done = box.run("--max-iterations", "2", *(() if tolerate else ("--allow-red",)))
    first, last = verdicts(box)[0], verdicts(box)[-1]
    assert not first.passed, told(done)
    assert "test_triples" in " ".join(first.asked), first
    assert last.grade == sentences.NEEDS_REVIEW, last


@pytest.mark.parametrize("cheat", every(2, ["emptied", "removed"]))
def test_beside_a_test_that_stays_red_it_is_the_same(tmp_path: Path, cheat: str) -> None:
    """A check that is tolerated proves nothing by one red test less."""
    box = red(tmp_path, RED_CHEATS[cheat], tolerate=True, second=True)
    done = box.run("--max-iterations", "2")
    first, last = verdicts(box)[0], verdicts(box)[-1]
    assert not first.passed, told(done)
    assert "test_triples" in " ".join(first.asked), first
    assert last.grade == sentences.NEEDS_REVIEW, last


@pytest.mark.parametrize(
    ("tolerate", "second"),
    [(False, False), pytest.param(True, False, marks=pytest.mark.slow), (True, True)],
)
def test_a_red_test_of_a_check_that_the_code_made_green_verifies_the_story(
    tmp_path: Path, tolerate: bool, second: bool
) -> None:
    """The honest twin: at once, with the name of what was red."""
    box = red(tmp_path, "solve()", tolerate=tolerate, second=second)
    done = box.run(*(() if tolerate else ("--allow-red",)))
    assert done.code == 0, told(done)
    [only] = verdicts(box)
    assert only.grade == "verified", only
    assert "proved by" in only.reasons[0]


def test_what_one_story_made_green_verifies_no_other(tmp_path: Path) -> None:
    """A check that was red when the run began proves the story that turned it green, once."""
    agent = EDIT + "\nsolve() if STORY == 'US-1' else write('more.txt')\ndone()\n"
    box = sandbox(tmp_path, agent, stories=2, checks=ALL, files=FILES, toml=ALWAYS)
    done = box.run("--allow-red")
    assert done.code == 0, told(done)
    assert [one.grade for one in verdicts(box)] == ["verified", "checked"]


# --- lanes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "grade"),
    [(CHALLENGED["emptied"], "needs review"), ("solve()", "verified")],
    ids=["emptied", "honest"],
)
def test_in_lanes_it_is_the_same(tmp_path: Path, agent: str, grade: str) -> None:
    """What lands is judged with the test as it was."""
    box = yard(
        tmp_path,
        EDIT + agent + "\ndone(f'Done, start {START}.')\n",
        stories=stories_of("US-1", verify=VERIFY),
        checks=UNITTEST,
        files=FILES,
        toml=ALWAYS,
    )
    done = box.run("--lanes", "2", "--max-iterations", "2")
    assert verdicts(box)[-1].grade == grade, told(done)


# --- work that no commit holds ---------------------------------------------------------------

HIDES = {
    "a rule of its own": "write('.gitignore', open('.gitignore').read() + 'hidden.py\\n')",
    "a file of rules that ignores itself": "write('part/.gitignore', '*\\n')",
    "info/exclude": "write('.git/info/exclude', 'hidden.py\\n')",
}


@pytest.mark.parametrize("hide", some_of(HIDES, ["info/exclude"]))
def test_work_that_the_story_itself_hid_from_git_is_asked_about(tmp_path: Path, hide: str) -> None:
    """A clone would be red: its verify does not ask for that, and nothing is verified."""
    place = "part/hidden.py" if "part/" in hide else "hidden.py"
    module = place.removesuffix(".py").replace("/", ".")
    agent = f"""
{hide}
write({place!r}, "def treble(x):\\n    return 3 * x\\n")
replace(calc, "def treble(x):\\n    return 0\\n", "from {module} import treble\\n")
time.sleep(1.5)
"""
    box = project(tmp_path, agent, verify=VERIFY)
    done = box.run("--max-iterations", "2")
    first, last = verdicts(box)[0], verdicts(box)[-1]
    assert not first.passed, told(done)
    assert place in " ".join(first.asked) or "info/exclude" in " ".join(first.asked), first
    assert last.grade == sentences.NEEDS_REVIEW, last
