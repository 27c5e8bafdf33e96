// Calls of the cube unit on pointers: copies to its operand buffers, products, and copies out of L0C.
#pragma once

#include "pto/micro/cube_copies.hpp"
#include "pto/micro/mad.hpp"
#include "pto/micro/write_back.hpp"
