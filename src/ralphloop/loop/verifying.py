"""A story's own command that was red and is green: is that the story's doing?

It proves the story only both ways: green with every file that judges as it was when the run first
started, and red again with the product as it was.  Tests that came with the story are held back in
neither; a command that names them is proven by them, like any check.  A changed file of which
nobody can say whose word it is is taken back too: where that makes the command red, it is shown.
"""

import shlex
import time

from msgspec.structs import replace

from ralphloop.core import proof
from ralphloop.core.grading import VERIFY
from ralphloop.core.model import CheckResult, CheckStatus, Evidence
from ralphloop.core.proof import OwnCommand, TestReport, Trial
from ralphloop.core.run_state import verify_was
from ralphloop.loop.bench import Bench
from ralphloop.loop.exchanging import Impossible, OldSide, StoryOnTrial, exchanged
from ralphloop.loop.missing import absence_in, peeking_in
from ralphloop.loop.mutating import find_asked_answers, try_mutants
from ralphloop.repo.snapshot import Change

VERIFY_AS_IT_WAS = "verify with the old tests and the new code"
VERIFY_WITHOUT_IT = "verify with the new tests and the old code"
VERIFY_WITHOUT_FILE = "verify without the change of {}"
_MOST_ALONE = 3  # files that are taken back one by one


async def try_verify(story: StoryOnTrial, evidence: Evidence, *, is_proven: bool) -> Trial:
    """What the story's own command is worth, where it was red before and is green.

    One that found no test before can only prove by tests that came with the story, and need not
    where the checks have done so.
    """
    named = story.begun.story
    state = story.begun.state
    now = next((it for it in evidence.checks or () if it.name == VERIFY), None)
    seen = state.base.verify_before
    if named is None or not named.verify or now is None or seen is None:
        return Trial()
    if now.status is not CheckStatus.PASSED:
        return Trial()
    began = time.monotonic()
    was = verify_was(state, named)
    bench = Bench(story, named.verify, now)
    trial = Trial()
    if was is CheckStatus.FAILED and not _names_new_tests(bench):
        red = TestReport(failed=dict.fromkeys(seen.failed, 1), errors=dict.fromkeys(seen.broken, 1))
        trial = await _VerifyOnTrial(bench, red).tried()
    elif was in (CheckStatus.FAILED, CheckStatus.NO_TESTS):
        found = Trial() if is_proven else await _try_new_tests(bench)
        trial = found.joined(Trial(discounted=(VERIFY,)))
    beside = Trial(mutation=find_asked_answers(bench), peeking=peeking_in(bench))
    return trial.joined(beside).joined(Trial(took_s=time.monotonic() - began))


def _names_new_tests(bench: Bench) -> bool:
    """Whether the command names a file of tests that came with the story."""
    prefix = bench.story.prefix
    new = {it.path.removeprefix(prefix) for it in bench.sides.tests if it.before is None}
    named = {word.partition("::")[0].removeprefix("./") for word in bench.argv}
    modules = {f"{word.replace('.', '/')}.py" for word in named}
    return not new.isdisjoint(named | modules)


async def _try_new_tests(bench: Bench) -> Trial:
    """What the tests are worth that a command found only once the story had written them."""
    if bench.now.report is None or not bench.sides.code:
        return Trial()
    try:
        bench.begin(alone=False, exchanged=bench.sides.code)
        with exchanged(bench.story, VERIFY_WITHOUT_IT, bench.stubbed_code()):
            new = await bench.run_verify()
            lucky = await _by_chance(bench, new)
    except Impossible as why:
        return Trial(untried=(_untried(why),))
    found = proof.new_tests_of(bench.now.report, new, lucky, settings=bench.sides.has_settings)
    absence = absence_in(bench, None, found)
    if found.proven and not absence.may_be_all:
        return found
    mutation = await try_mutants(bench, None)
    return absence.without_proof(found, mutation).joined(Trial(mutation=mutation))


async def _by_chance(bench: Bench, new: CheckResult | None) -> frozenset[str]:
    """Tests that fail without the code, and do not do so a second time."""
    end = bench.now.report
    if end is None or new is None or new.report is None:
        return frozenset()
    names = proof.failing_without(end, new.report)
    again = (await bench.run_verify()) if names else None
    failed = again.report.failed if again and again.report else {}
    return frozenset(name for name in names if name not in failed)


def _untried(why: Impossible) -> str:
    words = str(why) or "experiments are off"
    return f"verify was not tried with the tests as they were: {words}"


class _VerifyOnTrial:
    def __init__(self, bench: Bench, red: TestReport) -> None:
        self.bench = bench
        self.red = red
        self.judges = bench.old_judges()

    async def tried(self) -> Trial:
        bench = self.bench
        own = OwnCommand(
            command=shlex.join(bench.argv),
            red=self.red,
            end=bench.now.report,
            tests_changed=bool(self.judges.changes),
            had_changed=bool(self.judges.changes),
            changed=tuple(change.path for change in self.judges.changes),
            is_unsure=bench.sides.tests_in_code,
            settings_changed=bench.sides.has_settings,
        )
        untried: tuple[str, ...] = ()
        if self._is_alone:  # only the product changed: it was seen red without that
            return proof.own_command(own, VERIFY)
        try:
            own = await self._both_ways(own)
        except Impossible as why:
            if self.judges.changes:
                untried = (_untried(why),)
        return proof.own_command(own, VERIFY).joined(Trial(untried=untried))

    @property
    def _is_alone(self) -> bool:
        sides = self.bench.sides
        return not (self.judges.changes or sides.has_tests or sides.unknown)

    async def _both_ways(self, own: OwnCommand) -> OwnCommand:
        bench = self.bench
        sides = bench.sides
        bench.begin(alone=False, exchanged=(*self.judges.changes, *sides.tests, *sides.code))
        old = await self._with_old_judges()
        own = replace(own, old_tests=old)
        if not sides.code:
            return replace(own, new_tests=bench.now, nothing_changed=True)
        with exchanged(bench.story, VERIFY_WITHOUT_IT, bench.old_code()):
            new = await bench.run_verify()
            lucky: frozenset[str] = frozenset()
            if old is not None and old.status is not CheckStatus.PASSED:
                lucky = await _by_chance(bench, new)
        own = replace(own, new_tests=new, by_chance=lucky)
        if old is not None and old.status is not CheckStatus.PASSED:
            return own
        return replace(own, needed=await self._needed())

    async def _with_old_judges(self) -> CheckResult | None:
        """With every file that judges as it was; what fails by chance is nobody's fault."""
        bench = self.bench
        if not self.judges.changes:
            return bench.now
        with exchanged(bench.story, VERIFY_AS_IT_WAS, self.judges):
            old = await bench.run_verify()
            if old and old.status is CheckStatus.FAILED and not old.ran_nothing:
                old = await bench.run_verify()
        return old

    async def _needed(self) -> tuple[str, ...]:
        """Files whose change the command needs, and of which nobody can say whose word they are."""
        unknown = self.bench.sides.unknown
        if not unknown or await self._is_green_without(unknown):
            return ()
        alone = [one for one in unknown[:_MOST_ALONE] if not await self._is_green_without([one])]
        return tuple(one.path for one in alone or unknown)

    async def _is_green_without(self, changes: list[Change] | tuple[Change, ...]) -> bool:
        what = VERIFY_WITHOUT_FILE.format(", ".join(one.path for one in changes[:_MOST_ALONE]))
        side: OldSide = self.bench.old_judges(changes)
        with exchanged(self.bench.story, what, side):
            result = await self.bench.run_verify()
        return result is not None and result.status is CheckStatus.PASSED
