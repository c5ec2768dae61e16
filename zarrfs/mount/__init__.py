"""The FUSE filesystem: a Zarr hierarchy as directories and ordinary files."""

from zarrfs.mount.mounting import MountOptions, is_mounted, mount, unmount

__all__ = ["MountOptions", "is_mounted", "mount", "unmount"]
