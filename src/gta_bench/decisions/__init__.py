"""Questions about runs and their answers: which of two is better, what a control changes."""
