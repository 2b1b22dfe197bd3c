"""Evidence, the leaf judge and its verdicts."""
