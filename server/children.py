"""Child processes with bounds: what they do with input from strangers costs so much time and memory, and no more.

A thread cannot be ended from outside. A process is killed at its deadline, and when nobody waits for it any more. It
ends with the server, and before any other process if memory is short.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_FILTER_MODE, _ALLOW, _REFUSE, _EPERM = 2, 0x7FFF0000, 0x00050000, 1
# Of the kernel's audit.h, and of its tables of system calls: socket, execve, execveat, ptrace, kill, tgkill, tkill,
# io_uring_setup, pidfd_send_signal, process_vm_writev.
_FORBIDDEN = {
    "x86_64": (0xC000003E, (41, 59, 322, 101, 62, 234, 200, 425, 424, 311)),
    "aarch64": (0xC00000B7, (198, 221, 281, 117, 129, 131, 130, 425, 424, 271)),
}
_X32 = 0x40000000  # numbers from here are those of another way to call an x86_64 kernel
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of a filter


class Bounds(NamedTuple):
    """What a child may take: time by the clock, and memory in bytes; None for any."""

    seconds: float
    memory: int | None


class Ended(NamedTuple):
    """How a child has ended.

    Attributes:
        output: what it has written to standard output.
        code: of its exit; below 0 the signal that has ended it.
        is_late: whether it was killed at its deadline.
    """

    output: bytes
    code: int
    is_late: bool

    @property
    def how(self) -> str:
        """How it has ended, in words that fit behind "the process"."""
        return (
            f"was ended by {signal.Signals(-self.code).name}" if self.code < 0 else f"ended with exit code {self.code}"
        )


async def run_child(
    function: str,
    arguments: Sequence[Any],
    bounds: Bounds,
    *,
    stderr: int = asyncio.subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> Ended:
    """Runs a function in a child. If it is cancelled, the child has ended before it raises.

    Args:
        function: "package.module:name".
        arguments: of the function; values of JSON.
        bounds: what the child may take.
        stderr: a file descriptor.
        pass_fds: file descriptors that the child has too, under the same numbers.

    Raises:
        OSError: no process can be started.
    """
    module, _, name = function.partition(":")
    call = json.dumps([bounds.memory, os.getpid(), list(arguments), sys.path])
    code = (
        "import json, sys; memory, parent, arguments, sys.path[:] = json.loads(sys.argv[1]); "
        f"from server.children import confine; confine(memory, parent); from {module} import {name}; {name}(*arguments)"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, call),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        pass_fds=pass_fds,
    )
    assert process.stdout is not None, "it is a pipe"
    output, is_late = b"", False
    try:
        async with asyncio.timeout(bounds.seconds):
            output = await process.stdout.read()
            await process.wait()
    except TimeoutError:
        is_late = True
    finally:
        if process.returncode is None:
            await _kill(process)
    return Ended(output, process.returncode or 0, is_late)


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kills a process and waits for its end. An event loop that ends cancels the wait; it goes on, and raises then."""
    process.kill()
    cancelled = None
    while process.returncode is None:
        try:
            await process.wait()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def confine(memory: int | None, parent: int) -> None:
    """Bounds the memory of this process, and ends it with its parent, before any other process if memory is short."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    with contextlib.suppress(OSError):  # where that is not to be written
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def isolate() -> bool:
    """Keeps this process from the network, from other programs and from other processes, for good.

    The kernel refuses the system calls for these with EPERM. Files stay within reach, as those of the user.

    Returns:
        Whether that is so: the kernel must have filters of system calls, and the machine be of a known kind.
    """
    architecture, numbers = _FORBIDDEN.get(platform.machine(), (0, ()))
    if not numbers:
        return False
    refuse = len(numbers) + 2  # of instructions: what stands there refuses; the one before it allows
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 0, refuse + 1, architecture), (_LOAD, 0, 0, 0)]
    program.append((_AT_LEAST, refuse - 1, 0, _X32))
    program += [(_EQUAL, refuse - 2 - index, 0, number) for index, number in enumerate(numbers)]
    program += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE | _EPERM)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *each) for each in program))
    whole = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    control = ctypes.CDLL(None).prctl
    zero = ctypes.c_ulong(0)
    is_bound: bool = control(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) == 0
    return is_bound and control(_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER_MODE), ctypes.byref(whole), zero, zero) == 0
