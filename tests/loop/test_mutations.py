"""Each guard is what holds its scenario: without its one call the scenario ends otherwise.

A mutation replaces one function in the process of the command.  If its scenario still ended as
the rules want, the scenario would prove nothing about the guard.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.loop.guards import BY_NAME, DEAD_CONVERSATION, claude_sandbox, mutated, told


@dataclass(frozen=True)
class Mutation:
    """What is taken out, and which scenario then must not hold."""

    what: str
    code: str
    scenario: str


# The exit gate without one word of one of its rules.
WITHOUT = """\
from ralphloop.core import exit_gate as gate
def without(rule, word):
    whole = getattr(gate, rule)
    setattr(gate, rule, lambda *after: (it for it in whole(*after) if it.word != word))
"""

MUTATIONS = (
    Mutation(
        "the breaker's step",
        "from ralphloop.core import breaker; breaker.step = lambda state, seen, policy: state",
        "no progress",
    ),
    Mutation(
        "the breaker's step, for questions",
        "from ralphloop.core import breaker; breaker.step = lambda state, seen, policy: state",
        "question loop",
    ),
    Mutation(
        "the breaker's step, for growing output",
        "from ralphloop.core import breaker; breaker.step = lambda state, seen, policy: state",
        "growing output",
    ),
    Mutation(
        "the breaker's rule in the gate",
        f"{WITHOUT}without('_broken', 'circuit_open')\n"
        "from ralphloop.loop import loop; loop.reason_to_stop = lambda *_: None",
        "empty commits",
    ),
    Mutation(
        "the count of equal errors",
        "from ralphloop.core import breaker; from msgspec.structs import replace\n"
        "whole = breaker.step\n"
        "breaker.step = lambda was, *rest: whole(replace(was, same_error=0), *rest)",
        "same error",
    ),
    Mutation(
        "the memory of trees",
        "from ralphloop.core import progress\n"
        "progress.remember = lambda memory, evidence, progress: memory",
        "oscillation",
    ),
    Mutation(
        "the look at several iterations together",
        "from ralphloop.core import progress\n"
        "progress.treading_water = lambda trail, evidence, policy: ''",
        "a counter that goes up",
    ),
    Mutation(
        "the distrust of claimed files",
        "from ralphloop.core import progress; from msgspec.structs import replace\n"
        "whole, nothing = progress.assess, dict(files_changed=None, tree=None)\n"
        "progress.assess = lambda seen, *rest: whole(replace(seen, **nothing), *rest)",
        "claimed files",
    ),
    Mutation(
        "the second set-aside in a row",
        "from ralphloop.core import breaker\n"
        "breaker.open_now = lambda state, reason, **more: breaker.reset(state, iteration=0)",
        "two idle stories",
    ),
    Mutation(
        "the checks",
        "import ralphloop.loop.judging as judging\n"
        "async def none(run, workspace, begun, after, evidence):\n"
        "    return judging._Checked(judging.replace(evidence, checks=()), workspace)\n"
        "judging._checked = none",
        "false done, checks red",
    ),
    Mutation(
        "setting aside",
        "import ralphloop.core.step as step\n"
        "step._quarantined = lambda state, key, one, decision: state",
        "false done, silent checks",
    ),
    Mutation(
        "the demand for a change",
        "import ralphloop.core.step as step, msgspec\n"
        "whole = step.judge_story\n"
        "step.judge_story = lambda p: whole(msgspec.structs.replace(p, changed=True))",
        "false done, nothing changed",
    ),
    Mutation(
        "the warning of a decline",
        "from ralphloop.core import progress\n"
        "progress.output_decline = lambda chars, earlier, percent: None",
        "shrinking output, strict",
    ),
    Mutation(
        "the gate's rule for errors",
        f"{WITHOUT}without('_broken', 'error')",
        "fatal error",
    ),
    Mutation(
        "the count of failed starts",
        f"{WITHOUT}without('_broken', 'error')",
        "startup errors",
    ),
    Mutation(
        "the count of paid failures",
        "from ralphloop.core import policy; policy.PAID_FAILURES = 10**9",
        "paid infrastructure failures",
    ),
    Mutation(
        "the wait for a quota",
        "import ralphloop.loop.loop as loop\n"
        "async def no_wait(*args): return None\n"
        "loop.wait_after = no_wait; loop.all_away = lambda run: None",
        "usage limit, no wait",
    ),
    Mutation(
        "the comparison of a wait with the time left",
        "import ralphloop.loop.loop as loop, ralphloop.loop.waiting as waiting\n"
        "async def no_sleep(*args, **more): return None\n"
        "waiting._refuse = lambda *args: None; waiting._sleep = no_sleep\n"
        "loop.all_away = lambda run: None",
        "usage limit beyond the time",
    ),
    Mutation(
        "the setting to stop at a quota",
        f"{WITHOUT}without('_used_up', 'usage_limit')\n"
        "import ralphloop.loop.loop as loop, ralphloop.loop.waiting as waiting\n"
        "async def no_sleep(*args, **more): return None\n"
        "waiting._sleep = no_sleep; loop.all_away = lambda run: None",
        "usage limit, stop",
    ),
    Mutation(
        "the rule for test-only work",
        f"{WITHOUT}without('_used_up', 'test_saturation')",
        "test-only",
    ),
    Mutation(
        "the wall clock",
        "from ralphloop.proc.child import Clocks; Clocks.out_of_time = False",
        "hang",
    ),
    Mutation(
        "the stall clock",
        "from ralphloop.proc.child import Clocks\n"
        "async def never(self, at, probe): return False\n"
        "Clocks.is_stalled = never",
        "silence after words",
    ),
    Mutation(
        "the count of silent starts",
        "import ralphloop.core.policy as policy, ralphloop.core.step as step\n"
        "policy.SILENT_STALLS = step.SILENT_STALLS = 4",
        "silence from the start",
    ),
    Mutation(
        "the search for children",
        "from ralphloop.proc.tree import ProcessTree\nProcessTree.is_empty = lambda self: True",
        "children left behind",
    ),
    Mutation(
        "the budget",
        "import ralphloop.loop.loop as loop, ralphloop.core.policy as policy\n"
        "loop.reached = policy.reached = lambda *args: None",
        "budget",
    ),
    Mutation(
        "the limit of iterations",
        f"{WITHOUT}without('_used_up', 'max_iterations')\n"
        "import ralphloop.loop.loop as loop; loop.reached = lambda *args: None",
        "max iterations",
    ),
    Mutation(
        "the limit of time",
        "import ralphloop.loop.loop as loop, ralphloop.loop.agent as agent\n"
        "import ralphloop.loop.waiting as waiting, ralphloop.core.policy as policy\n"
        "loop.reached = policy.reached = agent.reached = lambda *args: None\n"
        "waiting._refuse = lambda *args: None",
        "max time",
    ),
    Mutation(
        "the limit of starts an hour",
        "from ralphloop.loop.run import Run; Run.free_at = lambda run: None",
        "calls per hour",
    ),
    Mutation(
        "the look for weakened tests",
        "import ralphloop.loop.trying as trying, msgspec\n"
        "from ralphloop.core.proof import Trial\n"
        "async def blind(run, place, begun, after, evidence):\n"
        "    seen = dict(trial=Trial(), checked_tree=after.tree)\n"
        "    return trying.Tried(evidence=msgspec.structs.replace(evidence, **seen))\n"
        "trying.try_story = blind",
        "weakened tests",
    ),
    Mutation(
        "putting marks back",
        "import ralphloop.loop.repair as repair\nrepair.compare = lambda before, after: ({}, {})",
        "passes flipped",
    ),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_without_the_guard_its_scenario_does_not_hold(tmp_path: Path, mutation: Mutation) -> None:
    """The agent is started more often, or the command ends otherwise."""
    guard = BY_NAME[mutation.scenario]
    box = guard.sandbox(tmp_path)
    done = guard.run(box, mutation=mutation.code)
    assert guard.faults(box, done) != [], told(done)
    assert done.code != 70, told(done)


def test_without_forgetting_it_a_dead_conversation_is_resumed_again(tmp_path: Path) -> None:
    """Remembered for ever, the dead conversation ends the run."""
    box = claude_sandbox(
        tmp_path, DEAD_CONVERSATION, toml='context = "resume"\nask_for_status = false\n'
    )
    mutation = (
        "from msgspec.structs import replace\n"
        "import ralphloop.core.story_after as story_after\n"
        "real = story_after._worked_on\n"
        "from ralphloop.core.run_state import Conversation\n"
        "dead = Conversation(id='s-1', agent='claude')\n"
        "story_after._worked_on = lambda *args: replace(real(*args), conversation=dead)"
    )
    assert mutated(box, mutation).code == 69


# Scenarios that differ from a mutated one in nothing the guard looks at.
VARIATIONS = {
    "no progress, strict": "no progress",
    "oscillation in commits": "oscillation",
    "silent exits": "no progress",
    "crashing after words": "no progress",
    "billing": "fatal error",
    "unknown model, said by a gateway": "fatal error",
    "the same failing address, another id": "same error",
    "usage limit, waited for": "usage limit, no wait",
    "a counter that goes up, two stories": "a counter that goes up",
    "trivial edits under a red check": "a counter that goes up",
    "to and fro, with a line in the notes": "a counter that goes up",
    "another question each time": "a counter that goes up",
    "comments only": "a counter that goes up",
}


def test_every_guard_is_mutated() -> None:
    """No scenario stands without a mutation that shows what holds it."""
    mutated_scenarios = {mutation.scenario for mutation in MUTATIONS}
    assert set(VARIATIONS.values()) <= mutated_scenarios
    assert mutated_scenarios | set(VARIATIONS) == set(BY_NAME)
