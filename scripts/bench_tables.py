"""Judges what the microbenchmarks measured: medians over repetitions, their spread, and ratios to the rivals.

Times of different machines, or of one machine at different times, cannot be compared; ratios of allocators that were
measured interleaved in one process can. So a ratio comes first everywhere, and only ratios are held against a
baseline."""

import re
import statistics

OURS = "expanse"
NAME = re.compile(r"^BM_(?P<family>\w+)<(?P<allocator>[\w-]+)>/(?P<arguments>.+?)(?:/repeats:\d+)?(?:/real_time)?$")


def quartiles(values):
    """The first quartile, the median and the third; of one value, that one three times."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def spread(values):
    low, middle, high = quartiles(values)
    return {"median": middle, "low": low, "high": high}


def ratio(ours, rival):
    """What is certain about ours over the rival's: the median, and from the best to the worst that the quartiles of
    both allow. None where the rival took no time."""
    if rival["low"] <= 0:
        return None
    return {
        "median": ours["median"] / rival["median"],
        "low": ours["low"] / rival["high"],
        "high": ours["high"] / rival["low"],
    }


def summarize(report):
    """Google Benchmark's report as a list of cases, in its order: each with what every allocator took, and our ratio to
    each rival. ValueError where a benchmark failed."""
    measured = {}
    for run in report["benchmarks"]:
        if run.get("error_occurred"):
            raise ValueError(f"{run['name']} failed: {run.get('error_message', 'it does not say why')}")
        name = NAME.match(run["name"])
        if run.get("run_type") != "iteration" or name is None or "host_ns" not in run:
            continue
        case = measured.setdefault(f"{name['family']}/{name['arguments']}", {})
        figures = case.setdefault(name["allocator"], {"host_ns": [], "driver_calls": [], "modelled_driver_us": []})
        for figure, values in figures.items():
            values.append(run[figure])
    cases = []
    for name, allocators in sorted_by_family(measured).items():
        summary = {
            allocator: {
                "host_ns": spread(figures["host_ns"]),
                "driver_calls": statistics.median(figures["driver_calls"]),
                "modelled_driver_us": statistics.median(figures["modelled_driver_us"]),
            }
            for allocator, figures in allocators.items()
        }
        ratios = {}
        for rival, figures in summary.items():
            if rival != OURS and OURS in summary:
                ratios[rival] = ratio(summary[OURS]["host_ns"], figures["host_ns"])
        cases.append({"name": name, "ratios": ratios, "allocators": summary})
    return cases


def sorted_by_family(measured):
    """Interleaved runs come in any order: by family, and by the numbers in the arguments."""

    def by_numbers(item):
        return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", item[0])]

    return dict(sorted(measured.items(), key=by_numbers))


def number(value):
    return "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def of_spread(value):
    return "–" if value is None else f"{number(value['median'])} ({number(value['low'])} to {number(value['high'])})"


def render(cases):
    """A table in Markdown: a line for each case."""
    rivals = sorted({rival for case in cases for rival in case["ratios"]})
    header = ["benchmark"] + [f"time / {rival}'s" for rival in rivals] + ["host ns"]
    header += ["driver calls", "modelled driver us"] + [f"{rival}, host ns" for rival in rivals]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for case in cases:
        ours = case["allocators"].get(OURS)
        if ours is None:
            continue
        cells = [case["name"]] + [of_spread(case["ratios"].get(rival)) for rival in rivals]
        cells += [of_spread(ours["host_ns"]), f"{ours['driver_calls']:.3g}", f"{ours['modelled_driver_us']:.3g}"]
        for rival in rivals:
            of_rival = case["allocators"].get(rival)
            cells.append(number(of_rival["host_ns"]["median"]) if of_rival else "–")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


# Where tables and code happen to lie differs from one process to the next by more than the spread within either.
TOLERANCE = 1.1


def compare(cases, baseline):
    """Lines that hold ratios against those of another run, and whether any became worse: all that its quartiles allow
    is above all that the baseline's do, by more than the tolerance."""
    before = {case["name"]: case["ratios"] for case in baseline}
    lines, worse = [], False
    for case in cases:
        for rival, now in case["ratios"].items():
            then = before.get(case["name"], {}).get(rival)
            if now is None or then is None:
                continue
            verdict = "as before"
            if now["low"] > then["high"] * TOLERANCE:
                verdict, worse = "WORSE", True
            elif now["high"] * TOLERANCE < then["low"]:
                verdict = "better"
            lines.append(f"{verdict:9}  {of_spread(then):24} -> {of_spread(now):24}  {case['name']} to {rival}")
    return lines, worse
