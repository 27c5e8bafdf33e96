//   graphs host LIBRARY NAME | graphs count LIBRARY NAME | graphs device0 LIBRARY NAME | graphs device1
//   LIBRARY NAME
#include "graphs.h"

#include <cstring>

int main(int, char** argv) {
  if (strcmp(argv[1], "host") == 0) return run_host_graph(argv[2], argv[3], true);
  if (strcmp(argv[1], "count") == 0) return run_host_graph(argv[2], argv[3], false);
  return run_device_graph(argv[2], argv[3], strcmp(argv[1], "device1") == 0);
}
