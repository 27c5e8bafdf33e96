"""The instruction rows: one module per group, each with its `ROWS`.

`MODULES` names them in table order with the first letters of their mnemonics (or their dialects), so that a
program loads only the groups that it uses. A test checks these letters.
"""

MODULES: dict[str, str] = {
    "tile_elementwise": "t",
    "tile_scalar": "t",
    "tile_reduce": "t",
    "tile_memory": "m t",
    "tile_matrix": "t",
    "tile_layout": "b t",
    "tile_irregular": "t",
    "config": "g s t",
    "registers": "g s",
    "views": "a g m p s t",
    "sync": "b c d f g m p r s w",
    "system": "a i p r s t",
    "comm": "b c g m t w",
    "assembler": "b d e l p t",
    "vector_memory": "s v",
    "vector_compute": "c d v",
    "vector_special": "v",
    "predicate": "p",
    "micro": "a c g i l s v",
    "dma": "c m s",
    "cube": "c l m s",
    "arith": "arith math",
    "control": "builtin cf func scf",
    "memory_dialects": "affine memref",
}
