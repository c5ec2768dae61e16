"""Formats of remote sensing that describe the bytes of the .raw file."""
