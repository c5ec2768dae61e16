"""The FUSE filesystem. It presents a Zarr hierarchy as directories and regular files."""

from zarrfs.mount.mounting import MountOptions, is_mounted, mount, unmount

__all__ = ["MountOptions", "is_mounted", "mount", "unmount"]
