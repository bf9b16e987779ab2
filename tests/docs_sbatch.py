"""`sbatch` without Slurm: takes a script's #SBATCH lines and its own options, and runs every task of the array here.

It knows --parsable, --array=FIRST-LAST, --dependency=afterok:JOB and --wrap, and refuses any other option. Jobs run at
once rather than in a queue, and if one fails so does the command, so that a page does not go on. The folder .sbatch
keeps their numbers and outcomes.
"""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="sbatch", allow_abbrev=False)
    parser.add_argument("--parsable", action="store_true")
    parser.add_argument("--array", default="")
    parser.add_argument("--dependency", default="")
    parser.add_argument("--wrap")
    parser.add_argument("script", nargs="?", type=Path)
    options = parser.parse_args()
    code = options.script.read_text() if options.script else f"#!/bin/sh\n{options.wrap}\n"
    if not code.startswith("#!"):
        parser.error("This does not look like a batch script: it must start with #!")
    lines = [shlex.split(line)[1:] for line in code.splitlines() if line.startswith("#SBATCH ")]
    options = parser.parse_args([word for line in lines for word in line] + sys.argv[1:])

    jobs = Path(".sbatch")
    jobs.mkdir(exist_ok=True)
    job = len(list(jobs.iterdir())) + 1
    if options.dependency:
        kind, _, other = options.dependency.partition(":")
        if kind != "afterok" or (jobs / other).read_text() != "0":
            parser.error(f"Job dependency problem: {options.dependency}")
    interpreter = shlex.split(code.splitlines()[0][2:])
    first, _, last = options.array.partition("-")
    tasks = [{"SLURM_ARRAY_TASK_ID": str(task)} for task in range(int(first), int(last) + 1)] if first else [{}]
    outcomes = []
    for task in tasks:
        environment = {**os.environ, "SLURM_JOB_ID": str(job), **task}
        with Path(f"slurm-{'_'.join([str(job), *task.values()])}.out").open("w") as output:
            run = subprocess.run([*interpreter, "-c", code], env=environment, stdout=output, stderr=output, check=False)
        outcomes.append(run.returncode)
    (jobs / str(job)).write_text(str(max(outcomes)))
    print(job if options.parsable else f"Submitted batch job {job}")  # noqa: T201
    return max(outcomes)


if __name__ == "__main__":
    sys.exit(main())
