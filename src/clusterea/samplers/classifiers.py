"""Classifiers that extend the seeds' labels to every entity of a graph, chosen by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from clusterea.errors import InputError, look_up
from clusterea.models.encoder import glorot
from clusterea.numerics.repeated import repeated

Label = Callable[
    [Tensor], Tensor
]  # (n, dim) anywhere → (n, classes) on the device, log-probabilities
# examples, their labels, classes, seed, device → a function that labels other rows
Classifier = Callable[[Tensor, Tensor, int, int, torch.device], Label]

UNITS, DROPOUT = 128, 0.5
EPOCHS, EXAMPLES_PER_STEP, RATE = 30, 512, 1e-3
LEAST_STEPS, MOST_STEPS = 300, 6000  # enough with few seeds, quick with many
ROWS = 1 << 17  # rows labeled at a time


def softmax(
    examples: Tensor, labels: Tensor, classes: int, seed: int, device: torch.device
) -> Label:
    """A network with one hidden layer."""
    draw, drop = torch.Generator().manual_seed(seed), torch.Generator(device).manual_seed(seed)
    shapes = ((examples.shape[1], UNITS), (UNITS, classes))
    drawn = [glorot(*shape, generator=draw).detach() for shape in shapes]
    parameters = [
        torch.nn.Parameter(each.to(device))
        for each in (*drawn, torch.zeros(UNITS), torch.zeros(classes))
    ]
    first, second, first_bias, second_bias = parameters
    mean = examples.sum(0) / max(len(examples), 1)
    scale = ((examples - mean).square().sum(0) / max(len(examples), 1)).sqrt_()
    scale[scale <= 1e-6 * mean.abs()] = 1.0  # a constant column must not be scaled up

    def standardized(rows: Tensor) -> Tensor:
        return (rows - mean) / scale

    steps = _steps(len(examples), draw)
    fit = _fit_on_gpu if device.type == "cuda" else _fit
    fit(parameters, standardized, examples, labels, steps, drop)

    def label(rows: Tensor) -> Tensor:
        hidden = torch.addmm(first_bias, standardized(rows.to(device).float()), first).relu_()
        return torch.addmm(second_bias, hidden, second).log_softmax(1)

    return _in_blocks(label, classes, device)


def _fit(
    parameters: list[torch.nn.Parameter],
    standardized: Callable[[Tensor], Tensor],
    examples: Tensor,
    labels: Tensor,
    steps: list[Tensor],
    drop: torch.Generator,
) -> None:
    """Trains the parameters in place, by steps of Adam."""
    first, second, first_bias, second_bias = parameters
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    for picked in steps:
        rows = standardized(examples.index_select(0, picked))
        active = torch.relu(torch.addmm(first_bias, rows, first))
        kept = torch.rand(active.shape, generator=drop, device=drop.device) >= DROPOUT
        scores = torch.addmm(second_bias, active * kept / (1 - DROPOUT), second)
        optimizer.zero_grad()
        functional.cross_entropy(scores, labels.index_select(0, picked)).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@torch.no_grad()
def _fit_on_gpu(
    parameters: list[torch.nn.Parameter],
    standardized: Callable[[Tensor], Tensor],
    examples: Tensor,
    labels: Tensor,
    steps: list[Tensor],
    drop: torch.Generator,
) -> None:
    """`_fit` with the gradient by hand, in steps that never wait and are all of one size."""
    if not steps:
        return
    first, second, first_bias, second_bias = parameters
    on_gpu = drop.device.type == "cuda"
    optimizer = torch.optim.Adam(parameters, lr=RATE, fused=on_gpu, capturable=on_gpu)
    chosen = pad_sequence(steps, batch_first=True).to(drop.device)  # (steps, most)
    counts = torch.tensor([len(each) for each in steps]).unsqueeze(1)
    shares = (torch.arange(chosen.shape[1]) < counts) / counts  # 0 for what was filled in
    shares = shares.unsqueeze(2).to(drop.device)  # (steps, most, 1)
    number = torch.zeros(1, dtype=torch.int64, device=drop.device)
    minus = torch.full((chosen.shape[1], 1), -1.0, device=drop.device)

    def step() -> None:
        picked = chosen.index_select(0, number)[0]
        rows = standardized(examples.index_select(0, picked))
        active = torch.addmm(first_bias, rows, first).relu_()
        kept = torch.rand(active.shape, generator=drop, device=drop.device) >= DROPOUT
        active = active * kept / (1 - DROPOUT)
        slopes = torch.addmm(second_bias, active, second).softmax(1)
        slopes.scatter_add_(1, labels.index_select(0, picked).unsqueeze(1), minus)
        slopes.mul_(shares.index_select(0, number)[0])
        below = (slopes @ second.T).mul_(active > 0).div_(1 - DROPOUT)
        first.grad, first_bias.grad = rows.T @ below, below.sum(0)
        second.grad, second_bias.grad = active.T @ slopes, slopes.sum(0)
        optimizer.step()
        number.add_(1)

    repeated(step, len(steps), drop)


def xgboost(
    examples: Tensor, labels: Tensor, classes: int, seed: int, device: torch.device
) -> Label:
    """The paper's classifier, with its own defaults."""
    try:
        from xgboost import DMatrix, build_info, train
    except ImportError as error:
        raise InputError(
            "the classifier xgboost is not installed: pip install 'clusterea[xgboost]', or choose "
            "--set sampling.classifier=softmax."
        ) from error
    present, contiguous = torch.unique(
        labels, return_inverse=True
    )  # some classes may have no example
    if len(present) < 2:  # xgboost refuses a single class
        fixed = torch.full((classes,), -torch.inf if len(present) else 0.0, device=device)
        fixed[present] = 0.0
        return lambda rows: fixed.expand(len(rows), classes)
    # The same as XGBClassifier, which would need scikit-learn.
    settings = {
        "objective": "multi:softprob",
        "num_class": len(present),
        "seed": seed % 2**31,
        "device": "cuda" if device.type == "cuda" and build_info()["USE_CUDA"] else "cpu",
    }
    data = DMatrix(examples.cpu().numpy(), contiguous.cpu().numpy())
    model: Any = train(settings, data, num_boost_round=100)

    def label(rows: Tensor) -> Tensor:
        result = torch.full((len(rows), classes), -torch.inf, device=device)
        likely = model.predict(DMatrix(rows.cpu().float().numpy()))
        result[:, present] = torch.from_numpy(likely).to(device).log()
        return result

    return _in_blocks(label, classes, device)


CLASSIFIERS: dict[str, Classifier] = {"xgboost": xgboost, "softmax": softmax}


def find_classifier(name: str) -> Classifier:
    """The classifier called `name`. The error for an unknown name lists the known ones."""
    return look_up("classifier", name, CLASSIFIERS)


def _in_blocks(label: Label, classes: int, device: torch.device) -> Label:
    """Applies `label` to any number of rows, a block at a time."""

    @torch.no_grad()
    def whole(rows: Tensor) -> Tensor:
        result = torch.empty(len(rows), classes, device=device)
        for start in range(0, len(rows), ROWS):
            result[start : start + ROWS] = label(rows[start : start + ROWS])
        return result

    return whole


def _steps(examples: int, draw: torch.Generator) -> list[Tensor]:
    """The examples of each step, shuffled in each epoch."""
    if examples == 0:
        return []
    per_epoch = -(-examples // EXAMPLES_PER_STEP)
    wanted = min(max(EPOCHS * per_epoch, LEAST_STEPS), MOST_STEPS)
    epochs = -(-wanted // per_epoch)
    steps = [
        chosen
        for _ in range(epochs)
        for chosen in torch.split(torch.randperm(examples, generator=draw), EXAMPLES_PER_STEP)
    ]
    return steps[:wanted]
