"""Whether more pools cost more than their share: what each pool more takes, with few and with many of them."""

import dataclasses

# The machine is noisy, and a quadratic cost would be eight times as much.
TOLERANCE = 2.0


@dataclasses.dataclass(frozen=True)
class Growth:
    """What each pool more takes, in `unit`, from the first size to the second and from there to the third."""
    what: str
    unit: str
    sizes: tuple
    values: tuple

    def steps(self):
        pairs = list(zip(self.sizes, self.values))
        return [(later - earlier) / (more - fewer) for (fewer, earlier), (more, later) in zip(pairs, pairs[1:])]

    @property
    def factor(self):
        """Of the whole, from the smallest to the largest."""
        return self.values[-1] / self.values[0]

    def is_worse_than_linear(self):
        few, many = self.steps()
        return many > TOLERANCE * max(few, self.values[0] / self.sizes[-1])
