// Copy functions that check the size of the destination.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EOK 0
#ifndef ERANGE
#include <errno.h>
#endif
typedef int errno_t;

static inline errno_t memset_s(void* to, size_t room, int value, size_t count) {
  if (to == NULL || count > room) return ERANGE;
  memset(to, value, count);
  return EOK;
}
static inline errno_t memcpy_s(void* to, size_t room, const void* from, size_t count) {
  if (to == NULL || from == NULL || count > room) return ERANGE;
  memcpy(to, from, count);
  return EOK;
}
static inline errno_t strncpy_s(char* to, size_t room, const char* from, size_t count) {
  size_t length = 0;
  if (to == NULL || from == NULL || room == 0) return ERANGE;
  while (length < count && from[length] != 0) ++length;
  if (length >= room) return ERANGE;
  memcpy(to, from, length);
  to[length] = 0;
  return EOK;
}
static inline errno_t strcpy_s(char* to, size_t room, const char* from) {
  return from == NULL ? ERANGE : strncpy_s(to, room, from, strlen(from));
}
