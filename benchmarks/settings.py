"""What every benchmark is told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Size of a run."""

    quick: bool = False
    threads: int = 2

    def repeats(self, full: int) -> int:
        """Return how often to repeat: three times in a smoke run."""
        return 3 if self.quick else full
