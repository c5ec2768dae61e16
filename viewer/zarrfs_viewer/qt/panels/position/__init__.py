"""The position of the displayed slice: sliders, playback, slabs, and the dialog for coordinates."""
