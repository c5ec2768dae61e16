"""Files of other formats as read-only Zarr hierarchies."""
