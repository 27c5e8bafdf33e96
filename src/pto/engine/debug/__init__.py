"""The debugger: stop a launch, inspect it, go on and go back.

| module | idea |
| --- | --- |
| `expressions` | `%acc[0:4, 0:8]`, `%i * 2 > 7`: expressions of users |
| `values` | text for tiles, views, registers, masks and numbers |
| `points` | breakpoints and watchpoints |
| `follower` | the watcher that stops a launch |
| `session` | a launch on its own thread; to go back, it runs again |
| `stop` | a stop: operands, names, calls, loops, files and lines |
| `state` | waits: flags, FIFOs, pipes, cores |
| `commands` | commands of the prompt, one table |
| `prompt` | commands from a terminal, a pipe or a list |
| `wire`, `requests`, `dap`, `inspection` | the Debug Adapter Protocol, for editors |

All modules are independent of the source language: operations have their source locations.
"""
