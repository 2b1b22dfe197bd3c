"""Foreign systems: what they delivered elsewhere, and how they are asked here."""
