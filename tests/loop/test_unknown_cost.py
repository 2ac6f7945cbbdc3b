"""What a start cost is unknown where nobody says it, and that is said instead of $0.00."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.projects import Sandbox, sandbox

CODEX = """
write(f"{STORY}.txt", START)
event(type="thread.started", thread_id=f"t-{START}")
event(type="turn.started")
event(type="item.completed", item={"id": "i", "type": "agent_message", "text": "It is done."})
event(type="turn.completed", usage={"input_tokens": 90_000, "output_tokens": 9_000})
"""
TEXT = "write(f'{STORY}.txt', START); done()"
CLAUDE = """
write(f"{STORY}.txt", START)
says("The story is complete.")
result("The story is complete.", cost=COST)
"""
SOMETIMES = f"""
COST = 1.2
if START == 2:  # neither a price nor a model is named
    COST = None
    says = lambda text: event(type="assistant", session_id="s-1", message={{
        "id": "m", "content": [{{"type": "text", "text": text}}], "usage": {{"output_tokens": 9}}}})
{CLAUDE}
"""
CANNOT = "max_cost_usd cannot be kept: "


def night(tmp_path: Path, agent: str, output: str, *, limits: str = "", model: str = "") -> Sandbox:
    """Two stories that pass, each in one start."""
    box = sandbox(tmp_path, agent, stories=2, checks=[["true"]], output=output, limits=limits)
    config = box.root / "ralph.toml"
    config.write_text(config.read_text().replace("[checks]", f'model = "{model}"\n[checks]', 1))
    box.git("commit", "-qam", "model")
    return box


def everything_said(box: Sandbox) -> str:
    """All that people are shown after the run, in words."""
    reports = (box.ralph("report", kind) for kind in ("--md", "--html"))
    shown = (box.ralph(*words) for words in (["status"], ["stories"], ["log"], ["stats"]))
    return "".join(done.text for done in (*reports, *shown))


@pytest.mark.parametrize("agent, output", [(TEXT, "text"), (CODEX, "codex")])
def test_an_unknown_cost_is_never_zero_dollars(tmp_path: Path, agent: str, output: str) -> None:
    """The run, its end, status, stories, log, stats and report say that they do not know."""
    box = night(tmp_path, agent, output)
    done = box.run()
    assert done.code == 0, done.text
    assert done.text.count(", unknown cost, ") == 3, done.text  # two starts and the end
    said = everything_said(box)
    assert "unknown" in box.ralph("status").text
    assert "unknown" in box.ralph("stories").text
    said = re.sub(r'<div class="before">(<bdi>[^<]*</bdi>)*</div>', "", said)  # scales begin at 0
    assert "$0.00" not in done.text + said
    status = box.status()
    assert (status["cost_usd"], status["cost_known"], status["unpriced_starts"]) == (0.0, False, 2)
    stories = json.loads(box.ralph("stories", "--json").out)["stories"]
    assert [story["cost_known"] for story in stories] == [False, False]


def test_a_reported_zero_is_zero(tmp_path: Path) -> None:
    """An agent that truly cost nothing is no unknown."""
    box = night(tmp_path, CLAUDE.replace("COST", "0.0"), "claude", limits="max_cost_usd = 20.0")
    done = box.run()
    assert done.code == 0, done.text
    assert "$0.00" in done.text
    assert "unknown" not in done.text + everything_said(box)
    assert CANNOT not in done.text
    assert box.status()["cost_known"] is True


def test_a_mixed_night_says_both(tmp_path: Path) -> None:
    """What is known is summed up, the rest is counted; the limit is doubted once."""
    box = night(tmp_path, SOMETIMES, "claude", limits="max_cost_usd = 20.0")
    done = box.run()
    assert done.code == 0, done.text
    assert "$1.20 + unknown (1 start)" in done.text
    assert "$1.20 + unknown (1 start)" in box.ralph("status").text
    assert done.text.count(CANNOT) == 1


def test_a_start_that_was_cut_off_is_not_called_a_model_without_a_price(tmp_path: Path) -> None:
    """It is counted from the tokens that were streamed, like the dearest of its provider."""
    cut_off = "if START == 1: says('hm'); os.kill(os.getpid(), signal.SIGKILL)\n"
    agent = cut_off + CLAUDE.replace("COST", "0.5")
    done = night(tmp_path, agent, "claude", limits="max_cost_usd = 20.0").run()
    assert done.code == 0, done.text
    assert CANNOT not in done.text
    assert "no price is known for m: an assumption is made" in done.text


@pytest.mark.parametrize(
    "agent, output, model, why",
    [
        (TEXT, "text", "", "plain text names no price"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_said_before_money_is_spent(
    tmp_path: Path, agent: str, output: str, model: str, why: str
) -> None:
    """Pre-flight and doctor name the reason; the run does not repeat it with every start."""
    box = night(tmp_path, agent, output, limits="max_cost_usd = 20.0", model=model)
    doctor = box.ralph("doctor")
    assert doctor.code == 0, doctor.text
    assert f"{CANNOT}{why}" in " ".join(doctor.text.split())
    done = box.run()
    assert done.code == 0, done.text
    assert f"warning: {CANNOT}{why}" in done.err  # what a start brings is on stdout
    assert done.text.count(CANNOT) == 1


def test_a_model_that_nobody_names_is_said_once_it_is_known(tmp_path: Path) -> None:
    """Codex may keep no record of what it used; the first start tells, the others do not repeat."""
    done = night(tmp_path, CODEX, "codex", limits="max_cost_usd = 20.0").run()
    assert done.code == 0, done.text
    assert done.text.count(f"{CANNOT}codex does not name its model") == 1
    assert done.text.count(CANNOT) == 1


RECORD = """
day = pathlib.Path(os.environ["CODEX_HOME"], "sessions/2026/11/16")
turn = {"type": "turn_context", "payload": {"model": "gpt-5"}}
limits = {"primary": {"used_percent": 42.0, "window_minutes": 299, "resets_at": 4_000_000_000}}
count = {"type": "event_msg", "payload": {"type": "token_count", "rate_limits": limits}}
record = "".join(json.dumps(one, separators=(",", ":")) + "\\n" for one in (turn, count))
write(day / f"rollout-2026-11-16T01-02-03-thread-{START}.jsonl", record)
"""
GEMINI = """
write(f"{STORY}.txt", START)
event(type="init", session_id="g", model="auto")
event(type="message", role="assistant", content="The story is complete.")
models = {"gemini-2.5-flash-lite": {"total_tokens": 90}, "gpt-5": {"total_tokens": 99_000}}
event(type="result", status="success", stats={"total_tokens": 99_000, "input_tokens": 90_000,
      "output_tokens": 9_000, "models": models})
"""


@pytest.mark.parametrize(
    "agent, output, settings",
    [
        (CODEX, "codex", 'model = "gpt-5"'),
        (CODEX, "codex", 'model = "gpt-5-nano"\nprofile = "p"\n[profiles.p]\nmodel = "gpt-5"'),
        (RECORD + CODEX.replace("t-", "thread-"), "codex", 'model = "gpt-5-nano"'),
        (GEMINI, "gemini", ""),
    ],
    ids=["settings", "profile", "record", "stream"],
)
def test_the_model_an_agent_uses_by_itself_is_found_out(
    tmp_path: Path, agent: str, output: str, settings: str, measured: Measured
) -> None:
    """What it recorded, streamed or was told by its own settings has a price: the limit holds."""
    home = tmp_path / "codex"
    home.mkdir()
    (home / "config.toml").write_text(settings)
    box = night(tmp_path, agent, output, limits="max_cost_usd = 0.1")
    box.env["CODEX_HOME"] = str(home)
    done = box.run()
    assert done.code == 3, done.text
    assert "$0.20 of $0.10 is spent" in done.text  # 90,000 and 9,000 tokens of gpt-5
    assert CANNOT not in done.text
    assert ("5-hour window 42% used" in done.text) is ("rate_limits" in agent)
    measured(box.starts)


ASSUMED = "no price is known for made-up-9: an assumption is made, it is counted like gpt-5.5-pro"


def test_an_unknown_model_cannot_pass_a_limit_of_money(tmp_path: Path) -> None:
    """It is counted like the dearest of its provider: said before the run and with its start."""
    box = night(tmp_path, CODEX, "codex", limits="max_cost_usd = 1.0", model="made-up-9")
    assert ASSUMED in " ".join(box.ralph("doctor").text.split())
    done = box.run()
    assert done.code == 3, done.text
    assert f"warning: {ASSUMED}" in done.err
    assert "is spent (limits.max_cost_usd)" in done.text
    assert box.starts == 1


def test_a_model_from_the_agents_own_settings_may_have_no_price(tmp_path: Path) -> None:
    """That is known before money is spent, and said then."""
    (tmp_path / "config.toml").write_text('model = "made-up-9"')
    box = night(tmp_path, CODEX, "codex", limits="max_cost_usd = 20.0")
    box.env["CODEX_HOME"] = str(tmp_path)
    assert f"warning: {ASSUMED}" in box.run().err


def test_a_person_may_name_prices_of_their_own(tmp_path: Path) -> None:
    """Their rows come before ours, in runs and in `ralph prices`; a broken file starts nothing."""
    own = tmp_path / "xdg" / "ralph" / "prices.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[models]\n"made-up-*" = { input = 10.0, output = 0.0 }\n')
    box = night(tmp_path, CODEX, "codex", limits="max_cost_usd = 0.1", model="made-up-9")
    box.env["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    assert "$0.90 of $0.10 is spent" in box.run().text
    table = json.loads(box.ralph("prices", "--json").out)
    assert table["checked"]
    assert table["override"] == str(own)
    assert table["models"]["made-up-*"] == {
        "input": 10.0, "output": 0.0, "cache_read": 10.0, "cache_write": 10.0, "own": True,
        "origin": str(own), "assumed_like": "",
    }  # fmt: skip
    assert table["models"]["gpt-5"]["own"] is False
    shown = box.ralph("prices").text
    assert table["checked"] in shown
    assert "made-up-*" in shown
    own.write_text('[models]\nx = { input = "much" }\n')
    broken = box.run()
    assert (broken.code, box.starts) == (65, 1), broken.text
    assert str(own) in broken.text


FREE = """
[prices."made-up-9"]
input = 0
output = 0
cache_read = 0
cache_write = 0
"""


def test_a_project_may_say_what_its_model_costs(tmp_path: Path) -> None:
    """A row of zeros in ralph.toml makes a local model free, where it would cost the dearest else."""
    box = night(tmp_path, CODEX, "codex", limits="max_cost_usd = 1.0", model="made-up-9")
    config = box.root / "ralph.toml"
    config.write_text(config.read_text() + FREE)
    box.git("commit", "-qam", "prices")
    assert "no price is known" not in " ".join(box.ralph("doctor").text.split())
    done = box.run()
    assert (done.code, box.starts) == (0, 2), done.text
    assert "no price is known" not in done.text
    status = box.status()
    assert (status["cost_usd"], status["cost_known"]) == (0.0, True)


def test_prices_of_a_project_are_shown_with_their_origin(tmp_path: Path) -> None:
    """They come before a person's own rows, and those before ours."""
    own = tmp_path / "xdg" / "ralph" / "prices.toml"
    own.parent.mkdir(parents=True)
    row = "{ input = 10.0, output = 0.0 }"
    own.write_text(f'[models]\n"made-up-9" = {row}\n"mine" = {row}\n')
    box = night(tmp_path, CODEX, "codex")
    box.env["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    config = box.root / "ralph.toml"
    config.write_text(config.read_text() + FREE)
    models = json.loads(box.ralph("prices", "--json").out)["models"]
    shown = ("input", "own", "origin")
    rows = {name: [models[name][key] for key in shown] for name in ("made-up-9", "mine", "gpt-5")}
    assert rows == {
        "made-up-9": [0.0, False, "ralph.toml"],
        "mine": [10.0, True, str(own)],
        "gpt-5": [1.25, False, "shipped"],
    }
    lines = [line.split() for line in box.ralph("prices").text.splitlines()]
    assert ["made-up-9", "0.0", "0.0", "0.0", "0.0", "ralph.toml"] in lines


def test_a_price_that_is_known_keeps_the_limit(tmp_path: Path, measured: Measured) -> None:
    """With agent.model the tokens of codex have a price, and the limit ends the run."""
    box = night(tmp_path, CODEX, "codex", limits="max_cost_usd = 0.1", model="gpt-5")
    done = box.run()
    assert done.code == 3, done.text
    assert CANNOT not in done.text
    assert "unknown" not in done.text
    assert box.starts == 1
    measured(box.starts)


CACHED = CODEX.replace('"input_tokens": 90_000', '"input_tokens": 9_000_000').replace(
    '"output_tokens"', '"cached_input_tokens": 8_910_000, "output_tokens"'
)


@pytest.mark.parametrize("agent", [CODEX, CACHED], ids=["plain", "cached"])
def test_a_limit_of_tokens_holds_where_no_price_is_known(
    tmp_path: Path, agent: str, measured: Measured
) -> None:
    """Ninety-nine thousand of them a start end the run; what came from the cache does not count."""
    box = night(tmp_path, agent, "codex", limits="max_tokens = 99_000")
    done = box.run()
    assert done.code == 3, done.text
    measured(box.starts)
    assert "99,000 tokens" in done.out.split("limits:")[1].split("\n")[0]
    assert "99,000 of 99,000 tokens are used" in done.text
    shown = (box.ralph(*words) for words in (["status"], ["report", "--md"], ["report", "--html"]))
    for done in shown:
        words = " ".join(done.text.replace(",000", " k").split())
        assert "99 k of 99 k without cache reads" in words, words
    assert "99,000 of 99,000 tokens" in box.ralph("monitor", "--once").text
    assert box.status()["limits"]["max_tokens"] == 99_000
    assert box.run("--continue", "--max-tokens", "100_000").code == 0
    assert box.starts == 2


def test_reads_of_the_cache_end_no_honest_night(tmp_path: Path) -> None:
    """Two starts with nine million tokens each, most of them cached, stay far below the limit."""
    done = night(tmp_path, CACHED, "codex", limits="max_tokens = 200_000").run()
    assert done.code == 0, done.text
