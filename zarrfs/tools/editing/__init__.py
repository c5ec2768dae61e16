"""Editing the attributes of a node, with a check of the OME-NGFF metadata before they are written."""
