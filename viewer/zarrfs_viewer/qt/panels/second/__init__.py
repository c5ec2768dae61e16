"""A second image beside or over the first one."""
