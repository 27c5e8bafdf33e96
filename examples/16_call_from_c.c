// A kernel as machine code, called from C: c = a + b of 01_vec_add.pto.
//
//   ptoas 01_vec_add.pto --target=cpu -o vec_add.o           the kernel
//   pto build vec_add.o -o calls.so                          what it calls
//   cc 16_call_from_c.c vec_add.o $(pto build --flags) -o call_from_c && ./call_from_c ./calls.so
//
// Built with -DLOAD, without vec_add.o and with -ldl, it loads vec_add.so instead.
#include <stdio.h>

#include "pto/object.h"
#ifdef LOAD
#include <dlfcn.h>
#endif

pto_kernel vec_add;  // the symbol of a kernel is its name

enum { ROWS = 64, COLS = 128, COUNT = ROWS * COLS };

static float a[COUNT], b[COUNT], c[COUNT];

#define ARRAY(of, size) {.data = (of), .bytes = (size), .name = #of}

int main(int argc, char** argv) {
  for (int i = 0; i < COUNT; ++i) {
    a[i] = (float)i;
    b[i] = 0.5f;
  }
  char why[1024] = "";
  pto_machine* machine = pto_machine_open((const char* const*)argv + 1, argc - 1, why, sizeof why);
  if (machine == NULL) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
#ifdef LOAD
  void* library = dlopen("./vec_add.so", RTLD_NOW);
  pto_kernel* kernel = library != NULL ? (pto_kernel*)dlsym(library, "vec_add") : NULL;
  if (kernel == NULL) return 1;
#else
  pto_kernel* kernel = vec_add;
#endif

  // Arguments are words; what the kernel may touch are arrays, and an access outside of them fails.
  const uint64_t words[] = {(uintptr_t)a, (uintptr_t)b, (uintptr_t)c};
  const pto_array arrays[] = {ARRAY(a, sizeof a), ARRAY(b, sizeof b), ARRAY(c, sizeof c)};
  pto_launch launch = {.size = sizeof launch,
                       .argc = 3,
                       .args = words,
                       .blocks = 1,
                       .subblocks = 2,
                       .threads = 1,
                       .error = why,
                       .error_size = sizeof why,
                       .arrays = arrays,
                       .array_count = 3};
  if (kernel(&launch, machine) != 0) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i) wrong += c[i] != a[i] + b[i];
  printf("c[2] = %g, %d of %d are wrong\n", (double)c[2], wrong, COUNT);

  // An array that is too small: the launch ends, the process does not.
  const pto_array half[] = {ARRAY(a, sizeof a), ARRAY(b, sizeof b / 2), ARRAY(c, sizeof c)};
  launch.arrays = half;
  printf("status %d: ", kernel(&launch, machine));
  printf("%s\n", why);
  pto_machine_close(machine);
  return wrong != 0;
}
