"""One look at a cluster: objects of several kinds, each listed once, with the rights of whoever looks. Nothing is
followed, and nothing is written."""
