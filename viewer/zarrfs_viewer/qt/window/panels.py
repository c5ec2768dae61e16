"""The panels of a window, in the order in which they are created. A new panel needs one line here."""

from __future__ import annotations

__all__ = ["PANELS"]

PANELS = (
    ("position.position", "Position"),
    ("view_actions", "ViewActions"),
    ("hierarchy.hierarchy", "Hierarchy"),
    ("gallery", "Series"),
    ("plate.plates", "Plates"),
    ("channels.channels", "Channels"),
    ("labels.labels_panel", "Labels"),
    ("measure.measurements", "Measurements"),
    ("metadata.metadata", "Metadata"),
    ("messages", "Messages"),
    ("settings_history", "SettingsHistory"),
    ("layers.layers_view", "LayersView"),
    ("pyramid_actions", "PyramidActions"),
    ("values.values", "Values"),
    ("pictures.pictures", "PictureActions"),
    ("saved_views", "SavedViewsMenu"),
)
"""(module of ``zarrfs_viewer.qt.panels``, class) of each panel. A thread imports the modules while the window is
visible already. A panel finds those before it with ``PanelContext.find``.
"""
