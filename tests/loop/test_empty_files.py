"""Nothing with content, nothing done: empty new files alone are no work, and beside it they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lanes.yards import prompt, starts, stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import IGNORED, UNITTEST, sandbox, story

GREEN = [["true"]]
WORDS = "only new files without content"


@pytest.mark.parametrize(
    "deed",
    [
        "write('marker', '')",
        "write('pkg/__init__.py', '')",
        "write('docs/.gitkeep', ''); write('assets/.gitkeep', '')",
        "write('notes.txt', ' \\n\\n\\t\\n')",
        "write('a.txt', ''); subprocess.run(['git', 'add', '-A']);"
        " subprocess.run(['git', 'commit', '-qm', 'done'])",
    ],
    ids=["empty", "package", "gitkeep", "blank", "committed"],
)
def test_empty_new_files_alone_are_no_work(tmp_path: Path, deed: str) -> None:
    """The story does not pass, the agent hears why, and real work passes afterwards."""
    agent = f"""
if START == 1:
    {deed}
else:
    write('work.txt', 'work')
done()
"""
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run("--max-iterations", "3")
    assert done.code == 0, told(done)
    assert box.starts == 2, told(done)
    assert WORDS in done.text
    assert WORDS in box.prompt(2)


def test_in_a_lane_neither(tmp_path: Path) -> None:
    """It does not land; with content it does."""
    agent = "write('marker', 'x' if START > 1 else '')\ndone()\n"
    box = yard(tmp_path, agent, stories=stories_of("a"), checks=GREEN)
    done = box.run("--lanes", "2", "--max-iterations", "3")
    assert done.code == 0, told(done)
    assert starts(box, "a") == 2, told(done)
    assert WORDS in prompt(box, "a", 2)
    assert box.git("show", "HEAD:marker") == "x"


@pytest.mark.parametrize(
    "deed",
    [
        "write('pkg/__init__.py', ''); write('pkg/py.typed', ''); write('pkg/a.py', 'A = 1\\n')",
        "write('old.txt', '')",
        "write('new.txt', ''); os.remove('old.txt')",
        "write('empty', ''); os.chmod('old.txt', 0o755)",
        "os.symlink('old.txt', 'link')",
    ],
    ids=["beside work", "emptied", "with a removal", "with a mode", "link"],
)
def test_an_empty_file_beside_work_passes(tmp_path: Path, deed: str) -> None:
    """Markers belong to packages, and emptying or removing a file is work."""
    box = sandbox(tmp_path, f"{deed}\ndone()\n", checks=GREEN, files={"old.txt": "old\n"})
    done = box.run("--max-iterations", "2")
    assert done.code == 0, told(done)
    assert box.starts == 1, told(done)


def test_an_empty_file_that_was_asked_for_passes(tmp_path: Path) -> None:
    """Its own command was red and is green by just that file: that is what the story is about."""
    asked = story("US-1", verify=["test", "-e", "pkg/py.typed"])
    box = sandbox(tmp_path, "write('pkg/py.typed', '')\ndone()\n", stories=[asked], checks=GREEN)
    done = box.run("--max-iterations", "2")
    assert done.code == 0, told(done)
    assert box.starts == 1, told(done)


def test_an_empty_file_that_turns_a_check_green_passes(tmp_path: Path) -> None:
    """What was red before the run and is green by it is something."""
    agent = "write('pkg/py.typed', '')\ndone()\n"
    box = sandbox(tmp_path, agent, checks=[["test", "-e", "pkg/py.typed"]])
    done = box.run("--allow-red", "--max-iterations", "2")
    assert done.code == 0, told(done)
    assert box.starts == 1, told(done)


def test_an_empty_package_file_that_lets_tests_be_found_passes(tmp_path: Path) -> None:
    """Tests that nobody ran before run and pass: the check shows what the file is good for."""
    inner = (
        "import unittest\n\n\nclass More(unittest.TestCase):\n"
        "    def test_more(self):\n        self.assertTrue(1)\n"
    )
    files = {
        **IGNORED,
        "tests/__init__.py": "",
        "tests/test_top.py": inner.replace("More", "Top"),
        "tests/more/test_more.py": inner,
    }
    agent = "write('tests/more/__init__.py', '')\ndone()\n"
    box = sandbox(tmp_path, agent, checks=UNITTEST, files=files)
    done = box.run("--max-iterations", "2")
    assert done.code == 0, told(done)
    assert box.starts == 1, told(done)
