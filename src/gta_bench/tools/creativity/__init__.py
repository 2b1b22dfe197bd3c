"""Tools that make pictures and other works."""
