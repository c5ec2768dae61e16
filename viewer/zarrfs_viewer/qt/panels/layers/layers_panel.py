"""The panel of the layers: their order and visibility, and the blending and the channels of the selected one."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.qt.canvas.image_layers import ImageLayer, ImageLayers
from zarrfs_viewer.qt.panels.channels.channels_panel import ChannelsPanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import (
    PlainLabel,
    button_text,
    plain,
    plain_lines,
    plain_name,
    tooltip,
)
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused
from zarrfs_viewer.rendering.contrast import channel_values, histogram

__all__ = ["LayersPanel"]

ARRANGEMENTS = (
    ("Translucent", "translucent"),
    ("Additive", "additive"),
    ("Minimum", "minimum"),
    ("Difference", "difference"),
    ("Side by side, linked", "beside"),
)

TRANSLUCENT_OPACITY = 0.5
LIST_HEIGHT = 130
FIRST_CHANNELS = "The channels of the first image are in the panel Channels."
NO_CHANNELS = "A label image has no channels."
FIRST = "First image, below all layers"


class LayersPanel(QWidget):
    """The list of the layers, the front one first, and the settings of the selected one.

    Attributes:
        list: one item for each layer, and the first image as the last item. The check marks are the visibility.
        problem: why the selected layer is not displayed, or not at its place.
    """

    def __init__(self, session: Session, layers: ImageLayers, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._layers = layers
        self._is_updating = False
        self._items: dict[int, QListWidgetItem] = {}
        self.list = QListWidget()
        self.list.setAccessibleName("Layers, from front to back")
        self.list.setUniformItemSizes(True)
        self.list.setMinimumHeight(LIST_HEIGHT)
        self.arrangement = QComboBox()
        self.arrangement.setAccessibleName("How the layer is displayed")
        for title, name in ARRANGEMENTS:
            self.arrangement.addItem(plain(title), name)
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(0, 100)
        self.opacity.setAccessibleName("Opacity of the layer")
        ignore_wheel_unless_focused(self.arrangement, self.opacity)
        self.up, self.down = QPushButton(button_text("Forward")), QPushButton(button_text("Backward"))
        self.remove = QPushButton(button_text("Remove"))
        self.up.setToolTip("Draw the layer over the next one")
        self.down.setToolTip("Draw the layer below the next one")
        self.problem = PlainLabel(wrap=True)
        self.problem.hide()
        self.channels = ChannelsPanel()
        buttons = QHBoxLayout()
        for button in (self.up, self.down, self.remove):
            buttons.addWidget(button)
        form = QFormLayout()
        form.addRow("Display", self.arrangement)
        form.addRow("Opacity", self.opacity)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.list, 1)
        layout.addLayout(buttons)
        layout.addWidget(self.problem)
        layout.addLayout(form)
        layout.addWidget(self.channels, 2)
        self.list.currentRowChanged.connect(self._select)
        self.list.itemChanged.connect(self._check)
        self.list.itemActivated.connect(self._show_as_first)
        self.up.clicked.connect(lambda _: self._move(1))
        self.down.clicked.connect(lambda _: self._move(-1))
        self.remove.clicked.connect(lambda _: self._remove())
        self.arrangement.activated.connect(lambda _: self._choose_arrangement())
        self.opacity.valueChanged.connect(lambda _: self._arrange())
        self.channels.changed.connect(lambda number, changes: layers.change_channel(number, **changes))
        self.channels.visibility_changed.connect(layers.change_visibility)
        self.channels.auto.connect(layers.auto_contrast)
        self.channels.histogram_requested.connect(self._load_histogram)
        layers.layers_changed.connect(self._show_layers)
        layers.current_changed.connect(self._show_current)
        layers.settings_changed.connect(self._show_settings)
        layers.state_changed.connect(self._show_state)

    # -- the list ----------------------------------------------------------------------------------------------

    def _show_layers(self) -> None:
        self._is_updating = True
        self.list.clear()
        self._items.clear()
        for layer in reversed(self._layers.layers):
            item = QListWidgetItem(plain_name(layer.name))
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            self.list.addItem(item)
            self._items[id(layer)] = item
            self._show_item(layer, item)
        image = self._session.image
        name = "" if image is None else image.name or image.path
        item = QListWidgetItem(plain_name(name))
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
        checked = Qt.CheckState.Checked if self._layers.first_visible else Qt.CheckState.Unchecked
        item.setCheckState(checked)
        item.setToolTip(tooltip(FIRST))
        self.list.addItem(item)
        self._is_updating = False
        self._show_row()

    @staticmethod
    def _show_item(layer: ImageLayer, item: QListWidgetItem) -> None:
        item.setText(plain_name(f"\N{WARNING SIGN} {layer.name}" if layer.problem else layer.name))
        item.setCheckState(Qt.CheckState.Checked if layer.visible else Qt.CheckState.Unchecked)
        item.setToolTip(tooltip(layer.problem or within_text(layer)))

    def _show_row(self) -> None:
        layer = self._layers.current
        item = self._items.get(id(layer)) if layer is not None else self.list.item(self.list.count() - 1)
        self._is_updating = True
        if item is not None:
            self.list.setCurrentItem(item)
        self._is_updating = False

    def _layer_of(self, row: int) -> ImageLayer | None:
        """Return the layer of a row; None for the first image."""
        number = len(self._layers.layers) - 1 - row
        return self._layers.layers[number] if 0 <= number < len(self._layers.layers) else None

    def _select(self, row: int) -> None:
        if not self._is_updating and row >= 0:
            self._layers.select(self._layer_of(row))

    def _check(self, item: QListWidgetItem) -> None:
        if not self._is_updating:
            is_checked = item.checkState() == Qt.CheckState.Checked
            self._layers.show(self._layer_of(self.list.row(item)), is_checked)

    def _show_as_first(self, item: QListWidgetItem) -> None:
        """Display an image of a scene as the first one, whose sliders, measurements and statistics are displayed."""
        layer = self._layer_of(self.list.row(item))
        if layer is not None and layer.scene is not None and layer.scene is self._session.dataset:
            self._session.open_image(layer.entry)

    def _move(self, steps: int) -> None:
        if self._layers.current is not None:
            self._layers.move(self._layers.current, steps)

    def _remove(self) -> None:
        if self._layers.current is not None:
            self._layers.remove(self._layers.current)

    # -- the selected layer ------------------------------------------------------------------------------------

    def _choose_arrangement(self) -> None:
        """Use another arrangement with its default opacity: a difference is black only at full opacity."""
        layer, name = self._layers.current, self.arrangement.currentData()
        if layer is not None:
            is_mixed = name in ("beside", "translucent") and layer.scene is None
            self._layers.arrange(layer, name, TRANSLUCENT_OPACITY if is_mixed else 1.0)

    def _arrange(self) -> None:
        if self._layers.current is not None:
            self._layers.arrange(
                self._layers.current, self.arrangement.currentData(), self.opacity.value() / 100
            )

    def _show_state(self, layer: ImageLayer) -> None:
        item = self._items.get(id(layer))
        if item is not None:
            self._is_updating = True
            self._show_item(layer, item)
            self._is_updating = False
        if layer is self._layers.current:
            self._show_arrangement()

    def _show_arrangement(self) -> None:
        layer = self._layers.current
        for widget in (self.arrangement, self.up, self.down, self.remove):
            widget.setEnabled(layer is not None)
        self.opacity.setEnabled(layer is not None and layer.arrangement != "beside")
        self.problem.setText(plain_lines("" if layer is None else layer.problem))
        self.problem.setVisible(layer is not None and bool(layer.problem))
        if layer is not None:
            self.arrangement.setCurrentIndex(self.arrangement.findData(layer.arrangement))
            self.opacity.blockSignals(True)
            self.opacity.setValue(round(layer.opacity * 100))
            self.opacity.blockSignals(False)

    def _show_current(self) -> None:
        self._show_row()
        self._show_arrangement()
        layer = self._layers.current
        if layer is None or layer.image is None or layer.settings is None:
            self.channels.show_channels((), "u", False)
            self.channels.show_hint(FIRST_CHANNELS if layer is None else "")
            return
        image = layer.image
        self.channels.show_hint("" if layer.settings.channels else NO_CHANNELS)
        self.channels.show_channels(
            layer.settings.channels, image.dtype.kind, image.rgb_axis is not None, image.value_unit
        )
        self._show_settings()

    def _show_settings(self) -> None:
        layer = self._layers.current
        if layer is not None and layer.settings is not None:
            self.channels.show_settings(layer.settings.channels)

    def _load_histogram(self, number: int, volume: bool) -> None:
        layer = self._layers.current
        image, settings = (None, None) if layer is None else (layer.image, layer.displayed_settings())
        if image is None or settings is None or image.rgb_axis is not None:
            return
        self._session.worker.cancel("layer histogram")
        self._session.worker.submit(
            lambda: histogram(channel_values(image, settings.channels[number], settings, volume)),
            lambda result: (
                self.channels.show_histogram(number, result)
                if layer is self._layers.current and layer is not None and layer.image is image
                else None
            ),
            lambda _: self.channels.show_histogram(number, None),
            "layer histogram",
        )


def within_text(layer: ImageLayer) -> str:
    """Return the place of a layer."""
    return f"{layer.location}/{layer.path}".rstrip("/")
