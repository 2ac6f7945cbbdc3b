#!/usr/bin/env python3
"""A queue of GitLab for `ralph run --from`, through glab: open issues with the label `ralph`.

GITLAB_PROJECT is its path, such as group/shop.  Author and labeller have to be developers of the
project at least, and so has whoever answers.  Copy it to where no agent writes, such as ~/bin:
ralph run --from ~/bin/gitlab.py --watch
"""

import json
import os
import re
import subprocess
import sys
from functools import cache
from urllib.parse import quote

PROJECT = quote(os.environ.get("GITLAB_PROJECT", ""), safe="")
LABEL = os.environ.get("GITLAB_LABEL", "ralph")
DEVELOPER = 30
MARK = "<!-- ralph: {} -->"


def api(path, *more):
    argv = ["glab", "api", f"projects/{PROJECT}/{path}", *more]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        sys.exit(f"glab: {done.stderr.strip()[:200]}")
    return json.loads(done.stdout or "null")


@cache
def may_push(user):
    argv = ["glab", "api", f"projects/{PROJECT}/members/all/{user}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 0 and json.loads(done.stdout).get("access_level", 0) >= DEVELOPER


def labeller(issue):
    """Who put the label on it last."""
    last = 0
    for event in api(f"issues/{issue}/resource_label_events?per_page=100"):
        if event["action"] == "add" and (event["label"] or {}).get("name") == LABEL:
            last = event["user"]["id"]
    return last


def notes(issue):
    return api(f"issues/{issue}/notes?sort=asc&order_by=created_at&per_page=100")


def say(issue, text):
    api(f"issues/{issue}/notes", "--method", "POST", "--raw-field", f"body={text}")


def listed(_asked):
    items = []
    for one in api(f"issues?labels={quote(LABEL)}&state=opened&per_page=20"):
        author = one["author"]
        if may_push(author["id"]) and may_push(labeller(one["iid"])):
            text = one["description"] or ""
            known = {"title": one["title"], "text": text, "url": one["web_url"]}
            items.append({"id": str(one["iid"]), "by": author["username"], **known})
    return {"items": items}


def claim(asked):
    """The oldest claim wins, so that two of them do not take the same."""

    def first():
        for one in notes(asked["id"]):
            found = re.search(r"<!-- ralph: claim (\w+) -->", one["body"])
            if found and may_push(one["author"]["id"]):
                return found[1]
        return ""

    if not first():
        mark = MARK.format(f"claim {asked['token']}")
        say(asked["id"], f"ralph takes this up.\n\n{mark}")
    return {"claimed": first() == asked["token"]}


def report(asked):
    """The same key is told once, also after a crash."""
    mark = MARK.format(asked["key"])
    if asked["kind"] != "started" and not any(mark in one["body"] for one in notes(asked["id"])):
        rows = [f"- {one['criterion']}: {one['evidence']}" for one in asked["criteria"]]
        say(asked["id"], "\n\n".join([asked["text"], "\n".join(rows), mark]))
    return {}


def answers(asked):
    """What developers said since the question of this key."""
    mark = MARK.format(asked["key"])
    is_after = False
    found = []
    for one in notes(asked["id"]):
        if mark in one["body"]:
            is_after = True
        elif is_after and "<!-- ralph:" not in one["body"] and may_push(one["author"]["id"]):
            known = {"text": one["body"], "by": one["author"]["username"]}
            found.append({"id": str(one["id"]), **known})
    return {"answers": found}


if __name__ == "__main__":
    words = {"list": listed, "claim": claim, "report": report, "answers": answers}
    print(json.dumps(words[sys.argv[1]](json.load(sys.stdin))))
