"""The block header and the LZ4 framing of N5."""
