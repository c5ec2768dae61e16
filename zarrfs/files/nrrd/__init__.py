"""NRRD."""
