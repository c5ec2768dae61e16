"""Metadata of new nodes."""
