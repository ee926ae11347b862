"""A small run that a session can be opened on, and parts that stand in for those with files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from clusterea.config import preset
from clusterea.pipeline.result import AlignmentResult
from clusterea.pipeline.store import Made
from clusterea.review.session import Ask, Precision, Session
from clusterea.types import (
    Alignment,
    AlignmentTask,
    Answer,
    Benchmark,
    Decisions,
    KnowledgeGraph,
    Names,
    Pair,
    Question,
    Similarity,
    Texts,
)

SOURCE = ["Paris", "Lyon", "France", "Seine", "Rhône", "Nile"]
TARGET = ["Parigi", "Lione", "Francia", "Senna", "Rodano", "Nilo"]
PARIS, LYON, FRANCE, SEINE, RHONE, NILE = range(6)
COUNTRY, RIVER, TWIN = 0, 1, 2
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


def towns(*, hub: int = 0, label: str = "Paris") -> AlignmentResult:
    """Two graphs of six entities; the run wrongly links Seine = Rodano, and France is a seed.

    Args:
        hub: More neighbors of Paris, by one relation.
        label: Of Paris.
    """
    triples = [(PARIS, COUNTRY, FRANCE), (PARIS, RIVER, SEINE), (LYON, COUNTRY, FRANCE)]
    triples += [(LYON, RIVER, RHONE), (SEINE, COUNTRY, FRANCE), (RHONE, COUNTRY, FRANCE)]
    more = [(PARIS, TWIN, number) for number in range(6, 6 + hub)]
    extra = [f"town {number}" for number in range(hub)]
    graphs = Pair(
        KnowledgeGraph(np.array([*triples, *more]), 6 + hub, 3),
        KnowledgeGraph(np.array(triples), 6, 2),
    )
    names = Pair(
        Names([f"http://fr.example/{name}" for name in [*SOURCE, *extra]]),
        Names([f"http://it.example/{name}" for name in TARGET]),
    )
    labels = Pair(
        Texts.of_lists(
            [[label, "Lutetia"], *([name] for name in SOURCE[1:]), *([] for _ in extra)]
        ),
        Texts.of_lists([name] for name in TARGET),
    )
    task = AlignmentTask(graphs, np.array([[FRANCE, FRANCE]]))
    benchmark = Benchmark(
        task,
        np.empty((0, 2), np.int64),
        names,
        Pair(Names(["country", "river", "twin"]), Names(["paese", "fiume"])),
        labels=labels,
    )
    links = torch.tensor([[PARIS, PARIS], [LYON, LYON], [SEINE, RHONE]])
    alone = Pair(torch.tensor([RHONE, NILE]), torch.tensor([SEINE, NILE]))
    alignment = Alignment(links, torch.tensor([0.9, 0.8, 0.4]), alone, examples=100)
    # Every source entity of the first six has the same candidates.
    offsets = torch.arange(7) * 4
    offsets = torch.cat([offsets, offsets[-1:].repeat(hub)])
    similarity = Similarity(
        offsets,
        torch.tensor([PARIS, LYON, SEINE, RHONE]).repeat(6),
        torch.tensor([0.9, 0.5, 0.2, 0.3]).repeat(6),
        Pair(6 + hub, 6),
    )
    return AlignmentResult(
        task,
        preset("fast", 6),
        {},
        {},
        Made.of("", similarity),
        Made.of("", alignment),
        benchmark=benchmark,
    )


class Memory:
    """Answers without a file."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    @property
    def decisions(self) -> Decisions:
        return Decisions.of(self.answers)

    def append(self, *answers: Answer) -> None:
        self.answers = [*self.answers, *answers]


QUESTIONS = [
    Question(SEINE, RHONE, 0.4, is_link=True, is_random=False),
    Question(PARIS, PARIS, 0.9, is_link=True, is_random=True),
    Question(LYON, LYON, 0.8, is_link=True, is_random=False),
    Question(RHONE, SEINE, 0.2, is_link=False, is_random=False),
]


def session_on(
    result: AlignmentResult,
    log: Memory,
    *,
    questions: Sequence[Question] = QUESTIONS,
    ask: Ask | None = None,
    blind: bool = False,
    precision: Precision | None = None,
) -> Session:
    judged = precision or Precision(0.5, 0.1, 0.9, 0, 0.3)
    return Session(
        result,
        log,
        ask or (lambda count, answers, pending: list(questions[:count])),
        lambda answers: judged,
        author="ada",
        blind=blind,
    )
