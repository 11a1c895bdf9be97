# The compiled twin of `streamnb.wire.fields`.
from collections.abc import Sequence
from typing import Any

def read_fields(
    values: list[bytes | None], paths: Sequence[str], bytes_max: int
) -> tuple[list[list[Any]], list[int]]: ...
