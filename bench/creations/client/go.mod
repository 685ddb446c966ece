module berth.dev/bench/creations

go 1.26.0
