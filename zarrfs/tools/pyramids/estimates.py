"""Estimates of building a pyramid: a few tasks of the first pass are run.

The first pass reads the whole array and takes most of the time. The source of a later pass does not exist before: its
time and the sizes of its levels follow from those of the first pass.
"""

from __future__ import annotations

from math import ceil, prod

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.parallel import CORES
from zarrfs.tools.copying.block_grid import BlockGrid
from zarrfs.tools.copying.copy_execution import write_array
from zarrfs.tools.copying.estimates import stored_nbytes
from zarrfs.tools.copying.reports import ArrayEstimate
from zarrfs.tools.copying.sampling import Sampling
from zarrfs.tools.pyramids.execution import PyramidRun, pass_blocks
from zarrfs.tools.pyramids.passes import Pass
from zarrfs.tools.pyramids.tasks import BuildBlock, LevelTarget, block_nbytes

__all__ = ["estimate_pyramid"]


def estimate_pyramid(run: PyramidRun, samples: Sampling) -> list[ArrayEstimate]:
    """Return what each pass of a run would take. The tasks write to ``samples.store``."""
    plan, source, passes = run.plan, run.image.array, run.passes()
    if not passes:
        return []
    samples.check(source)
    store, cache = samples.store, ChunkCache(run.memory)
    first = passes[0]
    built = tuple(
        LevelTarget(
            write_array(store, plan.paths[number], plan.specs[number], cache), plan.levels[number].factors
        )
        for number in range(first.first, first.last + 1)
    )
    blocks = pass_blocks(source, built, first.block)
    work = BuildBlock(source, built, plan.method, run.memory, False)
    measured = samples.measure(work, [level.array for level in built], blocks, CORES)
    total_written = measured.nbytes_written * len(blocks)
    share = len(blocks) / max(1, BlockGrid(source.shape, first.block).total)
    estimates = []
    for pass_ in passes:
        shape = source.shape if pass_.source is None else plan.levels[pass_.source].shape
        relative = prod(shape) / max(1, prod(source.shape))
        density = total_written / max(1, _written_elements(run, first))
        tasks = ceil(BlockGrid(shape, pass_.block).total * share)
        nbytes_read = stored_nbytes(source) if pass_.source is None else density * prod(shape)
        estimates.append(
            ArrayEstimate(
                _name(run, pass_),
                tasks,
                round(nbytes_read),
                round(density * _written_elements(run, pass_)),
                block_nbytes(
                    *(pass_.block, plan.levels[pass_.first].factors, source.dtype.itemsize, run.memory)
                )
                + min(run.memory, source.nbytes),
                measured.expected_seconds(tasks, relative * len(blocks) / max(1, tasks)),
                samples.threads(CORES),
                measured.tasks if pass_ is first else 0,
                samples.reason,
            )
        )
    return estimates


def _written_elements(run: PyramidRun, pass_: Pass) -> int:
    return sum(prod(level.shape) for level in run.plan.levels[pass_.first : pass_.last + 1])


def _name(run: PyramidRun, pass_: Pass) -> str:
    paths = run.plan.paths[pass_.first : pass_.last + 1]
    return f"level {paths[0]}" if len(paths) == 1 else f"levels {', '.join(paths)}"
