"""The bars, as commands that a stranger runs: `python -m tests.acceptance.NAME`; pytest does not collect them.

Each prints a table and exits 0 when its bar holds, 1 when it does not, 2 when it could not be run (bad arguments, no
server), 77 when a tool that it needs is missing.
"""
