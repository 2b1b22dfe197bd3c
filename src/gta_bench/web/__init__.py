"""Every page: the report, the label queue, the leaderboard site. One set of templates, one look."""
