"""`EntityTable` against plain Adam, and against loops where only some rows are touched."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.training.entity_table import EntityTable

CPU = torch.device("cpu")
ENTITIES, DIM, RATE = 7, 3, 0.05


def numbers(seed: int, *shape: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=draw)


def step(table: EntityTable, nodes: Tensor, goal: Tensor) -> None:
    """One step towards `goal`, under a loss whose slopes grow with the distance."""
    taken = table.take(nodes)
    (taken - goal[nodes]).pow(4).sum().backward()  # type: ignore[no-untyped-call]
    table.update(nodes, taken)


def new_table() -> EntityTable:
    return EntityTable(numbers(0, ENTITIES, DIM), RATE, CPU)


def test_all_rows_every_step_is_plain_adam() -> None:
    table, goal = new_table(), numbers(1, ENTITIES, DIM)
    rows = numbers(0, ENTITIES, DIM).requires_grad_()
    adam = torch.optim.Adam([rows], lr=RATE)
    everyone = torch.randperm(ENTITIES, generator=torch.Generator().manual_seed(0))
    for _ in range(25):
        step(table, everyone, goal)
        adam.zero_grad()
        (rows - goal).pow(4).sum().backward()  # type: ignore[no-untyped-call]
        adam.step()
        torch.testing.assert_close(table.rows, rows.detach())


def test_some_rows_against_a_loop() -> None:
    table, goal = new_table(), numbers(1, ENTITIES, DIM)
    rows = numbers(0, ENTITIES, DIM)
    first, second = torch.zeros_like(rows), torch.zeros_like(rows)
    draw = torch.Generator().manual_seed(4)
    for number in range(1, 12):
        nodes = torch.randperm(ENTITIES, generator=draw)[:4]
        step(table, nodes, goal)
        for node in nodes.tolist():
            for cell in range(DIM):
                slope = 4 * (rows[node, cell] - goal[node, cell]) ** 3
                first[node, cell] = 0.9 * first[node, cell] + 0.1 * slope
                second[node, cell] = 0.999 * second[node, cell] + 0.001 * slope**2
                mean = first[node, cell] / (1 - 0.9**number)
                spread = second[node, cell] / (1 - 0.999**number)
                rows[node, cell] -= RATE * mean / (spread.sqrt() + 1e-8)
        state = table.state()
        torch.testing.assert_close(table.rows, rows)
        torch.testing.assert_close(state["first"], first)
        torch.testing.assert_close(state["second"], second)


def test_take_is_a_copy_that_collects_a_gradient() -> None:
    table = new_table()
    before = table.rows.clone()
    taken = table.take(torch.tensor([3, 0]))
    assert taken.requires_grad
    assert taken.is_leaf
    assert torch.equal(taken.detach(), before[[3, 0]])
    with torch.no_grad():
        taken.add_(1)
    assert torch.equal(table.rows, before)


def test_update_wants_a_gradient() -> None:
    table = new_table()
    nodes = torch.tensor([0])
    with pytest.raises(ValueError, match="must have collected a gradient"):
        table.update(nodes, table.take(nodes))


def test_a_restored_table_goes_on_alike() -> None:
    goal = numbers(1, ENTITIES, DIM)
    nodes = [torch.tensor(some) for some in ([0, 1, 2], [2, 5], [6, 0, 3], [1, 2])]
    table = new_table()
    for some in nodes[:2]:
        step(table, some, goal)
    saved = {name: value.clone() for name, value in table.state().items()}
    other = EntityTable(torch.zeros(ENTITIES, DIM, dtype=torch.float64), RATE, CPU)
    other.restore(saved)
    for some in nodes[2:]:
        step(table, some, goal)
        step(other, some, goal)
    for name, value in table.state().items():
        assert torch.equal(other.state()[name], value), name
    assert not torch.equal(saved["rows"], table.rows)  # what was saved is left alone


def test_forgetting_moments_keeps_the_rows() -> None:
    table, goal = new_table(), numbers(1, ENTITIES, DIM)
    step(table, torch.arange(ENTITIES), goal)
    rows = table.rows.clone()
    table.forget_moments()
    assert torch.equal(table.rows, rows)
    assert table.state()["first"].numel() == 0
