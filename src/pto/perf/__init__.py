"""Finished runs as data, and what is drawn and computed from them: memory maps, traces, swimlanes, graphs."""
