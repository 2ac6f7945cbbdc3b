"""What a person sees: the live console, the monitor, the report.  It never imports the loop."""

from datetime import datetime, tzinfo


def clock(at: float | None, zone: tzinfo | None = None, form: str = "%Y-%m-%d %H:%M") -> str:
    """A point in time as a person's wall clock shows it."""
    return "" if at is None else datetime.fromtimestamp(at).astimezone(zone).strftime(form)


def number(value: float) -> str:
    """`1,234`, `56.7 k`, `9 M`: enough to compare."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= max(size, 10_000):
            return f"{value / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{value:,.0f}"
