"""Tests and intervals against enumeration and scipy, and what an analysis says."""

import inspect
import itertools
import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gbmrank.data.bootstrap import bootstrap_means
from gbmrank.experiments.results import Measure, System
from gbmrank.experiments.statistics.estimates import analyse, paired, slices
from gbmrank.experiments.statistics.resampling import flip_p_values, holm, range_p_values
from gbmrank.experiments.summary import notes
from tests.experiments.make_results import failed_run, make_results, table_results


def generator(seed=0):
    return np.random.default_rng(seed)


def enumerated_flips(differences):
    """Share of all sign patterns that are as extreme, by plain loops."""
    least = abs(sum(differences)) * (1 - 1e-9)
    patterns = list(itertools.product((-1, 1), repeat=len(differences)))
    return sum(
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= least
        for signs in patterns
    ) / len(patterns)


class TestFlips:
    def test_few_queries_are_enumerated(self):
        differences = generator().normal(0.3, 1.0, (9, 4))
        p = flip_p_values(differences, 10_000, generator())
        assert p == pytest.approx([enumerated_flips(list(column)) for column in differences.T])

    def test_enumeration_counts_equal_sums_as_extreme(self):
        differences = np.array([[0.1], [0.2], [0.3], [-0.3]])
        expected = enumerated_flips([0.1, 0.2, 0.3, -0.3])
        assert flip_p_values(differences, 16, generator())[0] == expected

    def test_drawn_patterns_agree_with_all_of_them(self):
        differences = generator(1).normal(0.25, 1.0, (15, 3))
        drawn = flip_p_values(differences, 20_000, generator())
        exact = flip_p_values(differences, 2**15, generator())
        assert exact == pytest.approx([enumerated_flips(list(column)) for column in differences.T])
        assert (np.abs(drawn - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4).all()

    def test_agrees_with_scipy(self):
        first, second = generator(2).random(10), generator(3).random(10)
        theirs = stats.permutation_test(
            (first, second),
            lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples",
            vectorized=True,
        )
        ours = flip_p_values((first - second)[:, None], 1024, generator())
        assert ours[0] == pytest.approx(theirs.pvalue)

    def test_the_smallest_p_is_one_over_all_draws_and_ours(self):
        assert flip_p_values(np.ones((60, 1)), 999, generator())[0] == 1 / 1000

    def test_no_differences_are_never_significant(self):
        assert flip_p_values(np.zeros((50, 1)), 99, generator())[0] == 1.0
        assert flip_p_values(np.zeros((3, 1)), 99, generator())[0] == 1.0


class TestRanges:
    def test_agrees_with_all_deals(self):
        table = generator(4).normal(0.0, 1.0, (3, 4)) + np.array([[0.0], [0.8], [1.2]])
        rows = table.T
        ranges = [
            np.ptp(np.sum(deal, axis=0))
            for deal in itertools.product(*(list(itertools.permutations(row)) for row in rows))
        ]
        sums = table.sum(axis=1)
        p = range_p_values(table, 20_000, generator())
        for i, j in itertools.combinations(range(3), 2):
            exact = np.mean(np.array(ranges) >= abs(sums[i] - sums[j]) - 1e-9)
            assert p[i, j] == pytest.approx(exact, abs=4 * math.sqrt(0.25 / 20_000))
            assert p[i, j] == p[j, i]
        assert (np.diag(p) == 1.0).all()

    def test_two_systems_are_the_paired_test(self):
        table = generator(5).normal(0.0, 1.0, (2, 12)) + np.array([[0.0], [0.7]])
        exact = flip_p_values((table[1] - table[0])[:, None], 4096, generator())[0]
        assert range_p_values(table, 20_000, generator())[0, 1] == pytest.approx(exact, abs=0.015)

    def test_equal_systems_are_never_significant(self):
        assert (range_p_values(np.ones((4, 20)), 99, generator()) == 1.0).all()

    def test_sums_that_differ_by_rounding_are_equal(self):
        table = generator(12).integers(0, 2, (3, 40)).astype(float)  # centred by thirds
        whole = range_p_values(3.0 * table, 2000, generator())  # centred by whole numbers
        assert (range_p_values(table, 2000, generator()) == whole).all()

    def test_easy_and_hard_queries_do_not_matter(self):
        table = generator(6).normal(0.0, 1.0, (3, 30))
        moved = table + 1000.0 * generator(7).random(30)
        ours, theirs = (range_p_values(each, 500, generator()) for each in (table, moved))
        assert ours == pytest.approx(theirs)


class TestBootstrap:
    def test_agrees_with_scipy(self):
        values = generator(8).exponential(1.0, 150)
        draws = bootstrap_means(values[None, :], 20_000, generator())[:, 0]
        named = inspect.signature(stats.bootstrap).parameters
        seeded = {"rng" if "rng" in named else "random_state": generator(9)}  # before 1.15
        theirs = stats.bootstrap(
            (values,), np.mean, n_resamples=20_000, method="percentile", **seeded
        ).confidence_interval
        width = theirs.high - theirs.low
        assert np.quantile(draws, 0.025) == pytest.approx(theirs.low, abs=0.03 * width)
        assert np.quantile(draws, 0.975) == pytest.approx(theirs.high, abs=0.03 * width)
        assert draws.std() == pytest.approx(values.std() / math.sqrt(150), rel=0.03)

    def test_systems_share_their_draws(self):
        values = generator().random(40)
        draws = bootstrap_means(np.stack([values, values + 0.25]), 200, generator())
        assert draws[:, 1] - draws[:, 0] == pytest.approx(np.full(200, 0.25))


def test_holm_agrees_with_its_definition():
    p = generator().random(7) ** 3
    ordered = sorted(p)
    for value, corrected in zip(p, holm(p), strict=True):
        rank = ordered.index(value)
        expected = max((len(p) - i) * ordered[i] for i in range(rank + 1))
        assert corrected == pytest.approx(min(1.0, expected))


def rejections(simulations, planted=None, resamples=199):
    """Share of simulations with a false rejection at 5%: Holm against the first, and Tukey."""
    rng, false = generator(11), np.zeros(2)
    for _ in range(simulations):
        table = rng.beta(2, 1, 50) + rng.standard_exponential((5, 50))
        keep = np.arange(5)
        if planted:
            table[4] += planted
            keep = keep[:4]
        p = holm(flip_p_values((table[1:] - table[0]).T, resamples, rng))
        pairs = range_p_values(table[keep], resamples, rng)
        false += (p[: len(keep) - 1].min() <= 0.05, pairs.min() <= 0.05)
    return false / simulations


def test_equal_systems_are_told_apart_as_rarely_as_promised():
    holms, tukeys = rejections(500)
    error = math.sqrt(0.05 * 0.95 / 500)
    assert holms <= 0.05 + 3 * error
    assert 0.05 - 3 * error <= tukeys <= 0.05 + 3 * error


def test_a_true_difference_does_not_spoil_the_correction_of_others():
    holms, _ = rejections(300, planted=1.5)
    assert holms <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


@pytest.mark.nightly
def test_equal_systems_are_told_apart_as_rarely_as_promised_often():
    holms, tukeys = rejections(10_000, resamples=499)
    error = math.sqrt(0.05 * 0.95 / 10_000)
    assert holms <= 0.05 + 3 * error
    assert 0.05 - 3 * error <= tukeys <= 0.05 + 3 * error


def test_a_planted_difference_is_found():
    found = 0
    for seed in range(4):
        rng = generator(seed)
        base = rng.random(400)
        noise = 0.1 * rng.standard_normal((4, 400))
        results = table_results(base + noise + np.array([[0], [0], [0], [0.03]]))
        target = analyse(results).measures[0]
        found += [each.outcome for each in target.comparisons] == ["undecided"] * 2 + ["better"]
        assert min(each.p for each in target.pairs if each.second == results.systems[3]) < 0.05
    assert found >= 3


class TestAnalysis:
    def test_numbers_are_what_they_are_called(self):
        results = table_results([[0.1, 0.2, 0.3, 0.4], [0.2, 0.2, 0.1, 0.8]])
        target = analyse(results).measures[0]
        (compared,) = target.comparisons
        gaps = np.array([0.1, 0.0, -0.2, 0.4])
        assert [each.mean for each in target.summaries] == pytest.approx([0.25, 0.325])
        assert compared.difference == pytest.approx(0.075)
        assert compared.effect == pytest.approx(gaps.mean() / gaps.std(ddof=1))
        assert (compared.wins, compared.ties, compared.losses) == (2, 1, 1)
        assert compared.p == compared.p_holm == enumerated_flips(list(gaps))
        assert target.pairs == ()

    def test_lower_is_better_turns_wins_and_not_differences(self):
        values = [[0.1, 0.2, 0.3, 0.4], [0.2, 0.2, 0.1, 0.8]]
        up, down = (analyse(table_results(values, higher=way)).measures[0] for way in (True, False))
        (more,), (less,) = up.comparisons, down.comparisons
        assert less.difference == more.difference
        assert less.effect == -more.effect
        assert (less.wins, less.losses) == (more.losses, more.wins)
        assert down.best == down.summaries[0]
        assert up.best == up.summaries[1]

    def test_outcomes_follow_the_direction(self):
        values = generator().random(80) + np.array([[0.0], [0.1]])
        for way, outcome in ((True, "better"), (False, "worse")):
            assert analyse(table_results(values, way)).measures[0].comparisons[0].outcome == outcome

    def test_seeds_are_averaged_within_queries_first(self):
        values = generator().random((3, 40))
        once = analyse(table_results(values, seeds=1)).measures[0]
        thrice = analyse(table_results(values, seeds=3)).measures[0]
        for one, other in zip(once.comparisons, thrice.comparisons, strict=True):
            assert other.interval == pytest.approx(one.interval)
            assert (other.p, other.wins) == (one.p, one.wins)

    def test_seeds_are_shown_apart(self):
        cube = np.repeat(generator().random((2, 1, 30)), 2, axis=1)
        cube[1, 1] += 0.5
        first, second = analyse(table_results(cube)).measures[0].summaries
        assert first.seed_sd == pytest.approx(0.0)
        assert second.seed_sd == pytest.approx(0.5 / math.sqrt(2))

    def test_a_seed_with_holes_has_no_mean_of_its_own(self):
        cube = generator().random((2, 3, 10))
        cube[1, 0, 4] = np.nan
        data = paired(table_results(cube), "ndcg@10")
        assert np.isnan(data.by_seed).tolist() == [[False] * 3, [True, False, False]]
        assert data.table[1, 4] == pytest.approx(cube[1, 1:, 4].mean())
        assert data.left_out == 0

    def test_queries_that_a_system_lacks_are_left_out_of_all(self):
        values = generator().random((3, 20))
        values[1, :4] = np.nan
        values[:, 10] = np.inf
        target = analyse(table_results(values)).measures[0]
        assert (target.n_queries, target.left_out, target.undefined) == (15, 4, 1)
        kept = np.delete(np.arange(20), [0, 1, 2, 3, 10])
        assert target.summaries[0].mean == pytest.approx(values[0, kept].mean())

    def test_systems_without_values_are_named_and_empty_nothing(self):
        results = make_results(n_queries=60)
        analysis = analyse(results)
        target = analysis.measures[0]
        assert target.excluded == (results.systems[7],)
        assert len(target.comparisons) == 6
        assert len(target.pairs) == 7 * 6 / 2
        assert any("pnorm_push" in text for text in analysis.not_established)

    def test_the_margin_decides_about_equivalence(self):
        values = generator().random(200) + np.zeros((2, 1))
        values[1] += 0.01 * generator(1).standard_normal(200)
        for shift, margin, same in (
            (0.0, 0.0, False),
            (0.0, 0.0001, False),
            (0.0, 0.01, True),
            (0.1, 0.01, False),
            (-0.1, 0.01, False),
        ):
            moved = table_results([values[0], values[1] + shift])
            (compared,) = analyse(moved, margin=margin).measures[0].comparisons
            assert compared.equivalent is same

    def test_the_same_seed_gives_the_same_analysis_and_another_does_not(self):
        results = make_results(n_queries=80)
        first, again, other = (analyse(results, seed=seed).to_dict() for seed in (3, 3, 4))
        assert first == again
        assert first["measures"] != other["measures"]

    def test_a_higher_level_is_a_wider_interval(self):
        results = make_results(n_queries=80)
        narrow, wide = (analyse(results, level=level).measures[0] for level in (0.8, 0.99))
        for one, other in zip(narrow.comparisons, wide.comparisons, strict=True):
            assert other.interval.low < one.interval.low < one.interval.high < other.interval.high

    def test_the_document_is_plain_json(self):
        document = analyse(make_results(n_queries=60)).to_dict()
        text = json.dumps(document, allow_nan=False)
        assert json.loads(text) == document
        assert document["measures"][0]["measure"] == {"name": "ndcg@10", "higher_is_better": True}


class TestEdges:
    def test_one_query(self):
        target = analyse(table_results([[0.5], [0.75], [0.25]]), margin=0.9).measures[0]
        assert math.isnan(target.comparisons[0].interval.low)
        assert math.isnan(target.comparisons[0].effect)
        assert target.comparisons[0].p == 1.0
        assert not target.comparisons[0].equivalent

    def test_all_differences_zero(self):
        target = analyse(table_results(np.full((3, 30), 0.5)), margin=0.01).measures[0]
        for each in target.comparisons:
            assert (each.p_holm, each.wins, each.ties, each.losses) == (1.0, 0, 30, 0)
            assert math.isnan(each.effect)
            assert each.equivalent

    def test_one_system(self):
        analysis = analyse(table_results(generator().random((1, 30))))
        assert analysis.measures[0].comparisons == ()
        assert "compared with nothing" in analysis.verdict

    def test_nothing_but_nan(self):
        analysis = analyse(table_results(np.full((2, 5), np.nan)))
        assert analysis.measures[0].n_queries == 0
        assert len(analysis.measures[0].excluded) == 2
        assert "Nothing was measured on ndcg@10" in analysis.verdict
        json.dumps(analysis.to_dict(), allow_nan=False)

    def test_no_query_in_common(self):
        analysis = analyse(table_results([[0.5, np.nan], [np.nan, 0.5]]))
        assert analysis.measures[0].left_out == 2
        assert analysis.measures[0].comparisons == ()
        assert "Nothing was measured" in analysis.verdict

    def test_a_baseline_without_values(self):
        values = generator().random((3, 30))
        values[0] = np.nan
        analysis = analyse(table_results(values))
        assert "baseline LightGBM objective_0 has no values" in analysis.verdict
        assert analysis.measures[0].comparisons == ()
        assert len(analysis.measures[0].summaries) == 2


class TestSentences:
    def lead(self, *leads, n_queries=100):
        noise = 0.01 * generator().standard_normal((len(leads), n_queries))
        return generator(1).random(n_queries) + noise + np.array(leads)[:, None]

    def test_better(self):
        analysis = analyse(table_results(self.lead(0.0, 0.1, 0.2, -0.1)))
        assert analysis.verdict.startswith(
            "LightGBM objective_2 is better than the baseline LightGBM objective_0 on ndcg@10, by"
        )
        assert analysis.verdict.endswith("One other system is better too and one is worse.")

    def test_better_where_lower_is(self):
        values = self.lead(0.0, -0.1)
        analysis = analyse(table_results(values, higher=False, name="regret"))
        ahead = (values[0] - values[1]).mean()
        share = 100.0 * ahead / analysis.measures[0].mean(analysis.baseline)
        assert f"on regret, by {ahead:.4f} or {share:.1f}% (95% interval 0." in analysis.verdict

    def test_worse(self):
        analysis = analyse(table_results(self.lead(0.0, -0.1, -0.2)))
        assert analysis.verdict == (
            "No system is better than the baseline LightGBM objective_0 on ndcg@10. Two are worse."
        )

    def test_undecided(self):
        analysis = analyse(table_results(self.lead(0.0, 0.0)))
        assert "No difference to the baseline" in analysis.verdict
        assert any("no margin was given" in text for text in analysis.not_established)

    def test_many_undecided_systems_are_counted_and_not_named(self):
        texts = analyse(table_results(self.lead(*[0.0] * 9))).not_established
        assert "8 of 8 systems: no difference to the baseline is established on ndcg@10." in texts
        assert max(map(len, texts)) < 140

    def test_runs_that_stopped_at_once_are_said(self):
        results = table_results(self.lead(0.0, 0.0))
        few = "LightGBM objective_0 and LightGBM objective_1 can be: early stopping kept fewer"
        assert not any(few in text for text in analyse(results).not_established)
        results = replace(results, settings={"rounds": 300})
        assert any(few in text for text in analyse(results).not_established)
        note = "lightgbm objective_1: early stopping kept fewer than 5 rounds in 1 of 1 runs"
        assert any(note in text for text in notes(results, analyse(results)))
        long = tuple(replace(run, best_round=4) for run in results.runs)
        assert replace(results, runs=long).stopped_at_once() == {}

    def test_equivalent(self):
        analysis = analyse(table_results(self.lead(0.0, 0.0)), margin=0.02)
        assert "as good as the baseline LightGBM objective_0 on ndcg@10" in analysis.verdict
        assert not any("Whether LightGBM objective_1" in text for text in analysis.not_established)

    def test_better_by_less_than_matters(self):
        analysis = analyse(table_results(self.lead(0.0, 0.02)), margin=0.1)
        assert "within the margin" in analysis.verdict

    def test_the_best_is_not_always_better_than_the_second(self):
        analysis = analyse(table_results(self.lead(0.0, 0.1, 0.1)))
        assert any("best mean, is better than" in text for text in analysis.not_established)

    def test_a_better_mean_on_fewer_queries_is_said(self):
        gains = np.where(np.arange(200) % 5 < 2, 0.5, -0.1)
        base = generator().random(200)
        analysis = analyse(table_results([base, base + gains]))
        assert "is better than the baseline" in analysis.verdict
        assert any("better on 80 and worse on 120" in text for text in analysis.not_established)
        usual = analyse(table_results([base, base - 0.1 * gains - 0.3 * gains.mean() + 0.2]))
        assert not any("on most queries" in text for text in usual.not_established)

    def test_few_queries_one_seed_and_failed_runs_are_said(self):
        results = table_results(self.lead(0.0, 0.1, n_queries=12))
        text = " ".join(analyse(results).not_established)
        assert "with 12 queries" in text
        assert "there is one seed" in text
        half = make_results(n_queries=200, failing=False)
        lost = failed_run(half.systems[2], 0, 0)
        kept = [r for r in half.runs if (r.system, r.seed, r.fold) != (lost.system, 0, 0)]
        assert "1 system of which some runs failed" in " ".join(
            analyse(replace(half, runs=(*kept, lost))).not_established
        )

    def test_measures_that_disagree_are_said(self):
        results = table_results(self.lead(0.0, 0.1))
        for run in results.runs:
            run.values["map"] = 1.0 - run.values["ndcg@10"]
        both = replace(results, measures=(*results.measures, Measure("map", True)))
        text = " ".join(analyse(both).not_established)
        assert "is best on map: another has the best mean there" in text
        assert "corrected within each measure" in text


class TestBoosters:
    """Two boosters, each with a baseline; XGBoost is ahead whatever is trained."""

    SYSTEMS = (
        System("lightgbm", "native:lambdarank"),
        System("lightgbm", "pairwise(loss=logistic, target=ndcg@10)"),
        System("xgboost", "native:rank:ndcg"),
        System("xgboost", "pairwise(loss=logistic, target=ndcg@10)"),
    )

    def results(self, *leads, own=True):
        values = TestSentences().lead(*leads, n_queries=300)
        made = table_results(values)
        names = dict(zip(made.systems, self.SYSTEMS, strict=True))
        return replace(
            made,
            systems=self.SYSTEMS,
            runs=tuple(replace(run, system=names[run.system]) for run in made.runs),
            baseline=self.SYSTEMS[0],
            baselines=self.SYSTEMS[::2] if own else (),
        )

    def test_a_booster_is_not_the_effect_of_an_objective(self):
        verdict = analyse(self.results(0.0, 0.0, 0.1, 0.1)).verdict
        assert verdict.startswith(
            "LightGBM: no difference to lambdarank is established on ndcg@10. "
            "XGBoost: no difference to rank:ndcg is established on ndcg@10. "
            "The boosters themselves: XGBoost rank:ndcg is "
        )
        assert verdict.endswith("% above LightGBM lambdarank on ndcg@10 (corrected p < 0.001).")
        assert "pairwise" not in verdict

    def test_an_objective_is_compared_within_its_booster(self):
        verdict = analyse(self.results(0.0, 0.0, 0.0, 0.1)).verdict
        assert "XGBoost: pairwise(target=ndcg@10) is better than rank:ndcg on ndcg@10" in verdict
        assert "LightGBM lambdarank on ndcg@10 (not established, corrected p = " in verdict

    def test_a_named_baseline_is_that_of_all(self):
        analysis = analyse(self.results(0.0, 0.0, 0.1, 0.1, own=False))
        assert "than the baseline LightGBM lambdarank on ndcg@10" in analysis.verdict
        assert {one.baseline for one in analysis.measures[0].comparisons} == {self.SYSTEMS[0]}

    def test_every_comparison_is_in_the_correction(self):
        results = self.results(0.0, 0.002, 0.001, 0.003)
        analysis = analyse(results)
        compared = analysis.measures[0].comparisons
        lambdarank, _, ndcg, _ = self.SYSTEMS
        assert [one.baseline for one in compared] == [lambdarank, lambdarank, ndcg]
        corrected = holm([one.p for one in compared])
        assert [one.p_holm for one in compared] == pytest.approx(corrected)
        means = results.values("ndcg@10").mean(axis=(1, 2))
        assert compared[2].difference == pytest.approx(means[3] - means[2])
        assert analysis.to_dict()["measures"][0]["comparisons"][2]["baseline"] == ndcg._asdict()

    def test_a_booster_whose_baseline_has_no_values(self):
        results = self.results(0.0, 0.0, 0.1, 0.1)
        (lost,) = (run for run in results.runs if run.system == self.SYSTEMS[2])
        nothing = replace(lost, values={"ndcg@10": np.full(300, np.nan)})
        others = [run for run in results.runs if run is not lost]
        verdict = analyse(replace(results, runs=(*others, nothing))).verdict
        assert "XGBoost: rank:ndcg has no values on ndcg@10, so nothing" in verdict

    def test_without_a_native_objective_the_same_one_is_compared_across_boosters(self):
        systems = tuple(
            System(name, one) for name in ("lightgbm", "xgboost") for one in ("ranknet", "softmax")
        )
        results = replace(
            self.results(0, 0, 0, 0), systems=systems, baseline=systems[0], baselines=systems[::2]
        )
        assert results.compared_with(systems[0]) is None
        assert results.compared_with(systems[2]) == systems[0]
        native = replace(results, systems=(*systems, self.SYSTEMS[0]), baseline=self.SYSTEMS[0])
        native = replace(native, baselines=(self.SYSTEMS[0], systems[2]))
        assert native.compared_with(systems[2]) == systems[0]
        assert native.compared_with(systems[1]) == self.SYSTEMS[0]


class TestSlices:
    def test_parts_hold_every_query_once(self):
        rng = generator()
        gaps, sizes = rng.normal(size=503), rng.geometric(0.05, 503)
        parts = slices(gaps, sizes)
        assert len(parts) == 4
        assert sum(part.n_queries for part in parts) == 503
        mean = sum(part.difference * part.n_queries for part in parts) / 503
        assert mean == pytest.approx(gaps.mean())
        assert all(part.interval.low < part.difference < part.interval.high for part in parts)

    def test_few_sizes_are_parts_of_their_own(self):
        parts = slices(np.arange(6.0), np.array([3, 1, 1, 3, 9, 1]))
        assert [(part.label, part.n_queries) for part in parts] == [("1", 3), ("3", 2), ("9", 1)]
        assert math.isnan(parts[2].interval.low)

    def test_a_size_that_most_queries_have_is_in_one_part(self):
        parts = slices(np.zeros(100), np.array([5] * 90 + list(range(6, 16))))
        assert sum(part.n_queries for part in parts) == 100
        assert parts[0].label == "5"


@pytest.mark.nightly
def test_twenty_systems_on_ten_thousand_queries_take_seconds():
    results = table_results(generator().random((20, 10_000)))
    start = time.process_time()
    analyse(results)
    assert time.process_time() - start < 20
