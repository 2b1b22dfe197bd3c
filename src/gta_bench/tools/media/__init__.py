"""Audio and video: read, cut, sampled and written by ffmpeg in the jail."""
