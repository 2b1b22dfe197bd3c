"""Tools that look and listen."""
