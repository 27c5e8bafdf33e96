// Ranks on several machines (nodes). Messages reach the windows of ranks on other nodes, and the owner of a
// window applies them.
//
// Each process maps all windows of a world in one address range. Windows of its own node are shared memory;
// the other windows are private memory, called mirrors. A kernel announces each access to a mirror (`pto_far`
// in pto/core/launch.h). Bytes to read are fetched from the owner. Written bytes are sent to the owner when
// the kernel next accesses global memory, signals, waits or ends. For an atomic operation (add, max, min),
// the mirror first gets the neutral element, then holds the operand, which is sent with its type.
//
// Each pair of processes on different nodes has one line, a stream socket. Invariants:
//
// - Messages of a line are applied in sending order. So a signal is applied after the data sent before it,
//   and a read after the earlier writes.
// - Only the owner of a window applies messages to it, with the operations of the ranks of its node: words of
//   up to 8 bytes and atomic operations use atomic instructions of the processor.
// - A thread of each process receives, independent of the core; a core that waits for a reply or is idle
//   receives too. The thread never waits for a receiver: data that cannot be sent at once is queued. So two
//   processes that send to each other both proceed.
// - A broken line ends the launch for all: the process that detects it informs the others.
// - The process at the other end has proven that it belongs to the launch (src/pto/host/handshake.py). Its
//   messages are still checked: an unknown kind or size, an address outside the window of the receiver,
//   or a reply without a request breaks the line before a byte is stored. The send queue is bounded.
//
// Rank 0 detects deadlocks (`Nodes::judge`). It asks all processes for their state in three consecutive
// waves. The launch is stuck if in all waves all ranks wait or have ended and no rank has proceeded (`turns`
// of group.hpp), if the first wave counts as many applied as sent messages, and if each waiting rank has
// polled twice between the second and the third wave. Then each has polled after the last message was
// applied, and no rank can send another one.
#pragma once

#include <cstdint>

#include "pto/core/launch.h"

namespace pto::host {

/// Receive the messages of other nodes; a no-op on a single node.
void help_nodes();

}  // namespace pto::host

extern "C" {
/// Open the lines of this process, a rank of `ranks`. `sockets` has a socket for each rank of another node
/// and -1 for the others; the lines own the sockets. Return null for invalid ranks or if no thread can be
/// started.
[[gnu::visibility("default")]] void* pto_nodes_open(int32_t rank, int32_t ranks, const int32_t* sockets);
/// Map all windows of a world, `stride` bytes per rank; `file` holds the windows of this node. The number of
/// a world is the same on all nodes. Return null if the file is too small or the system has no memory.
[[gnu::visibility("default")]] void* pto_nodes_map(void* nodes, int32_t world, int32_t file, uint64_t stride);
[[gnu::visibility("default")]] void pto_nodes_unmap(void* nodes, int32_t world);
/// Begin a launch on these windows, in a group (group.hpp) of the ranks of this node; return `far`.
[[gnu::visibility("default")]] const pto_far* pto_nodes_begin(void* nodes, int32_t world, void* group);
/// End this rank. After success, its remaining writes are sent first; after a failure, they are dropped.
[[gnu::visibility("default")]] void pto_nodes_end(void* nodes, int32_t well);
/// Wait at most `timeout_ms` until all other ranks have ended the launch. Return true if they have, or if a
/// line broke: the rank may then leave.
[[gnu::visibility("default")]] int32_t pto_nodes_met(void* nodes, int32_t timeout_ms);
/// Fetch the first bytes of the windows of all ranks of other nodes; return true if all have arrived.
[[gnu::visibility("default")]] int32_t pto_nodes_refresh(void* nodes, int32_t world, uint64_t bytes);
/// Return the error of the rank whose line broke first, as a code in brackets and a text, or null.
[[gnu::visibility("default")]] const char* pto_nodes_problem(void* nodes);
/// Break all lines and leave the launch, if there is one; the other processes see their lines break.
[[gnu::visibility("default")]] void pto_nodes_close(void* nodes);
}
