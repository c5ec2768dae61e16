"""Groups: finding, listing and creating members."""
