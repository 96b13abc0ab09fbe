"""The plain component in Python: each value comes back as it came."""

import wit_world


class Echo:
    def integers(self, a, b, c, d, e, f, g, h):
        return (a, b, c, d, e, f, g, h)

    def floats(self, narrow, wide):
        return (narrow, wide)

    def texts(self, letter, text, truth):
        return (letter, text, truth)

    def bytes(self, bytes):
        return bytes

    def places(self, places):
        return places

    def shapes(self, shapes):
        return shapes

    def choices(self, colour, days):
        return (colour, days)

    def options(self, plain, nested):
        return (plain, nested)

    def results(self, outcome, empty):
        return (outcome, empty)


class WitWorld(wit_world.WitWorld):
    def greet(self, name, greeting):
        return f"{'Hello' if greeting is None else greeting}, {name}!"
