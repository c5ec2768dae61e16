"""The image display: panes, the canvas widget and its overlays."""
