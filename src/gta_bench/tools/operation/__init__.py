"""Tools that read, change and make files."""
