"""Codecs that map bytes to bytes."""
