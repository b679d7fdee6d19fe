"""Who may call, and how much; plain values, no gRPC. Its face: `Access`, `Tenant`, `caller`."""
