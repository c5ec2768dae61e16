"""Codecs that map an array to an array."""
