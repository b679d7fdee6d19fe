"""Imports gRPC so that its core keeps its lines about handshakes and lost connections to itself: errors tell of them.

The core reads the variable once, when it is first imported. Whoever sets it, or imports gRPC before, is left alone.
"""

import os
import sys

_VARIABLE = "GRPC_VERBOSITY"

if _VARIABLE not in os.environ and "grpc" not in sys.modules:
    os.environ[_VARIABLE] = "ERROR"
    import grpc  # noqa: F401

    del os.environ[_VARIABLE]  # other processes choose for themselves
