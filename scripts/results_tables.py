"""What docs/results.md says of each target: pure functions from the tool's JSON to tables.

`results` of a trace is {allocator: one object of "results" in the tool's JSON, or None where it did not run}. Every
figure is a ratio where the target is one. Rows come worst first. A missing result never counts as met.
"""

import math
import re
from dataclasses import dataclass, field

OURS = "expanse"
RIVAL = "per-stream-segments"
ALLOCATORS = [OURS, RIVAL, "caching", "preallocated", "naive"]
# Those whose smallest capacity must not be below ours. `naive` holds no cache, so nothing that caches can be below it.
CACHES = [RIVAL, "caching", "preallocated"]
NONE = "–"
STEP_MARK = re.compile(r"step\d+")


@dataclass
class Row:
    """One trace. `badness` orders rows and picks the worst: how far the figure is from the target, larger is worse."""

    trace: str
    figure: str
    met: bool
    stretch: "bool | None"
    badness: float
    cells: list = field(default_factory=list)


@dataclass
class Table:
    title: str
    target: str
    stretch: str
    columns: list
    rows: list
    note: str = ""

    def __post_init__(self):
        self.rows = sorted(self.rows, key=lambda row: (row.met, -row.badness, row.trace))

    def met(self):
        return sum(row.met for row in self.rows)

    def stretch_met(self):
        return sum(bool(row.stretch) for row in self.rows)

    def worst(self):
        return self.rows[0] if self.rows else None


def ratio(value, base):
    """value / base, or None where either is missing or there is nothing to divide by."""
    if value is None or not base:
        return None
    return value / base


def show_ratio(value, digits=4):
    if value is None:
        return NONE
    # Never rounded to the better side of a target: 1.00501 is not shown as 1.0050.
    scale = 10**digits
    return f"{math.ceil(value * scale - 1e-6) / scale:.{digits}f}"


def show_us(us):
    if us is None:
        return NONE
    return f"{us / 1e6:.3f} s" if us >= 1e6 else f"{us / 1e3:.1f} ms"


def show_count(count):
    return NONE if count is None else f"{count:,}"


def get(result, key):
    return None if result is None else result.get(key)


def is_random_mixed(trace):
    return trace.startswith("random_mixed")


def fit_ratio(result):
    return ratio(get(result, "smallest_capacity_bytes"), get(result, "peak_live_bytes"))


def fit_table(fits):
    """Smallest capacity at lag 0."""
    rows = []
    for trace, results in fits.items():
        ours = fit_ratio(results.get(OURS))
        bound, stretch_bound = (1.04, 1.022) if is_random_mixed(trace) else (1.005, 1.002)
        beaten_by = [
            name
            for name in CACHES
            if ours is not None and fit_ratio(results.get(name)) is not None and fit_ratio(results.get(name)) < ours
        ]
        cells = [show_ratio(fit_ratio(results.get(name))) for name in ALLOCATORS[1:]]
        rows.append(
            Row(
                trace,
                show_ratio(ours),
                ours is not None and ours <= bound and not beaten_by,
                ours is not None and ours <= stretch_bound,
                math.inf if ours is None else (ours - 1) / (bound - 1) + 10 * len(beaten_by),
                cells + [", ".join(beaten_by) or "none"],
            )
        )
    return Table(
        "Smallest capacity / peak live bytes, lag 0",
        "≤ 1.005, random_mixed ≤ 1.04; never above a rival that caches",
        "≤ 1.002, random_mixed ≤ 1.022",
        ALLOCATORS[1:] + ["caching rivals below"],
        rows,
    )


def lag_fit_table(fits):
    """Smallest capacity where the work on a block goes on for 200 events after its free."""
    rows = []
    for trace, results in fits.items():
        ours = results.get(OURS)
        value = fit_ratio(ours)
        hazards = get(ours, "hazards")
        cells = [show_ratio(fit_ratio(results.get(name))) for name in ALLOCATORS[1:]]
        pending = ratio(get(ours, "peak_pending_bytes"), get(ours, "peak_live_bytes"))
        rows.append(
            Row(
                trace,
                show_ratio(value),
                value is not None and value <= 1.02 and hazards == 0,
                None,
                math.inf if value is None or hazards != 0 else value,
                [show_count(hazards), show_ratio(pending)] + cells,
            )
        )
    return Table(
        "Smallest capacity / peak live bytes, lag 200",
        "≤ 1.02, no hazard",
        "",
        ["hazards", "peak pending / peak live"] + ALLOCATORS[1:],
        rows,
    )


def reserved_ratio(result):
    if get(result, "out_of_memory") is not False:
        return None
    return ratio(get(result, "peak_reserved_bytes"), get(result, "peak_live_bytes"))


def reserved_table(replays, lag):
    rows = []
    for trace, results in replays.items():
        reserved = {name: reserved_ratio(results.get(name)) for name in ALLOCATORS}
        ours = ratio(reserved[OURS], reserved[RIVAL])
        rows.append(
            Row(
                trace,
                show_ratio(ours),
                ours is not None and ours <= 1,
                reserved[OURS] is not None and reserved[OURS] <= 1.02,
                math.inf if ours is None else ours,
                [show_ratio(reserved[name]) for name in ALLOCATORS],
            )
        )
    return Table(
        f"Peak reserved / {RIVAL}'s, 80 GiB device, lag {lag}",
        "≤ 1",
        "reserved / live ≤ 1.02",
        ALLOCATORS,
        rows,
        "After the ratio: peak reserved / peak live bytes of each.",
    )


def time_of(result):
    return None if get(result, "out_of_memory") is not False else get(result, "modelled_driver_us")


def time_table(replays, lag):
    rows = []
    for trace, results in replays.items():
        times = {name: time_of(results.get(name)) for name in ALLOCATORS}
        ours = ratio(times[OURS], times[RIVAL])
        rows.append(
            Row(
                trace,
                show_ratio(ours, 2),
                ours is not None and ours <= 3,
                ours is not None and ours <= 1,
                math.inf if ours is None else ours,
                [show_us(times[name]) for name in ALLOCATORS],
            )
        )
    return Table(
        f"Modelled driver time / {RIVAL}'s, whole trace, all threads, 80 GiB device, lag {lag}",
        "≤ 3",
        "≤ 1",
        ALLOCATORS,
        rows,
        "All times are modelled.",
    )


def calls_per_step(result):
    """Driver calls of each step; a step lasts from its mark to the next step's, or the end. None if it did not run."""
    if get(result, "out_of_memory") is not False:
        return None
    steps = []
    for mark in result["marks"]:
        if STEP_MARK.fullmatch(mark["label"]):
            steps.append(0)
        if steps:
            steps[-1] += mark["driver_calls"]
    return steps


def late_calls(result, first_step):
    """The most driver calls of any step from the first_step-th (1-based) on; None where there is no such step."""
    steps = calls_per_step(result)
    return max(steps[first_step - 1 :]) if steps is not None and len(steps) >= first_step else None


def steps_table(replays, capacity, bound, lag):
    rows = []
    for trace, results in replays.items():
        ours = results.get(OURS)
        worst = late_calls(ours, 4)
        from_fifth = late_calls(ours, 5)
        steps = calls_per_step(ours)
        cells = [" ".join(map(str, steps)) if steps is not None else "out of memory"]
        for name in ALLOCATORS[1:]:
            most = late_calls(results.get(name), 4)
            cells.append(show_count(most) if most is not None else "out of memory")
        rows.append(
            Row(
                trace,
                show_count(worst),
                worst is not None and worst <= bound,
                from_fifth == 0,
                math.inf if worst is None else worst,
                cells,
            )
        )
    return Table(
        f"Driver calls of a step after the third, 12 steps of Llama-2 70B, capacity {capacity} × peak live, lag {lag}",
        str(bound) if bound == 0 else f"≤ {bound}",
        "0 from the fifth step",
        ["of each step"] + ALLOCATORS[1:],
        rows,
        "The most of any step from the fourth on. Rivals that run out of memory at this capacity say so.",
    )


def tight_random_table(replays, fits, lag):
    """random_mixed at 1.10 times its peak, against the rival at the rival's own smallest capacity."""
    rows = []
    for trace, results in replays.items():
        ours = results.get(OURS)
        rival = get(fits.get(trace, {}).get(RIVAL), "modelled_driver_us")
        value = ratio(time_of(ours), rival)
        cells = [show_count(get(ours, "failed_allocations")), show_us(time_of(ours)), show_us(rival)]
        for name in ALLOCATORS[1:]:
            out = get(results.get(name), "out_of_memory")
            cells.append(NONE if out is None else "out of memory" if out else show_us(time_of(results[name])))
        rows.append(
            Row(
                trace,
                show_ratio(value, 2),
                value is not None and value <= 1 and get(ours, "failed_allocations") == 0,
                value is not None and value <= 0.5,
                math.inf if value is None else value,
                cells,
            )
        )
    return Table(
        f"random_mixed at 1.10 × peak live: modelled driver time / {RIVAL}'s at its own smallest capacity, lag {lag}",
        "no failure, ≤ 1",
        "≤ 0.5",
        ["failed requests", OURS, f"{RIVAL} at its smallest"] + [f"{name} at 1.10" for name in ALLOCATORS[1:]],
        rows,
        "All times are modelled.",
    )


def retry_table(replays, lag):
    """The traces of the recorded out-of-memory error: is the request served that failed there?"""
    rows = []
    for trace, results in replays.items():
        failed = {name: get(results.get(name), "out_of_memory") for name in ALLOCATORS}
        served = {name: None if out is None else not out for name, out in failed.items()}
        words = {None: NONE, True: "served", False: "fails"}
        rows.append(
            Row(
                trace,
                words[served[OURS]],
                served[OURS] is True,
                None,
                0.0 if served[OURS] else math.inf,
                [words[served[name]] for name in ALLOCATORS[1:]],
            )
        )
    return Table(
        f"fsdp_llama8b_oom on 41,102,213,120 bytes: the request that failed there, lag {lag}",
        "served",
        "",
        ALLOCATORS[1:],
        rows,
    )


def hazard_table(by_lag):
    """Hazards of ours in all runs of a trace together; by_lag is {lag: {trace: [result, ...]}}."""
    rows = []
    for trace in sorted({trace for of_lag in by_lag.values() for trace in of_lag}):
        runs = [of_lag.get(trace, []) for of_lag in by_lag.values()]
        counts = [sum(result["hazards"] for result in results) for results in runs]
        rows.append(
            Row(trace, show_count(sum(counts)), sum(counts) == 0 and all(runs), None, float(sum(counts)), counts)
        )
    lags = [f"lag {lag}" for lag in by_lag]
    return Table("Hazards of Expanse in all runs of this page", "0", "", lags, rows)


def met_word(met):
    return "met" if met else "**not met**"


def markdown_row(cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def markdown_table(header, rows):
    return "\n".join([markdown_row(header), "|" + "---|" * len(header)] + [markdown_row(row) for row in rows])


def render_table(table):
    goal = f"Target: {table.target}." + (f" Stretch: {table.stretch}." if table.stretch else "")
    parts = [f"## {table.title}", goal + (f" {table.note}" if table.note else "")]
    header = ["trace", OURS, "target"] + (["stretch"] if table.stretch else []) + table.columns
    if table.columns and table.columns[0] == OURS:
        header[1] = "ratio"
    rows = []
    for row in table.rows:
        stretch = [NONE if row.stretch is None else "yes" if row.stretch else "no"] if table.stretch else []
        rows.append([row.trace, row.figure, met_word(row.met)] + stretch + row.cells)
    parts.append(markdown_table(header, rows))
    return "\n\n".join(parts)


def render_summary(tables):
    rows = []
    for table in tables:
        worst = table.worst()
        total = len(table.rows)
        rows.append(
            [
                table.title,
                table.target,
                f"{table.met()} of {total}" if table.met() == total else f"**{table.met()} of {total}**",
                f"{table.stretch_met()} of {total}" if table.stretch else NONE,
                f"{worst.figure} ({worst.trace})" if worst else NONE,
            ]
        )
    return markdown_table(["figure", "target", "met on", "stretch met on", "worst figure (trace)"], rows)
