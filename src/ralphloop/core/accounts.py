"""Which account an agent uses on which machine: one limit is of one account, wherever it is met.

An account is known by a label that its machine gives.  The journal knows both by one name, such as
`claude (work)`; what waits for a reset is known by that.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from ralphloop.core import Value

LONGEST_LABEL = 40
_ANY = ""  # stands for every agent of a machine


class Party(NamedTuple):
    """Whose subscription a start counts against: an agent's, or one of its accounts'."""

    agent: str
    account: str = ""  # its label, where it has one

    @property
    def name(self) -> str:
        """`claude (work)`; the agent alone where its account has no label."""
        return f"{self.agent} ({self.account})" if self.account else self.agent


def party_named(name: str) -> Party:
    """The one that has this name."""
    agent, bracket, account = name.partition(" (")
    has_account = bool(bracket) and account.endswith(")")
    return Party(agent, account[:-1]) if has_account else Party(name)


def account_in(accounts: Mapping[str, str], agent: str) -> str:
    """The label of the account that an agent uses, by those of a machine; empty: it has none."""
    return accounts.get(agent) or accounts.get(_ANY, "")


def of_any_agent(label: str) -> dict[str, str]:
    """The accounts of a machine whose agents share one label."""
    return {_ANY: label} if label else {}


class AgentPlaces(Value, kw_only=True):
    """A machine as those see it who give it work: how many starts at once, with which accounts."""

    slots: int = 1
    accounts: Mapping[str, str] = msgspec.field(default_factory=dict)

    def account(self, agent: str) -> str:
        """The label of the account that an agent uses there."""
        return account_in(self.accounts, agent)

    def with_one(self, agent: str, account: str) -> "AgentPlaces":
        """The same, as a machine has just said it of one agent."""
        return msgspec.structs.replace(self, accounts={**self.accounts, agent: account})


def accounts_of(agent: str, places: Iterable[AgentPlaces]) -> tuple[str, ...]:
    """The accounts with which an agent could work; of one without a label it is the empty one."""
    found = {place.account(agent) for place in places}
    return tuple(sorted(found)) or ("",)
