"""Adapters for the codecs of the numcodecs package."""
