"""Secrets among the settings of a Kafka client: which settings are secret, and text that is not printed."""

from __future__ import annotations

_SECRETS = ("password", "secret", "passphrase", "key.pem", "oauthbearer.config", "jaas.config")


def is_secret(name: str, value: object) -> bool:
    """Return whether a client's setting holds a secret: by its name, or as the user of an address.

    Examples
    --------
    >>> is_secret("ssl_key_password", "x"), is_secret("proxy_url", "http://me:x@host"), is_secret("acks", "1")
    (True, True, False)
    """
    words = name.replace("_", ".")
    address = value.partition("://")[2].partition("/")[0] if isinstance(value, str) else ""
    return any(word in words for word in _SECRETS) or "@" in address


class Secret(str):
    """A password whose `repr` is masked, so that printed settings and a client's debug log do not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"
