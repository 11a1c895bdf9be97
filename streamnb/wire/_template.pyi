# The compiled twin of `streamnb.wire.template.filled`.
from collections.abc import Sequence

from streamnb.wire.template import Column

def filled(pieces: Sequence[bytes], columns: Sequence[Column]) -> list[bytes]: ...
