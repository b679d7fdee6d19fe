"""A server's process with a keyed network and with faults: `python -m tests.chaos.launch SPEC -- FLAGS`.

SPEC is JSON. With `step_seconds`, `row_seconds` and `habit` the keyed network stands in the real one's place. `faults`
is the file that `tests.chaos.failpoints` reads. Without `sees_hangs` the supervisor does not see that a step hangs.
Nothing of the server is changed but in this process.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

from server import __main__
from server.bundle.bundle import Bundle
from server.models import loading, supervisor
from server.models.loading import Share
from server.settings.settings import Settings
from tests.chaos.failpoints import Faults, FaultyRunner, install
from tests.chaos.keyed_network import KeyedFunction, KeyedRunner


def main(spec: dict[str, Any], flags: list[str]) -> int:
    """Serves as `babelserve` does; returns its exit code."""
    open_real = loading.open_network
    faults = Faults(Path(spec["faults"]))
    install(faults)
    if not spec["sees_hangs"]:
        supervisor._HANG_SECONDS = math.inf

    def open_network(bundle: Bundle, variant: str, settings: Settings, share: Share = loading._ALONE) -> Any:
        runner: Any
        if spec["step_seconds"] is None:
            runner = open_real(bundle, variant, settings, share)
        else:
            function = KeyedFunction(bundle, variant, spec["habit"])
            runner = KeyedRunner(function, spec["step_seconds"], spec["row_seconds"])
        return FaultyRunner(runner, faults)

    loading.open_network = open_network
    return __main__.main(flags)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[3:]))
