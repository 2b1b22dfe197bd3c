"""Works that try to talk a judge into a score, and the files that carry the attempt."""
