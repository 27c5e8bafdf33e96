"""The explorer: one self-contained page that shows a run over time.

The source is on the left, lanes are over time, and memory is below them on the same axis. Users click, zoom,
select a range, and compare. `kernel` makes a view of a timeline, and `page` makes the page. Scripts draw only
the visible part, so that a million events stay fluid.
"""
