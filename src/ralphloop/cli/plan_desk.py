"""A plan on the desk: shown, edited, tried, and written once it is accepted.

Nothing is written before; `--yes` stands for accepting, and not for running what was proposed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.cli.story_list import sample_stories
from ralphloop.core.totals import spent_words
from ralphloop.errors import ExitCode, InputError, RalphError, UsageError
from ralphloop.loop.prepare import Setup
from ralphloop.plan.convert import Entry
from ralphloop.plan.draft import About, Draft, Shelf, examined, plan_room, write
from ralphloop.plan.estimate import Estimate, estimated, past_stories, size_of
from ralphloop.plan.picture import table, tree
from ralphloop.project import relative
from ralphloop.stories.lint import as_lines
from ralphloop.stories.names import label
from ralphloop.text.plain import counted, one_line

if TYPE_CHECKING:
    from ralphloop.plan.proposal import Question

Put = Callable[[list[Entry], "PlanResult"], Path | None]  # where the list before was kept
_KEYS = "[a]ccept, [e]dit, or [q]uit and throw it away"
_CHOICE = click.Choice(["a", "e", "q"], case_sensitive=False)
_row = partial(output.row, width=10)


class PlanResult(NamedTuple):
    """A plan, and what is known of how it came about."""

    draft: Draft
    kind: str
    about: About = About()
    refused: tuple[str, ...] = ()
    answers: tuple[Question, ...] = ()
    spec: str = ""  # text that the stories lean on
    parent: str = ""  # the file it stands in, or will
    dollars: float = 0.0
    unpriced: int = 0
    starts: int = 0
    tried: tuple[tuple[str, str], ...] = ()  # story → what its command showed


class PlanDesk:
    """Who can be asked, and what may be done with a plan."""

    def __init__(self, setup: Setup, wanted: dict[str, object], shelf: Shelf) -> None:
        self.setup, self.shelf = setup, shelf
        self.root, self.room = setup.project.root, setup.project.directory
        self.as_json, self.yes = bool(wanted["as_json"]), bool(wanted["yes"])
        self.dry_run, self.trying = bool(wanted["dry_run"]), bool(wanted["trying"])
        self.asking = not (self.yes or self.as_json) and sys.stdin.isatty() and sys.stderr.isatty()
        entries, sample = shelf.listing.entries if shelf.listing else [], sample_stories()
        self.replace = bool(wanted["replace"]) or all(raw in sample for raw in entries)

    @property
    def base(self) -> Shelf:
        """What new stories have to get along with."""
        return self.shelf._replace(stories=()) if self.replace else self.shelf

    def insist_on_reader(self) -> None:
        """End here where a plan could be neither accepted nor printed."""
        if not (self.asking or self.yes or self.as_json or self.dry_run):
            ways = "Add --yes, --json, --dry-run or --questions FILE."
            raise UsageError("nobody can be asked here", ways)

    def settle(self, result: PlanResult, put: Put) -> int:
        """Show it, let it be edited, and write it once it is accepted."""
        self.insist_on_reader()
        if not result.draft.entries:
            output.emit_lines([*map(output.safe, result.draft.told), "There is nothing to add."])
            return ExitCode.COMPLETE
        self._show(result)
        if self.dry_run or (self.as_json and not self.yes):
            self._emit(result, None, None)
            return ExitCode.COMPLETE
        if self.yes and result.refused:
            place = relative(self.room / "plan" / "proposal.json", self.root)
            raise InputError(
                f"the linter refuses {counted(len(result.refused), 'thing')} in the proposal",
                f"Nothing was written. Mend {place} and run: ralph plan {place} --yes",
            )
        if not self.yes:
            chosen = self._choose(result)
            if chosen is None:
                output.emit_lines(["Nothing was written."])
                return ExitCode.COMPLETE
            result = chosen
        result = self._try(result)
        entries = [self._finished(entry, result) for entry in result.draft.entries]
        if result.spec:
            (self.root / "specs").mkdir(exist_ok=True)
            write_atomic(self.root / result.parent, result.spec.encode(), within=self.root)
        kept = put(entries, result)
        self._emit(result, self.shelf.path, kept)
        return ExitCode.COMPLETE

    def write(self, entries: list[Entry], result: PlanResult) -> Path | None:
        """Extend the list, or begin it anew."""
        about = About(result.about.project or self.root.name, result.about.description)
        return write(self.shelf, entries, self.room, replace=self.replace, about=about)

    def keep(self, draft: Draft) -> None:
        """It was paid for: whatever becomes of it here, `ralph plan` can read it again."""
        data = json.dumps({"userStories": draft.entries}, indent=2, ensure_ascii=False)
        write_atomic(plan_room(self.room) / "proposal.json", data.encode() + b"\n", durable=False)

    def _choose(self, result: PlanResult) -> PlanResult | None:
        """One letter: the plan as it is or as it was edited; None: it is thrown away."""
        while True:
            key = click.prompt(_KEYS, type=_CHOICE, show_choices=False, err=True)
            if key == "a":
                return result
            if key == "q":
                return None
            result = self._edited(result)
            self._show(result)

    def _edited(self, result: PlanResult) -> PlanResult:
        """The same as the person wants it; what cannot be read is said, and nothing is lost."""
        text = json.dumps(result.draft.entries, indent=2, ensure_ascii=False) + "\n"
        written = click.edit(text, extension=".json")
        if written is None or written == text:
            return result
        try:
            entries = [{**entry, "passes": False} for entry in json.loads(written)]
            return result._replace(draft=examined(entries, self.base), refused=())
        except (RalphError, ValueError, TypeError) as error:
            words = error.message if isinstance(error, RalphError) else str(error)
            output.error(f"what you wrote cannot be used: {one_line(words, 500)}", "press e again")
            return result

    def _sizes(self, draft: Draft) -> list[str]:
        pairs = zip(draft.stories, draft.entries, strict=True)
        return [size_of(story, _places(entry), self.root) for story, entry in pairs]

    def _estimate(self, draft: Draft) -> Estimate:
        return estimated(self._sizes(draft), past_stories(self.setup.project, self.shelf.stories))

    def _show(self, result: PlanResult) -> None:
        if not self.as_json:
            output.emit_lines(map(output.safe, self._lines(result)))

    def _lines(self, result: PlanResult) -> Iterator[str]:
        draft = result.draft
        yield from table(draft.stories, self._sizes(draft), draft.remarks)
        if any(story.depends_on for story in draft.stories):
            yield from ("", *tree(draft.stories))
        yield ""
        yield from _row("estimate", self._estimate(draft).words())
        if result.starts:
            yield from _row("cost", f"this plan: {spent_words(result.dollars, result.unpriced)}")
        for line in draft.told:
            yield from _row("note", line)
        for line in as_lines(draft.remarks):
            yield from _row("!", line)

    # --- trying, and what is written ---

    def _try(self, result: PlanResult) -> PlanResult:
        """Run the proposed commands where a person said yes to that; those that cannot start go."""
        from ralphloop.plan.tryout import NOT_TRIED, box_for, try_all

        commands = [story for story in result.draft.stories if story.verify]
        marks = {story.id: NOT_TRIED for story in commands}
        trying = self.trying
        if not commands or not (trying or self.asking):
            return result._replace(tried=tuple(marks.items()))
        box, where = box_for(self.setup)
        if not trying:
            words = f"Run {counted(len(commands), 'verify command')} once now, {where}?"
            trying = click.confirm(words, default=False, err=True)
        if not trying:
            return result._replace(tried=tuple(marks.items()))
        output.note(f"trying {where}")
        entries = {str(entry["id"]): entry for entry in result.draft.entries}
        for one in try_all(self.setup, result.draft.stories, box, output.note):
            marks[one.story] = one.mark
            output.note(
                f"  {label(one.story)}: {one.mark or f'refused, it cannot start: {one.words}'}"
            )
            if not one.mark:
                del marks[one.story]
                entries[one.story] = {k: v for k, v in entries[one.story].items() if k != "verify"}
        draft = examined(list(entries.values()), self.base)
        return result._replace(draft=draft, tried=tuple(marks.items()))

    def _finished(self, entry: Entry, result: PlanResult) -> Entry:
        more: Entry = {}
        if mark := dict(result.tried).get(str(entry["id"])):
            more["verifyTried"] = mark
        if result.parent and "parent_spec" not in entry:
            more["parent_spec"] = result.parent
        return {**{k: v for k, v in entry.items() if k != "passes"}, **more, "passes": False}

    def _emit(self, result: PlanResult, written: Path | None, kept: Path | None) -> None:
        draft = result.draft
        if self.as_json:
            output.emit_json({
                "kind": result.kind,
                "stories": [self._finished(entry, result) for entry in draft.entries],
                "sizes": dict(zip((s.id for s in draft.stories), self._sizes(draft), strict=True)),
                "remarks": [one._asdict() for one in draft.remarks],
                "notes": draft.told,
                "answers": result.answers,
                "estimate": self._estimate(draft)._asdict(),
                "cost_usd": result.dollars,
                "unpriced": result.unpriced,
                "written": str(written) if written else None,
                "kept": str(kept) if kept else None,
            })  # fmt: skip
        elif written is not None:
            self._say_written(result, written, kept)

    def _say_written(self, result: PlanResult, written: Path, kept: Path | None) -> None:
        name = relative(written, self.root)
        lines = [f"{counted(len(result.draft.entries), 'story')} written to {name}."]
        if kept is not None:
            lines.append(f"The list before: {relative(kept, self.root)}")
        add = ""
        if result.spec:
            lines.append(f"What was asked for, with the answers: {result.parent}")
            add = f"git add {name} {result.parent} && git commit, then "
        output.emit_lines(map(output.safe, lines))
        output.note(f"next: {add}ralph run --dry-run")


def _places(entry: Entry) -> list[str]:
    found = entry.get("touches")
    return [str(one) for one in found] if isinstance(found, list) else []
