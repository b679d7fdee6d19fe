"""Whose turn it is to talk to CUDA, among the threads of a process.

While one thread captures a graph, CUDA lets no other allocate or copy: either call fails, and so does the capture. With
several models on one GPU each has a thread, and another one loads. The GPU takes their work one after the other anyway.
"""

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

device_turn = threading.RLock()


def taking_turns(call: Callable[_P, _T]) -> Callable[_P, _T]:
    """Makes a method of a runner or decoder in device memory wait for its turn."""

    @wraps(call)
    def run(*arguments: _P.args, **options: _P.kwargs) -> _T:
        with device_turn:
            return call(*arguments, **options)

    return run
