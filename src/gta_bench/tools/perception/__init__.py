"""Tools that tell what is in a picture, a sound or a video."""
