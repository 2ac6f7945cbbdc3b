"""`ralph pr`: what is pushed, what is opened, and every way in which it is not."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github.hub import REPO, WRITES, Shop, pull
from tests.loop.projects import contents

CLAIMED = [{"id": "US-1", "title": "Sell", "passes": False}]
GH006 = """\
error: GH006: Protected branch update failed for refs/heads/work.
error: Changes must be made through a pull request."""


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """One night for all tests that change nothing."""
    return Shop(tmp_path_factory.mktemp("shop")).night()


@pytest.fixture
def shop(looked_at: Shop) -> Iterator[Shop]:
    """The same with a gh that answers as ever, and a remote that takes everything."""
    answers = dict(looked_at.gh.answers)
    yield looked_at
    assert list(looked_at.heads()) == ["main"], "nothing was pushed"
    looked_at.gh.answers = answers
    looked_at.gh.save()
    looked_at.gh.forget()
    (looked_at.bare / "hooks/pre-receive").unlink(missing_ok=True)


def test_a_verified_night_becomes_a_pull_request(tmp_path: Path) -> None:
    """The branch is pushed as it is and the report is the text; nothing of the clone changes."""
    shop = Shop(tmp_path).night()
    before = contents(shop.box.root / ".git")
    done = shop.box.ralph("pr")
    assert (done.code, done.out) == (0, "https://github.com/owner/shop/pull/7\n"), done.err
    assert "opened: pull request #7 in owner/shop" in done.err
    assert shop.heads()["work"] == shop.box.git("rev-parse", "work")
    (sent,) = shop.gh.sent("POST")
    assert (sent["title"], sent["head"], sent["base"]) == ("ralph: Sell", "owner:work", "main")
    assert sent["draft"] is False
    assert "**US-1** Sell: proved by its verify command (red before, green after)" in sent["body"]
    assert "- check: `test -f US-1.txt`" in sent["body"]
    assert "Money" not in sent["body"]
    after = contents(shop.box.root / ".git")
    changed = {name for name, what in after.items() if before.get(name) != what}
    assert all("refs/remotes" in name for name in changed), "what a push notes, and nothing else"


def test_a_run_on_the_default_branch_goes_to_a_branch_of_its_own(tmp_path: Path) -> None:
    """The default branch of the remote is never pushed to, and the checkout stays where it is."""
    shop = Shop(tmp_path, branch="main").night()
    main = shop.heads()["main"]
    done = shop.box.ralph("pr", "--json")
    assert done.code == 0, done.text
    result = json.loads(done.out)
    assert result["branch"].startswith("ralph/20")
    assert shop.heads() == {"main": main, result["branch"]: shop.box.git("rev-parse", "main")}
    assert shop.box.git("branch", "--show-current") == "main"
    assert shop.box.git("branch", "--format=%(refname:short)") == "main"


def test_a_branch_that_is_the_base_is_not_pushed_to_either(tmp_path: Path) -> None:
    """What `--base` names is where others start from, too."""
    shop = Shop(tmp_path, branch="next")
    shop.box.git("push", "-q", "origin", "next")
    before = shop.night().heads()["next"]
    done = shop.box.ralph("pr", "--base", "next")
    assert done.code == 0, done.text
    assert shop.heads()["next"] == before
    assert "goes to ralph/" in done.err


@pytest.mark.parametrize(
    ("flags", "draft"), [((), True), (("--ready",), False), (("--draft",), True)]
)
def test_what_is_not_verified_is_a_draft(
    tmp_path: Path, flags: tuple[str, ...], draft: bool
) -> None:
    """An agent's word alone opens a draft; a person may say otherwise."""
    shop = Shop(tmp_path, stories=CLAIMED).night()
    done = shop.box.ralph("pr", *flags)
    assert done.code == 0, done.text
    assert shop.gh.sent("POST")[0]["draft"] is draft
    assert "not all is verified: only claimed 1" in done.err


def test_an_open_one_is_brought_up_to_date(tmp_path: Path) -> None:
    """Our text is replaced, what people wrote around it, their title and their draft stay."""
    shop = Shop(tmp_path).night()
    body = "Mine before.\n<!-- ralph: report -->\nold <!-- ralph: end of report --> old\n"
    old = pull(title="My own title", body=f"{body}<!-- ralph: end of report -->\nMine after.")
    shop.gh.answers[f"GET {REPO}/pulls"] = [0, [old], ""]
    shop.gh.save()
    done = shop.box.ralph("pr")
    assert done.code == 0, done.text
    assert "updated: draft #7" in done.err
    (sent,) = shop.gh.sent("PATCH")
    assert sent["body"].startswith("Mine before.\n<!-- ralph: report -->\n# repo: 1 of 1")
    assert sent["body"].endswith("<!-- ralph: end of report -->\nMine after.")
    assert "old" not in sent["body"]
    assert set(sent) == {"body"}
    assert shop.gh.sent("POST") == []


def test_words_without_our_marks_stay_above(tmp_path: Path) -> None:
    """Somebody who took our text out keeps theirs, and a title of ours is written anew."""
    shop = Shop(tmp_path).night()
    old = pull(body="All mine.", title="ralph: 0 of 1 story passed")
    shop.gh.fail(f"GET {REPO}/pulls", 0, "", [old])
    assert shop.box.ralph("pr").code == 0
    (sent,) = shop.gh.sent("PATCH")
    assert sent["body"].startswith("All mine.\n\n<!-- ralph: report -->")
    assert sent["title"] == "ralph: Sell"


def test_a_person_can_turn_a_draft(tmp_path: Path) -> None:
    """`--ready` on an open draft asks GitHub for just that."""
    shop = Shop(tmp_path).night()
    shop.gh.fail(f"GET {REPO}/pulls", 0, "", [pull()])
    assert shop.box.ralph("pr", "--ready").code == 0
    (turned,) = shop.gh.sent("POST")
    assert "markPullRequestReadyForReview" in turned["query"]
    assert turned["variables"] == {"id": "PR_7"}


@pytest.mark.parametrize(
    ("merged", "words"), [(None, "closed by somebody"), ("2026-11-16T07:00:00Z", "merged")]
)
def test_what_somebody_closed_stays_closed(tmp_path: Path, merged: str | None, words: str) -> None:
    """Nothing is pushed or opened; another one only when it is asked for."""
    shop = Shop(tmp_path).night()
    shop.gh.fail(f"GET {REPO}/pulls", 0, "", [pull(state="closed", merged_at=merged)])
    done = shop.box.ralph("pr")
    assert done.code == 66, done.text
    assert f"pull request #7 of this branch was {words}" in done.err
    assert "ralph pr --new" in done.err
    assert ("gh pr reopen 7" in done.err) is (merged is None)
    assert "work" not in shop.heads()
    assert shop.gh.sent("POST") == []
    assert shop.box.ralph("pr", "--new").code == 0
    assert len(shop.gh.sent("POST")) == 1


def test_the_pull_request_of_another_branch_is_not_taken(tmp_path: Path) -> None:
    """GitHub lists everything where it does not understand whose branch is meant."""
    shop = Shop(tmp_path).night()
    others = [pull(3, head={"label": "else:work"}), pull(4, head={"label": "owner:other"})]
    shop.gh.fail(f"GET {REPO}/pulls", 0, "", others)
    assert shop.box.ralph("pr").code == 0
    assert len(shop.gh.sent("POST")) == 1


def test_a_dry_run_only_looks(shop: Shop) -> None:
    """Everything is shown, nothing is pushed or sent."""
    done = shop.box.ralph("pr", "--dry-run", "--cost")
    assert done.code == 0, done.text
    assert done.out.startswith("ralph: Sell\n\n<!-- ralph: report -->\n# repo: 1 of 1 story passed")
    assert "## Money and time" in done.out
    assert "would be opened: pull request in owner/shop" in done.err
    assert {method for method, *_ in shop.gh.calls} == {"GET"}
    result = json.loads(shop.box.ralph("pr", "--dry-run", "--json").out)
    assert (result["done"], result["url"], result["base"]) == (False, None, "main")


@pytest.mark.parametrize(("branch", "pushed"), [("work", "work"), ("main", "ralph/")])
def test_a_fork_is_pushed_to_and_the_original_gets_it(
    tmp_path: Path, branch: str, pushed: str
) -> None:
    """`--repo` says where it is opened; the fork's own default branch is left alone as well."""
    shop = Shop(tmp_path, branch=branch).night()
    upstream = {f"{how}{REPO}{rest}".replace("owner/", "upstream/"): answer
                for key, answer in shop.gh.answers.items() if REPO in key
                for how, rest in [key.split(REPO)]}  # fmt: skip
    upstream["repos/upstream/shop"] = [0, {"default_branch": "develop"}, ""]
    shop.gh.answers |= upstream
    shop.gh.save()
    main = shop.heads()["main"]
    done = shop.box.ralph("pr", "--repo", "upstream/shop")
    assert done.code == 0, done.text
    (sent,) = shop.gh.sent("POST")
    assert sent["head"].startswith(f"owner:{pushed}")
    assert sent["base"] == "develop"
    assert shop.heads()["main"] == main


def test_what_lanes_brought_home_goes_out_from_there(tmp_path: Path) -> None:
    """Their own branch is gone when all is done; the checkout's has everything, and is pushed."""
    stories = [{"id": f"US-{n}", "title": "S", "passes": False} for n in (1, 2)]
    shop = Shop(tmp_path, stories=stories)
    ended = shop.box.run("--lanes", "2")
    assert "work has what landed" in ended.err, ended.text
    done = shop.box.ralph("pr")
    assert (done.code, shop.heads()["work"]) == (0, shop.box.git("rev-parse", "work")), done.text
    assert shop.gh.sent("POST")[0]["head"] == "owner:work"


# --- what stands in the way, here --------------------------------------------------------------


def test_a_remote_that_went_its_own_way_is_not_overwritten(tmp_path: Path) -> None:
    """Commits that are not here: it is said what to do, and nothing is forced."""
    shop = Shop(tmp_path).night()
    shop.box.git("push", "-q", "origin", "main:work")
    shop.box.git("switch", "-q", "--detach", "main")
    shop.box.git("commit", "-q", "--allow-empty", "-m", "theirs")
    shop.box.git("push", "-q", "origin", "HEAD:work")
    shop.box.git("switch", "-q", "work")
    there = shop.heads()
    done = shop.box.ralph("pr")
    assert done.code == 66, done.text
    assert "has commits that are not here, and nothing is ever forced" in done.err
    assert "git merge origin/work" in done.err
    assert shop.heads() == there
    assert shop.gh.sent("POST") == []


def test_work_that_somebody_went_on_with_is_left_alone(tmp_path: Path) -> None:
    """The remote has everything and more: nothing is pushed, the text is still brought up to date."""
    shop = Shop(tmp_path).night()
    shop.box.git("switch", "-q", "--detach")
    shop.box.git("commit", "-q", "--allow-empty", "-m", "theirs")
    shop.box.git("push", "-q", "origin", "HEAD:refs/heads/work")
    shop.box.git("switch", "-q", "work")
    there = shop.heads()
    done = shop.box.ralph("pr")
    assert done.code == 0, done.text
    assert "origin work: is there already" in done.err
    assert shop.heads() == there


def test_nothing_to_push_is_said(tmp_path: Path) -> None:
    """What the base has already makes no pull request."""
    shop = Shop(tmp_path).night()
    shop.box.git("push", "-q", "origin", "work:main")
    done = shop.box.ralph("pr")
    assert (done.code, "there is nothing to push" in done.err) == (66, True), done.text


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("git remote remove origin", 66, "this repository has no remote"),
        ("git remote set-url origin /somewhere/shop", 66, "no address of a repository on GitHub"),
        ("git remote rename origin a && git remote add b .", 66, "which remote? a, b"),
        ("git switch -q main && git branch -qD work", 66, "the branch of run"),
        ("git remote set-url origin https://git.example.com/o/r", 66, "not a GitHub that gh is"),
        ("git config url./nowhere/at/all.insteadOf https:; git config --unset-all"
         " url.{bare}.insteadOf", 66, "does not appear to be a git repository"),
    ],
)  # fmt: skip
def test_a_clone_that_is_not_ready(tmp_path: Path, command: str, code: int, words: str) -> None:
    """No remote, another host, two remotes, a branch that is gone: each in words of its own."""
    shop = Shop(tmp_path).night()
    line = command.format(bare=shop.bare)
    subprocess.run(line, shell=True, cwd=shop.box.root, check=True)
    done = shop.box.ralph("pr")
    assert (done.code, words in done.err) == (code, True), done.text
    assert shop.gh.sent("POST") == []


def test_a_remote_can_be_named(tmp_path: Path) -> None:
    """Of two the person says which; one that is not there is refused."""
    shop = Shop(tmp_path).night()
    shop.box.git("remote", "rename", "origin", "a")
    shop.box.git("remote", "add", "b", ".")
    assert shop.box.ralph("pr", "--remote", "a").code == 0
    assert shop.box.ralph("pr", "--remote", "c").code == 66


def test_without_a_run_there_is_nothing_to_tell(tmp_path: Path) -> None:
    """Nothing is pushed before anything was run."""
    done = Shop(tmp_path).box.ralph("pr")
    assert (done.code, "nothing has run here yet" in done.err) == (64, True), done.text


def test_a_base_that_is_not_there(shop: Shop) -> None:
    """A misspelt base is found before anything is pushed."""
    done = shop.box.ralph("pr", "--base", "mian")
    assert (done.code, "origin has no branch mian" in done.err) == (66, True), done.text


# --- what stands in the way, there -------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "words", "step"),
    [
        (GH006, "did not take work: error: GH006: Protected branch", "Settings, Branches"),
        ("error: GH013: Repository rule violations found for refs/heads/work.", "GH013", "Rules"),
        ("Permission to owner/shop.git denied to me.", "may not do that in origin: Permission", "gh auth"),
        ("refusing to allow an OAuth App to create or update workflow `.github/workflows/a.yml`"
         " without `workflow` scope", "refusing to allow", "gh auth refresh -s workflow"),
        ("fatal: Authentication failed for 'https://github.com/'", "Authentication failed", "setup-git"),
    ],
)  # fmt: skip
def test_a_push_that_github_refuses(shop: Shop, said: str, words: str, step: str) -> None:
    """A protected branch, no right to push, a missing scope: what it means and what to do, exit 69."""
    shop.hook(said)
    done = shop.box.ralph("pr")
    assert done.code == 69, done.text
    assert words in done.err
    assert step in done.err
    assert shop.gh.sent("POST") == []


def test_a_hook_of_the_person_that_says_no_is_quoted(tmp_path: Path) -> None:
    """A pre-push hook runs as with every push of theirs, and its words are told."""
    shop = Shop(tmp_path).night()
    hook = shop.box.root / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'lint: 3 problems' >&2\nexit 1\n")
    hook.chmod(0o755)
    done = shop.box.ralph("pr")
    assert (done.code, "git push failed: lint: 3 problems" in done.err) == (66, True), done.text


def test_somebody_who_pushes_in_the_same_moment_is_not_overwritten(tmp_path: Path) -> None:
    """Between our look and our push the branch has moved: theirs stays, and it is said."""
    shop = Shop(tmp_path).night()
    shop.box.git("push", "-q", "origin", "main:work")
    theirs = shop.box.git("commit-tree", "-p", "main", "-m", "theirs", "main^{tree}")
    shop.box.git("push", "-q", "origin", f"{theirs}:refs/heads/theirs")
    hook = shop.box.root / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ngit -C {shop.bare} update-ref refs/heads/work {theirs}\n")
    hook.chmod(0o755)
    done = shop.box.ralph("pr")
    assert (done.code, shop.heads()["work"]) == (66, theirs), done.text
    assert shop.gh.sent("POST") == []


OFFLINE = "error connecting to api.github.com\ncheck your internet connection or githubstatus.com"
LOGIN = "To get started with GitHub CLI, please run:  gh auth login\n"


@pytest.mark.parametrize(
    ("code", "err", "out", "words"),
    [
        (4, LOGIN, "", "gh is not logged in to github.com"),
        (1, "gh: Bad credentials (HTTP 401)", {"message": "Bad credentials"}, "not logged in"),
        (1, OFFLINE, "", "github.com cannot be reached"),
        (1, "Get \"https://api.github.com/\": dial tcp: lookup: no such host", "", "cannot be reached"),
        (1, "gh: Not Found (HTTP 404)", {"message": "Not Found"}, "this login may not see it"),
        (1, "gh: no (HTTP 403)", {"message": "Resource not accessible"}, "may not do that in owner/shop"),
        (1, "gh: x (HTTP 403)", {"message": "API rate limit exceeded"}, "rate limit exceeded"),
        (1, "gh: x (HTTP 502)", "<html>", "GitHub refused: gh: x (HTTP 502)"),
        (1, "", "", "GitHub refused"),
        (0, "", "", "gh answered what cannot be read: nothing"),
        (0, "", "<html>hello\x1b[2J", "gh answered what cannot be read: <html>hello"),
        (0, "", '{"default_branch": 7}', "gh answered what cannot be read"),
        (0, "", "[" * 100_000, "gh answered what cannot be read"),
        (0, "", "x" * 9_000_000, "gh said too much"),
    ],
)  # fmt: skip
def test_a_gh_that_has_a_bad_day(shop: Shop, code: int, err: str, out: object, words: str) -> None:
    """Each failure has words and exit code 69, and nothing is pushed."""
    shop.gh.fail(REPO, code, err, out)
    done = shop.box.ralph("pr")
    assert (done.code, words in done.err) == (69, True), done.text
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    ("message", "words"),
    [("No commits between main and work", "No commits between"), ("Draft pull requests are not"
      " supported in this repository.", "ralph pr --ready")],
)  # fmt: skip
def test_a_refused_opening_says_that_the_branch_is_pushed(
    tmp_path: Path, message: str, words: str
) -> None:
    """Half of it is done; the same command goes on from there."""
    shop = Shop(tmp_path, stories=CLAIMED).night()
    odd = {"resource": "PullRequest", "field": "base", "code": "invalid"}
    refusal = {"message": "Validation Failed", "errors": [{"message": message}, odd, "x"]}
    shop.gh.fail(f"POST {REPO}/pulls", 1, "gh: Validation Failed (HTTP 422)", refusal)
    done = shop.box.ralph("pr")
    assert done.code == 69, done.text
    assert f"GitHub refused: Validation Failed; {message}; base invalid" in done.err
    assert words in done.err
    assert "work is pushed" in done.err
    assert "work" in shop.heads()


@pytest.mark.tool("gh", optional=True)
def test_without_gh_it_is_said_where_to_get_it(shop: Shop, tmp_path: Path) -> None:
    """A machine without gh: exit 69, with the commands that install it."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("git", "test", "sh"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    done = shop.box.ralph("pr", env={"PATH": str(tools)})
    assert (done.code, "is not installed" in done.err, "apt install gh" in done.err) == (
        69,
        True,
        True,
    )


# --- who may ask --------------------------------------------------------------------------------


@pytest.mark.attack
def test_an_agent_cannot_publish_its_own_work(tmp_path: Path) -> None:
    """From within a run it is refused, nothing is pushed, and the person reads that it was tried."""
    calls = """
    import subprocess, sys
    for env in (None, {k: v for k, v in os.environ.items() if not k.startswith("RALPH_")}):
        tried = subprocess.run([sys.executable, "-P", "-m", "ralphloop", "pr"], capture_output=True,
                               text=True, env=env)
        _kept("tried", "a", f"{tried.returncode} {tried.stderr}")
    """
    agent = "import os\n" + "\n".join(line[4:] for line in calls.splitlines()) + f"\n{WRITES}"
    shop = Shop(tmp_path, agent)
    report = shop.night().box.ralph("report").out
    tried = (shop.box.state / "tried").read_text()
    assert tried.count("64 error: an agent does not") == 2, tried
    assert "work" not in shop.heads()
    assert shop.gh.calls == []
    assert "the agent asked: pr; refused" in report


@pytest.mark.attack
def test_a_journal_that_is_not_believed_is_not_published(tmp_path: Path) -> None:
    """What somebody wrote into the journal is nobody's proof: exit 77, nothing is pushed."""
    import sqlite3

    shop = Shop(tmp_path, stories=CLAIMED).night()
    with sqlite3.connect(shop.box.root / ".ralph/journal.db") as journal:
        journal.execute("UPDATE runs SET reason = 'all is well'")
    done = shop.box.ralph("pr")
    assert done.code == 77, done.text
    assert "work" not in shop.heads()


ON_END = '[session]\non_end = "pr --draft"\n'


def ending(tmp_path: Path) -> Shop:
    """A shop whose runs end with a pull request."""
    shop = Shop(tmp_path)
    config = shop.box.root / "ralph.toml"
    config.write_text(config.read_text().replace("[session]\n", ON_END))
    shop.box.git("commit", "-qam", "on_end")
    return shop


def test_a_run_can_end_with_a_pull_request(tmp_path: Path) -> None:
    """`on_end = "pr"` is `ralph pr` of that run, with its options; the address is said."""
    shop = ending(tmp_path)
    done = shop.box.run("--json")
    assert done.code == 0, done.text
    assert shop.gh.sent("POST")[0]["draft"] is True
    assert "https://github.com/owner/shop/pull/7" in done.err
    assert "https://github.com" not in done.out, "stdout is for events"
    assert "work" in shop.heads()


def test_an_ending_that_fails_changes_nothing(tmp_path: Path) -> None:
    """The run is as complete as before; why there is no pull request is said."""
    shop = ending(tmp_path)
    shop.gh.fail(REPO, 4, LOGIN)
    done = shop.box.run()
    assert (done.code, "gh is not logged in" in done.err) == (0, True), done.text


@pytest.mark.attack
def test_the_setting_needs_a_yes(tmp_path: Path) -> None:
    """A clone cannot make somebody publish: the line is asked about before anything runs."""
    shop = ending(tmp_path)
    done = shop.box.run(env={"RALPH_TRUST": "", "XDG_STATE_HOME": str(tmp_path / "none")})
    assert (done.code, "session.on_end" in done.err) == (77, True), done.text
