"""All of the matrix of collectives, for a night: ``python -m tests.ops.gcl.exhaustive``; with sizes after it, only those."""

import sys
import time

from tests.ops.gcl.collectives import SIZES, every_case


def main():
    sizes = tuple(map(int, sys.argv[1:])) or tuple(SIZES)
    began, count = time.perf_counter(), 0
    for case in every_case(sizes):
        case.check(count % 100)
        count += 1
        if count % 1000 == 0:
            print(f"{count:,} cases, {time.perf_counter() - began:.0f} s, now {case}", flush=True)
    print(f"{count:,} cases of {', '.join(map(str, sizes))} replicas: all have the bits of their steps and agree with NumPy")


if __name__ == "__main__":
    main()
