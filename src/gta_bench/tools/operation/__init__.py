"""Tools that act: search, draw, write."""
