"""FUSE operations on a tree, without a FUSE library."""
