"""A plan on the desk: shown, edited, tried, and written once it is accepted.

Nothing is written before; `--yes` stands for accepting, and not for running what was proposed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
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
from ralphloop.plan import outlook
from ralphloop.plan.convert import Entry
from ralphloop.plan.draft import Draft, Shelf, examined, plan_room, write
from ralphloop.project import relative
from ralphloop.stories.lint import as_lines
from ralphloop.stories.names import label
from ralphloop.text.plain import counted, one_line

if TYPE_CHECKING:
    from ralphloop.plan.proposal import Question

_KEYS = "[a]ccept, [e]dit, or [q]uit and throw it away"
_CHOICE = click.Choice(["a", "e", "q"], case_sensitive=False)
_row = partial(output.row, width=10)


class PlanResult(NamedTuple):
    """A plan, and what is known of how it came about."""

    draft: Draft
    kind: str
    about: Mapping[str, str] = {}  # what its source says of the whole
    refused: tuple[str, ...] = ()
    answers: tuple[Question, ...] = ()
    spec: tuple[str, str] = "", ""  # a text that the stories lean on, and where it is to stand
    dollars: float = 0.0
    unpriced: int = 0
    starts: int = 0


class PlanDesk:
    """Who can be asked, and what may be done with a plan."""

    def __init__(self, setup: Setup, wanted: Mapping[str, object], shelf: Shelf) -> None:
        self.setup, self.shelf, self.root = setup, shelf, setup.project.root
        self.as_json, self.yes = bool(wanted["as_json"]), bool(wanted["yes"])
        self.dry_run, self.trying = bool(wanted["dry_run"]), bool(wanted["trying"])
        self.asking = not (self.yes or self.as_json) and sys.stdin.isatty() and sys.stderr.isatty()
        sample = sample_stories()
        self.replace = wanted["replace"] or all(one in sample for one in shelf.listing.entries)
        # What new stories have to get along with.
        self.base = shelf._replace(stories=()) if self.replace else shelf

    def insist_on_reader(self) -> None:
        """End here where a plan could be neither accepted nor printed."""
        if not (self.asking or self.yes or self.as_json or self.dry_run):
            ways = "Add --yes, --json, --dry-run or --questions FILE."
            raise UsageError("nobody can be asked here", ways)

    def settle(
        self, found: PlanResult, put: Callable[[list[Entry]], Path | None] | None = None
    ) -> int:
        """Show it, let it be edited, and write it once it is accepted."""
        self.insist_on_reader()
        if not found.draft.entries:
            output.emit_lines([*map(output.safe, found.draft.told), "There is nothing to add."])
            return ExitCode.COMPLETE
        self._show(found)
        result = None if self.dry_run or (self.as_json and not self.yes) else self._accepted(found)
        if result is None:
            self._emit(found, None, None)
            return ExitCode.COMPLETE
        result = result._replace(draft=self._tried(result.draft))
        text, place = result.spec
        if text:
            (self.root / "specs").mkdir(exist_ok=True)
            write_atomic(self.root / place, text.encode(), within=self.root)
        kept = (put or partial(self._write, result))(result.draft.entries)
        self._emit(result, self.shelf.path, kept)
        return ExitCode.COMPLETE

    def _write(self, result: PlanResult, entries: list[Entry]) -> Path | None:
        about = {"project": self.root.name, **result.about}
        room = self.setup.project.directory
        return write(self.shelf, entries, room, replace=bool(self.replace), **about)

    def keep(self, draft: Draft) -> None:
        """It was paid for: whatever becomes of it here, `ralph plan` can read it again."""
        data = json.dumps({"userStories": draft.entries}, indent=2, ensure_ascii=False).encode()
        place = plan_room(self.setup.project.directory)
        write_atomic(place / "proposal.json", data + b"\n", durable=False)

    def _accepted(self, result: PlanResult) -> PlanResult | None:
        """The plan as it is or as it was edited; None: it is thrown away."""
        if self.yes and result.refused:
            kept = relative(self.setup.project.directory / "plan" / "proposal.json", self.root)
            raise InputError(
                f"the linter refuses {counted(len(result.refused), 'thing')} in the proposal",
                f"Nothing was written. Mend {kept} and run: ralph plan {kept} --yes",
            )
        key = "a" if self.yes else ""
        while key != "a":
            key = click.prompt(_KEYS, type=_CHOICE, show_choices=False, err=True)
            if key == "q":
                return None
            if key == "e":
                result = result._replace(draft=self._edited(result.draft))
                self._show(result)
        return result

    def _edited(self, draft: Draft) -> Draft:
        """The same as the person wants it; what cannot be read is said, and nothing is lost."""
        text = json.dumps(draft.entries, indent=2, ensure_ascii=False) + "\n"
        try:
            entries = json.loads(click.edit(text, extension=".json") or text)
            return examined([{**entry, "passes": False} for entry in entries], self.base)
        except (RalphError, ValueError, TypeError) as error:
            words = error.message if isinstance(error, RalphError) else str(error)
            output.error(f"what you wrote cannot be used: {one_line(words, 500)}", "press e again")
            return draft

    def _tried(self, draft: Draft) -> Draft:
        """Run the proposed commands where a person said yes to that; those that cannot start go."""
        commands = [story for story in draft.stories if story.verify]
        entries = {str(entry["id"]): entry for entry in draft.entries}
        for story in commands:
            entries[story.id]["verifyTried"] = outlook.NOT_TRIED
        if not commands or not (self.trying or self.asking):
            return draft
        box, where = outlook.box_for(self.setup)
        question = f"Run {counted(len(commands), 'verify command')} once now, {where}?"
        if not self.trying and not click.confirm(question, default=False, err=True):
            return draft
        output.note(f"trying {where}")
        for name, mark, words in outlook.try_all(self.setup, commands, box, output.note):
            output.note(f"  {label(name)}: {mark or f'refused, it cannot start: {words}'}")
            entries[name]["verifyTried"] = mark
            if not mark:
                del entries[name]["verify"], entries[name]["verifyTried"]
        return examined(draft.entries, self.base, draft.told)

    # --- what is shown ---

    def _sizes(self, draft: Draft) -> list[str]:
        return [
            outlook.size_of(*pair, self.root)
            for pair in zip(draft.stories, draft.entries, strict=True)
        ]

    def _show(self, result: PlanResult) -> None:
        if not self.as_json:
            output.emit_lines(map(output.safe, self._lines(result)))

    def _lines(self, result: PlanResult) -> Iterator[str]:
        draft, sizes = result.draft, self._sizes(result.draft)
        doubted = {one.story for one in draft.remarks}
        yield from outlook.table(draft.stories, sizes, doubted, whole=bool(result.starts))
        if any(story.depends_on for story in draft.stories):
            yield from ("", *outlook.tree(draft.stories))
        yield ""
        past = outlook.past_stories(self.setup.project, self.shelf.stories)
        yield from _row("estimate", outlook.estimated(sizes, past).words())
        if result.starts:
            yield from _row("cost", f"this plan: {spent_words(result.dollars, result.unpriced)}")
        for line in draft.told:
            yield from _row("note", line)
        for line in as_lines(draft.remarks):
            yield from _row("!", line)

    def _emit(self, result: PlanResult, written: Path | None, kept: Path | None) -> None:
        draft, sizes = result.draft, self._sizes(result.draft)
        if self.as_json:
            past = outlook.past_stories(self.setup.project, self.shelf.stories)
            output.emit_json({
                **output.picked(result, "kind", "answers", "unpriced"),
                "stories": draft.entries,
                "sizes": dict(zip((story.id for story in draft.stories), sizes, strict=True)),
                "remarks": [one._asdict() for one in draft.remarks],
                "notes": draft.told,
                "estimate": outlook.estimated(sizes, past)._asdict(),
                "cost_usd": result.dollars,
                "written": str(written) if written else None,
                "kept": str(kept) if kept else None,
            })  # fmt: skip
        elif written is None:
            output.emit_lines(["Nothing was written."])
        else:
            name, add, spec = relative(written, self.root), "", result.spec[1]
            lines = [f"{counted(len(draft.entries), 'story')} written to {name}."]
            lines += [f"The list before: {relative(kept, self.root)}"] if kept else []
            if result.spec[0]:
                lines.append(f"What was asked for, with the answers: {spec}")
                add = f"git add {name} {spec} && git commit, then "
            output.emit_lines(map(output.safe, lines))
            output.note(f"next: {add}ralph run --dry-run")
