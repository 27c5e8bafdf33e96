// Ranks on several machines (nodes): windows of ranks of other nodes, reached by messages that their owner applies.
//
// A process has all windows of a world in one range of addresses. Those of ranks of its own node are memory that their
// processes share; in place of the others it has memory of its own, mirrors. What a kernel does to a mirror it tells
// first (`pto_far` in pto/core/launch.h): bytes that it reads are brought from the owner; bytes that it has written are
// sent to him when it next touches global memory, signals, waits or ends; where it adds, the mirror holds the neutral
// element before and the addend after, which is sent with its type.
//
// Between two processes of different nodes there is one line, a stream socket. What holds:
//
// - Messages of a line are applied in the order they were sent in, so a signal comes after the data sent before it, and
//   what is read after what was written.
// - Who owns a window is the only one who applies messages to it, and he does it as the ranks of his node do: words of
//   up to 8 bytes and additions are atomic operations of the processor.
// - A thread of each process receives, whatever its core does; a core that waits for an answer or has nothing to do
//   receives too. The thread never waits for anybody who has to receive: what it has to send and cannot at once is
//   queued. So two processes that send to each other both go on.
// - A line that breaks ends the launch for all: who finds it tells the others.
// - The process at the other end has proven that it belongs to the launch (src/pto/host/handshake.py). Its messages are
//   checked all the same: one of an unknown kind or size, outside the window of the receiver, or a reply without a
//   question breaks the line before a byte of it is stored. The queue of data for that process is bounded.
//
// Whether all are stuck, rank 0 finds out (`Waves`): it asks all processes what they do, three times one after another.
// Where all wait or have ended, none has gone on in between (`turns` of group.hpp), as many messages were applied by the
// first time as have been sent, and each has looked twice after the second time, everybody has looked after the last
// message was applied, and nobody is left who could send one.
#pragma once

#include <cstdint>

#include "pto/core/launch.h"

namespace pto::host {

/// Receive what has come from other nodes; nothing where there are none.
void help_nodes();

}  // namespace pto::host

extern "C" {
/// This process is a rank of so many, with a socket to each rank of another node and -1 for those of its own. The
/// sockets belong to it from then on. Null where there is no thread to be had.
[[gnu::visibility("default")]] void* pto_nodes_open(int32_t rank, int32_t ranks, const int32_t* sockets);
/// All windows of a world, `stride` bytes for each rank; those of the node are in a file that it has in common. Worlds
/// have numbers, the same on all nodes. Null where the system has no memory for it.
[[gnu::visibility("default")]] void* pto_nodes_map(void* nodes, int32_t world, int32_t file, uint64_t stride);
[[gnu::visibility("default")]] void pto_nodes_unmap(void* nodes, int32_t world);
/// A launch on those windows begins, in a group (group.hpp) of the ranks of this node; for `far` of a launch.
[[gnu::visibility("default")]] const pto_far* pto_nodes_begin(void* nodes, int32_t world, void* group);
/// It has ended here, well or not: what it wrote is sent.
[[gnu::visibility("default")]] void pto_nodes_end(void* nodes, int32_t well);
/// Whether all that others sent in it has come: waits for some milliseconds. Whoever sees it may leave the group.
[[gnu::visibility("default")]] int32_t pto_nodes_met(void* nodes, int32_t patience);
/// The first bytes of the windows of all ranks of other nodes, from their owners: whether they are here.
[[gnu::visibility("default")]] int32_t pto_nodes_refresh(void* nodes, int32_t world, uint64_t bytes);
/// What is wrong with the rank whose line broke first, as a code in brackets and a text; null for none.
[[gnu::visibility("default")]] const char* pto_nodes_problem(void* nodes);
/// Break all lines, and leave the launch, if there is one: the others are told.
[[gnu::visibility("default")]] void pto_nodes_close(void* nodes);
}
