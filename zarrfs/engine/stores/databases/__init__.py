"""Databases as stores."""
