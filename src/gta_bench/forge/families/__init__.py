"""One module for each family."""
