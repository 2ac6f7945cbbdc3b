"""The names under which the journal knows agents and their accounts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.accounts import Party, party_named


@given(st.text(min_size=1).filter(lambda name: " (" not in name), st.text())
def test_a_name_says_whose_it_is(agent: str, account: str) -> None:
    """What is written down is read again, whatever letters a label has."""
    assert party_named(Party(agent, account).name) == Party(agent, account)


@pytest.mark.parametrize("name", ["claude", "mine (or yours", "mine)"])
def test_only_a_label_in_brackets_is_an_account(name: str) -> None:
    """An agent alone has none, and its name is as it was."""
    assert party_named(name) == Party(name)
