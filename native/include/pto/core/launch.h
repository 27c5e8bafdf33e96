// The C interface of a launch; `pto.engine.compiled.library` has the same structures.
#ifndef PTO_CORE_LAUNCH_H
#define PTO_CORE_LAUNCH_H

#include <stdint.h>

/// An array as an argument that is a GlobalTensor: the word is the address of one of these.
typedef struct pto_view {
  void* data;
  int64_t shape[5], stride[5];  // in elements, outermost first
} pto_view;

/// An array in global memory.
typedef struct pto_array {
  void* data;
  uint64_t bytes;
  const char* name;
  int32_t
      owner;  // of several ranks: 0 all have it; r + 1 rank r alone; -(r + 1) rank r, and the others reach it
} pto_array;

/// Windows that are not all in reach: bytes of the others are fetched before their use, and sent after it.
typedef struct pto_far {
  uint64_t first, last;  // addresses of all windows
  /// Some of these bytes are about to be used, by `Use` of core/machine.hpp.
  void (*used)(uint64_t first, uint64_t last, uint32_t use);
  /// They were all of an instruction, or that is done and the core waits or ends. Null, or why it cannot go on.
  const char* (*settled)(void);
  /// Write bytes there, from any memory: not 0 if that was done, 0 where they are in reach.
  int32_t (*put)(uint64_t to, const void* from, uint64_t bytes);
} pto_far;

/// Receiver of the records of the cores of a traced or checked build.
typedef struct pto_tracer {
  /// Records of a core, as in core/trace.hpp: its rank, its block, its kind (0 both, 1 cube, 2 vector) with
  /// its sub-block from bit 8 on, and whether these are the last. Not 0: the launch is to end. Null: records
  /// are not wanted.
  int32_t (*told)(uint32_t rank, uint32_t block, uint32_t core, uint32_t over, const uint64_t* words,
                  uint64_t count);
  uint64_t frames
      [12];  // out: where a core that failed was, as return addresses, innermost first; zeros behind them
} pto_tracer;

/// Parameters and results of a launch. Arguments are 64-bit words: addresses, integers, or the bits of a
/// float.
typedef struct pto_launch {
  uint32_t size;           // sizeof(pto_launch) of the caller
  int32_t argc;            // words in args, of one rank
  const uint64_t* args;    // of one rank after another
  const uint8_t* special;  // null, or by argument: 0 as given, 1 block, 2 blocks, 3 sub-block, 4 its part;
                           // on the virtual machine for each code of its program
  int32_t blocks;          // at least 1
  int32_t subblocks;       // vector cores per block of a mixed kernel: 1 or 2
  int32_t threads;         // host threads
  int32_t status;          // out: 0 done, 1 failed, 2 stuck
  void (*print)(const char* text);  // null: standard output
  char* error;  // out: the failure; for status 2 a line per core: its name, tab, its condition
  uint64_t error_size;
  const pto_array* arrays;  // null, or all of global memory: accesses outside of it fail
  int32_t array_count;
  int32_t mark;         // out, of the core that failed: its last mark of a source location, or -1
  uint64_t touched[2];  // out: first address outside of all arrays and the one behind the last, or zeros
  const void*
      program;     // virtual machine: the program to execute; traced or checked build: a pto_tracer, or null
  uint64_t limit;  // of the virtual machine: nanoseconds that the launch may take; 0: any time
  uint64_t steps;  // of the virtual machine: repetitions of loops that a core may make; 0: any number
  int32_t ranks;   // that run together, each with so many blocks; 0: there is no notion of ranks
  int32_t rank;    // out: that of the core that failed; in, where it is alone: its number
  /// Asked when no core can go on, with a number that grows when one has: 0 while another process may still change
  /// that. Null: none can.
  int32_t (*idle)(uint64_t moves);
  int32_t alone;       // not 0: of these ranks one is launched here, the others in other processes
  const pto_far* far;  // null: all windows are in reach
} pto_launch;

#endif
