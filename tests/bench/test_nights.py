"""The scripted nights: their agent does what it is told, and their hidden tests know the truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.nights import __main__ as command
from benchmarks.nights.actor import Act, Actor, honest
from benchmarks.nights.measure import Result
from benchmarks.nights.nights import NIGHTS, Night
from benchmarks.nights.shop import TASKS, lay_out, prd, truly_done
from benchmarks.nights.show import STORIES, picture, sums_of, table
from benchmarks.nights.supervisors import SUPERVISORS, Supervisor
from tests.e2e.model_server import Turn
from tests.e2e.model_server.wire import Json, Question

START = {"x-night-start": "1"}


def shop(root: Path) -> Path:
    """A shop before its night."""
    place = root / "shop"
    place.mkdir()
    lay_out(place)
    (place / "prd.json").write_text(prd())
    (root / "starts.log").write_text("1 4711 0.0\n")
    return place


def said(prompt: str, *, answers: int = 0) -> Json:
    """A conversation in which the model has answered so often."""
    messages: list[Json] = [{"role": "user", "content": prompt}]
    for _ in range(answers):
        messages.append({"role": "assistant", "content": "…"})
        result = {"type": "tool_result", "content": "ok"}
        messages.append({"role": "user", "content": [result]})
    return {"messages": messages}


def asked(actor: Actor, prompt: str, *, answers: int = 0) -> Turn:
    """What the actor answers to a prompt, after so many answers."""
    question = Question(model="m", prompts=(prompt,))
    return actor.choose(question, START, said(prompt, answers=answers))


def commands(turn: Turn) -> str:
    """All shell commands of a turn."""
    return "\n".join(str(tool.arguments["command"]) for tool in turn.tools)


def test_the_hidden_tests_tell_right_from_wrong(tmp_path: Path) -> None:
    """Of every story: the honest answer passes, the wrong one and none at all do not."""
    root = shop(tmp_path)
    assert truly_done(root) == set()
    for task in TASKS:
        (root / task.module).write_text(task.wrong)
    assert truly_done(root) == set()
    for task in TASKS:
        (root / task.module).write_text(task.code)
    assert truly_done(root) == {task.id for task in TASKS}


def test_a_prompt_that_names_a_story_gets_it_and_no_mark(tmp_path: Path) -> None:
    """The agent leaves the list to the supervisor that did not ask for a mark."""
    actor = Actor(shop(tmp_path), lambda _task, _attempt: None, lambda _asked: None)
    prompt = "# Your story: US-003: Durations\n---RALPH_STATUS---"
    assert "duration.py" in commands(asked(actor, prompt))
    last = asked(actor, prompt, answers=1)
    assert not last.tools
    assert "STATUS: COMPLETE" in last.text


def test_a_prompt_that_names_a_list_gets_its_first_open_story_marked(tmp_path: Path) -> None:
    """It is marked where the prompt says so, and committed only if the prompt asks for that."""
    root = shop(tmp_path)
    actor = Actor(root, lambda _task, _attempt: None, lambda _asked: None)
    prompt = "Work on the first story of prd.json. Commit all changes."
    assert "slug.py" in commands(asked(actor, prompt))
    marking = commands(asked(actor, prompt, answers=1))
    assert "US-001" in marking
    assert "git commit" in marking


def test_a_planned_lie_is_told_once(tmp_path: Path) -> None:
    """The first start of a story misbehaves by plan; what is asked again is honest."""
    lie = Act(words="All is done.")
    plan = {("US-001", 1): lie}
    actor = Actor(shop(tmp_path), lambda task, n: plan.get((task.id, n)), lambda _asked: None)
    prompt = "# Your story: US-001: Slugs"
    assert asked(actor, prompt).text == "All is done."
    assert actor.misbehaved_at > 0
    (tmp_path / "starts.log").write_text("1 4711 0.0\n2 4712 1.0\n")
    question = Question(model="m", prompts=(prompt,))
    again = actor.choose(question, {"x-night-start": "2"}, said(prompt))
    assert honest(TASKS[0]).files["slug.py"] in commands(again)


@pytest.mark.parametrize("marked", [False, True], ids=["open", "marked"])
def test_a_model_that_judges_a_transcript_believes_it(tmp_path: Path, marked: bool) -> None:
    """It says that the goal is reached as soon as everything is reported as done."""
    root = shop(tmp_path)
    if marked:
        (root / "prd.json").write_text(prd().replace('"passes": false', '"passes": true'))
    actor = Actor(root, lambda _task, _attempt: None, lambda _asked: None)
    verdict = asked(actor, "has the following stopping condition been satisfied?")
    assert json.loads(verdict.text)["ok"] is marked


def test_nights_have_names_of_their_own_and_a_short_form() -> None:
    """A result is found by the name of its night."""
    assert len({night.name for night in NIGHTS}) == len(NIGHTS)
    assert 5 <= len([night for night in NIGHTS if night.is_short]) <= 7


def test_the_table_adds_up() -> None:
    """What stands under all nights is the sum of what stands under each."""
    result = {
        "supervisor": "ours",
        "truly_done": 3,
        "falsely_done": 1,
        "proven_falsely": 0,
        "work_lost": 0,
        "ended": "by itself",
        "exit_code": 0,
        "starts": 5,
        "dollars": 0.5,
        "tokens": 100,
        "tokens_wasted": 25,
        "wall_s": 90.0,
        "known_after_s": 12.4,
        "left_running": 1,
    }
    never = {"known_after_s": None}
    whole = {
        "versions": {"ours": "1"},
        "nights": {"a": "", "b": ""},
        "results": [{**result, "night": "a"}, {**result, **never, "night": "b"}],
    }
    sums = sums_of(whole, "ours")
    assert (sums.done, sums.false, sums.admitted, sums.starts) == (6, 2, 2, 10)
    shown = table(whole)
    assert f"6 of {2 * STORIES}" in shown
    assert "2, 2 of them said to be unproven" in shown
    assert "25 %" in shown
    assert "| told when something is not done | 1 of 2 |" in shown
    assert "| processes left running | 2 |" in shown
    assert "| all nights took | 3 min |" in shown
    assert "| a | 12 s |" in shown
    assert "| b | **never** |" in shown
    assert "6 / 2" in picture(whole)


def test_a_page_is_written_where_no_agent_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run for it."""
    monkeypatch.setattr(command, "_what_is_missing", lambda: "claude is not installed")
    page = tmp_path / "page.md"
    (tmp_path / "images").mkdir()
    page.write_text(f"before\n{command.BEGIN}\nold\n{command.END}\nafter\n")
    assert command.main(["--page", str(page)]) == 0
    assert "| honest |" in page.read_text()
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("\nafter\n")


def test_a_supervisor_that_cannot_start_is_told_and_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stories that were not done because nobody tried are no figure."""

    def nothing(supervisor: Supervisor, night: Night, *_: object) -> Result:
        return Result(
            night=night.name,
            supervisor=supervisor.name,
            truly_done=0,
            called_done=0,
            falsely_done=0,
            proven_falsely=None,
            missed=0,
            work_lost=0,
            starts=0,
            tokens=0,
            tokens_wasted=None,
            dollars=0.0,
            wall_s=0.1,
            known_after_s=None,
            ended="by itself",
            exit_code=127,
            left_running=0,
            last_words="bash: loop.sh: No such file or directory",
        )

    monkeypatch.setattr(command, "_what_is_missing", lambda: "")
    monkeypatch.setattr(command, "measure", nothing)
    out = tmp_path / "out.json"
    assert command.main(["--only", "honest", "--supervisor", "bare loop", "--out", str(out)]) == 1
    shown = capsys.readouterr()
    assert "honest / bare loop: never started the agent: bash: loop.sh: No such" in shown.out
    assert "1 of these nights never started the agent: no results" in shown.err
    assert not out.exists()


def test_supervisors_are_found_from_wherever_a_night_runs() -> None:
    """Each night has a directory of its own."""
    assert all(kind(Path("peers")).place.is_absolute() for kind in SUPERVISORS)
