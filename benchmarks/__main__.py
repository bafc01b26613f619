"""Measurements, each compared with its floor or its bar.

python -m benchmarks            all of them, in order of their names
python -m benchmarks ingest     one of them: benchmarks/bench_ingest.py
"""

import importlib
import sys
from pathlib import Path

PREFIX = "bench_"


def names() -> list[str]:
    return sorted(
        file.stem.removeprefix(PREFIX) for file in Path(__file__).parent.glob(f"{PREFIX}*.py")
    )


def main() -> None:
    wanted = sys.argv[1:] or names()
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        sys.exit(f"No benchmark {', '.join(unknown)}. There are: {', '.join(names())}.")
    for name in wanted:
        module = importlib.import_module(f"benchmarks.{PREFIX}{name}")
        run = getattr(module, "main", None)
        if run is None:
            print(f"{PREFIX}{name}.py has no main(): left out.", file=sys.stderr)
            continue
        print(f"\n== {name}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        run()


if __name__ == "__main__":
    main()
