"""Audio and video: one way to read, cut, sample and write them, with ffmpeg in the jail."""
