"""Scripted nights, played through the real readers and core.

A scenario only says what an agent prints and what would be measured; every state, transition and
decision shown comes from the core, so other thresholds move the step at which something happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ralphloop.core import status
from ralphloop.core.model import (
    Analysis,
    CheckResult,
    CheckStatus,
    Circuit,
    Decision,
    Evidence,
    ExitDecision,
    ProcessEnd,
    Status,
    StatusBlock,
    StoryFacts,
    TestsStatus,
    Value,
    WorkType,
)
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import Happening, RunState, advance, reset_circuit
from ralphloop.readers import read

_MINUTE = 60.0


class Turn(Value, kw_only=True):
    """One scripted iteration, or a reset by a person."""

    says: str  # one line for the screen
    output: str = ""
    exit_code: int = 0
    evidence: Evidence = Evidence()
    reset: bool = False


class Scenario(Value, kw_only=True):
    title: str
    stories: int | None
    turn: Callable[[int, RunState], Turn | None]  # step from 1, state before; None: the end
    past_open: bool = False  # go on after the circuit opened, to show the reset


class Played(Value, kw_only=True):
    """One step as the core judged it."""

    number: int
    turn: Turn
    state: RunState
    analysis: Analysis | None = None
    decision: Decision | None = None


def play(scenario: Scenario, policy: Policy, *, most: int = 40) -> Iterator[Played]:
    """Play until the decision is not to continue, or the script ends."""
    state, passed = RunState(), 0
    for number in range(1, most + 1):
        turn = scenario.turn(number, state)
        if turn is None:
            return
        if turn.reset:
            state = reset_circuit(state, at=number * _MINUTE)
            yield Played(number=number, turn=turn, state=state)
            continue
        happening = Happening(
            response=read(turn.output.encode(), exit_code=turn.exit_code),
            evidence=turn.evidence,
            end=ProcessEnd(exit_code=turn.exit_code),
            facts=StoryFacts(total=scenario.stories, passed=passed),
            at=number * _MINUTE,
        )
        step = advance(state, happening, policy)
        state, passed = step.state, passed + (turn.evidence.stories_passed or 0)
        yield Played(
            number=number,
            turn=turn,
            state=state,
            analysis=step.analysis,
            decision=step.decision,
        )
        if step.decision.word is not ExitDecision.CONTINUE and not scenario.past_open:
            return


def _answer(words: str, **fields: object) -> str:
    block = StatusBlock(
        status=Status.IN_PROGRESS,
        tasks_completed=0,
        files_modified=0,
        tests_status=TestsStatus.NOT_RUN,
        work_type=WorkType.IMPLEMENTATION,
        recommendation="go on",
    )
    changed = status.render(_replaced(block, fields))
    return f"{words}\n\n{changed}\n"


def _replaced(block: StatusBlock, fields: dict[str, object]) -> StatusBlock:
    import msgspec

    return msgspec.structs.replace(block, **fields)


def _idle(number: int) -> Turn:
    return Turn(
        says="looks around, changes nothing",
        output=_answer(f"I looked at the code once more, part {number} of my survey."),
        evidence=Evidence(files_changed=0, commits=0),
    )


def _work(number: int) -> Turn:
    return Turn(
        says="changes two files",
        output=_answer(f"Implemented part {number}.", files_modified=2),
        evidence=Evidence(files_changed=2, commits=1, tree=f"tree-{number}"),
    )


def _failing(number: int) -> Turn:
    error = f"TypeError: unsupported operand type(s) for +: 'int' and 'str' (total.py:{number}0)"
    return Turn(
        says="changes a file, meets the same error",
        output=_answer(
            f"Tried attempt {number}.\n\n{error}",
            files_modified=1,
            tests_status=TestsStatus.FAILING,
        ),
        evidence=Evidence(
            files_changed=1,
            commits=1,
            tree=f"tree-{number}",
            checks=(CheckResult(name="tests", status=CheckStatus.FAILED),),
        ),
    )


def _passing(number: int, *, total: int) -> Turn:
    last = number >= total
    return Turn(
        says="finishes a story" + (", says the project is done" if last else ""),
        output=_answer(
            "All stories are complete." if last else f"Story {number} is implemented.",
            status=Status.COMPLETE,
            tasks_completed=1,
            files_modified=2,
            tests_status=TestsStatus.PASSING,
            exit_signal=last,
        ),
        evidence=Evidence(
            files_changed=2,
            commits=1,
            tree=f"tree-{number}",
            checks=(CheckResult(name="tests", status=CheckStatus.PASSED),),
            stories_passed=1,
        ),
    )


def _testing(number: int) -> Turn:
    return Turn(
        says="writes tests only",
        output=_answer(f"Added case {number}.", files_modified=1, work_type=WorkType.TESTING),
        evidence=Evidence(
            files_changed=1,
            commits=1,
            tree=f"tree-{number}",
            work_files=(f"tests/test_part_{number}.py",),
        ),
    )


def _false_done(number: int) -> Turn:
    return Turn(
        says="says done, the check disagrees",
        output=_answer(
            "Everything is implemented and all tests pass.",
            status=Status.COMPLETE,
            files_modified=1,
            tests_status=TestsStatus.PASSING,
            exit_signal=True,
        ),
        evidence=Evidence(
            files_changed=1,
            commits=0,
            tree=f"tree-{number}",
            checks=(CheckResult(name="tests", status=CheckStatus.FAILED),),
        ),
    )


def _wants_more(number: int) -> Turn:
    turn = _passing(number, total=1)
    return Turn(
        says="all stories pass, but EXIT_SIGNAL is false, then true",
        output=turn.output if number > 1 else turn.output.replace("SIGNAL: true", "SIGNAL: false"),
        evidence=turn.evidence if number == 1 else Evidence(files_changed=0, commits=0),
    )


def _blocked(_: int) -> Turn:
    return Turn(
        says="is blocked",
        output=_answer(
            "The payment sandbox needs credentials that are not in the repository.",
            status=Status.BLOCKED,
            recommendation="Provide PAYMENT_SANDBOX_KEY",
        ),
        evidence=Evidence(files_changed=0, commits=0),
    )


def _oscillating(number: int) -> Turn:
    return Turn(
        says="undoes what it did before" if number > 2 else "changes a file",
        output=_answer(f"Changed the parser, take {number}.", files_modified=1),
        evidence=Evidence(files_changed=1, commits=1, tree=f"tree-{number % 2}"),
    )


def _overloaded(number: int) -> Turn:
    if number > 4:
        return _work(number)
    line = (
        '{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error",'
        '"api_error_status":529,"result":"API Error: 529 Overloaded","session_id":"s",'
        '"num_turns":1}'
    )
    return Turn(
        says="the API is overloaded",
        output=line,
        exit_code=1,
        evidence=Evidence(files_changed=0, commits=0),
    )


def _decline(number: int) -> Turn:
    if number <= 4:
        turn = _work(number)
        return Turn(
            says="works and explains at length",
            output="A long explanation of what was done and why. " * 40 + turn.output,
            evidence=turn.evidence,
        )
    return Turn(says="says almost nothing", output="ok", evidence=Evidence(files_changed=0))


def _after_reset(number: int, state: RunState) -> Turn | None:
    """Idle until the circuit is open and once more, then a person resets it and work goes on."""
    circuit = state.breaker
    if circuit.opened_count == 0:
        return _idle(number)
    since = state.starts - circuit.history[-1].iteration
    if circuit.circuit is Circuit.OPEN:
        by_hand = Turn(says="a person runs `ralph circuit reset`", reset=True)
        return by_hand if since else _idle(number)
    return _work(number) if since < 2 else None


def _until(turn: Callable[[int], Turn], last: int) -> Callable[[int, RunState], Turn | None]:
    return lambda number, _: turn(number) if number <= last else None


SCENARIOS: dict[str, Scenario] = {
    "no_progress": Scenario(
        title="the agent talks and changes nothing", stories=3, turn=_until(_idle, 20)
    ),
    "same_error": Scenario(
        title="files change every time, the error stays", stories=3, turn=_until(_failing, 20)
    ),
    "reset": Scenario(
        title="OPEN, then a manual reset", stories=3, turn=_after_reset, past_open=True
    ),
    "recover": Scenario(
        title="progress in HALF_OPEN closes the circuit",
        stories=3,
        turn=_until(lambda n: _work(n) if n % 4 == 0 else _idle(n), 9),
    ),
    "complete": Scenario(
        title="three stories pass one after the other",
        stories=3,
        turn=_until(lambda n: _passing(n, total=3), 3),
    ),
    "testing": Scenario(
        title="the last open story only ever gets tests", stories=1, turn=_until(_testing, 20)
    ),
    "exit_signal": Scenario(
        title="the agent's EXIT_SIGNAL has the last word", stories=1, turn=_until(_wants_more, 2)
    ),
    "false_done": Scenario(
        title="done is claimed, the checks fail", stories=None, turn=_until(_false_done, 5)
    ),
    "blocked": Scenario(
        title="the only story waits for a person", stories=1, turn=_until(_blocked, 5)
    ),
    "oscillation": Scenario(
        title="to and fro between two states", stories=3, turn=_until(_oscillating, 20)
    ),
    "overloaded": Scenario(
        title="API failures never move the circuit", stories=3, turn=_until(_overloaded, 6)
    ),
    "output_decline": Scenario(title="the answers dry up", stories=3, turn=_until(_decline, 6)),
}
