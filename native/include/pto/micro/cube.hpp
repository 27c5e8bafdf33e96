// Calls of the cube unit by pointers: copies that feed it, products, and the way out of L0C.
#pragma once

#include "pto/micro/cube_copies.hpp"
#include "pto/micro/mad.hpp"
#include "pto/micro/write_back.hpp"
