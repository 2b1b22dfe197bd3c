"""Turns a file of each kind into evidence: text, pictures, facts, and notes on what is left out."""
