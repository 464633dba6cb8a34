"""A worker that writes to its log: all at once (`flood`), or a line now and then (`trickle`).

It begins when the file it is told of appears, so that starting is no part of the figure.
"""

import os
import random
import sys
import time

LINE = (
    b"2031-01-01T00:00:00.000Z worker said something that is about as long as lines are, no more\n"
)
BLOCK = LINE * 720


def main() -> None:
    """Wait for the sign, then speak."""
    how, amount, sign = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    while not os.path.exists(sign):  # noqa: PTH110 - small, a hundred of these run
        time.sleep(0.01)
    (flood if how == "flood" else trickle)(amount, sign)


def flood(megabytes: float, sign: str) -> None:
    """Write that much as fast as it is taken, and say how many seconds that took."""
    left = int(megabytes * 1e6)
    began = time.perf_counter()
    while left > 0:
        left -= os.write(1, BLOCK)
    took = time.perf_counter() - began
    with open(f"{sign}.new", "w") as file:  # noqa: PTH123 - as above
        file.write(str(took))
    os.rename(f"{sign}.new", f"{sign}.took")  # noqa: PTH104 - as above
    time.sleep(1e6)


def trickle(lines_per_second: float, _sign: str) -> None:
    """Write a line now and then, for ever."""
    time.sleep(random.random() / lines_per_second)
    while True:
        os.write(1, LINE)
        time.sleep(1 / lines_per_second)


if __name__ == "__main__":
    main()
