"""The label images over the image, and the table of their labels."""
