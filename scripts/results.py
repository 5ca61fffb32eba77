#!/usr/bin/env python3
"""Writes docs/results.md: every target for memory and driver calls, on every trace, beside all rivals.

Runs the command-line tool once for each trace, capacity and lag, as many at a time as there are cores, and lays out
what its JSON says. results_tables.py judges the figures. What is written by hand in docs/results.md stays.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import results_page as page
import results_tables as tables

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAGS = [0, 200]
WIDE = "80GiB"
FSDP_CAPACITY = "41102213120B"
# Multiples of the peak, and how many driver calls a late step may make there.
STEP_CAPACITIES = {"1.02": 0, "1.005": 750}
SUFFIXES = (".pickle", ".csv", ".csv.gz")
# 12 steps, to see whether calls cease; the shared traces have 4.
GENERATED = {
    "llama70b_stage0_12steps.csv.gz": ["llama", "--steps", "12"],
    "llama70b_stage0_release_grads_12steps.csv.gz": ["llama", "--steps", "12", "--release-grads", "on"],
}


class Tool:
    """The command-line tool: each call is one process, whose JSON is returned by allocator."""

    def __init__(self, binary):
        self.binary = binary

    def _json(self, arguments):
        command = [self.binary, *map(str, arguments), "--json", "-"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: out of memory, which is a result
            raise RuntimeError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr}")
        return {result["allocator"]: result for result in json.loads(done.stdout)["results"]}

    def fit(self, trace, lag):
        return self._json(["fit", trace, "--lag", lag, "--allocators", ",".join(tables.ALLOCATORS)])

    def replay(self, trace, capacity, lag, *more):
        results = {}
        for allocator in tables.ALLOCATORS:
            arguments = ["replay", trace, "--allocator", allocator, "--capacity", capacity, "--lag", lag, *more]
            results.update(self._json(arguments))
        return results

    def generate(self, path, arguments):
        subprocess.run([self.binary, "generate", *arguments, "-o", path], check=True)


def find_traces(folder):
    if folder is None or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES))


def plan(traces):
    """What to run: {(kind, lag, name of the trace): function of the tool}. The longest first, to end together."""
    jobs = {}
    for lag in reversed(LAGS):
        for path in sorted(traces, key=lambda path: not path.name.startswith(("random", "llama70b"))):
            jobs["fit", lag, path.name] = lambda tool, path=path, lag=lag: tool.fit(path, lag)
            jobs["wide", lag, path.name] = lambda tool, path=path, lag=lag: tool.replay(path, WIDE, lag)
            if path.name in GENERATED:
                for capacity in STEP_CAPACITIES:
                    jobs["steps " + capacity, lag, path.name] = (
                        lambda tool, path=path, lag=lag, capacity=capacity: tool.replay(path, capacity + "x", lag)
                    )
            if tables.is_random_mixed(path.name):
                jobs["tight", lag, path.name] = lambda tool, path=path, lag=lag: tool.replay(path, "1.10x", lag)
            if path.name.startswith("fsdp_llama8b_oom"):
                jobs["retry", lag, path.name] = lambda tool, path=path, lag=lag: tool.replay(
                    path, FSDP_CAPACITY, lag, "--retry-oom"
                )
    return jobs


def run(jobs, tool):
    """{kind, lag: {trace: {allocator: result}}}, traces by name."""
    found = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = {pool.submit(job, tool): key for key, job in jobs.items()}
        for count, future in enumerate(concurrent.futures.as_completed(waiting), 1):
            kind, lag, name = waiting[future]
            found.setdefault((kind, lag), {})[name] = future.result()
            if sys.stderr.isatty():
                print(f"\r{count} of {len(jobs)} runs", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return {key: dict(sorted(of_kind.items())) for key, of_kind in found.items()}


def lay_out(found):
    """The tables, for what was run: target by target, each at every lag."""

    def each(kind, table):
        return [table(found[kind, lag], lag) for lag in LAGS if (kind, lag) in found]

    def fit(results, lag):
        return tables.fit_table(results) if lag == 0 else tables.lag_fit_table(results)

    def tight(results, lag):
        return tables.tight_random_table(results, found.get(("fit", lag), {}), lag)

    laid = each("fit", fit) + each("wide", tables.reserved_table) + each("wide", tables.time_table)
    for capacity, bound in STEP_CAPACITIES.items():
        laid += each("steps " + capacity, lambda found, lag: tables.steps_table(found, capacity, bound, lag))
    laid += each("tight", tight) + each("retry", tables.retry_table)
    ours = {lag: {} for lag in LAGS}
    for (_, lag), of_kind in found.items():
        for trace, results in of_kind.items():
            ours[lag].setdefault(trace, []).append(results[tables.OURS])
    return laid + [tables.hazard_table(ours)]


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def describe_commit():
    commit = git("rev-parse", "--short=12", "HEAD")
    if commit is None:
        return "an unknown commit (no git repository)"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return f"commit {commit}" + (" with changes that are not committed" if changed else "")


def describe_machine():
    model = platform.processor() or platform.machine()
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def describe(count, have_shared):
    lines = [
        f"Written by `./dev results` from {describe_commit()}, built with gcc in Release, on {describe_machine()}.",
        "Everything here ran on the simulated driver with the cost model `default` ([simulator.md](simulator.md)): "
        "times are **modelled**, never measured, and no figure depends on the machine. Bytes, calls and hazards are "
        f"counted. {count} traces; Expanse in its default configuration, and all rivals in the same run. "
        "At lag 200 the work on a block completes 200 events after its free.",
        "Ratios are rounded up. Tables list what is worst first. Host time and threads are not memory or driver calls: "
        "`./dev bench` measures them.",
    ]
    if not have_shared:
        lines.append("**The recorded traces were not there: these are the generated ones alone.**")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/release/bin/expanse")
    parser.add_argument("--traces", type=pathlib.Path, default=ROOT.parent / "shared/traces", help="folder of traces")
    options = parser.parse_args()

    started = time.monotonic()
    shared = find_traces(options.traces)
    output = ROOT / "docs/results.md"
    before = output.read_text() if output.exists() else None
    notes, speed = page.extract_notes(before), page.extract_speed(before)
    if not shared:
        # What the repository keeps is the record of all traces; a part of them does not replace it.
        output = ROOT / "out/results.md"
        output.parent.mkdir(exist_ok=True)
        print(f"results: no traces in {options.traces}; only generated ones, into out/results.md", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        tool = Tool(options.tool)
        generated = [pathlib.Path(scratch) / name for name in GENERATED]
        for path in generated:
            tool.generate(path, GENERATED[path.name])
        traces = shared + generated
        laid = lay_out(run(plan(traces), tool))
    output.write_text(page.render_document(describe(len(traces), bool(shared)), laid, notes, speed))
    print(tables.render_summary(laid))
    print(f"\nwrote {output.relative_to(ROOT)} in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, ValueError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"results: {error}")
