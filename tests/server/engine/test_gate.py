"""The gate of an engine that is alone."""

from server.engine.gate import OpenGate, Turn


def test_an_open_gate_lets_every_lane_through_at_once() -> None:
    gate = OpenGate()

    with gate.work(), gate.work(), gate.turn(1e9) as one, gate.turn(1e9) as other:
        assert one == other == Turn(waited_seconds=0.0, is_alone=True)
