"""The tile grid and the order of tile requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.images.tile_grid import PlaneKey, Rank, TileGrid, TileKey, TileRequest, request_order

sizes = st.integers(1, 700)


@given(st.tuples(sizes, sizes), st.tuples(sizes, sizes))
def test_tiles_are_whole_chunks_and_cover_the_plane_once(
    shape: tuple[int, int], chunk: tuple[int, int]
) -> None:
    grid = TileGrid.for_plane(shape, chunk)
    seen = set()
    for row in range(grid.counts[0]):
        for column in range(grid.counts[1]):
            rows, columns = grid.rect(row, column)
            for part, length, whole in zip((rows, columns), chunk, shape, strict=True):
                assert part.start % length == 0
                assert part.stop % length == 0 or part.stop == whole
                assert part.stop > part.start
            seen.add((rows.start, rows.stop, columns.start, columns.stop))
    assert sum((b - a) * (d - c) for a, b, c, d in seen) == shape[0] * shape[1]


def test_small_chunks_are_grouped_to_tiles_and_large_chunks_are_single_tiles() -> None:
    assert TileGrid.for_plane((4000, 4000), (64, 64)).tile == (256, 256)
    assert TileGrid.for_plane((4000, 4000), (100, 1)).tile == (200, 256)
    assert TileGrid.for_plane((4000, 4000), (1024, 300)).tile == (1024, 300)


@given(
    st.tuples(sizes, sizes),
    st.tuples(sizes, sizes),
    st.tuples(*[st.floats(-800, 800)] * 4),
)
def test_within_yields_exactly_the_tiles_that_intersect_a_rectangle(
    shape: tuple[int, int], tile: tuple[int, int], rect: tuple[float, float, float, float]
) -> None:
    grid = TileGrid(shape, tile)
    top, bottom = sorted((rect[0], rect[2]))
    left, right = sorted((rect[1], rect[3]))
    result = set(grid.within(top, left, bottom, right))
    for row in range(grid.counts[0]):
        for column in range(grid.counts[1]):
            rows, columns = grid.rect(row, column)
            intersects = (rows.start - 0.5 < bottom and top < rows.stop - 0.5) and (
                columns.start - 0.5 < right and left < columns.stop - 0.5
            )
            if intersects:
                assert (row, column) in result
            separate_rows = rows.start - 0.5 > bottom or top > rows.stop - 0.5
            if separate_rows or columns.start - 0.5 > right or left > columns.stop - 0.5:
                assert (row, column) not in result


def test_requests_are_sorted_by_rank_then_coarser_level_then_distance() -> None:
    def request(rank: Rank, level: int, distance: float) -> TileRequest:
        return TileRequest(TileKey(PlaneKey(1, level, (0, 1), (0, 0)), 0, 0), rank, distance)

    ordered = [
        request(Rank.VISIBLE, 3, 9.0),
        request(Rank.VISIBLE, 0, 1.0),
        request(Rank.VISIBLE, 0, 2.0),
        request(Rank.PREFETCH, 3, 0.0),
        request(Rank.PREFETCH, 0, 0.0),
        request(Rank.RECENT, 5, 0.0),
    ]
    assert request_order(ordered[::-1]) == ordered
