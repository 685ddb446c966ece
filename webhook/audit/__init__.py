"""The process of `berth audit --serve`: it follows the pods of a cluster beside what the server follows, and keeps reports of
what policies say of them. It answers no admission review and has an account of its own, so that no replica of the server
may read pods."""
