"""What the tokens of one model cost."""

from typing import Annotated

import msgspec

from ralphloop.core.model import Usage, Value

# The upper bound keeps infinity out: a price is a number that can be summed up.
Dollars = Annotated[float, msgspec.Meta(ge=0, le=1_000_000_000)]


class Price(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars for a million tokens; what the cache costs is as much as input where nobody says."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def of(self, usage: Usage) -> float:
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (
            usage.input_tokens * self.input
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
            + usage.output_tokens * self.output
        ) / 1_000_000

    @property
    def is_free(self) -> bool:
        return self.input == 0 and self.output == 0

    @property
    def stated(self) -> dict[str, float]:
        """What the row says, and not what follows from it."""
        cells = msgspec.structs.asdict(self)
        return {kind: cell for kind, cell in cells.items() if cell is not None}
