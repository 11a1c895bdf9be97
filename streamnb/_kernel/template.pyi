# The compiled twin of `streamnb.template.filled`.
from collections.abc import Sequence

from streamnb.template import Column

def filled(pieces: Sequence[bytes], columns: Sequence[Column]) -> list[bytes]: ...
