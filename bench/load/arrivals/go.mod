module berth.dev/bench/arrivals

go 1.26.0
