"""Tools that generate images and videos."""
