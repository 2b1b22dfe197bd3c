"""GTA with corrected scoring: predictions are matched by task, and no score exceeds 100."""
