import pytest
from sallyport import InvalidArguments
from sallyport.testing import call

from {{ident}} import split_bill


def test_the_cents_are_rounded_up():
    shared = call(split_bill, {"amount": 10, "people": 3, "tip_percent": 10})
    assert shared.data == {"each": 3.67, "total": 11.0}


def test_nobody_cannot_pay():
    with pytest.raises(InvalidArguments, match="at least 1"):
        call(split_bill, {"amount": 10, "people": 0})
