"""The screen "Berths": which groups of nodes there are, what is free on them, what it costs, and who may land there."""
