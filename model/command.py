"""What the commands share that take more than a model: a flag without its value is one line and not a traceback."""

import argparse


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses a command line. Of `--flag=--` an older Python makes an empty list (its issue 109475): a fault as well."""
    arguments = parser.parse_args()
    for name, value in vars(arguments).items():
        if value == [] and value is not parser.get_default(name):
            parser.error(f"argument {name.replace('_', '-')}: -- is no value")
    return arguments
