"""What is judged is what a fresh clone would have, where a clean tree can be made ready.

Files that git ignores, settings of git and what checks leave behind lie in the agent's tree alone:
a story that is green only with these does not pass, and the checks write nothing into the checkout.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story
from tests.loop.test_stories import known_grades

EDIT = """
calc, tests = pathlib.Path("calc.py"), pathlib.Path("tests/test_calc.py")
def add(path, text): path.write_text(path.read_text() + text)
TRIPLES = "    def test_triples(self):\\n        self.assertEqual(calc.triple(2), 6)\\n\\n"
def honest(): add(calc, "def triple(x):\\n    return 3 * x\\n\\n\\n"); add(tests, TRIPLES)
"""
IN_IGNORED = (
    EDIT
    + """
if START == 1:
    write("generated/three.py", "THREE = 3\\n")
    add(calc, "def triple(x):\\n    from generated.three import THREE\\n    return THREE * x\\n\\n\\n")
    add(tests, TRIPLES)
else:
    calc.write_text(calc.read_text().replace("from generated.three import THREE", "THREE = 3"))
done()
"""
)


def project(
    tmp_path: Path,
    agent: str,
    *,
    toml: str = "",
    files: dict[str, str] | None = None,
    checks: list[list[str]] | None = None,
) -> Sandbox:
    """The small project whose check names its tests, with a directory that git ignores."""
    return sandbox(
        tmp_path,
        agent,
        checks=checks or UNITTEST,
        files={
            "calc.py": CALC,
            "tests/__init__.py": "",
            "tests/test_calc.py": TESTS,
            ".gitignore": IGNORED[".gitignore"] + "generated/\n",
            **(files or {}),
        },
        toml=toml,
        clean_tree=True,
    )


def need_what_is_generated(box: Sandbox) -> None:
    """Have the tests load a package that git ignores."""
    (box.root / "generated").mkdir()
    (box.root / "generated" / "__init__.py").write_text("")
    (box.root / "tests" / "test_calc.py").write_text("import generated\n" + TESTS)
    box.git("commit", "-qam", "tests need what is generated")


def cloned(box: Sandbox, tmp_path: Path) -> Path:
    """A fresh clone of what the run left."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(box.root), str(clone)], check=True)
    return clone


def is_green(place: Path) -> bool:
    """Whether the check is green in that directory."""
    return subprocess.run(UNITTEST[0], cwd=place, check=False, capture_output=True).returncode == 0


def test_what_is_green_only_with_ignored_files_does_not_pass(tmp_path: Path) -> None:
    """The missing file is named, to the agent too; made without it, the story passes."""
    box = project(tmp_path, IN_IGNORED)
    done = box.run()
    assert done.code == 0, told(done)
    first, second = box.records()
    assert not first.verdict.passed
    assert "git ignores generated/three.py" in "; ".join(first.verdict.reasons)
    assert "generated/three.py" in box.prompt(2)
    assert second.verdict.passed
    assert is_green(cloned(box, tmp_path))


def test_without_a_clean_tree_the_same_is_checked_in_place(tmp_path: Path) -> None:
    """`clean_tree = "off"` judges where the agent worked, as a session's turn does."""
    box = project(tmp_path, IN_IGNORED, toml='[proof]\nclean_tree = "off"\n')
    done = box.run()
    assert box.records()[0].evidence.checks, told(done)
    assert "in a fresh clone" not in "; ".join(box.records()[0].verdict.reasons)


def test_checks_leave_nothing_in_the_checkout(tmp_path: Path) -> None:
    """What a check writes beside its results is neither in the work tree nor in the commit."""
    litter = ["sh", "-c", "date > litter.txt; python3 -m unittest discover -s tests -t ."]
    box = project(tmp_path, EDIT + "honest(); done()", checks=[litter])
    done = box.run()
    assert done.code == 0, told(done)
    assert not (box.root / "litter.txt").exists()
    assert "litter.txt" not in box.git("ls-tree", "-r", "--name-only", "HEAD")


def test_a_project_that_needs_what_git_ignores_is_judged_in_place(tmp_path: Path) -> None:
    """Where a copy of what git has is red from the start, that is said once, with what to do."""
    box = project(tmp_path, EDIT + "honest(); done()")
    need_what_is_generated(box)
    done = box.run()
    assert done.code == 0, told(done)
    said = [line for line in done.text.splitlines() if "not in a clean copy" in line]
    assert len(said) == 1, told(done)
    assert "lanes" in said[0]
    assert box.records()[0].verdict.passed


def test_lanes_copy_makes_a_clean_tree_ready(tmp_path: Path) -> None:
    """What `lanes.copy` names is brought along, and its story is judged there."""
    toml = '[lanes]\ncopy = ["generated"]\n'
    box = project(tmp_path, EDIT + "honest(); done()", toml=toml)
    need_what_is_generated(box)
    done = box.run()
    assert done.code == 0, told(done)
    assert "not in a clean copy" not in done.text


@pytest.mark.parametrize("how", ["uncommitted", "committed"])
def test_ordinary_deeds_are_judged_there_as_well(tmp_path: Path, how: str) -> None:
    """Renamed, removed and moved files arrive as they are in the commit."""
    agent = (
        EDIT
        + """
honest()
subprocess.run(["git", "mv", "notes.md", "NOTES.md"], check=True)
subprocess.run(["git", "rm", "-q", "old.txt"], check=True)
pathlib.Path("pkg").unlink(); write("pkg/__init__.py", "")
os.symlink("calc.py", "link.py")
"""
        + (
            'subprocess.run(["git", "add", "-A"], check=True);'
            ' subprocess.run(["git", "commit", "-qm", "mine"], check=True)\n'
            if how == "committed"
            else ""
        )
        + "done()"
    )
    files = {"notes.md": "n\n", "old.txt": "o\n", "pkg": "p\n"}
    # Either everything as it was, or everything as the agent left it.
    before = "test -f notes.md -a -f old.txt -a -f pkg"
    after = "test -f NOTES.md -a ! -e notes.md -a ! -e old.txt -a -d pkg -a -L link.py"
    check = [["sh", "-c", f"{before} || {after}"], *UNITTEST]
    box = project(tmp_path, agent, files=files, checks=check)
    done = box.run()
    assert done.code == 0, told(done)
    assert box.git("status", "--porcelain", "--untracked-files=no") == ""


def test_a_run_that_was_killed_goes_on_judging_there(tmp_path: Path) -> None:
    """Kill it while the checks run in the clean tree; `--continue` judges without another start."""
    slow = ["sh", "-c", f"touch {tmp_path}/checking; test ! -f calc_done || sleep 3; true"]
    agent = EDIT + "honest(); write('calc_done'); done()"
    box = project(tmp_path, agent, checks=[slow, *UNITTEST])
    running = box.start()
    box.wait_for_start()
    (tmp_path / "checking").unlink(missing_ok=True)
    deadline = time.monotonic() + 30
    while not (tmp_path / "checking").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    running.kill()
    running.communicate()
    done = box.run("--continue")
    assert done.code == 0, told(done)
    assert box.starts == 1
    assert box.records()[-1].verdict.passed


def test_settings_of_git_that_the_agent_made_have_no_say(tmp_path: Path) -> None:
    """A filter in `.git/config` cannot make the judged files others than the committed ones."""
    agent = (
        EDIT
        + """
add(calc, "def triple(x):\\n    return 0  # SWAP\\n\\n\\n"); add(tests, TRIPLES)
write(".gitattributes", "calc.py filter=swap\\n")
for key, value in (("clean", "sed 's/3 [*] x  # SWAP/0  # SWAP/'"),
                   ("smudge", "sed 's/0  # SWAP/3 * x  # SWAP/'")):
    subprocess.run(["git", "config", f"filter.swap.{key}", value], check=True)
calc.write_text(calc.read_text().replace("0  # SWAP", "3 * x  # SWAP"))
done()
"""
    )
    box = project(tmp_path, agent)
    box.run()
    clone = cloned(box, tmp_path)
    assert known_grades(box)["US-1"] != "verified" or is_green(clone)


def test_the_journal_says_where_it_was_judged(tmp_path: Path) -> None:
    """`ralph replay` decides the same, and nothing of the clean tree lies in the repository."""
    box = project(tmp_path, EDIT + "honest(); done()")
    done = box.run()
    assert done.code == 0, told(done)
    assert json.loads(box.ralph("replay", "--json").out)["identical"]
    assert box.git("worktree", "list").count("\n") == 0
    assert "clean" not in " ".join(path.name for path in box.root.iterdir())


def test_an_errand_with_a_command_of_no_known_runner_is_judged_there(tmp_path: Path) -> None:
    """One start, no exchange of files before our own failing test: it has a place to be noted."""
    box = project(tmp_path, EDIT + "add(calc, 'def triple(x):\\n    return 3 * x\\n'); done()")
    done = box.ralph("do", "triple", "--verify", "python3 -c 'import calc; calc.triple(1)'")
    assert done.code == 0, told(done)


def test_work_behind_a_link_out_of_the_repository_is_for_a_person(tmp_path: Path) -> None:
    """What a link leads to is in no commit: asked once, then it needs review."""
    outside = tmp_path / "outside.py"
    agent = (
        EDIT
        + f"""
away = pathlib.Path({str(outside)!r})
away.write_text("def triple(x):\\n    return 3 * x\\n")
if not os.path.lexists("more.py"): os.symlink(away, "more.py")
if START == 1: add(tests, TRIPLES.replace("calc.triple", "__import__('more').triple"))
else: write("notes.txt", "I stand by it")
done()
"""
    )
    box = project(tmp_path, agent)
    done = box.run("--max-iterations", "3")
    assert known_grades(box).get("US-1") in ("", None, "needs review"), told(done)
    assert "leads out of the repository" in "; ".join(box.records()[0].verdict.reasons)


@pytest.mark.parametrize(
    ("made", "directory"),
    [
        (
            "write('env/pyvenv.cfg'); os.makedirs('env/bin'); os.symlink('/bin/sh', 'env/bin/python')",
            "env",
        ),
        (
            "write('web/node_modules/left/package.json'); write('web/node_modules/x.js')",
            "web/node_modules",
        ),
    ],
)
@pytest.mark.parametrize(
    ("then", "grade"),
    [("write('.gitignore', 'env/\\nnode_modules/\\n')", "verified"), ("", "needs review")],
)
def test_installed_packages_are_no_work(
    tmp_path: Path, made: str, directory: str, then: str, grade: str
) -> None:
    """The agent hears it once; where it ignores them, nothing is held against its work."""
    agent = (
        EDIT
        + f"""
if START == 1:
    {made}
    honest()
else:
    write("notes.txt", "looked at it")
    {then or "pass"}
done()
"""
    )
    box = project(tmp_path, agent)
    done = box.run("--max-iterations", "3")
    assert known_grades(box) == {"US-1": grade}, told(done)
    words = f"{directory} holds installed packages, and git does not ignore it"
    assert words in box.prompt(2)
    assert "leads out" not in box.prompt(2)


def test_a_verify_that_is_green_only_the_second_time_proves_nothing(tmp_path: Path) -> None:
    """A command that counts its runs somewhere else is no proof of anything."""
    count = tmp_path / "count"
    script = (
        f"n=$(cat {count} 2>/dev/null || echo 0); echo $((n+1)) > {count}; test $((n % 2)) -eq 1"
    )
    stories = [story("US-1", verify=["sh", "-c", script])]
    box = sandbox(
        tmp_path,
        EDIT + "add(calc, '# nothing of that\\n'); done()",
        stories=stories,
        checks=UNITTEST,
        files={"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED},
        clean_tree=True,
    )
    done = box.run("--max-iterations", "2")
    assert known_grades(box).get("US-1") != "verified", told(done)


@pytest.mark.tool("bwrap")
@pytest.mark.parametrize("git", ["read-only", "guarded"])
def test_a_story_is_tried_where_the_sandbox_hides_the_repository(tmp_path: Path, git: str) -> None:
    """A project below /tmp: git finds its objects from the clean tree, and experiments are made."""
    box = project(
        tmp_path,
        EDIT + "honest(); done()",
        toml=f'[sandbox]\nmode = "on"\ngit = "{git}"\nwrite = ["STATE"]\n',
    )
    toml = box.root / "ralph.toml"
    toml.write_text(toml.read_text().replace("STATE", str(box.state)))
    box.git("commit", "-qam", "sandbox")
    done = box.run()  # the agent's own script lies below /tmp as well: who names it, shows it
    assert done.code == 0, told(done)
    (only,) = box.records()
    assert only.evidence.trial is not None
    assert not [words for words in only.evidence.trial.untried if "git" in words]
    assert only.verdict.grade == "verified"
