#!/usr/bin/env python3
"""A queue of Linear for `ralph run --from`: issues with the label `ralph` that nobody has begun.

LINEAR_API_KEY is a key of yours (Settings, API).  Everybody in your Linear workspace who can label
an issue can have work done: guests are left out here.  Copy it to where no agent writes, such as
~/bin, and name it:  ralph run --from ~/bin/linear.py --watch
"""

import json
import os
import re
import sys
import urllib.request

API = os.environ.get("LINEAR_API", "https://api.linear.app/graphql")
LABEL = os.environ.get("LINEAR_LABEL", "ralph")
MARK = "[//]: # (ralph {})"  # a comment of Markdown: nobody sees it

LIST = """query($label: String!) { issues(first: 20, filter: {labels: {name: {eq: $label}},
  state: {type: {in: ["triage", "backlog", "unstarted", "started"]}}}) { nodes {
  id title description url creator { displayName guest } } } }"""
COMMENTS = """query($id: String!) { issue(id: $id) { comments(first: 100) { nodes {
  id body createdAt user { displayName guest } } } } }"""
SAY = """mutation($id: String!, $body: String!) {
  commentCreate(input: {issueId: $id, body: $body}) { success } }"""


def ask(query, **variables):
    data = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"Content-Type": "application/json", "Authorization": os.environ["LINEAR_API_KEY"]}
    request = urllib.request.Request(API, data, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        said = json.load(answer)
    if said.get("errors"):
        sys.exit(f"Linear refused: {said['errors'][0]['message']}")
    return said["data"]


def comments(item):
    found = ask(COMMENTS, id=item)["issue"]["comments"]["nodes"]
    return sorted(found, key=lambda one: one["createdAt"])


def is_member(person):
    return bool(person) and not person.get("guest")


def listed(_asked):
    items = []
    for one in ask(LIST, label=LABEL)["issues"]["nodes"]:
        if is_member(one["creator"]):
            by = one["creator"]["displayName"]
            text = one["description"] or ""
            items.append(
                {"id": one["id"], "title": one["title"], "text": text, "url": one["url"], "by": by}
            )
    return {"items": items}


def claim(asked):
    """The oldest claim wins, so that two of them do not take the same."""

    def first():
        for one in comments(asked["id"]):
            found = re.search(r"\(ralph claim (\w+)\)", one["body"])
            if found and is_member(one["user"]):
                return found[1]
        return ""

    if not first():
        mark = MARK.format(f"claim {asked['token']}")
        ask(SAY, id=asked["id"], body=f"ralph takes this up.\n\n{mark}")
    return {"claimed": first() == asked["token"]}


def report(asked):
    """The same key is told once, also after a crash."""
    mark = MARK.format(asked["key"])
    if asked["kind"] != "started" and not any(mark in one["body"] for one in comments(asked["id"])):
        rows = [f"- {one['criterion']}: {one['evidence']}" for one in asked["criteria"]]
        ask(SAY, id=asked["id"], body="\n\n".join([asked["text"], "\n".join(rows), mark]))
    return {}


def answers(asked):
    """What members said since the question of this key."""
    mark = MARK.format(asked["key"])
    is_after = False
    found = []
    for one in comments(asked["id"]):
        if mark in one["body"]:
            is_after = True
        elif is_after and "(ralph " not in one["body"] and is_member(one["user"]):
            by = one["user"]["displayName"]
            found.append({"id": one["id"], "text": one["body"], "by": by})
    return {"answers": found}


if __name__ == "__main__":
    words = {"list": listed, "claim": claim, "report": report, "answers": answers}
    print(json.dumps(words[sys.argv[1]](json.load(sys.stdin))))
