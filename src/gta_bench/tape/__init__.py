"""Tool calls recorded and replayed, and controls that change what tools answer."""
