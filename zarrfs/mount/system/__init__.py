"""The mounts of this system: the mount table, records, mount points, and unmounting."""
