"""Copying, converting and rechunking arrays and hierarchies."""
