"""A pull request that is opened or brought up to date, with our words between two marks.

There is one open pull request for a branch.  What people wrote around our words stays, and so does
what they made of it: a draft or none, closed or merged.
"""

from pathlib import Path

import msgspec

from ralphloop.errors import RalphError, RepositoryError
from ralphloop.repo.github import HubPlace, call
from ralphloop.text.plain import one_line

BEGIN = "<!-- ralph: report -->"
END = "<!-- ralph: end of report -->"
LONGEST_BODY = 65_536  # GitHub counts characters; bytes are never fewer
_CUT_WORDS = 600  # bytes kept for saying what was cut
_TURN = "mutation($id: ID!) {{ {name}(input: {{pullRequestId: $id}}) {{ clientMutationId }} }}"

PullFields = dict[str, object]


class KnownPull(msgspec.Struct):
    number: int
    html_url: str
    state: str = "open"
    draft: bool = False
    merged_at: str | None = None
    title: str = ""
    body: str | None = None
    node_id: str = ""
    head: dict[str, object] = {}


def find_pull(place: HubPlace, head: str, *, anew: bool) -> KnownPull | None:
    """The open pull request of a branch; one that was closed or merged stays so."""
    asked = {"head": head, "state": "all", "sort": "created", "direction": "desc"}
    listed = call(place, place.path("pulls"), list[KnownPull], asked)
    # GitHub leaves a filter out that it does not understand.
    found = [one for one in listed if str(one.head.get("label")).lower() == head.lower()]
    known = next((one for one in found if one.state == "open"), None)
    if known or anew or not found:
        return known
    last = found[0]
    how = "merged"
    step = "To open another one: ralph pr --new"
    if not last.merged_at:
        how = "closed by somebody"
        step = f"{step}. To open it again: gh pr reopen {last.number}"
    told = f"pull request #{last.number} of this branch was {how}: {last.html_url}"
    raise RepositoryError(told, step)


def send_pull(
    place: HubPlace, known: KnownPull | None, fields: PullFields, new: PullFields
) -> KnownPull:
    """Open it, or bring the open one up to date; raises with what was done so far."""
    try:
        if known is None:
            return call(place, place.path("pulls"), KnownPull, {**fields, **new}, "POST")
        done = call(place, place.path("pulls", known.number), KnownPull, fields, "PATCH")
        if new["draft"] is not known.draft:
            name = "convertPullRequestToDraft" if new["draft"] else "markPullRequestReadyForReview"
            asked = {"query": _TURN.format(name=name), "variables": {"id": known.node_id}}
            call(place, "graphql", dict[str, object], asked, "POST")
    except RalphError as error:
        error.message += f" ({new['head']} is pushed; the same command goes on from there)"
        raise
    return done


def without_places(root: Path, text: str) -> str:
    """A text without the directories of this machine."""
    for place, name in ((root, "."), (Path.home(), "~")):
        if len(place.parts) > 1:
            text = text.replace(str(place), name)
    return text


def framed(body: str, text: str) -> str | None:
    """A body with our text between its marks; None where it is full of other people's words."""
    before, begin, rest = body.partition(BEGIN)
    after = rest.rpartition(END)[2]
    before += "\n\n" if before.strip() and not begin else ""
    room = LONGEST_BODY - len(f"{before}{BEGIN}\n\n{END}{after}".encode())
    if room <= 2 * _CUT_WORDS:
        return None
    return f"{before}{BEGIN}\n{fitted(text, room)}\n{END}{after}"


def fitted(text: str, room: int) -> str:
    """The text in so many bytes, cut between lines; the sections that lost something are named."""
    if len(text.encode()) <= room:
        return text
    kept: list[str] = []
    used = 0
    section = "the beginning"
    cut = []
    for line in text.splitlines():
        used += len(line.encode()) + 1
        section = line[3:] if line.startswith("## ") else section
        if used <= room - _CUT_WORDS:
            kept.append(line)
        elif section not in cut:
            cut.append(section)
    named = one_line(f"Cut for length: {', '.join(cut)}", _CUT_WORDS // 4)
    return "\n".join([*kept, "", f"{named}. All of it: `ralph report`"])
