"""The FUSE filesystem. It presents a Zarr hierarchy as directories and regular files."""

from zarrfs.mount.options import MountOptions
from zarrfs.mount.process.background import mount
from zarrfs.mount.process.mount_table import is_mounted, mounts
from zarrfs.mount.process.unmounting import unmount

__all__ = ["MountOptions", "is_mounted", "mount", "mounts", "unmount"]
