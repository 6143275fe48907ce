"""Generated protobuf bindings of the wire contract, version 1."""
