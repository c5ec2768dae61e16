"""Files of other formats as read-only Zarr hierarchies: TIFF, NumPy, HDF5, kerchunk references, TensorStore specs."""
