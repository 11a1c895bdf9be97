"""Accounts: every offset has one outcome, and accounts survive the way through JSON."""

from __future__ import annotations

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.offsets import Account, Accounts, check_accounts, from_rows, to_rows
from streamnb.base.record import Partition
from streamnb.errors import AccountingError

COUNTS = st.integers(0, 2**40)
ACCOUNTS = st.dictionaries(
    st.builds(Partition, st.text(max_size=5), st.integers(0, 1000)),
    st.builds(Account, *[COUNTS] * 8),
    max_size=5,
)


@pytest.mark.parametrize(
    "outcome", ["scored", "learned_only", "dead_lettered", "tombstones", "unreadable", "gaps"]
)
def test_each_outcome_accounts_for_an_offset(outcome: str) -> None:
    """The balance falls by one per offset accounted for, and goes below 0 if one is counted twice."""
    account = Account(start=5, next_offset=8)
    assert account.balance() == 3
    setattr(account, outcome, 3)
    assert account.balance() == 0
    setattr(account, outcome, 4)
    assert account.balance() == -1


@given(accounts=ACCOUNTS)
def test_accounts_come_back_from_json(accounts: Accounts) -> None:
    """They are equal, and their rows are sorted by topic and number."""
    rows = to_rows(accounts)
    assert from_rows(orjson.loads(orjson.dumps(rows))) == accounts
    assert [(topic, number) for topic, number, _ in rows] == sorted(accounts)


@pytest.mark.parametrize(
    "rows",
    [
        None,
        {},
        [[]],
        [["mail", 0]],
        [["mail", "0", {"start": 0, "next_offset": 0}]],
        [["mail", 0, {"start": 0}]],
        [["mail", 0, {"start": 0, "next_offset": 1.5}]],
        [["mail", 0, {"start": 0, "next_offset": "1"}]],
    ],
)
def test_rows_that_are_not_accounts_are_refused(rows: object) -> None:
    """They are not replaced by accounts that begin at 0."""
    with pytest.raises(msgspec.ValidationError):
        from_rows(rows)


def test_an_account_with_a_negative_number_does_not_add_up() -> None:
    """Although its balance is 0: a record was counted twice and another one not at all."""
    check_accounts({Partition("mail", 0): Account(0, 5, scored=3, gaps=2)})
    with pytest.raises(AccountingError, match="does not add up"):
        check_accounts({Partition("mail", 0): Account(0, 5, scored=7, gaps=-2)})
