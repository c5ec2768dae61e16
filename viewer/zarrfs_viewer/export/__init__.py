"""Export of pictures and values."""
