"""What a repository is built on, and how its work is proven."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ralphloop.stacks.facts import Directory
from ralphloop.stacks.table import Stack, Tool, load_stacks

_MOST_DIRECTORIES = 100
_SHOWN_BELOW = 5


class Detected(msgspec.Struct, frozen=True, kw_only=True):
    """A repository, described."""

    name: str
    description: str = ""
    stacks: tuple[str, ...] = ()  # their titles; empty: nothing was recognised
    tools: tuple[str, ...] = ()
    checks: tuple[tuple[str, ...], ...] = ()  # commands that prove its work
    says: tuple[str, ...] = ()  # sentences for the prompt
    hints: tuple[str, ...] = ()  # sentences for the person

    @property
    def title(self) -> str:
        return " and ".join(self.stacks) or "not recognised"


def detect(
    root: Path, *, directories: Sequence[Path] = (), search_path: str | None = None
) -> Detected:
    """Look at the files of a directory; nothing is run."""
    table = load_stacks(directories)
    directory = Directory(root, search_path=search_path)
    fitting = _fitting(table, directory)
    used = fitting or [stack for stack in table if not stack.marks]
    tools = [tool for stack in used if (tool := _tool(stack, directory))]
    return Detected(
        name=_first_text(used, "names", directory) or root.resolve().name or "project",
        description=_first_text(used, "descriptions", directory),
        stacks=tuple(stack.title for stack in fitting),
        tools=tuple(tool.title for tool in tools),
        checks=tuple(check for stack in used for check in _checks(stack, directory)),
        says=tuple(_sentences(used, directory)),
        hints=tuple(_hints(table, used, directory)),
    )


def _fitting(table: Sequence[Stack], directory: Directory) -> list[Stack]:
    return [stack for stack in table if any(map(directory.holds, stack.marks))]


def _tool(stack: Stack, directory: Directory) -> Tool | None:
    return next((tool for tool in stack.tools if directory.meets(tool)), None)


def _checks(stack: Stack, directory: Directory) -> Iterator[tuple[str, ...]]:
    tool = _tool(stack, directory)
    words = tool.words if tool else {}
    done: set[str] = set()
    for rule in stack.checks:
        if rule.purpose not in done and directory.meets(rule):
            done.add(rule.purpose)
            yield tuple(_filled_in(rule.command, words))


def _filled_in(command: Sequence[str], words: dict[str, tuple[str, ...]]) -> Iterator[str]:
    for word in command:
        is_slot = word.startswith("{") and word.endswith("}")
        yield from words.get(word[1:-1], ()) if is_slot else (word,)


def _first_text(stacks: Sequence[Stack], field: str, directory: Directory) -> str:
    places = (place for stack in stacks for place in getattr(stack, field))
    return next((text for place in places if (text := directory.text_at(place))), "")


def _sentences(stacks: Sequence[Stack], directory: Directory) -> Iterator[str]:
    for stack in stacks:
        tool = _tool(stack, directory)
        if tool and tool.says:
            yield tool.says
        yield from (entry.text for entry in stack.says if directory.meets(entry))


def _hints(table: Sequence[Stack], used: Sequence[Stack], directory: Directory) -> Iterator[str]:
    for stack in used:
        yield from (entry.text for entry in stack.monorepo if directory.meets(entry))
    below = _below(table, directory.root)
    if below:
        yield (
            f"There is more below: {', '.join(below)}. Checks run in this directory, so add "
            "theirs by hand, or set up ralph in the directory the stories are about."
        )


def _below(table: Sequence[Stack], root: Path) -> list[str]:
    """Directories that are projects of their own, such as `web (Node)`."""
    try:
        candidates = sorted(path for path in root.iterdir() if _may_be_project(path))
    except OSError:
        return []  # not ours to list: then nothing is known about it
    found = []
    for path in candidates[:_MOST_DIRECTORIES]:
        stacks = _fitting([stack for stack in table if stack.marks], Directory(path))
        if stacks:
            found.append(f"{path.name} ({' and '.join(stack.title for stack in stacks)})")
    more = len(found) - _SHOWN_BELOW
    return [*found[:_SHOWN_BELOW], f"{more} more"] if more > 0 else found


def _may_be_project(path: Path) -> bool:
    return not path.name.startswith(".") and path.name not in _NOT_PROJECTS and path.is_dir()


_NOT_PROJECTS = frozenset({"node_modules", "target", "build", "dist", "vendor", "venv", "tests"})
