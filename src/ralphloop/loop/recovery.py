"""After a crash: nothing runs twice, nothing is forgotten.

An iteration whose agent had ended is judged now: its checks are run again, the agent is not.  One
whose agent was still at work is stopped, read from its transcript, measured and recorded as
interrupted, its cost included.  Effects that were owed are done.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from ralphloop.agents.base import mark_of
from ralphloop.agents.transcript import join_tail, stderr_path
from ralphloop.core.iteration import Result
from ralphloop.core.model import ProcessEnd, Response
from ralphloop.core.story_state import Standing
from ralphloop.journal.records import IterationRecord
from ralphloop.loop.agent import AgentEnd, asking_transcript, read_end, with_price
from ralphloop.loop.begin import Begun, begun_again
from ralphloop.loop.effects import apply_effects, take_back
from ralphloop.loop.judging import Judged, judge, record
from ralphloop.loop.loop import concluded
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps
from ralphloop.proc.tree import stop_tree
from ralphloop.readers import reader_for, reader_name
from ralphloop.room import open_regular, read_regular

_CHUNK = 1 << 16
_STDERR_TAIL = 8_000


def recover(runner: Runner) -> Steps[list[str]]:
    """Bring the journal and the repository in line; returns what was done, in words."""
    done: list[str] = []
    if runner.journal.meta(f"lanes:{runner.run}") is not None:
        return done  # its work is in other trees: `lanes.opening` settles it
    for owing in runner.journal.owed_effects(runner.run):
        yield from apply_effects(runner, owing.n, owing.effects)
        done.append(f"finished what iteration {owing.n} had left to do")
    cuts = runner.journal.unfinished_iterations(runner.run)
    gone = take_back(runner) if cuts else {}  # an agent may have written what the journal says
    done += [f"{story} is open again: {reason}" for story, reason in gone.items()]
    for cut in cuts:
        conclude = partial(concluded, runner)
        done.append((yield from recover_iteration(runner, cut, conclude)))
    return done


def recover_iteration(
    runner: Runner, cut: IterationRecord, conclude: Callable[[Judged], Steps[object]]
) -> Steps[str]:
    """One iteration that another process began, to the end it can have."""
    stopped = stop_tree(cut.pid, cut.pid_started, mark_of(cut.run, cut.n))
    stories, states = runner.story_list(), runner.session.stories
    if stories is not None:  # as it was before the agent: only what we know to have passed has
        known = {name for name, one in states.items() if one.standing is Standing.PASSED}
        stories = stories.with_passes({story.id: story.id in known for story in stories.stories})
    begun, repo = begun_again(runner, cut, stories), runner.setup.repo
    if repo is not None and cut.head and repo.git.attempt("cat-file", "-e", cut.head).returncode:
        # A journal from elsewhere knows commits that are not here.
        begun = msgspec.structs.replace(begun, before=runner.measure.tree())
    if (ended := read_end(runner, cut)) is not None:
        return (yield from _judge_now(runner, begun, ended, conclude))
    reader = reader_name(begun.member.name, begun.member.config.format)
    result = Result(
        end=ProcessEnd(exit_code=None, interrupted=True),
        response=_read_transcript(runner, begun, begun.transcript, reader),
        stopped_because="the supervisor ended before the agent did",
        leftovers=stopped,
    )
    step = record(runner, (yield from judge(runner, begun, result)))
    yield from apply_effects(runner, cut.n, step.effects)
    still = f", stopped {len(stopped)} of its processes" if stopped else ""
    return f"recorded iteration {cut.n} as interrupted{still}"


def _judge_now(
    runner: Runner, begun: Begun, ended: AgentEnd, conclude: Callable[[Judged], Steps[object]]
) -> Steps[str]:
    """Go on where the checks were to begin."""
    crew = (begun.member, *runner.setup.crew)
    named = next((member for member in crew if member.name == ended.agent), begun.member)
    begun = msgspec.structs.replace(begun, member=named, carried=ended.carried)
    result = ended.finished
    if ended.asking:  # cut off while it was asked: what it said by then counts, and is paid
        said = _read_transcript(runner, begun, asking_transcript(begun), result.response.reader)
        result = msgspec.structs.replace(result, asked=said)
    judged = yield from judge(runner, begun, result)
    if judged.cut_short:
        return f"the checks of iteration {begun.number} are still to be run"
    yield from conclude(judged)
    return f"judged iteration {begun.number}, whose agent had ended before its checks did"


def _read_transcript(runner: Runner, begun: Begun, path: Path, name: str) -> Response:
    """What the agent said before it was cut off."""
    reader = reader_for(name)
    stderr = ""
    if path.exists():
        join_tail(path)
        with open_regular(path) as file:
            while chunk := file.read(_CHUNK):
                reader.feed(chunk)
    if (beside := stderr_path(path)).exists():
        stderr = read_regular(beside)[-_STDERR_TAIL:].decode("utf-8", "replace")
    return with_price(runner, begun, reader.finish(exit_code=None, stderr=stderr))
