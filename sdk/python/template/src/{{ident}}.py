"""The tools of {{name}}. Each function below `@tool` is one."""

from dataclasses import dataclass

from sallyport import InvalidArguments, tool


@dataclass
class Share:
    """What each person pays."""

    each: float
    """The amount for one person, with the tip, rounded up to cents."""
    total: float
    """The amount for all, with the tip."""


@tool(read_only=True, open_world=False)
def split_bill(amount: float, people: int, tip_percent: float = 0.0) -> Share:
    """Splits a bill evenly, with an optional tip.

    Args:
        amount: What the bill says.
        people: How many people share it.
        tip_percent: The tip in percent of the amount.
    """
    if people < 1:
        raise InvalidArguments("people must be at least 1")
    if amount < 0 or tip_percent < 0:
        raise InvalidArguments("amount and tip_percent cannot be negative")
    cents = round(amount * (100 + tip_percent))
    return Share(each=-(-cents // people) / 100, total=cents / 100)
