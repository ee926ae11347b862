"""The classifiers: an easy problem, odd classes, and one that is not installed."""

from __future__ import annotations

import sys

import pytest
import torch
from planted import CPU
from torch import Tensor

from clusterea.errors import InputError
from clusterea.samplers import classifiers
from clusterea.samplers.classifiers import CLASSIFIERS, Classifier, find_classifier, softmax

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture(params=CLASSIFIERS)
def classify(request: pytest.FixtureRequest) -> Classifier:
    if request.param == "xgboost":
        pytest.importorskip("xgboost")
    return find_classifier(request.param)


def blobs(classes: int, each: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points around distant centers, and their classes."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat(each)
    centers = 3 * torch.randn(classes, 8, generator=draw)
    return centers[labels] + torch.randn(len(labels), 8, generator=draw), labels


@pytest.mark.parametrize("classes", [2, 4])
def test_an_easy_problem(classify: Classifier, classes: int) -> None:
    rows, truth = blobs(classes, 100)
    half = 50 * classes
    scores = classify(rows[:half], truth[:half], classes, 0, CPU)(rows)
    assert scores.shape == (100 * classes, classes)
    torch.testing.assert_close(scores.exp().sum(1), torch.ones(len(rows)))  # log-probabilities
    assert float((scores.argmax(1) == truth)[half:].double().mean()) > 0.95


def test_a_class_without_examples(classify: Classifier) -> None:
    rows, truth = blobs(3, 60)
    apart = torch.tensor([0, 2, 5])[truth]  # 1, 3 and 4 have none
    scores = classify(rows[:90], apart[:90], 6, 0, CPU)(rows)
    assert scores.shape == (180, 6)
    assert not scores.isnan().any()
    assert float((scores.argmax(1) == apart).double().mean()) > 0.95


@pytest.mark.parametrize(("examples", "classes"), [(0, 4), (1, 4), (5, 4), (4, 1)])
def test_one_class_of_examples_or_none(classify: Classifier, examples: int, classes: int) -> None:
    rows, _ = blobs(3, 20)
    last = classes - 1
    label = classify(rows[:examples], torch.full((examples,), last), classes, 0, CPU)
    scores = label(rows)
    assert scores.shape == (60, classes)
    assert not scores.isnan().any()
    assert (scores[:examples].argmax(1) == last).all()
    assert label(rows[:0]).shape == (0, classes)


def test_the_same_seed_gives_the_same_bytes(classify: Classifier) -> None:
    rows, truth = blobs(3, 40)
    first, again = (classify(rows[:50], truth[:50], 3, 2**62, CPU)(rows) for _ in range(2))
    assert torch.equal(first, again)


def test_blocks_of_rows_change_nothing(
    classify: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, truth = blobs(3, 40)
    whole = classify(rows[:50], truth[:50], 3, 0, CPU)(rows)
    monkeypatch.setattr(classifiers, "ROWS", 7)
    torch.testing.assert_close(classify(rows[:50], truth[:50], 3, 0, CPU)(rows), whole)


def test_both_are_equally_accurate() -> None:
    pytest.importorskip("xgboost")
    rows, truth = blobs(5, 120, seed=3)
    rows = rows + 1.5 * torch.randn(rows.shape, generator=torch.Generator().manual_seed(1))
    accuracy = {
        name: float(
            (each(rows[:180], truth[:180], 5, 0, CPU)(rows).argmax(1) == truth)[180:]
            .double()
            .mean()
        )
        for name, each in CLASSIFIERS.items()
    }
    assert accuracy["softmax"] > accuracy["xgboost"] - 0.02
    assert accuracy["softmax"] < 1  # hard enough to tell


def test_a_column_that_no_example_tells_anything_of_is_not_heard() -> None:
    rows, truth = blobs(3, 60)
    quiet = torch.zeros(180, 1)
    quiet[90:] = 0.01  # among the examples, none differs
    rows = torch.cat([rows, quiet], 1)
    scores = CLASSIFIERS["softmax"](rows[:90], truth[:90], 3, 0, CPU)(rows)
    assert float((scores.argmax(1) == truth)[90:].double().mean()) > 0.95


@pytest.mark.parametrize("examples", [5, 700])  # 700: every second step is smaller
def test_the_gradient_by_hand(examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifiers, "DROPOUT", 0.0)
    rows, truth = blobs(5, 200)
    arguments = rows[:examples], truth[:examples], 5, 0, CPU
    wanted = softmax(*arguments)(rows)
    monkeypatch.setattr(classifiers, "_fit", classifiers._fit_on_gpu)
    found = softmax(*arguments)(rows)
    assert not found.requires_grad
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


def test_the_gradient_by_hand_with_dropped_units(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, truth = blobs(4, 100)
    arguments = rows[:200], truth[:200], 4, 0, CPU  # all in each step: the same units are dropped
    wanted = softmax(*arguments)(rows)
    monkeypatch.setattr(classifiers, "_fit", classifiers._fit_on_gpu)
    torch.testing.assert_close(softmax(*arguments)(rows), wanted, rtol=1e-3, atol=1e-3)


@gpu
@pytest.mark.gpu
def test_a_gpu_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifiers, "DROPOUT", 0.0)
    rows, truth = blobs(5, 200)
    wanted = softmax(rows[:700], truth[:700], 5, 0, CPU)(rows).exp()
    found = softmax(rows[:700].cuda(), truth[:700].cuda(), 5, 0, torch.device("cuda"))(rows)
    torch.testing.assert_close(found.exp().cpu(), wanted, rtol=0, atol=0.01)


def test_steps_take_every_example_once_an_epoch() -> None:
    draw = torch.Generator().manual_seed(0)
    steps = classifiers._steps(1100, draw)  # 3 steps an epoch
    assert len(steps) == 300
    for epoch in range(100):
        taken = torch.cat(steps[3 * epoch : 3 * epoch + 3])
        assert torch.equal(taken.sort().values, torch.arange(1100))
    assert not torch.equal(steps[0], steps[3])
    assert classifiers._steps(0, draw) == []
    assert len(classifiers._steps(1, draw)) == 300
    assert len(classifiers._steps(512 * 150, draw)) == 4500  # 30 epochs
    assert len(classifiers._steps(512 * 300, draw)) == 6000  # 20 of 30


def test_xgboost_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    rows, truth = blobs(2, 10)
    with pytest.raises(InputError, match="xgboost is not installed: pip install .*=softmax"):
        find_classifier("xgboost")(rows, truth, 2, 0, CPU)


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match="unknown classifier 'xgbost'.*Did you mean 'xgboost'"):
        find_classifier("xgbost")
