"""What another package can bring to gta-bench."""
