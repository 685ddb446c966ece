"""The screen "My job": one pod or manifest, the verdict in one sentence, why it is pending, the fix, and sooner or cheaper alternatives."""
