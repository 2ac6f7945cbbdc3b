"""Numbers add up: on every screen the parts are the whole, and two screens say the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ralphloop.project import Project
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story
from tests.ui.page_visits import Elements, Visits

# US-1 passes, US-2 breaks a test first, US-3 asks; later US-1 comes back and US-4 is new.
AGENT = """
tries = STATE / f"tries-{STORY}"
count = int(tries.read_text()) + 1 if tries.exists() else 1
tries.write_text(str(count))
name = STORY.lower().replace("-", "_")
time.sleep(0.3)
if STORY == "US-3" and "From the person" not in PROMPT:
    status("BLOCKED", recommendation="Which colour?")
elif STORY == "US-2" and count == 1:
    write("calc.py", open("calc.py").read().replace("2 * x", "3 * x"))
    done()
else:
    code = open("calc.py").read().replace("3 * x", "2 * x")
    write("calc.py", f"{code}def {name}_{count}():\\n    return {count}\\n\\n\\n")
    test = f"    def test_{name}_{count}(self):\\n        self.assertEqual(calc.{name}_{count}(), {count})\\n\\n"
    write("tests/test_calc.py", open("tests/test_calc.py").read() + test)
    done()
"""
PASSED = ("verified", "checked", "claimed", "review", "by_hand", "earlier")


def project(tmp_path: Path, **more: Any) -> Sandbox:
    """Three stories, and an agent that does one after another."""
    files = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED}
    stories = [story(f"US-{n}") for n in (1, 2, 3)]
    return sandbox(tmp_path, AGENT, stories=stories, checks=UNITTEST, files=files, **more)


def report_of(box: Sandbox, run: str = "") -> dict[str, Any]:
    """`ralph report --json`."""
    found: dict[str, Any] = json.loads(box.ralph("report", *([run] if run else []), "--json").out)
    return found


def seconds(words: str) -> int:
    """A duration as it is written."""
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([hms])", words))


def add_up(report: dict[str, Any]) -> None:
    """Every column of a report."""
    groups = {group["key"]: group for group in report["groups"]}
    assert sum(group["count"] for group in groups.values()) == report["total"]
    assert sum(groups[key]["count"] for key in PASSED if key in groups) == report["passed"]
    for group in groups.values():
        assert len(group["stories"]) + group["more"] == group["count"]
    times = report["times"]
    parts = sum(
        times[f"{name}_s"] for name in ("working", "checking", "proving", "waiting", "other")
    )
    assert parts == pytest.approx(times["total_s"])
    stories = [line for group in groups.values() for line in group["stories"]]
    totals = report["spending"]["totals"]
    assert sum(line["iterations"] for line in stories) == totals["iterations"]
    assert sum(line["cost_usd"] for line in stories) == pytest.approx(totals["cost_usd"])
    assert sum(line["tokens"] for line in stories) == report["spending"]["total_tokens"]
    assert sum(one["iterations"] for one in report["series"]["iterations"]) == totals["starts"]
    assert len(report["series"]["passed"]) == sum(line["passed"] for line in stories)


def test_a_night_adds_up_on_every_screen(tmp_path: Path) -> None:
    """Console, status, report, stats and page: the parts are the whole, and the same."""
    box = project(tmp_path)
    done = box.run()
    report = report_of(box)
    status = box.status()
    stats = json.loads(box.ralph("stats", "--json").out)
    add_up(report)
    assert report["headline"].startswith("2 of 3 stories passed, 1 waits for you")
    starts = re.findall(r"^\S+ \[(\d+)\]", done.out, re.MULTILINE)
    assert len(starts) == report["spending"]["totals"]["iterations"] == len(status["iterations"])
    assert f"2 of 3 stories passed, {len(starts)} iterations, " in done.out
    assert (stats["stories"]["passed"], stats["stories"]["blocked"]) == (2, 1)
    assert sum(stats["stories"].values()) == report["total"] == 3
    assert stats["iterations"] == len(starts)
    assert stats["active_s"] == pytest.approx(report["times"]["total_s"])
    with Visits(Project(box.root), tmp_path / "visits") as visits:
        page = " ".join(Elements(visits.get("", visits.known()).text).words.split())
    assert "2 of 3 stories passed" in page
    assert re.search(rf"iterations ?{len(starts)} of ", page)
    assert re.search(rf"tokens ?{report['spending']['total_tokens']:,}\b", page)
    shown = box.ralph("report").out
    (told,) = re.findall(
        r"^- time: (\S+(?: \S+)?), no limit: (.+)$|^- time: (.+)$", shown, re.MULTILINE
    )
    whole, _, parts = "".join(told).partition(": ")
    assert sum(map(seconds, parts.split(", "))) == seconds(whole.partition(" of ")[0]), told


def test_a_question_is_no_failure_anywhere(tmp_path: Path) -> None:
    """Report, status, stories, stats and monitor count no failed attempt where somebody asked."""
    box = project(tmp_path)
    box.run("--story", "US-3")
    report = report_of(box)
    (group,) = (one for one in report["groups"] if one["key"] == "waiting")
    assert [line["attempts"] for line in group["stories"]] == [0]
    assert not report["near_misses"]
    (row,) = (
        one
        for one in json.loads(box.ralph("stories", "--json").out)["stories"]
        if one["id"] == "US-3"
    )
    assert row["attempts"] == 0
    assert "✗" not in box.ralph("monitor", "--once").out.split("Stories:")[1].split("Now:")[0]
    shown = box.ralph("report").out
    assert "failed attempt" not in shown
    assert shown.count("Which colour?") == 3  # what to do, the story, what was decided when
    assert json.loads(box.ralph("stats", "--json").out)["failures"] == {}


def test_an_earlier_run_is_told_as_it_was(tmp_path: Path) -> None:
    """What later runs did and what stands in today's file changes nothing in its report."""
    box = project(tmp_path)
    box.run()
    first = report_of(box)["run"]
    assert box.ralph("answer", "US-3", "blue").code == 0
    data = json.loads((box.root / "prd.json").read_text())
    data["userStories"].append(story("US-4"))
    (box.root / "prd.json").write_text(json.dumps(data, indent=2) + "\n")
    box.git("commit", "-qam", "One more")
    assert box.run().code == 0
    assert report_of(box)["headline"].startswith("4 of 4 stories passed")
    old = report_of(box, first)
    add_up(old)
    assert (old["passed"], old["total"]) == (2, 3)
    keys = {group["key"]: group["count"] for group in old["groups"] if group["count"]}
    assert "by_hand" not in keys
    assert old["headline"].startswith("2 of 3 stories passed")


def test_a_story_that_was_sent_back_has_passed_once(tmp_path: Path) -> None:
    """Rejected and passed again, it is one passed story of as many as there are."""
    box = project(tmp_path)
    box.run("--story", "US-1")
    assert box.ralph("reject", "US-1", "not like that").code == 0
    stats = json.loads(box.ralph("stats", "--json").out)
    assert stats["stories"] == {"open": 1}
    box.run("--story", "US-1")
    stats = json.loads(box.ralph("stats", "--json").out)
    assert stats["stories"] == {"passed": 1}


def test_what_is_not_known_is_called_so(tmp_path: Path) -> None:
    """An agent that names neither price nor tokens: one word for it on every screen."""
    box = project(tmp_path)
    done = box.run("--story", "US-1")
    screens = {
        "console": done.out,
        "status": box.ralph("status").out,
        "report": box.ralph("report").out,
        "stats": box.ralph("stats").out,
        "monitor": box.ralph("monitor", "--once").out,
    }
    for name, text in screens.items():
        assert "unknown" in text, (name, text)
        assert not re.search(r"(?<![\d,])0 tokens|none reported|cost unknown|\$0\.00", text), (
            name,
            text,
        )


def test_the_console_tells_things_in_their_order(tmp_path: Path) -> None:
    """The agent ended, checks, experiments, verdict; tests that fail are named with their check."""
    box = project(tmp_path)
    lines = [line[6:].strip() for line in box.run("--story", "US-2").out.splitlines()]
    red = next(line for line in lines if line.startswith("checks: ") and "failed" in line)
    assert re.search(r"failed \(.*test_doubles.*\)", red), red
    passed = next(at for at, line in enumerate(lines) if line.startswith("✓ US-2 passed"))
    before = lines[:passed]
    last = (
        len(before)
        - 1
        - before[::-1].index(next(x for x in before[::-1] if x.startswith("completed in")))
    )
    kinds = [line.partition(" ")[0] for line in lines[last : passed + 1]]
    wanted = [kind for kind in kinds if kind in ("completed", "checks:", "tried", "✓")]
    assert wanted == ["completed", "checks:", *["tried"] * kinds.count("tried"), "✓"]
    assert "tried" in kinds


IN_LANES = """
time.sleep(0.5)
name = STORY.lower().replace("-", "_")
write(f"{name}.py", f"def {name}(number):\\n    return number + {START}\\n")
write(f"tests/test_{name}.py",
      f"import unittest\\n\\nimport {name}\\n\\n\\nclass One(unittest.TestCase):\\n"
      f"    def test_{name}(self):\\n        self.assertEqual({name}.{name}(1), {START} + 1)\\n")
done()
"""


def test_a_night_in_lanes_adds_up(tmp_path: Path) -> None:
    """Several stories at once: report, status, stats and console have the same parts and whole."""
    files = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED}
    stories = [story(f"US-{n}") for n in (1, 2, 3)]
    box = sandbox(tmp_path, IN_LANES, stories=stories, checks=UNITTEST, files=files)
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    report = report_of(box)
    status = box.status()
    stats = json.loads(box.ralph("stats", "--json").out)
    add_up(report)
    assert (report["passed"], report["total"]) == (3, 3)
    iterations = report["spending"]["totals"]["iterations"]
    assert iterations == len(status["iterations"]) == stats["iterations"]
    assert f"3 of 3 stories passed, {iterations} iterations, " in done.out
    assert stats["stories"]["passed"] == 3
    assert stats["active_s"] == pytest.approx(report["times"]["total_s"])
    assert report["times"]["proving_s"] > 0
