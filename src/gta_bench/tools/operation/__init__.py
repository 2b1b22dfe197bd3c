"""Tools that make files."""
