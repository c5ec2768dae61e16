"""The FUSE filesystem. It presents a Zarr hierarchy as directories and regular files."""

from zarrfs.mount.options import MountOptions
from zarrfs.mount.serving.background import mount
from zarrfs.mount.system.mount_table import is_mounted, mounts
from zarrfs.mount.system.unmounting import unmount

__all__ = ["MountOptions", "is_mounted", "mount", "mounts", "unmount"]
