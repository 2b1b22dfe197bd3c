"""Tools that count, compute and conclude."""
