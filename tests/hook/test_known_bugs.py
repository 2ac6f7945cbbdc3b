"""What went wrong with Stop-hook loops before ours, one test for each."""

from __future__ import annotations

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import pytest

from ralphloop.config.model import Config
from ralphloop.core import readable
from tests.hook.support import OTHER, RALPH, SESSION, Box, box, done, story

PLUGIN = Path(str(files("ralphloop.plugin")))


@pytest.mark.parametrize("words", ["DONE", "COMPLETE", "All is COMPLETE.", "promise COMPLETE"])
def test_H01_a_bare_word_completes_nothing(tmp_path: Path, words: str) -> None:
    """Only the promise in its tags is one; the word alone is a word."""
    made = box(tmp_path, files={"prompt.md": "Do it.\n"})
    made.begin("--prompt prompt.md")
    made.write("one.txt", "1")
    assert made.stop(words).blocks
    made.write("one.txt", "2")
    assert not made.stop("<promise>COMPLETE</promise>", again=True).blocks


def test_H02_a_turn_without_words_does_not_end_the_loop(tmp_path: Path) -> None:
    """A last message that was only a tool call, or is missing, is an empty answer and no end."""
    made = box(tmp_path)
    made.begin()
    made.write("one.txt", "1")
    assert made.stop(None).blocks
    made.write("one.txt", "2")
    assert made.stop("", again=True).blocks
    assert [it.outcome for it in made.iterations()] == ["empty", "empty", ""]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000, b"{}"]
)
def test_H03_input_that_cannot_be_read_changes_nothing(tmp_path: Path, data: bytes) -> None:
    """Exit 0, no answer, and the loop is still its session's and nobody else's."""
    made = box(tmp_path)
    made.begin()
    reply = made.hook("stop", data)
    assert (reply.code, reply.stdout) == (0, b"")
    assert made.holder is not None
    assert made.holder["session"] == SESSION
    made.session = OTHER
    assert made.stop().stdout == b""


@pytest.mark.parametrize("flag", ["--max-iterations=2", "--max-iterations 2"])
def test_H04_a_limit_is_a_limit_however_it_is_spelled(tmp_path: Path, flag: str) -> None:
    """After two iterations the loop lets go and says how to allow more."""
    made = box(tmp_path)
    made.begin(flag)
    made.write("one.txt", "1")
    assert made.stop().blocks
    made.write("one.txt", "2")
    reply = made.stop(again=True)
    assert not reply.blocks
    assert "--max-iterations" in reply.told
    assert made.run().decision == "max_iterations"


@pytest.mark.parametrize(
    "arguments",
    [
        "--max-iteration=3",
        "--completion-promise=X",
        "--max-iterations many",
        "don't",
        "--mode auto",
    ],
)
def test_H04_what_is_no_flag_is_an_error_and_no_prompt(tmp_path: Path, arguments: str) -> None:
    """The command is refused before any model sees it, and no loop has begun."""
    made = box(tmp_path)
    reply = made.command("ralph", arguments)
    assert reply.blocks
    assert "next:" in reply.reason
    assert made.holder is None


def test_H05_every_stop_advances_the_count(tmp_path: Path) -> None:
    """The count is kept in the journal, not in a text that may be written in two ways."""
    made = box(tmp_path)
    made.begin()
    for number in (2, 3, 4):
        made.write("one.txt", str(number))
        assert f"iteration {number} " in made.stop(again=number > 2).reason
    assert made.run().totals.iterations == 3


def test_H06_a_prompt_may_contain_anything(tmp_path: Path) -> None:
    """Rules, front matter and words of our own in a prompt or a story are text like any other."""
    text = "---\niteration: 7\nactive: false\n---\nmax_iterations: 0\n"
    made = box(tmp_path, stories=[story(1, description=text)], files={"PROMPT.md": text})
    assert text in made.begin().context
    made.write("one.txt", "1")
    reply = made.stop()
    assert reply.blocks
    assert text in reply.reason


def test_H07_the_last_promise_counts(tmp_path: Path) -> None:
    """A promise that is spoken of earlier does not hide the one that ends the answer."""
    made = box(tmp_path, stories=1)
    made.begin()
    made.write("one.txt", "1")
    reply = made.stop("Not <promise>NOTYET</promise>, but now:\n<promise>COMPLETE</promise>")
    assert not reply.blocks
    assert made.run().decision == "project_complete"


@pytest.mark.parametrize(
    "words",
    [
        "I cannot output <promise>COMPLETE</promise> yet",
        "I will say\n<promise>COMPLETE</promise>\nwhen the tests pass.",
        "The format:\n```\n<promise>COMPLETE</promise>\n```",
    ],
)
def test_H08_a_promise_that_is_spoken_of_is_none(tmp_path: Path, words: str) -> None:
    """Only the last line outside fences is a promise."""
    made = box(tmp_path, stories=1)
    made.begin()
    made.write("one.txt", "1")
    assert made.stop(words).blocks
    assert made.passes == {"US-001": False}


def test_H08_a_promise_ends_nothing_while_stories_are_open(tmp_path: Path) -> None:
    """It claims the story it was given for, and the next one follows."""
    made = box(tmp_path)
    made.begin()
    made.write("one.txt", "1")
    reply = made.stop("<promise>COMPLETE</promise>")
    assert reply.blocks
    assert "US-002" in reply.reason
    assert made.passes == {"US-001": True, "US-002": False}


def test_H09_no_shell_reads_a_command(tmp_path: Path) -> None:
    """No command file runs a shell, so quotes, newlines and substitutions in arguments are text."""
    for path in PLUGIN.glob("commands/*.md"):
        assert "!`" not in path.read_text()
        assert "```!" not in path.read_text()
    made = box(tmp_path, files={"it's a prompt.md": "Do it.\n"})
    made.begin('--prompt "it\'s a prompt.md"\n--max-iterations 3')
    assert readable(made.run().config, Config).limits.max_iterations == 3
    assert not made.command("ralph", f"--prd '$(touch {tmp_path}/pwned)'").context
    assert not (tmp_path / "pwned").exists()


def test_H10_another_session_is_not_touched(tmp_path: Path) -> None:
    """A session in the same directory stops as it would, and claims nothing."""
    made = box(tmp_path)
    made.begin()
    before = made.holder
    other = Box(tmp_path, session=OTHER)
    for event in ("stop", "stop-failure", "session-start", "session-end"):
        reply = other.hook(event, other.event(last_assistant_message="<promise>COMPLETE</promise>"))
        assert (reply.code, reply.stdout) == (0, b"")
    assert made.holder == before
    assert made.run().totals.iterations == 0


@pytest.mark.parametrize(
    "transcript", ["", "{", '{"type":"user"}\n'], ids=["empty", "torn", "late"]
)
def test_H11_a_transcript_that_lags_behind_does_not_matter(tmp_path: Path, transcript: str) -> None:
    """The last words come with the hook; the transcript is read for its costs alone."""
    made = box(tmp_path)
    made.begin()
    late = tmp_path / ".ralph" / "late.jsonl"
    late.write_text(transcript)
    made.write("one.txt", "1")
    reply = made.stop(done(), transcript_path=str(late))
    assert reply.blocks
    assert made.passes["US-001"]


def test_H12_control_characters_break_nothing(tmp_path: Path) -> None:
    """Whatever an agent prints, the answer is one JSON object and the words are read."""
    made = box(tmp_path, stories=[story(1, title="Tab\tand \x1b[31mred"), story(2)])
    made.begin()
    made.write("one.txt", "1")
    odd = "\x00\x07\x1b[31m\u2028\ud800 " + done()
    reply = made.stop(odd)
    assert reply.blocks
    assert made.passes["US-001"]
    raw = b'{"session_id": "%s", "last_assistant_message": "a\tb\x01c"}' % SESSION.encode()
    made.write("one.txt", "2")
    assert made.hook("stop", raw).blocks


def test_H13_the_loop_is_found_after_cd(tmp_path: Path) -> None:
    """From a directory below, and from elsewhere by the project Claude Code names."""
    made = box(tmp_path / "project")
    made.begin()
    below = made.root / "src" / "deep"
    made.write("src/deep/one.txt", "1")
    given = made.event(last_assistant_message="on it", stop_hook_active=False)
    assert made.hook("stop", {**given, "cwd": str(below)}, cwd=below).blocks
    made.write("src/deep/one.txt", "2")
    elsewhere = {**given, "cwd": str(tmp_path)}
    env = {"CLAUDE_PROJECT_DIR": str(made.root)}
    assert made.hook("stop", elsewhere, cwd=tmp_path, env=env).blocks
    made.write("src/deep/one.txt", "3")
    assert made.hook("stop", given, cwd=tmp_path).blocks


def test_H14_nothing_depends_on_an_executable_bit() -> None:
    """The plugin holds only text, and its hooks name a program instead of a file of theirs."""
    held = {path.suffix for path in PLUGIN.rglob("*") if path.is_file()}
    assert held <= {".json", ".md", ".py", ".pyc"}
    for handler in handlers(json.loads((PLUGIN / "hooks" / "hooks.json").read_text())):
        assert handler["type"] == "command"
        assert handler["command"] == "ralph"


def test_H15_spaces_in_paths_need_no_quotes(tmp_path: Path) -> None:
    """Hooks are argument lists; the copy for one installation calls it by its full path."""
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "my data")}
    made = box(tmp_path / "my project")
    place = subprocess.run(
        [*RALPH, "plugin", "path"], env=env, capture_output=True, encoding="utf-8", check=True
    ).stdout.strip()
    assert place.startswith(str(tmp_path / "my data"))
    made.begin()
    made.write("one.txt", "1")
    hooks = json.loads((Path(place) / "hooks" / "hooks.json").read_text())
    stop = hooks["hooks"]["Stop"][0]["hooks"][0]
    assert Path(stop["command"]).is_absolute()
    reply = subprocess.run(
        [stop["command"], *stop["args"]],
        input=json.dumps(made.event(last_assistant_message="on it")).encode(),
        cwd=made.root,
        capture_output=True,
        check=True,
    )
    assert json.loads(reply.stdout)["decision"] == "block"


def test_H16_a_cancelled_loop_is_over(tmp_path: Path) -> None:
    """After /cancel-ralph the next stop is a stop, and the run is kept."""
    made = box(tmp_path)
    made.begin()
    assert "cancelled" in made.command("cancel-ralph").reason
    assert made.stop().stdout == b""
    assert (made.run().status, made.run().decision) == ("stopped", "interrupted")


def test_H16_cancelling_while_a_turn_is_judged_ends_the_loop(tmp_path: Path) -> None:
    """Whoever comes first, nothing fails and the loop does not come back to life."""
    made = box(tmp_path)
    made.begin()
    made.write("one.txt", "1")
    with ThreadPoolExecutor() as pool:
        stop = pool.submit(made.stop)
        cancel = pool.submit(made.command, "cancel-ralph")
    assert (stop.result().code, cancel.result().code) == (0, 0)
    if made.holder is not None:  # the turn held the project for longer than a person waits
        made.command("cancel-ralph")
    assert made.holder is None
    assert made.stop().stdout == b""
    assert made.run().status == "stopped"


def test_H16_without_a_loop_stdin_is_not_even_read(tmp_path: Path) -> None:
    """A session whose project has no lease does not wait for anything."""
    with subprocess.Popen(
        [*RALPH, "hook", "stop"],
        cwd=tmp_path,
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.wait(timeout=30) == 0  # its stdin is still open


def test_H17_a_stop_after_ours_is_refused_only_after_progress(tmp_path: Path) -> None:
    """Without a change since the last prompt the session may stop, and the person is told."""
    made = box(tmp_path)
    made.begin()
    assert made.stop("Thinking.").blocks
    reply = made.stop("Still thinking.", again=True)
    assert not reply.blocks
    assert "/ralph:ralph --continue" in reply.told
    made.begin("--continue")
    made.write("one.txt", "1")
    assert made.stop("Something.", again=True).blocks


def test_H18_a_loop_nobody_carries_expires_and_is_kept(tmp_path: Path) -> None:
    """A stranger is told on stderr whose loop it is; once its lease ran out it is put away."""
    made = box(tmp_path)
    made.begin()
    run = made.run().id
    other = Box(tmp_path, session=OTHER)
    assert "another session" in other.stop().stderr
    lapse(made)
    assert other.hook("session-start", other.event(source="startup")).code == 0
    assert made.holder is None
    assert (made.run().id, made.run().status) == (run, "stopped")
    assert "no sign of life" in made.run().reason
    other.begin("--continue")
    assert made.run().id == run


def test_H19_without_a_loop_nothing_is_blocked_and_nothing_is_said(tmp_path: Path) -> None:
    """No lease, no word; and every answer that is given is one object with words for a person."""
    made = box(tmp_path)
    reply = made.stop("<promise>COMPLETE</promise>")
    assert (reply.code, reply.stdout, reply.stderr) == (0, b"", "")
    made.begin()
    made.write("one.txt", "1")
    assert made.stop(done()).told
    made.write("two.txt", "2")
    last = made.stop(done(), again=True)
    assert not last.blocks
    assert last.told


def test_H20_a_growing_session_is_not_what_many_stories_need(tmp_path: Path) -> None:
    """Ten open stories are worth a hint to script mode; each prompt says all that is needed."""
    made = box(tmp_path, stories=10)
    assert "--overnight" in made.begin().told
    made.write("one.txt", "1")
    reason = made.stop(done()).reason
    for part in ("US-002", "file 2 exists", "RALPH_STATUS", "EXIT_SIGNAL"):
        assert part in reason
    few = box(tmp_path / "few", stories=9)
    assert "--overnight" not in few.begin().told


def test_H21_sessions_beside_a_run_do_not_move_its_counters(tmp_path: Path) -> None:
    """While script mode holds the project, a session that stops there changes nothing."""
    made = box(
        tmp_path,
        stories=1,
        settings='[agent]\nname = "command"\ncommand = ["sh", "-c", "sleep 20"]\n',
    )
    with subprocess.Popen(
        [*RALPH, "run", "-q"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        try:
            deadline = time.monotonic() + 30
            while made.holder is None and time.monotonic() < deadline:
                time.sleep(0.05)
            assert made.holder is not None
            assert made.stop(done()).stdout == b""
            assert made.command("ralph").reason.startswith("another run")
            assert made.holder["mode"] == "script"
        finally:
            run.terminate()
    assert made.run().totals.iterations == 0


def test_H22_the_hook_is_never_overridden(tmp_path: Path) -> None:
    """At the seventh stop in a row without progress it lets go by itself, and says how to go on."""
    made = box(tmp_path, stories=1, settings="[circuit]\nno_progress_threshold = 20\n")
    made.begin()
    replies = [made.stop(f"Thought {n}.") for n in range(1, 8)]
    assert [reply.blocks for reply in replies] == [True] * 6 + [False]
    assert "/ralph:ralph --continue" in replies[-1].told
    assert made.holder is None


def test_H22_a_lower_cap_of_the_session_is_respected(tmp_path: Path) -> None:
    """Where the session overrides a hook earlier, it lets go earlier; nonsense is not a cap."""
    made = box(tmp_path, stories=1, settings="[circuit]\nno_progress_threshold = 20\n")
    made.begin()
    made.env["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = "1"
    assert [made.stop(f"Thought {n}.").blocks for n in (1, 2)] == [True, True]
    made.env["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = "4"
    assert not made.stop("Thought 3.").blocks


def handlers(
    hooks: dict[str, dict[str, list[dict[str, list[dict[str, str]]]]]],
) -> list[dict[str, str]]:
    """All handlers of a hooks.json."""
    rules = [rule for event in hooks["hooks"].values() for rule in event]
    return [handler for rule in rules for handler in rule["hooks"]]


def lapse(made: Box) -> None:
    """Let the lease run out."""
    path = made.root / ".ralph" / "holder.json"
    lease = json.loads(path.read_text())
    lease["renewed_at"] -= 100_000 / 10
    lease["expires_at"] = time.time() - 1
    path.write_text(json.dumps(lease))
