"""Which engines of a process run anything: a lane that has nobody beside it may use the cores of all."""


class BusyEngines:
    """Shared by the engines of a process; may be told and asked by any thread."""

    def __init__(self) -> None:
        self._busy: set[object] = set()

    def note(self, engine: object, *, is_busy: bool) -> None:
        """Notes whether an engine, by whatever stands for it, runs anything."""
        if is_busy:
            self._busy.add(engine)
        else:
            self._busy.discard(engine)

    def is_only(self, engine: object) -> bool:
        """Says whether no engine but this one runs anything."""
        return self._busy <= {engine}
