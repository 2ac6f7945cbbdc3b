"""Which account an agent uses on which machine: one limit is of one account, wherever it is met.

An account is known by a label that its machine gives.  The name of an agent with it, such as
`claude (work)`, stands where otherwise the agent's own name does: what waits for a reset is known
by that name.
"""

from collections.abc import Iterable, Mapping

import msgspec

from ralphloop.core import Value

LONGEST_LABEL = 40
_ANY = ""  # stands for every agent of a machine


def with_account(agent: str, account: str) -> str:
    """`claude (work)`; the agent alone where its account has no label."""
    return f"{agent} ({account})" if account else agent


def has_account(name: str) -> bool:
    """Whether a name is one of an agent with its account."""
    return name.endswith(")")


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
