"""Make one night of ten: `python -m tests.nights_of_ten --seed 7 /tmp/a-night`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.nights_of_ten.making import make_night


def main() -> None:
    """Make the night, and say where it is."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("place", type=Path, help="a new directory")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--stories", type=int, default=10)
    asked.add_argument("--lies", type=int, default=3)
    told = asked.parse_args()
    night = make_night(told.place, told.seed, stories=told.stories, lies=told.lies)
    sys.stdout.write(
        f"The night is in {night.root}; judge it with: cd {night.root} && ralph review\n"
    )


if __name__ == "__main__":
    main()
