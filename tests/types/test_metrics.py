import pytest

from clusterea.types import DegreeBucket, MatchingScores, Metrics, Pair, Ranking

RANKING = Ranking({1: 0.5, 10: 0.75}, 0.6)


def test_to_dict_has_the_shape_of_metrics_json() -> None:
    metrics = Metrics(
        Pair(RANKING, Ranking({1: 0.25, 10: 0.5}, 0.3)),
        Pair(RANKING, RANKING),
        test_links=100,
        missing=3,
        matching=MatchingScores(0.5, 0.25),
        by_degree=(DegreeBucket(1, 3, 40, RANKING),),
    )
    both = {"hits@1": 0.5, "hits@10": 0.75, "mrr": 0.6}
    assert metrics.to_dict() == {
        "test_candidates": {
            "source_to_target": both,
            "target_to_source": {"hits@1": 0.25, "hits@10": 0.5, "mrr": 0.3},
        },
        "all_candidates": {"source_to_target": both, "target_to_source": both},
        "matching": {"precision": 0.5, "recall": 0.25, "f1": 1 / 3},
        "by_degree": [{"least": 1, "most": 3, "test_links": 40, **both}],
        "missing": 3,
        "test_links": 100,
    }


def test_f1_of_nothing_is_nothing() -> None:
    assert MatchingScores(0, 0).f1 == 0


@pytest.mark.parametrize("hits", [{1: 1.2}, {1: -0.1}, {1: 0.5, 10: 0.4}, {1: float("nan")}])
def test_impossible_hits_are_refused(hits: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="hits"):
        Ranking(hits, 0.5)


def test_more_missing_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="missing must be at most test_links. Got 2 of 1"):
        Metrics(Pair(RANKING, RANKING), Pair(RANKING, RANKING), test_links=1, missing=2)


def test_a_notebook_shows_both_directions_and_candidate_sets() -> None:
    metrics = Metrics(
        Pair(RANKING, Ranking({1: 0.25, 10: 0.5}, 0.3)),
        Pair(RANKING, RANKING),
        test_links=1000,
        missing=3,
        matching=MatchingScores(0.5, 0.25),
    )
    shown = metrics._repr_html_()
    assert "1,000 test links: precision 0.500, recall 0.250, f1 0.333" in shown
    row = "<td>target to source</td><td>test links&#x27; entities</td><td>0.250</td><td>0.500</td>"
    assert row in shown
    assert shown.count("<tr>") == 5


def test_not_quite_all_is_not_shown_as_all() -> None:
    nearly = Ranking({1: 0.9996, 10: 0.99999}, 0.9998)
    pair = Pair(nearly, nearly)
    metrics = Metrics(pair, pair, test_links=10, missing=0, matching=MatchingScores(0.9997, 1.0))
    assert repr(metrics) == ("Metrics(hits@1=0.9996, hits@10=>0.9999, mrr=0.9998 on 10 test links)")
    assert "precision 0.9997, recall 1.000, f1 0.9998" in metrics._repr_html_()
    assert "<td>0.9996</td><td>&gt;0.9999</td><td>0.9998</td>" in metrics._repr_html_()
