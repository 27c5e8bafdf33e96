// Kernels as machine code, called from C: the output of `ptoas k.pto -o k.o` and `ptoas k.pto -o k.so`
// (docs/objects.md).
//
//   pto_kernel vec_add;  // from k.o; from k.so with dlsym
//   pto_machine* machine = pto_machine_open(packs, 1, error, sizeof error);
//   pto_launch launch = {.size = sizeof launch, .argc = 3, .args = words, .blocks = 24, ...};
//   if (vec_add(&launch, machine) != 0) puts(launch.error);
//
// Link with libpto_vm of the package; examples/object/ has a whole program.
#ifndef PTO_OBJECT_H
#define PTO_OBJECT_H

#include <stddef.h>

#include "pto/core/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pto_machine pto_machine;

/// The type of a kernel symbol. The arguments of a launch are 64-bit words: addresses of arrays, integers,
/// bits of floats, and for an argument that is a view the address of a pto_view. Return the status of the
/// launch: 0 done, 1 failed, 2 stuck. Several threads may launch kernels on one machine.
///
/// About every millisecond, loops test whether the launch must end: after `limit` nanoseconds or `steps`
/// repetitions of the loops of a core (PTO-E2106), because another core has failed, or because of SIGINT,
/// which the launch notices after some ten milliseconds and passes to the handler of the program. The status
/// is then 1, and `mark` locates the loop: the index of a word of the image, with the number of the code from
/// bit 28 on. `pto objdump` prints the line of such a word.
typedef int pto_kernel(pto_launch* launch, const pto_machine* machine);

/// Open a machine whose kernels find their calls in these libraries, which `pto build k.o -o calls.so`
/// creates, and in the pack of the package, if there is one beside libpto_vm. Return null if a library cannot
/// be loaded: `error` then has the reason.
pto_machine* pto_machine_open(const char* const* packs, int count, char* error, size_t error_size);

/// Close a machine. No launch may be running, and none may follow.
void pto_machine_close(pto_machine* machine);

#ifdef __cplusplus
}
#endif

#endif
