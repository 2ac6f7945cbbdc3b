#!/usr/bin/env python3
"""The steps of the action: may this event start it, run it, tell what came of it.

Everything comes by the runner's variables and files (GITHUB_*), nothing by the command line of a
shell, so no text of an issue or a comment is ever part of a command.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

BY_HAND = ("schedule", "workflow_dispatch", "push", "repository_dispatch", "workflow_call")
ENDS = {
    0: "all is done",
    2: "a story waits for a person",
    3: "a limit was reached with work left",
    4: "nothing could be worked on",
}
LARGEST_SUMMARY = 900_000  # GitHub takes a mebibyte
MOST_ANNOTATIONS = 30
LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}")


def set_output(name, value):
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"{name}={value}\n")


def annotate(level, text, **where):
    """One line that the runner shows beside the code; text of others cannot end it."""

    def safe(words, more=""):
        for char in "%\r\n" + more:
            words = words.replace(char, f"%{ord(char):02X}")
        return words

    known = ",".join(f"{key}={safe(str(value), ':,')}" for key, value in where.items())
    print(f"::{level} {known}::{safe(text)}" if known else f"::{level}::{safe(text)}")


def may_write(login):
    """Whether GitHub says that somebody may write here; what an event calls them does not count."""
    if not LOGIN.fullmatch(login):
        return False
    path = f"repos/{os.environ['GITHUB_REPOSITORY']}/collaborators/{login}/permission"
    done = subprocess.run(["gh", "api", path], capture_output=True, text=True, check=False)
    if done.returncode:
        return False
    return json.loads(done.stdout).get("permission") in ("admin", "maintain", "write")


def why_not():
    """Why this event does not start it; empty where it does."""
    name = os.environ["GITHUB_EVENT_NAME"]
    if name in BY_HAND:
        return ""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    who = event.get("sender", {}).get("login", "")
    if name == "issues":
        if event.get("action") != "labeled":
            return "the issue was not labelled"
        if event.get("label", {}).get("name") != os.environ["RALPH_LABEL"]:
            return "it is another label"
    elif name == "issue_comment":
        if event.get("action") != "created":
            return "the comment is not new"
        said = event.get("comment", {}).get("body", "").split()
        if said[:1] != [os.environ["RALPH_COMMENT"]]:
            return "the comment is not for ralph"
        who = event.get("comment", {}).get("user", {}).get("login", "")
    else:
        return f"{name} is no event that starts it"
    return "" if may_write(who) else f"{who or 'nobody'} may not write here"


def gate():
    reason = why_not()
    set_output("go", "no" if reason else "yes")
    if reason:
        annotate("notice", f"ralph does not start: {reason}")
    return 0


def run():
    pin = os.environ["RALPH_PIN"]
    if not re.fullmatch(r"[0-9a-f]{8,64}", pin):
        annotate("error", "trust is no hash: `ralph trust --show` prints it, on your machine")
        return 64
    given = os.environ
    argv = ["ralph", "run", "--trust-pin", pin, "--no-wait"]
    argv += ["--max-cost", given["RALPH_MAX_COST"], "--max-time", given["RALPH_MAX_TIME"]]
    argv += ["--max-iterations", given["RALPH_MAX_ITERATIONS"]]
    if given["RALPH_QUEUE"]:
        argv += ["--from", given["RALPH_QUEUE"]]
    code = subprocess.run(argv, check=False).returncode
    set_output("exit-code", code)
    if code not in ENDS:
        annotate("error", f"ralph run ended with {code}")
        return code
    if code:
        annotate("warning", f"ralph: {ENDS[code]} ({code})")
    wanted = given["RALPH_PULL_REQUEST"]
    if wanted not in ("open", "follow"):
        return 0
    pull = ["ralph", "pr", *(["--follow", "--trust-pin", pin] if wanted == "follow" else [])]
    done = subprocess.run(pull, check=False).returncode
    if done == 66:  # mostly: nothing was committed
        annotate("notice", "no pull request: there is nothing to push, or the branch is not ready")
    elif done:
        annotate("warning", f"ralph pr ended with {done}")
    return 0


def tell():
    """Summary, annotations and what is kept: report, journal, SARIF."""
    place = Path(os.environ.get("RUNNER_TEMP", "/tmp")) / "ralph"
    place.mkdir(parents=True, exist_ok=True)
    for form in ("md", "html", "json", "sarif"):
        done = subprocess.run(["ralph", "report", f"--{form}"], capture_output=True, check=False)
        if done.returncode == 0:
            (place / f"report.{form}").write_bytes(done.stdout)
    journal = Path(".ralph/journal.db")
    if journal.is_file() and not journal.is_symlink():
        shutil.copyfile(journal, place / "journal.db")
    summary = place / "report.md"
    if summary.exists():
        text = summary.read_text(encoding="utf-8")[:LARGEST_SUMMARY]
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    sarif = place / "report.sarif"
    if sarif.exists():
        found = json.loads(sarif.read_text(encoding="utf-8"))["runs"][0]["results"]
        for one in found[:MOST_ANNOTATIONS]:
            where = one["locations"][0]["physicalLocation"]
            level = "warning" if one["level"] == "warning" else "notice"
            file = where["artifactLocation"]["uri"]
            line = where["region"]["startLine"]
            annotate(level, one["message"]["text"], file=file, line=line, title="ralph")
        set_output("sarif", sarif)
    set_output("directory", place)
    return 0


if __name__ == "__main__":
    sys.exit({"gate": gate, "run": run, "tell": tell}[sys.argv[1]]())
