"""The language server, `pto lsp`: diagnostics, pages, completion, navigation and edits in editors.

`server` connects the parts to the protocol; only that module needs pygls. All other modules work with
character offsets of a `Document`, and take all facts about instructions from the table.
"""
