"""Files of elements without a header."""
