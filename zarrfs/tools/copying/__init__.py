"""Copying, converting and rechunking whole hierarchies."""
