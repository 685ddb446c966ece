"""The screen "My job": one pod or manifest, its verdict in one sentence, why it waits, what mends it, what is sooner or cheaper."""
