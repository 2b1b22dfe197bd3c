"""How a file of each kind becomes evidence: text, pictures, facts, and what is left out."""
