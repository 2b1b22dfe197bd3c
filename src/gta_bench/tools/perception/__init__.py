"""Tools that look at what is there."""
