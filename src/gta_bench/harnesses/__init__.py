"""Foreign agent systems at work: any command in a cell, or an agent through Inspect's bridge."""
