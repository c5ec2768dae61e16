"""Verifying that all chunks of a hierarchy can be decoded."""
