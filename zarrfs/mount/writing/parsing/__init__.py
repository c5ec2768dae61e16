"""Parsing of the files that programs write to a mount: metadata documents, NumPy files and images."""
