"""Text files: one element per line, and tables of comma-separated values."""
