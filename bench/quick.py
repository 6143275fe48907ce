"""Measure cold start, throughput, short tasks and enqueueing against what one would write by hand.

`python bench/quick.py [--rounds N] [--only WORD] [--json FILE]`; with 3 rounds about two minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

# Last: what is measured is the installed package, not the folder beside this one.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import questions
from bench.environment import environment
from bench.floors import Programs
from bench.servers import redis_server, url_of
from bench.table import as_dict, as_text

COLD_STARTS = 5
"""A cold start is short and noisy: this many times as many rounds."""


def main() -> None:
    """Measure, print, and write JSON if asked to."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="taskbatch-bench-") as name, redis_server(Path(name)) as client:
        programs = Programs(url_of(client), Path(name))
        found = environment(client)
        for what, text in found.items():
            print(f"{what + ':':<19} {text}")
        rounds = options.rounds
        asked = {
            "cold": lambda: questions.cold_start(programs, client, rounds * COLD_STARTS),
            "throughput": lambda: questions.throughput(programs, client, rounds, 20_000),
            "short": lambda: questions.short_tasks(programs, client, rounds, 2_000),
            "enqueue": lambda: questions.enqueue(programs, client, rounds, 50_000),
        }
        answers = []
        for word, ask in asked.items():
            if options.only in (None, word):
                answers.append(ask())  # type: ignore[no-untyped-call]
                print(f"\n{as_text(answers[-1])}", end="", flush=True)
    if options.json:
        result = {"environment": found, "rounds": rounds, "answers": [as_dict(answer) for answer in answers]}
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often (default: 3)")
    parser.add_argument("--only", choices=["cold", "throughput", "short", "enqueue"], help="one question only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single value there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
