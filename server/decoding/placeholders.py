"""What placeholders cost a beam that has lost one, or has one too often."""

from collections.abc import Mapping, Sequence

# In nats, for a placeholder that a beam ends without, and for one that it has too often. With all of them it is seldom
# 6 behind one without; nothing is 100 behind.
DROPPED, INVENTED = 6.0, 100.0


def charge(placeholders: Mapping[int, int], written: Sequence[int], token: int, eos_id: int) -> float:
    """Returns the nats that a beam is charged for its next token.

    Args:
        placeholders: for each id of a placeholder how often the source has it.
        written: the beam's ids.
        token: that it takes; `eos_id` ends it.
    """
    if token == eos_id:
        return DROPPED * sum(max(0, times - written.count(each)) for each, times in placeholders.items())
    return INVENTED if token in placeholders and written.count(token) >= placeholders[token] else 0.0
