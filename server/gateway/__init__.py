"""`babelserve-gateway`: the fronts over HTTP in a process of their own, which asks a server over gRPC."""
