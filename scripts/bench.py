#!/usr/bin/env python3
"""Runs the microbenchmarks, Expanse and its rivals interleaved in one process, and reports ratios.

Writes the part of docs/results.md on performance, and a JSON file that --against of a later run can be given. What
follows -- goes to Google Benchmark, such as --benchmark_filter; with it docs/results.md is left alone."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import bench_tables as tables
import results
import results_page as page

ROOT = results.ROOT


def measure(binary, repetitions, seconds, more):
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "report.json"
        command = [
            binary,
            "--benchmark_enable_random_interleaving=true",
            f"--benchmark_repetitions={repetitions}",
            f"--benchmark_min_time={seconds}",
            "--benchmark_display_aggregates_only=true",
            "--benchmark_out_format=json",
            f"--benchmark_out={out}",
            *(more or ["--benchmark_filter=-BM_RecorderOverhead"]),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())


def describe(repetitions):
    return (
        f"Written by `./dev bench` from {results.describe_commit()}, built with gcc in Release, on "
        f"{results.describe_machine()}. Expanse and its rivals ran interleaved in one process, {repetitions} times "
        "each. Host time is measured, of the allocator alone: what is spent inside the simulator is subtracted. Each "
        "figure is the median, with the quartiles in parentheses; a ratio's are the least and the most that the "
        "quartiles of both allow. Calls are counted, and driver time is **modelled**. All are for one pair of an "
        "allocation and a free."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/expanse_bench")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="for each repetition, at least")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "out/bench.json", help="what is written")
    parser.add_argument("--against", type=pathlib.Path, help="such a file of before: exit with 1 if a ratio got worse")
    parser.add_argument("more", nargs="*", help="after --: options of Google Benchmark")
    options = parser.parse_args()
    if options.repetitions < 2:
        raise ValueError(f"--repetitions is {options.repetitions}, expected at least 2: one measurement has no spread")

    # Read first: it may be what is written in the end.
    baseline = json.loads(options.against.read_text()) if options.against else None
    cases = tables.summarize(measure(options.binary, options.repetitions, options.seconds, options.more))
    if not cases:
        raise ValueError("no benchmark of a pair matches")
    table = tables.render(cases)
    print(table)
    about = {"commit": results.describe_commit(), "machine": results.describe_machine()}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({**about, "repetitions": options.repetitions, "cases": cases}, indent=1) + "\n")
    print(f"\nwrote {options.json}")
    if not options.more and baseline is None:
        output = ROOT / "docs/results.md"
        speed = f"## Performance\n\n{describe(options.repetitions)}\n\n{table}"
        output.write_text(page.replace_speed(output.read_text(), speed))
        print(f"wrote {output.relative_to(ROOT)}")
    if baseline is None:
        return 0
    lines, worse = tables.compare(cases, baseline["cases"])
    print(f"\nRatios against those of {baseline['commit']}, on {baseline['machine']}:\n" + "\n".join(lines))
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyError, ValueError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"bench: {error}")
