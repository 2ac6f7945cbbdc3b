"""A story the journal calls passed stays so only while something upholds it.

That is the iteration that made it pass, with its effects done, and, where that owed a commit, a
commit with its mark that HEAD contains: a rebase keeps the mark.  What a person marked stands on
their word, and so does a mark in the story file that HEAD holds when no agent ran since: squashing
commits is theirs to do.  Everything else is open again, and the reason is said.
"""

from __future__ import annotations

from pathlib import Path

from ralphloop.core.events import StoryReopened
from ralphloop.core.grading import Grade
from ralphloop.core.interventions import PassTakenBack, Vouched
from ralphloop.core.story import Story
from ralphloop.core.story_state import Standing, StoryState
from ralphloop.errors import InputError
from ralphloop.journal.records import Passing
from ralphloop.loop.runner import Runner
from ralphloop.stories.source import load


def take_back(runner: Runner, *, agent_ran: bool = True) -> dict[str, str]:
    """Open again what nothing upholds; the reason for each of these stories."""
    file = runner.stories()
    known = {s.id: runner.session.story(s.id) for s in (file.list.stories if file else ())}
    passed = {
        story: state
        for story, state in known.items()
        if state.standing is Standing.PASSED and state.grade != Grade.BY_HAND
    }
    gone = _unproven(runner, passed) if passed else {}
    if gone and not agent_ran:
        gone = _without_word(runner, gone)
    if file is not None and gone:
        file.mark_all(dict.fromkeys(gone, False))
        runner.intervene(PassTakenBack(reasons=gone))
    return gone


def tell_taken_back(runner: Runner, number: int | None, gone: dict[str, str]) -> None:
    """Say it to those who watch."""
    stories = runner.story_list()
    for story, reason in gone.items():
        found = stories.get(story) if stories else None
        title = found.title if found else ""
        runner.bus.emit(StoryReopened(story=story, title=title, reason=reason), number)


def _unproven(runner: Runner, passed: dict[str, StoryState]) -> dict[str, str]:
    proofs = runner.journal.passing_iterations()
    marks = _marks(runner, [proofs[story] for story in passed if story in proofs])
    reasons = {
        story: _missing(runner, state, proofs.get(story), marks) for story, state in passed.items()
    }
    return {story: reason for story, reason in reasons.items() if reason}


def _missing(runner: Runner, state: StoryState, proof: Passing | None, marks: set[str]) -> str:
    """What a pass lacks, in words."""
    if proof is None:
        return "no finished iteration in the journal made it pass"
    committed = proof.commits and not state.commitless and runner.setup.repo is not None
    if not committed or f"{proof.run}/{proof.n}" in marks:
        return ""
    return f"its commit is no longer in {runner.session.frozen.branch or 'HEAD'}"


def _marks(runner: Runner, proofs: list[Passing]) -> set[str]:
    """The iterations whose commits HEAD contains, by one look at its log."""
    repo = runner.setup.repo
    if repo is None or not proofs:
        return set()
    from ralphloop.repo.commit import marks_since

    # Ids sort by the second; two runs in one would be told apart by chance.
    runs = [runner.journal.find_run(name) for name in {proof.run for proof in proofs}]
    known = [run for run in runs if run is not None]
    first = min(known, key=lambda run: run.started_at) if len(known) == len(runs) else None
    return marks_since(repo, first.head if first else "")


def _without_word(runner: Runner, gone: dict[str, str]) -> dict[str, str]:
    """Those that the story file in HEAD does not call passed either."""
    said = {story.id for story in _committed_list(runner) if story.passes}
    vouched = [story for story, reason in gone.items() if story in said and "commit" in reason]
    runner.intervene(Vouched(stories=tuple(vouched)))
    return {story: reason for story, reason in gone.items() if story not in vouched}


def _committed_list(runner: Runner) -> tuple[Story, ...]:
    repo, known = runner.setup.repo, runner.setup.stories
    if repo is None or known is None or not known.path.resolve().is_relative_to(repo.root):
        return ()
    import tempfile

    path = known.path.resolve().relative_to(repo.root).as_posix()
    shown = repo.git.attempt("cat-file", "blob", f"HEAD:{path}")
    with tempfile.TemporaryDirectory(prefix="ralph-") as place:
        copy = Path(place, known.path.name)
        copy.write_bytes(shown.stdout)
        try:
            return load(copy).list.stories
        except InputError:
            return ()  # none is committed there, or none that can be read
