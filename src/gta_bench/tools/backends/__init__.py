"""Services and models that tools call."""
