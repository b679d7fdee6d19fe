"""What the files in deploy/ say of the server must fit the server."""

import re
from pathlib import Path

import pytest

from server import app
from server.settings.settings import Settings

DEPLOY = Path(__file__).parents[1] / "deploy"


@pytest.mark.parametrize(
    ("file", "key"), [("compose.yaml", "stop_grace_period"), ("kubernetes.yaml", "terminationGracePeriodSeconds")]
)
def test_the_server_may_take_its_time_to_stop(file: str, key: str) -> None:
    (grace_seconds,) = re.findall(rf"{key}: (\d+)", (DEPLOY / file).read_text())

    drain_seconds = Settings().drain_delay + Settings().drain_timeout
    last_seconds = app._ENGINE_STOP_SECONDS + app._LAST_CALLS_SECONDS + app._LAST_GRACE_SECONDS
    assert int(grace_seconds) > drain_seconds + last_seconds
