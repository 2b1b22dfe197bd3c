"""Tools that read images, audio and video."""
