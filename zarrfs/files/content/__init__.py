"""The bytes of virtual files: segments, and buffers that are read ahead."""
