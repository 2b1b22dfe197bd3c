"""The leaderboard: entries, what they are worth beside each other, and the static site."""
