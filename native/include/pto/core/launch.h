// The C interface of a launch; `pto.engine.compiled.library` has the same structures.
#ifndef PTO_CORE_LAUNCH_H
#define PTO_CORE_LAUNCH_H

#include <stdint.h>

/// An array as the argument for a GlobalTensor: the argument word is the address of a pto_view.
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
      owner;  // with ranks: 0: each rank has it; r + 1: rank r only; -(r + 1): rank r; others can access it
} pto_array;

/// Windows of ranks that do not share memory: bytes of others are fetched before their use and sent after it.
typedef struct pto_far {
  uint64_t first, last;  // addresses of all windows
  /// Called before an instruction uses some of these bytes; `use`: a `Use` of core/machine.hpp.
  void (*used)(uint64_t first, uint64_t last, uint32_t use);
  /// Called after the last `used` of an instruction, and when a core waits or ends. Returns null or an error.
  const char* (*settled)(void);
  /// Write bytes to a window. Returns 0 if the window is in shared memory: the caller then writes itself.
  int32_t (*put)(uint64_t to, const void* from, uint64_t bytes);
} pto_far;

/// Receiver of the records of the cores of a traced or checked build.
typedef struct pto_tracer {
  /// Receives records of a core, as in core/trace.hpp. `core`: its kind (0 both, 1 cube, 2 vector), and its
  /// sub-block from bit 8 on; `over`: these are the last records. Returns nonzero to end the launch. Null: no
  /// records.
  int32_t (*told)(uint32_t rank, uint32_t block, uint32_t core, uint32_t over, const uint64_t* words,
                  uint64_t count);
  uint64_t frames
      [12];  // out: return addresses of the core that failed, innermost first; the unused entries are zeros
} pto_tracer;

/// Parameters and results of a launch. Arguments are 64-bit words: addresses, integers, or bits of floats.
typedef struct pto_launch {
  uint32_t size;           // sizeof(pto_launch) of the caller
  int32_t argc;            // words in args, per rank
  const uint64_t* args;    // of one rank after another
  const uint8_t* special;  // null, or per argument: 0 as given, 1 block, 2 number of blocks, 3 sub-block,
                           // 4 address of the block's part; virtual machine: for each code of its program
  int32_t blocks;          // at least 1
  int32_t subblocks;       // vector cores per block of a mixed kernel: 1 or 2
  int32_t threads;         // host threads
  int32_t status;          // out: 0 done, 1 failed, 2 stuck
  void (*print)(const char* text);  // null: standard output
  char* error;  // out: the message; for status 2 one line per core with name, tab and condition
  uint64_t error_size;
  const pto_array* arrays;  // null, or all of global memory: accesses outside these arrays fail
  int32_t array_count;
  int32_t mark;         // out: the last source location of the core that failed, or -1
  uint64_t touched[2];  // out: start and end (excluded) of an access outside all arrays, or zeros
  const void*
      program;     // virtual machine: the program to execute; traced or checked build: a pto_tracer, or null
  uint64_t limit;  // virtual machine: time limit of the launch in nanoseconds; 0: none
  uint64_t steps;  // virtual machine: limit of loop iterations per core; 0: none
  int32_t ranks;   // number of ranks, each with that many blocks; 0: the program has no ranks
  int32_t rank;    // out: rank of the core that failed; in, if `alone`: the rank to launch
  /// Called when no core can go on, with a number that grows whenever a core has run. Returns 0 while another
  /// process may still end a wait. Null: no other process can.
  int32_t (*idle)(uint64_t moves);
  int32_t alone;       // nonzero: one rank is launched here, the others in other processes
  const pto_far* far;  // null: all windows are in shared memory
} pto_launch;

#endif
