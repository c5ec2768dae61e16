"""The codec chain of an array: its representations, decoding and encoding."""
