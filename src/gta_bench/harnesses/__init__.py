"""Foreign systems: finished results, any command in a cell, Inspect's bridge."""
