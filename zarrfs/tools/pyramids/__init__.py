"""Building OME-NGFF multiscale images (pyramids) from arrays."""
