"""What runs inside a harness's cell: the standard library only."""
