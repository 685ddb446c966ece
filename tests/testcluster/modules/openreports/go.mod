// The definitions of OpenReports: the module is fetched for its files alone, so nothing here is built.
module berth.dev/testcluster/openreports

go 1.24.0

require github.com/openreports/reports-api v0.2.1
