"""File systems of fsspec as stores."""
