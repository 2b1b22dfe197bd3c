"""Pure statistics of scores: intervals, paired tests, repeated runs, agreement."""
