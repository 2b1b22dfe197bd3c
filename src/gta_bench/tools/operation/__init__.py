"""Tools that make or change something."""
