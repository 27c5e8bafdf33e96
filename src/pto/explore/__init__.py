"""The explorer of a program (`pto explore`): its source beside the program after each pass, C++ and image.

`stages` makes the data of a text, `launch` runs the program once, `page` makes the page, and `server` serves
it on this machine, for edits.
"""
