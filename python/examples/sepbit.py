"""SepBIT as a policy of one's own: the same as `placement="sepbit"`, to the chunk.

Wang, Li, Lee, Ouyang, Shi, Huang: "Separating Data via Block Invalidation Time Inference for Write
Amplification Reduction in Log-Structured Storage", FAST 2022, section 3. `crates/lab/examples/own_policy.rs`
is the same in Rust.

python examples/sepbit.py
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import elastripe

UNITS_AVERAGED = 16


class SepBit(elastripe.PlacementPolicy):
    """Infers when a chunk will be overwritten: of a user's write from how long the version lived that it
    replaces, of a chunk that garbage collection moves from its age."""

    classes = 6
    needs_times = True

    def __init__(self) -> None:
        self.lifespan: int | None = None  # in chunks that users write; None is infinite
        self.collected: list[int] = []

    def below(self, time: int, factor: int) -> bool:
        return self.lifespan is None or time < factor * self.lifespan

    def place_user(self, write: elastripe.UserWrite) -> int:
        previous = write.previous
        return 0 if previous is not None and self.below(write.now - previous, 1) else 1

    def place_gc(self, write: elastripe.GcWrite) -> int:
        if write.class_ == 0:
            return 2
        if write.written is None:
            return 5
        age = write.now - write.written
        return 3 if self.below(age, 4) else 4 if self.below(age, 16) else 5

    def note_collected(self, unit: elastripe.CollectedUnit) -> None:
        if unit.class_ == 0:
            self.collected.append(unit.now - unit.created)
            if len(self.collected) == UNITS_AVERAGED:
                self.lifespan = sum(self.collected) // UNITS_AVERAGED
                self.collected.clear()


class Greedy(elastripe.VictimPolicy):
    """Fewest valid chunks; of equals the one closed first, then the lowest."""

    def choose_victim(self, units: npt.NDArray[np.void], capacity: int, now: int) -> int | None:
        return int(np.lexsort((units["unit"], units["closed"], units["valid"]))[0])


def main() -> None:
    trace = elastripe.generate("zipf:0.99", requests=400_000, range="64MiB", seed=1)
    own = elastripe.place(trace, placement=SepBit(), gc=Greedy(), unit_size="1MiB")
    ours = elastripe.place(trace, placement="sepbit", gc="greedy", unit_size="1MiB")
    for result in (own, ours):
        said, cpu = result["placement"], result["cpu"]
        print(
            f"{said['policy']:>16} {said['gc']:>16}: {result['gc_chunks_rewritten']} chunks moved, "
            f"write amplification {result['write_amplification']:.3f}, "
            f"{cpu['chunk_writes_per_second'] / 1e6:.2f} M chunk writes/s of processor time"
        )


if __name__ == "__main__":
    main()
