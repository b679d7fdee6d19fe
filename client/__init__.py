"""Python client and command line of a babelserve server: `from client.client import Client`."""
