"""`working_memory`: the bytes that a stage takes beside what is in memory when it begins.

Each function counts the largest tensors that its stage has at a time. Factors that are not sizes of
tensors were measured; `benchmarks/plan.py --check` compares the sum with the peak of whole runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from clusterea.config import Config, PropagationConfig, SamplingConfig, TrainingConfig
from clusterea.numerics.block_sizes import BLOCK_SIZES, FOLLOWING, LEAST, least_size
from clusterea.numerics.expected_cells import CELL_BYTES as GPU_CELL_BYTES
from clusterea.numerics.expected_cells import PASSES, ROOM, is_large, room_of
from clusterea.pipeline.planned import Planned, width_of
from clusterea.types import AlignmentTask

MEBI = 1 << 20
SIMILARITY_BYTES = 12  # of a cell of a sparse similarity
CELL_BYTES = {"cpu": 130, "cuda": 120}  # of a cell while it is normalized and gets evidence
PART_BYTES = 40  # of a cell of a view while parts are joined
SUM_BYTES = 64  # of a cell while two views are added
MATCHED_BYTES = 48  # of a cell of a block while links are chosen
CHOSEN_BYTES = 250  # of an entity meanwhile: firsts, rivals, features
COUNTED_BYTES, RANKED_BYTES = 60, 24  # of an entity, and a cell of a block, in evaluation
LEFT_SHARE = 0.2  # of the cells, which the first round of matching leaves
JOINED_BYTES = 60  # of an edge that neighbors of links are looked up by
CELLS_SHARE = 0.85  # cells of a view, as a share of the candidates of all entities
STEP_COPIES = 15  # of the outputs of a training step, with gradients
STATE_COPIES = 5  # of the states of all nodes that a step reads, with gradients
NODE_COPIES = 8  # of the outputs of a block in inference
STEP_MESSAGES, MESSAGES = 3, 4  # copies of the messages of a chunk of edges, with gradients or not
ROWS_AHEAD = 2  # mini-batches whose rows a GPU has before their turn
ROW_COPIES = 3  # of the rows of the entity table that a step reads
BATCH_SHARE = 0.9  # of its cells that the largest mini-batch has, at most, in practice
EDGE_BYTES = 100  # of an edge in a block
UNION_BYTES = 38  # of an edge while both graphs are made one
LABEL_EDGE_BYTES = 11  # of an edge in the graph that labels spread along
TRAINING_BYTES = 90 * MEBI  # libraries that training loads
XGBOOST_BYTES = 200 * MEBI
NAMES_BYTES = 400 * MEBI  # tables of n-grams, and a block of names
LOOKED_AT, COMPARED, AT_ONCE = 4000, 1 << 16, 1 << 14  # rows that trust compares
PRODUCTS_BYTES = 96 * MEBI  # buffers of large matrix products
WRITTEN = 1 << 20  # cells of candidates that are sorted at a time
NAMED_BYTES = 400  # of an entity while links and the report are written
WHOLE, SPARE, GROUP = 40, 16, 64  # of the search, see `numerics.knn`
SLAB, ROWS_HERE = 64, 1 << 13  # of label propagation
TILE_NUMBERS, SAMPLED_CELLS = 1 << 20, 1 << 18  # see `numerics.sampled_dots`


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes of one stage."""

    fixed: int  # which nothing makes smaller
    usual: int = 0  # of blocks, if memory is not bounded
    least: int = 0  # of blocks as small as they can be

    @property
    def most(self) -> int:
        return self.fixed + self.usual

    @property
    def fewest(self) -> int:
        return self.fixed + self.least


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the memory of stages depends on."""

    task: AlignmentTask
    config: Config
    on: str  # cpu or cuda

    @property
    def sides(self) -> tuple[int, int]:
        source, target = self.task.num_entities
        return source, target

    @property
    def entities(self) -> int:
        return sum(self.task.num_entities)

    @property
    def edges(self) -> int:
        """Of the union graph, at most."""
        return 2 * sum(graph.num_triples for graph in self.task.graphs)

    @property
    def degree(self) -> float:
        return self.edges / max(self.entities, 1)

    @property
    def free(self) -> tuple[int, int]:
        """Entities of each side that are compared. A fit holds out few seeds."""
        source, target = self.task.num_undecided
        return max(source, 1), max(target, 1)

    @property
    def number(self) -> int:
        """Bytes of a number of a vector that is compared."""
        return 2 if self.on == "cuda" else 4

    def cells(self, views: int = 1) -> int:
        """Of the sum of so many views."""
        source, target = self.free
        share = CELLS_SHARE * min(views, 2)
        return min(int(share * self.config.fusion.candidates * (source + target)), source * target)

    def usual(self, name: str, most: float) -> int:
        """The numbers of a block that has `most` of them, unless it is cut."""
        return int(min(BLOCK_SIZES[name][self.on], most))


def working_memory(stage: Planned, sizes: Sizes) -> Need:
    """The bytes on the device that a stage takes."""
    return _STAGES.get(stage.kind, _sampling)(stage, sizes)


def fused_views(config: Config) -> int:
    """How many matrices the fusion adds up."""
    local = sum(name.startswith("local") for name in config.fusion.views)
    return max(1, local * len(config.samplers) + len(config.fusion.views) - local)


def _block(name: str, numbers: float, sizes: Sizes, each: int | None = None) -> tuple[int, int]:
    """Bytes of a block of at most so many numbers: as usual, and at least."""
    each = each or FOLLOWING[name]
    usual = sizes.usual(name, numbers)
    return usual * each, min(usual, least_size(each)) * each


def _propagation(stage: Planned, sizes: Sizes) -> Need:
    encoder = stage.encoder
    assert isinstance(encoder, PropagationConfig)
    number, nodes = sizes.number, sizes.entities
    own, sketch = number * encoder.dimension, number * encoder.features
    result = 4 * encoder.features if sizes.on == "cpu" else 0
    spread = nodes * (own + sketch + 4 * 4 * SLAB) + 6 * encoder.dimension * stage.pairs
    each = 16 if sizes.on == "cpu" else 6
    usual, least = _block("labels", sizes.edges * encoder.features, sizes, each)
    at_once = min(nodes, ROWS_HERE) if sizes.on == "cpu" else 0  # own labels, sums, embeddings
    gathered = nodes * (sketch + result) + at_once * 3 * sketch
    graph = LABEL_EDGE_BYTES * sizes.edges
    return _largest(
        Need(UNION_BYTES * sizes.edges),
        Need(graph + spread),
        Need(graph + gathered + 8 * MEBI, usual, least),
    )


def _training(stage: Planned, sizes: Sizes) -> Need:
    encoder = stage.encoder
    assert isinstance(encoder, TrainingConfig)
    nodes, width = sizes.entities, width_of([encoder])
    states = 8 * encoder.dimension if width > encoder.dimension else 4 * encoder.dimension
    asked, drawn = _asked(stage), drawn_nodes(stage, sizes)
    loss = 2 * asked * drawn * (4 if sizes.on == "cpu" else 12)  # a CPU keeps few of its terms
    if encoder.loss == "margin":
        loss = 4 * width * 6 * drawn
    reached, fanout = reached_nodes(stage, sizes)
    table = 3 * 4 * encoder.dimension * nodes
    graph = 60 * sizes.edges + (TRAINING_BYTES if sizes.on == "cpu" else 0)
    step = loss + STEP_COPIES * reached[0] * 4 * width + STATE_COPIES * reached[2] * states
    step += int(EDGE_BYTES * reached[2] * fanout) + ROW_COPIES * 4 * encoder.dimension * reached[3]
    step += 4 * STEP_MESSAGES * sizes.usual("edges", reached[1] * fanout * states / 4)
    heard = sizes.usual("inference", sizes.edges)
    at_once = min(nodes, int(heard / max(sizes.degree, 1)))
    usual = at_once * NODE_COPIES * 4 * width + EDGE_BYTES * heard
    usual += 4 * MESSAGES * sizes.usual("edges", heard * states / 4)
    result = 4 * width * nodes if sizes.on == "cpu" else 0
    kept = 2 * states * nodes + table // 3 + result
    least = min(usual, least_size(NODE_COPIES * 4 * width) * NODE_COPIES * 4 * width)
    return _largest(Need(graph + table + step), Need(graph + kept, usual, least))


def _asked(stage: Planned) -> int:
    """The seeds of a training step."""
    assert isinstance(stage.encoder, TrainingConfig)
    return min(stage.encoder.seeds_per_step or stage.pairs, stage.pairs)


def drawn_nodes(stage: Planned, sizes: Sizes) -> int:
    """The nodes whose outputs a training step computes: of seeds and negatives."""
    encoder, asked = stage.encoder, _asked(stage)
    assert isinstance(encoder, TrainingConfig)
    if encoder.loss == "margin":
        return 2 * asked * (1 + encoder.negatives_per_seed)
    wanted = encoder.negatives_per_step
    if wanted is None:
        return sizes.entities
    return 2 * asked + sum(min(max(side - stage.pairs, 0), wanted) for side in sizes.sides)


def reached_nodes(stage: Planned, sizes: Sizes) -> tuple[list[int], float]:
    """The distinct nodes of a training step after 0, 1, 2 and 3 hops, and the edges of a node.

    As if neighbors were drawn at random.
    """
    encoder, nodes = stage.encoder, sizes.entities
    assert isinstance(encoder, TrainingConfig)
    if encoder.fanout is None:
        return [nodes] * 4, sizes.degree
    fanout = min(encoder.fanout, sizes.degree)
    found = [min(drawn_nodes(stage, sizes), nodes)]
    while len(found) < 4:
        found.append(int(nodes * (1 - math.exp(-found[-1] * (1 + fanout) / max(nodes, 1)))))
    return found, fanout


def _names(stage: Planned, sizes: Sizes) -> Need:
    return Need(NAMES_BYTES + 4 * stage.contents * sizes.entities if sizes.on == "cpu" else 0)


def _features(stage: Planned, sizes: Sizes) -> Need:
    return Need(2 * 4 * stage.contents * sizes.entities if sizes.on == "cpu" else 0)


def _translation(stage: Planned, sizes: Sizes) -> Need:
    width = stage.contents
    maps = 9 * 8 * width * width + 20 * width * stage.pairs
    result = 2 * 4 * width * sizes.sides[0] if sizes.on == "cpu" else 8 * width * (1 << 16)
    return Need(maps + result)


def _trust(stage: Planned, sizes: Sizes) -> Need:
    largest = max(sizes.free)
    at_once = min(largest, AT_ONCE)
    structure = 2 * 4 * stage.structure * (min(largest, LOOKED_AT) + at_once)
    structure += 5 * min(largest, LOOKED_AT) * at_once
    compared = min(max(sizes.sides), COMPARED)
    contents = 1000 * compared * 12 + 4 * stage.contents * compared
    return Need(max(structure, contents) + 64 * MEBI)


def _sampling(stage: Planned, sizes: Sizes) -> Need:
    rows, width = max(sizes.sides), 4 * stage.structure
    if stage.kind == "cmcs":
        examples = 2 * 3 * width * stage.pairs
        extra = XGBOOST_BYTES if sizes.config.sampling.classifier == "xgboost" else 0
        return Need(examples + 2 * width * min(rows, 1 << 17) + extra * (sizes.on == "cpu"))
    if stage.kind.startswith("iscs"):
        return Need(2 * width * rows + 60 * sizes.edges)
    return Need(60 * sizes.edges)


def _fusion(stage: Planned, sizes: Sizes) -> Need:
    config = sizes.config.fusion.on(sizes.on, sizes.free)
    source, target = sizes.free
    both, largest = source + target, max(source, target)
    width = stage.structure + stage.contents
    row = sizes.number * width
    vectors = row * both
    count = max(config.candidates, config.hubness_neighbors)
    found = SIMILARITY_BYTES * count * both
    scored = 8 * (count + SPARE) * largest
    if sizes.on == "cpu":
        table = 8 * min(BLOCK_SIZES["sampled rows"]["cpu"] + TILE_NUMBERS, 2 * width * largest)
        table += 40 * min(SAMPLED_CELLS, (count + SPARE) * largest)
    else:
        chunk = 8 * 16 * BLOCK_SIZES["pair products"][sizes.on]
        table = 16 * width * largest + chunk if largest <= WHOLE * (count + SPARE) else chunk // 16
    if config.search == "approximate" and sizes.on == "cpu":
        compared = 4 * width * min(largest, config.search_compared)
        search = Need(
            vectors + compared + 16 * (count + SPARE) * both, 4 * BLOCK_SIZES["listed"]["cpu"]
        )
        search = Need(search.fixed, search.usual, search.usual)
        ends = (0, 0)
    else:
        search, ends = _search(sizes, row, count + SPARE)
        search = Need(vectors + search.fixed, search.usual, search.least)
    rescored = Need(vectors + table + 2 * found + scored, *ends)
    views = [_all_candidates(sizes, found)]
    if sizes.config.samplers and any(name.startswith("local") for name in config.views):
        views.append(_local(sizes, vectors + found, row))
    needed = _largest(search, rescored, *views)
    return Need(needed.fixed + PRODUCTS_BYTES, needed.usual, needed.least)


def _search(sizes: Sizes, row: int, width: int) -> tuple[Need, tuple[int, int]]:
    """Beside the vectors: what the search takes, and the parts of them that it leaves."""
    source, target = sizes.free
    if sizes.on == "cuda" and is_large((source, target), width):
        return _search_on_gpu(sizes, row, width)
    is_kept = sizes.on != "cpu"  # all factors of the smaller side
    best = 16 * width * target + 8 * width * source + is_kept * row * target

    def at(cells: int) -> tuple[int, int]:
        columns = _even(target, math.isqrt(2 * cells))
        rows = _even(source, max(1, cells // columns))
        group = GROUP
        while group > 1 and columns < 3 * group * width:
            group //= 2
        gathered = sizes.usual("gathered", rows * columns) * FOLLOWING["gathered"]
        block = int(rows * columns * (4 + 36 / group)) + 16 * width * rows
        factors = (rows + (not is_kept) * columns) * row
        return factors + block + min(gathered, block), (rows + columns) * row

    (usual, ends), (least, fewest) = (
        at(cells) for cells in (BLOCK_SIZES["nearest"][sizes.on], LEAST)
    )
    return Need(best, usual, min(least, usual)), (ends, min(fewest, ends))


def _search_on_gpu(sizes: Sizes, row: int, width: int) -> tuple[Need, tuple[int, int]]:
    """The same for the search above floors."""
    source, target = sizes.free
    fixed = (row + 8 * ROOM * width) * target + 8 * width * source
    a_pass = -(-source // PASSES) * (3 * 8 * room_of(width) + 2 * row)
    block = GPU_CELL_BYTES * BLOCK_SIZES["nearest"]["cuda"]
    return Need(fixed, a_pass + block, least_size(GPU_CELL_BYTES) * GPU_CELL_BYTES), (0, 0)


def _even(size: int, limit: int) -> int:
    return -(-size // max(1, -(-size // limit)))


def _all_candidates(sizes: Sizes, found: int) -> Need:
    """The views of all entities at once, and the sum of all views."""
    cells, total = sizes.cells(), sizes.cells(fused_views(sizes.config))
    edges = 6 * sizes.free[0] * sizes.degree
    usual, least = _block("evidence", edges, sizes)
    one = Need(found + CELL_BYTES[sizes.on] * cells, usual, least)
    if fused_views(sizes.config) == 1:
        return one
    added = _block("sums", total, sizes, SUM_BYTES)
    kept = SIMILARITY_BYTES * (total + 2 * cells)
    return _largest(one, Need(found + kept, *added))


def _local(sizes: Sizes, held: int, row: int) -> Need:
    """Mini-batches: the largest matrix, or the sum of the samplers' views."""
    config = sizes.config
    source, target = largest_batch_of(sizes.task, config.sampling)
    cell = cell_bytes(sizes.on, config.fusion.sinkhorn_temperature)
    cells = sizes.cells(fused_views(config))
    kept = SIMILARITY_BYTES * (cells if len(config.samplers) > 1 else 0)
    parts = PART_BYTES * sizes.cells()
    own = (source + target) * row
    wide = 2 * own if sizes.on == "cpu" else 0
    ahead = 0 if sizes.on == "cpu" else ROWS_AHEAD * own
    matrix = int(BATCH_SHARE * source * target * cell)
    slab, least = _block("best cells", source * target, sizes, 8)
    batch = held + kept + parts + own + ahead
    return _largest(
        Need(batch + wide + matrix),
        Need(batch + own, slab, least),
        Need(held + kept + parts, *_block("sums", cells, sizes, SUM_BYTES)),
    )


def largest_batch_of(task: AlignmentTask, config: SamplingConfig) -> tuple[int, int]:
    """Entities of the largest mini-batch, of each side; seeds are left out."""
    most = max(*task.num_entities, 1)
    found = []
    for entities, undecided in task.num_entities.zip(task.num_undecided):
        # The larger side reaches the bound first; the other is smaller in proportion.
        bound = (config.max_batch or math.inf) * entities / most
        largest = entities * config.largest_share / config.num_batches
        share = max(undecided, 0) / max(entities, 1)
        found.append(max(1, int(share * min(largest, bound, entities))))
    return found[0], found[1]


def cell_bytes(on: str, temperature: float = 1.0) -> int:
    """Bytes per cell of a mini-batch: float64 on a CPU; bfloat16 or float32 on a GPU."""
    from clusterea.numerics.sinkhorn import WIDEST

    if on != "cuda":
        return 8
    return 2 if temperature >= 2 / WIDEST else 4


def _links(stage: Planned, sizes: Sizes) -> Need:
    del stage
    cells = sizes.cells(fused_views(sizes.config))
    fixed = int(LEFT_SHARE * SIMILARITY_BYTES * cells)
    fixed += CHOSEN_BYTES * sizes.entities + JOINED_BYTES * sizes.edges
    return Need(fixed, MATCHED_BYTES * sizes.usual("matched", cells))


def _evaluation(stage: Planned, sizes: Sizes) -> Need:
    del stage
    cells = sizes.cells(fused_views(sizes.config))
    return Need(COUNTED_BYTES * sizes.entities + RANKED_BYTES * sizes.usual("rivals", cells))


def _mean(stage: Planned, sizes: Sizes) -> Need:
    del stage
    cells = sizes.cells(fused_views(sizes.config))
    return Need(2 * SIMILARITY_BYTES * cells, *_block("sums", 2 * cells, sizes, SUM_BYTES))


def _written(stage: Planned, sizes: Sizes) -> Need:
    del stage
    cells = min(sizes.cells(fused_views(sizes.config)), WRITTEN)
    return Need(SUM_BYTES * cells + NAMED_BYTES * sizes.entities + 64 * MEBI)


_STAGES: dict[str, Callable[[Planned, Sizes], Need]] = {
    "propagation": _propagation,
    "training": _training,
    "names": _names,
    "features": _features,
    "translation": _translation,
    "trust": _trust,
    "fusion": _fusion,
    "self-training": _links,
    "mean": _mean,
    "matching": _links,
    "evaluation": _evaluation,
    "writing": _written,
}


def _largest(*needs: Need) -> Need:
    """The need of the largest of several steps, with and without smaller blocks."""
    most = max(each.most for each in needs)
    fewest = max(each.fewest for each in needs)
    return Need(fewest, most - fewest, 0)
