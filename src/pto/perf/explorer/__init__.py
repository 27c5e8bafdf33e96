"""The explorer: one page for what happened when, which needs nothing else.

Source on the left, lanes over time, below them memory on the same axis; click, zoom, select a range, compare.
`kernel` makes a view of a timeline, `page` the page; scripts draw what is visible, so that a million events
stay fluid.
"""
