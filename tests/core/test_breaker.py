"""The circuit breaker: its rules one by one, then as a state machine against a simple model."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ralphloop.core import breaker
from ralphloop.core.breaker import BreakerInput, BreakerState
from ralphloop.core.model import Circuit
from ralphloop.core.policy import Policy

STANDARD, STRICT = Policy(), Policy(preset="strict")


def run(*seen: str, policy: Policy = STANDARD, state: BreakerState | None = None) -> BreakerState:
    """Fold a row of happenings: idle, work, asks, infra, infra+work, error:NAME, pass+error:NAME."""
    state = state or BreakerState()
    for number, word in enumerate(seen, start=len(state.history) * 1000 + 1):
        state = breaker.step(state, observe(word, number), policy)
    return state


def observe(word: str, number: int) -> BreakerInput:
    """One happening in short: its kind, and the error after a colon."""
    kind, _, error = word.partition(":")
    return BreakerInput(
        iteration=number,
        progress="work" in kind or "pass" in kind or kind == "error",
        infrastructure="infra" in kind,
        waits="asks" in kind,
        error=error or None,
        by_check=kind == "check",
        checked=kind in ("check", "green"),
        relieved="pass" in kind,
        output_declined="output fell by 90 %" if kind == "decline" else None,
    )


def test_S02_AC1_three_idle_iterations_lead_to_half_open() -> None:
    """CLOSED -> HALF_OPEN at the third iteration without progress, not before."""
    assert run("idle", "idle").circuit is Circuit.CLOSED
    assert run("idle", "idle", "idle").circuit is Circuit.HALF_OPEN


def test_SKILL_stuck_no_file_changes_three_iterations_half_open() -> None:
    """SKILL's row "No file changes, 3 iterations" ends in HALF_OPEN with the reason."""
    assert run("work", "idle", "idle", "idle").reason == "no progress in 3 iterations in a row"


def test_S02_AC2_half_open_without_progress_leads_to_open() -> None:
    """HALF_OPEN -> OPEN at the next idle iteration."""
    assert run("idle", "idle", "idle", "idle").circuit is Circuit.OPEN


def test_S02_AC4_reset_returns_to_closed_with_counts_at_zero() -> None:
    """A reset closes the circuit and forgets the counts, not the history."""
    state = breaker.reset(run(*["idle"] * 4), iteration=4)
    assert (state.circuit, state.no_progress, state.same_error) == (Circuit.CLOSED, 0, 0)
    assert [(t.before, t.after) for t in state.history][-1] == (Circuit.OPEN, Circuit.CLOSED)
    assert run("idle", "idle", state=state).circuit is Circuit.CLOSED


def test_a_reset_forgets_the_error() -> None:
    """The state after a reset names no error, and the same one is counted from the start."""
    state = breaker.reset(run(*["error:boom"] * 5), iteration=5)
    assert state.last_error is None
    assert run("error:boom", state=state).same_error == 1
    assert run(*["error:boom"] * 4, state=state).circuit is Circuit.CLOSED


def test_S02_AC5_five_identical_errors_open_the_circuit() -> None:
    """OPEN at the fifth identical error, although files change every time."""
    assert run(*["error:boom"] * 4).circuit is Circuit.CLOSED
    opened = run(*["error:boom"] * 5)
    assert opened.circuit is Circuit.OPEN
    assert opened.reason == "same error 5 times in a row: boom"


def test_SKILL_stuck_same_error_five_iterations_open_from_half_open() -> None:
    """The same-error rule holds in HALF_OPEN too."""
    half_open = BreakerState(circuit=Circuit.HALF_OPEN, same_error=4, last_error="boom")
    assert run("error:boom", state=half_open).circuit is Circuit.OPEN


def test_S02_AC6_progress_in_half_open_closes() -> None:
    """HALF_OPEN -> CLOSED on progress, counts anew from there."""
    state = run("idle", "idle", "idle", "work")
    assert (state.circuit, state.no_progress) == (Circuit.CLOSED, 0)
    assert run("idle", "idle", state=state).circuit is Circuit.CLOSED


def test_S02_AC3_open_stays_open_whatever_happens() -> None:
    """Work, errors and infrastructure after OPEN change nothing."""
    state = run(*["idle"] * 4)
    assert run("work", "error:x", "infra", "idle", state=state) == state


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (["error:a"] * 4 + ["work"] + ["error:a"] * 4, Circuit.CLOSED),
        (["error:a", "error:b"] * 5, Circuit.CLOSED),
        (["error:a"] * 4 + ["pass:a"] + ["error:a"] * 3, Circuit.CLOSED),
        (["error:a"] * 4 + ["pass:a"] + ["error:a"] * 4, Circuit.OPEN),
        (["error:a"] * 3 + ["infra", "infra:b"] + ["error:a"] * 2, Circuit.OPEN),
    ],
    ids=["clean resets", "another resets", "pass restarts at one", "five after it", "infra skips"],
)
def test_what_resets_the_same_error_count(row: list[str], expected: Circuit) -> None:
    """A clean iteration, another error or a pass resets the row; infrastructure does not touch it."""
    assert run(*row).circuit is expected


def test_only_a_look_at_the_checks_moves_the_count_of_their_error() -> None:
    """Iterations without a check run neither raise nor reset it; a green run ends it."""
    between = run("check:E", "work", "check:E", "work", "work", "check:E")
    assert (between.same_error, between.last_error) == (3, "E")
    assert run("check:E", "green", "check:E").same_error == 1
    assert run("error:E", "work", "error:E").same_error == 1  # the agent's own words would tell


def test_infrastructure_neither_counts_nor_breaks_a_row() -> None:
    """Two idle, three outages, one idle: that is three idle ones."""
    assert run("idle", "idle", "infra", "infra", "infra").no_progress == 2
    assert run("idle", "idle", "infra", "infra", "idle").circuit is Circuit.HALF_OPEN
    assert run("idle", "idle", "idle", "infra").circuit is Circuit.HALF_OPEN


def test_progress_before_an_outage_closes_half_open() -> None:
    """Work that was done before the API failed is still work."""
    assert run("idle", "idle", "idle", "infrawork").circuit is Circuit.CLOSED


def test_PRD_thresholds_strict_opens_at_three_idle_iterations() -> None:
    """Preset strict goes straight to OPEN."""
    assert run("idle", "idle", policy=STRICT).circuit is Circuit.CLOSED
    assert run("idle", "idle", "idle", policy=STRICT).circuit is Circuit.OPEN


def test_PRD_thresholds_strict_opens_on_output_decline() -> None:
    """A fall of output opens in strict and only warns in standard."""
    assert run("decline", policy=STRICT).circuit is Circuit.OPEN
    assert run("decline").circuit is Circuit.CLOSED


def test_thresholds_are_configurable() -> None:
    """Other numbers move the step at which it happens; zero switches a rule off."""
    two = Policy(no_progress_threshold=2, same_error_threshold=3)
    assert run("idle", "idle", policy=two).circuit is Circuit.HALF_OPEN
    assert run(*["error:a"] * 3, policy=two).circuit is Circuit.OPEN
    assert run("error:a", policy=Policy(same_error_threshold=1)).circuit is Circuit.OPEN
    off = Policy(no_progress_threshold=0, same_error_threshold=0)
    assert run(*["idle"] * 30, *["error:a"] * 30, policy=off).circuit is Circuit.CLOSED


def test_cool_down_leads_to_half_open_and_a_clock_set_back_does_not_lock() -> None:
    """OPEN -> HALF_OPEN after the cool-down; time running backwards just waits."""
    policy = Policy(cooldown_minutes=30)
    state = breaker.open_now(BreakerState(), "test", iteration=1, at=1_000.0)
    for at, expected in (
        (900.0, Circuit.OPEN),
        (2_799.0, Circuit.OPEN),
        (2_800.0, Circuit.HALF_OPEN),
    ):
        assert breaker.cool_down(state, iteration=2, at=at, policy=policy).circuit is expected
    assert breaker.cool_down(state, iteration=2, at=1e9, policy=STANDARD).circuit is Circuit.OPEN


def test_S03_AC8_a_note_enters_the_history_and_changes_nothing_else() -> None:
    """A BLOCKED story is on record with the breaker."""
    state = breaker.note(BreakerState(), "US-1 is BLOCKED", iteration=3, at=5.0)
    assert state.circuit is Circuit.CLOSED
    assert state.history[-1].reason == "US-1 is BLOCKED"


@pytest.mark.parametrize(
    ("row", "expected", "no_progress"),
    [
        (["asks"] * 9, Circuit.CLOSED, 0),
        (["idle", "idle", "asks", "asks"], Circuit.CLOSED, 2),
        (["idle", "idle", "asks", "idle"], Circuit.HALF_OPEN, 3),
        (["idle"] * 3 + ["asks"] * 3, Circuit.HALF_OPEN, 3),
        (["idle"] * 3 + ["asks", "idle"], Circuit.OPEN, 4),
        (["idle"] * 3 + ["asks", "work"], Circuit.CLOSED, 0),
        (["idle"] * 3 + ["asks+work"], Circuit.CLOSED, 0),
        (["asks:a"] * 5, Circuit.OPEN, 0),
    ],
)
def test_a_question_neither_counts_nor_resets(
    row: list[str], expected: Circuit, no_progress: int
) -> None:
    """A story that begins to wait leaves the circuit as it is; the same error goes on counting."""
    state = run(*row)
    assert (state.circuit, state.no_progress) == (expected, no_progress)


def test_moves_are_what_changed_since_and_no_notes() -> None:
    """A change stays visible under a later note, and one of an earlier time is not told again."""
    before = run("idle", "idle", "idle")
    after = breaker.note(run("idle", state=before), "US-1 is BLOCKED", iteration=9, at=None)
    assert [move.after for move in breaker.moves(BreakerState(), before)] == [Circuit.HALF_OPEN]
    assert [move.after for move in breaker.moves(before, after)] == [Circuit.OPEN]
    assert breaker.moves(after, after) == ()


def test_history_is_bounded() -> None:
    """Ten thousand transitions keep fifty entries."""
    state = BreakerState()
    for number in range(10_000):
        state = breaker.note(state, "x", iteration=number, at=None)
    assert len(state.history) == breaker.MAX_HISTORY
    assert state.history[-1].iteration == 9_999


class BreakerMachine(RuleBasedStateMachine):
    """The breaker against the plainest possible model of its rules."""

    @initialize(
        strict=st.booleans(), idle=st.integers(1, 5), same=st.integers(2, 6), cooldown=st.booleans()
    )
    def begin(self, strict: bool, idle: int, same: int, cooldown: bool) -> None:
        """Choose a policy and start CLOSED."""
        self.policy = Policy(
            preset="strict" if strict else "standard",
            no_progress_threshold=idle,
            same_error_threshold=same,
            cooldown_minutes=10 if cooldown else 0,
        )
        self.state = BreakerState()
        self.expected = Circuit.CLOSED
        self.idle_row: int = 0
        self.error_row: list[str] = []
        self.clock = 0.0
        self.opened_at = 0.0
        self.number = 0

    @rule(
        progress=st.booleans(),
        infrastructure=st.booleans(),
        error=st.sampled_from([None, "a", "b"]),
        relieved=st.booleans(),
        minutes=st.integers(0, 6),
    )
    def iterate(
        self,
        progress: bool,
        infrastructure: bool,
        error: str | None,
        relieved: bool,
        minutes: int,
    ) -> None:
        """One iteration of any kind, some minutes later."""
        self.number += 1
        self.clock += minutes * 60
        before = self.state
        self.state = breaker.step(
            before,
            BreakerInput(
                iteration=self.number,
                progress=progress,
                infrastructure=infrastructure,
                error=error,
                relieved=relieved,
                at=self.clock,
            ),
            self.policy,
        )
        self._cool()
        if self.expected is not Circuit.OPEN:
            self._expect(progress, infrastructure, error, relieved)

    def _cool(self) -> None:
        waited = self.clock - self.opened_at >= self.policy.cooldown_minutes * 60
        if self.expected is Circuit.OPEN and self.policy.cooldown_minutes and waited:
            self.expected = Circuit.HALF_OPEN

    def _expect(
        self, progress: bool, infrastructure: bool, error: str | None, relieved: bool
    ) -> None:
        if infrastructure and not progress:
            return
        self.idle_row = 0 if progress else self.idle_row + 1
        if not infrastructure:
            if error is None:
                self.error_row = []
            elif relieved or self.error_row[-1:] != [error]:
                self.error_row = [error]
            else:
                self.error_row.append(error)
        probing = self.expected is Circuit.HALF_OPEN
        if not infrastructure and len(self.error_row) >= self.policy.same_error_threshold:
            self._open()
        elif probing and progress:
            self.expected = Circuit.CLOSED
        elif probing:
            self._open()
        elif self.idle_row >= self.policy.no_progress_threshold:
            if self.policy.preset == "strict":
                self._open()
            else:
                self.expected = Circuit.HALF_OPEN

    def _open(self) -> None:
        self.expected = Circuit.OPEN
        self.opened_at = self.clock

    @rule()
    def reset(self) -> None:
        """A person resets the circuit."""
        self.state = breaker.reset(self.state, iteration=self.number, at=self.clock)
        self.expected = Circuit.CLOSED
        self.idle_row, self.error_row = 0, []

    @invariant()
    def agrees_with_the_model(self) -> None:
        """State and model never part."""
        assert self.state.circuit is self.expected

    @invariant()
    def every_opening_has_a_rule_as_its_reason(self) -> None:
        """OPEN only by a rule."""
        for transition in self.state.history:
            if transition.after is Circuit.OPEN:
                assert transition.reason.startswith(("same error", "still no", "no progress"))

    @invariant()
    def open_is_left_only_by_reset_or_cool_down(self) -> None:
        """OPEN is never left by itself."""
        for transition in self.state.history:
            if transition.before is Circuit.OPEN:
                assert transition.reason.startswith(("manual reset", "cool-down"))


BreakerMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
test_the_breaker_follows_its_model = BreakerMachine.TestCase


def test_only_an_opening_is_counted_as_one() -> None:
    """A fresh circuit has counted nothing; half open is not open, and a note changes no count."""
    fresh = BreakerState()
    assert (fresh.no_progress, fresh.same_error, fresh.opened_count) == (0, 0, 0)
    half = breaker.note(run("idle", "idle", "idle"), "US-1 is BLOCKED", iteration=3, at=None)
    assert (half.circuit, half.opened_count) == (Circuit.HALF_OPEN, 0)
    opened = run("idle", state=half)
    assert (opened.circuit, opened.opened_count) == (Circuit.OPEN, 1)
    closed = breaker.reset(opened, iteration=5)
    assert breaker.open_now(closed, "enough", iteration=6, at=None).opened_count == 2
