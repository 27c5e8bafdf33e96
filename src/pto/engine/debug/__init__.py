"""The debugger: a launch that stops, is looked at, goes on and goes back.

| module | idea |
| --- | --- |
| `expressions` | `%acc[0:4, 0:8]`, `%i * 2 > 7`: what users write, read and computed |
| `values` | how tiles, views, registers, masks and numbers are shown |
| `points` | breakpoints and watchpoints: where and when to stop |
| `follower` | the watcher that stops a launch |
| `session` | a launch on a thread of its own; going back is going there again |
| `stop` | what a stop shows: operands, names, calls, loops, files and lines |
| `state` | who waits for whom: flags, FIFOs, pipes, cores |
| `commands` | what the prompt understands, one table |
| `prompt` | commands from a terminal, a pipe or a list |
| `wire`, `requests`, `dap`, `inspection` | the Debug Adapter Protocol, for editors |

Nothing here knows what a program was written in: operations are asked for their places.
"""
