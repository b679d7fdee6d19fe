"""How much of a lane's time steps have that give way to others."""

_MOST_OWED_SECONDS = 0.1
_MOST_AHEAD_SECONDS = 2.0
_LEAST_REST = 0.1  # of the time, that is left to the others


class BackgroundTime:
    """Keeps an account of a lane's seconds while both kinds of steps are wanted.

    Steps that give way are taken when no others are wanted, and all the same as soon as they have had less than their
    share of the time. What they have had ahead counts for a while.
    """

    def __init__(self) -> None:
        self._owed_seconds = 0.0

    @property
    def is_due(self) -> bool:
        """Whether they have had less than their share."""
        return self._owed_seconds > 0

    def note_others(self, seconds: float, share: float) -> None:
        """Notes steps of the others.

        Args:
            seconds: that they took.
            share: of the time, that those have who had to wait meanwhile, 0 to 1.
        """
        owed = self._owed_seconds + seconds * share / max(1.0 - share, _LEAST_REST)
        self._owed_seconds = min(owed, _MOST_OWED_SECONDS)

    def note(self, seconds: float) -> None:
        """Notes steps that give way."""
        self._owed_seconds = max(self._owed_seconds - seconds, -_MOST_AHEAD_SECONDS)
