#!/usr/bin/env python3
"""Tests of results_tables.py, and of how results.py plans and lays out runs, without running the tool."""

import pathlib
import unittest

import results
import results_page
import results_tables as tables


def fit(smallest, live=1000, **more):
    return {"smallest_capacity_bytes": smallest, "peak_live_bytes": live, "hazards": 0, "peak_pending_bytes": 0, **more}


def replay(reserved=1000, live=1000, us=100.0, steps=(), **more):
    marks = []
    for number, calls in enumerate(steps):
        marks += [{"label": f"step{number}", "driver_calls": calls}, {"label": f"opt{number}", "driver_calls": 0}]
    result = {"peak_reserved_bytes": reserved, "peak_live_bytes": live, "modelled_driver_us": us, "hazards": 0}
    return {**result, "out_of_memory": False, "failed_allocations": 0, "marks": marks, **more}


def everyone(make, **ours):
    result = {name: make() for name in tables.ALLOCATORS}
    result[tables.OURS] = make(**ours)
    return result


class RatioTest(unittest.TestCase):
    def test_is_absent_where_a_part_is(self):
        self.assertIsNone(tables.ratio(None, 5))
        self.assertIsNone(tables.ratio(5, None))
        self.assertIsNone(tables.ratio(5, 0))
        self.assertEqual(tables.show_ratio(None), "–")

    def test_is_never_rounded_to_the_better_side(self):
        self.assertEqual(tables.show_ratio(1.00501), "1.0051")
        self.assertEqual(tables.show_ratio(1.005), "1.0050")
        self.assertEqual(tables.show_ratio(3.001, 2), "3.01")


class FitTest(unittest.TestCase):
    def row(self, trace, ours, others=2000):
        results = {name: fit(others) for name in tables.ALLOCATORS}
        results["expanse"] = None if ours is None else fit(ours)
        return tables.fit_table({trace: results}).rows[0]

    def test_bounds(self):
        self.assertTrue(self.row("a.csv", 1005).met)
        self.assertFalse(self.row("a.csv", 1006).met)
        self.assertTrue(self.row("a.csv", 1002).stretch)
        self.assertFalse(self.row("a.csv", 1003).stretch)

    def test_random_mixed_has_bounds_of_its_own(self):
        self.assertTrue(self.row("random_mixed.csv.gz", 1040).met)
        self.assertFalse(self.row("random_mixed.csv.gz", 1041).met)
        self.assertTrue(self.row("random_mixed.csv.gz", 1022).stretch)

    def test_a_smaller_caching_rival_is_a_failure_and_named(self):
        row = self.row("a.csv", 1004, others=1003)
        self.assertFalse(row.met)
        self.assertEqual(row.cells[-1], "per-stream-segments, caching, preallocated")
        self.assertTrue(self.row("a.csv", 1004, others=1004).met)

    def test_what_fits_nowhere_is_not_met(self):
        self.assertFalse(self.row("a.csv", None).met)

    def test_the_worst_comes_first(self):
        fits = {"good": everyone(lambda: fit(2000)), "bad": everyone(lambda: fit(2000)), "worse": {}}
        fits["good"]["expanse"], fits["bad"]["expanse"] = fit(1001), fit(1004)
        table = tables.fit_table(fits)
        self.assertEqual([row.trace for row in table.rows], ["worse", "bad", "good"])
        self.assertEqual((table.met(), table.stretch_met()), (2, 1))

    def test_lag_asks_for_no_hazard_too(self):
        for smallest, hazards, met in ((1020, 0, True), (1021, 0, False), (1001, 1, False)):
            ours = everyone(lambda: fit(2000))
            ours["expanse"] = fit(smallest, hazards=hazards)
            self.assertEqual(tables.lag_fit_table({"a": ours}).rows[0].met, met)


class WideTest(unittest.TestCase):
    def test_reserved_is_compared_to_the_rival(self):
        for reserved, met in ((1000, True), (1001, False)):
            table = tables.reserved_table({"a": everyone(replay, reserved=reserved)}, 0)
            self.assertEqual(table.rows[0].met, met)
            self.assertTrue(table.rows[0].stretch)

    def test_time_is_compared_to_the_rival(self):
        for us, met, stretch in ((100.0, True, True), (300.0, True, False), (301.0, False, False)):
            row = tables.time_table({"a": everyone(replay, us=us)}, 0).rows[0]
            self.assertEqual((row.met, row.stretch), (met, stretch))

    def test_a_run_out_of_memory_has_no_figure(self):
        for table in (tables.reserved_table, tables.time_table):
            self.assertFalse(table({"a": everyone(replay, out_of_memory=True)}, 0).rows[0].met)


class StepsTest(unittest.TestCase):
    def test_a_step_lasts_to_the_next_one(self):
        marks = [("init_end", 9), ("step0", 1), ("opt0", 2), ("step1", 3), ("opt1", 4), ("end", 5)]
        result = replay()
        result["marks"] = [{"label": label, "driver_calls": calls} for label, calls in marks]
        self.assertEqual(tables.calls_per_step(result), [3, 12])

    def test_only_steps_after_the_third_count(self):
        row = tables.steps_table({"a": everyone(replay, steps=(900, 800, 700, 5, 0, 0))}, "1.02", 5, 0).rows[0]
        self.assertTrue(row.met and row.stretch)
        self.assertEqual(row.figure, "5")
        row = tables.steps_table({"a": everyone(replay, steps=(0, 0, 0, 6, 1))}, "1.02", 5, 0).rows[0]
        self.assertFalse(row.met or row.stretch)

    def test_too_few_steps_are_not_met(self):
        self.assertFalse(tables.steps_table({"a": everyone(replay, steps=(0, 0, 0))}, "1.02", 5, 0).rows[0].met)


class OtherTargetsTest(unittest.TestCase):
    def tight(self, **ours):
        fits = {"random_mixed": {tables.RIVAL: fit(1134, modelled_driver_us=100.0)}}
        return tables.tight_random_table({"random_mixed": everyone(replay, **ours)}, fits, 0).rows[0]

    def test_random_mixed_is_compared_to_the_rival_at_its_smallest(self):
        self.assertTrue(self.tight(us=100.0).met)
        self.assertFalse(self.tight(us=101.0).met)
        self.assertTrue(self.tight(us=50.0).stretch)
        self.assertFalse(self.tight(us=50.0, failed_allocations=1).met)
        self.assertFalse(self.tight(us=50.0, out_of_memory=True).met)

    def test_a_request_that_fails_again_is_not_met(self):
        self.assertTrue(tables.retry_table({"fsdp": everyone(replay)}, 0).rows[0].met)
        self.assertFalse(tables.retry_table({"fsdp": everyone(replay, out_of_memory=True)}, 0).rows[0].met)

    def test_hazards_of_all_runs_are_added(self):
        by_lag = {0: {"a": [replay(), replay()]}, 200: {"a": [replay(hazards=1), replay(hazards=2)]}}
        row = tables.hazard_table(by_lag).rows[0]
        self.assertEqual((row.met, row.figure, row.cells), (False, "3", [0, 3]))
        self.assertFalse(tables.hazard_table({0: {"a": [replay()]}, 200: {}}).rows[0].met)


class DocumentTest(unittest.TestCase):
    def page(self, notes):
        return results_page.render_document(["about"], [tables.fit_table({"a": everyone(lambda: fit(1001))})], notes)

    def test_keeps_what_is_written_by_hand(self):
        page = self.page("\n\nwhy it stops there\n\n")
        self.assertEqual(results_page.extract_notes(page), "\n\nwhy it stops there\n\n")
        self.assertEqual(self.page(results_page.extract_notes(page)), page)

    def test_begins_without_notes(self):
        self.assertEqual(results_page.extract_notes(None).strip(), "")

    def test_refuses_to_guess_what_is_written_by_hand(self):
        page = self.page("x")
        for broken in (page.replace(results_page.NOTES_END, ""), page + results_page.NOTES_BEGIN, "# Results"):
            with self.assertRaises(ValueError):
                results_page.extract_notes(broken)

    def test_every_row_has_as_many_cells_as_its_header(self):
        replays = {"a": everyone(replay, steps=(1, 2, 3, 4)), "b": {}}
        made = [
            tables.fit_table({"a": {}}),
            tables.lag_fit_table({"a": {}}),
            tables.reserved_table(replays, 0),
            tables.time_table(replays, 0),
            tables.steps_table(replays, "1.02", 0, 0),
            tables.tight_random_table(replays, {}, 0),
            tables.retry_table(replays, 0),
            tables.hazard_table({0: {"a": []}}),
        ]
        for table in made:
            lines = [line for line in tables.render_table(table).splitlines() if line.startswith("|")]
            self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")}, table.title)

    def test_the_summary_names_the_worst(self):
        table = tables.fit_table({"a": everyone(lambda: fit(1004)), "b": everyone(lambda: fit(1001))})
        self.assertIn("| 2 of 2 | 1 of 2 | 1.0040 (a) |", tables.render_summary([table]))


class PlanTest(unittest.TestCase):
    def test_every_trace_runs_at_every_lag_and_is_laid_out(self):
        names = ["a.csv", "random_mixed.csv.gz", "fsdp_llama8b_oom.pickle", *results.GENERATED]
        jobs = results.plan([pathlib.Path(name) for name in names])
        found = {}
        for kind, lag, name in jobs:
            self.assertIn(lag, results.LAGS)
            answer = everyone(lambda: {**fit(1001), **replay(steps=(0,) * 12)})
            found.setdefault((kind, lag), {})[name] = answer
        for kind in ("fit", "wide"):
            for lag in results.LAGS:
                self.assertCountEqual(found[kind, lag], names)
        laid = results.lay_out(found)
        self.assertEqual(len(laid), 2 * 7 + 1)
        self.assertTrue(all(table.met() == len(table.rows) for table in laid))


if __name__ == "__main__":
    unittest.main()
