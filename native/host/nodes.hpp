// Ranks on several machines (nodes): windows of ranks of other nodes, reached by messages that their owner
// applies.
//
// A process has all windows of a world in one range of addresses. Windows of its own node are shared memory;
// for the other windows it has private memory, mirrors. A kernel announces each access to a mirror (`pto_far`
// in pto/core/launch.h). Bytes that it reads are fetched from the owner. Bytes that it has written are sent
// to the owner when it next touches global memory, signals, waits or ends. For an addition, the mirror holds
// the neutral element before and the addend after, which is sent with its type.
//
// Between two processes of different nodes there is one line, a stream socket. Invariants:
//
// - Messages of a line are applied in the order of sending. So a signal comes after the data sent before it,
//   and a read comes after the earlier writes.
// - Only the owner of a window applies messages to it, with the operations of the ranks of its node: words of
//   up to 8 bytes and additions are atomic operations of the processor.
// - A thread of each process receives, whatever its core does; a core that waits for an answer or is idle
//   receives too. The thread never waits for a receiver: data that cannot be sent at once is queued. So two
//   processes that send to each other both go on.
// - A broken line ends the launch for all: the process that finds it informs the others.
// - The process at the other end has proven that it belongs to the launch (src/pto/host/handshake.py). Its
//   messages are checked all the same: an unknown kind or size, an address outside the window of the receiver,
//   or a reply without a request breaks the line before a byte is stored. The queue of data is bounded.
//
// Rank 0 detects deadlocks (`Waves`): it asks all processes for their state, three times one after another.
// The launch is stuck if all wait or have ended, no rank has gone on in between (`turns` of group.hpp), as
// many messages were applied by the first time as have been sent, and each rank has polled twice after the
// second time. Then all have polled after the last message was applied, and no rank is left that could send
// one.
#pragma once

#include <cstdint>

#include "pto/core/launch.h"

namespace pto::host {

/// Receive the messages of other nodes; a no-op on a single node.
void help_nodes();

}  // namespace pto::host

extern "C" {
/// Open the lines of this process, a rank of `ranks`, with a socket to each rank of another node and -1 for
/// those of its own. The sockets become its property. Null if no thread can be started.
[[gnu::visibility("default")]] void* pto_nodes_open(int32_t rank, int32_t ranks, const int32_t* sockets);
/// All windows of a world, `stride` bytes for each rank; those of the node are in a file that it has in common. Worlds
/// have numbers, the same on all nodes. Null where the system has no memory for it.
[[gnu::visibility("default")]] void* pto_nodes_map(void* nodes, int32_t world, int32_t file, uint64_t stride);
[[gnu::visibility("default")]] void pto_nodes_unmap(void* nodes, int32_t world);
/// A launch on those windows begins, in a group (group.hpp) of the ranks of this node; for `far` of a launch.
[[gnu::visibility("default")]] const pto_far* pto_nodes_begin(void* nodes, int32_t world, void* group);
/// Report the end of this rank, with success or not: its writes are sent.
[[gnu::visibility("default")]] void pto_nodes_end(void* nodes, int32_t well);
/// Return true if all messages of others in it have arrived: waits for some milliseconds. Then the rank may
/// leave.
[[gnu::visibility("default")]] int32_t pto_nodes_met(void* nodes, int32_t timeout_ms);
/// The first bytes of the windows of all ranks of other nodes, from their owners: whether they are here.
[[gnu::visibility("default")]] int32_t pto_nodes_refresh(void* nodes, int32_t world, uint64_t bytes);
/// The error of the rank whose line broke first, as a code in brackets and a text; null for none.
[[gnu::visibility("default")]] const char* pto_nodes_problem(void* nodes);
/// Break all lines and leave the launch, if there is one; the others are informed.
[[gnu::visibility("default")]] void pto_nodes_close(void* nodes);
}
