"""Story files of this and other tools: whatever their shape, as they are read by a run."""

from collections.abc import Sequence
from pathlib import Path

from ralphloop.plan.importers.reading import Conversion, Document, Entry, made, source_of
from ralphloop.stories.documents import line_of
from ralphloop.stories.lint import KNOWN_KEYS
from ralphloop.stories.source import load, story_text

KIND = "story file"
STDIN = "stdin.json"
_READ = KNOWN_KEYS - {"touches", "labels", "estimate", "source"}


def read(documents: Sequence[Document]) -> Conversion:
    """The open stories in one shape, with the keys that nobody reads; what is wrong is said."""
    document = documents[0]
    path = Path(document.path)
    data = document.text.encode()
    stories = load(path, data=data).list
    listing = story_text(path, data).listing
    passed = {story.id for story in stories.stories if story.passes}
    entries = list[Entry]()
    for index, (story, raw) in enumerate(zip(stories.stories, listing.entries, strict=True)):
        if story.passes:
            continue
        more = {str(key): value for key, value in raw.items()} if isinstance(raw, dict) else {}
        entry = made(
            id=story.id,
            title=story.title,
            description=story.description,
            acceptanceCriteria=list(story.criteria),
            priority=story.priority,
            notes=story.notes,
            dependsOn=[name for name in story.depends_on if name not in passed],
            verify=list(story.verify) if story.verify else None,
            parent_spec=story.parent_spec,
        )
        if path.suffix == ".json" and document.path != STDIN and "source" not in more:
            line = line_of(document.text, [listing.key, index])
            entry["source"] = source_of(document, line, KIND, story.id)
        entries.append({key: more[key] for key in more if key not in _READ} | entry)
    return Conversion(entries, KIND, len(passed), stories.project, stories.description)
