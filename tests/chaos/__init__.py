"""The promise "nothing lost", put to the test: `python -m tests.chaos R2 R8`, or `make chaos` for all with a report.

Every call of every case stands in a journal and must end as promised:

- P1 exactly one outcome, by its deadline. P2 the right answer to the right call. P3 only documented codes.
- P4 once it is quiet, nothing is left: calls, queue, rows, threads, file descriptors, children.
- P5 memory stays flat. P6 latency and readiness come back. P7 the fault shows in the metrics.

A case is a module that says what it does to the server, what it measures, and the bar.
"""
