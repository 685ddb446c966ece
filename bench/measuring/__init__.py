"""How to measure, whatever is measured: the setting, the candidates and their processes, wrk, intervals of figures, drawings."""
