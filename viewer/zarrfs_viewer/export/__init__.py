"""Export of pictures and values to files."""
