"""Tools that make pictures and videos from words."""
