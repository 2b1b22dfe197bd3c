"""Pure statistics of scores: intervals, paired tests, repeats, agreement."""
