"""TIFF, ImageJ and OME-TIFF."""
