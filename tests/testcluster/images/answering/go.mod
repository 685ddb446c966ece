module berth.dev/tests/testcluster/answering

go 1.26.0
