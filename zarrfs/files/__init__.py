"""Other file formats, one folder for each: views, readers, import and export. Independent of FUSE."""
