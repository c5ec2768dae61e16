"""VTK image data, read with vtk."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLImageDataReader

from tests.files.views.images import (
    IMAGES,
    ORIGIN,
    SCALE,
    make_image,
    transposed,
    write,
)


@pytest.mark.parametrize("axes", IMAGES)
def test_vtk_reads_values_and_positions(axes: str, tmp_path: Path) -> None:
    presented, data = make_image(axes, labels=("DAPI", "GFP <2>"))
    write(presented, tmp_path, ".vti")
    reader = vtkXMLImageDataReader()
    reader.SetFileName(str(tmp_path / "img.vti"))
    reader.Update()
    image = reader.GetOutput()
    assert image.GetDimensions() == tuple(data.shape[axes.index(n)] if n in axes else 1 for n in "xyz")
    assert image.GetSpacing() == tuple(abs(SCALE[n]) if n in axes else 1.0 for n in "xyz")
    assert image.GetOrigin() == tuple(ORIGIN[n] if n in axes else 0.0 for n in "xyz")
    matrix = image.GetDirectionMatrix()
    directions = [matrix.GetElement(i, i) for i in range(3)]
    assert directions == [1, -1 if "y" in axes else 1, 1]
    points = image.GetPointData()
    components = "c" if axes.endswith("c") else ""
    outer = "".join(name for name in axes if name not in "xyz" + components)
    expected = transposed(data, axes, outer + "zyx" + components)
    names = []
    shape = expected.shape[: len(outer)]
    for number, index in enumerate(itertools.product(*map(range, shape))):
        array = points.GetArray(number)
        values = vtk_to_numpy(array).reshape(expected.shape[len(outer) :])
        np.testing.assert_array_equal(values, expected[index])
        names.append(array.GetName())
    assert points.GetNumberOfArrays() == len(names) == len(set(names))
    if axes == "tczyx":
        assert names[:3] == ["DAPI, t 0", "GFP <2>, t 0", "DAPI, t 1"]


def test_an_array_without_dimensions_is_one_point(tmp_path: Path) -> None:
    presented, data = make_image("", "<i4", ())
    write(presented, tmp_path, ".vti")
    reader = vtkXMLImageDataReader()
    reader.SetFileName(str(tmp_path / "img.vti"))
    reader.Update()
    assert reader.GetOutput().GetDimensions() == (1, 1, 1)
    assert reader.GetOutput().GetPointData().GetArray("values").GetTuple1(0) == data
