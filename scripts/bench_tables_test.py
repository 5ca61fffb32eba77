#!/usr/bin/env python3
"""Tests of bench_tables.py and of the part of the page that ./dev bench writes."""

import unittest

import bench_tables as tables
import results_page as page


def runs(name, host_ns, calls=0.0, us=0.0):
    return [
        {"name": name, "run_type": "iteration", "host_ns": ns, "driver_calls": calls, "modelled_driver_us": us}
        for ns in host_ns
    ]


def report(*groups):
    return {"benchmarks": [run for group in groups for run in group]}


class SummaryTest(unittest.TestCase):
    def test_a_ratio_is_of_medians_and_as_wide_as_both_quartiles(self):
        (case,) = tables.summarize(
            report(
                runs("BM_PairLifo<expanse>/live:32/threads:1", [90, 100, 110, 100, 100], calls=2),
                runs("BM_PairLifo<caching>/live:32/threads:1", [400, 200, 200, 200, 160]),
            )
        )
        self.assertEqual(case["name"], "PairLifo/live:32/threads:1")
        self.assertEqual(case["ratios"]["caching"], {"median": 0.5, "low": 0.5, "high": 0.5})
        self.assertEqual(case["allocators"]["expanse"]["driver_calls"], 2)
        (case,) = tables.summarize(
            report(runs("BM_P<expanse>/live:1", [80, 100, 120]), runs("BM_P<caching>/live:1", [100, 200, 300]))
        )
        self.assertEqual(case["ratios"]["caching"], {"median": 0.5, "low": 90 / 250, "high": 110 / 150})

    def test_cases_are_in_the_order_of_their_numbers_whatever_ran_first(self):
        cases = tables.summarize(report(*[runs(f"BM_P<expanse>/live:{n}", [1, 2]) for n in (1000, 32, 100000)]))
        self.assertEqual([case["name"] for case in cases], ["P/live:32", "P/live:1000", "P/live:100000"])

    def test_aggregates_and_others_are_passed_over(self):
        aggregate = {"name": "BM_P<expanse>/live:1_mean", "run_type": "aggregate", "host_ns": 5}
        other = {"name": "BM_RecorderOverhead<Lifo>/live:32", "run_type": "iteration", "ratio_with": 1.0}
        self.assertEqual(tables.summarize({"benchmarks": [aggregate, other]}), [])

    def test_a_failed_benchmark_is_no_result(self):
        failed = {"name": "BM_P<expanse>/live:1", "run_type": "iteration", "error_occurred": True, "error_message": "x"}
        with self.assertRaisesRegex(ValueError, "BM_P<expanse>/live:1 failed: x"):
            tables.summarize({"benchmarks": [failed]})

    def test_every_line_of_the_table_has_as_many_cells(self):
        cases = tables.summarize(
            report(
                runs("BM_P<expanse>/live:1", [1, 2]),
                runs("BM_P<naive>/live:1", [1, 2]),
                runs("BM_Q<expanse>/live:1", [0, 0]),
            )
        )
        counts = {line.count("|") for line in tables.render(cases).splitlines()}
        self.assertEqual(len(counts), 1)


class CompareTest(unittest.TestCase):
    def case(self, low, median, high):
        return [{"name": "P", "ratios": {"caching": {"low": low, "median": median, "high": high}}}]

    def test_only_what_the_spread_cannot_explain_is_worse(self):
        before = self.case(0.4, 0.5, 0.6)
        verdicts = {
            (0.67, 0.7, 0.8): "WORSE",
            (0.65, 0.7, 0.8): "as before",
            (0.5, 0.7, 0.9): "as before",
            (0.1, 0.2, 0.37): "as before",
            (0.1, 0.2, 0.36): "better",
        }
        for now, verdict in verdicts.items():
            lines, worse = tables.compare(self.case(*now), before)
            self.assertTrue(lines[0].startswith(verdict), lines)
            self.assertEqual(worse, verdict == "WORSE")

    def test_what_is_new_is_not_compared(self):
        self.assertEqual(tables.compare(self.case(1, 1, 1), []), ([], False))


class PageTest(unittest.TestCase):
    def test_the_part_is_replaced_and_the_rest_kept(self):
        once = page.replace_speed("# Results\n\nrest\n", "first")
        self.assertTrue(once.startswith("# Results\n\nrest\n\n" + page.SPEED_BEGIN))
        twice = page.replace_speed(once, "second")
        self.assertEqual(twice, once.replace("first", "second"))
        self.assertEqual(page.extract_speed(twice), page.SPEED_BEGIN + "\n\nsecond\n")
        self.assertEqual(page.extract_speed("# Results\n"), "")


if __name__ == "__main__":
    unittest.main()
