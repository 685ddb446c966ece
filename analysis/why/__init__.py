"""Why a pod or workload cannot run, and what repairs it."""
