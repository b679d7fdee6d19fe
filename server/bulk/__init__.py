"""`babelserve-bulk`: translates files of rows into files of rows, with models in its own process, or on Ray Data.

An input file is cut into shards. Each shard becomes one output file, which appears whole or not at all. A job that was
killed goes on when it is started again: it translates the shards that have no output yet. A row gives exactly one row,
whatever it holds. So that the output is the same however the job ran, a shard depends on nothing but its input: how it
is cut, and which other shards there are, changes no translation.

| file | what it is for |
|---|---|
| `cell.py` | a text of a row, or why there is none |
| `lines.py` | rows of text, TSV and JSONL files, and where a shard of lines begins and ends |
| `parquet.py` | rows of Parquet files |
| `job.py` | what a job is: its inputs, its options, its shards, and which of them are done |
| `worker.py` | translates shards with models in this process |
| `on_ray.py` | workers as actors of Ray Data |
| `command.py`, `__main__.py` | the command line |

This room alone imports fsspec, pyarrow (the extra `bulk`) and Ray (the extra `ray`).
"""
