"""Remote file systems as stores, through fsspec."""
