"""Pure scoring functions: `compat` reproduces upstream's numbers, `strict` corrects them."""
