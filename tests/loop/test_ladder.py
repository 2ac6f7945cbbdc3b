"""`agent.escalate`: cheap first; a story's failed attempts climb the ladder."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.projects import LIBRARY, Sandbox, sandbox

DECLARED = """
name = "{name}"
program = {python}
reader = "claude"
start = [{script}, "{name}", "{{model}}", "{{safety}}", "{{args}}"]
model = ["{{value}}"]
install = "it is here"
[safety]
minimal = []
moderate = []
strict = []
"""
PAID = {"small": 0.1, "large": 0.5, "huge": 2.0}
AGENT = """
AGENT, MODEL = sys.argv[1:3]
def answers(text, cost=0.0, **more):
    says(text); result(text, cost=cost, **more)
def block(status):
    return f"---RALPH_STATUS---\\nSTATUS: {status}\\nFILES_MODIFIED: 1\\n---END_RALPH_STATUS---"
def works(good):
    write(f"src/{STORY}.py", f"{MODEL} {START}")
    if good: write(f"good/{STORY}")
    answers(block("COMPLETE"), PAID[MODEL])
def limit():
    event(type="rate_limit_event", rate_limit_info={"status": "rejected",
          "resetsAt": int(time.time()) + 3600, "rateLimitType": "five_hour"})
    result("You've hit your 5-hour limit", is_error=True, cost=0, api_error="usage_limit_reached",
           api_error_status=429, terminal_reason="api_error")
    sys.exit(1)
"""
LADDER = 'name = "ours"\nescalate = ["small", "large", "other:huge"]\n'


def ladder(tmp_path: Path, agent: str, *, stories: int = 1, settings: str = LADDER) -> Sandbox:
    """A project with two agents of three models; a story needs its file in `good/`."""
    script = tmp_path / "models.py"
    script.write_text(f"{LIBRARY}\nPAID = {PAID}\n{AGENT}\n{textwrap.dedent(agent)}")
    words = {"python": json.dumps(sys.executable), "script": json.dumps(str(script))}
    declared = {
        f"agents.d/{name}.toml": DECLARED.format(name=name, **words) for name in ("ours", "other")
    }
    box = sandbox(tmp_path, "", files={**declared, "good/.keep": ""}, stories=stories)
    listed = json.loads((box.root / "prd.json").read_text())
    for story in listed["userStories"]:
        story["verify"] = ["test", "-f", f"good/{story['id']}"]
    (box.root / "prd.json").write_text(json.dumps(listed, indent=2))
    config = box.root / "ralph.toml"
    config.write_text(config.read_text().replace('name = "command"\n', settings))
    box.git("commit", "-qam", "ladder")
    return box


def climbed(box: Sandbox) -> list[tuple[str, str]]:
    """Who worked on each start, with which model, from the journal."""
    return [(line.agent, line.model) for line in box.records()]


NEEDS = "works(good=MODEL == {'US-1': 'small', 'US-2': 'huge', 'US-3': 'large'}[STORY])"
SMALL, LARGE, HUGE = ("ours", "small"), ("ours", "large"), ("other", "huge")


def test_a_story_climbs_and_the_next_begins_below(tmp_path: Path, measured: Measured) -> None:
    """Each story starts on the first rung; its failed attempts lead up, to another agent too."""
    box = ladder(tmp_path, NEEDS, stories=3)
    done = box.run()
    assert done.code == 0, done.text
    assert climbed(box) == [SMALL, SMALL, LARGE, HUGE, SMALL, LARGE]
    measured(climbed(box).count(HUGE))
    assert "[4] US-2, attempt 3, other huge (" in done.out
    assert "agent ours small → large → other:huge" in done.out
    assert done.out.count("preflight: ours ") == 1
    assert "takes over" not in done.out
    assert "works again" not in done.out
    assert "ours large" in box.ralph("log", "--iteration", "3").out


def test_the_report_says_what_each_rung_solved_and_cost(tmp_path: Path) -> None:
    """Stories, starts and money for each, in the order of the ladder, in every form."""
    box = ladder(tmp_path, NEEDS, stories=3)
    assert box.run().code == 0
    told = [
        "ours small: 1 story passed in 3 iterations, $0.30",
        "ours large: 1 story passed in 2 iterations, $1.00",
        "other huge: 1 story passed in 1 iteration, $2.00",
    ]
    page = " ".join(box.ralph("report", "--md").out.split())
    places = [page.find(words) for words in told]
    assert -1 not in places, page
    assert places == sorted(places)
    html = " ".join(box.ralph("report", "--html").text.split())
    assert [words for words in told if words.partition(": ")[2] not in html] == []
    data = json.loads(box.ralph("report", "--json").out)
    assert [(one["name"], one["passed"], one["cost_usd"]) for one in data["rungs"]] == [
        ("ours small", 1, pytest.approx(0.3)),
        ("ours large", 1, pytest.approx(1.0)),
        ("other huge", 1, pytest.approx(2.0)),
    ]


def test_an_agent_without_a_ladder_has_no_rungs(tmp_path: Path) -> None:
    """One agent with one model is told as ever."""
    box = ladder(tmp_path, "works(good=True)", settings='name = "ours"\nmodel = "small"\n')
    done = box.run()
    assert done.code == 0, done.text
    assert "Do US-1 (" in done.out
    assert "ours small:" not in box.ralph("report", "--md").out


def test_moving_forward_stays_on_the_cheap_rung(tmp_path: Path, measured: Measured) -> None:
    """An honest agent that needs eight starts and claims nothing before is not made dear."""
    agent = """
    write(f"src/{START}.py")
    if START < 8: answers(f"Part {START} is there. " + block("IN_PROGRESS"), 0.1)
    else: works(good=True)
    """
    box = ladder(tmp_path, agent)
    assert box.run().code == 0
    assert climbed(box) == [SMALL] * 8
    measured(box.starts)


def test_a_second_chance_and_a_later_run_stay_up(tmp_path: Path) -> None:
    """What the cheap model could not do is not put to it again."""
    box = ladder(tmp_path, "works(good=(STATE / 'easy').exists())", stories=2)
    done = box.run()
    assert done.code in (1, 4), done.text
    first = [who for who, line in zip(climbed(box), box.worked_on(), strict=True) if line == "US-1"]
    assert first == [SMALL, LARGE, HUGE, *([HUGE] * (len(first) - 3))]
    (box.state / "easy").touch()
    assert box.run("--reset-circuit").code == 0
    assert climbed(box)[0] == HUGE


@pytest.mark.parametrize("stop", [False, True])
def test_a_usage_limit_of_a_rung_is_taken_over(tmp_path: Path, stop: bool) -> None:
    """All rungs of that agent are away; the others work meanwhile, also where nobody waits."""
    box = ladder(tmp_path, "limit() if AGENT == 'ours' else works(good=True)")
    if stop:
        box.env["RALPH_LIMITS_ON_USAGE_LIMIT"] = "stop"
    done = box.run()
    assert done.code == 0, done.text
    assert climbed(box) == [SMALL, HUGE]
    assert "waiting" not in done.out
    assert "other huge takes over: ours small is away until" in done.out


def test_a_usage_limit_of_every_rung_is_a_usage_limit(tmp_path: Path, measured: Measured) -> None:
    """Another model of the agent that is away is nobody who could take over."""
    settings = 'name = "ours"\nescalate = ["small", "large"]\n'
    box = ladder(tmp_path, "limit()", settings=settings)
    box.env["RALPH_LIMITS_ON_USAGE_LIMIT"] = "stop"
    done = box.run()
    assert done.code == 3, done.text
    assert climbed(box) == [SMALL]
    measured(box.starts)


def test_a_model_that_does_not_exist_costs_its_rung_alone(tmp_path: Path) -> None:
    """The other models of the same agent go on."""
    agent = """
    if MODEL == "large":
        print("API Error: 400 The provided model identifier is invalid."); sys.exit(1)
    works(good=MODEL == "huge")
    """
    box = ladder(tmp_path, agent)
    done = box.run()
    assert done.code == 0, done.text
    assert climbed(box) == [SMALL, LARGE, HUGE]
    assert "other huge takes over: ours large cannot work in this run" in done.out


def test_a_ladder_is_replayed_and_continued(tmp_path: Path) -> None:
    """Killed on the second rung it goes on there, and the night decides the same again."""
    box = ladder(tmp_path, "if START == 3: time.sleep(60)\n" + NEEDS, stories=3)
    process = box.start()
    box.wait_for_start(3)
    process.kill()
    process.communicate()
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert climbed(box) == [SMALL, SMALL, LARGE, LARGE, HUGE, SMALL, LARGE]
    assert "identical" in box.ralph("replay").out


def test_doctor_and_the_plan_know_every_rung(tmp_path: Path) -> None:
    """Each rung's agent is looked for; a dry run names the ladder."""
    box = ladder(tmp_path, NEEDS)
    said = box.ralph("doctor").text
    of_agents = [" ".join(part.split()) for part in said.split(" agent ")]
    assert [one for one in of_agents if one.startswith("ours: ") and ", chosen" in one]
    assert [one for one in of_agents if one.startswith("other: ") and ", on the ladder" in one]
    assert "ours small → large → other:huge" in box.run("--dry-run").out


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('escalate = ["a", "codx:b"]', "codx"),
        ('escalate = ["a"]\nmodel = "b"', "agent.escalate"),
        ('escalate = ["a b"]', "agent.escalate"),
    ],
)
def test_a_ladder_that_cannot_be_is_named(tmp_path: Path, settings: str, words: str) -> None:
    """An agent nobody knows, a model beside it, a name that is none: 65 with the setting."""
    box = ladder(tmp_path, NEEDS, settings=f'name = "ours"\n{settings}\n')
    done = box.run()
    assert done.code == 65, done.text
    assert words in done.text
    assert box.starts == 0
