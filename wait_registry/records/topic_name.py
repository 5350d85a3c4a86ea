"""Names that a topic can have."""

from __future__ import annotations

import re
from typing import Final

MAX_TOPIC_LENGTH: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_topic_name(text: str) -> bool:
    """Tell whether Kafka takes this as a topic's name.

    What a record says of topics may be any text. Never ask a broker about one that can't be: beyond 32,767 bytes the
    request itself can't be read, and the broker hangs up, as if it were away.
    """
    return len(text) <= MAX_TOPIC_LENGTH and text not in (".", "..") and _NAME.fullmatch(text) is not None
