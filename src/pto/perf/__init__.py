"""Pictures and figures of a run: what it looks like, and later what it costs."""
