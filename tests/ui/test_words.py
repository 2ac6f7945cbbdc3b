"""What people read: on no screen a name that only programs know, a wrong plural, a foreign time."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ralphloop.cli.demo import make_repository, settings
from ralphloop.core.model import ExitDecision, Outcome
from ralphloop.proc.run import ourselves
from tests.starting import run_to_end

Steps = list[Any]

NAMES = {
    *(str(word) for word in (*ExitDecision, *Outcome) if "_" in word),
    *("transient", "tool_result", "five_hour", "seven_day", "startup_error", "no_tests"),
    *("set_aside", "EXIT_SIGNAL", "indicators", "usage_limit_lifted", "run_finished"),
}
PLURALS = re.compile(
    r"(?<![\w.,:$/-])1 (?:open |more |failed )?(?:stories|iterations|starts|attempts|files|commits|times|"
    r"tests|tool calls|patterns|lines|learnings|checks|skills|wait|are|were|have)\b"
    r"|\bof 1 (?:stories|iterations|starts)\b|[?!]\."
)
FOREIGN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
SCREENS = (
    ("status",),
    ("stories",),
    ("log",),
    ("circuit",),
    ("answer",),
    ("monitor", "--once"),
    ("report", "--md"),
    ("report", "--html"),
    ("stats",),
    ("learnings", "list"),
)


def claims(*steps: Any, status: str = "COMPLETE", words: str = "next") -> Steps:
    """One start that ends with a status block."""
    block = {
        "status": status,
        "tasks_completed": int(status == "COMPLETE"),
        "recommendation": words,
    }
    return [{"say": "Working."}, *steps, {"usage": {"cost_usd": 0.1}}, {"status": block}]


WORK = claims({"write": {"src/a.py": "a = 1\n"}})
IDLE = claims(status="IN_PROGRESS")
NIGHTS: dict[str, tuple[dict[str, list[Steps]], str, int]] = {
    "done": ({"US-1": [WORK]}, "", 0),
    "asks": ({"US-1": [claims(status="BLOCKED", words="Which key?")], "US-2": [WORK]}, "", 2),
    "stuck": ({"US-1": [IDLE]}, "max_attempts = 9\n", 1),
    "outage": (
        {
            "US-1": [
                [{"transient": 529}],
                [{"crash": "SIGKILL"}],
                [{"usage_limit": {"resets_in": "1s"}}],
                WORK,
            ]
        },
        "",
        0,
    ),
    "denied": ({"US-1": [[{"deny": "Bash"}, *IDLE], WORK]}, "", 0),
    "limited": ({"US-1": [IDLE]}, "max_iterations = 1\n", 3),
    "red": ({"US-1": [claims({"write": {"red": "1"}})]}, "max_attempts = 1\n", 4),
    "fatal": ({"US-1": [[{"fatal": "billing_error"}]]}, "", 69),
}


@pytest.mark.parametrize("name", NIGHTS)
def test_no_screen_speaks_to_programs(tmp_path: Path, name: str) -> None:
    """Console, status, stories, log, monitor, report and notifications of several nights."""
    script, limits, code = NIGHTS[name]
    place = tmp_path / "shop"
    stories = [{"id": story, "title": f"Do {story}", "passes": False} for story in script]
    check = "import pathlib, sys; sys.exit(pathlib.Path('red').exists())"
    told = tmp_path / "told"
    tell = f"[notify]\ncommand = ['sh', '-c', 'echo \"$1: $2\" >> {told}', 'sh']\n"
    files = {
        "prd.json": json.dumps({"userStories": stories}),
        "night.json": json.dumps({"stories": script}),
        "ralph.toml": settings(
            "night.json", "-c", check, limits=f'backoff = "10ms"\n{limits}{tell}'
        ),
    }
    make_repository(place, files)
    shown = {"run -v": ralph(place, "run", "-v", "--trust", code=code)}
    shown |= {" ".join(screen): ralph(place, *screen) for screen in SCREENS}
    shown["notifications"] = told.read_text() if told.exists() else ""
    shown["log"] = (
        shown["log"].partition("---RALPH_STATUS---")[0] + shown["log"].rpartition("= ")[2]
    )
    for screen, text in shown.items():
        words = [word for word in NAMES if re.search(rf"(?<![\w.\"=#-]){word}(?![\w\"=])", text)]
        assert words == [], (screen, words, text)
        for pattern in (PLURALS, FOREIGN):
            assert not (found := pattern.search(text)), (screen, found, text)


def ralph(place: Path, *arguments: str, code: int = 0) -> str:
    """All that a command prints, drawings left out."""
    argv = [*ourselves(), *arguments]
    done = run_to_end(argv, cwd=place, env=os.environ, timeout=120)
    text = (done.stdout + done.stderr).decode()
    assert done.returncode == code, text
    return re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", text, flags=re.S)


def test_every_line_of_a_pipe_has_its_time(tmp_path: Path) -> None:
    """Local hours and minutes, and the title of a story once."""
    stories = {"userStories": [{"id": "US-1", "title": "Greet in French", "passes": False}]}
    script = {"stories": {"US-1": [IDLE, WORK]}}
    toml = settings("night.json", "-c", "pass", limits="")
    files = {"prd.json": json.dumps(stories), "night.json": json.dumps(script), "ralph.toml": toml}
    make_repository(tmp_path / "shop", files)
    argv = [*ourselves(), "run", "--trust"]
    done = run_to_end(argv, cwd=tmp_path / "shop", env=os.environ, timeout=120)
    lines = done.stdout.decode().splitlines()
    assert len(lines) > 5
    assert all(re.match(r"\d\d:\d\d +\S", line) for line in lines)
    assert sum("Greet in French" in line for line in lines) == 1
