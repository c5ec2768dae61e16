"""Reads of bytes that are in memory without the interpreter: a C file, which is optional, and its loader."""
