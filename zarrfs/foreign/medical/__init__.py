"""Medical images, NIfTI, NRRD and MetaImage, as OME-NGFF images with their anatomical orientation."""
