"""Pictures, movies and exports of the image, and its context menu."""
