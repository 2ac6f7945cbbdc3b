"""beads: `issues.jsonl`, an issue a line, with what blocks what.

An epic with open issues in it is told by them; whoever waits for it waits for all of them.  Only
`blocks` and its like order the work: related issues do not wait for each other.
"""

import json
import re
from collections.abc import Iterator, Sequence

from ralphloop.plan.importers.reading import (
    BULLET,
    Conversion,
    Document,
    Entry,
    Unread,
    checkbox_of,
    heading_of,
    made,
    numbered_lines,
    plain,
    source_of,
    still_needed,
    title_of,
    whole_title,
)
from ralphloop.text.plain import counted

KIND = "beads"
_BLOCKS = frozenset({"blocks", "conditional-blocks", "waits-for"})
_PART_OF = frozenset({"parent-child", "child"})
_LEFT = frozenset({"deferred", "pinned", "hooked", "tombstone"})
_NO_WORK = frozenset({"message", "agent", "role", "event", "gate", "molecule", "merge-request"})
_LONGEST = 1_000_000
_CRITERIA = re.compile(r"acceptance criteria", re.IGNORECASE)


class _Issue:
    def __init__(self, line: int, raw: dict[str, object]) -> None:
        self.line = line
        self.raw = raw
        self.name = str(raw["id"])
        self.blockers: list[str] = []
        self.parents: list[str] = []
        listed = raw.get("dependencies")
        for one in listed if isinstance(listed, list) else ():
            if not isinstance(one, dict):
                continue
            other = str(one.get("depends_on_id", ""))
            kind = one.get("type", "blocks")
            if kind in _BLOCKS:
                self.blockers.append(other)
            elif kind in _PART_OF:
                self.parents.append(other)

    @property
    def status(self) -> str:
        return str(self.raw.get("status", "open"))

    def text(self, key: str) -> str:
        value = self.raw.get(key)
        return value.strip() if isinstance(value, str) else ""


def read(documents: Sequence[Document]) -> Conversion:
    """The open issues, in the order of the file."""
    issues_jsonl = documents[0]
    unread = list[Unread]()
    issues = {issue.name: issue for issue in _issues(issues_jsonl, unread)}
    done = {name for name, issue in issues.items() if issue.status == "closed"}
    left = {
        name
        for name, issue in issues.items()
        if issue.status in _LEFT or issue.text("issue_type") in _NO_WORK
    }
    gone = done | left
    inside: dict[str, list[str]] = {}
    for name, issue in issues.items():
        for parent in issue.parents:
            if name not in gone:
                inside.setdefault(parent, []).append(name)
    told = []
    if left:
        told.append(f"{counted(len(left), 'issue')} deferred or no work there: left out")
    entries = [
        _entry(issue, issues, inside, gone, issues_jsonl, unread)
        for name, issue in issues.items()
        if name not in gone and not (issue.text("issue_type") == "epic" and name in inside)
    ]
    return Conversion(entries, KIND, len(done), unread=tuple(unread), told=tuple(told))


def _issues(document: Document, unread: list[Unread]) -> Iterator[_Issue]:
    for number, line in enumerate(document.text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line[:_LONGEST])
        except (ValueError, RecursionError):
            unread.append(Unread(document.path, number, "is no JSON", line))
            continue
        if isinstance(raw, dict) and raw.get("id") and raw.get("title"):
            yield _Issue(number, raw)
        else:
            unread.append(Unread(document.path, number, "an issue without id or title", line))


def _entry(
    issue: _Issue,
    issues: dict[str, _Issue],
    inside: dict[str, list[str]],
    gone: set[str],
    document: Document,
    unread: list[Unread],
) -> Entry:
    needs = list[str]()
    for name in issue.blockers:
        if name not in issues:
            unread.append(Unread(document.path, issue.line, "waits for what is not here", name))
        elif issues[name].text("issue_type") == "epic" and name in inside:
            needs += [one for one in inside[name] if one != issue.name]
        else:
            needs.append(name)
    epics = [issues[name].text("title") for name in issue.parents if name in issues]
    words = plain(issue.text("title"))
    told = [whole_title(words), *(f"A part of: {title}" for title in epics)]
    told += [issue.text("description"), issue.text("design")]
    criteria = _criteria(issue.text("acceptance_criteria"), everything=True)
    for key in ("description", "design"):
        criteria += _criteria(issue.text(key), everything=False)
    priority = issue.raw.get("priority")
    labels = issue.raw.get("labels")
    return made(
        id=issue.name,
        title=title_of(words),
        description="\n\n".join(filter(None, told)),
        acceptanceCriteria=criteria,
        priority=priority if isinstance(priority, int) else None,
        notes=issue.text("notes"),
        dependsOn=still_needed(needs, gone),
        labels=[str(one) for one in labels] if isinstance(labels, list) else None,
        source=source_of(document, issue.line, KIND, issue.name),
    )


def _criteria(text: str, *, everything: bool) -> list[str]:
    """The items of a text of criteria, or of the section of a text that has them."""
    found = list[str]()
    is_listing = everything
    for _, line in numbered_lines(text):
        if heading := heading_of(line):
            is_listing = everything or _CRITERIA.search(heading.words) is not None
            continue
        box = checkbox_of(line)
        bullet = BULLET.fullmatch(line)
        if is_listing and bullet is not None:
            found.append(plain(box.text if box else bullet["text"]))
        elif everything and line.strip():
            found.append(plain(line))
    return found
