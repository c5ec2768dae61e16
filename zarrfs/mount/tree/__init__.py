"""Paths of the mount as directories and virtual files, independent of FUSE."""
