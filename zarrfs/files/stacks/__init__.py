"""Several files as one image."""
