"""`train`: from a task to an embedding of every entity of both graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from clusterea.config import TrainingConfig
from clusterea.errors import InputError
from clusterea.freed_memory import keep_freed
from clusterea.graph.common_structure import no_common_edges, too_many_twins
from clusterea.graph.compact_union import Unions
from clusterea.graph.expansion import Block, Expander, incidence, whole_block
from clusterea.graph.union import UnionGraph, union, union_bytes
from clusterea.models import Encoder, Shape, find_encoder, means_of_sets
from clusterea.numerics.block_sizes import available
from clusterea.numerics.optimizer import MOMENTS, Optimizer
from clusterea.numerics.prefetch import prefetch
from clusterea.numerics.sparse_matmul import SparseMatrix
from clusterea.seeding import generator
from clusterea.training.entity_table import EntityTable, check_shape
from clusterea.training.inference import embed
from clusterea.training.losses import margin_loss, nhsm_loss, rejected_loss
from clusterea.training.progress import EncoderProgress
from clusterea.training.steps import Schedule, Step
from clusterea.types import AlignmentTask, KnowledgeGraph, Pair

LEAST_CHECKED, MOST_CHECKED = 20, 1000  # seeds that are used to check the embeddings
EXPLODED = 1e3  # training has diverged at this multiple of the first loss


class TrainingDivergedError(InputError):
    """The loss is not finite or has exploded, or the embeddings are useless."""


class Checkpoints(Protocol):
    """Where training keeps the state that it resumes from after a kill."""

    def latest(self) -> Mapping[str, Tensor] | None:
        """The state saved last, if any."""

    def reject(self) -> None:
        """Says that the state that `latest` returned can't be used."""

    def save(self, state: Mapping[str, Tensor]) -> None:
        """Replaces the saved state by a copy of this one, whose tensors will change."""


def train(
    task: AlignmentTask,
    config: TrainingConfig,
    *,
    device: torch.device | str = "cpu",
    checkpoints: Checkpoints | None = None,
    progress: Callable[[EncoderProgress], None] | None = None,
    unions: Unions | None = None,
) -> Pair[Tensor]:
    """Embeddings of all entities of both sides, on the host: rows of unit length.

    (GCN-Align may give an entity zeros.) They are float32, or float16 from a GPU. On a CPU, the
    same config and number of threads give the same bytes, also after a resume. On a GPU the order
    of sums varies; results agree within 0.01.

    Args:
        task: Two graphs and the seeds.
        config: The model and how it is trained.
        device: Where to compute.
        checkpoints: Where the state is kept after every epoch, and read on a resume.
        progress: Called after every step.
        unions: Holds the union of the graphs, for the next encoder of the same graphs.
    """
    if not task.num_seeds:
        raise InputError("training needs seeds. Got none.")
    trainer = Trainer(task, config, torch.device(device), unions)
    done = 0
    if checkpoints is not None and (saved := checkpoints.latest()) is not None:
        try:
            done = trainer.restore(saved)
        except (KeyError, ValueError, RuntimeError, TypeError):  # it belongs to another config
            checkpoints.reject()
            trainer = Trainer(task, config, torch.device(device), unions)
    with keep_freed():
        for epoch in range(done, config.epochs):
            trainer.run_epoch(epoch, progress)
            if checkpoints is not None:
                checkpoints.save(trainer.state(epoch + 1))
    return trainer.embeddings()


class Trainer:
    """An encoder, its entity table and their optimizers."""

    def __init__(
        self,
        task: AlignmentTask,
        config: TrainingConfig,
        device: torch.device,
        unions: Unions | None = None,
    ) -> None:
        device = torch.empty(0, device=device).device  # "cuda" is not equal to "cuda:0"
        self._task, self._config, self._device = task, config, device
        with ThreadPoolExecutor(1) as beside:  # one core draws the rows of millions of entities
            drawing = beside.submit(_drawn, task.graphs, config)
            self._graph = _union(task.graphs, device, unions or Unions())
            self._encoder, rows = drawing.result()
        self._encoder.sets = means_of_sets(self._graph).to(device)
        self._encoder.to(device)
        # Adam keeps two moments of each row beside it.
        on_device = _fits(3 * rows.nbytes, device)
        self._full: _Expanded | None = None  # of all nodes, the same in every step
        parameters: list[Tensor] = list(self._encoder.parameters())
        if config.fanout is None:
            rows = rows.to(device).requires_grad_()
            parameters.append(rows)
            self._full = _Expanded.of_all_nodes(self._graph, self._encoder).to(device)
            self._rows: Tensor = rows
            self._table: EntityTable | None = None
        else:
            rows = rows.to(device if on_device else torch.device("cpu"))
            self._table = EntityTable(rows, config.learning_rate, device)
        self._optimizer = Optimizer(config.optimizer, parameters, config.learning_rate)
        self._expander = Expander(self._graph)
        self._schedule = Schedule(task, config)
        self._first_loss: float | None = None

    def run_epoch(self, epoch: int, progress: Callable[[EncoderProgress], None] | None) -> None:
        """One pass over the seeds. Raises if the loss has diverged."""
        config, total = self._config, self._schedule.steps_in_epoch
        losses = torch.zeros((), device=self._device)
        looks = max(1, total // 20)  # reading the loss makes a GPU wait
        self._encoder.train()
        with closing(self._expanded(epoch)) as batches:
            for number, (step, expanded) in enumerate(batches, start=1):
                loss, touched = self._take(step, expanded, epoch, number)
                losses += loss.detach()
                mean = None
                if number % looks == 0 or number == total:
                    mean = float(losses) / number
                    if self._first_loss is None:
                        self._first_loss = mean
                    self._check(mean, epoch, number)
                if progress is not None:
                    progress(
                        EncoderProgress(epoch + 1, config.epochs, number, total, mean, touched)
                    )

    def embeddings(self) -> Pair[Tensor]:
        """The embeddings of both sides. Call it last: it frees what only training needs."""
        self._encoder.eval()
        rows = self._rows.detach() if self._table is None else self._table.rows
        if self._table is not None:
            self._table.forget_moments()
        everyone = embed(self._encoder, rows, self._graph, self._device)
        if everyone is None:
            raise TrainingDivergedError(_advice("an embedding is not a number", self._config))
        source = self._task.graphs.source.num_entities
        embeddings = Pair(everyone[:source], everyone[source:])
        self._check_use(embeddings)
        return embeddings

    def _check_use(self, embeddings: Pair[Tensor]) -> None:
        """Raises if the two ends of a seed are no nearer to each other than to other entities.

        The NHSM loss does not show this: it is standardized, so it stays finite.
        """
        seeds = torch.from_numpy(self._task.seeds[:MOST_CHECKED].copy())
        if len(seeds) < LEAST_CHECKED:
            return
        source = embeddings.source[seeds[:, 0]].float()
        target = embeddings.target[seeds[:, 1]].float()
        gains = (source * target).sum(1) - (source * target.roll(1, 0)).sum(1)
        if float(gains.mean()) <= 3 * float(gains.std()) / len(seeds) ** 0.5:
            what = "the two ends of the seeds are no nearer to each other than to other entities"
            cause = no_common_edges(self._task) or too_many_twins(self._task)
            if cause:  # no learning rate helps then
                raise TrainingDivergedError(f"training failed: {what}. {cause}")
            raise TrainingDivergedError(_advice(what, self._config))

    def state(self, epochs: int) -> dict[str, Tensor]:
        """Everything needed to resume after `epochs` epochs, as one flat mapping."""
        state = {"epochs": torch.tensor(epochs)}
        if self._first_loss is not None:
            state["first_loss"] = torch.tensor(self._first_loss, dtype=torch.float64)
        state |= {f"encoder.{name}": value for name, value in self._encoder.state_dict().items()}
        if self._table is None:
            state["rows"] = self._rows.detach()
        else:
            state |= {f"table.{name}": value for name, value in self._table.state().items()}
        for number, values in self._optimizer.state.items():
            state |= {f"optimizer.{number}.{name}": value for name, value in values.items()}
        return state

    def restore(self, saved: Mapping[str, Tensor]) -> int:
        """Restores what `state` returned, and returns the number of its finished epochs."""

        def under(prefix: str) -> dict[str, Tensor]:
            return {k.removeprefix(prefix): v for k, v in saved.items() if k.startswith(prefix)}

        self._encoder.load_state_dict(under("encoder."))
        if self._table is None:
            check_shape("rows", saved["rows"], self._rows)
            self._rows.data.copy_(saved["rows"])
        else:
            self._table.restore(under("table."))
        values: dict[int, dict[str, Tensor]] = {}
        for key, value in under("optimizer.").items():
            number, _, name = key.partition(".")
            values.setdefault(int(number), {})[name] = value
        self._check_optimizer(values)
        self._optimizer.restore(values)
        if "first_loss" in saved:
            self._first_loss = float(saved["first_loss"])
        epochs = int(saved["epochs"])
        if not 0 < epochs <= self._config.epochs:
            raise ValueError(f"epochs must be in [1, {self._config.epochs}]. Got {epochs} instead.")
        return epochs

    def _check_optimizer(self, values: Mapping[int, Mapping[str, Tensor]]) -> None:
        """Raises unless each parameter has all its moments, in its shape."""
        parameters, kept = self._optimizer.parameters, MOMENTS[self._config.optimizer]
        for number, moments in values.items():
            if not 0 <= number < len(parameters):
                raise ValueError(f"there are {len(parameters)} parameters. Got number {number}.")
            if not kept or set(moments) != {"step", *kept}:
                raise ValueError(f"parameter {number} must have all moments.")
            for name, moment in moments.items():
                if name != "step":
                    check_shape(name, moment, parameters[number])

    def _expanded(self, epoch: int) -> Generator[tuple[Step, _Expanded], None, None]:
        """The epoch's steps with their neighborhoods; for a GPU they are prefetched."""

        def expanded() -> Generator[tuple[Step, _Expanded], None, None]:
            for number, step in enumerate(self._schedule.steps(epoch)):
                if self._full is not None:
                    yield step, self._full
                else:
                    draw = generator(
                        self._config.seed, "expand", epoch, number, device=self._graph.device
                    )
                    yield step, self._expand(step, draw)

        if self._device.type != "cuda" or self._full is not None:
            return expanded()
        return prefetch(expanded(), self._device, lambda item: item[1].tensors())

    def _expand(self, step: Step, draw: torch.Generator) -> _Expanded:
        nodes = step.nodes
        if nodes is None:
            nodes = torch.arange(self._graph.num_nodes)
        encoder = self._encoder
        hops = encoder.num_layers + encoder.reads_neighbors
        blocks = self._expander.expand(
            nodes.to(self._graph.device), hops, self._config.fanout, draw
        )
        return _Expanded.of(blocks, self._graph, encoder)

    def _take(self, step: Step, expanded: _Expanded, epoch: int, number: int) -> tuple[Tensor, int]:
        """Takes one step: its loss, and the number of rows of the entity table that it updated."""
        config, device = self._config, self._device
        expanded = expanded.to(device)
        table = self._table
        rows = self._rows if table is None else table.take(expanded.nodes)
        self._optimizer.zero_grad()
        outputs = expanded.outputs(self._encoder, rows)
        if self._full is not None and step.nodes is not None:
            outputs = outputs.index_select(0, step.nodes.to(device))
        outputs = _dropout(outputs, config, epoch, number)
        loss = _loss(step, outputs, config)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        if table is not None:
            table.update(expanded.nodes, rows)
        return loss, len(rows)

    def _check(self, loss: float, epoch: int, number: int) -> None:
        exploded = self._first_loss is not None and loss > EXPLODED * max(self._first_loss, 1e-6)
        if not math.isfinite(loss) or exploded:
            what = f"the loss is {loss:.3g} in epoch {epoch + 1}, step {number}"
            raise TrainingDivergedError(_advice(what, self._config))


@dataclass(frozen=True, slots=True)
class _Expanded:
    """The neighborhood of a step's nodes, outermost first."""

    layers: list[Block]  # for layer 0, 1, …
    neighbors: Block | None  # for the inputs
    incident: SparseMatrix | None
    nodes: Tensor  # whose rows are read

    @staticmethod
    def of(blocks: list[Block], graph: UnionGraph, encoder: Encoder) -> _Expanded:
        """From blocks that are ordered outwards from the step's nodes."""
        layers = blocks[: encoder.num_layers][::-1]
        return _Expanded(
            layers,
            blocks[-1] if encoder.reads_neighbors else None,
            incidence(graph, layers[0].nodes) if encoder.reads_relations else None,
            blocks[-1].nodes,
        )

    @staticmethod
    def of_all_nodes(graph: UnionGraph, encoder: Encoder) -> _Expanded:
        """The full neighborhood of every node."""
        block = whole_block(graph, 0, graph.num_nodes)
        blocks = [block] * (encoder.num_layers + encoder.reads_neighbors)
        return _Expanded.of(blocks, graph, encoder)

    def to(self, device: torch.device) -> _Expanded:
        return _Expanded(
            [block.to(device) for block in self.layers],
            None if self.neighbors is None else self.neighbors.to(device),
            None if self.incident is None else self.incident.to(device),
            self.nodes,
        )

    def tensors(self) -> Iterator[Tensor]:
        blocks = self.layers if self.neighbors is None else [*self.layers, self.neighbors]
        yield from (getattr(block, name) for block in blocks for name in Block.__slots__)
        if self.incident is not None:
            yield from (self.incident.offsets, self.incident.columns, self.incident.values)

    def outputs(self, encoder: Encoder, rows: Tensor) -> Tensor:
        """(nodes, output dim) of the step's nodes."""
        states = [encoder.inputs(rows, self.neighbors, self.incident)]
        for index, block in enumerate(self.layers):
            after = encoder.layer(index, states[-1], block)
            states = [*(state.index_select(0, block.receivers) for state in states), after]
        return encoder.readout(states)


def _loss(step: Step, outputs: Tensor, config: TrainingConfig) -> Tensor:
    loss = _seeds_loss(step, outputs, config)
    if step.rejected is None:
        return loss
    source, target = step.rejected.to(outputs.device).T
    ends = (outputs.index_select(0, each) for each in (source, target))
    return loss + rejected_loss(*ends, margin=config.margin)


def _seeds_loss(step: Step, outputs: Tensor, config: TrainingConfig) -> Tensor:
    device = outputs.device
    if step.rejected is not None and step.nodes is not None:
        outputs = outputs[: -step.rejected.numel()]  # their entities are no negatives of seeds
    source, target = step.source.to(device), step.target.to(device)
    if step.source_negatives is None or step.target_negatives is None:
        return nhsm_loss(
            outputs,
            source,
            target,
            sharpness=config.sharpness,
            margin=config.margin,
            mixed_precision=device.type == "cuda",
        )
    parts = source, target, step.source_negatives.to(device), step.target_negatives.to(device)
    embedded = (outputs.index_select(0, part) for part in parts)
    return margin_loss(*embedded, margin=config.margin)


def _dropout(outputs: Tensor, config: TrainingConfig, epoch: int, number: int) -> Tensor:
    if not config.dropout:
        return outputs
    draw = generator(config.seed, "dropout", epoch, number, device=outputs.device)
    # Four draws of 16 bits from one of 64: on a CPU, bernoulli_ takes more than twice as long.
    count = outputs.numel()
    bits = torch.empty(-(-count // 4), dtype=torch.int64, device=outputs.device)
    bits.random_(-(2**63), None, generator=draw)
    most = round((1 - config.dropout) * 2**16)  # of the draws are below this
    kept = (bits.view(torch.int16)[:count] < most - 2**15).to(outputs.dtype)
    return outputs * kept.mul_(2**16 / most).view_as(outputs)


def _drawn(graphs: Pair[KnowledgeGraph], config: TrainingConfig) -> tuple[Encoder, Tensor]:
    """The encoder and its entity table, on the host."""
    draw = generator(config.seed, "initial")
    encoder = find_encoder(config.model)(Shape.before_union(graphs), config, draw)
    return encoder, encoder.initial_rows(draw)


def _union(graphs: Pair[KnowledgeGraph], device: torch.device, unions: Unions) -> UnionGraph:
    """The union of the graphs, on the device if it fits there."""
    found = unions.of(graphs, device)
    if not _fits(union_bytes(found), device):
        found = found.to(torch.device("cpu"))
    graph = union(graphs, found)
    return graph.to(device) if _fits(graph.num_bytes(), device) else graph


def _fits(num_bytes: int, device: torch.device) -> bool:
    """Whether so many bytes go on the device: on a GPU at most a quarter of what is free."""
    free = available(device) if device.type == "cuda" else None
    return free is None or num_bytes <= free / 4


def _advice(what: str, config: TrainingConfig) -> str:
    return (
        f"training failed: {what}. "
        f"Try another learning rate than {config.learning_rate:g}, usually a smaller one, "
        f"or more epochs than {config.epochs}."
    )
