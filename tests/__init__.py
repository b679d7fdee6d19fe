"""The tests. Importing this makes SIGINT end a process, which the programs that tests start inherit."""

import signal

# A shell lets a command that it starts in the background ignore SIGINT; then no test of Ctrl-C could pass.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
