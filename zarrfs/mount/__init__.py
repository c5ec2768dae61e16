"""The FUSE filesystem. It presents a Zarr hierarchy as directories and regular files."""

from zarrfs.mount.background import mount
from zarrfs.mount.mount_table import is_mounted, mounts
from zarrfs.mount.options import MountOptions
from zarrfs.mount.unmounting import unmount

__all__ = ["MountOptions", "is_mounted", "mount", "mounts", "unmount"]
