"""`babelserve` serves, lists models, checks a bundle, or makes an API key.

Exit codes: 0 stopped by a signal, 2 cannot start, or --check or --list finds faults (lists every one), 3 has lost its
engine (to be started anew).
"""

import gc

# A start makes 110,000 containers, which are no garbage. With a threshold below that the collector looks through all of
# them, which takes 38 ms. With twice this one, faulty bundles of a folder might leave twice as much garbage.
gc.set_threshold(1_000_000)

import asyncio
import faulthandler
import importlib.metadata
import os
import sys
from collections.abc import Sequence

# The modules of numpy call thousands of functions. Where the stack of imports above them happens to fill one of CPython
# 3.11's chunks of frames, each such call maps memory and unmaps it, which takes 45 ms. Here the stack is short.
import numpy as np  # noqa: F401

from server.access.keys import hash_key, new_key
from server.app import serve
from server.errors import BundleError, SettingsError, StartupError
from server.models.first_models import BeginAnew, begin_anew
from server.models.listing import list_models
from server.models.proof import prove_all
from server.settings.command_line import CommandLine, read_settings
from server.telemetry.stderr import in_one_line, reserve_standard_streams, tell
from server.threads import leave_if_busy

EXIT_CANNOT_START = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    reserve_standard_streams()
    faulthandler.enable(os.dup(2))  # 2 itself will lead to the log
    version = _version()
    try:
        command = read_settings(sys.argv[1:] if arguments is None else arguments, os.environ, version)
        if command.check is not None:
            return _check(command)
        if sys.stdout is None and (command.list_models or command.make_key):
            raise SettingsError(["stdout is closed"])
        if command.list_models:
            return _list(command)
        if command.make_key:
            return _make_key()
        asyncio.run(serve(command.settings, version))
    except StartupError as error:
        for fault in error.faults:
            tell(f"babelserve: {in_one_line(fault)}")
        leave_if_busy(EXIT_CANNOT_START)
        return EXIT_CANNOT_START
    except BeginAnew:
        begin_anew()
    leave_if_busy(0)
    return 0


def _check(command: CommandLine) -> int:
    assert command.check is not None
    faults = asyncio.run(prove_all(command.check, print))
    if faults:
        raise BundleError(faults)
    return 0


def _list(command: CommandLine) -> int:
    for line in list_models(command.settings):
        print(in_one_line(line))
    return 0


def _make_key() -> int:
    key = new_key()
    print(f"For the caller, who alone needs it:\n{key}\n")
    print(f'For the file of --keys, below the tenant:\n[[tenants.NAME.keys]]\nsha256 = "{hash_key(key).hex()}"')
    return 0


def _version() -> str:
    try:
        return importlib.metadata.version("babelserve")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
