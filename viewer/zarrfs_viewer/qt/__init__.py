"""The Qt user interface. No other package of the viewer imports Qt."""
