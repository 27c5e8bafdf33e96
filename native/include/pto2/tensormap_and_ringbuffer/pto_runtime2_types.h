// Numbers of the documented runtime that sources may name. Orchestration code does not need this header.
#pragma once

#include <stdint.h>

#define PTO2_TASK_WINDOW_SIZE 65536
#define PTO2_HEAP_SIZE (1024 * 1024 * 1024)
#define PTO2_DEP_LIST_POOL_SIZE 65536
#define PTO2_TENSORMAP_POOL_SIZE 65536
#define PTO2_TENSORMAP_NUM_BUCKETS 65536
#define PTO2_TENSORMAP_CLEANUP_INTERVAL 64

// Parameters of a task in the documents; here a task may have 64. Producers of a task are not limited.
#define PTO2_MAX_OUTPUTS 16
#define PTO2_MAX_INPUTS 16
#define PTO2_MAX_INOUTS 8

#define PTO2_MAX_SCOPE_DEPTH 64
#define PTO2_SCOPE_TASKS_INIT_CAP 256
#define PTO2_READY_QUEUE_SIZE 65536

#define PTO2_BLOCK_NOTIFY_INTERVAL 10000
#define PTO2_FLOW_CONTROL_SPIN_LIMIT 100000
#define PTO2_HEAP_SPIN_LIMIT 100000

#define PTO2_ALIGN_SIZE 64
#define PTO2_PACKED_OUTPUT_ALIGN 1024
#define PTO2_ALIGN_UP(x, align) (((x) + (align) - 1) & ~((align) - 1))

typedef enum {
  PTO2_TASK_PENDING = 0,
  PTO2_TASK_READY = 1,
  PTO2_TASK_RUNNING = 2,
  PTO2_TASK_COMPLETED = 3,
  PTO2_TASK_CONSUMED = 4,
} PTO2TaskState;
