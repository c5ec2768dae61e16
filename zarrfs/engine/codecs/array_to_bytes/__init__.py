"""Codecs that map an array to bytes."""
