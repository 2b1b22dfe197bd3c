"""Tools that compute, solve, plot and prove."""
