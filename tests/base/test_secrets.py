"""Which settings of a client are secret, by their name or as the user of an address."""

from __future__ import annotations

import pytest

from streamnb.base import Secret, is_secret


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ssl_key_password", "x", True),
        ("sasl.oauthbearer.config", "x", True),
        ("proxy_url", "http://me:hunter2@proxy:8080", True),
        ("proxy_url", "http://proxy:8080/a@b", False),
        ("proxy_url", "http://proxy:8080", False),
        ("client_id", "me@home", False),
        ("acks", 1, False),
    ],
)
def test_a_secret_is_known_by_its_name_or_as_the_user_of_an_address(
    name: str, value: object, expected: bool
) -> None:
    """An `@` elsewhere is none."""
    assert is_secret(name, value) is expected


def test_a_secret_is_masked_wherever_it_is_printed_in_a_structure() -> None:
    """It is the password itself for a client that reads it."""
    assert repr({"password": Secret("hunter2")}) == "{'password': '***'}"
    assert Secret("hunter2") == "hunter2"
