"""spec-kit: `tasks.md` of a feature, with the `spec.md` beside it.

A task is a story.  Phases give the order: a task waits for the one before it, those marked `[P]`
wait together; what belongs to a user story waits for the phases before the first of them, and what
comes after the user stories waits for all of them.  What proves a user story as a whole, its
*Independent Test* and the acceptance scenarios of `spec.md`, is asked of its last task.
"""

import re
from collections.abc import Sequence

from ralphloop.plan.importers.reading import (
    BULLET,
    Conversion,
    Document,
    Entry,
    Heading,
    ListedItem,
    Unread,
    checkbox_of,
    heading_of,
    made,
    margin_of,
    numbered_lines,
    plain,
    source_of,
    still_needed,
    title_of,
    whole_title,
)
from ralphloop.text.plain import one_line

KIND = "spec-kit"
_ID = r"T\d{1,5}[a-z]?(?:-(?!T\d)[A-Za-z0-9]{1,12})?"
_TASK = re.compile(rf"\**(?P<id>{_ID})\**[:.]?\s+(?P<rest>\S.*)")
_TAG = re.compile(r"\[(P|US\d{1,3}|[A-Za-z][\w-]{0,20})\]\s*")
_USER_STORY = re.compile(r"user story (\d{1,3})\b", re.IGNORECASE)
_RANKED = re.compile(r"\D{1,40}(\d{1,3})\b.{0,200}\bP\d\b.{0,20}")  # as its template has it
_BETWEEN = r"(?:,\s*|\s+and\s+|\s*[-–—~+&/]\s*|\s*)"
_NEEDS = re.compile(
    r"(?:depends on|dependenc(?:y|ies)|after|requires|blocked by):?\s+"
    rf"((?:{_ID}{_BETWEEN}){{1,20}})",
    re.IGNORECASE,
)
_TASKS = re.compile(rf"(?P<first>{_ID})(?:\s*(?:[-–—~]|to|through)\s*(?P<last>T\d{{1,5}}))?")
_MOST_OF_A_RANGE = 200
_WAITS = re.compile(rf"\**(?P<id>{_ID})\**\s+depends on\s+(?P<rest>.{{1,300}})", re.IGNORECASE)
_STORY_WAITS = re.compile(
    r"user story (?P<number>\d{1,3})\b.{0,80}?depends on\s+(?P<rest>.{1,300})", re.IGNORECASE
)
_STORY_ID = re.compile(r"\b(?:US|user stor(?:y|ies) )(\d{1,3})\b", re.IGNORECASE)
_FINISHED = re.compile(r"✅|\[x\]|\b(?:done|completed?)\b", re.IGNORECASE)
_LABELLED = re.compile(r"(?P<label>[A-Z][A-Za-z ]{2,30}):\s*(?P<rest>\S.*)")
_TITLED = re.compile(r"^(?:Tasks|Feature Specification)\s*:\s*")


class _Task(ListedItem):
    def __init__(self, line: int, text: str, *, is_done: bool) -> None:
        self.line = line
        self.item = text
        self.is_done = is_done
        found = _TASK.fullmatch(text)
        self.name = found["id"] if found else ""
        rest = found["rest"] if found else text
        tags = list[str]()
        while tag := _TAG.match(rest):
            tags.append(tag[1])
            rest = rest[tag.end() :]
        super().__init__(plain(rest))
        self.is_parallel = "P" in tags
        self.user_story = next((tag for tag in tags if re.fullmatch(r"US\d+", tag)), "")
        self.is_heading = False
        self.needs: dict[str, None] = {}

    def named_needs(self) -> list[str]:
        """The tasks that its own words say it waits for."""
        told = [listed for words in (self.title, *self.details) for listed in _NEEDS.findall(words)]
        return [name for listed in told for name in _names_in(listed)]


class _Phase:
    def __init__(self, title: str, line: int) -> None:
        self.title = title
        self.line = line
        self.tasks: list[_Task] = []
        self.said: dict[str, str] = {}
        self.last_said = ""  # the label that the line before stood under

    @property
    def user_story(self) -> str:
        """The one it is about, by its title or by the marks of all its tasks."""
        found = _USER_STORY.search(self.title)
        if found:
            return f"US{found[1]}"
        marks = {task.user_story for task in self.tasks}
        return marks.pop() if len(marks) == 1 else ""

    def say(self, label: str, words: str) -> None:
        self.said[label] = words
        self.last_said = label


class _Feature:
    """Everything that `tasks.md` says."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.project = ""
        self.phases = [_Phase("", 1)]
        self.task_waits: dict[str, list[str]] = {}
        self.story_waits: dict[str, list[str]] = {}
        self._loose: list[Unread] = []
        self._depth = 0  # of the heading of the phase
        for number, line in numbered_lines(document.text):
            if heading := heading_of(line):
                self._begin(number, heading)
            else:
                self._take(number, line)
        self.phases = [phase for phase in self.phases if phase.tasks]

    @property
    def tasks(self) -> list[_Task]:
        return [task for phase in self.phases for task in phase.tasks]

    @property
    def unread(self) -> list[Unread]:
        """Items that look like tasks and are none; what only speaks of a task is no loss."""
        known = {task.name for task in self.tasks}
        return [one for one in self._loose if not known.intersection(_names_in(one.words))]

    def _begin(self, number: int, heading: Heading) -> None:
        if heading.depth == 1:
            self.project = self.project or _TITLED.sub("", heading.words)
        elif _TASK.fullmatch(heading.words):
            is_done = _FINISHED.search(heading.words) is not None
            task = _Task(number, heading.words, is_done=is_done)
            task.is_heading = True
            self.phases[-1].tasks.append(task)
        elif not self._depth or heading.depth <= self._depth or heading.words.startswith("Phase"):
            self.phases.append(_Phase(heading.words, number))
            self._depth = heading.depth

    def _take(self, number: int, line: str) -> None:
        """Put a line where it belongs: a task, a detail of one, or what is said of the phase."""
        phase = self.phases[-1]
        label = phase.last_said
        phase.last_said = ""
        now = phase.tasks[-1] if phase.tasks else None
        box = checkbox_of(line)
        bullet = BULLET.fullmatch(line)
        words = plain(box.text if box else bullet["text"] if bullet else line)
        if box is not None and _TASK.fullmatch(box.text):
            phase.tasks.append(_Task(number, box.text, is_done=box.is_done))
        elif bullet and now is not None and (margin_of(line) >= 2 or now.is_heading):
            now.details.append(words)
        elif box is not None:
            self._loose.append(Unread(self.document.path, number, "has no number", box.text))
        elif now is not None and words and bullet is None and margin_of(line) >= 2:
            now.go_on(words)
        elif waits := _WAITS.fullmatch(words):
            self.task_waits.setdefault(waits["id"], []).extend(_names_in(waits["rest"]))
        elif waits := _STORY_WAITS.match(words):
            named = _STORY_ID.findall(waits["rest"])
            self.story_waits[f"US{waits['number']}"] = [f"US{one}" for one in named]
        elif bullet and _TASK.fullmatch(words):
            self._loose.append(Unread(self.document.path, number, "a task without a box", words))
        elif said := _LABELLED.fullmatch(words):
            phase.say(said["label"].lower(), said["rest"])
        elif label and words and bullet is None:
            phase.say(label, f"{phase.said[label]} {words}")


def read(documents: Sequence[Document]) -> Conversion:
    """The open tasks of a feature."""
    tasks_md = documents[0]
    feature = _Feature(tasks_md)
    _order(feature)
    done = {task.name for task in feature.tasks if task.is_done}
    spec = next((one for one in documents if one.name == "spec.md"), None)
    scenarios = _scenarios(spec) if spec else {}
    tests = {
        phase.user_story: phase.said["independent test"]
        for phase in feature.phases
        if "independent test" in phase.said
    }
    last = _last_of_user_stories(feature)
    entries = list[Entry]()
    for phase in feature.phases:
        for task in phase.tasks:
            if task.is_done:
                continue
            story = task.user_story or phase.user_story
            criteria = list(task.details)
            if story and last.get(story) is task:
                test = tests.get(story)
                criteria += [f"Independent test: {test}"] if test else []
                criteria += scenarios.get(story, [])
            entries.append(
                made(
                    id=task.name,
                    title=title_of(task.title),
                    description=_description(task, phase),
                    acceptanceCriteria=criteria,
                    dependsOn=still_needed(task.needs, done),
                    labels=[story] if story else None,
                    parent_spec=spec.path if spec else None,
                    source=source_of(tasks_md, task.line, KIND, task.item),
                )
            )
    project = one_line(feature.project)
    return Conversion(entries, KIND, len(done), project, unread=tuple(feature.unread))


def _order(feature: _Feature) -> None:
    """Let every task wait for what its place says, and for what is said of it."""
    ground = list[str]()  # the last tasks of what all user stories wait for
    ends: dict[str, list[str]] = {}  # the last tasks of the user stories since then
    seen = set[str]()
    for phase in feature.phases:
        before = list(ground)
        waited_for = feature.story_waits.get(phase.user_story, []) if phase.user_story else ends
        for story in waited_for:
            before += ends.get(story, [])
        group = list[_Task]()
        for task in phase.tasks:
            if group and not (task.is_parallel and group[-1].is_parallel):
                before = [one.name for one in group]
                group = []
            group.append(task)
            named = [*before, *task.named_needs(), *feature.task_waits.get(task.name, [])]
            # The second task of an id gets another one, and waits for the first.
            own = {task.name} - seen
            task.needs |= dict.fromkeys(name for name in named if name not in own)
            seen.add(task.name)
        last = [one.name for one in group]
        if phase.user_story:
            ends[phase.user_story] = last
        else:
            ground = last
            ends = {}


def _names_in(words: str) -> list[str]:
    """The tasks that are named, those between two ends of a range too."""
    found = list[str]()
    for named in _TASKS.finditer(words):
        found.append(named["first"])
        first = re.sub(r"\D", "", named["first"])
        last = (named["last"] or "T")[1:]
        if last and int(first) < int(last) <= int(first) + _MOST_OF_A_RANGE:
            found += [f"T{number:0{len(last)}d}" for number in range(int(first) + 1, int(last) + 1)]
    return found


def _last_of_user_stories(feature: _Feature) -> dict[str, _Task]:
    """The task that closes each user story."""
    return {
        task.user_story or phase.user_story: task
        for phase in feature.phases
        for task in phase.tasks
        if not task.is_done
    }


def _description(task: _Task, phase: _Phase) -> str:
    told = [whole_title(task.title), phase.title]
    told += [
        f"{name.capitalize()}: {phase.said[name]}"
        for name in ("goal", "purpose")
        if name in phase.said
    ]
    return "\n".join(filter(None, told))


def _scenarios(spec: Document) -> dict[str, list[str]]:
    """The acceptance scenarios of every user story."""
    found: dict[str, list[str]] = {}
    story = ""
    is_listing = False
    for _, line in numbered_lines(spec.text):
        if heading := heading_of(line):
            named = _USER_STORY.search(heading.words) or _RANKED.fullmatch(heading.words)
            if named or heading.depth <= 3:
                story = f"US{named[1]}" if named else ""
            is_listing = bool(story) and heading.words.lower().startswith("acceptance scenarios")
            continue
        words = plain(line)
        bullet = BULLET.fullmatch(line)
        if words.lower().startswith("acceptance scenarios"):
            is_listing = True
        elif bullet and story and (is_listing or plain(bullet["text"]).lower().startswith("given")):
            found.setdefault(story, []).append(plain(bullet["text"]))
            is_listing = True
        elif bullet is None and words and is_listing and margin_of(line) >= 2 and found.get(story):
            found[story][-1] = f"{found[story][-1]} {words}"
    return found
