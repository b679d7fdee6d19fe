"""What only a GPU can prove, in three commands that need no network; README.md says how to run them.

Each runs on a CPU too (`--device cpu --quick`), by the same code but for the capture of CUDA graphs, which is how the
commands themselves are tested where there is no GPU.
"""
