"""How nodes offer their devices (by a device plugin, by a DRA driver, or by both), and which labels of theirs somebody maintains."""
