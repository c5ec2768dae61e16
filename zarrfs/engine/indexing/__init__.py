"""Selections, and their projection onto chunks."""
